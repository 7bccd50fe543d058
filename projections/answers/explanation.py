"""Why a competitor has this position and total."""

from collections.abc import Container, Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from engine.domain.errors import Fault, Unacceptable, Unreadable
from engine.domain.terms import FIRST_TIME, CompetitionId, CompetitorId, RankingId, Reversal, Sequence, UnityId
from projections.answers import explaining
from projections.answers.classification import Neighbours, neighbours_of
from projections.answers.explainer import Cause, ExplanationStep
from projections.answers.explaining import ExplanationPlace
from projections.answers.lookup import competitor_of, unity_of
from projections.answers.view import Question, View
from projections.board.board import Board
from projections.past.folds import TIMELINE_EVENTS_MAX

STEPS_DEFAULT: Final = 50
STEPS_MAX: Final = 200
"""Steps of one page of an explanation."""


class Explanation(Struct, frozen=True, kw_only=True):
    """`on`, if requested: the steps are the last ones by then, in order of time. `classification`: the competitor's
    place in it after the event `to`; null: none was declared, or `on` was requested. `next`: the value of `from` for
    the rest; null: there is none. `dropped`: the competitions of these steps that `best` or `drop` of a criterion
    leaves out; absent if none has these."""

    competitor_id: CompetitorId
    unity_id: UnityId
    start: ExplanationPlace = field(name="from")
    end: ExplanationPlace = field(name="to")
    steps: list[ExplanationStep]
    classification: Neighbours | None
    next: Sequence | None
    on: datetime | UnsetType = UNSET
    dropped: list[CompetitionId] | UnsetType = UNSET


class ExplainQuestion(Question[Explanation], frozen=True, kw_only=True):
    """From after the event `start` (0: from the beginning) to after the event `end` (None: the last one). `limit`: the
    most steps; None: all. `latest`: the last steps, and `next` is the value of `end` for earlier ones.

    Raises Unreadable if `start` is greater than `end`, Unacceptable if a day is asked about and the log is too long,
    NotFound, and TooMuchWork.
    """

    ranking_id: RankingId
    competitor_id: CompetitorId
    unity_id: UnityId | None = None
    start: Sequence = Sequence(0)
    end: Sequence | None = None
    on: datetime | None = None
    limit: int | None = STEPS_DEFAULT
    latest: bool = False

    def __post_init__(self) -> None:
        if self.on is not None and self.start:
            fault = Fault("from", "cannot be sent with on, whose steps are in order of time")
            raise Unreadable("The query has both from and on; send one of them.", [fault])
        if self.end is not None and self.start > self.end:
            fault = Fault("from", "must not be greater than to")
            raise Unreadable("The query cannot be read; correct the parameters named.", [fault])

    async def answered(self, view: View) -> Explanation:
        live, board = view.live, view.live.board
        unity_id = unity_of(board, self.ranking_id, self.unity_id)
        competitor_of(board, self.competitor_id)
        head, ranking = live.head.sequence, board.rankings[self.ranking_id]
        end = head if self.end is None else self.end
        asked = live.tournament_id, self.ranking_id, unity_id, self.competitor_id
        if self.on is not None and end > TIMELINE_EVENTS_MAX:
            raise Unacceptable(
                f"Lines by date can be explained in tournaments of at most {TIMELINE_EVENTS_MAX:,} events."
            )
        if self.on is None:
            found = await explaining.explanation(
                view.past,
                *asked,
                notation=ranking.unities[unity_id].notation,
                start=self.start,
                end=end,
                head=head,
                limit=self.limit,
                latest=self.latest,
            )
            steps = [_dated(board, step) for step in found.steps]
        else:
            found = await explaining.explanation_by_date(
                view.past, *asked, on=self.on, upto=end, head=head, limit=self.limit
            )
            steps = found.steps
        return Explanation(
            competitor_id=self.competitor_id,
            unity_id=unity_id,
            start=found.start,
            end=found.end,
            steps=steps,
            classification=None if found.neighbours is None else neighbours_of(ranking, found.neighbours),
            next=found.next,
            dropped=UNSET if found.dropped is None else _dropped(steps, found.dropped),
            on=UNSET if self.on is None else self.on,
        )


def _dropped(steps: Iterable[ExplanationStep], dropped: Container[CompetitionId]) -> list[CompetitionId]:
    given = dict.fromkeys(step.competition_id for step in steps if step.is_own)
    return [one for one in given if one is not None and one in dropped]


