"""Explanation: how a competitor came from one position and total to another.

Pure. In this file, *she* is the competitor that is explained. A step is an event that changed something for her: it
gave her a delta, she passed someone or was passed (whichever of the two moved), or the list of competitors or the sort
of the unity changed.

OVERTAKING. Of two competitors in the list, one is better, or they are level. If an event improves how one stands
relative to the other, she has passed her, or drawn level if they are level now. An event counts as a whole: its lines
are not looked at separately.
"""

from collections.abc import Generator, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from engine.domain.errors import TooMuchWork
from engine.domain.events import (
    CompetitionChanged,
    Criterion,
    ParticipantsChanged,
    Points,
    PointsAdded,
    PointsReversed,
    PointsScored,
    Recorded,
    Result,
    UnityChanged,
    changed_by,
)
from engine.domain.marks import mark_after, result_of
from engine.domain.notation import Notation
from engine.domain.steps import Steps, finished
from engine.domain.terms import CompetitionId, CompetitorId, Counts, RankingId, Reversal, Sender, Sequence, UnityId
from projections.answers.scored_for import EarlierResult, ScoredFor, scored_for
from projections.board.board import Board, Revisions, Unity, fold
from projections.board.classification import Classified, Counted, leaves_out, left_out, needs_sums
from projections.board.classified_lines import ClassifiedLines
from projections.board.competition_sums import CompetitionSums
from projections.board.order import OrderedLines
from projections.board.tiebreaks import Broken
from projections.past.history import changes_order, reversal_of


class Place(Struct, frozen=True, gc=False):
    """Her place. `position` None: she was not in the list. `total` None: no result counts."""

    position: int | None
    total: int | None


class Overtaking(Struct, frozen=True, kw_only=True, gc=False):
    """`who` passed `whom`, or drew level with them if `level`. The totals are those after the event."""

    who: CompetitorId
    whom: CompetitorId
    level: bool
    who_total: int | None
    whom_total: int | None


class _Correction(Struct, kw_only=True):
    """What a correction of points has changed so far, in consecutive events from `first` to `last`. Of those with lines
    in the unity: the totals of `old` before them, and her place; the last one that names her, if any does; the step
    that they make, if any."""

    competition_id: CompetitionId
    first: Sequence
    last: Sequence
    old: dict[CompetitorId, int]
    before: Place | None = None
    hers: tuple[Recorded, Points] | None = None
    step: "ExplanationStep | None" = None


class ResultBefore(Struct, frozen=True, gc=False):
    """The result that a competition had until the event `sequence` changed it."""

    result: Result | None
    sequence: Sequence
    recorded_at: datetime


class Cause(StrEnum):
    """What kind of event a step is."""

    POINTS = "points"
    REVERSAL = "reversal"
    """Points were taken back or restored; the step's `reversal` says why."""
    LIST = "list"
    """The list of competitors changed, or the unity was created."""
    SORT = "sort"
    """The sort of the unity changed."""


class ClassifiedNeighbours(Struct, frozen=True):
    """Her neighbours in the classification by the declared `criteria`: her line and those above and below it, in order;
    empty if she is not in the list. `lines` None: finding them would exceed the limit of sums for an answer. `broken`:
    her tie-breaks, by the number of the criterion."""

    criteria: tuple[Criterion, ...]
    lines: list[Classified] | None
    broken: dict[int, Broken] = {}


class CorrectedResult(Struct, frozen=True, kw_only=True):
    """What a result has become by corrections after the step, up to the end of the explanation. `score`: if it is a
    text; `scored`: what it gives the competitor, absent if no scoring is for it; `earlier`: the scores before it, from
    that of the step on."""

    score: str | None
    scored: ScoredFor | UnsetType = UNSET
    earlier: list[EarlierResult]


