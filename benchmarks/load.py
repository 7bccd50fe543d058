"""A load of HTTP requests by wrk: real sockets on the loopback, one thread, keep-alive connections, percentiles.

wrk is a closed loop: each connection sends its next request when it has the answer to the last. It corrects its
percentiles for the requests that it did not send meanwhile. `openloop.py` makes loads at a fixed rate.
"""

import asyncio
import re
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks.processes import ProgramFailed

CONNECTIONS: Final = 64
ANSWER_SECONDS_MAX: Final = 10
_SCRIPT: Final = Path(__file__).with_name("load.lua")


class Load(Struct, frozen=True, kw_only=True):
    """The figures of wrk. `refused` counts answers with a status of 400 and above, `broken` failed connections. `sent`
    and `adds_sent` count requests; at the end, up to one per connection has no answer.
    """

    answers: int
    seconds: float
    bytes: int
    sent: int
    adds_sent: int
    refused: int
    broken: int
    p50_us: int
    p90_us: int
    p99_us: int
    connections: int = CONNECTIONS

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds

    @property
    def is_good(self) -> bool:
        """Whether every request was answered well, except those cut off at the end. wrk silently reopens a connection
        that the server closes; requests lost by that show in `sent`.
        """
        is_whole = self.sent - self.answers <= self.connections
        return bool(self.answers) and not self.refused and not self.broken and is_whole

    @property
    def answer_bytes(self) -> float:
        """The mean size of an answer, its headers included."""
        return self.bytes / self.answers

    @property
    def adds_acknowledged(self) -> int:
        """How many adds were answered; at least how many, if there are reads among the requests."""
        return self.answers if self.adds_sent >= self.answers else self.adds_sent - self.connections


async def measured(url: str, requests: Path, *, seconds: int, connections: int = CONNECTIONS) -> Load:
    """Loads a server for that long. Raises ProgramFailed unless every answer was good."""
    load = await loaded(url, requests, seconds=seconds, connections=connections)
    if not load.is_good:
        raise ProgramFailed(f"Not every request was answered well: {load}")
    return load


async def loaded(url: str, requests: Path, *, seconds: int, connections: int = CONNECTIONS) -> Load:
    """Loads a server for that long, whatever it answers. Raises ProgramFailed if wrk fails."""
    process = await asyncio.create_subprocess_exec(
        *("wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s", "--latency"),
        *("--timeout", f"{ANSWER_SECONDS_MAX}s", "--script", str(_SCRIPT), url, "--", str(requests)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    found = re.search(r"^FIGURES (.*)$", said, re.MULTILINE)
    if found is None:
        raise ProgramFailed(f"wrk failed:\n{said}")
    return msgspec.convert(msgspec.json.decode(found[1]) | {"connections": connections}, Load)
