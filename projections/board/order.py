"""The lines of one unity in order while its totals change: position, line at an offset, and runs of lines.

This is one form of the position rule, which `standing.py` states. Each operation costs about log n.

A line is one whole number: its total, negated where needed so that better ones are smaller, and in the lowest
PLACE_BITS the competitor's place in the enrolment. So ascending numbers are the order of standings, equal totals
included. With totals within ±2³⁹ such a number fits 64 bits; larger ones are kept too, in more memory
(`projections/columns/sorted_integers.py`).

Pure. Totals and places are those of `projections/columns/enrolment.py`.
"""

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator
from collections.abc import Sequence as Items
from heapq import merge
from itertools import chain, islice, repeat
from typing import Final, Protocol, cast

from engine.domain.terms import CompetitorId, Sort
from projections.board.standing import Standing, placed, position_after
from projections.columns.enrolment import Enrolment, Totals
from projections.columns.sorted_integers import SortedIntegers

PLACE_BITS: Final = 24
"""Places are assigned again long before these run out, even if a million competitors all return."""
_PLACE: Final = (1 << PLACE_BITS) - 1
_TOTAL_BITS: Final = 72
"""Bits of a total that is not the first of its line. No sum needs more."""
_STEP_CHANGES: Final = 200
_RUN_LINES: Final = 1_000
_STEP_COMPETITORS: Final = 512
"""Competitors whose lines are sorted in one step."""


class Finer(Protocol):
    """A unity that orders equal lines."""

    @property
    def totals(self) -> Totals: ...
    @property
    def sort(self) -> Sort: ...


class OrderedLines:
    """The lines of the competitors of `enrolment`, by their `totals`, and equal ones by the `finer` columns. Only lines
    that are equal in all of these share a position. With many lines, a line takes some 9 bytes, or 90 with finer
    columns.

    When a competitor's total or place has changed, `replace` the line before the next query. When all places have been
    assigned again, make a new order.
    """

    def __init__(self, enrolment: Enrolment, totals: Totals, sort: Sort, finer: Items[Finer] = ()) -> None:
        self._begin(enrolment, totals, sort, finer)
        columns = [(unity.totals.column, unity.sort) for unity in finer]
        self._lines = SortedIntegers(sorted(_lines(enrolment.places, totals.column, sort, columns)))

    @classmethod
    def in_steps(
        cls, enrolment: Enrolment, totals: Totals, sort: Sort, finer: Items[Finer] = ()
    ) -> Generator[None, None, "OrderedLines"]:
        """Builds the order from the state of the first step. Pauses for other work."""
        order = cls.__new__(cls)
        order._begin(enrolment, totals, sort, finer)
        columns = [(unity.totals.column[:], unity.sort) for unity in finer]
        order._lines = yield from sorted_in_steps(enrolment.places[:], totals.column[:], sort, columns)
        return order

    def _begin(self, enrolment: Enrolment, totals: Totals, sort: Sort, finer: Items[Finer]) -> None:
        self._enrolment, self._totals, self._sort, self._finer = enrolment, totals, sort, finer
        self._generation = enrolment.generation

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._lines)

    @property
    def outdated(self) -> bool:
        """Whether places have been assigned again since the order was made. If so, make a new one."""
        return self._generation != self._enrolment.generation

    def line(self, competitor_id: CompetitorId) -> int | None:
        """A competitor's line as enrolment and totals are now; None: they are not enrolled."""
        return line_of(competitor_id, self._enrolment, self._totals, self._sort, self._finer)

    def position(self, line: int | None) -> int | None:
        """The position of this line; None if there is no line."""
        return None if line is None else position_after(self._lines.smaller(line >> PLACE_BITS << PLACE_BITS))

    def between(self, one: int, other: int, most: int) -> list[CompetitorId]:
        """The competitors whose totals are one of the two or lie between them, those nearest to `other` first; no more
        than `most`."""
        start, stop = self._between(one, other)
        if self.compared(other, one) > 0:
            lines = self._lines.run(start, min(stop, start + most))
        else:
            lines = self._lines.run(max(start, stop - most), stop)[::-1]
        places = self._enrolment.places
        return [CompetitorId(places[line & _PLACE]) for line in lines]

    def count_between(self, one: int, other: int) -> int:
        """The number of competitors whose totals are one of the two or lie between them."""
        start, stop = self._between(one, other)
        return stop - start

    def _between(self, one: int, other: int) -> tuple[int, int]:
        """The offsets at which their lines begin and end."""
        first, last = sorted((one * _sign(self._sort), other * _sign(self._sort)))
        return self._lines.smaller(first << PLACE_BITS), self._lines.smaller(last + 1 << PLACE_BITS)

    def compared(self, one: int, other: int) -> int:
        """1, 0 or -1: a total is better than another, as good, or worse."""
        return ((one < other) - (one > other)) * _sign(self._sort)

    def standing(self, competitor_id: CompetitorId) -> Standing | None:
        """A competitor's line of the standings; None: the competitor is not enrolled."""
        position = self.position(self.line(competitor_id))
        return None if position is None else Standing(competitor_id, position, self._totals[competitor_id])

    def offset(self, competitor_id: CompetitorId) -> int | None:
        """The number of lines before a competitor's line; None: the competitor is not enrolled."""
        line = self.line(competitor_id)
        return None if line is None else self._lines.smaller(line)

    def standings(self, start: int, stop: int) -> list[Standing]:
        """The lines from offset `start` to before `stop`, fewer if there are no more. Neither may be negative."""
        run = self._lines.run(start, stop)
        if not run:
            return []
        lines = unpacked(run, self._enrolment.places, self._sort)
        total, competitor_id = lines[0]
        position = cast(int, self.position(run[0]))
        return placed(Standing, lines, start + 1, Standing(competitor_id, position, total))

    def level(self, line: int) -> tuple[int, int]:
        """The first offset of the lines that are as good as this one, and the offset after the last of them."""
        as_good = line >> PLACE_BITS
        return self._lines.smaller(as_good << PLACE_BITS), self._lines.smaller(as_good + 1 << PLACE_BITS)

    def run(self, start: int, stop: int) -> list[tuple[int, CompetitorId]]:
        """The lines from offset `start` to before `stop`, fewer if there are no more, each with its competitor."""
        places = self._enrolment.places
        return [(line, CompetitorId(places[line & _PLACE])) for line in self._lines.run(start, stop)]

    def competitors(self, start: int, stop: int) -> Items[CompetitorId]:
        """The competitors whose lines are from offset `start` to before `stop`, fewer if there are no more."""
        places = self._enrolment.places
        run = array("q", [places[line & _PLACE] for line in self._lines.run(start, stop)])
        return cast(Items[CompetitorId], run)

    def held(self, start: int, stop: int) -> "HeldLines":
        """The same as an iterator, for callers that pause: there may be a million."""
        return HeldLines(self._lines.parts(start, stop), self._enrolment.places[:], stop - start)

    def in_runs(self) -> Iterator[list[Standing]]:
        """All lines, as they are when the first run is requested."""
        lines, places, above = self._lines.copy(), self._enrolment.places[:], None
        for start in range(0, len(lines), _RUN_LINES):
            run = unpacked(lines.run(start, start + _RUN_LINES), places, self._sort)
            standings = placed(Standing, run, start + 1, above)
            above = standings[-1]
            yield standings

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return self._lines.size_bytes

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    def replace(self, before: int | None, now: int | None) -> None:
        """Replaces the line `before` by the line `now`; None: there is none. Raises KeyError if `before` is missing."""
        if before == now:
            return
        if before is not None:
            self._lines.remove(before)
        if now is not None:
            self._lines.add(now)

    def replace_all(
        self, competitor_ids: Iterable[CompetitorId], before: Iterable[int | None]
    ) -> Generator[None, None, None]:
        """Replaces the given lines of the competitors by their current ones. Pauses for other work."""
        for number, (competitor_id, line) in enumerate(zip(competitor_ids, before, strict=True), start=1):
            self.replace(line, self.line(competitor_id))
            if number % _STEP_CHANGES == 0:
                yield


