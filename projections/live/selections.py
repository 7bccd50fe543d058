"""The selections behind filtered lists: made on demand, only as far as requests need them, then kept current.

Folding only notes changes. The next query checks the changed and added items, in time slices shared with all other
answers.
"""

from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

from engine.domain.events import Recorded
from engine.process.time_slices import TimeSlices
from projections.board.board import HasBoard
from projections.board.selection import ListFilter, Selection

SELECTIONS_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of the selections that are kept for one tournament. The last one used is kept even beyond this limit."""
SELECTIONS_MAX: Final = 100
"""Selections that are kept for one tournament."""
LOOKED_AGAIN_MAX: Final = 10_000
"""Changed items that are noted for a selection. Beyond it, the selection starts again."""
ROUNDS_MAX: Final = 3
"""How often a query takes further time slices because events were folded meanwhile. After that it finishes without a
pause, so that a steady flow of changes cannot delay it indefinitely."""


class Selections:
    """The selections of one tournament. `owner` has its board."""

    def __init__(self, owner: HasBoard) -> None:
        self._owner = owner
        self._kept: OrderedDict[ListFilter, Selection] = OrderedDict()  # least recently used first
        self._alive: WeakValueDictionary[ListFilter, Selection] = WeakValueDictionary()  # others are still in use

    @property
    def size_bytes(self) -> int:
        return sum([selection.size_bytes for selection in self._kept.values()])

    def note(self, recorded: Recorded) -> None:
        """Notes what the event will change. Call it before the event is folded into the board."""
        event = recorded.event
        if not event.touches:
            return
        for selection in self._alive.values():
            selection.note(event)
            if selection.changed > LOOKED_AGAIN_MAX:
                selection.start_over(self._owner.board)

    def clear(self) -> None:
        """Starts all selections again. Call it when the board was replaced."""
        self._kept.clear()
        for selection in self._alive.values():
            selection.start_over(self._owner.board)

    async def of(
        self, chosen: ListFilter, time_slices: TimeSlices, *, number: int = 0, count: int | None = None
    ) -> Selection:
        """The selection of the items that `chosen` accepts. Until the caller pauses, it has the first `count` ids after
        the item with this number, or fewer if there are no more. `count` None: all of them."""
        selection = self._alive.get(chosen)
        if selection is None:
            selection = self._alive[chosen] = Selection(chosen, self._owner.board)
        self._keep(chosen, selection)  # already here, so that work done is kept if the client disconnects
        for _ in range(ROUNDS_MAX):
            if not selection.has(number, count):
                await time_slices.work(selection.steps(number, count))
        for _ in selection.steps(number, count):
            pass
        self._keep(chosen, selection)
        return selection

    def _keep(self, chosen: ListFilter, selection: Selection) -> None:
        self._kept[chosen] = selection
        self._kept.move_to_end(chosen)
        while len(self._kept) > 1 and (len(self._kept) > SELECTIONS_MAX or self.size_bytes > SELECTIONS_BYTES_MAX):
            self._kept.popitem(last=False)
