"""Shows two states of rankings side by side, over HTTP and on the command line."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from api.http.outgoing import Long, Taken
from api.interface import shapes
from engine.domain.errors import Unacceptable
from engine.domain.events import Event
from engine.domain.terms import CompetitorId, RankingId, UnityId
from projections.board.board import Board, Competitor, Ranking
from projections.live.live import Live
from projections.past.comparison import Move, copied, foreseen, move_steps, moves


def compared(
    board: Board, after: Mapping[RankingId, Ranking], only: UnityId | None = None
) -> list[shapes.ComparedRanking]:
    """The rankings of `board` beside those in `after`, all of which it has; with all their unities, or `only` one."""
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


def preview(live: Live, decided: Iterable[Event]) -> bytes | Long:
    """The body of an answer that shows what `decided` would lead to. Raises Unacceptable if that is more than
    PREVIEW_LINES_MAX."""
    after = foreseen(live.board, decided)
    lines = sum([len(ranking.participants) * len(ranking.unities) for ranking in after.values()])
    if lines <= PREVIEW_AT_ONCE_MAX:
        return b"%b%b]}" % (_BEFORE, msgspec.json.encode(compared(live.board, after))[1:-1])
    if lines > PREVIEW_LINES_MAX:
        raise Unacceptable(
            f"A preview shows at most {PREVIEW_LINES_MAX:,} lines of standings; this would be {lines:,}."
        )
    before = {ranking_id: copied(live.board.rankings[ranking_id]) for ranking_id in after}
    competitors = dict(live.board.competitors)

    def make() -> Iterator[bytes]:
        yield _BEFORE
        for n, (ranking_id, ranking) in enumerate(after.items()):
            shape = msgspec.json.encode(shapes.ComparedRanking(id=ranking_id, name=ranking.name, unities=[]))
            yield (b"," if n else b"") + shape.removesuffix(b"]}")
            for m, (unity_id, unity) in enumerate(ranking.unities.items()):
                shape = msgspec.json.encode(shapes.ComparedUnity(id=unity_id, name=unity.name, moves=[]))
                yield (b"," if m else b"") + shape.removesuffix(b"]}")
                lines: list[Move] = []
                for _ in _moves_into(lines, before[ranking_id], ranking, unity_id):
                    yield b""
                for start in range(0, len(lines), _MOVES_OF_PORTION):
                    portion = [_move(competitors, move) for move in lines[start : start + _MOVES_OF_PORTION]]
                    yield (b"," if start else b"") + msgspec.json.encode(portion)[1:-1]
                yield b"]}"
            yield b"]}"

    held = Taken(2 * _LINE_BYTES * lines)
    return Long(make, (held,), end=b"]}", etag="", head=live.head)


PREVIEW_AT_ONCE_MAX: Final = 2_000
"""Lines that are compared and rendered in one go; each takes some microseconds."""
PREVIEW_LINES_MAX: Final = 400_000
"""Lines of standings that a preview shows at most."""
_MOVES_OF_PORTION: Final = 500
_LINE_BYTES: Final = 60
_BEFORE: Final = b'{"status":200,"message":"preview","rankings":['


def _moves_into(lines: list[Move], before: Ranking, after: Ranking, unity_id: UnityId) -> Iterator[None]:
    lines += yield from move_steps(before, after, unity_id)


def _unity(board: Board, unity_id: UnityId, name: str, lines: list[Move]) -> shapes.ComparedUnity:
    return shapes.ComparedUnity(
        id=unity_id,
        name=name,
        moves=[_move(board.competitors, move) for move in lines],
    )


def _move(competitors: Mapping[CompetitorId, Competitor], move: Move) -> shapes.Move:
    return shapes.Move(
        competitor_id=move.competitor_id,
        name=competitors[move.competitor_id].name,
        position_before=None if move.before is None else move.before.position,
        total_before=None if move.before is None else move.before.total,
        position_after=None if move.after is None else move.after.position,
        total_after=None if move.after is None else move.after.total,
    )
