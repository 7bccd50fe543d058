"""Erasing a competitor: the operation, and its preview, which shows what would be erased, and what would stay where."""

from typing import Final

from msgspec import Struct, structs

from api.access.auth import Scope
from api.interface.declarations import Operation, Recall, RecallContext, Write
from api.interface.rendering import Answer, TaggedBody, encode, tagged_body
from api.interface.resources.competitor_exports import competitor_json
from api.interface.resources.competitors import (
    CompetitorShape,
    RawCompetitor,
    render_competitor,
)
from engine.domain.commands import EraseCompetitor
from engine.domain.terms import RankingId
from projections.answers.erasure import ErasureQuestion
from projections.answers.view import ask
from projections.past.mentions import MENTIONS_MAX, Mention

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class ErasureShape(Struct, kw_only=True):
    """The effect of erasing a competitor: everything in `competitor` except its id and times is erased, with all
    earlier names, tags and colours. `rankings`: those that keep its points and places. `mentions`: texts that stay,
    although they contain a current or earlier name; `mentions_left_out`: the number of further ones."""

    competitor: RawCompetitor
    rankings: list[RankingId]
    mentions: list[Mention]
    mentions_left_out: int


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


async def answer_erasure(context: RecallContext, answer: Answer, question: ErasureQuestion) -> TaggedBody:
    """Raises as the question."""
    found = await ask(context, question)
    competitor = await competitor_json(context.live, question.competitor_id)
    return tagged_body(answer.body(encode(ErasureShape(competitor=competitor, **structs.asdict(found)))))


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "competitors/{competitor_id}/erase.json",
        f"Show what erasing a competitor would remove, and up to {MENTIONS_MAX} texts in which its name would stay",
        operation_id="previewEraseCompetitor",
        question=ErasureQuestion,
        answer=Answer("erasure", ErasureShape, "preview"),
        render=answer_erasure,
        previews=True,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "competitors/{competitor_id}/erase.json",
        "Erase a competitor's names, tags, colours, key and parent, at every moment; points and places stay",
        operation_id="eraseCompetitor",
        command=EraseCompetitor,
        answer=Answer("competitor", CompetitorShape),
        render=render_competitor,
        scope=Scope.ADMIN,
    ),
)
