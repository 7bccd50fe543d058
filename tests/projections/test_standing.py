"""The position rule, against the sentence that defines it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.terms import DELTA_MAX, CompetitorId, Sort
from projections.board.order import OrderedLines
from projections.board.standing import Standing
from projections.columns.enrolment import Enrolment, Totals
from tests.histories import unhurried
from tests.positions import ANNA, ENROLLED, POSITIONS, standings

enrolments = st.lists(st.integers(1, 50).map(CompetitorId), unique=True, max_size=30)
totals_of = st.dictionaries(
    st.integers(1, 50).map(CompetitorId), st.integers(-2, 2) | st.integers(-(2**32) * DELTA_MAX, 2**32 * DELTA_MAX)
)
sorts = st.sampled_from(Sort)


def is_better(one: int, other: int, sort: Sort) -> bool:
    return one > other if sort is Sort.DESC else one < other


@unhurried
@given(enrolments, totals_of, sorts)
def test_a_position_is_one_more_than_the_number_of_strictly_better_totals(
    enrolled: list[CompetitorId], totals: dict[CompetitorId, int], sort: Sort
) -> None:
    every_total = [totals.get(competitor_id, 0) for competitor_id in enrolled]
    for line in standings(enrolled, totals, sort):
        assert line.position == 1 + sum(is_better(total, line.total, sort) for total in every_total)


@unhurried
@given(enrolments, totals_of, sorts)
def test_a_standing_lists_everyone_enrolled_and_nobody_else_with_their_total_or_zero(
    enrolled: list[CompetitorId], totals: dict[CompetitorId, int], sort: Sort
) -> None:
    lines = standings(enrolled, totals, sort)
    assert len(lines) == len(enrolled)
    assert {line.competitor_id: line.total for line in lines} == {c: totals.get(c, 0) for c in enrolled}


@unhurried
@given(enrolments, totals_of, sorts)
def test_lines_are_ordered_by_position_and_then_by_the_order_of_enrolment(
    enrolled: list[CompetitorId], totals: dict[CompetitorId, int], sort: Sort
) -> None:
    lines = standings(enrolled, totals, sort)
    assert lines == sorted(lines, key=lambda line: (line.position, enrolled.index(line.competitor_id)))


@unhurried
@given(enrolments, totals_of, sorts)
def test_the_totals_of_the_departed_change_nothing(
    enrolled: list[CompetitorId], totals: dict[CompetitorId, int], sort: Sort
) -> None:
    of_enrolled = {competitor_id: total for competitor_id, total in totals.items() if competitor_id in enrolled}
    assert standings(enrolled, totals, sort) == standings(enrolled, of_enrolled, sort)


@unhurried
@given(enrolments, totals_of)
def test_ascending_is_descending_of_the_opposite_totals(
    enrolled: list[CompetitorId], totals: dict[CompetitorId, int]
) -> None:
    opposite = {competitor_id: -total for competitor_id, total in totals.items()}
    ascending = standings(enrolled, totals, Sort.ASC)
    descending = standings(enrolled, opposite, Sort.DESC)
    assert ascending == [Standing(line.competitor_id, line.position, -line.total) for line in descending]


@pytest.mark.parametrize(("totals", "sort", "then"), POSITIONS)
def test_standings(totals: dict[CompetitorId, int], sort: Sort, then: list[tuple[CompetitorId, int, int]]) -> None:
    assert standings(ENROLLED, totals, sort) == [Standing(*line) for line in then]
    enrolment = Enrolment(ENROLLED)
    order = OrderedLines(enrolment, Totals(enrolment, totals), sort)
    assert [order.standing(competitor_id) for competitor_id, _, _ in then] == [Standing(*line) for line in then]


def test_a_ranking_of_nobody_has_no_lines() -> None:
    assert standings([], {ANNA: 3}, Sort.DESC) == []
