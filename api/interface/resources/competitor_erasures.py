"""Erasing a competitor: the operation, and its preview, which shows what would be erased, and what would stay where."""

from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.interface.declarations import Operation, Recall, RecallContext, Write
from api.interface.rendering import Answer, TaggedBody, encode, tagged_body
from api.interface.resources.competitor_exports import competitor_json
from api.interface.resources.competitors import (
    CompetitorQuestion,
    CompetitorShape,
    RawCompetitor,
    render_competitor,
)
from engine.domain.commands import EraseCompetitor
from engine.domain.judging import decide
from engine.domain.terms import CompetitorId, RankingId
from projections.board.board import Board
from projections.past import searches
from projections.past.mentions import MENTIONS_MAX, Mentions

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class MentionShape(Struct, kw_only=True):
    """A text that contains a name of the competitor: its event, its field, and the words around the name. The field
    `idempotency_key` is the key of the request."""

    sequence: int
    kind: str
    field: str
    text: str


class ErasureShape(Struct, kw_only=True):
    """The effect of erasing a competitor: everything in `competitor` except its id and times is erased, with all
    earlier names, tags and colours. `rankings`: those that keep its points and places. `mentions`: texts that stay,
    although they contain a current or earlier name; `mentions_left_out`: the number of further ones."""

    competitor: RawCompetitor
    rankings: list[RankingId]
    mentions: list[MentionShape]
    mentions_left_out: int


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


async def answer_erasure(context: RecallContext, answer: Answer, question: CompetitorQuestion) -> TaggedBody:
    """Raises as `mentions_of`."""
    live, competitor_id = context.live, question.competitor_id
    found = await mentions_of(context, competitor_id)
    shape = ErasureShape(
        competitor=await competitor_json(live, competitor_id),
        rankings=rankings_keeping(live.board, competitor_id),
        mentions=mention_shapes(found),
        mentions_left_out=found.left_out,
    )
    return tagged_body(answer.body(encode(shape)))


async def mentions_of(context: RecallContext, competitor_id: CompetitorId) -> Mentions:
    """The texts in which a name of the competitor would stay. Raises NotFound, and Conflict if it is erased already."""
    live = context.live
    decide(live.board, EraseCompetitor(competitor_id=competitor_id))
    return await searches.mentions(context.past, live.tournament_id, competitor_id, live.head.sequence)


def mention_shapes(found: Mentions) -> list[MentionShape]:
    return [MentionShape(sequence=m.sequence, kind=m.kind, field=m.field, text=m.text) for m in found.listed]


def rankings_keeping(board: Board, competitor_id: CompetitorId) -> list[RankingId]:
    """The rankings in which the competitor is or was, and which keep its points."""
    return [r for r, ranking in board.rankings.items() if ranking.participants.row(competitor_id) is not None]


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "competitors/{competitor_id}/erase.json",
        f"Show what erasing a competitor would take away, and up to {MENTIONS_MAX} texts in which its name would stay",
        operation_id="previewEraseCompetitor",
        question=CompetitorQuestion,
        answer=Answer("erasure", ErasureShape, "preview"),
        render=answer_erasure,
        previews=True,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "competitors/{competitor_id}/erase.json",
        "Erase a competitor's names, tags, colours and parent, at every moment; points and places stay",
        operation_id="eraseCompetitor",
        command=EraseCompetitor,
        answer=Answer("competitor", CompetitorShape),
        render=render_competitor,
        scope=Scope.ADMIN,
    ),
)
