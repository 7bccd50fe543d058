"""The classifications of one tournament at the state of its live, computed only as far as requests need them.

A computation may take many time slices, and events are folded between them. So it reads the ranking as it was at the
request, because each change first records the old values. Nothing is copied, however large the ranking is.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from collections.abc import Sequence as Items
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from engine.domain.events import Event, Points, Recorded, changed_by
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import Board, HasBoard, Ranking
from projections.board.classification import (
    ClassifiedGroup,
    Counted,
    by_totals_alone,
    has_tiebreaks,
    in_force,
    leading,
    needs_sums,
)
from projections.board.classified_lines import ClassifiedLines
from projections.board.competition_sums import CompetitionSums, SumsByCompetition
from projections.board.games import Games
from projections.board.order import OrderedLines
from projections.live.kept import KeptOfRankings
from projections.live.orders import Orders
from projections.live.tries import Tries

KNOWN_RANKINGS_MAX: Final = 16
"""Rankings of one tournament whose computed lines are kept."""
KNOWN_LINES_MAX: Final = 200_000
"""Lines that are kept for one tournament. Those of the last requested ranking stay even beyond this limit."""
_NONE: Final[SumsByCompetition] = ((), ())


class _Noted(Struct, frozen=True):
    """A competitor's total in a unity before it changed."""

    total: int
    sums: SumsByCompetition
    reached: int


