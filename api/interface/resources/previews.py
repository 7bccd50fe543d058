"""What a change would lead to: the comparison of standings that all previews show."""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Items
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct, UnsetType

from api.http.outgoing import Long, Taken
from api.interface.rendering import Answer, cut, encode, items_of
from engine.domain.events import Event
from engine.domain.terms import UnityId
from projections.answers import foreseen
from projections.answers.foreseen import (
    ComparedRanking,
    ComparedUnity,
    classification_move,
    compared,
    foreseen_comparisons,
    lines_foreseen,
    standing_move,
)
from projections.answers.scoring import UnscoredResult, unscored_by
from projections.board.board import Board, Ranking
from projections.live.sums import ReadSums
from projections.live.tournament import LiveTournament
from projections.past.comparison import ClassifiedMove, Move, move_steps

UNSCORED: Final = {"unscored": list[UnscoredResult] | UnsetType}
"""The results that give no points, because no scoring can read them; absent if there are none."""
COMPARED: Final = Answer("rankings", list[ComparedRanking], "preview", more=UNSCORED)
_MOVES_OF_CHUNK: Final = 500
_LINE_BYTES: Final = 60


async def answer_preview(
    live: LiveTournament, answer: Answer, decided: Iterable[Event], read: ReadSums
) -> bytes | Long:
    """The effect of `decided`. Raises as `lines_foreseen` and `foreseen_comparisons`."""
    events, board = list(decided), live.board
    lines = lines_foreseen(board, events)
    comparisons, more = await foreseen_comparisons(live, events, read), unscored_key(board, events)
    if lines <= foreseen.PREVIEW_AT_ONCE_MAX:
        return answer.body(encode(compared(board, comparisons)) + more)
    competitor_of = board.competitors.__getitem__  # as they are when a chunk is made: a name may be newer

    def make() -> Iterator[bytes]:
        yield answer.before + b"["
        for n, (ranking_id, comparison) in enumerate(comparisons.items()):
            after, classified_moves = comparison.after, comparison.classified_moves
            shape = ComparedRanking(id=ranking_id, name=after.name, unities=[])
            opening, closing = cut(shape, "unities")
            yield (b"," if n else b"") + opening
            for m, (unity_id, unity) in enumerate(after.unities.items()):
                unity_opening, unity_closing = cut(ComparedUnity(id=unity_id, name=unity.name, moves=[]), "moves")
                yield (b"," if m else b"") + unity_opening
                lines: list[Move] = []
                for _ in _moves_into(lines, comparison.before, after, unity_id):
                    yield b""
                yield from _in_chunks(lines, partial(standing_move, competitor_of, unity.notation))
                yield unity_closing
            if classified_moves is not None:
                yield b'],"classification":['
                yield from _in_chunks(classified_moves, partial(classification_move, competitor_of))
            yield closing

    return Long(make, (Taken(2 * _LINE_BYTES * lines),), end=b"]%b}" % more, etag="")


def unscored_key(board: Board, events: Items[Event]) -> bytes:
    """The key of UNSCORED for results of these events, with a comma before it."""
    found = unscored_by(board, events)
    return b',"unscored":%b' % encode(found) if found else b""


def _moves_into(lines: list[Move], before: Ranking, after: Ranking, unity_id: UnityId) -> Iterator[None]:
    lines += yield from move_steps(before, after, unity_id)


_M = TypeVar("_M", Move, ClassifiedMove)


def _in_chunks(lines: Items[_M], shape: Callable[[_M], Struct]) -> Iterator[bytes]:
    """The JSON of all lines, without the brackets around it."""
    for start in range(0, len(lines), _MOVES_OF_CHUNK):
        chunk = [shape(line) for line in lines[start : start + _MOVES_OF_CHUNK]]
        yield (b"," if start else b"") + items_of(chunk)
