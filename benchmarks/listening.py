"""Listeners by the thousand: opens streams and reads them until it is stopped, then writes down its figures.

Every stream is read as fast as this one process can, but only an even sample of the listeners is examined. Their events
are parsed, and must have consecutive sequences. The delay of an event is the time since it was recorded, by the clock
of this machine. Recording precedes the commit, so the delay after the acknowledgement is a little shorter. Deaf
listeners ask for the stream and never read.

It is a separate program, which gets its settings as JSON on standard input, like a trial. It prints "ready" on standard
error when all streams have begun, and ends on SIGTERM.
"""

import select
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from benchmarks.processes import running
from benchmarks.service import Service
from benchmarks.table import percentile
from benchmarks.trials import told
from benchmarks.world import Tournament

READ_BYTES: Final = 262_144
POLL_SECONDS: Final = 0.1
_RECORDED_AT: Final = b'"recorded_at":"'
_SEQUENCE: Final = b'{"sequence":'


class Settings(Struct, frozen=True, kw_only=True):
    """`paths`: the streams; listeners are spread over them evenly. `looked_at`: how many listeners are examined.
    `figures`: the file that the figures are written to."""

    host: str
    port: int
    paths: list[str]
    token: str
    listeners: int
    deaf: int
    looked_at: int
    figures: str


class Listener:
    """One stream. `delays`: if it is examined, the seconds from the recording of each event to its arrival."""

    def __init__(self, settings: Settings, path: str, *, is_looked_at: bool) -> None:
        self.socket = socket.create_connection((settings.host, settings.port))
        self.socket.sendall(f"GET {path} HTTP/1.0\r\nAuthorization: Bearer {settings.token}\r\n\r\n".encode())
        self.has_begun = False
        self.delays: list[float] = []
        self.gaps = 0
        self._is_looked_at = is_looked_at
        self._rest = b""
        self._last = 0

    def read(self, into: bytearray) -> int:
        """Reads what has come. Returns how many bytes. Raises ConnectionError if the stream has ended."""
        size = self.socket.recv_into(into)
        if not size:
            raise ConnectionError("a stream has ended")
        if not self.has_begun:
            self.has_begun = True
            if b" 200 " not in into[:size].partition(b"\r\n")[0]:
                raise ConnectionError(bytes(into[:size]).decode(errors="replace"))
        if self._is_looked_at:
            self._look_at(bytes(into[:size]))
        return size

    def _look_at(self, piece: bytes) -> None:
        now = time.time()
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            _, found, fields = line.partition(_SEQUENCE)
            if not found or _RECORDED_AT not in fields:
                continue
            sequence = int(fields.partition(b",")[0])
            self.gaps += 0 < self._last != sequence - 1
            self._last = sequence
            moment = fields.partition(_RECORDED_AT)[2].partition(b'"')[0].decode()
            self.delays.append(now - datetime.fromisoformat(moment).timestamp())


def run(settings: Settings) -> None:
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    polling = select.epoll()
    listeners: dict[int, Listener] = {}
    step = max(1, settings.listeners // settings.looked_at)
    into = bytearray(READ_BYTES)
    for n in range(settings.listeners):
        listener = Listener(settings, settings.paths[n % len(settings.paths)], is_looked_at=n % step == 0)
        listeners[listener.socket.fileno()] = listener
        polling.register(listener.socket, select.EPOLLIN)
    deaf = [
        Listener(settings, settings.paths[n % len(settings.paths)], is_looked_at=False) for n in range(settings.deaf)
    ]
    begun = total_bytes = 0
    ended: set[int] = set()
    while not stopping:
        for number, _ in polling.poll(POLL_SECONDS):
            listener = listeners[number]
            begun += not listener.has_begun
            try:
                total_bytes += listener.read(into)
            except ConnectionError:
                ended.add(number)
                polling.unregister(number)
        if begun == settings.listeners:
            begun += 1  # said once
            sys.stderr.write("ready\n")
            sys.stderr.flush()
    delays = [delay for listener in listeners.values() for delay in listener.delays]
    figures = {
        "events": len(delays),
        "gaps": sum(listener.gaps for listener in listeners.values()),
        "ended": len(ended),
        "megabytes": total_bytes / 1e6,
        "p50_ms": percentile(delays, 50) * 1e3 if delays else None,
        "p99_ms": percentile(delays, 99) * 1e3 if delays else None,
    }
    Path(settings.figures).write_bytes(msgspec.json.encode(figures))
    for one in (*listeners.values(), *deaf):
        one.socket.close()


@asynccontextmanager
async def listening(
    service: Service,
    tournaments: list[Tournament],
    listeners: int,
    *,
    directory: Path,
    looked_at: int = 1,
    deaf: int = 0,
) -> AsyncIterator[dict[str, Any]]:
    """That many clients listen within the context, if any. The dictionary has their figures afterwards."""
    figures: dict[str, Any] = {}
    if not listeners:
        yield figures
        return
    host, _, port = service.url.removeprefix("http://").partition(":")
    file, log = directory / "listening.json", directory / "listening.log"
    settings = Settings(
        host=host,
        port=int(port),
        paths=[f"/tournament/{one.slug}/events?after=head" for one in tournaments],
        token=service.token,
        listeners=listeners,
        deaf=deaf,
        looked_at=looked_at,
        figures=str(file),
    )
    command = [sys.executable, "-m", "benchmarks.listening"]
    async with running(command, log=log, ready="ready", stdin=msgspec.json.encode(settings), is_killed=True):
        yield figures
    figures |= msgspec.json.decode(file.read_bytes())
    file.unlink()
    log.unlink()  # the next one's must not seem ready


if __name__ == "__main__":
    run(told(Settings))
