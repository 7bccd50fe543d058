"""What a change would lead to: each ranking that it concerns, before and after."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as Items
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from engine.domain.errors import Unacceptable
from engine.domain.events import Event
from engine.domain.notation import Notation
from engine.domain.terms import CompetitorId, RankingId, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.scoring import UnscoredResult, unscored_by
from projections.answers.view import Question, View
from projections.board.board import Board, Competitor, what_counts
from projections.board.classification import needs_sums
from projections.live.sums import ReadSums
from projections.live.tournament import LiveTournament
from projections.past.comparison import (
    ClassifiedMove,
    Comparison,
    ForeseenCounts,
    ListChange,
    Move,
    classified_move_steps,
    copied,
    foreseen,
    foreseen_rankings,
    moves,
    what_will_count,
)

PREVIEW_AT_ONCE_MAX: Final = 2_000
"""Lines that are compared and rendered without a pause; each takes some microseconds."""
PREVIEW_LINES_MAX: Final = 400_000
"""Lines of standings, and of classifications, that a preview shows at most."""


class StandingMove(Struct, frozen=True, kw_only=True):
    """Positions and totals are null if the competitor is not in the list."""

    competitor_id: CompetitorId
    name: str
    position_before: int | None
    total_before: int | None
    position_after: int | None
    total_after: int | None


class ComparedUnity(Struct, frozen=True, kw_only=True):
    id: UnityId
    name: str
    moves: list[StandingMove]


class ClassificationMove(Struct, frozen=True, kw_only=True):
    """Positions are null if the competitor is not in the list."""

    competitor_id: CompetitorId
    name: str
    position_before: int | None
    position_after: int | None


class ComparedRanking(Struct, frozen=True, kw_only=True):
    """`classification`: present if criteria are declared; the moves by them."""

    id: RankingId
    name: str
    unities: list[ComparedUnity]
    classification: list[ClassificationMove] | UnsetType = UNSET


class Foreseen(Struct, frozen=True):
    """`rankings`: those whose points, lists or classifications would change. None: they have more than
    PREVIEW_AT_ONCE_MAX lines. `unscored`: the results that would give no points."""

    rankings: list[ComparedRanking] | None
    unscored: list[UnscoredResult]


class ForeseenQuestion(Question[Foreseen], frozen=True):
    """What `decided` would lead to. `is_short`: None instead of a long answer. Raises as `lines_foreseen` and
    `foreseen_comparisons`."""

    decided: tuple[Event, ...]
    is_short: bool = True

    async def answered(self, view: View) -> Foreseen:
        unscored = unscored_by(view.live.board, self.decided)
        if self.is_short and lines_foreseen(view.live.board, self.decided) > PREVIEW_AT_ONCE_MAX:
            return Foreseen(None, unscored)
        comparisons = await foreseen_comparisons(view.live, self.decided, view.read_sums)
        return Foreseen(compared(view.live.board, comparisons), unscored)


def lines_foreseen(board: Board, decided: Items[Event]) -> int:
    """The number of lines to compare. Raises Unacceptable beyond PREVIEW_LINES_MAX."""
    touched = [board.rankings[ranking_id] for ranking_id in foreseen_rankings(board, decided)]
    lines = sum([len(one.participants) * (len(one.unities) + bool(one.criteria)) for one in touched])
    if lines > PREVIEW_LINES_MAX:
        raise Unacceptable(
            f"A preview shows at most {PREVIEW_LINES_MAX:,} lines of standings and classifications; this would be "
            f"{lines:,}."
        )
    return lines


def compared(
    board: Board, comparisons: Mapping[RankingId, Comparison], only: UnityId | None = None
) -> list[ComparedRanking]:
    """All unities of the rankings, or `only` one. `board` has their competitors."""
    competitor_of = board.competitors.__getitem__

    def unity_of(comparison: Comparison, unity_id: UnityId, lines: Iterable[Move]) -> ComparedUnity:
        unity = comparison.after.unities[unity_id]
        shown = [standing_move(competitor_of, unity.notation, line) for line in lines]
        return ComparedUnity(id=unity_id, name=unity.name, moves=shown)

    return [
        ComparedRanking(
            id=ranking_id,
            name=comparison.after.name,
            unities=[
                unity_of(comparison, unity_id, lines)
                for unity_id, lines in moves(comparison.before, comparison.after).items()
                if only in (None, unity_id)
            ],
            classification=UNSET
            if comparison.classified_moves is None
            else [classification_move(competitor_of, move) for move in comparison.classified_moves],
        )
        for ranking_id, comparison in comparisons.items()
    ]


async def foreseen_comparisons(
    live: LiveTournament, decided: Items[Event], read: ReadSums
) -> dict[RankingId, Comparison]:
    """The rankings whose points, lists or classifications `decided` would change: in the state at the call, and in the
    state after it. Raises TooMuchWork, and as `read`."""
    board, sequence, now = live.board, live.head.sequence, live.expired_by or datetime.now(UTC)
    concerned, after = foreseen_rankings(board, decided), foreseen(board, decided)
    listed = {event.ranking_id for event in decided if isinstance(event, ListChange)}
    before = {r: copied(board.rankings[r], None if r in listed else one.participants) for r, one in after.items()}
    now_count = {r: what_counts(board, r, live.expired_by) for r in after}
    found: dict[RankingId, Comparison] = {}
    with ExitStack() as stack:
        declared = [r for r, ranking in before.items() if ranking.criteria]
        lacking = {r for r in declared if needs_sums(board.rankings[r]) and live.sums.get(r) is None}
        counts = {
            r: stack.enter_context(live.classifications.counts(r)) for r in declared
        }  # before other work continues
        for ranking_id, ranking in after.items():
            classified_moves: list[ClassifiedMove] | None = None
            if (counted := counts.get(ranking_id)) is not None:
                if ranking_id in lacking:
                    counted.give(await read(sequence, now_count[ranking_id]))
                then = ForeseenCounts(board, counted, ranking_id, ranking, decided, now)
                if then.lacks_sums:
                    will_count = what_will_count(ranking, decided, now_count[ranking_id])
                    await in_time_slices(then.give(await read(sequence, will_count), will_count))
                async with live.classifications.computing(ranking_id):
                    steps = classified_move_steps(before[ranking_id], ranking, counted, then)
                    classified_moves = await in_time_slices(steps)
            comparison = Comparison(before[ranking_id], ranking, classified_moves)
            if concerned[ranking_id] or comparison.reorders:
                found[ranking_id] = comparison
    return found


def standing_move(competitor_of: Callable[[CompetitorId], Competitor], notation: Notation, move: Move) -> StandingMove:
    return StandingMove(
        competitor_id=move.competitor_id,
        name=competitor_of(move.competitor_id).name,
        position_before=None if move.before is None else move.before.position,
        total_before=None if move.before is None else notation.shown(move.before.total),
        position_after=None if move.after is None else move.after.position,
        total_after=None if move.after is None else notation.shown(move.after.total),
    )


def classification_move(
    competitor_of: Callable[[CompetitorId], Competitor], move: ClassifiedMove
) -> ClassificationMove:
    return ClassificationMove(
        competitor_id=move.competitor_id,
        name=competitor_of(move.competitor_id).name,
        position_before=move.before,
        position_after=move.after,
    )
