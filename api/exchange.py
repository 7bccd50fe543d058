"""One request and its answer, as the operations see them.

Every request pays for these, so an answer is leaner than aiohttp's: written in one go as the bytes it consists of,
instead of being assembled from maps of headers and cookies.
"""

import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import ClientConnectionResetError, HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

from api.connections import Connection

JSON: Final = "application/json"
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
    """An answer. `headers` are its own lines, as `header` makes them, beyond those that all have; `closing`: its
    connection is not used any further; `deaf`: what else the client sends cannot be understood; `left` is called when
    it has left, or could not.

    Of a StreamResponse it is only what aiohttp's server asks for: `prepare`, `write_eof` and `keep_alive`. The rest,
    and with it the constructor, is not used.
    """

    def __init__(self, body: bytes, *, code: int = 200, media_type: str = JSON, headers: str = "") -> None:
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
        if not request._payload.is_eof():
            self._leave_unread(request)
        if request._message.upgrade:  # of what was sent behind such a request, aiohttp's parser has thrown some away
            self.closing = self.deaf = True
        connection = ""
        if self.closing:
            connection = "Connection: close\r\n"
        elif request.version < HttpVersion11:
            connection = "Connection: keep-alive\r\n"
        content = f"Content-Type: {self.media_type}\r\nContent-Length: {len(self.body)}\r\n"
        if self.code == _NOT_MODIFIED:
            content = ""
        head = (
            f"HTTP/1.1 {_STATUSES[self.code]}\r\n{content}{self.headers_sent}{connection}"
            f"X-Request-Id: {self.request_id}\r\nDate: {_date(int(time.time()))}\r\n\r\n"
        ).encode()
        transport = request.transport
        try:
            if transport is None or transport.is_closing():
                raise ClientConnectionResetError("the client has gone")
            transport.write(head if request.method == "HEAD" else head + self.body)
            await request.writer.drain()
        finally:
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


_NOT_MODIFIED: Final = HTTPStatus.NOT_MODIFIED.value


def _nothing() -> None:
    pass


_STATUSES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    """The second since 1970 as the Date header has it."""
    return formatdate(second, usegmt=True)
