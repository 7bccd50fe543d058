"""Differences of two values: every part that differs is named, and nothing else."""

from datetime import UTC, datetime
from operator import itemgetter

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.events import Delta, Recorded
from engine.domain.terms import CompetitorId, Sequence, Sort, UnityId
from projections.board.board import Board, Ranking, Unity
from projections.board.differences import SHOWN_CHARACTERS_MAX, Unlike, Unmatched, differences
from projections.columns.enrolment import Enrolment, Totals
from projections.columns.packed import Packed
from tests.histories import board_of, copied, logs, unhurried


def paths(expected: object, found: object) -> list[str]:
    return [unlike.path for unlike in differences(expected, found)]


def board(**totals: int) -> Board:
    of_unity = {int(name.removeprefix("c")): total for name, total in totals.items()}
    enrolment = Enrolment([3, 4])
    unities = {
        9: Unity(number=1, name="Points", sort=Sort.DESC, totals=Totals(enrolment, of_unity)),
        8: Unity(number=2, name="Goals", sort=Sort.ASC, totals=Totals(enrolment)),
    }
    ranking = Ranking(
        number=1,
        place=1,
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


def test_the_order_of_packed_items_counts() -> None:
    one, other, same = (Packed[int, Delta](Delta) for _ in range(3))
    for item_id in (1, 2):
        one[item_id] = same[item_id] = Delta(CompetitorId(item_id), UnityId(1), 5)
    for item_id in (2, 1):
        other[item_id] = one[item_id]
    assert paths(one, same) == []
    assert list(differences(one, other)) == [Unlike("order", "[1, 2]", "[2, 1]")]


runs = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 1)), unique_by=itemgetter(0))


@given(expected=runs, found=runs, chunk=st.integers(1, 5))
def test_unmatched_is_what_the_other_run_does_not_have_wherever_it_stands_there(
    expected: list[tuple[int, int]], found: list[tuple[int, int]], chunk: int
) -> None:
    unmatched = Unmatched[int, tuple[int, int]](itemgetter(0))
    for start in range(0, max(len(expected), len(found)), chunk):
        unmatched.take(expected[start : start + chunk], found[start : start + chunk])
    assert list(unmatched.expected.values()) == [value for value in expected if value not in found]
    assert list(unmatched.found.values()) == [value for value in found if value not in expected]
    assert all(key == value[0] for key, value in (*unmatched.expected.items(), *unmatched.found.items()))


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
