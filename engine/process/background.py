"""Tasks that work in the background of a context."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


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
