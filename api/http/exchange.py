"""One request and its answer, as the operations see them.

Every request pays for these, so an answer is leaner than aiohttp's: written as the bytes it consists of, which many
share and nobody copies, instead of being assembled from maps of headers and cookies.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import ClientConnectionResetError, HttpVersion, HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from api.http.aiohttp_private import asks_for_upgrade, body_is_read
from api.http.connections import READ_BYTES_PER_SECOND_MIN, UNREAD_SECONDS_MAX, Connection
from api.http.outgoing import Long

JSON: Final = "application/json"
WHOLE_BYTES_MAX: Final = 524_288
"""Of a body that is sent at once; of a longer one so much at a time."""
LEFT_UNREAD_BYTES_MAX: Final = 65_536
"""Of the rest of a refused request: its connection is kept if it announces no more than this."""


class Visit:
    """A request on its way. `parameters` are the variable parts of its path, by name; `facts` is what its canonical
    line says beyond what every line does."""

    __slots__ = ("facts", "parameters", "path", "request", "request_id")

    def __init__(self, request: web.BaseRequest, request_id: str) -> None:
        self.request = request
        self.request_id = request_id
        self.path = "none"
        self.parameters: Mapping[str, str] = {}
        self.facts: dict[str, object] = {}


def header(name: str, value: object) -> str:
    """A line of a Reply's head. `value` is nothing that a client could have written as it likes."""
    return f"{name}: {value}\r\n"


class Reply(web.StreamResponse):
    """An answer, short or long. `headers` are its own lines, as `header` makes them, beyond those that all have;
    `closing`: its connection is not used any further; `deaf`: what else the client sends cannot be understood; `left`
    is called when it has left, or could not.

    Of a StreamResponse it is only what aiohttp's server asks for: `prepare`, `write_eof` and `keep_alive`. The rest,
    and with it the constructor, is not used.
    """

    def __init__(self, body: bytes | Long, *, code: int = 200, media_type: str = JSON, headers: str = "") -> None:
        self.body = body
        self.code = code
        self.media_type = media_type
        self.headers_sent = headers
        self.closing = False
        self.deaf = False
        self.request_id = ""
        self.left: Callable[[], None] = _nothing

    @property
    def keep_alive(self) -> bool:
        return not self.closing

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Sends the whole answer."""
        if not request.keep_alive:
            self.closing = True
        if not body_is_read(request):
            self._leave_unread(request)
        if asks_for_upgrade(request):
            self.closing = self.deaf = True
        connection = ""
        if self.closing:
            connection = "Connection: close\r\n"
        elif request.version < HttpVersion11:
            connection = "Connection: keep-alive\r\n"
        body = self.body
        if self.code == _NOT_MODIFIED:
            content = ""
        elif isinstance(body, bytes):
            content = f"Content-Type: {self.media_type}\r\nContent-Length: {len(body)}\r\n"
        else:
            content = f"Content-Type: {self.media_type}\r\n"
            if request.version >= HttpVersion11:
                content += "Transfer-Encoding: chunked\r\n"
            elif not self.closing:
                self.closing, connection = True, "Connection: close\r\n"  # that is how it ends
        head = (
            f"HTTP/1.1 {_STATUSES[self.code]}\r\n{content}{self.headers_sent}{connection}"
            f"X-Request-Id: {self.request_id}\r\nDate: {_date(int(time.time()))}\r\n\r\n"
        ).encode()
        transport = request.transport
        try:
            if transport is None or transport.is_closing():
                raise ClientConnectionResetError("the client has gone")
            if request.method == "HEAD" or not body:
                transport.write(head)
            elif isinstance(body, bytes) and len(body) <= WHOLE_BYTES_MAX:
                transport.writelines((head, body))
            else:
                await _send_in_portions(request.protocol, transport, head, body, request.version)
            if request.protocol.writing_paused:
                assert isinstance(request.protocol, Connection)
                await request.protocol.read_up()
        finally:
            self.body = b""  # or what is in it would be held for as long as somebody looks at the request
            self.left()
        if self.deaf:
            assert isinstance(request.protocol, Connection)
            await request.protocol.linger()
        return request.writer

    def _leave_unread(self, request: web.BaseRequest) -> None:
        """Of the body of a refused request a little is read, so that the connection can be used for the next; but not
        where the client waits to be told to send it: nobody knows whether it will."""
        length = request.content_length
        if self.closing or length is None or length > LEFT_UNREAD_BYTES_MAX or "Expect" in request.headers:
            self.closing = self.deaf = True

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to be sent."""


async def _send_in_portions(
    connection: web.RequestHandler, transport: asyncio.Transport, head: bytes, body: bytes | Long, version: HttpVersion
) -> None:
    """Sends what is too much for the transport's buffer, as the client reads it. Raises ConnectionError."""
    assert isinstance(connection, Connection)
    transport.write(head)
    if isinstance(body, bytes):
        connection.outgoing.hold(body)
        try:
            shared = memoryview(body)  # of which a slice is no copy
            for start in range(0, len(body), WHOLE_BYTES_MAX):
                transport.write(shared[start : start + WHOLE_BYTES_MAX])
                if connection.writing_paused:
                    await connection.read_up()
                if transport.is_closing():
                    raise ClientConnectionResetError("the client has gone")
        finally:
            connection.outgoing.let_go(body)
        return
    is_whole = False
    try:
        await _send_long(connection, transport, body, is_chunked=version >= HttpVersion11)
        is_whole = True
    finally:
        if not is_whole:
            transport.abort()  # where an answer ends with its connection, it must not look as if it were all


async def _send_long(connection: Connection, transport: asyncio.Transport, body: Long, *, is_chunked: bool) -> None:
    portions = body.portions()
    turns = connection.outgoing.turns
    sent_bytes, waited_seconds = 0, 0.0
    portion: bytes | None = b""
    while portion is not None:
        async with turns:
            while not (connection.writing_paused or turns.over):
                portion = next(portions, None)
                if portion is None:
                    break
                if portion:
                    transport.writelines((b"%x\r\n" % len(portion), portion, b"\r\n") if is_chunked else (portion,))
                    sent_bytes += len(portion)
        if connection.writing_paused:
            patience = UNREAD_SECONDS_MAX + sent_bytes / READ_BYTES_PER_SECOND_MIN - waited_seconds
            waited_seconds += await connection.read_up(patience)
        if transport.is_closing():
            raise ClientConnectionResetError("the client has gone")
    if is_chunked:
        transport.write(b"0\r\n\r\n")


_NOT_MODIFIED: Final = HTTPStatus.NOT_MODIFIED.value


def _nothing() -> None:
    pass


_STATUSES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    """The second since 1970 as the Date header has it."""
    return formatdate(second, usegmt=True)