class ExplanationStep(Struct, frozen=True, kw_only=True):
    """An event that changed something for a competitor. `delta`: the sum of their deltas in it; null: it gave them
    none, but others moved. `result`: the best or last of their results in it, if the unity counts results. `reason`:
    the reason given for the points. `overtakings_left_out`: the number of further ones, if a step shows only those with
    the nearest totals. `took_place`: when the competition took place; without a date or a competition, when the event
    was recorded, or the first points for that competition. `scored`: what a scoring gave it for; absent: none did.
    `score`: the competition's result after the event, if it is a text; `corrected`: what it has become since, absent if
    it has not changed, or a later step says so. A step may combine several events, in order of
    time, or of a correction; `sequence` is that of the last one."""

    sequence: Sequence
    recorded_at: datetime
    actor: Sender
    cause: Cause
    competition_id: CompetitionId | None
    reverses: Sequence | None
    reversal: Reversal | None
    reason: str | None
    delta: int | None
    result: int | None = None
    total_before: int | None
    total: int | None
    position_before: int | None
    position_after: int | None
    overtakings: list[Overtaking]
    overtakings_left_out: int = 0
    took_place: datetime
    scored: ScoredFor | UnsetType = UNSET
    score: str | UnsetType = UNSET
    corrected: CorrectedResult | UnsetType = UNSET

    @property
    def scored_now(self) -> ScoredFor | UnsetType:
        """As `scored`, with the corrected result."""
        return self.corrected.scored or self.scored if self.scored and self.corrected else self.scored

    @property
    def score_now(self) -> str | UnsetType:
        return self.corrected.score or self.score if self.corrected else self.score

    @property
    def corrects(self) -> bool:
        """Whether the event changed points that had been given."""
        return self.reversal is not None or bool(self.scored and self.scored.earlier)

    @property
    def is_own(self) -> bool:
        """Whether the event changed the competitor's points, the list or the sort. If not, only others moved."""
        given = self.delta is not None or self.result is not None
        return given or self.total_before != self.total or self.cause in (Cause.LIST, Cause.SORT)


_OF_SUMS: Final = Notation()
OVERTAKINGS_MAX: Final = 5_000
"""A page of an explanation ends with the step that reaches this number of overtakings. If one step has more of them by
competitors whose own totals did not change, it names those nearest to her afterwards."""
_STEP_OTHERS: Final = 500


