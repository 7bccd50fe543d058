"""The bounds of all competitors of a board: made when first asked for, then kept current.

While no competitor has a parent, nothing is kept: the bounds of a root follow from its number. Otherwise they are kept
in a `Forest`. Folding does not change the forest; it notes the new parents, and the next query applies them. If an
eighth of all competitors change before a query comes, or if many move at once, the forest is dropped, because making it
again takes hardly longer. Calling `settle` before a query lets other work run in between.
"""

import asyncio
from array import array
from collections import deque
from collections.abc import Callable, Generator, Mapping
from typing import Final
from weakref import ref

from msgspec import UNSET, UnsetType

from engine.domain.events import CompetitorChanged, CompetitorErased, CompetitorRegistered, Event
from engine.domain.terms import CompetitorId
from engine.process.time_slices import TimeSlice
from projections.board.board import Competitor, HasBoard
from projections.board.hierarchy import Forest, NestedSetBounds

MOVED_AT_ONCE_MAX: Final = 1_000
"""Competitors whose bounds may change in one step, when one above them gets another parent."""

_CHANGED_PART: Final = 8
_CHANGED_SPARE: Final = 64
_CHANGED_BYTES: Final = 150
_STEP: Final = 1_000


class Bounds:
    """The bounds of all competitors at one moment. `forest` is None while all are roots. `size_bytes`: its size in
    memory once the present bounds differ."""

    def __init__(self, forest: Forest | None) -> None:
        self.forest = forest
        self.size_bytes = 0

    def of(self, competitor: Competitor) -> NestedSetBounds:
        """The bounds of a competitor that existed at that moment."""
        if self.forest is None:
            return NestedSetBounds(0, 2 * competitor.number - 1, 2 * competitor.number)
        return self.forest.bounds(competitor.number)


class NestedSets:
    """The bounds of one tournament. `owner` has its board."""

    def __init__(self, owner: HasBoard) -> None:
        self._owner = owner
        self._asking = asyncio.Lock()
        self._held: Callable[[], Bounds | None] = _nobody
        self.clear()

    def clear(self) -> None:
        """Drops everything, except for callers that still hold it. Call it when the board is replaced."""
        if (held := self._held()) is not None and held.forest is not None:
            held.size_bytes = held.forest.size_bytes
        self._forest: Forest | None = None
        self._known = False
        self._making: Generator[None, None, None] | None = None
        self._parents_then: dict[CompetitorId, CompetitorId | None] | None = None
        self._changed: deque[tuple[int, CompetitorId | None]] = deque()
        self._held = _nobody

    def note(self, event: Event) -> None:
        """Notes what `event` will change. Call it before it is folded into the board."""
        if isinstance(event, CompetitorRegistered):
            number, parent_id = len(self._owner.board.competitors) + 1, event.parent_id
            if event.commitment is not UNSET:
                parent_id = None
        elif isinstance(event, CompetitorChanged | CompetitorErased):
            competitor = self._owner.board.competitors[event.competitor_id]
            given = _parent_after(competitor, event)
            if isinstance(given, UnsetType):
                return
            number, parent_id = competitor.number, given
            if self._parents_then is not None:
                self._parents_then.setdefault(event.competitor_id, competitor.parent_id)
        else:
            return
        if self.flat:
            if parent_id is not None:
                self.clear()
        elif self._known or self._making is not None:
            self._changed.append((number, parent_id))
            if len(self._changed) > number // _CHANGED_PART + _CHANGED_SPARE:
                self.clear()

    @property
    def ready(self) -> bool:
        """Whether the next answer is possible without outstanding work."""
        return self._known and not self._changed

    @property
    def flat(self) -> bool:
        """Whether it is known that all competitors are roots."""
        return self._known and self._forest is None

    async def settle(self) -> None:
        """Does the outstanding work, with pauses. It is `ready` until the caller pauses."""
        if self.ready:
            return
        async with self._asking:
            time_slice = TimeSlice()
            while not self.ready:
                self._step()
                if time_slice.over:
                    await time_slice.give_way()

    def of(self, competitor: Competitor) -> NestedSetBounds:
        """The bounds of a competitor of the board, as it is now. Takes long if it is not `ready`."""
        return self._now().of(competitor)

    def hold(self) -> Bounds:
        """The bounds of all as they are now, whatever is folded into the board. Takes long if it is not `ready`."""
        held = self._held()
        if held is None or not self.ready:
            held = self._now()
            self._held = ref(held)
        return held

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return (0 if self._forest is None else self._forest.size_bytes) + len(self._changed) * _CHANGED_BYTES

    def _now(self) -> Bounds:
        while not self.ready:
            self._step()
        return Bounds(self._forest)

    # ── Steps ───────────────────────────────────────────────────────────────────────────────────────────

    def _step(self) -> None:
        """One step of the outstanding work. If it fails, no partial result is kept."""
        try:
            if self._known:
                self._carry_out(*self._changed.popleft())
                return
            if self._making is None:
                self._making = self._make()
            next(self._making, None)
        except Exception:
            self.clear()
            raise

    def _make(self) -> Generator[None, None, None]:
        """Makes the forest from the current parents. Changes that arrive meanwhile are noted, and applied later."""
        competitors = self._owner.board.competitors
        self._parents_then = {}
        parents = array("i", (0,))
        have_parents = False
        last = len(competitors)
        for first in range(1, last + 1, _STEP):
            for competitor_id in competitors.ids(first, min(first + _STEP - 1, last)):
                parent_id = self._parent_then(competitors, competitor_id)
                have_parents |= parent_id is not None
                parents.append(0 if parent_id is None else competitors[parent_id].number)
            yield
        self._parents_then = None
        if have_parents or any(parent_id is not None for _, parent_id in self._changed):
            self._forest = yield from Forest.in_steps(parents)
        else:
            self._changed.clear()
        self._known = True
        self._making = None

    def _parent_then(
        self, competitors: Mapping[CompetitorId, Competitor], competitor_id: CompetitorId
    ) -> CompetitorId | None:
        """The competitor's parent when the making of the forest began."""
        assert self._parents_then is not None
        if competitor_id in self._parents_then:
            return self._parents_then[competitor_id]
        return competitors[competitor_id].parent_id

    def _carry_out(self, number: int, parent_id: CompetitorId | None) -> None:
        forest = self._forest
        assert forest is not None
        if (held := self._held()) is not None:
            held.forest = forest.frozen()
            held.size_bytes = forest.size_bytes
            self._held = _nobody
        parent = 0 if parent_id is None else self._owner.board.competitors[parent_id].number
        if number > len(forest):
            forest.add(parent)
        elif forest.family(number) > MOVED_AT_ONCE_MAX:
            self.clear()
        else:
            forest.move(number, parent)


def _parent_after(
    competitor: Competitor, event: CompetitorChanged | CompetitorErased
) -> CompetitorId | None | UnsetType:
    """The parent that a change gives to the competitor, as in the fold; UNSET: it does not change."""
    if isinstance(event, CompetitorErased) or event.commitment is not UNSET or competitor.erased is not None:
        return UNSET if competitor.parent_id is None else None
    return event.parent_id


def _nobody() -> None:
    return None
