"""The answers that operations make, and how they are sent.

Every request needs one, so a Reply is leaner than aiohttp's. Its bytes are shared and written without a copy, instead
of assembled from maps of headers and cookies.

Every answer says how long it may be kept. Caches decide for themselves about one that does not, even about a 404, and
some share what a token could read.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from itertools import chain, repeat
from typing import Final

from aiohttp.client_exceptions import ClientConnectionResetError
from aiohttp.http import HttpVersion, HttpVersion11

from api.http.connections import READ_BYTES_PER_SECOND_MIN, UNREAD_SECONDS_MAX
from api.http.outgoing import Long
from api.http.request import HttpRequest, RequestConnection

JSON: Final = "application/json"
WHOLE_BYTES_MAX: Final = 524_288
"""A body of up to this size is sent at once. A longer body is sent in chunks of this size."""
REQUEST_ID_BYTES: Final = 8
REQUEST_IDS_DRAWN: Final = 512
"""Request ids from one call of the system, which takes ten times as long as the rest of one."""
LEFT_UNREAD_BYTES_MAX: Final = 65_536
"""A refused request may leave this much of its body unread: if it announces more, its connection is closed."""


def header(name: str, value: object) -> str:
    """One line of a Reply's head. `value` must not be text that a client is free to choose."""
    return f"{name}: {value}\r\n"


NOT_STORED: Final = header("Cache-Control", "no-store")
"""For refusals, changes, the console, and whatever states no other."""
REVALIDATED: Final = header("Cache-Control", "no-cache")
"""For everybody: caches may keep it, and must check it each time."""
REVALIDATED_BY_CLIENT: Final = header("Cache-Control", "private, no-cache")
"""For the holder of a token, whose client alone may keep it, and must check it each time."""
FOR_EVER: Final = header("Cache-Control", "public, max-age=31536000, immutable")
"""For everybody, at an address that changes with it."""
STREAMED: Final = header("Cache-Control", "no-store, no-transform")


def _nothing() -> None:
    pass


class Reply:
    """An answer, short or long.

    `kept`: the line that says how long it may be kept. `headers`: its own lines, as `header` makes them, in addition to
    those of every answer. `closing`: its connection
    takes no further request. `lingers`: its connection ignores further bytes, which cannot be parsed. `on_end` is
    called when the answer was sent, or could not be.
    """

    closing = False
    lingers = False
    request_id = ""
    on_end: Callable[[], None] = staticmethod(_nothing)

    def __init__(
        self,
        body: bytes | Long,
        *,
        code: int = 200,
        media_type: str = JSON,
        headers: str = "",
        kept: str = NOT_STORED,
    ) -> None:
        self.body = body
        self.code = code
        self.media_type = media_type
        self.headers_sent = kept + headers

    def send(self, request: HttpRequest) -> Awaitable[None] | None:
        """Sends the answer. If it is long or must wait for the client to read, returns a coroutine that sends the
        rest."""
        about_connection = ""
        if self.closing or not request.is_ordinary:
            about_connection = self._about_connection(request)
        body, connection = self.body, request.connection
        if isinstance(body, bytes):
            size = len(body)
            content = f"Content-Type: {self.media_type}\r\nContent-Length: {size}\r\n"
        else:
            size = WHOLE_BYTES_MAX + 1
            content = f"Content-Type: {self.media_type}\r\n"
            if request.version >= HttpVersion11:
                content += "Transfer-Encoding: chunked\r\n"
            elif not self.closing:
                self.closing, about_connection = True, "Connection: close\r\n"  # which marks the end of the answer
        head = self.head("" if self.code == _NOT_MODIFIED else content, about_connection)
        transport = connection.transport
        rest: Awaitable[None] | None = None
        try:
            if transport is None or transport.is_closing():
                raise ClientConnectionResetError("the client has gone")
            if not size or (not request.is_ordinary and request.method == "HEAD"):
                transport.write(head)
            elif isinstance(body, bytes) and size <= WHOLE_BYTES_MAX:
                transport.writelines((head, body))
            else:
                rest = self._finish(request, _send_in_chunks(connection, transport, head, body, request.version))
            if rest is None and (self.lingers or connection.writing_paused):
                rest = self._finish(request)
        finally:
            if rest is None:
                self._end()
        return rest

    def _about_connection(self, request: HttpRequest) -> str:
        """The head's lines about the connection, once it is decided whether it stays open."""
        if not request.keep_alive:
            self.closing = True
        if not request.is_read and not request.content.is_eof():
            self._leave_unread(request)
        if request.upgrade:
            self.closing = self.lingers = True
        if self.closing:
            return "Connection: close\r\n"
        return "Connection: keep-alive\r\n" if request.version < HttpVersion11 else ""

    async def _finish(self, request: HttpRequest, sending: Awaitable[None] | None = None) -> None:
        """Sends the body, if not all is sent, and waits until the client has read enough of it."""
        try:
            if sending is not None:
                await sending
            if request.connection.writing_paused:
                await request.connection.read_up()
        finally:
            self._end()
        if self.lingers:
            await request.connection.linger()

    def _end(self) -> None:
        self.body = b""  # or the body would be held as long as anything refers to the request
        self.on_end()

    def head(self, content: str, connection: str) -> bytes:
        """The head of the answer, with these lines about its content and about its connection."""
        return (
            f"HTTP/1.1 {_STATUSES[self.code]}\r\n{content}{self.headers_sent}{connection}"
            f"X-Request-Id: {self.request_id}\r\nDate: {date(int(time.time()))}\r\n\r\n"
        ).encode()

    def _leave_unread(self, request: HttpRequest) -> None:
        """Leaves a short rest of a refused request's body to the connection, which skips it before the next request.
        Closes the connection if the rest is too long or of unknown length, or if the client waits for `100 Continue`,
        because it may or may not send the body."""
        length = request.content_length
        if self.closing or length is None or length > LEFT_UNREAD_BYTES_MAX or "Expect" in request.headers:
            self.closing = self.lingers = True


