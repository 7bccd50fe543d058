"""What we use of aiohttp although it does not document it: only here, under names of our own.

`PRIVATE` lists the names. pyproject.toml bounds aiohttp to the minor version that has them. A test says which of them
another version lacks.
"""

import asyncio
from typing import Any, Final

from aiohttp import web
from aiohttp.http import HttpRequestParser
from aiohttp.streams import EMPTY_PAYLOAD
from aiohttp.web_protocol import _ErrInfo

PRIVATE: Final = {
    web.RequestHandler: ("_waiter", "_messages", "_current_request", "_drain_helper", "_loop"),
    web.BaseRequest: ("_message", "_payload"),
    web.Server: ("_connections", "_kwargs"),
}


class Server(web.Server):
    """aiohttp's server, which makes a handler for each connection."""

    @property
    def open_count(self) -> int:
        """Open connections, and closed ones whose last request is still being worked on."""
        return len(self._connections)

    @property
    def handler_settings(self) -> dict[str, Any]:
        """The keyword arguments that it makes handlers with."""
        return self._kwargs


class RequestHandler(web.RequestHandler):
    """aiohttp's handler of one connection."""

    __slots__ = ()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def head_waiter(self) -> "asyncio.Future[None] | None":
        """Done when a head has come; None while a request is under way, and before the first head is waited for."""
        return self._waiter

    @property
    def has_head(self) -> bool:
        """Whether a head has come, or an error in one, that nobody has begun to answer."""
        return bool(self._messages)

    def answer_unread(self, error: BaseException, message: str) -> None:
        """Has `handle_error` answer with `error`, as aiohttp does for a head that it cannot read. Call it only while a
        head is awaited."""
        assert self._waiter is not None
        self._messages.append((_ErrInfo(status=400, exc=error, message=message), EMPTY_PAYLOAD))
        self._waiter.set_result(None)

    def body_error(self) -> BaseException | None:
        """The error that broke the body of the request under way; None: it is not broken."""
        last = self._messages[-1][0] if self._messages else None
        return last.exc if isinstance(last, _ErrInfo) else None

    def break_body(self, error: BaseException) -> None:
        """Raises `error` in the reader of the body of the request under way. aiohttp would let that reader wait."""
        request = self._current_request
        if request is not None and not request.content.is_eof():
            request.content.set_exception(error)

    async def drained(self) -> None:
        """Returns when there is room to write again. Raises ConnectionError if the connection is lost."""
        await self._drain_helper()


receive: Final = web.RequestHandler.data_received
"""Called directly for every piece of every request: `super()` takes as long again."""


def body_is_read(request: web.BaseRequest) -> bool:
    """Whether nothing of the body is left. (`request.content` says the same and takes longer.)"""
    return request._payload.is_eof()


def asks_for_upgrade(request: web.BaseRequest) -> bool:
    """Whether the head asks for another protocol. The parser throws away some of what comes after such a head."""
    return bool(request._message.upgrade)


def parser_is_in_c() -> bool:
    """Whether requests are parsed by aiohttp's extension in C."""
    return HttpRequestParser.__module__ == "aiohttp._http_parser"
