"""The orders of unities behind windows of standings: made when first needed, then kept current.

Folding does not move lines. It notes which lines change, with their old values. The next query moves each of them once,
however often it changed meanwhile. If an eighth of all lines change before a query comes, the order is dropped, because
making it again takes hardly longer. All of this work runs in time slices.
"""

import asyncio
from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct, field

from engine.domain.events import Points, Recorded, changed_by
from engine.domain.terms import CompetitorId, RankingId, UnityId
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.board.board import HasBoard, Unity, moved_by
from projections.board.order import OrderedLines, line_of
from projections.columns.enrolment import Enrolment

ORDERS_BYTES_MAX: Final = 128 * 1024 * 1024
"""Bytes of the orders that are kept for one tournament, estimated. The last one used stays even beyond this limit."""
ORDERS_MAX: Final = 1_000
"""Orders that are kept for one tournament."""
OVERTAKEN_MAX: Final = 2
"""How often one query makes an order in time slices while the list changes. After that, the order is made without a
pause, so that a steady flow of enrolments cannot delay a query indefinitely."""
MADE_AT_ONCE_MAX: Final = 2_000
"""Lines of an order that is made without a pause; each takes some 2 µs."""

_MOVED_AT_ONCE: Final = 50
_CHANGED_PART: Final = 8
_CHANGED_SPARE: Final = 64
_CHANGED_BYTES: Final = 150
_BYTES: Final = 1_500


UnityIds = tuple[UnityId, ...]
"""What lines are ordered by: a unity, or the first of several."""


class _KeptOrder(Struct, eq=False):
    """An order by the first of `unities`, then among equal lines by the second, and so on. `changed`: for competitors
    whose lines have changed since the order was begun, the lines that `order` has or will have; None: it has none."""

    enrolment: Enrolment
    unities: list[Unity]
    generation: int
    order: OrderedLines | None = None
    changed: dict[CompetitorId, int | None] = field(default_factory=dict)

    def line(self, competitor_id: CompetitorId) -> int | None:
        """A competitor's line on the current board; None: the competitor is not enrolled."""
        unity, *finer = self.unities
        return line_of(competitor_id, self.enrolment, unity.totals, unity.sort, finer)

    @property
    def changed_max(self) -> int:
        return len(self.enrolment) // _CHANGED_PART + _CHANGED_SPARE

    @property
    def size_bytes(self) -> int:
        """With all that may be noted."""
        order_bytes = 0 if self.order is None else self.order.size_bytes
        return _BYTES + order_bytes + self.changed_max * _CHANGED_BYTES


