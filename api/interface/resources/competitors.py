"""Competitors: their shape, how it is rendered, and the operations on them."""

from collections.abc import Sequence as Items
from typing import Annotated, Final, Protocol

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from api.http.outgoing import Later, Part, joined
from api.interface import paging
from api.interface.declarations import Many, Operation, Read, Write
from api.interface.fields import COLOR, ID, NAME, OWN_KEY, PHRASE, TAGS, Field, Fields
from api.interface.paging import ListPart, PagedShape, PageQuestion
from api.interface.rendering import (
    LINES_AT_ONCE_MAX,
    Answer,
    BoardNow,
    TaggedBody,
    Taking,
    Timestamp,
    cut,
    encode,
    kept_bytes,
    later,
    resource,
    short,
    tagged_body,
)
from engine.domain.commands import ChangeCompetitor, RegisterCompetitor, RegisterCompetitors
from engine.domain.names import caseless_key, name_key
from engine.domain.terms import TAGS_MAX, CompetitorId, RankingId
from engine.domain.times import timestamp
from engine.process.time_slices import TimeSlices
from projections.answers.lookup import competitor_of, named
from projections.board.board import Competitor, Ranking
from projections.board.hierarchy import NestedSetBounds
from projections.board.selection import CompetitorFilter
from projections.live.cache import SmallPieces
from projections.live.held import HeldBoard
from projections.live.tournament import LiveTournament

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class TagShape(Struct):
    name: str


class CompetitorShape(Struct, kw_only=True):
    """`key`: the organiser's own id for it, if it has one."""

    id: int
    name: str
    tags: list[TagShape]
    color: str
    level: int
    lft: int
    rgt: int
    created_at: Timestamp
    updated_at: Timestamp
    key: str | UnsetType = UNSET


RawCompetitor = Annotated[Raw, Meta(extra_json_schema={"$ref": "#/components/schemas/Competitor"})]
"""The finished JSON of a CompetitorShape, rendered once and used many times."""
RawCompetitors = Annotated[
    Raw, Meta(extra_json_schema={"type": "array", "items": {"$ref": "#/components/schemas/Competitor"}})
]


class RegisteredCompetitorsShape(Struct):
    """Several competitors that one request registered, in its order."""

    competitor: list[RawCompetitor]


class CompetitorsShape(PagedShape, frozen=True, kw_only=True):
    competitor: list[RawCompetitor]


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class OfCompetitor(Protocol):
    """A question or an event about a competitor."""

    @property
    def competitor_id(self) -> CompetitorId: ...


class CompetitorQuestion(Struct, frozen=True):
    competitor_id: CompetitorId


class CompetitorsQuestion(PageQuestion, frozen=True):
    """All competitors, or those that meet every condition that is not None: how the name begins, a tag, the parent."""

    name: str | None = None
    tag: str | None = None
    parent_id: CompetitorId | None = None


async def find_competitors(
    live: LiveTournament, time_slices: TimeSlices, question: CompetitorsQuestion
) -> CompetitorsQuestion | ListPart:
    """The requested part of the competitors; without a filter, the question itself. Raises Unacceptable if the parent
    or `after` does not exist."""
    name, tag, competitors = question.name, question.tag, live.board.competitors
    chosen = CompetitorFilter(
        name=None if name is None else caseless_key(name),
        tag=None if tag is None else name_key(tag),
        parent_id=question.parent_id,
    )
    if chosen == CompetitorFilter():
        return question
    if chosen.parent_id is not None:
        named(competitors, "competitor", "parent", chosen.parent_id)
    return await question.selected(competitors, "competitor", chosen, live.selections, time_slices)


def list_competitors(view: BoardNow, answer: Answer, asked: PageQuestion | ListPart) -> TaggedBody | Later:
    """A part of the competitors, in the order of their registration. Raises Unacceptable if `after` does not exist."""

    def part() -> ListPart:
        return asked if isinstance(asked, ListPart) else asked.part(view.board.competitors, "competitor")

    def around(part: ListPart) -> tuple[bytes, bytes]:
        return part.around(answer, CompetitorsShape, "competitor")

    def render() -> TaggedBody | None:
        found = part()
        pieces = competitor_pieces(view)
        shown = short(pieces[CompetitorId(competitor_id)] for competitor_id in found.ids)
        return None if shown is None else tagged_body(b",".join(shown).join(around(found)))

    def take() -> Taking:
        found = part()
        pieces = competitor_pieces(view)
        before, after = around(found)
        return before, lambda: joined(pieces[CompetitorId(one)] for one in found.ids), pieces.parts, after

    if isinstance(asked, PageQuestion) and asked.is_past_the_end(len(view.board.competitors)):
        return tagged_body(b"".join(around(part())))
    key = ("competitors", asked)
    is_kept = isinstance(asked, PageQuestion) and asked.is_page
    kept = view.cache.rendered(key, view.revisions.competitors, render, kept_bytes) if is_kept else render()
    return kept or later(view, key, take)


