"""Competitors: their shape, how it is rendered, and the operations on them."""

from collections.abc import Iterator
from typing import Annotated, Final, Protocol

from msgspec import Meta, Raw, Struct

from api.http.outgoing import Later, Part, joined
from api.interface import paging
from api.interface.declarations import Operation, Read, Write
from api.interface.fields import COLOR, ID, NAME, TAGS, Field, Fields
from api.interface.lookup import competitor_of
from api.interface.paging import PagedShape, PageQuestion
from api.interface.rendering import (
    LINES_AT_ONCE_MAX,
    Answer,
    TaggedBody,
    Taking,
    View,
    encode,
    kept_bytes,
    later,
    resource,
    short,
    tagged_body,
    timestamp,
)
from engine.domain.commands import ChangeCompetitor, RegisterCompetitor
from engine.domain.terms import TAGS_MAX, CompetitorId, RankingId
from projections.board.board import Competitor, Ranking
from projections.board.hierarchy import NestedSetBounds
from projections.live.cache import SmallPieces
from projections.live.held import HeldBoard

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
        shown = short(pieces[competitor_id] for competitor_id in page.of(view.board.competitors))
        return None if shown is None else tagged_body(b",".join(shown).join(around(view)))

    def take(view: View) -> Taking:
        pieces = competitor_pieces(view)
        shown = page.of(view.board.competitors)
        before, after = around(view)

        def make() -> Iterator[bytes]:
            yield before
            yield from joined(pieces[competitor_id] for competitor_id in shown)

        return make, pieces.parts, after

    if page.is_past_the_end(len(view.board.competitors)):
        return tagged_body(b"".join(around(view)))
    kept = view.cache.rendered(("competitors", page), view.revisions.competitors, render, kept_bytes)
    return kept or later(view, ("competitors", page.page, page.per_page), take)


def show_competitor(view: View, answer: Answer, question: CompetitorQuestion) -> TaggedBody | Later:
    """Raises NotFound."""
    competitor_id = question.competitor_id
    found = competitor_of(view.board, competitor_id)
    return resource(
        view,
        ("competitor", competitor_id),
        view.revisions.shown,
        found,
        lambda: render_competitor(view, answer, question),
    )


def render_competitor(view: View, answer: Answer, of: OfCompetitor) -> bytes:
    return answer.body(competitor_pieces(view)[of.competitor_id])


class CompetitorPieces:
    """The shapes of competitors as of one moment, each rendered when it is asked for and then kept as a small piece."""

    def __init__(self, held: HeldBoard, kept: SmallPieces) -> None:
        self.held = held
        self._kept = kept
        if held.stamp > kept.stamp:
            kept.renew(held.stamp)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What a long answer with them holds."""
        return self.held, self.held.all_bounds

    @property
    def at_once_max(self) -> int:
        """How many of them can be rendered in one go."""
        return LINES_AT_ONCE_MAX if self.held.is_flat else LINES_AT_ONCE_MAX // _BOUNDS_FACTOR

    def __getitem__(self, competitor_id: CompetitorId) -> bytes:
        held, kept = self.held, self._kept
        is_current = held.stamp == kept.stamp and competitor_id not in held.competitors_changed
        piece = kept.get(competitor_id) if is_current else None
        if piece is None:
            competitor = held.competitor(competitor_id)
            piece = _piece(competitor_id, competitor, held.bounds(competitor))
            if is_current:
                kept.keep(competitor_id, piece)
        return piece


PIECE_BYTES: Final = 400
"""Bytes of the piece of a competitor with an ordinary name and few tags."""
_BOUNDS_FACTOR: Final = 6
"""How much longer a piece takes if its bounds must be looked up."""


def competitor_pieces(view: View) -> CompetitorPieces:
    """The pieces of all competitors, as they are now."""
    return CompetitorPieces(view.hold(), view.cache.small)


def _piece(competitor_id: CompetitorId, competitor: Competitor, bounds: NestedSetBounds) -> bytes:
    return encode(
        CompetitorShape(
            id=competitor_id,
            name=competitor.name,
            tags=[TagShape(tag) for tag in competitor.tags],
            color=competitor.color,
            level=bounds.level,
            lft=bounds.lft,
            rgt=bounds.rgt,
            created_at=timestamp(competitor.created_at),
            updated_at=timestamp(competitor.updated_at),
        )
    )


def participants_json(view: View, ranking_id: RankingId, ranking: Ranking) -> bytes:
    """The ranking's participants, as JSON. Empty: too long for a short answer."""

    def render() -> bytes:
        pieces = competitor_pieces(view)
        if len(ranking.participants) > pieces.at_once_max:
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
        "Register a competitor",
        command=RegisterCompetitor,
        answer=Answer("competitor", CompetitorShape, "added"),
        render=render_competitor,
        fields=(Field("name", NAME, _NAME, required=True), *_MORE),
        new_ids={"id": "competitor_id"},
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
