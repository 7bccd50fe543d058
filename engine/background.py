"""Work in the background of a context, and long work in turns."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

SLICE_SECONDS: Final = 0.004
"""For long work in one go of the event loop; the step that is begun then is done to its end."""


@asynccontextmanager
async def background() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group whose body raises what it raises, not a group of it.

    A task that fails still ends the body and comes out as a group: a process whose background is broken must not go
    on as if it were not.
    """
    raised: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            try:
                yield tasks
            except BaseException as error:
                raised = error
                raise
    except BaseExceptionGroup as group:
        if raised is not None and group.exceptions == (raised,):
            raise raised from raised.__cause__
        raise


class Turns:
    """Lets the long work of a process be done in slices, one slice in each round of the event loop, however many have
    such work: whoever has it does it `async with` this, step by step, until `over`, and then again.

    The lock is fair, and who waits for it is woken in a later round than the one in which it was let go; so between two
    slices everybody else has their turn.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._until = 0.0

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        self._until = time.perf_counter() + SLICE_SECONDS

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()
        await asyncio.sleep(0)

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._until

    async def work(self, steps: Iterable[object]) -> None:
        """Goes through all `steps`, which are small, in as many slices as they take."""
        walk = iter(steps)
        while True:
            async with self:
                for _ in walk:
                    if self.over:
                        break
                else:
                    return
