"""Marks: the stored form of totals in a unity that counts results: the best one, the last one, or their sum.

Pure. A competitor without a counting result has no total, and stands behind all others. So a mark is the total shifted
past 0 to the better side, and 0 means no total. Marks are compared, sorted and stored like sums. Answers convert them
to totals. A sum stays within the shift for 2²² lines of DELTA_MAX.
"""

from typing import Final

from engine.domain.terms import RESULT_MAX, Counts, Sort

BEYOND: Final = RESULT_MAX + 1


def mark_of(result: int | None, sort: Sort) -> int:
    """The mark of a result; 0 if there is none."""
    if result is None:
        return 0
    return result + BEYOND if sort is Sort.DESC else result - BEYOND


def result_of(mark: int, sort: Sort) -> int | None:
    """The result of a mark; None: there is no total."""
    if mark == 0:
        return None
    return mark - BEYOND if sort is Sort.DESC else mark + BEYOND


def mark_after(before: int, result: int, counts: Counts, sort: Sort) -> int:
    """The mark of a competitor after a new result; `before`: the mark until then."""
    if counts is Counts.SUM and before:
        return before + result
    mark = result + BEYOND if sort is Sort.DESC else result - BEYOND
    if counts is Counts.LAST or before == 0:
        return mark
    return max(before, mark) if sort is Sort.DESC else min(before, mark)
