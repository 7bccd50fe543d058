"""The common parts of all answers: the envelope, ETags, and the choice between a short answer and a long one.

Each chunk of an answer is rendered once per change, not once per request. The cache of its tournament keeps it until
its data changes, so all requests of a batch share the same bytes. Renderers return the whole body of an answer, or, if
that is long, how to begin it. The board is folded in place during pauses. So a long answer first reserves the data it
shows (a held board, copies of lists and totals), and is then rendered step by step while it is sent.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Final, Protocol

import msgspec
from msgspec import Meta, Struct

from api.desk.conditions import own_tag
from api.http.outgoing import LONG_BYTES, Later, Long, Part, etag_of
from engine.domain.terms import TournamentId
from engine.log.heads import Head
from projections.board.board import FOLD_VERSION, Board, Competition, Competitor, Ranking, Revisions
from projections.live.cache import RenderCache
from projections.live.held import HeldBoard

LINES_AT_ONCE_MAX: Final = 4_000
"""Competitors and lines of standings that are rendered without a pause; each takes 1 to 5 µs."""
DIGEST_CHARACTERS: Final = 16
"""Hexadecimal digits of the digest in a resource's ETag: 64 bits distinguish the bodies of a resource with the same
state of its own."""

encode: Final = msgspec.json.Encoder().encode


class BoardNow(Protocol):
    """The source of answers: a board at one moment, with the cache of its rendered chunks. `hold` keeps the present
    state for later steps."""

    @property
    def tournament_id(self) -> TournamentId: ...
    @property
    def head(self) -> Head: ...
    @property
    def board(self) -> Board: ...
    @property
    def revisions(self) -> Revisions: ...
    @property
    def cache(self) -> RenderCache: ...
    def hold(self) -> HeldBoard: ...


class TaggedBody(Struct, frozen=True):
    """The body of an answer, and the strong ETag that stands for just these bytes."""

    body: bytes
    etag: str


class Answer(Struct, frozen=True):
    """What a 200 holds: `status`, `message`, the payload of this `shape` under `key`, and `more` keys with their
    types."""

    key: str
    shape: Any
    message: str = "ok"
    more: Mapping[str, Any] = {}

    @property
    def before(self) -> bytes:
        """What stands in the body before the payload."""
        return b'{"status":200,"message":"%b","%b":' % (self.message.encode(), self.key.encode())

    def body(self, payload: bytes) -> bytes:
        """The whole body, without `more`."""
        return b"%b%b}" % (self.before, payload)

    def minimal(self, ids: Mapping[str, int | list[int]]) -> bytes:
        """The whole body with these `ids` in place of the payload."""
        return encode({"status": 200, "message": self.message, **ids})


def whole(body: bytes | TaggedBody | Later) -> bytes:
    """The whole body of an answer, for callers that need not pause."""
    if isinstance(body, bytes):
        return body
    return body.body if isinstance(body, TaggedBody) else b"".join(body().chunks())


def kept_bytes(made: "TaggedBody | Later | None") -> int:
    """The size of a rendered answer while it is kept; a long one is not kept."""
    return len(made.body) if isinstance(made, TaggedBody) else 0


def short(pieces: Iterable[bytes]) -> list[bytes] | None:
    """The pieces; None: they are too long for a short answer, or one of them is, which is empty then."""
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if not piece or size > LONG_BYTES:
            return None
    return found


def tagged_body(body: bytes) -> TaggedBody:
    """The body, with an ETag made from it."""
    return TaggedBody(body, hashlib.sha256(body).hexdigest()[:32])


Timestamp = Annotated[
    str,
    Meta(
        description="UTC, without a zone: yyyy-mm-dd HH:ii:ss",
        pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}$",
        examples=["2026-05-02 17:04:11"],
    ),
]
"""A time in a shape that is documented elsewhere, or is part of one."""
Instant = Annotated[str, Meta(examples=["2026-05-02T17:04:11.512340Z"], extra_json_schema={"format": "date-time"})]
"""A time in a shape that is ours alone: RFC 3339, in UTC, to the µs, as the stream has it."""


# ── Long answers ────────────────────────────────────────────────────────────────────────────────────────

Taking = tuple[bytes, Callable[[], Iterator[bytes]], tuple[Part, ...], bytes]
"""The reserved data of a long answer: its first bytes, how to make the others, its parts, and its last bytes."""


def later(view: BoardNow, question: tuple[object, ...], take: Callable[[], Taking]) -> Later:
    """The long answer to `question`. All requests that begin it at the same head share it."""

    def begin() -> Long:
        first, make, parts, end = take()
        head = view.head
        etag = etag_of(FOLD_VERSION, view.tournament_id, head.sequence, head.digest, *question)
        return Long(lambda: chain((first,), make()), parts, end=end, etag=etag)

    return lambda: view.cache.shared((question, view.head), begin)


def cut(shape: Struct, *lists: str) -> tuple[bytes, ...]:
    """The JSON of `shape`, cut where the items of its `lists` belong, which are empty in `shape` and named in the order
    of its fields."""
    pieces, rest = [], encode(shape)
    for name in lists:
        before, mark, rest = rest.partition(b'"%b":[' % name.encode())
        pieces.append(before + mark)
    return *pieces, rest


def items_of(values: list[Any]) -> bytes:
    """The JSON of `values`, without the brackets around it."""
    return encode(values)[1:-1]


def listed(items: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """The items with commas between them; each is itself made piece by piece."""
    comma = b""
    for item in items:
        if comma:
            yield comma
        yield from item
        comma = b","


# ── Single resources ────────────────────────────────────────────────────────────────────────────────────


def resource(
    view: BoardNow,
    key: tuple[str, int],
    stamp: object,
    found: Competitor | Competition | Ranking,
    render: Callable[[], bytes | Later],
) -> TaggedBody | Later:
    """What `render` makes of a single resource, with the ETag that a conditional change of it names; kept if it is
    short.

    The ETag is the resource's own tag and a digest of the body. A long answer may begin later: its own tag is never
    newer than its data.
    """

    def make() -> TaggedBody | Later:
        made = render()
        if isinstance(made, bytes):
            return TaggedBody(made, _etag(found, hashlib.sha256(made).hexdigest()))
        return lambda: _tagged(made(), found)

    return view.cache.rendered(key, stamp, make, kept_bytes)


def _tagged(long: Long, found: Competitor | Competition | Ranking) -> Long:
    return long.with_etag(_etag(found, long.etag))


def _etag(found: Competitor | Competition | Ranking, digest: str) -> str:
    return f"{own_tag(found)}-{digest[:DIGEST_CHARACTERS]}"
