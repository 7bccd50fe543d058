"""The points that expire by a time: read from the log, and summed.

No state records when points expire. Subtracting the age at which points expire from the last expiry and from the new
one gives an interval: the points that are due were recorded, or took place, in it. So no others are read.
"""

from collections import deque
from collections.abc import AsyncIterator, Collection
from datetime import datetime

from engine.domain.counting import LacksResults, declared_date, now_of
from engine.domain.events import CompetitionChanged, Event, PointsAdded, Recorded
from engine.domain.expirations import Expiration
from engine.domain.terms import RankingId, Sequence
from engine.log.heads import Head
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.board.expiring import dated_between
from projections.live.given_results import read_results
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament


class DuePoints:
    """The expiry, in the open rankings, of all points that are due by `until`. `events`: what to record; valid while
    `is_current`. The points are summed as they are read, with pauses for other work: they may be millions. `before`:
    the same by an earlier time; while it is current, only what is due later is read. (The clock may have been put back,
    so that its time is a later one.)"""

    def __init__(self, live: LiveTournament, until: datetime, before: "DuePoints | None" = None) -> None:
        self.until = until
        self.events: tuple[Event, ...] = ()
        self._live = live
        self._head: Head | None = None
        self._before = before
        self._expiration: Expiration | None = None

    @property
    def is_current(self) -> bool:
        """Whether `look_up` has ended, and the live has folded nothing since it began."""
        return self._head == self._live.head

    async def look_up(self, live_pool: LivePool) -> None:
        """Reads and sums the points. Raises TournamentStopped, HistoryReplaced and DatabaseUnavailable."""
        live, time_slice = self._live, TimeSlice()
        head, self._head = live.head, None
        open_ones = {one for one, ranking in live.board.rankings.items() if ranking.closed_at is None}
        before, self._before = self._before, None
        if before is not None and before._expiration is not None and before.is_current and before.until <= self.until:
            began, expiration = before.until, before._expiration
            expiration.extend(self.until)
        else:
            began, expiration = live.expired_until, Expiration(live.board, live.boundaries[0], self.until)
        self._expiration = expiration
        async for recorded, points in _given_between(live, live_pool, began, self.until, open_ones):
            expiration.take(recorded.sequence, recorded.recorded_at, points)
            if time_slice.over:
                await time_slice.give_way()
        while live.head == head:
            try:
                self.events = await in_time_slices(expiration.decided())
            except LacksResults as lack:
                await read_results(live_pool, live, lack.ranking_ids)
            else:
                self._head = head
                return


class ReopenedPoints:
    """The points in a closed ranking that may be due by `until`, when it is reopened, kept current until `close`.
    `stale`: a date has changed since `look_up`, so the points must be looked up again."""

    def __init__(self, live: LiveTournament, ranking_id: RankingId, until: datetime) -> None:
        self.until = until
        self.given: dict[Sequence, tuple[datetime, PointsAdded]] = {}
        self.stale = False
        self._live = live
        self._ranking_id = ranking_id
        live.followers.append(self._follow)

    async def look_up(self, live_pool: LivePool) -> None:
        """Reads the past. Raises TournamentStopped, HistoryReplaced and DatabaseUnavailable."""
        began = self._live.expired_until
        async for recorded, points in _given_between(self._live, live_pool, began, self.until, [self._ranking_id]):
            self.given[recorded.sequence] = recorded.recorded_at, points

    def close(self) -> None:
        """Stops following. Idempotent."""
        if self._follow in self._live.followers:
            self._live.followers.remove(self._follow)

    def _follow(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, CompetitionChanged):
            self.stale = self.stale or event.structural
        elif isinstance(event, PointsAdded) and event.ranking_id == self._ranking_id:
            self.given[recorded.sequence] = recorded.recorded_at, event


async def _given_between(
    live: LiveTournament, live_pool: LivePool, began: datetime, until: datetime, ranking_ids: Collection[RankingId]
) -> AsyncIterator[tuple[Recorded, PointsAdded]]:
    """All points in these rankings, up to the live's head, that may expire after `began` and by `until`; each once:
    those of competitions with a declared date by that, the others by when they were recorded."""
    upto = live.head.sequence
    for after, by in _intervals(live, began, until, ranking_ids):
        dated = await in_time_slices(dated_between(live.board, after, by))
        async for recorded in live_pool.recorded_between(live, after, by, upto):
            points = _expiring(live, recorded, ranking_ids)
            if points is not None and declared_date(live.board, points.competition_id) is None:
                yield recorded, points
        pending = deque((one, Sequence(0)) for one in dated)
        async for recorded in live_pool.points_of_competitions(live, pending, upto):
            if (points := _expiring(live, recorded, ranking_ids)) is not None:
                yield recorded, points


def _expiring(live: LiveTournament, recorded: Recorded, ranking_ids: Collection[RankingId]) -> PointsAdded | None:
    event = recorded.event
    if not isinstance(event, PointsAdded) or event.ranking_id not in ranking_ids:
        return None
    return event if live.board.rankings[event.ranking_id].special else None


def _intervals(
    live: LiveTournament, began: datetime, until: datetime, ranking_ids: Collection[RankingId]
) -> list[tuple[datetime, datetime]]:
    """The intervals in which the due points took place: later than the first time, not later than the second. They do
    not overlap."""
    found = set()
    for ranking_id, expiry in live.board.expiries.values():
        if ranking_id in ranking_ids:
            over = expiry.over_up_to(now_of(live.board.rankings[ranking_id], began))
            found.add((over, expiry.over_up_to(until)))
    apart: list[tuple[datetime, datetime]] = []
    for after, by in sorted(one for one in found if one[0] < one[1]):
        if apart and after < apart[-1][1]:
            apart[-1] = apart[-1][0], max(by, apart[-1][1])
        else:
            apart.append((after, by))
    return apart
