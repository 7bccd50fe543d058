"""The classifications of one tournament, as its live is: computed as far as they are asked for.

What is computed may take many turns, in which others fold. So it is counted from the ranking as it was when it was
asked for: what changes meanwhile is noted first, with what was there before. Nothing is copied for that, however large
the ranking is.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from engine.domain import events
from engine.domain.events import Event
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import Board, Ranking
from projections.board.classification import Classified, Counted, in_force
from projections.board.classified_lines import ClassifiedLines, leading
from projections.live.orders import Orders

KNOWN_RANKINGS_MAX: Final = 16
"""Rankings of one tournament whose computed lines are kept."""
KNOWN_LINES_MAX: Final = 200_000
"""Lines that are kept for one tournament; those of the ranking last asked for stay, even beyond this."""
_LINE_BYTES: Final = 250


class HeldCounts(Counted):
    """What the values of a ranking are counted from, as it is when this is made."""

    def __init__(self, board: Board, ranking_id: RankingId) -> None:
        ranking = board.rankings[ranking_id]
        super().__init__(board, ranking)
        self._ranking_id = ranking_id
        self._unities = dict(ranking.unities)  # one whose sort changes is replaced there
        self._noted: dict[tuple[UnityId, CompetitorId], tuple[int, list[tuple[CompetitionId, int]]]] = {}
        self._board = board

    def note(self, event: Event) -> None:
        """Notes what will change. Call it before `event` is folded into the board."""
        match event:
            case events.PointsAdded() | events.PointsReversed() if event.ranking_id == self._ranking_id:
                for delta in event.deltas:
                    key = delta.unity_id, delta.competitor_id
                    if delta.unity_id in self._unities and key not in self._noted:
                        self._noted[key] = super().total(*key), super().sums(*key)
            case events.CompetitionVoided() | events.CompetitionUnvoided():
                if self._voided is self._board.voided:
                    self._voided = frozenset(self._voided)

    def total(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        noted = self._noted.get((unity_id, competitor_id))
        return super().total(unity_id, competitor_id) if noted is None else noted[0]

    def sums(self, unity_id: UnityId, competitor_id: CompetitorId) -> list[tuple[CompetitionId, int]]:
        noted = self._noted.get((unity_id, competitor_id))
        return super().sums(unity_id, competitor_id) if noted is None else noted[1]


class _Known(Struct):
    """The lines that were computed of a ranking, for as long as its `stamp` is the same."""

    stamp: tuple[Sequence, tuple[int, ...]]
    lines: dict[int, list[Classified]]


class Classifications:
    """`board` returns the board as it is now; `orders` are those of the same tournament."""

    def __init__(self, board: Callable[[], Board], orders: Orders) -> None:
        self._board = board
        self._orders = orders
        self._known: dict[RankingId, _Known] = {}
        self._asking: WeakValueDictionary[RankingId, asyncio.Lock] = WeakValueDictionary()
        self.held: list[HeldCounts] = []
        """What computations that are under way count from: note every event there before it is folded."""

    def clear(self) -> None:
        """Forgets all lines. Call it when the board is replaced."""
        self._known.clear()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return _LINE_BYTES * sum(map(_lines, self._known.values()))

    @asynccontextmanager
    async def lines(self, ranking_id: RankingId) -> AsyncIterator[ClassifiedLines]:
        """The lines as they are when this is entered: ask before giving way to others. One question at a time is let in
        where more than totals decide, so that the next finds what the last one has computed."""
        asking: AbstractAsyncContextManager[None] = nullcontext()
        if not self._by_totals_alone(ranking_id):
            asking = self._asking.setdefault(ranking_id, asyncio.Lock())
        async with asking:
            order = None
            while (unity_ids := self._unity_ids(ranking_id)) and order is None:
                order = await self._orders.of(ranking_id, *unity_ids)
                if unity_ids != self._unity_ids(ranking_id):
                    order = None  # others were declared meanwhile
            board = self._board()
            ranking = board.rankings[ranking_id]
            held = HeldCounts(board, ranking_id)
            self.held.append(held)
            try:
                known = self._known_of(ranking_id, ranking)
                yield ClassifiedLines(held, in_force(ranking), ranking.participants, order, known)
            finally:
                self.held.remove(held)
                self._forget_most(ranking_id)

    def _by_totals_alone(self, ranking_id: RankingId) -> bool:
        criteria = in_force(self._board().rankings[ranking_id])
        return leading(criteria) == len(criteria)

    def _unity_ids(self, ranking_id: RankingId) -> tuple[UnityId, ...]:
        criteria = in_force(self._board().rankings[ranking_id])
        return tuple([criterion.unity_id for criterion in criteria[: leading(criteria)]])

    def _known_of(self, ranking_id: RankingId, ranking: Ranking) -> dict[int, list[Classified]]:
        """Versions tell of every delta and of every change of the list; `revised` of the criteria and sorts."""
        stamp = ranking.revised, tuple([unity.version for unity in ranking.unities.values()])
        known = self._known.pop(ranking_id, None)
        if known is None or known.stamp != stamp:
            known = _Known(stamp, {})
        self._known[ranking_id] = known
        return known.lines

    def _forget_most(self, ranking_id: RankingId) -> None:
        while len(self._known) > 1 and (
            len(self._known) > KNOWN_RANKINGS_MAX or sum(map(_lines, self._known.values())) > KNOWN_LINES_MAX
        ):
            oldest = next(iter(self._known))
            if oldest == ranking_id:
                break
            del self._known[oldest]


def _lines(known: _Known) -> int:
    return sum(map(len, known.lines.values()))
