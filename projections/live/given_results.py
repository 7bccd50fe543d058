"""The results of rankings in which results were reversed or expired: read from the log once, then kept current by the
fold."""

from collections import deque
from collections.abc import Iterable
from contextlib import aclosing
from datetime import datetime

from engine.domain.events import Points, Recorded
from engine.domain.lines import rule_of
from engine.domain.terms import RankingId, Sequence
from engine.process.time_slices import TimeSlice
from projections.board.board import Board, counts_after, fold_results, give_results
from projections.board.results import Results
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries


async def read_results(live_pool: LivePool, live: LiveTournament, ranking_ids: Iterable[RankingId]) -> None:
    """Returns when the board has the results of these rankings. Raises the errors of `LivePool.chunks`, and
    Overtaken."""
    for ranking_id in ranking_ids:
        await _read_results_of(live_pool, live, ranking_id)


async def _read_results_of(live_pool: LivePool, live: LiveTournament, ranking_id: RankingId) -> None:
    async with live.reading_results:
        tries = Tries()
        while (board := live.board).rankings[ranking_id].results is None:
            reading = _Reading(board, ranking_id, live.expired_until if live.expires else None)
            live.followers.append(reading.follow)
            try:
                await _read(reading, live_pool, live)
            finally:
                live.followers.remove(reading.follow)
            if board is live.board and not reading.is_stale:
                give_results(board, ranking_id, reading.results)
            else:
                tries.again()


async def _read(reading: "_Reading", live_pool: LivePool, live: LiveTournament) -> None:
    time_slice = TimeSlice()
    async with aclosing(live_pool.chunks(live, Sequence(0))) as chunks:
        async for events in chunks:
            for recorded in events:
                reading.take(recorded)
                if time_slice.over:
                    await time_slice.give_way()
    while reading.missed:
        reading.take_missed()
        if time_slice.over:
            await time_slice.give_way()


class _Reading:
    """Reads the counting results of a ranking while its board changes. `now`: the time up to which due points have
    expired; None: nothing expires. `missed`: the events that were folded meanwhile, each with whether reversed lines
    count afterwards. `is_stale`: a date by which results expire has changed."""

    def __init__(self, board: Board, ranking_id: RankingId, now: datetime | None) -> None:
        self.results = Results()
        self.is_stale = False
        self._board, self._ranking_id = board, ranking_id
        self._expires = board.rankings[ranking_id].expires
        self._now = None if now is None else rule_of(board, ranking_id).by(now)
        self.missed: deque[tuple[Recorded, bool]] = deque()

    def take(self, recorded: Recorded) -> None:
        """Takes the next of the events up to the head at which the reading began."""
        event = recorded.event
        if isinstance(event, Points) and event.results and event.ranking_id == self._ranking_id:
            fold_results(self._board, self.results, recorded, counts=True)
            rule = rule_of(self._board, self._ranking_id)
            counting = [line.delta for line in rule.of(recorded) if line.is_result]
            if len(counting) < len(event.results):
                self.results.leave_out(recorded.sequence, frozenset(counting).__contains__)
            if self._now is not None:
                self.results.expire(self._now)

    def follow(self, recorded: Recorded) -> None:
        """Notes an event that the board folds while the log is read."""
        event = recorded.event
        if event.redates:
            self.is_stale |= self._expires
        elif isinstance(event, Points) and event.ranking_id == self._ranking_id:
            self.missed.append((recorded, counts_after(self._board, event)))

    def take_missed(self) -> None:
        """Takes the first of those that were `missed`."""
        recorded, counts = self.missed.popleft()
        fold_results(self._board, self.results, recorded, counts=counts)
