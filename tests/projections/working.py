"""A worker that works while a test goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from engine.database.pool import Database
from projections.tables.worker import Worker

NEVER_SECONDS: Final = 1e9
"""The interval of a poll that does not happen within a test. It is longer than any machine has been running: a clock
that began at 0 must not pass for one that was looked at then."""


@asynccontextmanager
async def working(database: Database) -> AsyncIterator[Worker]:
    """A worker at work, for as long as the context lasts; it must not have ended by itself."""
    worker = Worker(database)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])
