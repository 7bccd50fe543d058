"""Cases of the position rule (`projections/board/standing.py`), for Python and for the script of the board."""

from collections.abc import Iterable, Mapping
from typing import Final

import pytest

from engine.domain.terms import CompetitorId, Sort
from projections.board.standing import Standing, ordered, placed

ANNA, BEN, CARA, DORA, EMIL = map(CompetitorId, (5, 4, 3, 2, 1))
ENROLLED: Final = (ANNA, BEN, CARA, DORA)
"""In this order. EMIL has left the ranking."""

POSITIONS: Final = [
    pytest.param(
        {ANNA: 3, BEN: 7, CARA: 7, DORA: 9},
        Sort.DESC,
        [(DORA, 1, 9), (BEN, 2, 7), (CARA, 2, 7), (ANNA, 4, 3)],
        id="the highest first, ties share a position and the next is skipped",
    ),
    pytest.param(
        {ANNA: 3, BEN: 7, CARA: 7, DORA: 9},
        Sort.ASC,
        [(ANNA, 1, 3), (BEN, 2, 7), (CARA, 2, 7), (DORA, 4, 9)],
        id="the lowest first",
    ),
    pytest.param(
        {},
        Sort.DESC,
        [(ANNA, 1, 0), (BEN, 1, 0), (CARA, 1, 0), (DORA, 1, 0)],
        id="before the first points all are first, in the order of enrolment",
    ),
    pytest.param(
        {},
        Sort.ASC,
        [(ANNA, 1, 0), (BEN, 1, 0), (CARA, 1, 0), (DORA, 1, 0)],
        id="ascending likewise",
    ),
    pytest.param(
        {BEN: -1, DORA: 1},
        Sort.DESC,
        [(DORA, 1, 1), (ANNA, 2, 0), (CARA, 2, 0), (BEN, 4, -1)],
        id="no points are better than lost points",
    ),
    pytest.param(
        {CARA: 0, EMIL: 100},
        Sort.DESC,
        [(ANNA, 1, 0), (BEN, 1, 0), (CARA, 1, 0), (DORA, 1, 0)],
        id="a total of zero is as no points, and the departed are not there",
    ),
    pytest.param(
        {BEN: 2, CARA: 2, DORA: 2},
        Sort.ASC,
        [(ANNA, 1, 0), (BEN, 2, 2), (CARA, 2, 2), (DORA, 2, 2)],
        id="any number share a position",
    ),
    pytest.param(
        {ANNA: 2**53, BEN: 2**53 + 1, CARA: -(2**53) - 1, DORA: -(2**53)},
        Sort.DESC,
        [(BEN, 1, 2**53 + 1), (ANNA, 2, 2**53), (DORA, 3, -(2**53)), (CARA, 4, -(2**53) - 1)],
        id="totals that no floating-point number holds are told apart",
    ),
]
"""Totals, the sort, and the lines in order: competitor, position, total."""


def standings(enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> list[Standing]:
    """The lines of the competitors `enrolled` (in that order) for the sums in `totals`, best first."""
    places = list(enrolled)
    return placed(Standing, ordered(places, [totals.get(competitor_id, 0) for competitor_id in places], sort))
