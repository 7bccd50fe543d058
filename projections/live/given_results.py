"""The results of rankings in which results are reversed or expire."""

from collections.abc import Iterable
from contextlib import aclosing
from datetime import datetime
from functools import partial

from engine.domain.events import Points, Recorded
from engine.domain.lines import Rule, rule_of
from engine.domain.terms import RankingId, Sequence
from engine.process.time_slices import TimeSlice
from projections.board.board import Board, note_results
from projections.board.results import Results
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament


async def read_results(live_pool: LivePool, live: LiveTournament, ranking_ids: Iterable[RankingId]) -> None:
    """Returns when `live.results` has those of these rankings. Raises the errors of `LivePool.chunks`, and
    Overtaken."""
    for one in ranking_ids:
        await live.results.of(one).current(partial(_read, live_pool, live, one))


async def _read(live_pool: LivePool, live: LiveTournament, ranking_id: RankingId) -> Results:
    board, rule, time_slice = live.board, rule_of(live.board, ranking_id), TimeSlice()
    results = Results(board.rankings[ranking_id].unities)
    now = rule.by(live.expired_until) if live.expires else None
    async with aclosing(live_pool.chunks(live, Sequence(0))) as chunks:
        async for events in chunks:
            for recorded in events:
                _take(board, results, rule, recorded, now)
                if time_slice.over:
                    await time_slice.give_way()
    return results


def _take(board: Board, results: Results, rule: Rule, recorded: Recorded, now: datetime | None) -> None:
    """Takes the next event of the log: adds its results that count by the rule, and have not expired by `now` (None:
    nothing expires)."""
    event = recorded.event
    if isinstance(event, Points) and event.given_results and event.ranking_id == rule.ranking_id:
        note_results(board, results, recorded.sequence, recorded.recorded_at, event)
        counting = [line.delta for line in rule.of(recorded) if line.is_result]
        if len(counting) < len(event.given_results):
            results.leave_out(recorded.sequence, frozenset(counting).__contains__)
        if now is not None:
            results.expire(now)
