"""Totals to positions: who stands where in one unity.

THE POSITION RULE. A competitor's position is 1 + the number of strictly better totals, better being higher where
the unity sorts DESC and lower where it sorts ASC. So equal totals share a position and the next one is skipped:
1, 2, 2, 4. Standings list every participant of the ranking, those without points with total 0, by position, and
within one position in the order of enrolment; nothing else breaks a tie, because nothing else was agreed.

The rule has four forms: `standings` sorts and counts; `OrderedTotals` bisects, for code that follows one unity of the
past while its totals change; `OrderedLines` (`order.py`) also finds the line at an offset, at the same cost for a
million competitors as for few; the view `standing` ranks, for people with SQL (`migrations/0002_tables.sql`). They are
held together by `test_the_four_forms_of_the_position_rule_agree_with_its_sentence`, in
`tests/projections/test_positions.py`.

Pure. Totals are whole numbers; they may be negative.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Items
from itertools import chain, repeat
from operator import itemgetter
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from engine.domain.terms import CompetitorId, Sort


class Standing(Struct, frozen=True, gc=False):
    """One competitor's line in a unity."""

    competitor_id: CompetitorId
    position: int
    total: int


_L = TypeVar("_L", bound="Placed")


class Placed(Protocol):
    """Where a line stands."""

    @property
    def position(self) -> int: ...
    @property
    def total(self) -> int: ...


def standings(enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> list[Standing]:
    """The lines of the competitors `enrolled` (in that order) for the sums in `totals`, best first."""
    places = list(enrolled)
    return placed(Standing, ordered(places, [totals.get(competitor_id, 0) for competitor_id in places], sort))


def ordered(places: Iterable[int], column: Iterable[int], sort: Sort) -> list[tuple[int, CompetitorId]]:
    """Total and competitor of each line of the standings, in their order, from the places of an enrolment and the sums
    beside them, as `enrolment.py` keeps them; `placed` tells the positions."""
    beside = zip(chain(column, repeat(0)), places, strict=False)
    lines = [(total, CompetitorId(competitor_id)) for total, competitor_id in beside if competitor_id > 0]
    lines.sort(key=_TOTAL, reverse=sort is Sort.DESC)  # stable, reversed too: equal totals stay in order
    return lines


def placed(
    line: Callable[[CompetitorId, int, int], _L],
    lines: Items[tuple[int, CompetitorId]],
    first: int = 1,
    above: _L | None = None,
) -> list[_L]:
    """The lines with their positions: each is `line(competitor, position, total)`. They follow the line `above`, and
    the first of them is line `first` of the standings."""
    result = []
    position, previous = (0, None) if above is None else (above.position, above.total)
    for place, (total, competitor_id) in enumerate(lines, start=first):
        if total != previous:
            position, previous = place, total
        result.append(line(competitor_id, position, total))
    return result


class OrderedTotals:
    """Positions while totals change: found by bisection, where `standings` would sort and count anew.

    It keeps the totals of the enrolled competitors in order, the better first. So the number of better totals is an
    index of that list, and a change of one total moves one entry of it. The totals themselves are the caller's.
    """

    def __init__(self, enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> None:
        self.enrolled = frozenset(enrolled)
        self._sign = -1 if sort is Sort.DESC else 1
        # A total that is better is smaller here; of equal ones, whose it is tells them apart.
        self._places = sorted((totals.get(competitor_id, 0) * self._sign, competitor_id) for competitor_id in enrolled)

    def position(self, competitor_id: CompetitorId, total: int) -> int | None:
        """The position of a competitor with this total; None: they are not enrolled."""
        if competitor_id not in self.enrolled:
            return None
        return bisect_left(self._places, (total * self._sign,)) + 1

    def move(self, competitor_id: CompetitorId, before: int, after: int) -> None:
        """Moves a competitor from the total `before`, which must be the one given last, to `after`."""
        if before != after and competitor_id in self.enrolled:
            places = self._places
            del places[bisect_left(places, (before * self._sign, competitor_id))]
            insort(places, (after * self._sign, competitor_id))

    def move_all(self, before: Mapping[CompetitorId, int], totals: Mapping[CompetitorId, int]) -> None:
        """Moves the competitors of `before`, their totals until now, to `totals`, which holds the totals of all."""
        if len(before) * _RESORT_FACTOR > len(self._places):
            self._places = sorted((totals.get(c, 0) * self._sign, c) for c in self.enrolled)
            return
        for competitor_id, total in before.items():
            self.move(competitor_id, total, totals[competitor_id])

    def between(self, one: int, other: int) -> list[CompetitorId]:
        """The competitors whose totals are one of the two or lie between them, the better first."""
        first, last = sorted((one * self._sign, other * self._sign))
        places = self._places
        start = bisect_left(places, (first,))
        end = bisect_left(places, (last + 1,), lo=start)
        return [competitor_id for _, competitor_id in places[start:end]]

    def compared(self, one: int, other: int) -> int:
        """1, 0 or -1: a total is better than another, as good, or worse."""
        return ((one < other) - (one > other)) * self._sign


_TOTAL: Final = itemgetter(0)
_RESORT_FACTOR: Final = 16
"""If more than one in so many moves, sorting anew takes less time than moving each."""