class HeldLines(Iterable[CompetitorId]):
    """The competitors of some lines, in their order, at the time of the call."""

    def __init__(self, lines: Items[Iterable[int]], places: Items[int], count: int) -> None:
        self._lines = lines
        self._places = places
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[CompetitorId]:
        return (CompetitorId(self._places[line & _PLACE]) for part in self._lines for line in part)


def line_of(
    competitor_id: CompetitorId, enrolment: Enrolment, totals: Totals, sort: Sort, finer: Items[Finer] = ()
) -> int | None:
    """A competitor's line as enrolment and totals are now; None: they are not enrolled."""
    place = enrolment.place(competitor_id)
    if place is None:
        return None
    number = totals[competitor_id] * _sign(sort)
    for unity in finer:
        number = (number << _TOTAL_BITS) + unity.totals[competitor_id] * _sign(unity.sort)
    return number << PLACE_BITS | place


def sorted_in_steps(
    places: Items[int], column: Items[int], sort: Sort, finer: Items[tuple[Items[int], Sort]] = ()
) -> Generator[None, None, SortedIntegers]:
    """The lines of the competitors at the given places, by their sums, with pauses for other work."""
    lines, runs = _lines(places, column, sort, finer), []
    yield
    while run := sorted(islice(lines, _STEP_COMPETITORS)):
        runs.append(SortedIntegers(run))
        yield
    merged = SortedIntegers()
    yield from merged.fill(merge(*runs))
    return merged


def unpacked(lines: Iterable[int], places: Items[int], sort: Sort) -> list[tuple[int, CompetitorId]]:
    """Total and competitor of each line."""
    sign = _sign(sort)
    return [((line >> PLACE_BITS) * sign, CompetitorId(places[line & _PLACE])) for line in lines]


def _lines(places: Items[int], column: Items[int], sort: Sort, finer: Items[tuple[Items[int], Sort]]) -> Iterator[int]:
    sign = _sign(sort)
    numbers: Iterable[int] = (total * sign for total in column)
    for its, its_sort in finer:
        in_all = chain(its, repeat(0, len(places) - len(its)))
        numbers = map(_joined(_sign(its_sort)), chain(numbers, repeat(0)), in_all)
    for place, (competitor_id, number) in enumerate(zip(places, chain(numbers, repeat(0)), strict=False)):
        if competitor_id > 0:
            yield number << PLACE_BITS | place


def _joined(sign: int) -> Callable[[int, int], int]:
    return lambda number, total: (number << _TOTAL_BITS) + total * sign


def _sign(sort: Sort) -> int:
    """The sign (1 or -1) by which totals are multiplied so that the better one is the smaller."""
    return -1 if sort is Sort.DESC else 1
