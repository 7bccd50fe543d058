"""Totals to positions: the standings of one unity.

THE POSITION RULE. A competitor's position is 1 + the number of strictly better totals, better being higher where
the unity sorts DESC and lower where it sorts ASC. So equal totals share a position and the next one is skipped:
1, 2, 2, 4. Standings list every participant of the ranking, those without points with total 0, by position, and
within one position in the order of enrolment. Nothing else breaks a tie, because no other criterion was agreed.

The rule is written in three files. Here, `position_after` is the rule for one line, and `placed` for many at once.
Others ask it: `OrderedLines` (`order.py`) follows one unity while its totals change, at nearly the same cost for a
million competitors as for few; `sub_table.py` counts again within a sub-table; classifications give positions to groups
of equal lines. The view `standing` ranks, for people with SQL (`migrations/0002_tables.sql`). `fold.js` moves lines in
the browser. One table of cases (`tests/positions.py`) is for Python and the script;
`test_the_three_forms_of_the_position_rule_agree_with_its_sentence` holds `placed`, `OrderedLines` and the view
together.

Pure. Totals are whole numbers; they may be negative.
"""

from collections.abc import Callable, Collection, Iterable
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


def position_after(better: int) -> int:
    """The position of a line with this many strictly better ones."""
    return better + 1


class Placed(Protocol):
    """Where a line stands."""

    @property
    def position(self) -> int: ...
    @property
    def total(self) -> int | None: ...


_L = TypeVar("_L", bound=Placed)
_C = TypeVar("_C", bound=int)


def ordered(places: Collection[_C], column: Iterable[int], sort: Sort) -> list[tuple[int, _C]]:
    """Total and competitor of each line of the standings, in their order, from the places of an enrolment and their
    sums (`enrolment.py`); `placed` adds the positions."""
    found = zip(chain(column, repeat(0)), places, strict=False)
    lines = list(found) if min(places, default=1) > 0 else [line for line in found if line[1] > 0]
    lines.sort(key=_TOTAL, reverse=sort is Sort.DESC)  # stable, reversed too: equal totals stay in order
    return lines


def placed(
    line: Callable[[_C, int, int], _L],
    lines: Items[tuple[int, _C]],
    first: int = 1,
    above: _L | None = None,
) -> list[_L]:
    """The lines with their positions: each is `line(competitor, position, total)`. They follow the line `above`, and
    the first of them is line `first` of the standings."""
    made: list[_L] = []
    position, before = (first, None) if above is None else (above.position, above.total)
    for number, (total, competitor) in enumerate(lines, first):
        if total != before:
            position, before = number, total
        made.append(line(competitor, position, total))
    return made


_TOTAL: Final = itemgetter(0)
