"""A client during a measurement: repeatedly reads something small, and reports how long it had to wait.

It is a separate process, so that only the service keeps it waiting. It gets its request on standard input, as one line
of JSON. A further line starts it. The next line stops it; it then prints the longest of the waits since the start, and
their median, in seconds. It first waits for a request under way.
"""

import socket
import sys
import time
from collections.abc import Iterator
from select import select
from statistics import median
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

PAUSE_SECONDS: Final = 0.001
"""The pause between two requests, so that the probe is a small load, compared with the measured one."""


class Settings(Struct, frozen=True, kw_only=True):
    """`request` is sent as it is; its answer has a Content-Length."""

    host: str
    port: int
    request: str


class Waits(Struct, frozen=True, kw_only=True):
    longest: float
    usual: float


def main() -> None:
    with open(0, "rb", buffering=0) as told:  # a buffer would hide from select what it holds
        settings = msgspec.json.decode(told.readline(), type=Settings)
        while told.readline():
            waits = list(_waits(settings))
            told.readline()
            said = msgspec.json.encode(Waits(longest=max(waits), usual=median(waits)))
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()


def _waits(settings: Settings) -> Iterator[float]:
    """Asks until there is something to read on standard input, at least once. It uses a new connection, because a
    service closes idle ones."""
    request = settings.request.encode()
    with socket.create_connection((settings.host, settings.port)) as connection, connection.makefile("rb") as answers:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            began_at = time.perf_counter()
            connection.sendall(request)
            _read(answers)
            yield time.perf_counter() - began_at
            if select([0], [], [], PAUSE_SECONDS)[0]:
                return


def _read(answers: BinaryIO) -> None:
    """Reads one answer. Raises ValueError for any status except 200."""
    status = answers.readline()
    if b" 200 " not in status:
        raise ValueError(f"the probe was answered {status!r}")
    length = 0
    while (line := answers.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    answers.read(length)


if __name__ == "__main__":
    main()
