"""What boards take in memory, and the shelf that holds that many bytes of them."""

import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest

from engine.domain.events import (
    CompetitorRegistered,
    Delta,
    PointsAdded,
    PointsReversed,
    PointsScored,
    RankingCreated,
    Recorded,
)
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log.heads import Head
from projections.board.board import Board, Revisions, fold
from projections.board.parts import parts_of
from projections.tables.columns import RANKING
from projections.tables.sizes import MEASURED_EVERY_EVENTS, Shelf, board_bytes

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def board(competitors: int) -> Board:
    """So many competitors, all of them with a total in one ranking."""
    ids = tuple(CompetitorId(10**6 + n) for n in range(competitors))
    registered = [
        CompetitorRegistered(
            competitor_id=competitor_id, name=f"Competitor {competitor_id}", tags=("a", f"{n}"), color=f"{n:06x}"
        )
        for n, competitor_id in enumerate(ids)
    ]
    created = RankingCreated(
        ranking_id=RankingId(1), name="Overall", participants=ids, main_unity_id=UnityId(2), main_unity_name="Points"
    )
    points = PointsAdded(ranking_id=RankingId(1), deltas=tuple(Delta(c, UnityId(2), 10**4 + c) for c in ids))
    made = Board()
    for sequence, event in enumerate((*registered, created, points), start=1):
        moment = NOW + timedelta(microseconds=sequence)
        fold(made, Revisions(), Recorded(Sequence(sequence), moment, OPERATOR, None, event))
    return made


def rescored(times: int) -> Board:
    """The board of ten, with a result whose points this many declarations of scorings gave again."""
    made, lines, first = board(10), tuple([(CompetitorId(10**6 + n), UnityId(2)) for n in range(10)]), Sequence(100)
    of = {"ranking_id": RankingId(1), "competition_id": CompetitionId(9)}
    deltas, back = tuple([Delta(*one, 1) for one in lines]), tuple([Delta(*one, -1) for one in lines])
    events = [PointsScored(**of, deltas=deltas)]
    for n in range(times):
        reverses, corrects = Sequence(first + 2 * n), first if n else None
        events.append(PointsReversed(**of, deltas=back, reverses=reverses, replaced=lines, instead_of=corrects))
        events.append(PointsScored(**of, deltas=deltas, instead_of=first, since=NOW))
    for sequence, event in enumerate(events, start=first):
        fold(made, Revisions(), Recorded(Sequence(sequence), NOW, OPERATOR, None, event))
    return made


def put(shelf: Shelf, number: int, kept: Board, sequence: int = 0) -> None:
    shelf.put(TournamentId(number), Head(Sequence(sequence), b""), kept)


def held(shelf: Shelf) -> list[int]:
    return [number for number in range(10) if TournamentId(number) in shelf]


def test_the_estimate_of_a_board_is_not_far_below_what_it_takes() -> None:
    tracemalloc.start()
    kept = board(5_000)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken * 0.8 < board_bytes(kept) < taken * 3


def test_points_given_again_take_no_more_if_they_were_given_again_before() -> None:
    """In memory, in a row of the tables, and in a snapshot."""
    few, many = rescored(2), rescored(300)
    row = RANKING.columns[[one.name for one in RANKING.columns].index("replaced")].taken
    digits = 3 * len(few.rankings[RankingId(1)].participants)  # of larger sequences
    assert board_bytes(many) == board_bytes(few)
    assert len(row(many.rankings[RankingId(1)])) <= len(row(few.rankings[RankingId(1)])) + digits
    assert sum(map(len, parts_of(many))) <= sum(map(len, parts_of(few))) + digits


def test_a_shelf_holds_as_many_bytes_as_it_may_and_not_one_more() -> None:
    size = board_bytes(board(10))
    shelf = Shelf(3 * size)
    for number in range(3):
        put(shelf, number, board(10))
    assert (held(shelf), shelf.bytes) == ([0, 1, 2], 3 * size)
    put(shelf, 3, board(10))
    assert (held(shelf), shelf.bytes) == ([1, 2, 3], 3 * size)
    put(shelf, 1, board(11), MEASURED_EVERY_EVENTS)  # it has grown, and was the last one used
    assert held(shelf) == [1, 3]


def test_a_board_that_is_larger_than_the_shelf_is_alone_on_it() -> None:
    shelf = Shelf(board_bytes(board(10)))
    put(shelf, 0, board(10))
    put(shelf, 1, board(1_000))
    assert held(shelf) == [1]
    put(shelf, 2, board(1))
    assert held(shelf) == [2]


def test_a_board_that_is_taken_leaves_its_room() -> None:
    shelf = Shelf(10**9)
    put(shelf, 0, board(10))
    assert shelf.take(TournamentId(0)) == (Head(Sequence(0), b""), board(10))
    assert shelf.take(TournamentId(0)) is None
    assert (held(shelf), shelf.bytes) == ([], 0)


@pytest.mark.parametrize(
    ("sequence", "measured"),
    [(1_000, False), (999 + MEASURED_EVERY_EVENTS, False), (1_000 + MEASURED_EVERY_EVENTS, True), (999, True)],
)
def test_a_board_that_is_put_back_is_measured_again_after_many_events(sequence: int, measured: bool) -> None:
    """Or if another log was restored."""
    shelf = Shelf(10**9)
    put(shelf, 0, board(10), 1_000)
    shelf.take(TournamentId(0))
    put(shelf, 0, board(100), sequence)
    assert shelf.bytes == board_bytes(board(100 if measured else 10))
    assert shelf.drop(TournamentId(0))
    put(shelf, 0, board(50), sequence)
    assert shelf.bytes == board_bytes(board(50))
