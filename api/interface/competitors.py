"""Competitors: their shape, how it is rendered, and the operations on them."""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from operator import attrgetter
from typing import Annotated, Final, Protocol

from msgspec import Meta, Raw, Struct

from api.http.outgoing import Later, joined
from api.interface import paging
from api.interface.declarations import Many, Operation, Read, Write
from api.interface.fields import COLOR, ID, NAME, TAGS, Field, Fields
from api.interface.lookup import competitor_of
from api.interface.paging import PagedShape, PageQuestion
from api.interface.rendering import (
    LINES_AT_ONCE_MAX,
    Answer,
    TaggedBody,
    Taking,
    View,
    cut,
    encode,
    kept_bytes,
    later,
    resource,
    short,
    tagged_body,
    timestamp,
)
from engine.domain.commands import ChangeCompetitor, RegisterCompetitor, RegisterCompetitors
from engine.domain.terms import TAGS_MAX, CompetitorId, RankingId
from projections.board.board import Ranking
from projections.board.hierarchy import NestedSetBounds, walk

PIECES_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of the shapes of single competitors that are kept for one tournament. Others are rendered when they are
shown."""


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class TagShape(Struct):
    name: str


class CompetitorShape(Struct, kw_only=True):
    id: int
    name: str
    tags: list[TagShape]
    color: str
    level: int
    lft: int
    rgt: int
    created_at: str
    updated_at: str


RawCompetitor = Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Competitor"})]
"""The finished JSON of a CompetitorShape: rendered once, and put together many times."""
RawCompetitors = Annotated[
    Raw, Meta(extra_json_schema={"type": "array", "items": {"$ref": "#/components/schemas/Competitor"}})
]


class NewCompetitorsShape(Struct):
    """Several competitors that one request registered, in its order."""

    competitor: list[RawCompetitor]


class CompetitorsShape(PagedShape, kw_only=True):
    competitor: list[RawCompetitor]


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class OfCompetitor(Protocol):
    """A question or an event about a competitor."""

    @property
    def competitor_id(self) -> CompetitorId: ...


class CompetitorQuestion(Struct, frozen=True):
    competitor_id: CompetitorId


def list_competitors(view: View, answer: Answer, page: PageQuestion) -> TaggedBody | Later:
    """One page of the competitors, in the order of their registration."""

    def around(view: View) -> tuple[bytes, bytes]:
        return page.around(answer, CompetitorsShape, "competitor", len(view.board.competitors))

    def render() -> TaggedBody | None:
        pieces = competitor_pieces(view)
        if not pieces.ready:
            return None
        shown = short(pieces[competitor_id] for competitor_id in page.of(view.board.competitors))
        return None if shown is None else tagged_body(b",".join(shown).join(around(view)))

    def take(view: View) -> Taking:
        pieces = competitor_pieces(view).freeze()
        shown = page.of(view.board.competitors)
        before, after = around(view)

        def make() -> Iterator[bytes]:
            yield before
            yield from joined(pieces.of(shown))

        return make, (pieces,), after

    if page.is_past_the_end(len(view.board.competitors)):
        return tagged_body(b"".join(around(view)))
    kept = view.cache.rendered(("competitors", page), view.revisions.competitors, render, kept_bytes)
    return kept or later(view, ("competitors", page.page, page.per_page), take)


def show_competitor(view: View, answer: Answer, question: CompetitorQuestion) -> TaggedBody | Later:
    """Raises NotFound."""
    competitor_id = question.competitor_id
    found = competitor_of(view.board, competitor_id)
    stamp = view.revisions.competitors
    return resource(
        view, ("competitor", competitor_id), stamp, found, lambda: render_competitor(view, answer, question)
    )


def render_competitor(view: View, answer: Answer, of: OfCompetitor) -> bytes | Later:
    competitor_id = of.competitor_id
    pieces = competitor_pieces(view)
    if pieces.ready:
        return answer.body(pieces[competitor_id])

    def take(view: View) -> Taking:
        pieces = competitor_pieces(view).freeze()

        def make() -> Iterator[bytes]:
            yield from pieces.steps()
            yield answer.before + pieces[competitor_id]

        return make, (pieces,), b"}"

    return later(view, ("competitor", answer.message, competitor_id), take)


def render_competitors(view: View, answer: Answer, of: Items[OfCompetitor]) -> bytes | Later:
    competitor_ids = [one.competitor_id for one in of]
    before, after = cut(NewCompetitorsShape(competitor=[]), "competitor")
    pieces = competitor_pieces(view)
    if pieces.ready:
        shown = short(pieces[competitor_id] for competitor_id in competitor_ids)
        if shown is not None:
            return answer.body(before + b",".join(shown) + after)

    def take(view: View) -> Taking:
        pieces = competitor_pieces(view).freeze()

        def make() -> Iterator[bytes]:
            yield from pieces.steps()
            yield answer.before + before
            yield from joined(pieces.of(competitor_ids))

        return make, (pieces,), after + b"}"

    return later(view, ("competitors", answer.message, competitor_ids[0], competitor_ids[-1]), take)


class CompetitorPieces(dict[CompetitorId, bytes]):
    """The shapes of all competitors, each rendered when it is first asked for: of thousands, it may be the only one. If
    they are not `ready`, go through the `steps` first."""

    def __init__(self, view: View) -> None:
        self._competitors = view.board.competitors
        self._is_frozen = False
        self._kept_bytes = 0
        self._bounds: dict[CompetitorId, NestedSetBounds] = {}
        self._walk: Iterator[None] | None = None
        if _has_parents(view):  # else there are only roots, whose bounds follow from the order
            taken = dict(self._competitors)
            self._walk = walk(((c, competitor.parent_id) for c, competitor in taken.items()), self._bounds)
            if len(self._competitors) <= LINES_AT_ONCE_MAX:
                for _ in self.steps():
                    pass

    @property
    def ready(self) -> bool:
        return self._walk is None

    def steps(self) -> Iterator[bytes]:
        """Empty portions, one for each step. Others who go through them at the same time do some of the steps."""
        while self._walk is not None:
            if next(self._walk, True):
                self._walk = None
            yield b""

    def freeze(self) -> "CompetitorPieces":
        """Keeps these pieces as they are, whatever is folded into the board. Returns them."""
        if not self._is_frozen:
            self._competitors = dict(self._competitors)
            self._is_frozen = True
        return self

    def of(self, competitor_ids: Iterable[CompetitorId]) -> Iterator[bytes]:
        """The steps, then the pieces of these competitors."""
        yield from self.steps()
        for competitor_id in competitor_ids:
            yield self[competitor_id]

    def __missing__(self, competitor_id: CompetitorId) -> bytes:
        assert self.ready  # or the bounds would be made up
        competitor = self._competitors[competitor_id]
        place = self._bounds.get(competitor_id) or NestedSetBounds(0, 2 * competitor.number - 1, 2 * competitor.number)
        piece = encode(
            CompetitorShape(
                id=competitor_id,
                name=competitor.name,
                tags=[TagShape(tag) for tag in competitor.tags],
                color=competitor.color,
                level=place.level,
                lft=place.lft,
                rgt=place.rgt,
                created_at=timestamp(competitor.created_at),
                updated_at=timestamp(competitor.updated_at),
            )
        )
        size = len(piece) + _PIECE_OVERHEAD_BYTES
        if self._kept_bytes + size <= PIECES_BYTES_MAX:
            self._kept_bytes += size
            self[competitor_id] = piece
        return piece

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, as if all pieces had been asked for."""
        number = len(self._competitors)
        pieces = min(PIECES_BYTES_MAX, max(self._kept_bytes, PIECE_BYTES * number))
        return pieces + number * (_FROZEN_BYTES * self._is_frozen + _BOUNDS_BYTES * bool(self._bounds or self._walk))


