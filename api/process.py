"""One process of a running service: an API process, or a worker. Started by `processes.py`, as

    python -m api.process api FD OPEN_METRICS
    python -m api.process worker

FD is a listening socket handed down, OPEN_METRICS 0 or 1; the database's address comes in the environment, where it
is not shown to other users. The process says `ready` on standard output, works until SIGTERM or until its standard
input ends (whoever started it is gone), finishes what it has taken, and ends with code 0.
"""

import asyncio
import gc
import os
import signal
import sys
from socket import socket
from typing import Final

import structlog
import uvloop

from api.app import make_app, serving
from api.desk import open_desk
from api.middleware import Watch
from engine.database import open_database
from engine.errors import StartupRefused
from engine.telemetry import log_json
from projections.worker import Worker

DSN_VARIABLE: Final = "TALLYBOOK_DATABASE_URL"
READY: Final = b"ready\n"
_logger = structlog.get_logger()


def main() -> int:
    log_json()
    kind, *arguments = sys.argv[1:]
    dsn = os.environ[DSN_VARIABLE]
    try:
        match kind, arguments:
            case "api", [fd, open_metrics]:
                uvloop.run(_serve(dsn, int(fd), open_metrics=open_metrics == "1"))
            case "worker", []:
                uvloop.run(work(dsn))
            case _:
                return 2
    except StartupRefused as refused:
        sys.stderr.write(f"{refused.message}\n")
        return 1
    return 0


async def _serve(dsn: str, fd: int, *, open_metrics: bool) -> None:
    async with open_database(dsn, name="tallybook api") as database, open_desk(database) as desk:
        app = make_app(desk, Watch(), open_metrics=open_metrics)
        async with serving(app, socket(fileno=fd)):
            gc.freeze()  # what is here now stays; the collector need not look at it again
            await _work_until_stopped("api")


async def work(dsn: str) -> None:
    """A worker, until it is stopped."""
    async with open_database(dsn, name="tallybook worker", connections_max=4) as database:
        working = asyncio.create_task(Worker(database).run())
        stopped = asyncio.create_task(_work_until_stopped("worker"))
        await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
        for task in working, stopped:
            task.cancel()
        await asyncio.gather(working, stopped, return_exceptions=True)
        if not working.cancelled() and (error := working.exception()):
            raise error


async def _work_until_stopped(kind: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in signal.SIGTERM, signal.SIGINT:
        loop.add_signal_handler(number, stop.set)
    if not sys.stdin.isatty():
        loop.add_reader(sys.stdin.fileno(), _stop_at_end, stop)
    _logger.info("process_started", kind=kind, pid=os.getpid())
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    await stop.wait()
    _logger.info("process_stopping", kind=kind, pid=os.getpid())


def _stop_at_end(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()


if __name__ == "__main__":
    sys.exit(main())
