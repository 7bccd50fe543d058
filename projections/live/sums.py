"""The sums of competitions of the rankings that requests needed them of."""

from collections.abc import Callable, Coroutine
from typing import Any

from engine.domain.terms import RankingId, Sequence
from projections.board.board import what_counts
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.live.tournament import LiveTournament

ReadSums = Callable[[Sequence, WhatCounts], Coroutine[Any, Any, CompetitionSums]]
"""Reads the sums of a ranking from the log as they were after an event, of the lines that count then."""


async def read_sums(live: LiveTournament, ranking_id: RankingId, read: ReadSums) -> None:
    """Looks up the ranking's sums of competitions in `live.sums`, unless they are known. An event that is folded
    meanwhile may drop them again. Raises the errors of `read`."""

    def begun() -> Coroutine[Any, Any, CompetitionSums]:
        return read(live.head.sequence, what_counts(live.board, ranking_id, live.expired_by))

    await live.sums.of(ranking_id).look_up(begun)
