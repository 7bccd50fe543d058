"""Where two boards differ: each place once, and none where they are alike."""

import copy
from typing import Any

import pytest
from hypothesis import given

from engine.terms import Sort
from projections.board import Board, Unity
from projections.differences import NOTHING, Unlike, differences
from tests.histories import board_of, logs, unhurried


@unhurried
@given(logs())
def test_a_board_does_not_differ_from_its_like(log: list[Any]) -> None:
    board = board_of(log)
    assert list(differences(board, copy.deepcopy(board))) == []


@unhurried
@given(logs(), logs())
def test_boards_that_are_not_equal_differ_somewhere(one: list[Any], other: list[Any]) -> None:
    boards = board_of(one), board_of(other)
    assert boards[0] == boards[1] or list(differences(*boards))


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        pytest.param({1: 2}, {1: 3}, [Unlike("[1]", "2", "3")], id="a value"),
        pytest.param({1: 2}, {}, [Unlike("[1]", "2", NOTHING)], id="something missing"),
        pytest.param({}, {1: 2}, [Unlike("[1]", NOTHING, "2")], id="something too much"),
        pytest.param((1, 2), (2, 1), [Unlike("[0]", "1", "2"), Unlike("[1]", "2", "1")], id="another order"),
        pytest.param((1, 2), (1,), [Unlike("[1]", "2", NOTHING)], id="another length"),
        pytest.param({1: (5, "a")}, {1: (5, "b")}, [Unlike("[1][1]", "'a'", "'b'")], id="within"),
        pytest.param({1: 0, 2: 0}, {2: 0, 1: 0}, [Unlike("order", "[1, 2]", "[2, 1]")], id="another order of keys"),
        pytest.param(1, True, [Unlike("", "1", "True")], id="another type"),
    ],
)
def test_each_place_is_named(expected: object, found: object, told: list[Unlike]) -> None:
    assert list(differences(expected, found)) == told


def test_the_order_of_keys_may_be_of_no_account() -> None:
    unities = [Unity(number=1, name="points", sort=Sort.DESC, totals=totals) for totals in ({1: 0, 2: 0}, {2: 0, 1: 0})]
    assert not list(differences(*unities, unordered=["totals"]))
    assert [str(unlike) for unlike in differences(*unities)] == ["totals.order is [2, 1], not [1, 2]"]


def test_a_difference_says_what_is_there_and_what_should_be() -> None:
    (difference,) = differences(Board(), Board(rankings={7: None}))  # type: ignore[dict-item]
    assert str(difference) == "rankings[7] is None, not nothing"
