"""The lines of a ranking's history."""

from datetime import datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from engine.domain.terms import ActorId, CompetitionId, CompetitorId, RankingId, Reversal, Sender, Sequence, UnityId
from projections.answers.criteria import Criteria, criteria_shape
from projections.answers.lookup import refuse_unknown
from projections.answers.view import Question, View
from projections.past import moments, pages
from projections.past.history import AnyLine, DeclarationLine, Filter
from projections.past.moments import Range
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
    """A page of lines. `next`: the value of `after` for the following page."""

    lines: list[HistoryLine]
    next: str | None


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
        live, past = view.live, view.past
        asked = Filter(
            unity_id=self.unity_id,
            competitor_id=self.competitor_id,
            competition_id=self.competition_id,
            actor=self.actor,
        )
        refuse_unknown(live.board, self.ranking_id, asked)
        bounds = Range(first=self.first, last=self.last, since=self.since, until=self.until)
        span = await moments.span(past, live.tournament_id, live.head.sequence, bounds)
        page = await pages.page(
            past, live.tournament_id, self.ranking_id, span, asked=asked, after=self.after, limit=self.limit
        )
        return History(lines=[*map(entry_of, page.lines)], next=None if page.next is None else page.next.text)


def entry_of(line: AnyLine) -> HistoryLine:
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
