"""One request and its answer, as the operations see them.

Every request pays for these, so an answer is leaner than aiohttp's: written in one go as the bytes it consists of,
instead of being assembled from maps of headers and cookies.
"""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

JSON: Final = "application/json"


class Visit:
    """A request on its way. `parameters` are the variable parts of its path, by name; `facts` is what its canonical
    line says beyond what every line does."""

    __slots__ = ("facts", "parameters", "path", "request")

    def __init__(self, request: web.BaseRequest) -> None:
        self.request = request
        self.path = "none"
        self.parameters: Mapping[str, str] = {}
        self.facts: dict[str, object] = {}


class Reply(web.StreamResponse):
    """An answer. `closing`: its connection is not used any further.

    Of a StreamResponse it is only what aiohttp's server asks for: `prepare`, `write_eof` and `keep_alive`. The rest,
    and with it the constructor, is not used. Headers hold nothing that a client could have written as it likes.
    """

    def __init__(
        self, body: bytes, *, code: int = 200, media_type: str = JSON, headers: Mapping[str, str] | None = None
    ) -> None:
        self.body = body
        self.code = code
        self.closing = False
        self.fields = dict(headers or {})
        if code != HTTPStatus.NOT_MODIFIED:
            self.fields |= {"Content-Type": media_type, "Content-Length": str(len(body))}

    @property
    def keep_alive(self) -> bool:
        return not self.closing

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Sends the whole answer."""
        if not request.keep_alive:
            self.closing = True
        if self.closing:
            self.fields["Connection"] = "close"
        elif request.version < HttpVersion11:
            self.fields["Connection"] = "keep-alive"
        self.fields["Date"] = _date(int(time.time()))
        fields = "".join([f"{name}: {value}\r\n" for name, value in self.fields.items()])
        head = f"{_STATUS_LINES[self.code]}{fields}\r\n".encode()
        writer = request.writer
        await writer.write(head if request.method == "HEAD" else head + self.body)
        await writer.drain()
        return writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to be sent."""


_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    """The second since 1970 as the Date header has it."""
    return formatdate(second, usegmt=True)
