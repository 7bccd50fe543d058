"""A request as it arrives: its head, its body, and what its connection does for those who answer it.

Every request needs one, so it is leaner than aiohttp's: rarely needed values are computed on demand.
"""

import asyncio
import math
from collections.abc import Callable
from email import message_from_string
from email.policy import HTTP
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from aiohttp.http import HttpVersion11, RawRequestMessage
from yarl import URL

from api.http.outgoing import Outgoing

if TYPE_CHECKING:
    from aiohttp import StreamReader

_UNNAMED: Final = "application/octet-stream"


class RequestConnection(Protocol):
    """What answering a request needs of its connection (`connections.py`). `transport`: None: it is lost. `on_end` is
    called when it ends, with "unread" if the server ended it because the client does not read."""

    transport: asyncio.Transport | None
    on_end: Callable[[Literal["unread", "client_gone"]], None] | None

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def peername(self) -> Any: ...
    @property
    def ssl_context(self) -> object: ...
    @property
    def outgoing(self) -> Outgoing: ...
    @property
    def writing_paused(self) -> bool:
        """Whether what was written must be read before more is."""

    def write(self, data: bytes, /) -> None:
        """Writes bytes outside of an answer, unless the connection is lost."""

    def body_came_apart(self) -> None:
        """Call it when a body is complete that was not when its head was taken."""

    def hold(self, seconds: float, /) -> None:
        """Stops reading for some seconds."""

    async def read_up(self, seconds_max: float = math.inf, /) -> float:
        """Waits until there is room to write. Returns the seconds that it took. Raises ConnectionError."""

    async def linger(self) -> None:
        """Hangs up, but gives a client that is still sending time to read its answer."""


class HttpRequest:
    """`url`: its target without a host; `body`: its body, if it was complete when the request was taken; None:
    `content` reads it as it arrives on `connection`. `is_read`: the whole body has arrived. `is_ordinary`: it arrived
    in one piece over HTTP/1.1, is not a HEAD request, and leaves its connection open. `keep_alive`: the client lets the
    connection take another request. `upgrade`: it asks for another protocol; the parser discards some of the bytes
    after such a head."""

    __slots__ = (
        "body",
        "connection",
        "content",
        "headers",
        "is_ordinary",
        "is_read",
        "keep_alive",
        "method",
        "upgrade",
        "url",
        "version",
    )

    def __init__(self, head: RawRequestMessage, body: bytes | None, content: "StreamReader", connection: Any) -> None:
        self.method = method = head.method
        self.version = version = head.version
        self.keep_alive = keep_alive = not head.should_close
        self.upgrade = upgrade = head.upgrade
        self.headers = head.headers
        url = head.url
        self.url: URL = url.relative() if url.absolute else url
        self.body = body
        self.content = content
        self.is_read = is_read = body is not None
        is_usual = keep_alive and not upgrade and version is HttpVersion11 and method != "HEAD"
        self.is_ordinary = is_read and is_usual
        self.connection: RequestConnection = connection

    # ── Its target ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def path(self) -> str:
        """The path, decoded."""
        return self.url.path

    @property
    def target(self) -> str:
        """Path and query, encoded."""
        return str(self.url)

    @property
    def query(self) -> list[tuple[str, str]]:
        """The parameters of the query, decoded, in the order sent."""
        return list(self.url.query.items())

    # ── Its body ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def content_length(self) -> int | None:
        """The bytes of the body; None: the head does not say."""
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)

    @property
    def body_bytes(self) -> int:
        """The bytes of the body that have arrived."""
        return self.content.total_bytes if self.body is None else len(self.body)

    @property
    def media_type(self) -> tuple[str, str]:
        """The media type of the body, and its charset, if one is named, in small letters."""
        stated = self.headers.get("Content-Type")
        return (_UNNAMED, "") if stated is None else _media_type(stated)

    # ── Its client ──────────────────────────────────────────────────────────────────────────────────────

    @property
    def remote(self) -> str:
        """The address that the connection came from; empty: the system does not say."""
        peer = self.connection.peername
        return str(peer[0] if isinstance(peer, tuple) else peer or "")

    @property
    def secure(self) -> bool:
        """Whether it reached this process over TLS."""
        return self.connection.ssl_context is not None

    def _cancel(self, error: BaseException) -> None:
        """Raises `error` in the reader of the body; aiohttp calls it when the connection is lost."""
        self.content.set_exception(error)


@lru_cache(maxsize=64)
def _media_type(stated: str) -> tuple[str, str]:
    head = message_from_string(f"Content-Type: {stated}", policy=HTTP)
    return head.get_content_type(), str(head.get_param("charset") or "").lower()
