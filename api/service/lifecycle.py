"""How every process of a running service starts and stops. `supervisor.py` starts them, as

    python -m tallybook_command api FD SETTINGS        api_process.py
    python -m tallybook_command worker BYTES           worker_process.py

The database address comes in the environment, where other users cannot see it; so does the level of the log. A
process writes `ready` to standard output, and works until SIGTERM or SIGHUP, or until its standard input ends (the
process that started it is gone). Then it finishes what it has taken, and ends with code 0.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Final, cast

import uvloop

from engine.domain.errors import StartupRefused
from engine.process.logs import Logger
from engine.process.telemetry import Lines, LogLevel, log_to

DSN_VARIABLE: Final = "TALLYBOOK_DATABASE_URL"
LOG_LEVEL_VARIABLE: Final = "TALLYBOOK_LOG_LEVEL"
READY: Final = b"ready\n"
_logger: Final = Logger()


def start_log() -> Lines:
    """Begins the log of a process that `supervisor.py` started."""
    return log_to(level=cast(LogLevel, os.environ.get(LOG_LEVEL_VARIABLE, "info")))


def run(work: Callable[[str], Coroutine[None, None, None]]) -> int:
    """Runs `work` with the database address. Returns the exit code: 0, or 1 if it raised StartupRefused."""
    try:
        uvloop.run(work(os.environ[DSN_VARIABLE]))
    except StartupRefused as refused:
        _logger.error("start_refused", reason=refused.message)
        return 1
    return 0


def say_ready() -> None:
    """Says that the process is ready. Raises StartupRefused if nobody is there to hear it."""
    try:
        os.write(sys.stdout.fileno(), READY)  # without a buffer, which would try again at the exit
    except BrokenPipeError as error:
        raise StartupRefused("The process that started this one is gone, so this one ends too.") from error
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nobody reads the rest: what a library prints would fill a pipe


@contextmanager
def lifeline() -> Iterator[asyncio.Event]:
    """An event that the end of standard input sets, too. For a process that `supervisor.py` started."""
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
    """An event that SIGTERM, Ctrl-C and SIGHUP set, within the context; SIGHUP does not under `nohup`."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
