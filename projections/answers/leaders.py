"""The leaders of a unity and their reigns, by the log's clock and by the world's."""

from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from engine.domain.terms import FIRST_TIME, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.lookup import unity_of
from projections.answers.view import Question, View
from projections.answers.windows import refuse_several
from projections.past import folds
from projections.past.leaders import (
    ClockDifference,
    PublishedLeaders,
    Reign,
    TimeAtTop,
    TrueLeaders,
    differences,
    times_at_top,
)
from projections.past.moments import AtSequence, AtTime, Moment

REIGNS_DEFAULT: Final = 100
REIGNS_MAX: Final = 1_000
"""Reigns of one page."""
TOLD_MAX: Final = 100
"""Competitors whose time at the top is listed, and spans in which the clocks differ."""


ClockName = Literal["log", "world"]


class Leaders(Struct, frozen=True, kw_only=True):
    """The leaders by the requested clock, up to the time `until`; null: there are no points. `lines`: the total number
    of reigns. `times`: those of the competitors that led longest; `led`: how many led at all. `differences`: the last
    ones; `differing`: how many there are."""

    unity_id: UnityId
    clock: ClockName
    sequence: Sequence
    recorded_at: datetime
    until: datetime | None
    lines: int
    reigns: list[Reign]
    led: int
    times: list[TimeAtTop]
    differing: int
    differences: list[ClockDifference]


class LeadersQuestion(Question[Leaders], frozen=True, kw_only=True):
    """A page of the reigns as known now or at a moment. `until`: only reigns up to this time, at which the last one
    ends; None: up to the last points. `offset`: the number of reigns before the page; None: the page has the last ones.

    Raises Unreadable if it names two moments; NotFound if there was no such moment or unity, and TooMuchWork.
    """

    ranking_id: RankingId
    unity_id: UnityId | None = None
    clock: ClockName = "log"
    at_sequence: Sequence | None = None
    at_time: datetime | None = None
    until: datetime | None = None
    offset: int | None = 0
    limit: int = REIGNS_DEFAULT

    def __post_init__(self) -> None:
        refuse_several(self, "The query names more than one moment", ("at_sequence", "at_time"))

    @property
    def _moment(self) -> Moment | None:
        """None: now."""
        if self.at_sequence is not None:
            return AtSequence(self.at_sequence)
        return None if self.at_time is None else AtTime(self.at_time)

    async def answered(self, view: View) -> Leaders:
        then = await view.at(self.ranking_id, self._moment)
        unity_id = unity_of(then.board, self.ranking_id, self.unity_id)
        tournament_id, ranking_id = view.live.tournament_id, self.ranking_id
        published = PublishedLeaders(tournament_id, ranking_id, unity_id, self.until)
        true = TrueLeaders(then.board, ranking_id, unity_id, self.until, then.recorded_at)
        await folds.leaders(view.past, tournament_id, then.sequence, published, true)
        reigns = (published if self.clock == "log" else true).reigns
        end = self.until or reigns.last
        led, times = await in_time_slices(times_at_top(reigns, end or FIRST_TIME, TOLD_MAX, view.zone))
        differing = await in_time_slices(differences(published.reigns, true.reigns))
        offset = max(len(reigns) - self.limit, 0) if self.offset is None else self.offset
        return Leaders(
            unity_id=unity_id,
            clock=self.clock,
            sequence=then.sequence,
            recorded_at=then.recorded_at,
            until=end,
            lines=len(reigns),
            reigns=reigns.run(offset, offset + self.limit),
            led=led,
            times=times,
            differing=len(differing),
            differences=differing[-TOLD_MAX:],
        )
