"""The orders of unities that windows are answered from: made when first asked for, then kept current.

Folding does not move lines. It notes whose total will change and what it was. The next question moves those, however
often their totals changed meanwhile. If nobody asks until an eighth of all have changed, the order is dropped, because
making it anew takes hardly longer. All of this work gives way to others.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Sequence as Items
from typing import Final, cast
from weakref import WeakValueDictionary

from msgspec import Struct

from engine.domain.events import Event, Points, UnityChanged
from engine.domain.terms import CompetitorId, RankingId, Sort, UnityId
from engine.process.turns import Turn
from projections.board.board import Board, Unity
from projections.board.order import OrderedLines

ORDERS_BYTES_MAX: Final = 128 * 1024 * 1024
"""Bytes of the orders that are kept for one tournament, estimated. The one last asked for stays, even beyond this."""
ORDERS_MAX: Final = 1_000
"""Orders that are kept for one tournament."""
OVERTAKEN_MAX: Final = 2
"""How often an order is made in turns for one question while the list changes. Then it is made in one go: a steady flow
of enrolments must not hold a question up for ever."""
MADE_AT_ONCE_MAX: Final = 2_000
"""Lines of an order that is made in one go; each takes some 2 µs."""

_MOVED_AT_ONCE: Final = 50
_CHANGED_PART: Final = 8
_CHANGED_SPARE: Final = 64
_CHANGED_BYTES: Final = 150
_BYTES: Final = 1_500


class _KeptOrder(Struct, eq=False):
    """`changed`: the totals that `order` has of competitors whose totals have changed since."""

    participants: tuple[CompetitorId, ...]
    unity: Unity
    order: OrderedLines | None = None
    changed: dict[CompetitorId, int] = {}

    @property
    def changed_max(self) -> int:
        return len(self.participants) // _CHANGED_PART + _CHANGED_SPARE

    @property
    def size_bytes(self) -> int:
        """With all that may be noted."""
        order_bytes = 0 if self.order is None else self.order.size_bytes
        return _BYTES + order_bytes + self.changed_max * _CHANGED_BYTES


class Orders:
    """The orders of one tournament. `board` returns the board as it is now."""

    def __init__(self, board: Callable[[], Board]) -> None:
        self.size_bytes = 0
        self._board = board
        self._kept: OrderedDict[UnityId, _KeptOrder] = OrderedDict()  # least recently asked for first
        self._sizes: dict[UnityId, int] = {}
        self._asking: WeakValueDictionary[UnityId, asyncio.Lock] = WeakValueDictionary()

    def note(self, event: Event) -> None:
        """Notes what will change. Call it before `event` is folded into the board."""
        if isinstance(event, UnityChanged):
            kept = self._kept.get(event.unity_id)
            if kept is not None and event.sort not in (None, kept.unity.sort):
                self._drop(event.unity_id)
        if not self._kept or not isinstance(event, Points):
            return
        for delta in event.deltas:
            kept = self._kept.get(delta.unity_id)
            if kept is None:
                continue
            kept.changed.setdefault(delta.competitor_id, kept.unity.totals.get(delta.competitor_id, 0))
            if len(kept.changed) > kept.changed_max and kept.order is not None:
                self._drop(delta.unity_id)

    def clear(self) -> None:
        """Drops all orders. Call it when the board is replaced."""
        self._kept.clear()
        self._sizes.clear()
        self.size_bytes = 0

    async def of(self, ranking_id: RankingId, unity_id: UnityId) -> OrderedLines:
        """The order of a unity that exists, as the board has it. It is current until the caller gives way to others."""
        async with self._asking.setdefault(unity_id, asyncio.Lock()):
            turn, made = Turn(), 0
            while not self._is_current(ranking_id, unity_id):
                if (kept := self._kept.get(unity_id)) is None or kept.order is None:
                    await self._make(ranking_id, unity_id, turn, at_once=made >= OVERTAKEN_MAX)
                    made += 1
                else:
                    _move(kept, kept.order)
                if turn.over:
                    await turn.give_way()
            self._account(unity_id)
            order = self._kept[unity_id].order
            assert order is not None
            return order

    def _is_current(self, ranking_id: RankingId, unity_id: UnityId) -> bool:
        """Whether the order can be used as it is. An order of another list of competitors is dropped."""
        kept = self._kept.get(unity_id)
        if kept is None:
            return False
        participants = self._board().rankings[ranking_id].participants
        if kept.participants is not participants:
            if kept.participants != participants:
                self._drop(unity_id)
                return False
            kept.participants = participants
        return kept.order is not None and not kept.changed

    async def _make(self, ranking_id: RankingId, unity_id: UnityId, turn: Turn, *, at_once: bool) -> None:
        """Makes the order from the totals of now, in turns; what changes meanwhile is noted. It may be dropped again
        before it is made."""
        ranking = self._board().rankings[ranking_id]
        unity = ranking.unities[unity_id]
        kept = self._kept[unity_id] = _KeptOrder(ranking.participants, unity, changed={})
        if at_once or len(ranking.participants) <= MADE_AT_ONCE_MAX:
            kept.order = OrderedLines(ranking.participants, unity.totals, unity.sort)
            return
        totals, changed = unity.totals, kept.changed

        def total_then(competitor_id: CompetitorId) -> int:  # a copy of a million totals would take too long at once
            return changed[competitor_id] if competitor_id in changed else totals.get(competitor_id, 0)

        try:
            kept.order = await made_in_turns(ranking.participants, total_then, unity.sort, turn)
        finally:
            if kept.order is None and self._kept.get(unity_id) is kept:
                self._drop(unity_id)

    def _account(self, unity_id: UnityId) -> None:
        """Notes what the order takes that was asked for, and drops others while all take too much."""
        self._kept.move_to_end(unity_id)
        size_bytes = self._kept[unity_id].size_bytes
        self.size_bytes += size_bytes - self._sizes.get(unity_id, 0)
        self._sizes[unity_id] = size_bytes
        while len(self._kept) > 1 and (self.size_bytes > ORDERS_BYTES_MAX or len(self._kept) > ORDERS_MAX):
            self._drop(next(iter(self._kept)))

    def _drop(self, unity_id: UnityId) -> None:
        del self._kept[unity_id]
        self.size_bytes -= self._sizes.pop(unity_id, 0)


async def made_in_turns(
    enrolled: Items[CompetitorId], total_of: Callable[[CompetitorId], int], sort: Sort, turn: Turn
) -> OrderedLines:
    """The order of these totals, which must not change meanwhile."""
    steps = OrderedLines.in_steps(enrolled, total_of, sort)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(OrderedLines, end.value)
        if turn.over:
            await turn.give_way()


def _move(kept: _KeptOrder, order: OrderedLines) -> None:
    """Moves some of those whose totals have changed."""
    for _ in range(min(len(kept.changed), _MOVED_AT_ONCE)):
        competitor_id, before = kept.changed.popitem()
        order.move(competitor_id, before, kept.unity.totals.get(competitor_id, 0))
