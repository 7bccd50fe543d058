"""A load at a fixed rate that waits for nobody: latency is counted from the moment a request was *due*.

A closed loop like wrk's sends nothing while it waits. So a server that halts for a second delays only one request per
connection, and hides all those that would have come meanwhile (coordinated omission). Here requests are due at equal
intervals, whatever happens. A request that finds all connections busy waits, and its waiting counts.

It is a plain loop over `select`, which waits to the microsecond where epoll in Python waits to the millisecond. It
shares the cores with the server that it measures, so its processor time is taken from the server. The figures include
how late it was itself in sending over a free connection, so that an overloaded driver is noticed.

It is a separate program, which gets its settings as JSON on standard input, like a trial.
"""

import socket
from collections import deque
from pathlib import Path
from select import select
from time import perf_counter, sleep
from typing import Final

from msgspec import Struct

from benchmarks.load import CONNECTIONS
from benchmarks.table import percentile
from benchmarks.traffic import Request, stored
from benchmarks.trials import say, told

START_SECONDS: Final = 0.2
DRAIN_SECONDS_MAX: Final = 30.0
RECEIVED_BYTES_MAX: Final = 262_144
_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"


class Settings(Struct, frozen=True, kw_only=True):
    """`requests`: a file of requests, sent one after another. `rate`: how many a second."""

    host: str
    port: int
    requests: str
    rate: float
    seconds: float
    connections: int = CONNECTIONS


class Connection:
    """One request at a time; reads just enough of HTTP to know where an answer ends and whether it is good."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        self._expected = 0
        self.due = 0.0

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, due: float, request: Request) -> None:
        self.due = due
        self._received, self._expected = b"", 0
        self._socket.sendall(request)

    def receive(self) -> bool:
        """Whether the answer is complete with the bytes received. Raises ConnectionError if it cannot become
        complete."""
        data = self._socket.recv(RECEIVED_BYTES_MAX)
        if not data:
            raise ConnectionError("the server has closed a connection")
        self._received += data
        if not self._expected:
            self._expected = _answer_bytes(self._received)
        return 0 < self._expected <= len(self._received)

    @property
    def is_good(self) -> bool:
        return self._received.startswith(b"HTTP/1.1 200 ")


def _answer_bytes(received: bytes) -> int:
    """The length of the whole answer that begins here; 0 while its head is incomplete."""
    end = received.find(_HEAD_END)
    if end < 0:
        return 0
    length = received[:end].lower().partition(_LENGTH)[2].partition(b"\r\n")[0]
    return end + len(_HEAD_END) + int(length)


class Driver:
    """Sends each due request over the connection that has been free for longest, and records delays and latencies. So
    every connection is used regularly: a server may hang up on an idle one."""

    def __init__(self, settings: Settings) -> None:
        self.latencies: list[float] = []
        self.lateness: list[float] = []
        self.refused = 0
        self._requests = list(stored(Path(settings.requests)))
        self._rate = settings.rate
        self._count = round(settings.rate * settings.seconds)
        self._free = deque(Connection(settings.host, settings.port) for _ in range(settings.connections))
        self._busy: set[Connection] = set()
        self._waiting: deque[int] = deque()  # numbers of requests that found all connections busy

    def run(self) -> None:
        start = perf_counter() + START_SECONDS
        sleep(START_SECONDS)
        number = 0
        while len(self.latencies) < self._count:
            while number < self._count and (late := perf_counter() - start - number / self._rate) >= 0:
                if self._free:
                    self.lateness.append(late)
                    self._send(self._free.popleft(), start, number)
                else:
                    self._waiting.append(number)
                number += 1
            pause = DRAIN_SECONDS_MAX if number == self._count else max(0.0, -late)
            answering = select(self._busy, (), (), pause)[0]
            if not answering and number == self._count:
                raise TimeoutError(f"{len(self._busy)} requests were not answered")
            for connection in answering:
                if connection.receive():
                    self._answered(connection, start)

    def _send(self, connection: Connection, start: float, number: int) -> None:
        self._busy.add(connection)
        connection.send(start + number / self._rate, self._requests[number % len(self._requests)])

    def _answered(self, connection: Connection, start: float) -> None:
        self.latencies.append(perf_counter() - connection.due)
        self.refused += not connection.is_good
        if self._waiting:
            self._send(connection, start, self._waiting.popleft())
        else:
            self._busy.discard(connection)
            self._free.append(connection)


def run(settings: Settings) -> None:
    driver = Driver(settings)
    driver.run()
    assert not driver.refused, f"{driver.refused} requests were refused"
    say(
        answers=len(driver.latencies),
        p50_ms=percentile(driver.latencies, 50) * 1e3,
        p90_ms=percentile(driver.latencies, 90) * 1e3,
        p99_ms=percentile(driver.latencies, 99) * 1e3,
        highest_ms=max(driver.latencies) * 1e3,
        driver_late_p99_ms=percentile(driver.lateness, 99) * 1e3,
    )


if __name__ == "__main__":
    run(told(Settings))
