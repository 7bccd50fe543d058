"""The totals that messages of points show: those right after the event, whenever the message is sent.

The tables show later totals, so the deltas between are subtracted. A webhook that is far behind starts from a board of
the past instead. Either way, the totals are found once for a window of the log, and then change with its events. So a
message costs about as much for a webhook that is far behind as for any other.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection
from collections.abc import Sequence as Items
from contextlib import AbstractAsyncContextManager
from typing import Final

from asyncpg import Connection

from api.webhooks.message import MESSAGE_LINES_MAX, ChangedLine, deltas_of
from engine.domain.terms import CompetitorId, Sequence, TournamentId, UnityId
from engine.log import reading
from engine.log.reading import Head, Stored
from projections.past.past import Past
from projections.tables import tables

WINDOW_EVENTS_MAX: Final = 10_000
WINDOW_DELTAS_MAX: Final = 20_000
"""Events and deltas of a window. A single event may have more."""

_Key = tuple[UnityId, CompetitorId]


class TotalsWindow:
    """The totals after the event `at` of all competitors that messages name up to the event `end`."""

    def __init__(self, at: Sequence, end: Sequence, totals: dict[_Key, int]) -> None:
        self.at = at
        self.end = end
        self._totals = totals

    def lines_after(self, stored: Stored) -> list[ChangedLine]:
        """Moves on by this event, which follows. Returns the lines of its message."""
        deltas, lines = deltas_of(stored), []
        for delta in deltas:
            key = delta.unity_id, delta.competitor_id
            if key in self._totals:
                self._totals[key] += delta.amount
                lines.append(ChangedLine(delta.competitor_id, delta.unity_id, delta.amount, self._totals[key]))
        self.at = stored.sequence
        return lines if len(deltas) <= MESSAGE_LINES_MAX else []


class PastTotals:
    """Makes windows. `asking` gives the connection for one query."""

    def __init__(self, asking: Callable[[], AbstractAsyncContextManager[Connection]], past: Past) -> None:
        self._asking = asking
        self._past = past
        self._loading = asyncio.Lock()  # a board may be large

    async def window(
        self, tournament_id: TournamentId, after: Head, events: Items[Stored], upto: Sequence
    ) -> TotalsWindow:
        """The window that begins after the event `after`. `events` follow that; the log is read to the event `upto`,
        or as far as a window goes. Raises LogForked, and as `Past`."""
        named: set[_Key] = set()
        later: defaultdict[_Key, int] = defaultdict(int)
        end, deltas = after, 0
        while True:
            for stored in events:
                deltas += _count(stored, named, later)
                end = Head(stored.sequence, stored.digest)
            if end.sequence >= upto:
                async with self._asking() as connection:
                    upto, totals = await tables.totals(connection, tournament_id, named)
                if upto == end.sequence:
                    before = {key: total - later[key] for key, total in totals.items()}
                    return TotalsWindow(after.sequence, upto, before)
            is_full = end.sequence - after.sequence >= WINDOW_EVENTS_MAX or deltas >= WINDOW_DELTAS_MAX
            if is_full or end.sequence > upto:  # beyond: the tables are being made again
                before = await self._past_totals(tournament_id, after.sequence, named)
                return TotalsWindow(after.sequence, end.sequence, before)
            async with self._asking() as connection:
                most = min(reading.CHUNK_EVENTS_MAX, WINDOW_EVENTS_MAX)
                events = await reading.stored(connection, tournament_id, end, upto, events_max=most)

    async def _past_totals(self, tournament_id: TournamentId, at: Sequence, named: Collection[_Key]) -> dict[_Key, int]:
        async with self._loading:
            board = await self._past.board_after(tournament_id, at, at)
        unities = {id_: unity for ranking in board.rankings.values() for id_, unity in ranking.unities.items()}
        return {key: unities[key[0]].totals.get(key[1]) if key[0] in unities else 0 for key in named}


def _count(stored: Stored, named: set[_Key], later: defaultdict[_Key, int]) -> int:
    """Adds the deltas of this event to `later`, and the competitors that its message names to `named`. Returns how many
    deltas there are."""
    deltas = deltas_of(stored)
    for delta in deltas:
        later[delta.unity_id, delta.competitor_id] += delta.amount
    if len(deltas) <= MESSAGE_LINES_MAX:
        named.update([(delta.unity_id, delta.competitor_id) for delta in deltas])
    return len(deltas)
