"""The results of the rankings in which some were reversed: read from the log once, then kept current by the fold."""

from collections import deque
from collections.abc import Iterable
from contextlib import aclosing

from engine.domain.events import Recorded
from engine.domain.terms import RankingId, Sequence
from engine.process.time_slices import TimeSlice
from projections.board.board import give_results
from projections.board.results import Results, following
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament


async def read_results(live_pool: LivePool, live: LiveTournament, ranking_ids: Iterable[RankingId]) -> None:
    """Returns when the board has the results of these rankings. Raises as `LivePool.chunks`."""
    for ranking_id in ranking_ids:
        await _read_results_of(live_pool, live, ranking_id)


async def _read_results_of(live_pool: LivePool, live: LiveTournament, ranking_id: RankingId) -> None:
    async with live.reading_results:
        while (board := live.board).rankings[ranking_id].results is None:
            results, unities, time_slice = Results(), board.rankings[ranking_id].unities, TimeSlice()
            missed: deque[Recorded] = deque()
            follow = missed.append
            live.followers.append(follow)
            try:
                async with aclosing(live_pool.chunks(live, Sequence(0))) as chunks:
                    async for events in chunks:
                        for _ in following(results, unities, ranking_id, events):
                            if time_slice.over:
                                await time_slice.give_way()
                while missed:
                    for _ in following(results, unities, ranking_id, (missed.popleft(),)):
                        pass
                    if time_slice.over:
                        await time_slice.give_way()
            finally:
                live.followers.remove(follow)
            if board is live.board:
                give_results(board, ranking_id, results)