async def _send_in_chunks(
    connection: RequestConnection, transport: asyncio.Transport, head: bytes, body: bytes | Long, version: HttpVersion
) -> None:
    """Sends a body that is too large for the transport's buffer, as the client reads it. Raises ConnectionError."""
    transport.write(head)
    if isinstance(body, bytes):
        connection.outgoing.hold(body)
        try:
            shared = memoryview(body)  # slicing it copies nothing
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
            transport.abort()  # or an answer that ends with its connection would look complete


async def _send_long(
    connection: RequestConnection, transport: asyncio.Transport, body: Long, *, is_chunked: bool
) -> None:
    chunks = body.chunks()
    time_slices = connection.outgoing.time_slices
    sent_bytes, waited_seconds = 0, 0.0
    chunk: bytes | None = b""
    while chunk is not None:
        async with time_slices:
            if transport.is_closing():  # it may have been a long wait
                raise ClientConnectionResetError("the client has gone")
            while not (connection.writing_paused or time_slices.over):
                chunk = next(chunks, None)
                if chunk is None:
                    if is_chunked:
                        transport.write(b"0\r\n\r\n")
                    break
                if chunk:
                    transport.writelines((b"%x\r\n" % len(chunk), chunk, b"\r\n") if is_chunked else (chunk,))
                    sent_bytes += len(chunk)
        if connection.writing_paused:
            patience = UNREAD_SECONDS_MAX + sent_bytes / READ_BYTES_PER_SECOND_MIN - waited_seconds
            waited_seconds += await connection.read_up(patience)


def _ids_drawn(count: int) -> list[str]:
    return os.urandom(REQUEST_ID_BYTES * count).hex(" ", REQUEST_ID_BYTES).split()


new_request_id: Final = chain.from_iterable(map(_ids_drawn, repeat(REQUEST_IDS_DRAWN))).__next__
"""Returns a random id: a counter would reveal the number of requests between two answers."""
_NOT_MODIFIED: Final = HTTPStatus.NOT_MODIFIED.value
_STATUSES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


@lru_cache(maxsize=1)
def date(second: int) -> str:
    """`second`, counted since 1970, in the form of the Date header."""
    return formatdate(second, usegmt=True)