_PARENT_ID: Final = attrgetter("parent_id")
PIECE_BYTES: Final = 400
"""Bytes of the piece of a competitor with an ordinary name and few tags."""
_PIECE_OVERHEAD_BYTES: Final = 120
_FROZEN_BYTES: Final = 50
_BOUNDS_BYTES: Final = 250


def _has_parents(view: View) -> bool:
    """Whether a competitor is below another. Looked for again only after somebody was given a parent: it takes long
    for a million of them."""

    def look() -> bool:
        return any(map(_PARENT_ID, view.board.competitors.values()))

    return view.cache.rendered("has parents", view.revisions.parents, look, lambda _: 0)


def competitor_pieces(view: View) -> CompetitorPieces:
    """The pieces of all competitors, made anew after a change of one: it may move the bounds of all."""
    return view.cache.part("pieces", view.revisions.competitors, lambda: CompetitorPieces(view))


def participants_json(view: View, ranking_id: RankingId, ranking: Ranking) -> bytes:
    """The ranking's participants, as JSON. Empty: too long for a short answer."""

    def render() -> bytes:
        pieces = competitor_pieces(view)
        if not pieces.ready or len(ranking.participants) > LINES_AT_ONCE_MAX:
            return b""
        found = short(pieces[competitor_id] for competitor_id in ranking.participants)
        return b"" if found is None else b"[%b]" % b",".join(found)

    stamp = view.revisions.participants
    return view.cache.rendered(("enrolled", ranking_id), stamp, render, len)


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_MORE: Final[Fields] = (
    Field("tags", TAGS, f"separated by commas, at most {TAGS_MAX}"),
    Field("color", COLOR, "six hexadecimal characters"),
    Field("parent", ID, "the competitor above it in the hierarchy", argument="parent_id"),
)
_NAME: Final = "without control characters; white space around it is not kept"

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "competitors.json",
        "List the competitors",
        question=PageQuestion,
        answer=Answer("competitors", CompetitorsShape),
        render=list_competitors,
        fields=paging.FIELDS,
    ),
    Read(
        "competitors/{competitor_id}.json",
        "Show a competitor",
        question=CompetitorQuestion,
        answer=Answer("competitor", CompetitorShape),
        render=show_competitor,
    ),
    Write(
        "POST",
        "competitors.json",
        "Register a competitor, or several",
        command=RegisterCompetitor,
        answer=Answer("competitor", CompetitorShape, "added"),
        render=render_competitor,
        fields=(Field("name", NAME, _NAME, required=True), *_MORE),
        new_ids={"id": "competitor_id"},
        many=Many(RegisterCompetitors, Answer("competitors", NewCompetitorsShape, "added"), render_competitors),
    ),
    Write(
        "PUT",
        "competitors/{competitor_id}.json",
        "Change a competitor; what is absent stays as it is",
        command=ChangeCompetitor,
        answer=Answer("competitor", CompetitorShape),
        render=render_competitor,
        fields=(Field("name", NAME, _NAME), *_MORE),
    ),
)
