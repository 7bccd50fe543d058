"""The heads of requests that were parsed a moment ago: most clients send the same few again and again.

Parsing a head, with the reader of its body, takes a sixth of the time of an add. What the parser makes of it follows
from its bytes, but for the length of the body and an idempotency key, which differ each time.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aiohttp.http import HttpVersion11, RawRequestMessage

if TYPE_CHECKING:
    from aiohttp import StreamReader

HEADS_KEPT_MAX: Final = 2_000
HEAD_KEPT_BYTES_MAX: Final = 1_024
"""A process remembers this many heads of up to this size. Parsed, one takes some kilobytes."""
HEADS_NOTED_MAX: Final = 20_000
"""A head is remembered when it comes a second time among this many others: many have an id of their own."""
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\nContent-Length: "
_LENGTH_IN_SMALL_LETTERS: Final = _LENGTH.lower()
_KEY: Final = re.compile(rb"\r\n(Idempotency-Key|idempotency-key): ([!-~]{1,255})(?=\r\n|\Z)")

HeadBytes: TypeAlias = bytes | tuple[bytes, ...]
"""A head without its end. Of a request with a body: what stands before the length of the body, and what after it. Of
one with a key: what stands before the key and after it, without the length, and the name of its header."""


class Heads:
    """The heads that a server remembers. In what was parsed of one, the header Content-Length is that of an earlier
    request, and so are the raw headers."""

    def __init__(self) -> None:
        self._known: dict[HeadBytes, RawRequestMessage] = {}
        self._noted: set[int] = set()
        self.get: Final = self._known.get

    def get_keyed(self, head: HeadBytes) -> RawRequestMessage | None:
        """What the parser would make of a head with an idempotency key; None: it has none, or is not known with
        another key."""
        keyed, name, key = _without_key(head)
        message = self._known.get(keyed) if key else None
        if message is None:
            return None
        headers = message.headers.copy()
        headers[name] = key
        return message._replace(headers=type(message.headers)(headers))

    def remember(self, head: HeadBytes, messages: "Sequence[tuple[Any, StreamReader]]") -> bool:
        """Whether the parser, which stood between two requests, made these of a piece with this head, and stands
        between two again. Then the next piece need not be parsed if its head is known."""
        match messages:
            case [(RawRequestMessage() as message, content)] if content.is_eof():
                if message.version is HttpVersion11 and not (message.should_close or message.upgrade):
                    head, name, key = _without_key(head)
                    if not key or message.headers.getall(name) == [key]:
                        self._note(head, message)
                return True
        return False

    def _note(self, head: HeadBytes, message: RawRequestMessage) -> None:
        noted = hash(head)
        if noted not in self._noted:
            if len(self._noted) >= HEADS_NOTED_MAX:
                self._noted.clear()
            self._noted.add(noted)
        elif sum(map(len, head if isinstance(head, tuple) else (head,))) <= HEAD_KEPT_BYTES_MAX:
            if len(self._known) >= HEADS_KEPT_MAX:
                self._known.clear()
            self._known[head] = message


def taken_apart(piece: bytes) -> tuple[HeadBytes | None, bytes]:
    """The head and the body of a piece that can be one whole request; None: it cannot."""
    head, end, body = piece.partition(_END)
    if not body:
        return head if end else None, body
    before, found, rest = head.partition(_LENGTH)
    if not found:
        before, _, rest = head.partition(_LENGTH_IN_SMALL_LETTERS)
    length, _, after = rest.partition(b"\r\n")
    return (before, after) if length == b"%d" % len(body) else None, body


def _without_key(head: HeadBytes) -> tuple[HeadBytes, str, str]:
    """A head without its idempotency key, the name of its header, and the key. If it has none: the same head, and
    empty texts."""
    whole = _END.join(head) if isinstance(head, tuple) else head
    found = _KEY.search(whole)
    if found is None:
        return head, "", ""
    return (whole[: found.start(2)], whole[found.end(2) :], found[1]), found[1].decode(), found[2].decode()
