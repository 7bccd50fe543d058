"""The points of a ranking in the order in which they took place, for clients that fold them.

Pure. A step is a moment of the world's clock at which points took place. Points that do not count are in no step.
"""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from operator import itemgetter
from typing import Final

from msgspec import Struct

from engine.domain.events import Delta, Points, PointsAdded, Recorded, origin
from engine.domain.lines import Line, declared_date, rule_of
from engine.domain.marks import mark_after
from engine.domain.steps import Steps, in_order
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from projections.board.board import Board, add_points
from projections.board.results import PassingResults

_IN_TIME: Final = itemgetter(0, 1, 2)


class TimelineStep(Struct, frozen=True):
    """The points that took place at `at`. `deltas` and `results`: by competitor and unity, the changes of stored
    totals, and the results given, as marks. `competitions`: the competitions that gave them. `recorded_at` and
    `sequence`: the time and the event at which the last of these points were recorded. `is_dated`: the time was
    declared. `is_expiry`: points expired, and nothing else took place."""

    at: datetime
    recorded_at: datetime
    sequence: Sequence
    deltas: dict[tuple[CompetitorId, UnityId], int]
    results: dict[tuple[CompetitorId, UnityId], int]
    competitions: dict[CompetitionId, None]
    is_dated: bool
    is_expiry: bool = False


class Timeline:
    """Use `follow` for all events of the log up to the one that `board` shows; `steps` is the result. `deltas`: the
    number of lines followed. `until`: the time up to which points expire; None: the recording of the last event."""

    def __init__(self, board: Board, ranking_id: RankingId, until: datetime | None = None) -> None:
        self.deltas = 0
        self._until = until
        self._last: datetime | None = None
        self._expired: list[tuple[datetime, Recorded, Delta]] = []  # deltas
        self._board, self._ranking_id = board, ranking_id
        self._rule = rule_of(board, ranking_id)
        self._steps: dict[datetime, TimelineStep] = {}
        self._results: list[tuple[datetime, bool, int, Recorded, Delta]] = []  # when one starts or ends; with a number

    def follow(self, recorded: Recorded) -> None:
        """Takes the next event."""
        self._last = recorded.recorded_at
        for line in self._rule.of(recorded):
            self._take(recorded, line)

    def steps(self) -> Steps[list[TimelineStep]]:
        """In order of time."""
        counting: dict[tuple[CompetitorId, UnityId], PassingResults] = {}
        for result in (yield from in_order(self._results, _IN_TIME)):
            self._take_result(counting, *result)
            yield
        for at, recorded, delta in self._expired:
            if at <= self._limit:
                self._change(at, recorded, delta, -delta.amount)
            yield
        told = []
        for one in (yield from in_order(self._steps.values(), lambda one: one.at)):
            if one.competitions or one.results or any(one.deltas.values()):
                told.append(one)
            yield
        return told

    def _take(self, recorded: Recorded, line: Line) -> None:
        self.deltas += 1
        competition_id, at = getattr(recorded.event, "competition_id", None), line.took_place
        before = self._steps.get(at)
        self._steps[at] = TimelineStep(
            at,
            recorded.recorded_at,
            recorded.sequence,
            {} if before is None else before.deltas,
            {} if before is None else before.results,
            {} if before is None else before.competitions,
            is_dated=declared_date(self._board, competition_id) is not None,
        )
        if competition_id is not None:
            self._steps[at].competitions[competition_id] = None
        if line.is_result:
            number = len(self._results)
            self._results.append((at, False, number, recorded, line.delta))
            if line.expires_at is not None:
                self._results.append((line.expires_at, True, number, recorded, line.delta))
        else:
            self._change(at, recorded, line.delta, line.delta.amount)
            if line.expires_at is not None:
                self._expired.append((line.expires_at, recorded, line.delta))

    def _take_result(
        self,
        counting: dict[tuple[CompetitorId, UnityId], PassingResults],
        at: datetime,
        ends: bool,
        number: int,
        recorded: Recorded,
        result: Delta,
    ) -> None:
        """Adds the effect of a result that starts or ends at a time. At any time, the total is the best of the counting
        results, or the last one in the order of the log."""
        if ends and at > self._limit:
            return
        unity = self._board.rankings[self._ranking_id].unities[result.unity_id]
        named = result.competitor_id, result.unity_id
        its = counting.setdefault(named, PassingResults(unity.counts, unity.sort))
        before = its.mark()
        if ends:
            its.go(number)
        else:
            assert isinstance(recorded.event, Points)
            its.come(number, origin(recorded.sequence, recorded.event), result.amount)
            given = self._steps[at].results
            given[named] = mark_after(given.get(named, 0), result.amount, unity.counts, unity.sort)
        self._change(at, recorded, result, its.mark() - before)

    @property
    def _limit(self) -> datetime:
        """The time up to which points expire."""
        assert self._last is not None
        return self._rule.by(self._until or self._last)

    def _change(self, at: datetime, recorded: Recorded, line: Delta, by: int) -> None:
        step = self._steps.get(at)
        if step is None:
            step = TimelineStep(at, recorded.recorded_at, recorded.sequence, {}, {}, {}, is_dated=False, is_expiry=True)
        named = line.competitor_id, line.unity_id
        step.deltas[named] = step.deltas.get(named, 0) + by
        self._steps[at] = step


def folded_steps(board: Board, ranking_id: RankingId, steps: Items[TimelineStep]) -> Iterator[Recorded]:
    """Folds the points of steps into the board, step by step, and yields each as `replayed` does once the board shows
    it."""
    for recorded in replayed(board, ranking_id, steps, None):
        assert isinstance(recorded.event, PointsAdded)
        add_points(board, recorded.event)
        yield recorded


def replayed(
    board: Board, ranking_id: RankingId, steps: Items[TimelineStep], her: CompetitorId | None
) -> Iterator[Recorded]:
    """An event for each step, as if it had been recorded when it took place. It names a competition of the step in
    which the competitor `her` took part; without one, the step's only competition."""
    for number, step in enumerate(steps, start=1):
        deltas = tuple([Delta(who, unity_id, amount) for (who, unity_id), amount in step.deltas.items()])
        cause = next((one for one in step.competitions if her in _participants(board, one)), None)
        if cause is None and her is not None and len(step.competitions) == 1:
            (cause,) = step.competitions
        event = PointsAdded(ranking_id=ranking_id, competition_id=cause, deltas=deltas)
        yield Recorded(Sequence(number), step.at, OPERATOR, None, event)


def _participants(board: Board, competition_id: CompetitionId) -> Items[CompetitorId]:
    competition = board.competitions.get(competition_id)
    return () if competition is None else competition.participants
