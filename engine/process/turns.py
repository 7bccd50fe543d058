"""Turns of the event loop: long work gives way to the rest of the process every few milliseconds.

`Turn` is for one piece of work, where few are under way at once: loading, rebuilding, the worker.

    turn = Turn()
    for item in many:
        work(item)
        if turn.over:
            await turn.give_way()

`Turns` is shared by all answers of a process, however many are made at once: together they have one slice in each round
of the loop.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Final

SLICE_SECONDS: Final = 0.004
"""For long work in one go of the event loop; the step that is begun then is done to its end."""
TURN_SECONDS_MAX: Final = 0.002
"""Of work in one go, beside the item that is begun then; several who work so at once have a turn each in one round."""


class Turn:
    """Begins when it is made, and anew whenever it gave way."""

    def __init__(self) -> None:
        self._until = time.perf_counter() + TURN_SECONDS_MAX

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._until

    async def give_way(self) -> None:
        """Returns when everybody else who had something to do has had a turn."""
        await asyncio.sleep(0)
        self._until = time.perf_counter() + TURN_SECONDS_MAX


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
