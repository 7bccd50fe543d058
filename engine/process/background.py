"""Background tasks that last as long as a context, and waits for one another that end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


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