class Orders:
    """The orders of one tournament. `owner` has its board."""

    def __init__(self, owner: HasBoard) -> None:
        self.size_bytes = 0
        self._owner = owner
        self._kept: OrderedDict[UnityIds, _KeptOrder] = OrderedDict()  # least recently requested first
        self._with: dict[UnityId, list[UnityIds]] = {}  # of those kept, the ones that a unity is part of
        self._sizes: dict[UnityIds, int] = {}
        self._asking: WeakValueDictionary[UnityIds, asyncio.Lock] = WeakValueDictionary()

    def note(self, recorded: Recorded) -> None:
        """Notes what the event will change. Call it before the event is folded into the board."""
        if not self._kept:
            return
        event = recorded.event
        if isinstance(event, Points):
            for delta in changed_by(event):
                for unity_ids in self._with.get(delta.unity_id, ())[:]:
                    self._note(unity_ids, delta.competitor_id)
        elif (moved := moved_by(self._owner.board, event)) is not None:
            its = self._kept_of(moved.ranking_id) if moved.unity_id is None else self._with.get(moved.unity_id, ())[:]
            for unity_ids in its:
                if moved.competitors is None:
                    self._drop(unity_ids)
                else:
                    for competitor_id in moved.competitors:
                        self._note(unity_ids, competitor_id)

    def clear(self) -> None:
        """Drops all orders. Call it when the board is replaced."""
        self._kept.clear()
        self._with.clear()
        self._sizes.clear()
        self.size_bytes = 0

    async def of(self, ranking_id: RankingId, *unity_ids: UnityId) -> OrderedLines:
        """The order of an existing unity, or of several, each of which decides between competitors that are equal in
        those before. It is current until the caller pauses."""
        if not self._is_current(unity_ids):  # no queue otherwise: waking each of its tasks takes a round of the loop
            async with self._asking.setdefault(unity_ids, asyncio.Lock()):
                await self._make_current(ranking_id, unity_ids)
        self._account(unity_ids)
        order = self._kept[unity_ids].order
        assert order is not None
        return order

    async def _make_current(self, ranking_id: RankingId, unity_ids: UnityIds) -> None:
        """Makes the order, or moves the changed lines. For one task at a time."""
        time_slice, made = TimeSlice(), 0
        while not self._is_current(unity_ids):
            try:
                if (kept := self._kept.get(unity_ids)) is None or kept.order is None:
                    await self._make(ranking_id, unity_ids, time_slice, at_once=made == OVERTAKEN_MAX)
                    if made == OVERTAKEN_MAX:
                        return
                    made += 1
                else:
                    _move(kept, kept.order)
            except Exception:
                if unity_ids in self._kept:  # in part, it would be wrong
                    self._drop(unity_ids)
                raise
            if time_slice.over:
                await time_slice.give_way()

    def _kept_of(self, ranking_id: RankingId) -> list[UnityIds]:
        ranking = self._owner.board.rankings.get(ranking_id)
        return [] if ranking is None else [unity_ids for unity_ids in self._kept if unity_ids[0] in ranking.unities]

    def _note(self, unity_ids: UnityIds, competitor_id: CompetitorId) -> None:
        kept = self._kept.get(unity_ids)
        if kept is None or competitor_id in kept.changed:
            return
        kept.changed[competitor_id] = kept.line(competitor_id)
        if len(kept.changed) > kept.changed_max and kept.order is not None:
            self._drop(unity_ids)

    def _is_current(self, unity_ids: UnityIds) -> bool:
        """Whether the order can be used without work. Drops an order whose places have been assigned again."""
        kept = self._kept.get(unity_ids)
        if kept is None:
            return False
        if kept.generation != kept.enrolment.generation:
            self._drop(unity_ids)
            return False
        return kept.order is not None and not kept.changed

    async def _make(self, ranking_id: RankingId, unity_ids: UnityIds, time_slice: TimeSlice, *, at_once: bool) -> None:
        """Makes the order from the current state, in time slices; changes that arrive meanwhile are noted. The order
        may be dropped before it is complete."""
        ranking = self._owner.board.rankings[ranking_id]
        enrolment, unities = ranking.participants, [ranking.unities[unity_id] for unity_id in unity_ids]
        kept = self._kept[unity_ids] = _KeptOrder(enrolment, unities, enrolment.generation)
        for unity_id in dict.fromkeys(unity_ids):
            self._with.setdefault(unity_id, []).append(unity_ids)
        if at_once or len(enrolment) <= MADE_AT_ONCE_MAX:
            unity, *finer = unities
            kept.order = OrderedLines(enrolment, unity.totals, unity.sort, finer)
            return
        try:
            kept.order = await made_in_time_slices(enrolment, *unities, time_slice=time_slice)
        finally:
            if kept.order is None and self._kept.get(unity_ids) is kept:
                self._drop(unity_ids)

    def _account(self, unity_ids: UnityIds) -> None:
        """Records the size of the order just used, and drops others while all together are too large."""
        self._kept.move_to_end(unity_ids)
        size_bytes = self._kept[unity_ids].size_bytes
        self.size_bytes += size_bytes - self._sizes.get(unity_ids, 0)
        self._sizes[unity_ids] = size_bytes
        while len(self._kept) > 1 and (self.size_bytes > ORDERS_BYTES_MAX or len(self._kept) > ORDERS_MAX):
            self._drop(next(iter(self._kept)))

    def _drop(self, unity_ids: UnityIds) -> None:
        del self._kept[unity_ids]
        for unity_id in dict.fromkeys(unity_ids):
            self._with[unity_id].remove(unity_ids)
        self.size_bytes -= self._sizes.pop(unity_ids, 0)


async def made_in_time_slices(
    enrolment: Enrolment, unity: Unity, *finer: Unity, time_slice: TimeSlice | None = None
) -> OrderedLines:
    """The order at the call: by `unity`, then among equal lines by the next one, and so on. `time_slice`: the
    one that has begun."""
    return await in_time_slices(OrderedLines.in_steps(enrolment, unity.totals, unity.sort, finer), time_slice)


def _move(kept: _KeptOrder, order: OrderedLines) -> None:
    """Moves some of the lines that have changed."""
    for _ in range(min(len(kept.changed), _MOVED_AT_ONCE)):
        competitor_id, before = kept.changed.popitem()
        order.replace(before, kept.line(competitor_id))
