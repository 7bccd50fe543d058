"""A sub-table: the lines of some of a table's competitors, in the order of the whole table.

Positions are counted again: 1 + the number of lines in the sub-table with a better position in the whole table. So
competitors that share a position in the whole table also share one in the sub-table. Nothing else in a line changes.

Pure. The table may be the standings of a unity or a classification.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct

from engine.domain.steps import Steps
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


_L = TypeVar("_L")
_W = TypeVar("_W", bound=WholeLine)


class TableLines(Protocol[_L]):
    """The lines of a table, in the state of the first step of each question. Offsets count from 0; none may be
    negative."""

    def __len__(self) -> int:
        """The number of lines."""
        ...

    def run(self, start: int, stop: int) -> Steps[list[_L]]:
        """The lines from offset `start` to before `stop`, fewer if there are no more."""
        ...

    def around(self, competitor_id: CompetitorId, span: int) -> Steps[list[_L] | None]:
        """The line of a competitor, and up to `span` lines on each side of it; None: they are not in the table."""
        ...

    def of(self, competitor_ids: Iterable[CompetitorId]) -> Steps[Mapping[CompetitorId, _L | None]]:
        """The line of each competitor, in the given order; None: they are not in the table."""
        ...

    def page(self, competitor_id: CompetitorId, limit: int) -> Steps[tuple[int, list[_L]] | None]:
        """Of the pages of `limit` lines, the one with a competitor's line, and its offset; None: they are not in the
        table."""
        ...


class WholeLines(TableLines[_L], Protocol[_L]):
    def among(self, competitor_ids: Items[CompetitorId]) -> Steps[list[_L]]:
        """The lines of those competitors that are in the table, in its order. Up to SOUGHT_AT_ONCE_MAX are looked up
        individually; for more, all lines are scanned."""
        ...


class SubLine(Struct, Generic[_W], frozen=True, gc=False):
    """A line of a whole table, and its position in the sub-table."""

    position: int
    whole: _W


class SubTable(Generic[_W]):
    """`lines`: those of its competitors, in the order of the whole table. Each question takes one step."""

    def __init__(self, lines: Items[_W]) -> None:
        self._lines = lines
        self._places = {line.competitor_id: place for place, line in enumerate(lines)}

    def __len__(self) -> int:
        return len(self._lines)

    def run(self, start: int, stop: int) -> Steps[list[SubLine[_W]]]:
        yield from ()
        return self._run(start, stop)

    def around(self, competitor_id: CompetitorId, span: int) -> Steps[list[SubLine[_W]] | None]:
        yield from ()
        place = self._places.get(competitor_id)
        return None if place is None else self._run(max(place - span, 0), place + span + 1)

    def of(self, competitor_ids: Iterable[CompetitorId]) -> Steps[dict[CompetitorId, SubLine[_W] | None]]:
        yield from ()
        places = {one: self._places.get(one) for one in competitor_ids}
        return {one: None if place is None else self._run(place, place + 1)[0] for one, place in places.items()}

    def page(self, competitor_id: CompetitorId, limit: int) -> Steps[tuple[int, list[SubLine[_W]]] | None]:
        yield from ()
        place = self._places.get(competitor_id)
        if place is None:
            return None
        start = place // limit * limit
        return start, self._run(start, start + limit)

    def place(self, competitor_id: CompetitorId) -> int | None:
        """The number of lines before a competitor's; None: they are not in the table."""
        return self._places.get(competitor_id)

    def _run(self, start: int, stop: int) -> list[SubLine[_W]]:
        return [SubLine(self._position(line), line) for line in self._lines[start:stop]]

    def _position(self, line: _W) -> int:
        return position_after(bisect_left(self._lines, line.position, key=_overall))


def _overall(line: WholeLine) -> int:
    return line.position


class UnityLines:
    """The lines of a unity. Each question but `among` takes one step."""

    def __init__(self, order: OrderedLines) -> None:
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def run(self, start: int, stop: int) -> Steps[list[Standing]]:
        yield from ()
        return self._order.standings(start, stop)

    def around(self, competitor_id: CompetitorId, span: int) -> Steps[list[Standing] | None]:
        yield from ()
        offset = self._order.offset(competitor_id)
        return None if offset is None else self._order.standings(max(offset - span, 0), offset + span + 1)

    def of(self, competitor_ids: Iterable[CompetitorId]) -> Steps[dict[CompetitorId, Standing | None]]:
        yield from ()
        return {one: self._order.standing(one) for one in competitor_ids}

    def page(self, competitor_id: CompetitorId, limit: int) -> Steps[tuple[int, list[Standing]] | None]:
        yield from ()
        offset = self._order.offset(competitor_id)
        if offset is None:
            return None
        start = offset // limit * limit
        return start, self._order.standings(start, start + limit)

    def among(self, competitor_ids: Items[CompetitorId]) -> Steps[list[Standing]]:
        order = self._order
        if len(competitor_ids) <= SOUGHT_AT_ONCE_MAX:
            in_order = sorted([(line, c) for c in competitor_ids if (line := order.line(c)) is not None])
            return [standing for _, c in in_order if (standing := order.standing(c)) is not None]
        runs, sought, found = order.in_runs(), set[CompetitorId](), list[Standing]()
        run = next(runs, [])  # fixes the state of all lines
        for start in range(0, len(competitor_ids), _STEP_COMPETITORS):
            yield
            sought.update(competitor_ids[start : start + _STEP_COMPETITORS])
        while run:
            yield
            found += [line for line in run if line.competitor_id in sought]
            run = next(runs, [])
        return found
