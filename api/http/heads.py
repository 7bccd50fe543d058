"""The heads of requests that were parsed a moment ago: most clients send the same few again and again.

Parsing a head, with the reader of its body, takes a sixth of the time of an add. What the parser makes of it follows
from its bytes, but for the length of the body.
"""

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

HeadBytes: TypeAlias = bytes | tuple[bytes, bytes]
"""A head without its end. Of a request with a body: what stands before the length of the body, and what after it."""


class Heads:
    """The heads that a server remembers. In what was parsed of one, the header Content-Length is that of an earlier
    request."""

    def __init__(self) -> None:
        self._known: dict[HeadBytes, RawRequestMessage] = {}
        self._noted: set[int] = set()
        self.get: Final = self._known.get

    def remember(self, head: HeadBytes, messages: "Sequence[tuple[Any, StreamReader]]") -> bool:
        """Whether the parser, which stood between two requests, made these of a piece with this head, and stands
        between two again. Then the next piece need not be parsed if its head is known."""
        match messages:
            case [(RawRequestMessage() as message, content)] if content.is_eof():
                if message.version is HttpVersion11 and not (message.should_close or message.upgrade):
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
