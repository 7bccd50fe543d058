"""Boards after each event of a log, laid out for comparison."""

from collections.abc import Iterator

from msgspec import Struct

from engine.domain.events import Recorded
from projections.board.board import Board, Revisions, fold
from tests.histories import copied


def laid_out(board: Board) -> object:
    """The board with the order of everything whose order is shown."""
    return (
        board,
        list(board.competitors),
        [(competition_id, shown_result(c.result)) for competition_id, c in board.competitions.items()],
        [(ranking_id, list(ranking.unities)) for ranking_id, ranking in board.rankings.items()],
    )


def shown_result(result: object) -> object:
    return list(result.items()) if isinstance(result, dict) else result


def boards(log: list[Recorded]) -> Iterator[tuple[Recorded, Board, Board]]:
    """Each event with the board before and after it."""
    board = Board()
    for recorded in log:
        before = copied(board)
        fold(board, Revisions(), recorded)
        yield recorded, before, board


class Item(Struct, frozen=True, gc=False, array_like=True):
    name: str
    others: tuple[int, ...] = ()
