"""The selections that filtered lists are answered from: made when first asked for, as far as they are asked for, then
kept current.

Folding only notes what changes. The next question looks at that again, and at what has been added. All of this work
takes its turns with that of all other answers.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from engine.domain.events import Event
from engine.process.turns import Turns
from projections.board.board import Board
from projections.board.selection import CHANGES, ListFilter, Selection

SELECTIONS_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of the selections that are kept for one tournament. The one last asked for stays, even beyond this."""
SELECTIONS_MAX: Final = 100
"""Selections that are kept for one tournament."""
LOOKED_AGAIN_MAX: Final = 10_000
"""Changed items that are noted for a selection. Beyond it, the selection is begun anew."""
ROUNDS_MAX: Final = 3
"""How often a question takes turns because something was folded after the last one. Then it does the rest in one go: a
steady flow of changes must not hold it up for ever."""


class Selections:
    """The selections of one tournament. `board` returns the board as it is now."""

    def __init__(self, board: Callable[[], Board]) -> None:
        self._board = board
        self._kept: OrderedDict[ListFilter, Selection] = OrderedDict()  # least recently asked for first
        self._alive: WeakValueDictionary[ListFilter, Selection] = WeakValueDictionary()  # others are still asked for

    @property
    def size_bytes(self) -> int:
        return sum([selection.size_bytes for selection in self._kept.values()])

    def note(self, event: Event) -> None:
        """Notes what will change. Call it before `event` is folded into the board."""
        if not isinstance(event, CHANGES):
            return
        for selection in self._alive.values():
            selection.note(event)
            if selection.changed > LOOKED_AGAIN_MAX:
                selection.begin_anew(self._board())

    def clear(self) -> None:
        """Begins all selections anew. Call it when the board was replaced."""
        self._kept.clear()
        for selection in self._alive.values():
            selection.begin_anew(self._board())

    async def of(self, chosen: ListFilter, turns: Turns, *, number: int = 0, count: int | None = None) -> Selection:
        """The selection of what `chosen` lets through. It has the first `count` ids after the item of this number, or
        all there are, until the caller gives way to others; None: all."""
        selection = self._alive.get(chosen)
        if selection is None:
            selection = self._alive[chosen] = Selection(chosen, self._board())
        self._keep(chosen, selection)  # already now: what is found stays, even if the client goes away
        for _ in range(ROUNDS_MAX):
            if not selection.has(number, count):
                await turns.work(selection.steps(number, count))
        for _ in selection.steps(number, count):
            pass
        self._keep(chosen, selection)
        return selection

    def _keep(self, chosen: ListFilter, selection: Selection) -> None:
        self._kept[chosen] = selection
        self._kept.move_to_end(chosen)
        while len(self._kept) > 1 and (len(self._kept) > SELECTIONS_MAX or self.size_bytes > SELECTIONS_BYTES_MAX):
            self._kept.popitem(last=False)
