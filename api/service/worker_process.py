"""A worker: the process that keeps the tables."""

import asyncio
import os
from collections.abc import Callable

import structlog

from api.service import figures
from api.service.lifecycle import lifeline, run, say_ready
from engine.database.pool import open_database
from engine.process import failpoints
from engine.process.telemetry import log_json
from projections.tables.worker import Worker

_logger = structlog.get_logger()


def main() -> int:
    log_json()
    return run(_work)


async def _work(dsn: str) -> None:
    with lifeline() as stop:
        await work(dsn, stop, on_ready=say_ready)


async def work(dsn: str, stop: asyncio.Event, *, on_ready: Callable[[], None]) -> None:
    """Runs a worker until `stop` is set. Calls `on_ready` when it begins. Raises what the worker fails with."""
    failpoints.arm()
    async with open_database(dsn, name="tallybook worker", connections_max=4) as database:
        working = asyncio.create_task(Worker(database).run())
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
