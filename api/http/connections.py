"""The connections of one process: their number, and time limits.

aiohttp limits neither how long a head takes nor how long a client leaves its answers unread. This module limits both,
and answers what is not HTTP. A request that comes in one piece costs a few comparisons. A connection that makes the
server wait is entered in a list in the order of time, so a check once a second looks only at overdue ones. Those that
wait for a request are looked at one by one, because entering each of them would cost every request.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from aiohttp.client_exceptions import ClientConnectionResetError
from aiohttp.http import HttpProcessingError
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest
from aiohttp.web_response import StreamResponse

from api.http.aiohttp_private import RequestHandler, Sent, Server, parser_is_in_c
from api.http.errors import HeadTooLarge, HeadTooSlow, TargetTooLong
from api.http.limits import CLIENT_CONNECTIONS_MAX
from api.http.outgoing import Outgoing
from api.http.request import HttpRequest, RequestConnection
from engine.domain.errors import StartupRefused, TallybookError, Unreadable
from engine.process import collector
from engine.process.telemetry import CONNECTIONS, CONNECTIONS_ENDED, by_kind

HEAD_SECONDS_MAX: Final = 10.0
"""Time for a whole head, from its first byte; for the first head of a connection, from when the connection was made."""
HEAD_BYTES_MAX: Final = 65_536
"""The most bytes of a head that comes in several pieces."""
TARGET_BYTES_MAX: Final = 8_000
HEADER_BYTES_MAX: Final = 8_190
"""Bytes of the name of a header, and of its value."""
HEADERS_MAX: Final = 128
UNREAD_SECONDS_MAX: Final = 30.0
"""Time for a client to read once the buffers to it are full."""
UNREAD_BYTES_MAX: Final = 16_384
"""Unread bytes with which a connection may continue with its next request. While an answer is being sent, the last
chunk written may exceed them."""
READ_BYTES_PER_SECOND_MIN: Final = 65_536
"""A client that reads a long answer may make the server wait UNREAD_SECONDS_MAX in total, plus a second per this many
bytes sent."""
LINGER_SECONDS_MAX: Final = 2.0
LINGER_BYTES_MAX: Final = 4_194_304
"""Bytes that a client may still send while its connection is being closed. Closing at once could lose the last
answer."""
KEEPALIVE_SECONDS: Final = 75.0
"""Time for the next request to begin."""
CONNECTION_WATCH_SECONDS: Final = 1.0
READ_BYTES: Final = 32_768
"""Bytes of a body that may wait to be read; twice as many pause its connection. This also bounds the chunks of a body
that are parsed at once, to one per 16 bytes, because each costs the same, however small."""
ConnectionEnd = Literal["silent", "unread", "crowded_out", "refused"]
"""Why the server ends a connection."""
_ENDED: Final = by_kind(CONNECTIONS_ENDED, get_args(ConnectionEnd))

Answering = Callable[[HttpRequest], Awaitable[Sent]]
"""Makes the answer to a request. Raises nothing but CancelledError."""
Misread = Callable[[HttpRequest, TallybookError], Sent]
"""Makes the answer to bytes that are not a request."""


def refuse_lax_parser() -> None:
    """Raises StartupRefused if aiohttp has only its parser in Python. That parser accepts what is not a request, and
    can disagree with a proxy about where a request ends."""
    if not parser_is_in_c():
        raise StartupRefused(
            "aiohttp is installed without its HTTP parser in C; install its wheel, and unset AIOHTTP_NO_EXTENSIONS."
        )


class Connections(Server):
    """Makes a Connection for each connection that is accepted. `watch` must run meanwhile."""

    def __init__(
        self,
        answer: Answering,
        misread: Misread,
        outgoing: Outgoing,
        *,
        connections_max: int = CLIENT_CONNECTIONS_MAX,
        **settings: Any,
    ) -> None:
        super().__init__(_unused, access_log=None, auto_decompress=False, **settings)
        self.outgoing = outgoing
        self.answer = answer
        self.misread = misread
        self.connections_max = connections_max
        self.unheard: dict[Connection, float] = {}  # those that owe a head, and since when, in order of time
        self._time = asyncio.get_running_loop().time

    def __call__(self) -> "Connection":
        return Connection(self, loop=asyncio.get_running_loop(), **self.handler_settings)

    def has_room(self) -> bool:
        """Whether one more connection is accepted. If there is no room, the connection that has been silent longest is
        closed to make some."""
        if self.open_count < self.connections_max:
            return True
        for silent in self.unheard:
            if silent.has_asked_nothing:
                silent.end("crowded_out")
                return True
        return False

    async def watch(self) -> None:
        """Ends connections that take too long, and adapts the process to their number, until it is cancelled."""
        while True:
            now = self._time()
            while self.unheard and now - next(iter(self.unheard.values())) > HEAD_SECONDS_MAX:
                next(iter(self.unheard)).give_up_on_the_head(HeadTooSlow(HEAD_SECONDS_MAX))
            while self.outgoing.end_unread(UNREAD_SECONDS_MAX):
                pass
            for connection in cast(list[Connection], self.connections):
                connection.end_if_idle(now - KEEPALIVE_SECONDS)
            self.outgoing.measure()
            CONNECTIONS.set(self.open_count)
            collector.adapt(self.open_count)
            await asyncio.sleep(CONNECTION_WATCH_SECONDS)


class Connection(RequestHandler):
    """aiohttp's handler, which gives up on a client that takes too long. `on_end` is called when the connection ends,
    with "unread" if the server ended it because the client does not read."""

    __slots__ = (
        "_connections",
        "_end",
        "_head_bytes",
        "_ignored_bytes",
        "has_asked_nothing",
        "on_end",
    )

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(connections, **settings)
        self.answer = connections.answer
        self.has_asked_nothing = True
        self.on_end: Callable[[Literal["unread", "client_gone"]], None] | None = None
        self._connections = connections
        self.ignores = self.owes_head = False  # one that owes a head stands in `unheard`
        self._head_bytes = 0
        self._end: asyncio.Future[None] | None = None  # while it lingers
        self._ignored_bytes = 0

    @property
    def outgoing(self) -> Outgoing:
        return self._connections.outgoing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's has its methods, but not its class
        if not self._connections.has_room():
            _ENDED["refused"].inc()
            self.force_close()
            transport.abort()  # saying why would cost more than refusing the next one
            return
        transport.set_write_buffer_limits(UNREAD_BYTES_MAX)
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.unheard.pop(self, None)
        if self.on_end is not None:
            self.on_end("client_gone")
        self.outgoing.was_read(self)
        self._let_go()
        super().connection_lost(exc)

    def piece_received(self, data: bytes) -> None:
        if self.ignores:
            self._ignore(data)
            return
        if self.owes_head:
            if self.has_head:
                self.owes_head = self.has_asked_nothing = False
                self._connections.unheard.pop(self, None)
            elif data:
                self._continue_head(data)
            return
        waiter = self.head_waiter
        if waiter is None:  # a request is under way
            error = self.body_error()
            if error is not None:
                error.__traceback__ = None  # or it and this connection would keep each other, with what was read
                self.break_body(RequestPayloadError(str(type(error))))
        elif data and not waiter.done():  # the beginning of the next head
            self._await_head()
            self._continue_head(data)

    def hold(self, seconds: float) -> None:
        """Stops reading for some seconds."""
        transport = self.transport
        if transport is not None and transport.is_reading():
            transport.pause_reading()
            self.loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        transport = self.transport
        if transport is not None and not transport.is_closing():
            transport.resume_reading()

    def eof_received(self) -> None:
        self._let_go()

    # ── Heads ───────────────────────────────────────────────────────────────────────────────────────────

    def _await_head(self) -> None:
        self.owes_head = True
        self._head_bytes = 0
        self._connections.unheard[self] = self.loop.time()

    def _continue_head(self, data: bytes) -> None:
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX:
            self.give_up_on_the_head(HeadTooLarge())

    def give_up_on_the_head(self, error: TallybookError) -> None:
        """Answers the awaited head with `error`, incomplete as it is. A client that has sent nothing gets no answer:
        its connection is closed."""
        self._connections.unheard.pop(self, None)
        self.owes_head = False
        waiter = self.head_waiter
        if waiter is None or waiter.done():
            return  # it has come meanwhile
        if not self._head_bytes:
            self.end("silent")
            return
        self.answer_unread(error, error.message)

    def misread(self, request: HttpRequest, error: BaseException) -> Sent:
        """Answers bytes that are not HTTP. aiohttp's answer would quote them, with any token in them, and log them,
        too."""
        if isinstance(error, HttpProcessingError):
            error.__traceback__ = None  # as above
        match error:
            case TallybookError():
                return self._connections.misread(request, error)
            case LineTooLong() if error.args[1] == TARGET_BYTES_MAX:
                return self._connections.misread(request, TargetTooLong())
            case LineTooLong():
                return self._connections.misread(request, HeadTooLarge())
            case HttpProcessingError() if error.message == _TOO_MANY_FIELDS:
                return self._connections.misread(request, HeadTooLarge())
        return self._connections.misread(request, Unreadable(_NOT_HTTP))

    # ── Answers ─────────────────────────────────────────────────────────────────────────────────────────

    def pause_writing(self) -> None:
        super().pause_writing()
        assert self.transport is not None
        self.outgoing.wait_to_be_read(self, self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self.outgoing.was_read(self)

    async def read_up(self, seconds_max: float = math.inf) -> float:
        """Waits until the client has read enough to make room for more. Returns the seconds that it took. Hangs up on
        the client after `seconds_max` or UNREAD_SECONDS_MAX, whichever is less. Raises ConnectionError if it has gone
        or was hung up on."""
        began_at = self.loop.time()
        try:
            async with asyncio.timeout(seconds_max if seconds_max < UNREAD_SECONDS_MAX else None):
                await self.drained()
        except TimeoutError:
            self.end("unread", at_once=True)
            raise ClientConnectionResetError("the client does not read") from None
        except ConnectionError as error:
            # The future that was awaited keeps the error. Its traceback would keep the frames it has passed, with all
            # that was to be sent, until the next garbage collection.
            error.__traceback__ = None
            raise ClientConnectionResetError("the client has gone") from None
        return self.loop.time() - began_at

    # ── The end ─────────────────────────────────────────────────────────────────────────────────────────

    def end(self, reason: ConnectionEnd, *, at_once: bool = False) -> None:
        """Closes the connection, and counts it under `reason`. `at_once`: discards unsent bytes."""
        _ENDED[reason].inc()
        self._connections.unheard.pop(self, None)
        if self.on_end is not None:
            self.on_end("unread" if reason == "unread" else "client_gone")
        self.outgoing.was_read(self)
        if at_once and self.transport is not None:
            self.transport.abort()
        self.force_close()

    def force_close(self) -> None:
        """Closes the connection once unsent bytes are sent, or after UNREAD_SECONDS_MAX. A transport would wait for a
        client that does not read for as long as that one lives."""
        transport = self.transport
        super().force_close()
        if transport is not None and transport.get_write_buffer_size():
            self.loop.call_later(UNREAD_SECONDS_MAX, transport.abort)

    async def linger(self) -> None:
        """Hangs up, but gives a client that is still sending time to read its answer.

        What it sends is ignored. Ends when the client hangs up too, after LINGER_SECONDS_MAX or after LINGER_BYTES_MAX.
        """
        transport = self.transport
        if transport is None or self._end is not None:
            return
        self._end = self.loop.create_future()
        self.ignores = True
        with suppress(OSError, NotImplementedError):
            transport.write_eof()
        with suppress(RuntimeError):
            transport.resume_reading()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS_MAX):
                await self._end
        self.force_close()

    def _ignore(self, data: bytes) -> None:
        self._ignored_bytes += len(data)
        if self._ignored_bytes > LINGER_BYTES_MAX:
            self._let_go()

    def _let_go(self) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(None)


if TYPE_CHECKING:  # requests say what they need of their connection, because connections make requests
    _: type[RequestConnection] = Connection


async def _unused(_: BaseRequest) -> StreamResponse:
    raise AssertionError("connections answer without aiohttp's requests")


_NOT_HTTP: Final = "The request cannot be read; send it as HTTP/1.1."
_TOO_MANY_FIELDS: Final = "Too many headers received"
