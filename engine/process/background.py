"""Background tasks: those that last as long as a context, and those that callers share; waits that end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")


@asynccontextmanager
async def background() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises an error of its body unchanged, not wrapped in a group.

    A failing task still ends the body, and its error is raised in a group, because a process must not continue without
    a background task.
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


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Waits until the event is set, but no longer than this. Returns whether it is."""
    with suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    return event.is_set()


class SharedTasks(Generic[_K, _T]):
    """Work that is done once, by key, for all who ask for it meanwhile. `under_way`: what is going on."""

    def __init__(self) -> None:
        self.under_way: dict[_K, asyncio.Task[_T]] = {}

    def begun(self, key: _K, work: Callable[[], Coroutine[None, None, _T]]) -> asyncio.Task[_T]:
        """The task of this key; a new one does `work`. Shield it, or a cancelled caller ends it for all."""
        task = self.under_way.get(key)
        if task is None:
            task = self.under_way[key] = asyncio.create_task(work())
            task.add_done_callback(lambda done: self._settle(key, done))
        return task

    def _settle(self, key: _K, task: asyncio.Task[_T]) -> None:
        del self.under_way[key]
        if not task.cancelled():
            task.exception()  # retrieved, because asyncio would complain if all callers were cancelled
