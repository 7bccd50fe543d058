"""What the table of growth says follows from what was measured."""

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.leaderboard import Board
from benchmarks.sizes.measuring import Cell
from benchmarks.sizes.operations import ROWS, Kind
from benchmarks.sizes.table import SMALLEST_NAME, exponent_of, exponents, found
from benchmarks.sizes.worlds import DIMENSIONS, SMALLEST, STEPS

QUICK = [step for step in STEPS if step.is_quick]


@given(power=st.floats(-1, 3), cost=st.floats(0.1, 1e6), sizes=st.lists(st.integers(1, 10**6), min_size=2, unique=True))
def test_a_cost_that_is_a_power_of_the_size_has_that_exponent(power: float, cost: float, sizes: list[int]) -> None:
    points = [(size, cost * size**power) for size in sorted(sizes)]
    assert exponent_of(points) == pytest.approx(power, abs=1e-6)


def test_a_cliff_between_two_sizes_shows_though_the_next_is_flat() -> None:
    assert exponent_of([(100, 5.0), (10_000, 500.0), (1_000_000, 500.0)]) == pytest.approx(1)
    assert exponent_of([(1, 5.0), (10_000, 4.9), (100_000, 50.0)]) == pytest.approx(1)


def test_one_cost_in_the_middle_that_was_measured_too_low_is_not_growth() -> None:
    assert exponent_of([(2, 1_510), (10_000, 1_050), (100_000, 1_590)]) == pytest.approx(0, abs=0.03)


def test_a_size_that_was_not_measured_is_passed_over() -> None:
    assert exponent_of([(100, 5.0), (10_000, None)]) is None
    assert exponent_of([(100, 5.0), (10_000, None), (1_000_000, 5.0)]) == pytest.approx(0)


def test_what_must_be_flat_has_no_excuse_and_every_reason_names_a_dimension() -> None:
    assert [one.name for one in ROWS if one.must_be_flat and one.because] == []
    assert {dimension for one in ROWS for dimension in one.because} <= set(DIMENSIONS)
    assert len({one.name for one in ROWS}) == len(ROWS)


def test_growth_is_marked_where_it_must_not_be_and_explained_where_it_may() -> None:
    def cells(cost_us: float) -> dict[str, Cell]:
        return {row.name: Cell(cost_us=cost_us, stall_ms=1.0) for row in ROWS}

    known = {SMALLEST_NAME: cells(100.0)} | {step.name: cells(100.0) for step in QUICK}
    flat = found(known, QUICK)
    assert not any(one.grows for one in flat)

    grown = next(step for step in QUICK if step.dimension == "participants")
    known[grown.name] = cells(100.0 * grown.count / SMALLEST.participants)
    grows = [one for one in found(known, QUICK) if one.grows]
    assert {one.dimension for one in grows} == {"participants"}
    assert len(grows) == len(ROWS)
    shown = {row[0]: row[3 + DIMENSIONS.index("participants")] for row in exponents(known, QUICK).rows}
    for row in ROWS:
        may = row.kind is Kind.OTHER and "participants" in row.because
        assert shown[row.name] == ("1.00*" if may else "1.00!")


@given(st.dictionaries(st.integers(1, 50), st.integers(-3, 3), min_size=1))
def test_the_board_to_compare_with_gives_equal_totals_equal_positions(totals: dict[int, int]) -> None:
    lines = Board(totals, totals).lines
    for total, equal in groupby(lines, key=lambda line: line.total):
        members = list(equal)
        assert {line.position for line in members} == {1 + sum(other > total for other in totals.values())}
        assert [line.competitor_id for line in members] == [m for m in totals if totals[m] == total]
