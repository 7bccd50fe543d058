"""A sub-table: the lines of some of a table's competitors, in the order of the whole table.

Positions are counted again: 1 + the number of lines in the sub-table with a better position in the whole table. So
competitors that share a position in the whole table also share one in the sub-table. Nothing else in a line changes.

Pure. The table may be the standings of a unity or anything else whose lines have positions.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from engine.domain.terms import CompetitorId
from projections.board.order import OrderedLines
from projections.board.standing import Standing, position_after

SOUGHT_AT_ONCE_MAX: Final = 500
"""Up to this many competitors are looked up individually, without a pause, at some 5 µs each. For more, all lines of
the table are scanned, at some 1 µs each."""
_STEP_COMPETITORS: Final = 2_000


class WholeLine(Protocol):
    """A line of a whole table."""

    @property
    def competitor_id(self) -> CompetitorId: ...
    @property
    def position(self) -> int: ...


_L = TypeVar("_L", bound=WholeLine)


class SubLine(Struct, Generic[_L], frozen=True, gc=False):
    """A line of a whole table, and its position in the sub-table."""

    position: int
    whole: _L


class SubTable(Generic[_L]):
    """Filled by `append`, in the order of the whole table."""

    def __init__(self) -> None:
        self._lines: list[_L] = []
        self._offsets: dict[CompetitorId, int] = {}

    def append(self, lines: Iterable[_L]) -> None:
        for line in lines:
            self._offsets[line.competitor_id] = len(self._lines)
            self._lines.append(line)

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def offset(self, competitor_id: CompetitorId) -> int | None:
        """The number of lines before a competitor's line; None: the competitor is not in the sub-table."""
        return self._offsets.get(competitor_id)

    def position(self, competitor_id: CompetitorId) -> int | None:
        """The position of a competitor; None: the competitor is not in the sub-table."""
        offset = self._offsets.get(competitor_id)
        return None if offset is None else self._position(self._lines[offset])

    def standing(self, competitor_id: CompetitorId) -> SubLine[_L] | None:
        """The line of a competitor; None: the competitor is not in the sub-table."""
        offset = self._offsets.get(competitor_id)
        return None if offset is None else self.standings(offset, offset + 1)[0]

    def standings(self, start: int, stop: int) -> list[SubLine[_L]]:
        """The lines from offset `start` to before `stop`, fewer if there are no more. Neither may be negative."""
        return [SubLine(self._position(line), line) for line in self._lines[start:stop]]

    def _position(self, line: _L) -> int:
        return position_after(bisect_left(self._lines, line.position, key=_overall))


def _overall(line: WholeLine) -> int:
    return line.position


def fill(table: SubTable[Standing], order: OrderedLines, among: Items[CompetitorId]) -> Iterator[None]:
    """Fills an empty table with the lines of the competitors `among`, in the state of the first step. Finds up to
    SOUGHT_AT_ONCE_MAX in one step; for more, it pauses for other work."""
    if len(among) <= SOUGHT_AT_ONCE_MAX:
        in_order = sorted([(line, c) for c in among if (line := order.line(c)) is not None])
        table.append([standing for _, c in in_order if (standing := order.standing(c)) is not None])
        return
    runs, sought = order.in_runs(), set[CompetitorId]()
    run = next(runs, [])  # fixes the state of all lines
    for start in range(0, len(among), _STEP_COMPETITORS):
        yield
        sought.update(among[start : start + _STEP_COMPETITORS])
    while run:
        yield
        table.append([line for line in run if line.competitor_id in sought])
        run = next(runs, [])
