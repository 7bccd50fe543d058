"""Sub-tables, against positions counted in the whole standings."""

from typing import Final, cast
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.steps import Steps, finished
from engine.domain.terms import CompetitorId, Sort
from projections.board import order as orders
from projections.board import sub_table as sub_tables
from projections.board.order import OrderedLines
from projections.board.standing import Standing
from projections.board.sub_table import SubLine, SubTable, UnityLines
from projections.columns.enrolment import Enrolment, Totals
from tests.histories import unhurried
from tests.positions import standings

who: Final = st.integers(1, 12).map(CompetitorId)


def counted(whole: list[Standing], among: set[CompetitorId]) -> list[SubLine[Standing]]:
    """By the sentence: 1 + the number of lines in the sub-table that stand better in the whole."""
    lines = [line for line in whole if line.competitor_id in among]
    return [SubLine(1 + sum(other.position < line.position for other in lines), line) for line in lines]


def steps_of(lines: UnityLines, among: list[CompetitorId], at_once: int) -> Steps[list[Standing]]:
    with (
        mock.patch.multiple(sub_tables, SOUGHT_AT_ONCE_MAX=at_once, _STEP_COMPETITORS=2),
        mock.patch.object(orders, "_RUN_LINES", 3),
    ):
        return (yield from lines.among(among))


@pytest.mark.parametrize("at_once", [0, 12])
@unhurried
@given(
    st.lists(who, unique=True),
    st.dictionaries(who, st.integers(-2, 2)),
    st.sampled_from(Sort),
    st.lists(who, unique=True),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_a_sub_table_has_the_order_of_the_whole_and_positions_of_its_own(
    at_once: int,
    enrolled: list[CompetitorId],
    totals: dict[CompetitorId, int],
    sort: Sort,
    among: list[CompetitorId],
    start: int,
    count: int,
) -> None:
    """However few of them are looked up one by one, and whatever changes once it has been begun."""
    enrolment = Enrolment(enrolled)
    sums = Totals(enrolment, totals)
    expected = counted(standings(enrolment, sums, sort), set(among))
    order = OrderedLines(enrolment, sums, sort)
    finding = steps_of(UnityLines(order), among, at_once)
    found = begun(finding)
    for competitor_id in enrolled:
        before = order.line(competitor_id)
        sums.add(competitor_id, 7 * competitor_id)
        enrolment.remove(competitor_id)
        enrolment.enrol(competitor_id)
        order.replace(before, order.line(competitor_id))
    table = SubTable(finished(finding) if found is None else found)
    assert len(table) == len(expected)
    assert finished(table.run(0, 100)) == expected
    assert finished(table.run(start, start + count)) == expected[start : start + count]
    for competitor_id in {*enrolled, *among}:
        place = next((n for n, line in enumerate(expected) if line.whole.competitor_id == competitor_id), None)
        assert table.place(competitor_id) == place
        first = 0 if place is None else place // (count + 1) * (count + 1)
        page = None if place is None else (first, expected[first : first + count + 1])
        assert finished(table.page(competitor_id, count + 1)) == page
        line = None if place is None else expected[place]
        assert finished(table.of([competitor_id])) == {competitor_id: line}
        around = None if place is None else expected[max(place - count, 0) : place + count + 1]
        assert finished(table.around(competitor_id, count)) == around


def begun(finding: Steps[list[Standing]]) -> list[Standing] | None:
    """What the first step finds; None: there are more steps."""
    try:
        next(finding)
    except StopIteration as end:
        return cast(list[Standing], end.value)
    return None


def test_few_are_found_without_a_pause_and_more_are_not() -> None:
    most = sub_tables.SOUGHT_AT_ONCE_MAX
    enrolment = Enrolment([CompetitorId(n) for n in range(1, most + 2)])
    lines = UnityLines(OrderedLines(enrolment, Totals(enrolment), Sort.DESC))
    everybody = list(enrolment)
    assert begun(lines.among(everybody[:most])) is not None
    assert begun(lines.among(everybody)) is None
