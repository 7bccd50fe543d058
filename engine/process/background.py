"""Background tasks that last as long as a context."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def background() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that lets an error of its body through as it is, not wrapped in a group.

    A task that fails still ends the body, and its error comes out in a group: a process must not continue with a broken
    background.
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