def show_competitor(view: BoardNow, answer: Answer, question: CompetitorQuestion) -> TaggedBody | Later:
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


def render_competitor(view: BoardNow, answer: Answer, of: OfCompetitor) -> bytes:
    return answer.body(competitor_pieces(view)[of.competitor_id])


def render_competitors(view: BoardNow, answer: Answer, of: Items[OfCompetitor]) -> bytes | Later:
    competitor_ids = [one.competitor_id for one in of]
    before, after = cut(RegisteredCompetitorsShape(competitor=[]), "competitor")
    pieces = competitor_pieces(view)
    shown = short(pieces[competitor_id] for competitor_id in competitor_ids)
    if shown is not None:
        return answer.body(before + b",".join(shown) + after)

    def take() -> Taking:
        pieces = competitor_pieces(view)
        first, end = answer.before + before, after + b"}"
        return first, lambda: joined(pieces[one] for one in competitor_ids), (pieces.held,), end

    return later(view, ("competitors", answer.message, competitor_ids[0], competitor_ids[-1]), take)


class CompetitorPieces:
    """The shapes of competitors at one moment, each rendered on demand and then kept as a small chunk."""

    def __init__(self, held: HeldBoard, kept: SmallPieces[CompetitorId]) -> None:
        self.held = held
        self._kept = kept
        kept.renew(held.stamp)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that a long answer needs for these pieces."""
        return self.held, self.held.all_bounds

    @property
    def at_once_max(self) -> int:
        """The number of pieces that can be rendered without a pause."""
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


def competitor_pieces(view: BoardNow) -> CompetitorPieces:
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
            key=competitor.key or UNSET,
        )
    )


def participants_json(view: BoardNow, ranking_id: RankingId, ranking: Ranking) -> bytes:
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
    Field("tags", TAGS, f"in a form separated by commas, at most {TAGS_MAX}"),
    Field("color", COLOR, "six hexadecimal characters"),
    Field("parent", ID, "the competitor above it in the hierarchy", argument="parent_id"),
    Field("key", OWN_KEY, "the organiser's own id for it, without a comma; no two competitors have the same one"),
)
_NAME: Final = "without control characters; white space around it is not kept"

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "competitors.json",
        "List the competitors",
        operation_id="listCompetitors",
        question=CompetitorsQuestion,
        answer=Answer("competitors", CompetitorsShape),
        render=list_competitors,
        fields=(
            *paging.FIELDS,
            Field("name", PHRASE, "only competitors whose name begins like this; case is ignored"),
            Field("tag", PHRASE, "only with this tag"),
            Field("parent", ID, "only directly below this one", argument="parent_id"),
        ),
        find=find_competitors,
        judged=True,
    ),
    Read(
        "competitors/{competitor_id}.json",
        "Show a competitor",
        operation_id="showCompetitor",
        question=CompetitorQuestion,
        answer=Answer("competitor", CompetitorShape),
        render=show_competitor,
    ),
    Write(
        "POST",
        "competitors.json",
        "Register a competitor, or several",
        operation_id="registerCompetitor",
        command=RegisterCompetitor,
        answer=Answer("competitor", CompetitorShape, "added"),
        render=render_competitor,
        fields=(Field("name", NAME, _NAME, required=True), *_MORE),
        new_ids={"id": "competitor_id"},
        many=Many(RegisterCompetitors, Answer("competitors", RegisteredCompetitorsShape, "added"), render_competitors),
        example={"name": "Dan"},
    ),
    Write(
        "PUT",
        "competitors/{competitor_id}.json",
        "Change a competitor; absent fields stay, empty ones are cleared",
        operation_id="changeCompetitor",
        command=ChangeCompetitor,
        answer=Answer("competitor", CompetitorShape),
        render=render_competitor,
        fields=(Field("name", NAME, _NAME), *_MORE),
        example={"name": "Dan"},
    ),
)
