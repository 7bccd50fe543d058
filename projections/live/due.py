"""The points that expire by a time: read from the log, and summed.

No state records when points expire. Subtracting the age at which points expire from the last expiry and from the new
one gives an interval: the points that are due were recorded, or took place, in it. So no others are read.
"""

from collections.abc import Collection
from datetime import datetime

from engine.domain.counting import LacksResults
from engine.domain.events import Event, Points, Recorded
from engine.domain.expirations import Expiration, Redating
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId, RankingId
from engine.log.heads import Head
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.board.expiring import expiring_intervals
from projections.live.caused import PointsFollower
from projections.live.given_results import read_results
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries


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
        """Reads and sums the points. Raises TournamentStopped, HistoryReplaced, DatabaseUnavailable and Overtaken."""
        live, tries = self._live, Tries()
        head, self._head = live.head, None
        open_ones = {one for one, ranking in live.board.rankings.items() if ranking.closed_at is None}
        before, self._before = self._before, None
        if before is not None and before._expiration is not None and before.is_current and before.until <= self.until:
            began, expiration = before.until, before._expiration
            expiration.extend(self.until)
        else:
            began = live.expired_until
            expiration = Expiration(live.board, live.boundaries[0], self.until, open_ones)
        self._expiration = expiration
        await _take_all(expiration, live, live_pool, began, self.until, open_ones)
        while live.head == head:
            if (decided := await _decided(expiration, live, live_pool)) is not None:
                self.events, self._head = decided, head
                return
            tries.again()


class ReopenedPoints:
    """The expiry of all points of a closed ranking that are due, for when it is reopened. `events`: what to record with
    the reopening; valid while `is_current`, until `close`. They stay valid longer than those of DuePoints: in a closed
    ranking, no points start or stop counting, and only another date changes when they expire."""

    def __init__(self, live: LiveTournament, ranking_id: RankingId) -> None:
        self.events: tuple[Event, ...] = ()
        self._live = live
        self._until = live.boundaries[0]
        self._ranking_id = ranking_id
        self._stale = False
        live.followers.append(self._follow)

    @property
    def is_current(self) -> bool:
        """Whether `look_up` was about the present boundary, and nothing has changed since."""
        return not self._stale and self._until == self._live.boundaries[0]

    async def look_up(self, live_pool: LivePool) -> None:
        """Reads and sums the points. Raises as `DuePoints.look_up`."""
        live, tries = self._live, Tries()
        its = [self._ranking_id]
        began, expiration = live.expired_until, Expiration(live.board, self._until, self._until, its)
        await _take_all(expiration, live, live_pool, began, self._until, its)
        while not self._stale:
            if (decided := await _decided(expiration, live, live_pool)) is not None:
                self.events = decided
                return
            tries.again()

    def close(self) -> None:
        """Stops following. Idempotent."""
        if self._follow in self._live.followers:
            self._live.followers.remove(self._follow)

    def _follow(self, recorded: Recorded) -> None:
        event = recorded.event
        if event.redates or (event.opens_or_closes and getattr(event, "ranking_id", None) == self._ranking_id):
            self._stale = True


class RedatedPoints(PointsFollower):
    """What expires, or counts again, when a competition gets another date: `events`. Valid while `is_current`, until
    `close`."""

    def __init__(self, live: LiveTournament, competition_id: CompetitionId, started_at: datetime | None) -> None:
        super().__init__(live, competition_id)
        self._until = live.boundaries[0]
        self._redating = Redating(live.board, competition_id, started_at, self._until)
        self._with_results: set[RankingId] = set()  # rankings in which the competition gave results
        self._decided: tuple[Event, ...] | None = None
        self._outdated = False
        self._stale = False

    @property
    def is_current(self) -> bool:
        """Whether `look_up` was about the present boundary, and only points have been added since."""
        return not self._stale and self._until == self._live.boundaries[0]

    @property
    def events(self) -> tuple[Event, ...]:
        """What to record with the new date. Takes long only if there was something since `look_up`: points of the
        competition, or a change of results in a ranking in which it gave results. Raises Conflict and LacksResults."""
        self._redating.refuse_closed()
        if self._decided is None or self._outdated:
            self._decided, self._outdated = finished(self._redating.decided()), False
        return self._decided

    async def look_up(self, live_pool: LivePool) -> None:
        """Reads and sums the points. Raises as `DuePoints.look_up`."""
        tries = Tries()
        await super().look_up(live_pool)
        while True:
            self._look_at_since()
            self._since = []  # or the sums would change while they are being read
            self._outdated = False
            self._decided = await _decided(self._redating, self._live, live_pool)
            if self._decided is not None:
                break
            tries.again()
        self._look_at_since()

    def _follow(self, recorded: Recorded) -> None:
        event = recorded.event
        if event.opens_or_closes or (
            event.structural and getattr(event, "competition_id", None) == self.competition_id
        ):
            self._stale = True
        elif isinstance(event, Points) and event.ranking_id in self._with_results:
            self._outdated |= bool(event.results or event.totals)
        super()._follow(recorded)

    def _take(self, recorded: Recorded, points: Points) -> None:
        self._outdated = True
        if points.results:
            self._with_results.add(points.ranking_id)
        self._redating.take(recorded)


async def _take_all(
    expiration: Expiration,
    live: LiveTournament,
    live_pool: LivePool,
    began: datetime,
    until: datetime,
    ranking_ids: Collection[RankingId],
) -> None:
    """Passes all points in these rankings, up to the live's head, that may expire after `began` and by `until`, to the
    expiration, with pauses for other work."""
    time_slice = TimeSlice()
    for after, by in expiring_intervals(live.board, began, until, ranking_ids):
        async for events in live_pool.took_place_between(live, after, by):
            for recorded in events:
                expiration.take(recorded)
                if time_slice.over:
                    await time_slice.give_way()


async def _decided(
    expiration: Expiration | Redating, live: LiveTournament, live_pool: LivePool
) -> tuple[Event, ...] | None:
    """The events of the expiration; None: results were lacking and have been read, so it must be decided again."""
    try:
        return await in_time_slices(expiration.decided())
    except LacksResults as lack:
        await read_results(live_pool, live, lack.ranking_ids)
        return None
