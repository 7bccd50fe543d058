"""Voiding competitions: the operations, and the comparison of standings before and after that previews show."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from api.http.auth import Scope
from api.http.outgoing import Long, Taken
from api.interface.competitions import CompetitionShape, render_competition
from api.interface.declarations import Operation, Preview, Write
from api.interface.rendering import Answer, View, cut, encode, items_of
from engine.domain.commands import UnvoidCompetition, VoidCompetition
from engine.domain.errors import Unacceptable
from engine.domain.events import Event, Points
from engine.domain.terms import CompetitorId, RankingId, UnityId
from projections.board.board import Board, Competitor, Ranking
from projections.past.comparison import Move, copied, foreseen, move_steps, moves

PREVIEW_AT_ONCE_MAX: Final = 2_000
"""Lines that are compared and rendered in one go; each takes some microseconds."""
PREVIEW_LINES_MAX: Final = 400_000
"""Lines of standings that a preview shows at most."""
_MOVES_OF_PORTION: Final = 500
_LINE_BYTES: Final = 60


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class MoveShape(Struct, kw_only=True):
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
    moves: list[MoveShape]


class ComparedRankingShape(Struct, kw_only=True):
    id: int
    name: str
    unities: list[ComparedUnityShape]


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


def compared(
    board: Board, after: Mapping[RankingId, Ranking], only: UnityId | None = None
) -> list[ComparedRankingShape]:
    """The rankings of `board` beside those in `after`, all of which it has; with all their unities, or `only` one."""
    return [
        ComparedRankingShape(
            id=ranking_id,
            name=ranking.name,
            unities=[
                ComparedUnityShape(
                    id=unity_id,
                    name=ranking.unities[unity_id].name,
                    moves=[_move(board.competitors.__getitem__, move) for move in lines],
                )
                for unity_id, lines in moves(board.rankings[ranking_id], ranking).items()
                if only in (None, unity_id)
            ],
        )
        for ranking_id, ranking in after.items()
    ]


def render_preview(view: View, answer: Answer, decided: Iterable[Event]) -> bytes | Long:
    """What `decided` would lead to. Raises Unacceptable if that is more than PREVIEW_LINES_MAX."""
    events, rankings = list(decided), view.board.rankings
    touched = [rankings[r] for r in {event.ranking_id for event in events if isinstance(event, Points)}]
    lines = sum([len(ranking.participants) * len(ranking.unities) for ranking in touched])
    if lines > PREVIEW_LINES_MAX:
        raise Unacceptable(
            f"A preview shows at most {PREVIEW_LINES_MAX:,} lines of standings; this would be {lines:,}."
        )
    after = foreseen(view.board, events)
    if lines <= PREVIEW_AT_ONCE_MAX:
        return answer.body(encode(compared(view.board, after)))
    before = {r: copied(rankings[r], ranking.participants) for r, ranking in after.items()}
    competitor_of = view.board.competitors.__getitem__  # as they are when a portion is made: a name may be newer

    def make() -> Iterator[bytes]:
        yield answer.before + b"["
        for n, (ranking_id, ranking) in enumerate(after.items()):
            opening, closing = cut(ComparedRankingShape(id=ranking_id, name=ranking.name, unities=[]), "unities")
            yield (b"," if n else b"") + opening
            for m, (unity_id, unity) in enumerate(ranking.unities.items()):
                unity_opening, unity_closing = cut(ComparedUnityShape(id=unity_id, name=unity.name, moves=[]), "moves")
                yield (b"," if m else b"") + unity_opening
                lines: list[Move] = []
                for _ in _moves_into(lines, before[ranking_id], ranking, unity_id):
                    yield b""
                for start in range(0, len(lines), _MOVES_OF_PORTION):
                    portion = [_move(competitor_of, move) for move in lines[start : start + _MOVES_OF_PORTION]]
                    yield (b"," if start else b"") + items_of(portion)
                yield unity_closing
            yield closing

    return Long(make, (Taken(2 * _LINE_BYTES * lines),), end=b"]}", etag="", head=view.head)


def _moves_into(lines: list[Move], before: Ranking, after: Ranking, unity_id: UnityId) -> Iterator[None]:
    lines += yield from move_steps(before, after, unity_id)


def _move(competitor_of: Callable[[CompetitorId], Competitor], move: Move) -> MoveShape:
    return MoveShape(
        competitor_id=move.competitor_id,
        name=competitor_of(move.competitor_id).name,
        position_before=None if move.before is None else move.before.position,
        total_before=None if move.before is None else move.before.total,
        position_after=None if move.after is None else move.after.position,
        total_after=None if move.after is None else move.after.total,
    )


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_COMPETITION: Final = Answer("competition", CompetitionShape)
_COMPARED: Final = Answer("rankings", list[ComparedRankingShape], "preview")

OPERATIONS: Final[tuple[Operation, ...]] = (
    Write(
        "PUT",
        "competitions/{competition_id}/void.json",
        "Void a competition: all points it gave are taken back",
        command=VoidCompetition,
        answer=_COMPETITION,
        render=render_competition,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "competitions/{competition_id}/unvoid.json",
        "Have a voided competition count again",
        command=UnvoidCompetition,
        answer=_COMPETITION,
        render=render_competition,
        scope=Scope.ADMIN,
    ),
    Preview(
        "competitions/{competition_id}/void.json",
        "Show what voiding a competition would lead to",
        command=VoidCompetition,
        answer=_COMPARED,
    ),
    Preview(
        "competitions/{competition_id}/unvoid.json",
        "Show what unvoiding a competition would lead to",
        command=UnvoidCompetition,
        answer=_COMPARED,
    ),
)
