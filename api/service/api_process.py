"""An API process: answers over HTTP on a socket that the supervisor hands it.

Its arguments are the socket's file descriptor and a `Settings` as JSON.
"""

import os
import resource
import sys
from functools import partial
from pathlib import Path
from socket import socket
from typing import Final

import msgspec

from api.desk.desk import open_desk
from api.http.connections import refuse_lax_parser
from api.service import figures
from api.service.app import make_front, serving
from api.service.lifecycle import lifeline, run, say_ready, start_log
from api.service.settings import Settings
from engine.database.pool import open_database
from engine.process import collector, failpoints, tracing
from engine.process.background import background
from engine.process.logs import Logger
from engine.process.telemetry import Lines

DESCRIPTORS_KEPT: Final = 128
"""File descriptors kept for the database, files, and connections that are ending. Clients get the others."""
THROTTLES: Final = "throttles"
"""The file, next to the figures, in which the processes of the service count requests."""
_logger: Final = Logger()


def main() -> int:
    lines = start_log()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a descriptor for each connection
    _, fd, text = sys.argv[1:]
    chosen = msgspec.json.decode(text, type=Settings)
    settings = msgspec.structs.replace(chosen, connections=connections_with(most, chosen.connections))
    return run(partial(_serve, fd=int(fd), lines=lines, settings=settings))


def connections_with(descriptors: int, wanted: int) -> int:
    """How many clients a process takes, at least 1, if it may have `descriptors` file descriptors open."""
    return max(1, min(wanted, descriptors - DESCRIPTORS_KEPT))


async def _serve(dsn: str, *, fd: int, lines: Lines, settings: Settings) -> None:
    refuse_lax_parser()
    failpoints.arm()
    tracing.configure()
    async with (
        open_database(dsn, name="tallybook api") as database,
        open_desk(database, live_bytes_max=settings.memory_bytes, with_quotas=True) as desk,
    ):
        throttles = Path(os.environ[figures.FIGURES_DIRECTORY], THROTTLES)
        front = make_front(desk, lines, settings, throttles=throttles, settle=collector.settle)
        async with background() as tasks, serving(front, socket(fileno=fd), connections_max=settings.connections):
            collector.settle()
            watching = tasks.create_task(figures.watch(database))
            with lifeline() as stop:
                _logger.info("process_started", kind="api", pid=os.getpid())
                say_ready()
                await stop.wait()
                _logger.info("process_stopping", kind="api", pid=os.getpid())
            watching.cancel()
