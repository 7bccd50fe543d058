"""Differences of two values: every part that differs is named, and nothing else."""

from datetime import UTC, datetime

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.events import Recorded
from engine.domain.terms import Sequence, Sort
from projections.board.board import Board, Ranking, Unity
from projections.board.differences import SHOWN_CHARACTERS_MAX, Unlike, differences
from projections.board.enrolment import Enrolment, Totals
from tests.histories import board_of, copied, logs, unhurried


def paths(expected: object, found: object) -> list[str]:
    return [unlike.path for unlike in differences(expected, found, unordered=("totals",))]


def board(**totals: int) -> Board:
    of_unity = {int(name.removeprefix("c")): total for name, total in totals.items()}
    enrolment = Enrolment([3, 4])
    unities = {
        9: Unity(number=1, name="Points", sort=Sort.DESC, totals=Totals(enrolment, of_unity)),
        8: Unity(number=2, name="Goals", sort=Sort.ASC, totals=Totals(enrolment)),
    }
    ranking = Ranking(
        number=1,
        name="Season",
        description=None,
        participants=enrolment,
        unities=unities,
        updated_at=datetime(2024, 5, 4, tzinfo=UTC),
        revised=Sequence(2),
    )
    return Board(rankings={7: ranking})


def test_a_path_reads_as_python_would() -> None:
    (unlike,) = differences(board(c3=5, c4=1), board(c3=6, c4=1))
    assert unlike == Unlike("rankings[7].unities[9].totals[3]", "5", "6")
    assert str(unlike) == "rankings[7].unities[9].totals[3] is 6, not 5"


def test_what_is_missing_and_what_is_too_much_is_named() -> None:
    assert list(differences({1: "a"}, {2: "b"}, path="x")) == [
        Unlike("x[1]", "'a'", "nothing"),
        Unlike("x[2]", "nothing", "'b'"),
    ]
    assert paths((1, 2, 3), (1, 9)) == ["[1]", "[2]"]
    assert paths((1,), (1, 9)) == ["[1]"]


def test_the_order_of_keys_counts_where_it_is_shown() -> None:
    other = board(c3=5, c4=1)
    unities = dict(reversed(other.rankings[7].unities.items()))
    other.rankings[7] = msgspec.structs.replace(other.rankings[7], unities=unities)
    assert paths(board(c3=5, c4=1), other) == ["rankings[7].unities.order"]
    assert paths(board(c3=5, c4=1), board(c4=1, c3=5)) == []


def test_what_is_equal_but_of_another_type_differs() -> None:
    assert paths({1: True}, {1: 1}) == ["[1]"]
    assert paths((1,), [1]) == [""]


def test_what_is_shown_is_short() -> None:
    (unlike,) = differences("", "x" * 1_000)
    assert len(unlike.found) == SHOWN_CHARACTERS_MAX


@unhurried
@given(log=logs())
def test_a_board_differs_from_none_that_is_the_same(log: list[Recorded]) -> None:
    one = board_of(log)
    assert paths(one, copied(one)) == []


@unhurried
@given(log=logs(), other=logs(), split=st.integers(0, 60))
def test_boards_that_differ_have_a_difference(log: list[Recorded], other: list[Recorded], split: int) -> None:
    for found in board_of(other), board_of(log[:split]):
        assert bool(paths(board_of(log), found)) == (board_of(log) != found)
