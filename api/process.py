"""One process of a running service: an API process, or a worker. Started by `processes.py`, as

    python -m tallybook_command api FD SETTINGS
    python -m tallybook_command worker

FD is a listening socket handed down, SETTINGS an `app.Settings` as JSON; the database's address comes in the
environment, where it is not shown to other users. The process says `ready` on standard output, works until SIGTERM or
until its standard input ends (whoever started it is gone), finishes what it has taken, and ends with code 0.
"""

import asyncio
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from typing import Final

import msgspec
import structlog
import uvloop

from api import figures
from api.app import Settings, make_front, serving
from api.connections import refuse_lax_parser
from api.desk import open_desk
from engine import failpoints
from engine.background import background
from engine.database import open_database
from engine.errors import StartupRefused
from engine.telemetry import Lines, log_json
from projections.worker import Worker

DSN_VARIABLE: Final = "TALLYBOOK_DATABASE_URL"
READY: Final = b"ready\n"
GC_THRESHOLDS: Final = (10_000, 20, 50)
"""Python's own, 700, has it look some hundred times a second at requests under way, which are no garbage."""
DESCRIPTORS_KEPT: Final = 128
"""Of those that a process may have open, for others than clients: the database, files, connections that are ending."""
_logger = structlog.get_logger()


def main() -> int:
    lines = log_json()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a descriptor for each connection
    kind, *arguments = sys.argv[1:]
    dsn = os.environ[DSN_VARIABLE]
    try:
        match kind, arguments:
            case "api", [fd, settings]:
                refuse_lax_parser()
                chosen = msgspec.json.decode(settings, type=Settings)
                room = connections_with(most, chosen.connections)
                uvloop.run(_serve(dsn, int(fd), lines, msgspec.structs.replace(chosen, connections=room)))
            case "worker", []:
                uvloop.run(_work(dsn))
            case _:
                return 2
    except StartupRefused as refused:
        sys.stderr.write(f"{refused.message}\n")
        return 1
    return 0


def connections_with(descriptors: int, wanted: int) -> int:
    """How many clients a process takes that may have so many descriptors open."""
    return max(1, min(wanted, descriptors - DESCRIPTORS_KEPT))


async def _serve(dsn: str, fd: int, lines: Lines, settings: Settings) -> None:
    failpoints.arm()
    async with open_database(dsn, name="tallybook api") as database, open_desk(database) as desk:
        front = make_front(desk, lines, settings)
        async with background() as tasks, serving(front, socket(fileno=fd), connections_max=settings.connections):
            gc.freeze()  # what is here now stays; the collector need not look at it again
            gc.set_threshold(*GC_THRESHOLDS)
            watching = tasks.create_task(figures.watch(database))
            with _lifeline() as stop:
                _logger.info("process_started", kind="api", pid=os.getpid())
                _say_ready()
                await stop.wait()
                _logger.info("process_stopping", kind="api", pid=os.getpid())
            watching.cancel()


async def _work(dsn: str) -> None:
    with _lifeline() as stop:
        await work(dsn, stop, on_ready=_say_ready)


async def work(dsn: str, stop: asyncio.Event, *, on_ready: Callable[[], None]) -> None:
    """A worker, until `stop` is set; `on_ready` is called when it begins."""
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


def _say_ready() -> None:
    """Raises StartupRefused where nobody is there to hear it."""
    try:
        os.write(sys.stdout.fileno(), READY)  # at once: what a buffer kept would be tried again at the exit
    except BrokenPipeError as error:
        raise StartupRefused("Whoever started this process is gone, and so it ends.") from error


@contextmanager
def _lifeline() -> Iterator[asyncio.Event]:
    """An event that SIGTERM sets, and the end of standard input; of a process that `processes.py` started."""
    loop = asyncio.get_running_loop()
    with stop_on_signals() as stop:
        loop.add_reader(sys.stdin.fileno(), _stop_at_end, stop)
        yield stop


def _stop_at_end(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()


@contextmanager
def stop_on_signals() -> Iterator[asyncio.Event]:
    """An event that SIGTERM and Ctrl-C set, within the context."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in signal.SIGTERM, signal.SIGINT:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in signal.SIGTERM, signal.SIGINT:
            loop.remove_signal_handler(number)
