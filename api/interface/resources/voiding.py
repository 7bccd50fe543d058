"""Voiding competitions and striking competitors: the operations, and the comparison of standings that previews show."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from contextlib import ExitStack
from functools import partial
from typing import Final, TypeVar

from msgspec import UNSET, Struct, UnsetType

from api.access.auth import Scope
from api.http.outgoing import Long, Taken
from api.interface.declarations import Operation, Preview, Write
from api.interface.fields import IDS, Field
from api.interface.rendering import Answer, cut, encode, items_of
from api.interface.resources.competitions import CompetitionShape, render_competition
from engine.domain.commands import StrikeCompetitors, UnstrikeCompetitors, UnvoidCompetition, VoidCompetition
from engine.domain.errors import Unacceptable
from engine.domain.events import Event, Points
from engine.domain.notation import Notation
from engine.domain.terms import PARTICIPANTS_MAX, CompetitorId, RankingId, UnityId
from engine.process.time_slices import in_time_slices
from projections.board.board import Board, Competitor, Ranking, left_out
from projections.board.classification import lacks_sums
from projections.live.followed_sums import ReadSums
from projections.live.tournament import LiveTournament
from projections.past.comparison import (
    ClassifiedMove,
    Comparison,
    ForeseenCounts,
    Move,
    classified_move_steps,
    copied,
    foreseen,
    foreseen_left_out,
    move_steps,
    moves,
)

PREVIEW_AT_ONCE_MAX: Final = 2_000
"""Lines that are compared and rendered without a pause; each takes some microseconds."""
PREVIEW_LINES_MAX: Final = 400_000
"""Lines of standings, and of classifications, that a preview shows at most."""
_MOVES_OF_CHUNK: Final = 500
_LINE_BYTES: Final = 60


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class StandingMoveShape(Struct, kw_only=True):
    """Positions and totals are null if the competitor is not in the list."""

    competitor_id: int
    name: str
    position_before: int | None
    total_before: int | None
    position_after: int | None
    total_after: int | None


class ComparedUnityShape(Struct, kw_only=True):
    id: int
    name: str
    moves: list[StandingMoveShape]


class ClassificationMoveShape(Struct, kw_only=True):
    """Positions are null if the competitor is not in the list."""

    competitor_id: int
    name: str
    position_before: int | None
    position_after: int | None


class ComparedRankingShape(Struct, kw_only=True):
    """`classification`: present if criteria are declared; the moves by them."""

    id: int
    name: str
    unities: list[ComparedUnityShape]
    classification: list[ClassificationMoveShape] | UnsetType = UNSET


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


def compared(
    board: Board, comparisons: Mapping[RankingId, Comparison], only: UnityId | None = None
) -> list[ComparedRankingShape]:
    """All unities of the rankings, or `only` one. `board` has their competitors."""
    competitor_of = board.competitors.__getitem__
    return [
        ComparedRankingShape(
            id=ranking_id,
            name=comparison.after.name,
            unities=[
                ComparedUnityShape(
                    id=unity_id,
                    name=comparison.after.unities[unity_id].name,
                    moves=[_move(competitor_of, comparison.after.unities[unity_id].notation, move) for move in lines],
                )
                for unity_id, lines in moves(comparison.before, comparison.after).items()
                if only in (None, unity_id)
            ],
            classification=UNSET
            if comparison.classified_moves is None
            else [_classified_move(competitor_of, move) for move in comparison.classified_moves],
        )
        for ranking_id, comparison in comparisons.items()
    ]


async def foreseen_comparisons(
    live: LiveTournament, decided: Items[Event], read: ReadSums
) -> dict[RankingId, Comparison]:
    """The rankings whose points `decided` would change: in the state at the call, and in the state after it. Raises
    TooMuchWork, and as `read`."""
    board, sequence = live.board, live.head.sequence
    after = foreseen(board, decided)
    before = {r: copied(board.rankings[r], ranking.participants) for r, ranking in after.items()}
    without = {r: left_out(board, r, live.expired_by) for r in after}
    left_out_then = {r: foreseen_left_out(board, ranking, decided, live.expired_by) for r, ranking in after.items()}
    found: dict[RankingId, Comparison] = {}
    with ExitStack() as stack:
        declared = [r for r, ranking in before.items() if ranking.criteria]
        lacking = {r for r in declared if lacks_sums(board.rankings[r])}
        counts = {
            r: stack.enter_context(live.classifications.counts(r)) for r in declared
        }  # before other work continues
        for ranking_id, ranking in after.items():
            classified_moves: list[ClassifiedMove] | None = None
            if (counted := counts.get(ranking_id)) is not None:
                if ranking_id in lacking:
                    counted.give(await read(ranking_id, sequence, without[ranking_id]))
                then = ForeseenCounts(board, counted, ranking, decided)
                if lacks_sums(ranking):
                    then.give(await read(ranking_id, sequence, left_out_then[ranking_id]))
                async with live.classifications.computing(ranking_id):
                    steps = classified_move_steps(before[ranking_id], ranking, counted, then)
                    classified_moves = await in_time_slices(steps)
            found[ranking_id] = Comparison(before[ranking_id], ranking, classified_moves)
    return found


async def answer_preview(
    live: LiveTournament, answer: Answer, decided: Iterable[Event], read: ReadSums
) -> bytes | Long:
    """The effect of `decided`. Raises Unacceptable beyond PREVIEW_LINES_MAX, and as `foreseen_comparisons`."""
    events, head, board = list(decided), live.head, live.board
    touched = [board.rankings[r] for r in {event.ranking_id for event in events if isinstance(event, Points)}]
    lines = sum([len(one.participants) * (len(one.unities) + bool(one.criteria)) for one in touched])
    if lines > PREVIEW_LINES_MAX:
        raise Unacceptable(
            f"A preview shows at most {PREVIEW_LINES_MAX:,} lines of standings and classifications; this would be "
            f"{lines:,}."
        )
    comparisons = await foreseen_comparisons(live, events, read)
    if lines <= PREVIEW_AT_ONCE_MAX:
        return answer.body(encode(compared(board, comparisons)))
    competitor_of = board.competitors.__getitem__  # as they are when a chunk is made: a name may be newer

    def make() -> Iterator[bytes]:
        yield answer.before + b"["
        for n, (ranking_id, comparison) in enumerate(comparisons.items()):
            after, classified_moves = comparison.after, comparison.classified_moves
            shape = ComparedRankingShape(id=ranking_id, name=after.name, unities=[])
            opening, closing = cut(shape, "unities")
            yield (b"," if n else b"") + opening
            for m, (unity_id, unity) in enumerate(after.unities.items()):
                unity_opening, unity_closing = cut(ComparedUnityShape(id=unity_id, name=unity.name, moves=[]), "moves")
                yield (b"," if m else b"") + unity_opening
                lines: list[Move] = []
                for _ in _moves_into(lines, comparison.before, after, unity_id):
                    yield b""
                yield from _in_chunks(lines, partial(_move, competitor_of, unity.notation))
                yield unity_closing
            if classified_moves is not None:
                yield b'],"classification":['
                yield from _in_chunks(classified_moves, partial(_classified_move, competitor_of))
            yield closing

    return Long(make, (Taken(2 * _LINE_BYTES * lines),), end=b"]}", etag="", head=head)


def _moves_into(lines: list[Move], before: Ranking, after: Ranking, unity_id: UnityId) -> Iterator[None]:
    lines += yield from move_steps(before, after, unity_id)


_M = TypeVar("_M", Move, ClassifiedMove)


def _in_chunks(lines: Items[_M], shape: Callable[[_M], Struct]) -> Iterator[bytes]:
    """The JSON of all lines, without the brackets around it."""
    for start in range(0, len(lines), _MOVES_OF_CHUNK):
        chunk = [shape(line) for line in lines[start : start + _MOVES_OF_CHUNK]]
        yield (b"," if start else b"") + items_of(chunk)


def _move(competitor_of: Callable[[CompetitorId], Competitor], notation: Notation, move: Move) -> StandingMoveShape:
    return StandingMoveShape(
        competitor_id=move.competitor_id,
        name=competitor_of(move.competitor_id).name,
        position_before=None if move.before is None else move.before.position,
        total_before=None if move.before is None else notation.shown(move.before.total),
        position_after=None if move.after is None else move.after.position,
        total_after=None if move.after is None else notation.shown(move.after.total),
    )


def _classified_move(
    competitor_of: Callable[[CompetitorId], Competitor], move: ClassifiedMove
) -> ClassificationMoveShape:
    return ClassificationMoveShape(
        competitor_id=move.competitor_id,
        name=competitor_of(move.competitor_id).name,
        position_before=move.before,
        position_after=move.after,
    )


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_COMPETITION: Final = Answer("competition", CompetitionShape)
_COMPETITORS: Final = Field(
    "competitors",
    IDS,
    f"ids of competitors, in a form separated by commas, at most {PARTICIPANTS_MAX:,}",
    required=True,
)
COMPARED: Final = Answer("rankings", list[ComparedRankingShape], "preview")

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
    ),
    Preview(
        "competitions/{competition_id}/strike.json",
        "Show what striking competitors would lead to",
        operation_id="previewStrikeCompetitors",
        command=StrikeCompetitors,
        answer=COMPARED,
        fields=(_COMPETITORS,),
    ),
    Preview(
        "competitions/{competition_id}/unstrike.json",
        "Show what unstriking competitors would lead to",
        operation_id="previewUnstrikeCompetitors",
        command=UnstrikeCompetitors,
        answer=COMPARED,
        fields=(_COMPETITORS,),
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