class HeldCounts(Counted):
    """The source of a ranking's values, as it was when this object was created. If it has no `sums` of competitions,
    `give` those of that moment before they are read."""

    def __init__(
        self, board: Board, ranking_id: RankingId, sums: CompetitionSums | None, games: Games | None = None
    ) -> None:
        ranking = board.rankings[ranking_id]
        super().__init__(board, ranking, sums, games)
        self._took_place: Collection[CompetitionId] | None = None
        if has_tiebreaks(ranking):
            self.competitions = board.competitions.copy()
            if ranking.closed_at is not None and sums is not None:
                self._took_place = frozenset(sums.given)  # it may be reopened
        self._ranking_id = ranking_id
        self._unities = dict(ranking.unities)  # one whose sort changes is replaced there
        self._noted: dict[tuple[UnityId, CompetitorId], _Noted] = {}
        self._relisted: dict[CompetitionId, Items[CompetitorId]] = {}
        self._board = board
        self._given: CompetitionSums | None = None

    def give(self, sums: CompetitionSums) -> None:
        self._given = sums

    def took_place(self) -> Collection[CompetitionId] | None:
        if self._given is None or self._ranking.closed_at is None:
            return self._took_place
        return self._given.given

    def note(self, event: Event) -> None:
        """Notes what `event` will change. Call it before it is folded into the board."""
        if isinstance(event, Points):
            for delta in changed_by(event) if event.ranking_id == self._ranking_id else ():
                key = delta.unity_id, delta.competitor_id
                if delta.unity_id in self._unities and key not in self._noted:
                    self._noted[key] = self._as_now(*key)
        elif event.structural and "competition" in event.touches and self._voided is self._board.voided:
            self._voided = frozenset(self._voided)
        if event.relists is not None:
            self._relisted.setdefault(event.relists, super().participants(event.relists))

    def _as_now(self, unity_id: UnityId, competitor_id: CompetitorId) -> _Noted:
        total = super().total(unity_id, competitor_id)
        if self._sums is None:
            return _Noted(total, _NONE, 0)
        reached = super().reached(unity_id, competitor_id) if unity_id in self._sums.first else 0
        return _Noted(total, super().sums(unity_id, competitor_id), reached)

    def total(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        noted = self._noted.get((unity_id, competitor_id))
        return super().total(unity_id, competitor_id) if noted is None else noted.total

    def participants(self, competition_id: CompetitionId) -> Items[CompetitorId]:
        noted = self._relisted.get(competition_id)
        return super().participants(competition_id) if noted is None else noted

    def sums(self, unity_id: UnityId, competitor_id: CompetitorId) -> SumsByCompetition:
        if self._given is not None:
            return self._given.of(unity_id, competitor_id)
        noted = self._noted.get((unity_id, competitor_id))
        return super().sums(unity_id, competitor_id) if noted is None else noted.sums

    def reached(self, unity_id: UnityId, competitor_id: CompetitorId) -> int:
        if self._given is not None:
            return self._given.reached(unity_id, competitor_id)
        noted = self._noted.get((unity_id, competitor_id))
        return super().reached(unity_id, competitor_id) if noted is None else noted.reached


class _Known(Struct):
    """The computed lines of a ranking, valid as long as its `stamp` is the same."""

    stamp: tuple[Sequence, tuple[int, ...]]
    groups: dict[int, ClassifiedGroup]


class Classifications:
    """`owner` has its board; `orders` and `sums` belong to the same tournament."""

    def __init__(self, owner: HasBoard, orders: Orders, sums: KeptOfRankings[CompetitionSums]) -> None:
        self._owner = owner
        self._orders = orders
        self._sums = sums
        self._known: dict[RankingId, _Known] = {}
        self._games: dict[RankingId, Games] = {}
        self._asking: WeakValueDictionary[RankingId, asyncio.Lock] = WeakValueDictionary()
        self.held: list[HeldCounts] = []
        """The data that running computations read."""

    def note(self, recorded: Recorded) -> None:
        """Notes what the event will change. Call it before the event is folded into the board."""
        for counts in self.held:
            counts.note(recorded.event)
        if recorded.event.relists is not None:
            self._known.clear()
        if "competition" in recorded.event.touches:
            for ranking_id in self._games:
                self._known.pop(ranking_id, None)

    def clear(self) -> None:
        """Drops all lines. Call it when the board is replaced."""
        self._known.clear()
        self._games.clear()

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return sum([group.size_bytes for known in self._known.values() for group in known.groups.values()])

    @asynccontextmanager
    async def lines(
        self, ranking_id: RankingId, read: Callable[[RankingId], Awaitable[None]]
    ) -> AsyncIterator[ClassifiedLines]:
        """The lines as they are on entry: read them before pausing. If more than totals decide, one caller enters at a
        time, so that the next one finds the results of the last. `read` looks up the ranking's sums of competitions
        when they are needed."""
        asking: AbstractAsyncContextManager[None] = nullcontext()
        if not by_totals_alone(in_force(self._owner.board.rankings[ranking_id])):
            asking = self.computing(ranking_id)
        async with asking:
            ranking, order = await self._current(ranking_id, read)
            with self.counts(ranking_id) as counted:
                try:
                    known = self._known_of(ranking_id, ranking)
                    yield ClassifiedLines(counted, in_force(ranking), ranking.participants, order, known)
                finally:
                    self._forget_most(ranking_id)

    async def _current(
        self, ranking_id: RankingId, read: Callable[[RankingId], Awaitable[None]]
    ) -> tuple[Ranking, OrderedLines | None]:
        """The ranking with everything that its lines are made from, and its order by the leading criteria, if any.
        Raises Overtaken."""
        tries = Tries()
        while True:
            if needs_sums(self._owner.board.rankings[ranking_id]):
                await read(ranking_id)
            unity_ids = self._unity_ids(ranking_id)
            order = await self._orders.of(ranking_id, *unity_ids) if unity_ids else None
            ranking = self._owner.board.rankings[ranking_id]
            is_lacking = needs_sums(ranking) and self._sums.get(ranking_id) is None
            if unity_ids == self._unity_ids(ranking_id) and not is_lacking:
                return ranking, order
            tries.again()  # others were declared meanwhile, or the sums no longer hold

    @contextmanager
    def counts(self, ranking_id: RankingId) -> Iterator[HeldCounts]:
        """The source of a ranking's values as they are on entry, until the context is left."""
        games = (
            self._games.setdefault(ranking_id, Games())
            if has_tiebreaks(self._owner.board.rankings[ranking_id])
            else Games()
        )
        held = HeldCounts(self._owner.board, ranking_id, self._sums.get(ranking_id), games)
        self.held.append(held)
        try:
            yield held
        finally:
            self.held.remove(held)

    def computing(self, ranking_id: RankingId) -> asyncio.Lock:
        """Hold it while computing lines of a ranking where more than totals decide, because that takes memory."""
        return self._asking.setdefault(ranking_id, asyncio.Lock())

    def _unity_ids(self, ranking_id: RankingId) -> tuple[UnityId, ...]:
        criteria = in_force(self._owner.board.rankings[ranking_id])
        return tuple([criterion.unity_id for criterion in criteria[: leading(criteria)]])

    def _known_of(self, ranking_id: RankingId, ranking: Ranking) -> dict[int, ClassifiedGroup]:
        """Versions change with every delta and every change of the list; `revised` with criteria and sorts."""
        stamp = ranking.revised, tuple([unity.version for unity in ranking.unities.values()])
        known = self._known.pop(ranking_id, None)
        if known is None or known.stamp != stamp:
            known = _Known(stamp, {})
        self._known[ranking_id] = known
        return known.groups

    def _forget_most(self, ranking_id: RankingId) -> None:
        while len(self._known) > 1 and (
            len(self._known) > KNOWN_RANKINGS_MAX or sum(map(_lines, self._known.values())) > KNOWN_LINES_MAX
        ):
            oldest = next(iter(self._known))
            if oldest == ranking_id:
                break
            del self._known[oldest]


def _lines(known: _Known) -> int:
    return sum(map(len, known.groups.values()))