def _dated(board: Board, step: ExplanationStep) -> ExplanationStep:
    """The step at the time at which its competition took place."""
    competition = None if step.competition_id is None else board.competitions.get(step.competition_id)
    if competition is None or competition.date is None:
        return step
    return msgspec.structs.replace(step, took_place=competition.date)


class Together(Struct, frozen=True, kw_only=True):
    """Steps taken together. `own`: those that changed the competitor's points, the list or the sort; `others`: those in
    which only others moved; both newest first. `deltas`: the number of steps with one; `gained` and `lost`: the
    sums of those above and below 0. `passed`, `was_passed`: how often the competitor overtook, and was overtaken.
    `late`: the points of competitions that were entered after those of a later one."""

    own: list[ExplanationStep]
    others: list[ExplanationStep]
    deltas: int
    gained: int
    lost: int
    passed: int
    was_passed: int
    late: frozenset[Sequence]


def together(steps: Items[ExplanationStep], competitor_id: CompetitorId) -> Together:
    deltas = [step.delta for step in steps if step.delta is not None]
    passing = [one.who == competitor_id for step in steps for one in step.overtakings if not one.level]
    return Together(
        own=[step for step in reversed(steps) if step.is_own],
        others=[step for step in reversed(steps) if not step.is_own],
        deltas=len(deltas),
        gained=sum([delta for delta in deltas if delta > 0]),
        lost=sum([delta for delta in deltas if delta < 0]),
        passed=passing.count(True),
        was_passed=passing.count(False),
        late=frozenset(_late(steps)),
    )


class Settled(Struct, frozen=True):
    """A competitor's own steps, newest first, as if what was corrected had been given at once. `kept`: those that
    count, with totals that add up. `corrected`: as recorded, the steps of what was corrected or taken back."""

    kept: list[ExplanationStep]
    corrected: list[ExplanationStep]


def settled(own: Items[ExplanationStep]) -> Settled:
    """`own`: newest first, in the order of the log. The steps of a competition are settled together; without one, those
    of the same points."""
    given = dict[int, list[ExplanationStep]]()
    by_sequence = dict[Sequence, int]()
    for step in reversed(own):
        first = by_sequence.get(step.reverses or step.sequence, -step.sequence)
        by_sequence[step.sequence] = key = step.competition_id or first
        given.setdefault(key, []).append(step)
    changed = [key for key, (first, *its) in given.items() if first.cause is Cause.POINTS and any(map(_corrects, its))]
    kept = [_as_one(its) if key in changed else its for key, its in given.items()]
    in_order = sorted([step for its in kept for step in its], key=lambda one: one.sequence)
    return Settled(
        [*reversed([*_with_totals(in_order)])] if changed else [*own],
        [step for step in own if by_sequence[step.sequence] in changed],
    )


def _with_totals(steps: Items[ExplanationStep]) -> Iterator[ExplanationStep]:
    """The steps, each with the total that it leads to from that of the first."""
    total = steps[0].total_before if steps else None
    for step in steps:
        if step.delta is None or step.total is None:
            yield step
        else:
            total = (total or 0) + step.delta
            yield msgspec.structs.replace(step, total=total)


def _corrects(step: ExplanationStep) -> bool:
    return step.corrects and step.reversal is not Reversal.EXPIRY


def _as_one(steps: Items[ExplanationStep]) -> list[ExplanationStep]:
    """What the first of these steps gave, as the last one left it; nothing if all was taken back. Whom it passed may no
    longer be true."""
    first, last, deltas = steps[0], steps[-1], [step.delta for step in steps if step.delta is not None]
    results = [step.result for step in steps if step.result is not None]
    is_taken_back = last.reversal is not None and last.reversal.takes_back
    of_last = (last.corrected and last.corrected.scored) or last.scored
    if of_last:
        is_taken_back = of_last.kind == "nothing"
    if is_taken_back and not sum(deltas):
        return []
    one = msgspec.structs.replace(
        first,
        delta=sum(deltas) if deltas else None,
        result=results[-1] if results else None,
        scored=of_last or next((step.scored_now for step in reversed(steps) if step.scored), UNSET),
        score=last.score,
        corrected=last.corrected,
        overtakings=[],
        overtakings_left_out=0,
    )
    return [one]


def _late(steps: Iterable[ExplanationStep]) -> Iterator[Sequence]:
    given = [
        step
        for step in steps
        if step.cause is Cause.POINTS and step.competition_id is not None and not (step.scored and step.scored.earlier)
    ]
    last = FIRST_TIME
    for step in sorted(given, key=lambda one: one.sequence):
        if step.took_place < last:
            yield step.sequence
        last = max(last, step.took_place)
