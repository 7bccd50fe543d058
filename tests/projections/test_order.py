"""The lines of a unity in order, against the standings made by sorting."""

from collections.abc import Mapping
from typing import Final
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain.terms import CompetitorId, Sort
from projections.board import order, sorted_integers
from projections.board.order import OrderedLines
from projections.board.standing import ordered, standings
from projections.past.history import finished
from tests.histories import unhurried

everybody: Final = [CompetitorId(n) for n in (*range(1, 13), 2**63 - 1)]
who: Final = st.sampled_from(everybody)
lists: Final = st.lists(who, unique=True)
totals: Final = st.integers(-2, 2) | st.sampled_from([-(2**62), 2**62, 2**39 - 1, 2**39, -(2**39)]) | st.integers()
steps: Final = st.lists(
    st.tuples(st.just("move"), who, totals)
    | st.tuples(st.just("come or go"), who, st.just(0))
    | st.tuples(st.just("replace"), lists, st.just(0)),
    max_size=30,
)
sorts: Final = st.sampled_from(Sort)


def assert_the_same(
    found: OrderedLines, enrolled: list[CompetitorId], sums: Mapping[CompetitorId, int], sort: Sort
) -> None:
    expected = standings(enrolled, sums, sort)
    assert len(found) == len(expected)
    assert found.standings(0, len(expected) + 1) == expected
    for start in range(len(expected) + 2):
        for lines in (0, 1, 3):
            assert found.standings(start, start + lines) == expected[start : start + lines]
    offsets = {line.competitor_id: offset for offset, line in enumerate(expected)}
    for competitor_id in everybody:
        total, offset = sums.get(competitor_id, 0), offsets.get(competitor_id)
        assert (competitor_id in found) == (offset is not None)
        assert found.offset(competitor_id, total) == offset
        assert found.position(competitor_id, total) == (None if offset is None else expected[offset].position)


@unhurried
@given(lists, st.dictionaries(who, totals), sorts, steps)
@example(
    start=everybody[:2],
    sums={},
    sort=Sort.DESC,
    changes=[("come or go", everybody[n % 2], 0) for n in range(12)] + [("move", everybody[0], 2**62)],
)
def test_lines_stay_those_of_the_rule_whatever_happens(
    start: list[CompetitorId],
    sums: dict[CompetitorId, int],
    sort: Sort,
    changes: list[tuple[str, CompetitorId | list[CompetitorId], int]],
) -> None:
    """With leaves and spare places so few that they divide, join and are renumbered all the time."""
    enrolled = list(start)
    sums = dict(sums)
    with (
        mock.patch.multiple(sorted_integers, LEAF_MAX=4, _LEAF_FILLED=3, _LEAF_MIN=2),
        mock.patch.multiple(order, _SPARE_PLACES=1, _STEP_COMPETITORS=2),
    ):
        found = OrderedLines(enrolled, sums, sort)
        assert_the_same(found, enrolled, sums, sort)
        for kind, whom, total in changes:
            if isinstance(whom, list):
                enrolled = list(whom)
                found = finished(OrderedLines.in_steps(enrolled, lambda c: sums.get(c, 0), sort))
            elif kind == "move":
                found.move(whom, sums.get(whom, 0), total)
                sums[whom] = total
            elif whom in enrolled:
                enrolled.remove(whom)
                found.remove(whom, sums.get(whom, 0))
            else:
                enrolled.append(whom)
                found.enrol(whom, sums.get(whom, 0))
            assert_the_same(found, enrolled, sums, sort)


@pytest.mark.parametrize("sort", Sort)
def test_totals_of_64_bits_are_kept_exactly(sort: Sort) -> None:
    sums = {CompetitorId(n): (-1) ** n * (2**62 - n // 4) for n in range(1, 5_001)}
    found = OrderedLines(sums, sums, sort)
    for competitor_id, total in [*sums.items()]:
        sums[competitor_id] = -total
        found.move(competitor_id, total, -total)
    assert found.standings(0, 5_000) == standings(sums, sums, sort)


@pytest.mark.parametrize("sort", Sort)
def test_order_is_kept_after_two_million_enrolments(sort: Sort) -> None:
    """As if 2²¹ had come and gone: new places lie above theirs, until the places of the departed are used again."""
    enrolled, sums = everybody[:4], {everybody[1]: 2**62, everybody[5]: -(2**62)}
    found = OrderedLines(enrolled, sums, sort)
    found._competitors.frombytes(bytes(2**21 * found._competitors.itemsize))
    with mock.patch.object(order, "_SPARE_PLACES", 2**22):
        turn_over(found, enrolled, sums)
        assert len(found._competitors) > 2**21
        assert_the_same(found, enrolled, sums, sort)
    turn_over(found, enrolled, sums)
    assert len(found._competitors) < 40
    assert_the_same(found, enrolled, sums, sort)
    for competitor_id, total in [*sums.items()]:
        found.move(competitor_id, total, 0)
    assert_the_same(found, enrolled, {}, sort)


def turn_over(found: OrderedLines, enrolled: list[CompetitorId], sums: dict[CompetitorId, int]) -> None:
    """Everybody comes or goes, twice."""
    for competitor_id in everybody * 2:
        if competitor_id in enrolled:
            enrolled.remove(competitor_id)
            found.remove(competitor_id, sums.get(competitor_id, 0))
        else:
            enrolled.append(competitor_id)
            found.enrol(competitor_id, sums.get(competitor_id, 0))


def test_places_do_not_run_out() -> None:
    enrolled, sums = list(everybody), {competitor_id: competitor_id % 5 for competitor_id in everybody}
    with mock.patch.multiple(order, PLACE_BITS=4, _PLACE=15):
        found = OrderedLines(enrolled, sums, Sort.DESC)
        for n in range(100):
            coming_back = enrolled.pop(n % 7)
            found.remove(coming_back, sums[coming_back])
            enrolled.append(coming_back)
            found.enrol(coming_back, sums[coming_back])
            assert len(found._competitors) <= 16
        assert_the_same(found, enrolled, sums, Sort.DESC)
        for competitor_id, total in sums.items():
            found.move(competitor_id, total, 0)
        assert_the_same(found, enrolled, {}, Sort.DESC)


def test_who_is_not_enrolled_cannot_be_removed_and_is_not_moved() -> None:
    found = OrderedLines(everybody[:3], {}, Sort.DESC)
    found.move(everybody[4], 0, 7)
    with pytest.raises(KeyError):
        found.remove(everybody[4], 7)
    assert found.standings(0, 9) == standings(everybody[:3], {}, Sort.DESC)


def test_a_member_takes_at_most_40_bytes_beside_the_total() -> None:
    sums = {CompetitorId(n): n * 7919 % 1_000_003 for n in range(1, 100_001)}
    found = OrderedLines(sums, sums, Sort.DESC)
    assert found.size_bytes < 30 * len(sums)
    for competitor_id, total in [*sums.items()]:
        sums[competitor_id] = total * 31 % 99_991
        found.move(competitor_id, total, sums[competitor_id])
    assert found.size_bytes < 40 * len(sums)
    assert [(line.total, line.competitor_id) for line in found.standings(0, 10)] == ordered(sums, sums, Sort.DESC)[:10]
