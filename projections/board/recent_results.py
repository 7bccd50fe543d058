"""Form: the points that competitors got in each of their last competitions, in one unity.

THE ORDER. Competitions are in the order in which they took place: by their dates; without one, a competition took place
when its first points were recorded. Competitions with the same time are in the order of their creation.

A competition belongs to a competitor if a delta of theirs that is not undone names it, even if the sum is 0. A voided
competition belongs to nobody. Neither does one whose own event was set aside, because its time is unknown.

Pure.
"""

from collections.abc import Iterable
from datetime import datetime
from heapq import nlargest

from msgspec import Struct

from engine.domain.terms import CompetitionId, CompetitorId, UnityId
from projections.board.board import Board, Competition
from projections.board.competition_sums import CompetitionSums


class CompetitionSum(Struct, frozen=True, gc=False):
    """A competitor's points in a competition."""

    competition_id: CompetitionId
    sum: int


def looked_at(sums: CompetitionSums, unity_id: UnityId, competitor_ids: Iterable[CompetitorId]) -> int:
    """The number of sums examined for the recent results of the competitors, including those of voided competitions."""
    return sum([sums.number(unity_id, competitor_id) for competitor_id in competitor_ids])


class Forms:
    """The `last` sums of each competitor, or fewer if there are fewer, in the state in which this was made. Call
    `look_at` with all `competitions` first."""

    def __init__(
        self, board: Board, sums: CompetitionSums, unity_id: UnityId, competitor_ids: Iterable[CompetitorId], last: int
    ) -> None:
        self._sums, self._unity_id, self._last = sums, unity_id, last
        self._taken = {competitor_id: sums.of(unity_id, competitor_id) for competitor_id in competitor_ids}
        self._places: dict[CompetitionId, tuple[datetime, int]] = {}  # no two competitions have the same place
        named = set[CompetitionId]().union(*[competition_ids for competition_ids, _ in self._taken.values()])
        self.competitions = board.competitions.held(named)

    def look_at(self, competitions: Iterable[tuple[CompetitionId, Competition]]) -> None:
        """Takes some of the competitions."""
        for competition_id, competition in competitions:
            if competition.voided_at is None:
                took_place = self._sums.took_place(competition_id, competition.date)
                self._places[competition_id] = took_place, competition.number

    def of(self, competitor_id: CompetitorId) -> list[CompetitionSum]:
        """The sums of one of the competitors, newest last."""
        its, places = zip(*self._taken[competitor_id], strict=True), self._places
        newest = nlargest(self._last, ((places[one], one, amount) for one, amount in its if one in places))
        return [CompetitionSum(one, self._sums.shown(self._unity_id, amount)) for _, one, amount in reversed(newest)]
