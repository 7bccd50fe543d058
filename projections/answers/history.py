"""The lines of a ranking's history."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Final

from msgspec import UNSET, Struct, UnsetType

from engine.domain.terms import (
    NOT_PUBLIC,
    ActorId,
    CompetitionId,
    CompetitorId,
    RankingId,
    Reversal,
    Sender,
    Sequence,
    UnityId,
)
from projections.answers.criteria import Criteria, criteria_shape
from projections.answers.view import Question, View
from projections.answers.zones import with_days
from projections.past import moments, pages
from projections.past.history import AnyLine, DeclarationLine, DeltaLine, Filter
from projections.past.moments import Range, Span
from projections.past.pages import Cursor

LINES_DEFAULT: Final = 100
LINES_MAX: Final = 1_000
"""Lines of one page of history."""


class HistoryLine(Struct, frozen=True, kw_only=True):
    """A line of history: one delta. If it has `criteria`, it is one declaration of the classification, and all fields
    of a delta are null; no criteria: the previous declaration was taken back."""

    sequence: Sequence
    recorded_at: datetime
    actor: Sender
    competitor_id: CompetitorId | None = None
    unity_id: UnityId | None = None
    competition_id: CompetitionId | None = None
    delta: int | None = None
    result: int | None = None
    total: int | None = None
    position_before: int | None = None
    position_after: int | None = None
    reverses: Sequence | None = None
    reversal: Reversal | None = None
    reason: str | None = None
    criteria: Criteria | UnsetType = UNSET


class History(Struct, frozen=True, kw_only=True):
    """A page of lines. `next`: the value of `after` for the following page. `scored`: the events whose points a scoring
    gave: they follow the result, and cannot be undone."""

    lines: list[HistoryLine]
    next: str | None
    scored: Annotated[frozenset[Sequence], NOT_PUBLIC]


class WholeHistory(Struct, frozen=True):
    """All lines, from this number of `events`: in chunks, each with the number of events that have been read."""

    events: int
    chunks: AsyncIterator[tuple[int, list[HistoryLine]]]


class HistoryQuestion(Question[History], frozen=True, kw_only=True):
    """The requested lines: those with these ids, from `first` and `since` on, up to `last` and `until`. Raises
    NotFound."""

    ranking_id: RankingId
    unity_id: UnityId | None = None
    competitor_id: CompetitorId | None = None
    competition_id: CompetitionId | None = None
    actor: ActorId | None = None
    first: Sequence | None = None
    last: Sequence | None = None
    since: datetime | None = None
    until: datetime | None = None
    after: Cursor | None = None
    limit: int = LINES_DEFAULT

    async def answered(self, view: View) -> History:
        asked, span = await self._asked(view)
        page = await pages.page(
            view.past, view.live.tournament_id, self.ranking_id, span, asked=asked, after=self.after, limit=self.limit
        )
        return History(
            lines=[*map(_entry, page.lines)],
            next=None if page.next is None else page.next.text,
            scored=frozenset(one.sequence for one in page.lines if isinstance(one, DeltaLine) and one.scored),
        )

    async def whole(self, view: View) -> WholeHistory:
        """All lines instead of a page. Raises NotFound."""
        question = with_days(view.live.board, self)
        asked, span = await question._asked(view)

        async def chunks() -> AsyncIterator[tuple[int, list[HistoryLine]]]:
            found = pages.lines(view.past, view.live.tournament_id, self.ranking_id, span, asked)
            async for reached, lines in found:
                yield reached - span.first + 1, [*map(_entry, lines)]

        return WholeHistory(max(0, span.last - span.first + 1), chunks())

    async def _asked(self, view: View) -> tuple[Filter, Span]:
        """Which lines, of which events. Actors are not looked up: they do not belong to a tournament."""
        asked = Filter(
            unity_id=self.unity_id,
            competitor_id=self.competitor_id,
            competition_id=self.competition_id,
            actor=self.actor,
        )
        if self.unity_id is not None:
            view.unity(self.ranking_id, self.unity_id)
        if self.competitor_id is not None:
            view.competitor(self.competitor_id)
        if self.competition_id is not None:
            view.competition(self.competition_id)
        bounds = Range(first=self.first, last=self.last, since=self.since, until=self.until)
        return asked, await moments.span(view.past, view.live.tournament_id, view.live.head.sequence, bounds)


def _entry(line: AnyLine) -> HistoryLine:
    if isinstance(line, DeclarationLine):
        return HistoryLine(
            sequence=line.sequence,
            recorded_at=line.recorded_at,
            actor=line.actor,
            criteria=criteria_shape(line.criteria),
        )
    return HistoryLine(
        sequence=line.sequence,
        recorded_at=line.recorded_at,
        actor=line.actor,
        competitor_id=line.competitor_id,
        unity_id=line.unity_id,
        competition_id=line.competition_id,
        delta=line.delta,
        result=line.result,
        total=line.total,
        position_before=line.position_before,
        position_after=line.position_after,
        reverses=line.reverses,
        reversal=line.reversal,
        reason=line.reason,
    )
