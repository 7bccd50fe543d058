"""Voiding competitions and striking competitors: the operations, and the comparison of standings that previews show."""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Items
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from api.access.auth import Scope
from api.http.outgoing import Long, Taken
from api.interface.declarations import Operation, Preview, Write
from api.interface.fields import IDS, Field
from api.interface.rendering import Answer, cut, encode, items_of
from api.interface.resources.competitions import CompetitionShape, render_competition
from engine.domain.commands import StrikeCompetitors, UnstrikeCompetitors, UnvoidCompetition, VoidCompetition
from engine.domain.events import Event
from engine.domain.terms import PARTICIPANTS_MAX, UnityId
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
from projections.board.board import Ranking
from projections.live.sums import ReadSums
from projections.live.tournament import LiveTournament
from projections.past.comparison import ClassifiedMove, Move, move_steps

_MOVES_OF_CHUNK: Final = 500
_LINE_BYTES: Final = 60


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


async def answer_preview(
    live: LiveTournament, answer: Answer, decided: Iterable[Event], read: ReadSums
) -> bytes | Long:
    """The effect of `decided`. Raises as `lines_foreseen` and `foreseen_comparisons`."""
    events, board = list(decided), live.board
    lines = lines_foreseen(board, events)
    comparisons = await foreseen_comparisons(live, events, read)
    if lines <= foreseen.PREVIEW_AT_ONCE_MAX:
        return answer.body(encode(compared(board, comparisons)))
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

    return Long(make, (Taken(2 * _LINE_BYTES * lines),), end=b"]}", etag="")


def _moves_into(lines: list[Move], before: Ranking, after: Ranking, unity_id: UnityId) -> Iterator[None]:
    lines += yield from move_steps(before, after, unity_id)


_M = TypeVar("_M", Move, ClassifiedMove)


def _in_chunks(lines: Items[_M], shape: Callable[[_M], Struct]) -> Iterator[bytes]:
    """The JSON of all lines, without the brackets around it."""
    for start in range(0, len(lines), _MOVES_OF_CHUNK):
        chunk = [shape(line) for line in lines[start : start + _MOVES_OF_CHUNK]]
        yield (b"," if start else b"") + items_of(chunk)


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_COMPETITION: Final = Answer("competition", CompetitionShape)
_COMPETITORS: Final = Field(
    "competitors",
    IDS,
    f"ids of competitors, in a form separated by commas, at most {PARTICIPANTS_MAX:,}",
    required=True,
)
COMPARED: Final = Answer("rankings", list[ComparedRanking], "preview")

OPERATIONS: Final[tuple[Operation, ...]] = (
    Write(
        "PUT",
        "competitions/{competition_id}/void.json",
        "Void a competition: all points it gave are taken back",
        operation_id="voidCompetition",
        command=VoidCompetition,
        answer=_COMPETITION,
        render=render_competition,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "competitions/{competition_id}/unvoid.json",
        "Make a voided competition count again",
        operation_id="unvoidCompetition",
        command=UnvoidCompetition,
        answer=_COMPETITION,
        render=render_competition,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "competitions/{competition_id}/strike.json",
        "Strike competitors from a competition: all points it gave them are taken back",
        operation_id="strikeCompetitors",
        command=StrikeCompetitors,
        answer=_COMPETITION,
        render=render_competition,
        fields=(_COMPETITORS,),
        scope=Scope.ADMIN,
        example={"competitors": [1]},
    ),
    Write(
        "PUT",
        "competitions/{competition_id}/unstrike.json",
        "Make a competition count for struck competitors again",
        operation_id="unstrikeCompetitors",
        command=UnstrikeCompetitors,
        answer=_COMPETITION,
        render=render_competition,
        fields=(_COMPETITORS,),
        scope=Scope.ADMIN,
        example={"competitors": [2]},
    ),
    Preview(
        "competitions/{competition_id}/strike.json",
        "Show what striking competitors would lead to",
        operation_id="previewStrikeCompetitors",
        command=StrikeCompetitors,
        answer=COMPARED,
        fields=(_COMPETITORS,),
        example={"competitors": [1]},
    ),
    Preview(
        "competitions/{competition_id}/unstrike.json",
        "Show what unstriking competitors would lead to",
        operation_id="previewUnstrikeCompetitors",
        command=UnstrikeCompetitors,
        answer=COMPARED,
        fields=(_COMPETITORS,),
        example={"competitors": [2]},
    ),
    Preview(
        "competitions/{competition_id}/void.json",
        "Show what voiding a competition would lead to",
        operation_id="previewVoidCompetition",
        command=VoidCompetition,
        answer=COMPARED,
    ),
    Preview(
        "competitions/{competition_id}/unvoid.json",
        "Show what unvoiding a competition would lead to",
        operation_id="previewUnvoidCompetition",
        command=UnvoidCompetition,
        answer=COMPARED,
    ),
)
