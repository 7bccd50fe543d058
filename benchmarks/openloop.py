"""A load at a fixed rate that waits for nobody: latency is counted from the moment a request was *due*.

A closed loop like wrk's sends nothing while it waits, so a server that halts for a second spoils one request per
connection and hides all those that would have come meanwhile (coordinated omission). Here requests are due at equal
intervals, whatever happens; one that finds all connections busy waits, and its waiting counts.

The loop is asyncio's own on `select`, because that is the one whose timers are finer than a millisecond. How late the
driver itself was in sending to a free connection is among the figures, so that a driver out of breath is noticed.

It is a program of its own, told by JSON on standard input like a trial.
"""

import asyncio
import selectors
from collections import deque
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from benchmarks.load import CONNECTIONS
from benchmarks.table import percentile
from benchmarks.traffic import Request, stored
from benchmarks.trials import say, told

START_SECONDS: Final = 0.2
DRAIN_SECONDS_MAX: Final = 30.0
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class Settings(Struct, frozen=True, kw_only=True):
    """`requests`: a file of them, sent in turn. `rate`: a second."""

    host: str
    port: int
    requests: str
    rate: float
    seconds: float
    connections: int = CONNECTIONS


class Driver:
    """Sends what is due over the first free connection, and keeps what was late and how long answers took."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.lateness: list[float] = []
        self.refused = 0
        self.drained = asyncio.Event()
        self._free: list[_Connection] = []
        self._waiting: deque[tuple[float, Request]] = deque()
        self._under_way = 0

    async def connect(self, settings: Settings) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(settings.connections):
            _, protocol = await loop.create_connection(lambda: _Connection(self), settings.host, settings.port)
            self._free.append(protocol)

    def send(self, due: float, request: Request) -> None:
        self._under_way += 1
        self.drained.clear()
        if self._free:
            self.lateness.append(asyncio.get_running_loop().time() - due)
            self._free.pop().send(due, request)
        else:
            self._waiting.append((due, request))

    def answered(self, connection: "_Connection", due: float, *, good: bool) -> None:
        self.latencies.append(asyncio.get_running_loop().time() - due)
        self.refused += not good
        self._under_way -= 1
        if self._waiting:
            connection.send(*self._waiting.popleft())
        else:
            self._free.append(connection)
        if not self._under_way:
            self.drained.set()


class _Connection(asyncio.Protocol):
    """One request at a time; reads just enough of HTTP to know where an answer ends and whether it is good."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._due = 0.0
        self._received = bytearray()
        self._expected = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, due: float, request: Request) -> None:
        self._due = due
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._expected:
            self._expected = _answer_bytes(self._received)
        if self._expected and len(self._received) >= self._expected:
            good = self._received.startswith(b"HTTP/1.1 200 ")
            self._received.clear()
            self._expected = 0
            self._driver.answered(self, self._due, good=good)


def _answer_bytes(received: bytearray) -> int:
    """The length of the whole answer that begins here; 0 as long as its head is not complete."""
    end = received.find(_HEAD_END)
    if end < 0:
        return 0
    head = bytes(received[:end]).lower()
    length = head.partition(_LENGTH)[2].partition(b"\r\n")[0]
    return end + len(_HEAD_END) + int(length)


async def run(settings: Settings) -> None:
    requests = list(stored(Path(settings.requests)))
    driver = Driver()
    await driver.connect(settings)
    loop = asyncio.get_running_loop()
    start = loop.time() + START_SECONDS
    count = round(settings.rate * settings.seconds)
    for number in range(count):
        due = start + number / settings.rate
        if (pause := due - loop.time()) > 0:
            await asyncio.sleep(pause)
        driver.send(due, requests[number % len(requests)])
    async with asyncio.timeout(DRAIN_SECONDS_MAX):
        await driver.drained.wait()
    assert not driver.refused, f"{driver.refused} of {count} requests were refused"
    say(
        answers=count,
        p50_ms=percentile(driver.latencies, 50) * 1e3,
        p90_ms=percentile(driver.latencies, 90) * 1e3,
        p99_ms=percentile(driver.latencies, 99) * 1e3,
        highest_ms=max(driver.latencies) * 1e3,
        driver_late_p99_ms=percentile(driver.lateness, 99) * 1e3,
    )


if __name__ == "__main__":
    told_settings = told(Settings)
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(run(told_settings))
