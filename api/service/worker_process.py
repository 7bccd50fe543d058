"""A worker: the process that keeps the tables, and delivers events to webhooks.

Its argument is the memory for boards, in bytes.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from api.service import figures
from api.service.lifecycle import lifeline, run, say_ready, start_log
from api.webhooks.deliverer import Deliverer
from engine.database.pool import Database, open_database
from engine.process import failpoints, tracing
from engine.process.background import background
from engine.process.logs import Logger
from projections.tables.worker import work_by_nodes

_logger: Final = Logger()


def main() -> int:
    start_log()
    _, memory_bytes = sys.argv[1:]
    return run(partial(_work, memory_bytes=int(memory_bytes)))


async def _work(dsn: str, *, memory_bytes: int) -> None:
    with lifeline() as stop:
        await work(dsn, stop, memory_bytes=memory_bytes, on_ready=say_ready)


async def work(dsn: str, stop: asyncio.Event, *, memory_bytes: int, on_ready: Callable[[], None]) -> None:
    """Runs a worker until `stop` is set, with `memory_bytes` for boards. Calls `on_ready` when it begins. Raises what
    the worker fails with."""
    failpoints.arm()
    tracing.configure()
    async with open_database(dsn, name="tallybook worker", connections_max=5) as database:
        working = asyncio.create_task(_work_on(database, memory_bytes))
        stopped = asyncio.create_task(stop.wait())
        watching = asyncio.create_task(figures.watch(database))
        _logger.info("process_started", kind="worker", pid=os.getpid())
        on_ready()
        await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
        _logger.info("process_stopping", kind="worker", pid=os.getpid())
        for task in working, stopped, watching:
            task.cancel()
        await asyncio.gather(working, stopped, watching, return_exceptions=True)
        if not working.cancelled() and (error := working.exception()):
            raise error


async def _work_on(database: Database, memory_bytes: int) -> None:
    """Delivers webhooks and keeps the tables. Raises the error of whichever fails: neither runs alone."""
    async with background() as tasks:
        tasks.create_task(Deliverer(database).run())
        await work_by_nodes(database, boards_bytes_max=memory_bytes)
