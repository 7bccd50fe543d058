"""Totals to positions: who stands where in one unity.

THE POSITION RULE. A competitor's position is 1 + the number of strictly better totals, better being higher where
the unity sorts DESC and lower where it sorts ASC. So equal totals share a position and the next one is skipped:
1, 2, 2, 4. A standing lists every competitor of the ranking, those without points with total 0, by position, and
within one position in the order of enrolment; nothing else breaks a tie, because nothing else was agreed.

Pure. Totals are whole numbers; they may be negative.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from operator import itemgetter
from typing import Final

from msgspec import Struct

from engine.domain.terms import CompetitorId, Sort


class Standing(Struct, frozen=True, gc=False):
    """One competitor's line in a unity."""

    competitor_id: CompetitorId
    position: int
    total: int


def standings(enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> list[Standing]:
    """The lines of the competitors `enrolled` (in that order) for the sums in `totals`, best first."""
    return placed(ordered(enrolled, totals, sort))


def ordered(
    enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort
) -> list[tuple[int, CompetitorId]]:
    """Total and competitor of each line of a standing, in its order; `placed` tells the positions."""
    total_of = totals.get
    lines = [(total_of(competitor_id, 0), competitor_id) for competitor_id in enrolled]
    lines.sort(key=_TOTAL, reverse=sort is Sort.DESC)  # stable, reversed too: equal totals stay in order
    return lines


def placed(lines: Items[tuple[int, CompetitorId]], first: int = 1, above: Standing | None = None) -> list[Standing]:
    """The lines that follow `above` in a standing, the first of which is line `first` of it."""
    result = []
    position, previous = (0, None) if above is None else (above.position, above.total)
    for place, (total, competitor_id) in enumerate(lines, start=first):
        if total != previous:
            position, previous = place, total
        result.append(Standing(competitor_id, position, total))
    return result


_TOTAL: Final = itemgetter(0)
