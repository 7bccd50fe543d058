"""The points that expire by a time: read from the log, and summed.

No state records when points expire. Subtracting the age at which points expire from the last expiry and from the new
one gives an interval: the points that are due were recorded, or took place, in it. So no others are read.
"""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from engine.domain.counting import KnownResults, LacksResults
from engine.domain.events import Event, Points, Recorded
from engine.domain.expirations import Expiration, Redating
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId, RankingId
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.board.expiring import expiring_intervals
from projections.live.caused import take_caused
from projections.live.given_results import read_results
from projections.live.kept import Update, unfollowed
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries


class Due(Struct, frozen=True):
    """The expiry of all points that are due by `until`: what to record, and what that was `summed` from."""

    until: datetime
    summed: Expiration
    events: tuple[Event, ...]


async def read_due(live_pool: LivePool, live: LiveTournament, until: datetime, before: Due | None = None) -> Due:
    """The expiry, in the open rankings. The points are summed as they are read, with pauses for other work: they may be
    millions. `before`: the same by an earlier time, which is not used any more; only what is due later is read. (The
    clock may have been put back, so that its time is a later one.) Raises TournamentStopped, HistoryReplaced,
    DatabaseUnavailable and Overtaken."""
    open_ones = {one for one, ranking in live.board.rankings.items() if ranking.closed_at is None}
    if before is not None and before.until <= until:
        began, summed = before.until, before.summed
        summed.extend(until)
    else:
        began, summed = live.expired_until, Expiration(live.board, live.boundaries[0], until, open_ones)
    await _take_all(summed, live, live_pool, began, until, open_ones)
    return Due(until, summed, await _decided(summed, live, live_pool))


def update_of_due(_: Recorded) -> Update[Due]:
    """How an event updates what `read_due` returned: any may change what is due, or its totals."""
    return unfollowed


class Dated:
    """What expires, or counts again, at other dates: the lines `summed` of what is read, and what was `decided` of
    them."""

    def __init__(self, summed: Expiration | Redating) -> None:
        self.decided: tuple[Event, ...] | None = None
        self._summed = summed
        self._with_results: set[RankingId] = set()

    def take(self, recorded: Recorded) -> None:
        """Takes points that may be concerned."""
        self.decided = None
        if isinstance(recorded.event, Points) and recorded.event.given_results:
            self._with_results.add(recorded.event.ranking_id)
        self._summed.take(recorded)

    def outdate(self, points: Points) -> None:
        """Other points were folded, perhaps results in a ranking in which there are some here."""
        if (points.results or points.totals) and points.ranking_id in self._with_results:
            self.decided = None

    def events(self, known: KnownResults) -> tuple[Event, ...]:
        """What to record with the new date. Takes long only if there was something to take since it was read, or if
        results have changed. Raises Conflict and LacksResults."""
        if isinstance(self._summed, Redating):
            self._summed.refuse_closed()
        if self.decided is None:
            self.decided = finished(self._summed.decided(known))
        return self.decided


async def read_reopened(live_pool: LivePool, live: LiveTournament, ranking_id: RankingId, until: datetime) -> Dated:
    """The expiry of all points of a closed ranking that are due by `until`, for when it is reopened. Raises as
    `read_due`."""
    began, expiration = live.expired_until, Expiration(live.board, until, until, [ranking_id])
    await _take_all(expiration, live, live_pool, began, until, [ranking_id])
    dated = Dated(expiration)
    dated.decided = await _decided(expiration, live, live_pool)
    return dated


def update_of_reopened(ranking_id: RankingId, recorded: Recorded) -> Update[Dated] | None:
    """The change that an event makes in what `read_reopened` returned. In a closed ranking, no points start or stop
    counting, and only another date changes when they expire."""
    event = recorded.event
    is_reopened = event.opens_or_closes and getattr(event, "ranking_id", None) == ranking_id
    return unfollowed if is_reopened or event.redates else None


async def read_redated(
    live_pool: LivePool,
    live: LiveTournament,
    competition_id: CompetitionId,
    date: datetime | None,
    until: datetime,
) -> Dated:
    """What expires, or counts again, when a competition gets another date, in a state in which everything due by
    `until` has expired. Raises as `read_due`."""
    redating = Redating(live.board, competition_id, date, until)
    dated = Dated(redating)
    await take_caused(live_pool, live, competition_id, dated.take)
    dated.decided = await _decided(redating, live, live_pool)
    return dated


def update_of_redated(competition_id: CompetitionId, recorded: Recorded) -> Update[Dated] | None:
    """The change that an event makes in what `read_redated` returned."""
    event = recorded.event
    is_about_it = getattr(event, "competition_id", None) == competition_id
    if event.opens_or_closes or (event.structural and is_about_it):
        return unfollowed
    if not isinstance(event, Points):
        return None
    return (lambda dated: dated.take(recorded)) if is_about_it else lambda dated: dated.outdate(event)


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


async def _decided(summed: Expiration | Redating, live: LiveTournament, live_pool: LivePool) -> tuple[Event, ...]:
    """The events of the sums. Reads results that are lacking."""
    tries = Tries()
    while True:
        try:
            return await in_time_slices(summed.decided(live.results))
        except LacksResults as lack:
            await read_results(live_pool, live, lack.ranking_ids)
            tries.again()
