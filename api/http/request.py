"""A request as it came: its head, its body as it comes, and the connection it came on.

Every request pays for one, so it is leaner than aiohttp's: what few ask for is worked out when they do.
"""

from email import message_from_string
from email.policy import HTTP
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from aiohttp import StreamReader
from aiohttp.http import RawRequestMessage
from yarl import URL

if TYPE_CHECKING:
    from api.http.connections import Connection

_UNNAMED: Final = "application/octet-stream"


class HttpRequest:
    """`url` is its target without a host, `content` its body as it comes, on `connection`. `keep_alive`: the client
    lets the connection take another request. `upgrade`: it asks for another protocol; the parser throws away some of
    what comes after such a head. `is_read`: nothing of the body is on its way any more."""

    __slots__ = ("connection", "content", "headers", "is_read", "keep_alive", "method", "upgrade", "url", "version")

    def __init__(self, head: RawRequestMessage, content: StreamReader, connection: "Connection") -> None:
        self.method = head.method
        self.url: URL = head.url.relative() if head.url.absolute else head.url
        self.version = head.version
        self.headers = head.headers
        self.keep_alive = not head.should_close
        self.upgrade = head.upgrade
        self.content = content
        self.is_read = content.is_eof()
        self.connection = connection

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
    def media_type(self) -> tuple[str, str]:
        """What the body is, and its charset, if one is named, in small letters."""
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
        """Whether it came by TLS, up to us."""
        return self.connection.ssl_context is not None

    def _cancel(self, error: BaseException) -> None:
        """Raises `error` in the reader of the body; aiohttp calls it when the connection is lost."""
        self.content.set_exception(error)


@lru_cache(maxsize=64)
def _media_type(stated: str) -> tuple[str, str]:
    head = message_from_string(f"Content-Type: {stated}", policy=HTTP)
    return head.get_content_type(), str(head.get_param("charset") or "").lower()
