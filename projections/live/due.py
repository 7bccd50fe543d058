"""The points that expire by a time: read from the log, then kept current until they are judged.

No state records when points expire. Subtracting the age at which points expire from the last expiry and from the new
one gives an interval: the points that are due were recorded, or took place, in it. So few events are read.
"""

from collections import deque
from collections.abc import Iterable
from datetime import datetime

from engine.domain.counting import now_of
from engine.domain.events import CompetitionChanged, PointsAdded, Recorded
from engine.domain.terms import RankingId, Sequence
from engine.process.time_slices import in_time_slices
from projections.board.expiring import dated_between
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament

_Given = dict[Sequence, tuple[datetime, PointsAdded]]
"""Points by the sequence of their event, each with the time when it was recorded."""


class DuePoints:
    """The points that may expire by `until` in the open rankings and in `reopened`, which is still closed. `stale`: a
    date has changed since `look_up`, so the points must be looked up again."""

    def __init__(self, live: LiveTournament, until: datetime, reopened: RankingId | None = None) -> None:
        self.until = until
        self.given: _Given = {}
        self.stale = False
        self._live = live
        self._reopened = reopened
        live.followers.append(self._follow)

    async def look_up(self, live_pool: LivePool) -> None:
        """Reads the past. Raises TournamentStopped, HistoryReplaced and DatabaseUnavailable."""
        live = self._live
        upto = live.head.sequence
        for after, until in self._intervals():
            dated = await in_time_slices(dated_between(live.board, after, until))
            async for recorded in live_pool.recorded_between(live, after, until, upto):
                self._take(recorded)
            async for recorded in live_pool.points_of_competitions(
                live, deque((one, Sequence(0)) for one in dated), upto
            ):
                self._take(recorded)

    def lacking_results(self) -> list[RankingId]:
        """The rankings whose results must be read before these points are judged."""
        board = self._live.board
        due = {
            points.ranking_id
            for _, points in self.given.values()
            if not board.expiries.keys().isdisjoint([result.unity_id for result in points.results])
        }
        return [one for one in due if board.rankings[one].results is None]

    def close(self) -> None:
        """Stops following. Idempotent."""
        if self._follow in self._live.followers:
            self._live.followers.remove(self._follow)

    def _intervals(self) -> Iterable[tuple[datetime, datetime]]:
        """The intervals in which the due points took place: later than the first time, not later than the second."""
        found = set()
        for ranking_id, expiry in self._live.board.expiries.values():
            ranking = self._live.board.rankings[ranking_id]
            if ranking.closed_at is None or ranking_id == self._reopened:
                began = now_of(ranking, self._live.expired_until)
                found.add((expiry.over_up_to(began), expiry.over_up_to(self.until)))
        return [(after, until) for after, until in found if after < until]

    def _follow(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, CompetitionChanged):
            self.stale = self.stale or event.structural
        else:
            self._take(recorded)

    def _take(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, PointsAdded) and self._live.board.rankings[event.ranking_id].special:
            self.given[recorded.sequence] = recorded.recorded_at, event
