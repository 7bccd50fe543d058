"""Requests that are turned away because too many wait: their cost must not keep a process from serving the others.

The first request with an address and token takes the full path, to the docket of its tournament. For the next second,
requests with the same address and token only check at the start whether the docket is still too full. They get a
prepared answer, and share one line in the log.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Final

from aiohttp.client_exceptions import ClientConnectionResetError
from aiohttp.http import HttpVersion11

from api.http import problems
from api.http.reply import JSON, NOT_STORED, date, new_request_id
from api.http.request import HttpRequest
from engine.domain.errors import QueueFull
from engine.process.telemetry import TURNED_AWAY, Lines

KNOWN_SECONDS: Final = 1.0
FULL_KNOWN_MAX: Final = 1_000
"""Pairs of address and token that a process remembers as turned away; others take the full path each time."""
HELD_FROM: Final = 200
"""From this many refusals within KNOWN_SECONDS on, a connection that is turned away is not read for a while."""
READ_AGAIN_PER_SECOND: Final = 1_000
"""Connections resumed per second. It bounds the work of turning clients away, however many return and however soon."""
HELD_SECONDS_MIN: Final = 0.5
HELD_SECONDS_MAX: Final = 10.0
_BODY: Final = problems.body(503, QueueFull.MESSAGE)
_Asked = tuple[str, str, str | None]
"""Method, path and Authorization."""


class TurnedAway:
    """The answer. It has no state, so all requests share it."""

    closing = False

    def __init__(self, retry_after_seconds: int) -> None:
        self._head = (
            f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {JSON}\r\nContent-Length: {len(_BODY)}\r\n"
            f"{NOT_STORED}Retry-After: {retry_after_seconds}\r\nX-Request-Id: "
        )

    def send(self, request: HttpRequest) -> Awaitable[object] | None:
        connection = request.connection
        transport = connection.transport
        if transport is None or transport.is_closing():
            raise ClientConnectionResetError("the client has gone")
        head = f"{self._head}{new_request_id()}\r\nDate: {date(int(time.time()))}\r\n\r\n"
        transport.write(head.encode() + _BODY)
        return connection.read_up() if connection.writing_paused else None


_ready: Final = cache(TurnedAway)


class Door:
    """The clients that one process turns away."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._full: dict[_Asked, Callable[[], float]] = {}
        self._count = 0  # within KNOWN_SECONDS
        self._read_again_at = 0.0  # the last of the connections that are held

    def turned_away(self, request: HttpRequest) -> TurnedAway | None:
        """The answer to a request like one that was turned away a moment ago, if it would be turned away too."""
        if not self._full:
            return None
        still = self._full.get(_asked(request))
        if still is None or not (seconds := still()):
            return None
        return self._answer(request, seconds)

    def turn_away(self, request: HttpRequest, full: QueueFull) -> TurnedAway | None:
        """The answer to a request that found a queue full; None: the prepared one does not fit."""
        answer = self._answer(request, full.expected_seconds)
        if answer is not None and full.still is not None and len(self._full) < FULL_KNOWN_MAX:
            self._full[_asked(request)] = full.still
        return answer

    def _answer(self, request: HttpRequest, expected_seconds: float) -> TurnedAway | None:
        if (
            request.version != HttpVersion11
            or request.method == "HEAD"
            or request.upgrade
            or not (request.is_read and request.keep_alive)
        ):
            return None
        if not self._count:
            asyncio.get_running_loop().call_later(KNOWN_SECONDS, self._tell)
        self._count += 1
        if self._count > HELD_FROM and "X-Forwarded-For" not in request.headers:
            now = time.monotonic()
            at = self._read_again_at = max(self._read_again_at, now + HELD_SECONDS_MIN) + 1 / READ_AGAIN_PER_SECOND
            seconds = min(at - now, HELD_SECONDS_MAX)
            request.connection.hold(seconds)
            expected_seconds = max(expected_seconds, seconds)
        return _ready(problems.retry_after(expected_seconds))

    def _tell(self) -> None:
        """Logs the number of requests turned away, and drops the remembered ones: their tokens are checked again."""
        TURNED_AWAY.inc(self._count)
        self._lines.event("turned_away", requests=self._count)
        self._count = 0
        self._full.clear()


def _asked(request: HttpRequest) -> _Asked:
    return request.method, request.url.raw_path, request.headers.get("Authorization")
