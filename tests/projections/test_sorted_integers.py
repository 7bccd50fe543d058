"""Sorted integers, against a sorted list."""

from bisect import bisect_left, insort
from sys import getsizeof
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from projections.columns import sorted_integers
from projections.columns.sorted_integers import LEAF_MAX, SortedIntegers
from tests.histories import unhurried

integers = st.integers(-20, 20) | st.integers(-(2**90), 2**90) | st.sampled_from([-(2**63) - 1, -(2**63), 2**63])


@unhurried
@given(st.sets(integers), st.lists(st.tuples(integers, st.integers(0, 60), st.integers(0, 60))))
@example(start=set(range(100)), steps=[(n, 0, 100) for n in range(100)])
@example(start={2**63}, steps=[(2**63, 0, 1), (1, 0, 1), (-(2**70), 0, 9)])
def test_they_are_as_a_sorted_list_whatever_is_added_and_removed(
    start: set[int], steps: list[tuple[int, int, int]]
) -> None:
    """With leaves so small that they divide and join all the time. A number that is there is removed, another added."""
    with mock.patch.multiple(sorted_integers, LEAF_MAX=8, _LEAF_FILLED=7, _LEAF_MIN=2):
        expected = sorted(start)
        found = SortedIntegers(expected)
        for integer, first, length in steps:
            if integer in expected:
                expected.remove(integer)
                found.remove(integer)
            else:
                insort(expected, integer)
                found.add(integer)
            assert [*found] == expected
            assert len(found) == len(expected)
            assert found._wide == len([leaf for leaf in found._leaves if isinstance(leaf, list)])
            assert found.run(first, first + length) == expected[first : first + length]
            for asked in (integer, integer - 1, integer + 1, -(2**99), 2**99):
                at = bisect_left(expected, asked)
                assert found.smaller(asked) == at
                assert found.least_from(asked) == (expected[at] if at < len(expected) else None)


def test_what_is_not_there_cannot_be_removed() -> None:
    found = SortedIntegers([1, 3])
    for integer in (0, 2, 4):
        with pytest.raises(KeyError):
            found.remove(integer)
    assert [*found] == [1, 3]


def test_leaves_are_as_small_as_their_number_says() -> None:
    found = SortedIntegers(range(100_000))
    assert found.size_bytes < 10 * 100_000
    for integer in range(100_000, 200_000):
        found.add(integer)
    assert found.size_bytes < 20 * 200_000
    for integer in range(190_000):
        found.remove(integer)
    assert found.size_bytes < 20 * 10_000
    assert found.run(0, 10_001) == [*range(190_000, 200_000)]
    assert len(found._leaves) < 10_000 / LEAF_MAX * 8


def test_wide_numbers_take_more_room_only_where_they_are() -> None:
    narrow = SortedIntegers(range(100_000)).size_bytes
    found = SortedIntegers([*range(100_000), 2**63])
    assert [*found][-1] == 2**63
    assert narrow + LEAF_MAX * 20 < found.size_bytes < narrow + LEAF_MAX * 100
    for integer in [2**63, *range(99_000, 100_000)]:
        found.remove(integer)
    for integer in range(99_000, 100_000):
        found.add(integer)
    assert found.size_bytes < narrow * 1.1


def test_the_estimate_of_what_the_leaves_take_is_near() -> None:
    for number in (10_000, 200_000):
        found = SortedIntegers(range(number))
        for integer in range(0, number, 3):
            found.remove(integer)
        leaves = sum(map(getsizeof, found._leaves))  # arrays keep some of the room of what was removed
        assert leaves * 0.7 < found.size_bytes < leaves * 1.2
