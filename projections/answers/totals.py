"""Totals right after an event, whatever was recorded later."""

import asyncio
from collections.abc import Collection, Mapping

from msgspec import Struct

from engine.database.pool import Database
from engine.domain.terms import CompetitorId, Counts, Sequence, Sort, TournamentId, UnityId
from projections.past import moments
from projections.past.past import Past


class TotalsThen(Struct, frozen=True):
    """Stored totals; 0 for those of a unity that did not exist. `of_results`: how its unities count results."""

    totals: Mapping[tuple[UnityId, CompetitorId], int]
    of_results: Mapping[UnityId, tuple[Counts, Sort]]


class PastTotals:
    """Reads them from boards of the past, one at a time, because a board may be large."""

    def __init__(self, database: Database) -> None:
        self._past = Past(database)
        self._loading = asyncio.Lock()

    async def after(
        self, tournament_id: TournamentId, at: Sequence, named: Collection[tuple[UnityId, CompetitorId]]
    ) -> TotalsThen:
        """The totals `named` after the event `at`. Raises as `Past`."""
        async with self._loading:
            board = await moments.board_after(self._past, tournament_id, at, at)
        unities = {id_: unity for ranking in board.rankings.values() for id_, unity in ranking.unities.items()}
        return TotalsThen(
            totals={key: unities[key[0]].totals.get(key[1]) if key[0] in unities else 0 for key in named},
            of_results={id_: (unity.counts, unity.sort) for id_, unity in unities.items() if unity.counts_results},
        )
