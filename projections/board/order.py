"""The lines of one unity in order while its totals change: position, line at an offset, and runs of lines.

This is one of the forms of the position rule, whose sentence stands in `standing.py`. Each operation costs about log n.

A line is one whole number: its total, turned so that the better is smaller, and below it, in PLACE_BITS, the place of
its competitor in the order of enrolment. So ascending numbers are the order of standings, equal totals included. With
totals within ±2³⁹ such a number fits 64 bits; larger ones are kept too, in more memory (`sorted_integers.py`).

Pure. Whose totals these are, and which they are, is the caller's to know: `unity.totals` holds them.
"""

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from heapq import merge
from itertools import islice
from typing import Final, cast

from engine.domain.terms import CompetitorId, Sort
from projections.board.sorted_integers import SortedIntegers
from projections.board.standing import Standing, placed

PLACE_BITS: Final = 24
"""Places of enrolment: those of the enrolled, and of as many who have left. More are never in use."""
_PLACE: Final = (1 << PLACE_BITS) - 1
_SPARE_PLACES: Final = 1_024
_STEP_COMPETITORS: Final = 2_048
"""Competitors whose lines are sorted in one step."""


class OrderedLines:
    """The competitors `enrolled`, in that order, by their totals. Takes some 30 bytes for each of many."""

    def __init__(self, enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> None:
        self._sign = -1 if sort is Sort.DESC else 1
        self._competitors = array("q", enrolled)  # by their places
        self._lines = SortedIntegers(sorted(self._all_lines(lambda c: totals.get(c, 0))))
        self._places = SortedIntegers(sorted(self._all_places()))

    @classmethod
    def in_steps(
        cls, enrolled: Iterable[CompetitorId], total_of: Callable[[CompetitorId], int], sort: Sort
    ) -> Generator[None, None, "OrderedLines"]:
        """Makes it with pauses for the turns of others. What `total_of` returns for a competitor must not change until
        the generator has ended."""
        order = cls((), {}, sort)
        rest = iter(enrolled)
        while run := array("q", islice(rest, _STEP_COMPETITORS)):
            order._competitors += run
            yield
        yield from order._lines.fill(merge(*(yield from _sorted_runs(order._all_lines(total_of)))))
        yield from order._places.fill(merge(*(yield from _sorted_runs(order._all_places()))))
        return order

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._places)

    def __contains__(self, competitor_id: CompetitorId) -> bool:
        return self._place(competitor_id) is not None

    def position(self, competitor_id: CompetitorId, total: int) -> int | None:
        """The position of a competitor with this total; None: they are not enrolled."""
        return None if self._place(competitor_id) is None else self._better(total) + 1

    def offset(self, competitor_id: CompetitorId, total: int) -> int | None:
        """How many lines stand before the one of a competitor with this total; None: they are not enrolled."""
        place = self._place(competitor_id)
        return None if place is None else self._lines.smaller(self._line(total, place))

    def standings(self, start: int, stop: int) -> list[Standing]:
        """The lines from offset `start` to before `stop`, fewer if there are no more. Neither may be negative."""
        sign, competitors = self._sign, cast("Items[CompetitorId]", self._competitors)
        run = self._lines.run(start, stop)
        lines = [((line >> PLACE_BITS) * sign, competitors[line & _PLACE]) for line in run]
        if not lines:
            return []
        total, competitor_id = lines[0]
        return placed(Standing, lines, start + 1, Standing(competitor_id, self._better(total) + 1, total))

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return self._lines.size_bytes + self._places.size_bytes + len(self._competitors) * self._competitors.itemsize

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    def move(self, competitor_id: CompetitorId, before: int, after: int) -> None:
        """Moves a competitor, if enrolled, from the total `before`, which must be the one given last, to `after`."""
        if before == after or (place := self._place(competitor_id)) is None:
            return
        self._lines.remove(self._line(before, place))
        self._lines.add(self._line(after, place))

    def enrol(self, competitor_id: CompetitorId, total: int) -> None:
        """Adds a competitor at the end of the list, with this total. They must not be enrolled."""
        assert competitor_id not in self
        if len(self._competitors) >= min(2 * len(self) + _SPARE_PLACES, _PLACE + 1):
            self._drop_vacant()
        place = len(self._competitors)
        self._competitors.append(competitor_id)
        self._places.add(competitor_id << PLACE_BITS | place)
        self._lines.add(self._line(total, place))

    def remove(self, competitor_id: CompetitorId, total: int) -> None:
        """Removes an enrolled competitor, whose total this must be. Raises KeyError."""
        place = self._place(competitor_id)
        if place is None:
            raise KeyError(competitor_id)
        self._lines.remove(self._line(total, place))
        self._places.remove(competitor_id << PLACE_BITS | place)

    def _drop_vacant(self) -> None:
        """Gives the enrolled the first places, in the same order. Takes O(n), after at least n enrolments."""
        if len(self) == len(self._competitors):
            return
        taken = sorted(line & _PLACE for line in self._lines)
        place_of = array("q", bytes(len(self._competitors) * self._competitors.itemsize))
        for place, before in enumerate(taken):
            place_of[before] = place
        self._competitors = array("q", [self._competitors[before] for before in taken])
        for integers in (self._lines, self._places):
            for _ in integers.fill([integer & ~_PLACE | place_of[integer & _PLACE] for integer in integers]):
                pass

    # ── Lines as whole numbers ──────────────────────────────────────────────────────────────────────────

    def _line(self, total: int, place: int) -> int:
        return total * self._sign << PLACE_BITS | place

    def _better(self, total: int) -> int:
        """How many totals are better."""
        return self._lines.smaller(total * self._sign << PLACE_BITS)

    def _place(self, competitor_id: CompetitorId) -> int | None:
        found = self._places.least_from(competitor_id << PLACE_BITS)
        return None if found is None or found >> PLACE_BITS != competitor_id else found & _PLACE

    def _all_lines(self, total_of: Callable[[CompetitorId], int]) -> Iterator[int]:
        sign = self._sign
        for place, competitor_id in enumerate(self._competitors):
            yield total_of(CompetitorId(competitor_id)) * sign << PLACE_BITS | place

    def _all_places(self) -> Iterator[int]:
        for place, competitor_id in enumerate(self._competitors):
            yield competitor_id << PLACE_BITS | place


def _sorted_runs(integers: Iterator[int]) -> Generator[None, None, list[SortedIntegers]]:
    """The numbers in runs, each in ascending order."""
    runs = []
    while run := sorted(islice(integers, _STEP_COMPETITORS)):
        runs.append(SortedIntegers(run))
        yield
    return runs
