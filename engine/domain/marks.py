"""How a total of a unity that counts results is kept: as a mark.

Pure. Without a result that counts there is no total, and such a line stands behind all others. So the number that is
kept is the result, moved beyond 0 to the side of the better ones; 0 stands for no total. Marks are compared, sorted and
stored as sums are. They are turned into results where people or programs are shown them.
"""

from typing import Final

from engine.domain.terms import RESULT_MAX, Counts, Sort

BEYOND: Final = RESULT_MAX + 1


def mark_of(result: int | None, sort: Sort) -> int:
    """The mark that a result is kept as; 0 for none."""
    if result is None:
        return 0
    return result + BEYOND if sort is Sort.DESC else result - BEYOND


def result_of(mark: int, sort: Sort) -> int | None:
    """The result that is kept as this mark; None: there is none."""
    if mark == 0:
        return None
    return mark - BEYOND if sort is Sort.DESC else mark + BEYOND


def mark_after(before: int, result: int, counts: Counts, sort: Sort) -> int:
    """The mark of a competitor who had the mark `before`, after another result."""
    mark = result + BEYOND if sort is Sort.DESC else result - BEYOND
    if counts is Counts.LAST or before == 0:
        return mark
    return max(before, mark) if sort is Sort.DESC else min(before, mark)
