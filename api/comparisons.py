"""What is shown of two states of rankings side by side, over HTTP and on the command line."""

from collections.abc import Mapping

import msgspec

from api import shapes
from engine.terms import RankingId, UnityId
from projections.board import Board, Ranking
from projections.comparison import Move, moves


def compared(
    board: Board, after: Mapping[RankingId, Ranking], only: UnityId | None = None
) -> list[shapes.ComparedRanking]:
    """The rankings of `board` beside those `after`, which are all of its own; of all their unities, or of one."""
    return [
        shapes.ComparedRanking(
            id=ranking_id,
            name=ranking.name,
            unities=[
                _unity(board, unity_id, ranking.unities[unity_id].name, lines)
                for unity_id, lines in moves(board.rankings[ranking_id], ranking).items()
                if only in (None, unity_id)
            ],
        )
        for ranking_id, ranking in after.items()
    ]


def preview(rankings: list[shapes.ComparedRanking]) -> bytes:
    """The body of an answer that says what a change would lead to."""
    return b'{"status":200,"message":"preview","rankings":%b}' % msgspec.json.encode(rankings)


def _unity(board: Board, unity_id: UnityId, name: str, lines: list[Move]) -> shapes.ComparedUnity:
    return shapes.ComparedUnity(
        id=unity_id,
        name=name,
        moves=[
            shapes.Move(
                competitor_id=move.competitor_id,
                name=board.competitors[move.competitor_id].name,
                position_before=None if move.before is None else move.before.position,
                total_before=None if move.before is None else move.before.total,
                position_after=None if move.after is None else move.after.position,
                total_after=None if move.after is None else move.after.total,
            )
            for move in lines
        ],
    )
