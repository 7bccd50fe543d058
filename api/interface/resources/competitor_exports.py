"""Everything that a tournament holds about one competitor: its data, its current standings, and each event that touches
it."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from msgspec import Raw, Struct

from api.access.auth import Scope
from api.interface.declarations import Operation, Recall, RecallContext
from api.interface.fields import FROM_0, Field, count
from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from api.interface.resources.competitor_standings import (
    CompetitorStandingsQuestion,
    CompetitorStandingsShape,
    find_competitor_standings,
)
from api.interface.resources.competitors import RawCompetitor, competitor_pieces
from engine.domain.terms import CompetitorId, Sequence
from engine.domain.times import instant
from projections.answers.lookup import competitor_of
from projections.answers.view import View
from projections.live.tournament import LiveTournament
from projections.past import searches
from projections.past.moments import Span
from projections.past.pages import SCANNED_EVENTS_MAX
from projections.past.touching import Touch

EXPORTED_DEFAULT: Final = 100
EXPORTED_MAX: Final = 1_000
"""Events of one page of an export."""


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class ExportedEventShape(Struct, kw_only=True):
    """An event that names the competitor, or is about a competition that it takes part in. `event`: its fields as they
    are stored. Lists of competitors and lines of points are cut down to this competitor's."""

    sequence: int
    recorded_at: Instant
    actor: int
    idempotency_key: str | None
    kind: str
    event: dict[str, Any]


class CompetitorExportShape(Struct, kw_only=True):
    """`standings`: the current ones, as in `competitors/<id>/standings.json`. `next`: the value of `after` for the
    events that follow; null: there are none."""

    competitor: RawCompetitor
    standings: CompetitorStandingsShape
    events: list[ExportedEventShape]
    next: int | None


# ── Finding and rendering ───────────────────────────────────────────────────────────────────────────────


class ExportQuestion(Struct, frozen=True, kw_only=True):
    competitor_id: CompetitorId
    after: Sequence = Sequence(0)
    limit: int = EXPORTED_DEFAULT


async def competitor_json(live: LiveTournament, competitor_id: CompetitorId) -> Raw:
    """The CompetitorShape of a competitor, as it is now."""
    if not live.nested_sets.ready:
        await live.nested_sets.settle()
    return Raw(competitor_pieces(live)[competitor_id])


async def answer_export(context: RecallContext, answer: Answer, question: ExportQuestion) -> TaggedBody:
    """A page of the export: at most `limit` events, found in SCANNED_EVENTS_MAX events. Raises NotFound."""
    live, competitor_id = context.live, question.competitor_id
    competitor_of(live.board, competitor_id)
    head = live.head.sequence
    standings = await find_competitor_standings(live, context.time_slices, CompetitorStandingsQuestion(competitor_id))
    last = min(head, Sequence(question.after + SCANNED_EVENTS_MAX))
    events: list[ExportedEventShape] = []
    following = None if last == head else last
    async with aclosing(exported_events(context, competitor_id, question.after, last)) as found:
        async for _, chunk in found:
            events += chunk
            if len(events) > question.limit:
                del events[question.limit :]
                following = Sequence(events[-1].sequence)
                break
    competitor = await competitor_json(live, competitor_id)
    shape = CompetitorExportShape(competitor=competitor, standings=standings, events=events, next=following)
    return tagged_body(answer.body(encode(shape)))


async def exported_events(
    view: View, competitor_id: CompetitorId, after: Sequence, last: Sequence
) -> AsyncGenerator[tuple[Sequence, list[ExportedEventShape]], None]:
    """Yields the events that touch a competitor, from those after `after` up to `last`, chunk by chunk, each chunk with
    the sequence reached."""
    span = Span(Sequence(after + 1), last)
    async with aclosing(
        searches.touches(view.past, view.live.board, view.live.tournament_id, competitor_id, span)
    ) as found:
        async for reached, touches in found:
            yield reached, [*map(_exported, touches)]


def _exported(touch: Touch) -> ExportedEventShape:
    recorded = touch.recorded
    return ExportedEventShape(
        sequence=recorded.sequence,
        recorded_at=instant(recorded.recorded_at),
        actor=recorded.actor,
        idempotency_key=recorded.idempotency_key,
        kind=touch.kind,
        event=touch.told,
    )


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

EXPORT: Final = Answer("export", CompetitorExportShape)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "competitors/{competitor_id}/export.json",
        "Export what is held about a competitor: data, standings, and every event that concerns it",
        operation_id="exportCompetitor",
        question=ExportQuestion,
        answer=EXPORT,
        render=answer_export,
        fields=(
            Field("after", FROM_0, "only events after this one: the next of the previous page"),
            Field("limit", count(EXPORTED_DEFAULT, EXPORTED_MAX), "events"),
        ),
        scope=Scope.ADMIN,
    ),
)