class Explainer:
    """Makes the steps of one competitor in one unity from the events of the log after those that `board` shows. Takes
    ownership of the board. The ranking and the unity need not exist yet; `notation`: what the unity has or will
    have."""

    def __init__(
        self,
        board: Board,
        ranking_id: RankingId,
        unity_id: UnityId,
        competitor_id: CompetitorId,
        notation: Notation = _OF_SUMS,
    ) -> None:
        self.board = board
        self._ranking_id = ranking_id
        self._unity_id = unity_id
        self._her_id = competitor_id
        self._notation = notation
        self._revisions = Revisions()
        self._order_now: OrderedLines | None = None
        self._correction: _Correction | None = None
        self._result_before: tuple[CompetitionId, Result | None] | None = None
        self.results_before: dict[CompetitionId, list[ResultBefore]] = {}

    @property
    def supersedes(self) -> Sequence | None:
        """The event from which on earlier steps are part of the one that `step` made last; None: none is."""
        return None if self._correction is None else self._correction.first

    def continues(self, recorded: Recorded) -> bool:
        """Whether the next event is a part of the correction that the one before it began."""
        event, begun = recorded.event, self._correction
        return (
            begun is not None
            and isinstance(event, PointsScored | PointsReversed)
            and event.scores
            and (event.competition_id, event.ranking_id) == (begun.competition_id, self._ranking_id)
            and recorded.sequence == begun.last + 1
        )

    def prepared(self) -> Generator[None, None, None]:
        """Builds the order that `place` searches, with pauses for other work."""
        unity = self.unity
        if unity is not None and (self._order_now is None or self._order_now.outdated):
            enrolment = self.board.rankings[self._ranking_id].participants
            self._order_now = yield from OrderedLines.in_steps(enrolment, unity.totals, unity.sort)

    @property
    def place(self) -> Place:
        """Her current place. Builds the order first unless `prepared` did."""
        unity = self.unity
        if unity is None:
            return Place(None, self._notation.shown(0))
        order = self._order
        return Place(order.position(order.line(self._her_id)), unity.notation.shown(unity.totals.get(self._her_id, 0)))

    @property
    def needs_sums(self) -> bool:
        """Whether `neighbours` needs the ranking's sums of competitions."""
        ranking = self.board.rankings.get(self._ranking_id)
        return ranking is not None and needs_sums(ranking)

    def neighbours(self, sums: CompetitionSums | None) -> Generator[None, None, ClassifiedNeighbours | None]:
        """Her neighbours in the classification, in time slices; None: no classification is declared. Nothing may be
        folded meanwhile."""
        ranking = self.board.rankings.get(self._ranking_id)
        if ranking is None or not ranking.criteria:
            return None
        lines = yield from ClassifiedLines.in_steps(self.board, ranking, sums)
        try:
            around = (yield from lines.around(self._her_id, 1)) or []
            return ClassifiedNeighbours(ranking.criteria, around, (yield from lines.broken(self._her_id)))
        except TooMuchWork:
            return ClassifiedNeighbours(ranking.criteria, None)

    @property
    def drops(self) -> Criterion | None:
        """The first criterion in the unity that leaves out results, whoever is tied; None: there is none."""
        ranking = self.board.rankings.get(self._ranking_id)
        criteria = () if ranking is None else ranking.criteria
        its = (one for one in criteria if one.unity_id == self._unity_id and one.among is None)
        return next(filter(leaves_out, its), None)

    def dropped(self, sums: CompetitionSums | None) -> Steps[frozenset[CompetitionId]]:
        """The competitions that it leaves out for her. Nothing may be folded meanwhile."""
        if self.drops is None or sums is None:
            return frozenset()
        counted = Counted(self.board, self.board.rankings[self._ranking_id], sums)
        return frozenset((yield from left_out(counted, self.drops, self._her_id)))

    def step(self, recorded: Recorded) -> Generator[None, None, ExplanationStep | None]:
        """Folds the next event, and returns its step; None: it changed nothing for her. In time slices: she may pass
        thousands of competitors, at a microsecond each. Raises KeyError as the fold does."""
        event = recorded.event
        if isinstance(event, Points) and event.ranking_id == self._ranking_id:
            return (yield from self._after_points(recorded, event))
        self._correction = None
        if isinstance(event, CompetitionChanged):
            result = self.board.competitions[event.competition_id].result
            self._result_before = None if event.said_result is None else (event.competition_id, result)
            if event.said_result is not None and (event.said_result.result or None) != result:
                had = ResultBefore(result, recorded.sequence, recorded.recorded_at)
                self.results_before.setdefault(event.competition_id, []).append(had)
        elif not isinstance(event, Points):
            self._result_before = None
        if not changes_order(event, self._ranking_id):
            fold(self.board, self._revisions, recorded)
            return None
        yield from self.prepared()
        before = self.place
        if isinstance(event, ParticipantsChanged) and self._order_now is not None:
            changed = dict.fromkeys((*event.removed, *event.added))
            lines = list(map(self._order_now.line, changed))
            fold(self.board, self._revisions, recorded)
            if not self._order_now.outdated:
                yield from self._order_now.replace_all(changed, lines)
        else:
            fold(self.board, self._revisions, recorded)
            self._order_now = None
        yield from self.prepared()
        after = self.place
        if after == before:
            return None
        return ExplanationStep(
            sequence=recorded.sequence,
            recorded_at=recorded.recorded_at,
            actor=recorded.actor,
            cause=Cause.SORT if isinstance(event, UnityChanged) else Cause.LIST,
            competition_id=None,
            reverses=None,
            reversal=None,
            reason=None,
            delta=None,
            total_before=before.total,
            total=after.total,
            position_before=before.position,
            position_after=after.position,
            overtakings=[],
            took_place=recorded.recorded_at,
        )

    def _after_points(self, recorded: Recorded, event: Points) -> Generator[None, None, ExplanationStep | None]:
        unity, correction = self.unity, self._correction if self.continues(recorded) else None
        if correction is None and isinstance(event, PointsReversed) and event.replaced and event.competition_id:
            first = recorded.sequence
            correction = _Correction(competition_id=event.competition_id, first=first, last=first, old={})
        self._correction = correction
        if correction is not None:
            correction.last = recorded.sequence
        named = {line.competitor_id for line in changed_by(event) if line.unity_id == self._unity_id}
        if unity is None or not named:
            fold(self.board, self._revisions, recorded)
            return None if correction is None else correction.step
        yield from self.prepared()
        before, totals, order = self.place, unity.totals, self._order
        old = yield from self._fold_points(recorded, named, order, totals)
        hers = recorded, event
        if correction is not None:
            correction.old = old = old | correction.old
            correction.before = before = correction.before or before
            if self._her_id in named:
                correction.hers = hers
            hers = correction.hers or hers
        step = yield from self._points_step(*hers, old, before)
        if step is not None:
            step = msgspec.structs.replace(step, sequence=recorded.sequence)
        if correction is not None:
            correction.step = step
        return step

    def _points_step(
        self, recorded: Recorded, event: Points, old: dict[CompetitorId, int], before: Place
    ) -> Generator[None, None, ExplanationStep | None]:
        """The step of points that are folded. `old`: the totals before of the competitors whose lines there are;
        `before`: her place before."""
        unity = self.unity
        assert unity is not None
        after, total = self.place, unity.totals.get(self._her_id, 0)
        yield
        overtakings, left_out = yield from self._overtakings(self._order, old, total, old.get(self._her_id, total))
        result = self._result(event)
        is_sum = unity.counts is Counts.SUM and self._her_id in old
        gives = [d for d in event.deltas if d.unity_id == self._unity_id and d.competitor_id == self._her_id]
        if not is_sum and not gives and result is None and before == after and not overtakings:
            return None
        return ExplanationStep(
            sequence=recorded.sequence,
            recorded_at=recorded.recorded_at,
            actor=recorded.actor,
            cause=Cause.POINTS if isinstance(event, PointsAdded) else Cause.REVERSAL,
            competition_id=event.competition_id,
            reverses=event.reverses if isinstance(event, PointsReversed) else None,
            reversal=reversal_of(self.board, event),
            reason=event.reason if isinstance(event, PointsAdded) else None,
            delta=(after.total or 0) - (before.total or 0) if is_sum else None,
            result=result,
            total_before=before.total,
            total=after.total,
            position_before=before.position,
            position_after=after.position,
            overtakings=overtakings,
            overtakings_left_out=left_out,
            took_place=(event.since if isinstance(event, PointsAdded) else None) or recorded.recorded_at,
            scored=(yield from self._scored_for(recorded, event)),
            score=self._score(event.competition_id),
        )

    def _score(self, competition_id: CompetitionId | None) -> str | UnsetType:
        competition = None if competition_id is None else self.board.competitions.get(competition_id)
        return competition.result if competition and isinstance(competition.result, str) else UNSET

    def _fold_points(
        self, recorded: Recorded, named: set[CompetitorId], order: OrderedLines, totals: Mapping[CompetitorId, int]
    ) -> Generator[None, None, dict[CompetitorId, int]]:
        """The totals before the event of the competitors whose lines it has."""
        old: dict[CompetitorId, int] = {}
        lines = []
        for number, competitor_id in enumerate(named, start=1):
            old[competitor_id] = totals.get(competitor_id, 0)
            lines.append(order.line(competitor_id))
            if number % _STEP_OTHERS == 0:
                yield
        fold(self.board, self._revisions, recorded)
        yield
        yield from order.replace_all(old, lines)
        return old

    def _scored_for(self, recorded: Recorded, event: Points) -> Steps[ScoredFor | UnsetType]:
        """What a scoring gave her points for in the event, or in its correction."""
        if isinstance(event, PointsScored):
            lines: Iterable[tuple[CompetitorId, UnityId]] = [
                (line.competitor_id, line.unity_id) for line in (*event.given, *event.given_results)
            ]
        else:
            lines = event.replaced if isinstance(event, PointsReversed) else ()
        competition_id, before = event.competition_id, self._result_before
        if competition_id is None or (self._her_id, self._unity_id) not in lines:
            return UNSET
        corrected = [] if before is None or before[0] != competition_id else [(before[1], recorded.recorded_at)]
        ranking, competition = self.board.rankings[self._ranking_id], self.board.competitions[competition_id]
        found = yield from scored_for(ranking, self._unity_id, competition, self._her_id, corrected)
        return found or UNSET

    def _result(self, event: Points) -> int | None:
        """The best or the last of her results in the event; None: it gave her none in the unity."""
        unity = self.unity
        if unity is None or unity.counts is Counts.SUM or not isinstance(event, PointsAdded):
            return None
        mark = 0
        for line in event.given_results:
            if (line.competitor_id, line.unity_id) == (self._her_id, self._unity_id):
                mark = mark_after(mark, line.amount, unity.counts, unity.sort)
        return result_of(mark, unity.sort)

    def _overtakings(
        self, order: OrderedLines, old: dict[CompetitorId, int], total: int, total_before: int
    ) -> Generator[None, None, tuple[list[Overtaking], int]]:
        """The overtakings between her and the competitors whose order relative to her may have changed: those that
        moved, and those that she moved past. Also the number of the latter that exceed the limit and are left out."""
        assert self.unity is not None
        enrolled, totals = self.board.rankings[self._ranking_id].participants, self.unity.totals
        if self._her_id not in enrolled:
            return [], 0
        shown = self.unity.notation.shown
        least, most = sorted((total, total_before))
        others: set[CompetitorId] = set()
        moved_between, left_out = 0, 0
        for number, competitor_id in enumerate(old, start=1):
            if competitor_id in enrolled:
                others.add(competitor_id)
                moved_between += least <= totals.get(competitor_id, 0) <= most
            if number % _STEP_OTHERS == 0:
                yield
        if total != total_before:  # she is one of those who moved
            nearest = order.between(total_before, total, moved_between + OVERTAKINGS_MAX)
            still = [one for one in nearest if one not in others][:OVERTAKINGS_MAX]
            left_out = order.count_between(total_before, total) - moved_between - len(still)
            others.update(still)
            yield
        found = []
        for number, other in enumerate(sorted(others - {self._her_id}), start=1):
            theirs = totals.get(other, 0)
            then, now = order.compared(total_before, old.get(other, theirs)), order.compared(total, theirs)
            if then != now:
                pair = (self._her_id, other, total, theirs) if now > then else (other, self._her_id, theirs, total)
                who, whom, who_total, whom_total = pair
                found.append(
                    Overtaking(
                        who=who, whom=whom, level=now == 0, who_total=shown(who_total), whom_total=shown(whom_total)
                    )
                )
            if number % _STEP_OTHERS == 0:
                yield
        return found, left_out

    @property
    def unity(self) -> Unity | None:
        """None: it is not there yet."""
        ranking = self.board.rankings.get(self._ranking_id)
        return None if ranking is None else ranking.unities.get(self._unity_id)

    @property
    def _order(self) -> OrderedLines:
        finished(self.prepared())
        assert self._order_now is not None
        return self._order_now
