"""Other programs: servers that run during a measurement, and trials that run to their end and print their figures.

The output of every program goes to a file, and the program is stopped by its process id. A trial gets its settings on
standard input and prints its figures on standard output, both as JSON; so no command line has an address of a database.
"""

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks.machine import ROOT

START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 60.0
TRIAL_SECONDS_MAX: Final = 1_800.0
LOG_TAIL_LINES: Final = 15
POLL_SECONDS: Final = 0.02


class ProgramFailed(Exception):
    """A program did not start, or failed at its task. The message has the end of its log."""


class Running(Struct, frozen=True):
    """A program that has reported that it is ready; `said` is the text by which it did."""

    pid: int
    said: re.Match[str]


@asynccontextmanager
async def running(
    command: Sequence[str],
    *,
    log: Path,
    ready: str,
    environment: Mapping[str, str] = {},
    stdin: bytes = b"",
    is_killed: bool = False,
) -> AsyncIterator[Running]:
    """Runs a server until the context ends; `ready` is the pattern that its log shows when it accepts requests.

    Standard output and standard error go to `log`. `is_killed`: it is to be killed within the context. Raises
    ProgramFailed.
    """
    with log.open("wb") as words:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=words,
            stderr=words,
            env=os.environ | dict(environment),
            cwd=ROOT,
            start_new_session=True,
        )
    try:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        yield Running(process.pid, await _readiness(process, log, ready))
        if process.returncode is not None and not is_killed:
            raise ProgramFailed(f"{command[0]} ended in the middle of a measurement:\n{tail(log)}")
    finally:
        await _stop(process)


async def figures_of(command: Sequence[str], settings: Mapping[str, Any], *, log: Path) -> dict[str, Any]:
    """Runs a trial and returns its figures. Raises ProgramFailed."""
    with log.open("ab") as words:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=words,
            cwd=ROOT,
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(TRIAL_SECONDS_MAX):
            said, _ = await process.communicate(msgspec.json.encode(settings))
    finally:
        await _stop(process)
    if process.returncode != 0:
        raise ProgramFailed(f"{' '.join(command[1:])} failed with code {process.returncode}:\n{tail(log)}")
    figures: dict[str, Any] = msgspec.json.decode(said)
    return figures


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])


async def _readiness(process: asyncio.subprocess.Process, log: Path, ready: str) -> re.Match[str]:
    try:
        async with asyncio.timeout(START_SECONDS_MAX):
            while process.returncode is None:
                if said := _search(ready, log):
                    return said
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        pass
    raise ProgramFailed(f"A program did not start; its log ends with:\n{tail(log)}")


def _search(pattern: str, log: Path) -> re.Match[str] | None:
    return re.search(pattern, log.read_text(errors="replace"))


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Asks the program to end, and kills it after STOP_SECONDS_MAX."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS_MAX):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
