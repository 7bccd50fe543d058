"""The lines of a unity in order, against the standings made by sorting."""

from collections.abc import Iterable, Mapping
from typing import Final
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain.steps import finished
from engine.domain.terms import ENROLLED_MAX, CompetitorId, Sort
from projections.board import order
from projections.board.order import OrderedLines, line_of
from projections.columns import enrolment, sorted_integers
from projections.columns.enrolment import Enrolment, Totals
from tests.histories import unhurried
from tests.positions import standings

everybody: Final = [CompetitorId(n) for n in (*range(1, 13), 2**63 - 1)]
who: Final = st.sampled_from(everybody)
lists: Final = st.lists(who, unique=True)
totals: Final = st.integers(-2, 2) | st.sampled_from([-(2**62), 2**62, 2**39 - 1, 2**39, -(2**39)]) | st.integers()
steps: Final = st.lists(
    st.tuples(st.just("add"), who, totals) | st.tuples(st.sampled_from(["come or go", "make again"]), who, st.just(0)),
    max_size=30,
)
sorts: Final = st.sampled_from(Sort)


class Unity:
    """A list and its totals, and the order that is kept beside them."""

    def __init__(self, enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> None:
        self.enrolment, self.sort = Enrolment(enrolled), sort
        self.totals = Totals(self.enrolment, totals)
        self.order = OrderedLines(self.enrolment, self.totals, sort)

    def add(self, competitor_id: CompetitorId, amount: int) -> None:
        before = self._line(competitor_id)
        self.totals.add(competitor_id, amount)
        self.order.replace(before, self._line(competitor_id))

    def come_or_go(self, competitor_id: CompetitorId) -> None:
        before, generation = self._line(competitor_id), self.enrolment.generation
        if not self.enrolment.remove(competitor_id):
            self.enrolment.enrol(competitor_id)
        if self.enrolment.generation == generation:
            self.order.replace(before, self._line(competitor_id))
        else:
            self.make_again()

    def make_again(self) -> None:
        self.order = finished(OrderedLines.in_steps(self.enrolment, self.totals, self.sort))

    def _line(self, competitor_id: CompetitorId) -> int | None:
        return line_of(competitor_id, self.enrolment, self.totals, self.sort)

    def assert_right(self) -> None:
        found, expected = self.order, standings(self.enrolment, self.totals, self.sort)
        assert len(found) == len(expected)
        assert found.standings(0, len(expected) + 1) == expected
        for start in range(len(expected) + 2):
            for lines in (0, 1, 3):
                assert found.standings(start, start + lines) == expected[start : start + lines]
        offsets = {line.competitor_id: offset for offset, line in enumerate(expected)}
        for competitor_id in everybody:
            offset = offsets.get(competitor_id)
            assert found.offset(competitor_id) == offset
            assert found.standing(competitor_id) == (None if offset is None else expected[offset])


@unhurried
@given(lists, st.dictionaries(who, totals), sorts, steps)
@example(
    start=everybody[:2],
    sums={},
    sort=Sort.DESC,
    changes=[("come or go", everybody[n % 2], 0) for n in range(12)] + [("add", everybody[0], 2**62)],
)
def test_lines_stay_those_of_the_rule_whatever_happens(
    start: list[CompetitorId],
    sums: dict[CompetitorId, int],
    sort: Sort,
    changes: list[tuple[str, CompetitorId, int]],
) -> None:
    """With leaves and spare places so few that they divide, join and are given again all the time."""
    with (
        mock.patch.multiple(sorted_integers, LEAF_MAX=4, _LEAF_FILLED=3, _LEAF_MIN=2),
        mock.patch.object(enrolment, "VACANT_SPARE", 1),
        mock.patch.object(order, "_STEP_COMPETITORS", 2),
    ):
        unity = Unity(start, sums, sort)
        unity.assert_right()
        for kind, competitor_id, amount in changes:
            if kind == "add":
                unity.add(competitor_id, amount)
            elif kind == "come or go":
                unity.come_or_go(competitor_id)
            else:
                unity.make_again()
            unity.assert_right()


@pytest.mark.parametrize("sort", Sort)
def test_totals_of_64_bits_are_kept_exactly(sort: Sort) -> None:
    sums = {CompetitorId(n): (-1) ** n * (2**62 - n // 4) for n in range(1, 5_001)}
    unity = Unity(sums, sums, sort)
    for competitor_id, total in sums.items():
        unity.add(competitor_id, -2 * total)
    assert unity.order.standings(0, 5_000) == standings(sums, {c: -total for c, total in sums.items()}, sort)


@pytest.mark.parametrize("sort", Sort)
def test_order_is_kept_after_two_million_enrolments(sort: Sort) -> None:
    """As if 2²¹ had come and gone: new places lie above theirs, until places are given again."""
    unity = Unity(everybody[:4], {everybody[1]: 2**62, everybody[5]: -(2**62)}, sort)
    unity.enrolment.append_places(bytes(2**21))
    with mock.patch.object(enrolment, "VACANT_SPARE", 2**22):
        turn_over(unity)
        assert len(unity.enrolment.places) > 2**21
        unity.assert_right()
    turn_over(unity)
    assert len(unity.enrolment.places) < 40
    unity.assert_right()


def turn_over(unity: Unity) -> None:
    """Everybody comes or goes, three times."""
    for competitor_id in everybody * 3:
        unity.come_or_go(competitor_id)


def test_held_lines_stay_what_they_were() -> None:
    unity = Unity(everybody, {one: -n for n, one in enumerate(everybody)}, Sort.DESC)
    held = unity.order.held(2, 7)
    for one in everybody:
        unity.add(one, int(one) % 5)
    unity.come_or_go(everybody[3])
    assert (len(held), list(held)) == (5, everybody[2:7])


def test_places_of_a_line_do_not_run_out() -> None:
    """A million competitors, each with one place, and the vacant places that may be among them."""
    assert 2 * ENROLLED_MAX + enrolment.VACANT_SPARE < 2**order.PLACE_BITS


def test_a_line_that_is_not_there_cannot_be_replaced() -> None:
    unity = Unity(everybody[:3], {}, Sort.DESC)
    with pytest.raises(KeyError):
        unity.order.replace(1 << 60, None)
    unity.assert_right()


@pytest.mark.long
def test_a_member_takes_at_most_20_bytes_without_the_total() -> None:
    sums = {CompetitorId(n): n * 7919 % 1_000_003 for n in range(1, 100_001)}
    unity = Unity(sums, sums, Sort.DESC)
    assert unity.order.size_bytes < 15 * len(sums)
    for competitor_id, total in sums.items():
        unity.add(competitor_id, total * 31 % 99_991)
    assert unity.order.size_bytes < 20 * len(sums)
    assert unity.order.standings(0, 10) == standings(sums, unity.totals, Sort.DESC)[:10]
