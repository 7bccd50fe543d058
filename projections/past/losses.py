"""Points to defend: the points that competitors will lose in a unity whose points expire, if nothing else happens.

Pure.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from engine.domain.events import Delta, Points, Recorded, origin
from engine.domain.lines import declared_date, rule_of
from engine.domain.marks import mark_after
from engine.domain.terms import CompetitorId, Counts, RankingId, Sequence, UnityId
from projections.board.board import Board

_EVER: Final = datetime.max.replace(tzinfo=UTC)


class Losses:
    """The losses of some competitors after `now`, up to `until`. Use `follow` for all events of the interval
    `took_place`. `totals`: stored totals as of `now`; afterwards, those as of `until`. `first`: for each competitor who
    loses points, when the first of them expire."""

    def __init__(
        self,
        board: Board,
        ranking_id: RankingId,
        unity_id: UnityId,
        *,
        now: datetime,
        until: datetime,
        totals: Mapping[CompetitorId, int],
    ) -> None:
        self._board, self._ranking_id, self._unity_id = board, ranking_id, unity_id
        self._now, self._until = now, until
        self._rule = rule_of(board, ranking_id)
        of_results = board.rankings[ranking_id].unities[unity_id].counts_results
        self.totals = {one: 0 if of_results else total for one, total in totals.items()}
        self._last: dict[CompetitorId, Sequence] = {}  # the event of the last result
        self.first: dict[CompetitorId, datetime] = {}

    @property
    def took_place(self) -> tuple[datetime, datetime]:
        """The interval in which the points that change totals took place: later than the first time, not later than the
        second."""
        unity = self._board.rankings[self._ranking_id].unities[self._unity_id]
        assert unity.expiry is not None
        after = unity.expiry.over_up_to(self._now)
        return after, _EVER if unity.counts_results else unity.expiry.over_up_to(self._until)

    def follow(self, recorded: Recorded, *, dated: bool) -> None:
        """Takes the event if its points have a declared date and `dated`, or neither."""
        event = recorded.event
        if isinstance(event, Points) and (declared_date(self._board, event.competition_id) is not None) == dated:
            for line in self._rule.of(recorded, self._now):
                its = line.delta
                if its.unity_id == self._unity_id and its.competitor_id in self.totals and line.expires_at:
                    self._take(origin(recorded.sequence, event), its, line.expires_at)

    def _take(self, sequence: Sequence, line: Delta, until: datetime) -> None:
        unity, one = self._board.rankings[self._ranking_id].unities[self._unity_id], line.competitor_id
        if until <= self._until:
            self.first[one] = min(until, self.first.get(one, until))
        if not unity.counts_results:
            if until <= self._until:
                self.totals[one] -= line.amount
        elif until > self._until and (unity.counts is not Counts.LAST or sequence >= self._last.get(one, 0)):
            self._last[one] = sequence
            self.totals[one] = mark_after(self.totals[one], line.amount, unity.counts, unity.sort)
