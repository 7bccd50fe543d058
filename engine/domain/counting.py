"""What judging needs of points that start or stop counting, and the totals of results afterwards.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, Literal, Protocol

import msgspec

from engine.domain import events
from engine.domain.commands import CausedPoints
from engine.domain.events import Delta, Recorded, Total
from engine.domain.faults import cited
from engine.domain.lines import Line, Rule, part_of
from engine.domain.state import ResultLine, ResultsState, State
from engine.domain.steps import Steps
from engine.domain.terms import FIRST_TIME, CompetitionId, CompetitorId, RankingId, Sequence, UnityId


class KnownResults(Protocol):
    """The results of those rankings of which they have been read; None: they have not."""

    def get(self, ranking_id: RankingId, /) -> ResultsState | None: ...


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What judging may need to know besides the state. `now`: in the state, everything due by then has expired; None:
    no points expire. `recorded_at`: of the points that the command may make count or stop counting, by sequence, where
    points expire."""

    results: KnownResults = msgspec.field(default_factory=dict[RankingId, ResultsState])
    now: datetime | None = None
    recorded_at: Mapping[Sequence, datetime] = {}


NOTHING_KNOWN: Final = Known()


class LacksResults(Exception):
    """The results of these rankings must be read before the command can be judged."""

    def __init__(self, ranking_ids: Iterable[RankingId]) -> None:
        super().__init__()
        self.ranking_ids = tuple(ranking_ids)


TotalOf = tuple[UnityId, CompetitorId]
"""Names a total: its unity and its competitor."""
TotalsOfResults = Mapping[TotalOf, Total]
GivenBack = dict[TotalOf, list[ResultLine]]
"""Results that count after a change but not before."""


class Caused:
    """The `points` that competitions caused, undone ones included, and when they were recorded, by sequence."""

    def __init__(self) -> None:
        self.points: dict[Sequence, events.PointsAdded] = {}
        self.recorded_at: dict[Sequence, datetime] = {}
        self._by_competition: dict[CompetitionId, dict[Sequence, events.PointsAdded]] = {}

    def take(self, recorded: Recorded) -> None:
        """Takes the next event, if it gives points of a competition."""
        event = recorded.event
        if isinstance(event, events.PointsAdded) and event.competition_id is not None:
            self.points[recorded.sequence] = event
            self._by_competition.setdefault(event.competition_id, {})[recorded.sequence] = event
            self.recorded_at[recorded.sequence] = recorded.recorded_at

    def of(self, competition_id: CompetitionId) -> CausedPoints:
        """The points that a competition caused."""
        return self._by_competition.get(competition_id, {})


class Turned(msgspec.Struct, frozen=True):
    """The `lines` of the event `sequence` that start or stop counting, of the `points` that it added."""

    sequence: Sequence
    points: events.PointsAdded
    lines: list[Line]

    @property
    def part(self) -> events.PointsAdded:
        """The points, with only these of their lines."""
        return part_of(self.points, self.lines)


def turned_by(rule: Rule, sequence: Sequence, points: events.PointsAdded, known: Known) -> Turned:
    """The lines of these points that count by the rule."""
    recorded_at = FIRST_TIME if known.now is None else known.recorded_at[sequence]
    return Turned(sequence, points, [*rule.lines(sequence, recorded_at, points, known.now)])


class TotalsInOrder:
    """The totals that the events of a request name: in a unity that adds results up, those after the event; of the best
    or the last result, those after the whole request. `after`: these; `sums`: of each of the others, before the
    request, the number of results that count, and their sum."""

    def __init__(self, after: TotalsOfResults, sums: dict[TotalOf, tuple[int, int]]) -> None:
        self._after, self._sums = after, sums

    def turned(self, results: Iterable[Delta], *, counting: bool) -> tuple[Total, ...]:
        """The totals of the competitors and unities that these results name, each once, after the next event: with it,
        they start or stop `counting`."""
        sign, named = (1 if counting else -1), dict[TotalOf, None]()
        for result in results:
            one = result.unity_id, result.competitor_id
            named[one] = None
            if one in self._sums:
                number, total = self._sums[one]
                self._sums[one] = number + sign, total + sign * result.amount
        return tuple([self._total(*one) for one in named])

    def _total(self, unity_id: UnityId, competitor_id: CompetitorId) -> Total:
        if (unity_id, competitor_id) not in self._sums:
            return self._after[unity_id, competitor_id]
        number, total = self._sums[unity_id, competitor_id]
        return Total(competitor_id, unity_id, total if number else None)


def totals_after(
    results: KnownResults,
    turned: Iterable[Turned],
    before: Mapping[RankingId, Rule],
    after: Mapping[RankingId, Rule],
    *,
    starting: bool,
) -> Steps[TotalsInOrder]:
    """The totals of all competitors with a result among these lines, by the rules `before` and `after` the request.
    `starting`: they start to count. Raises LacksResults."""
    named: dict[TotalOf, RankingId] = {}
    given_back: GivenBack = {}
    for one in turned:
        for line in one.lines:
            if line.is_result:
                named[line.delta.unity_id, line.delta.competitor_id] = one.points.ranking_id
                if starting:
                    give_back(given_back, one.sequence, one.points, line, FIRST_TIME)
        yield
    return (yield from totals_in_order(results, named, before, after, None, given_back))


def give_back(
    given_back: GivenBack, sequence: Sequence, points: events.PointsAdded, line: Line, recorded_at: datetime
) -> None:
    """Adds a result of these points, the event `sequence`, to those that count afterwards but not now."""
    named, first = (line.delta.unity_id, line.delta.competitor_id), events.origin(sequence, points)
    back = ResultLine(
        sequence, first, line.number, line.delta.amount, points.since or recorded_at, points.competition_id
    )
    given_back.setdefault(named, []).append(back)


def totals_in_order(
    known: KnownResults,
    named: Mapping[TotalOf, RankingId],
    before: Mapping[RankingId, Rule],
    after: Mapping[RankingId, Rule],
    now: datetime | None,
    given_back: GivenBack,
) -> Steps[TotalsInOrder]:
    """As `totals_of_named`, of the rules `after` the request; `before`: those before it."""
    sums, others = dict[TotalOf, tuple[int, int]](), dict[TotalOf, RankingId]()
    for one, ranking_id in named.items():
        if (its := known.get(ranking_id)) is not None and its.adds_up(one[0]):
            counting = [*counting_results(its, before[ranking_id], *one, now)]
            sums[one] = len(counting), sum(counting)
        else:
            others[one] = ranking_id
        yield
    return TotalsInOrder((yield from totals_of_named(known, others, after, now, given_back)), sums)


def totals_of_named(
    known: KnownResults,
    named: Mapping[TotalOf, RankingId],
    rules: Mapping[RankingId, Rule],
    now: datetime | None,
    given_back: GivenBack,
) -> Steps[TotalsOfResults]:
    """The totals of these competitors and unities in their rankings, by the `rules` that hold afterwards. `now`: the
    time up to which results have expired then; None: none expires by the change. `given_back`: results that count
    afterwards but not now. Raises LacksResults."""
    results = {one: known.get(one) for one in named.values()}
    if missing := [ranking_id for ranking_id, its in results.items() if its is None]:
        raise LacksResults(missing)
    totals = {}
    for (unity_id, competitor_id), ranking_id in named.items():
        its, back = results[ranking_id], given_back.get((unity_id, competitor_id), ())
        assert its is not None
        total = total_of_results(its, rules[ranking_id], unity_id, competitor_id, now, back)
        totals[unity_id, competitor_id] = Total(competitor_id, unity_id, total)
        yield
    return totals


def total_of_results(
    results: ResultsState,
    rule: Rule,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    now: datetime | None,
    given_back: Iterable[ResultLine] = (),
) -> int | None:
    """The total of a competitor in a unity that counts results: the first of those that count by the rule at `now`, or
    their sum. None: none does."""
    counting = counting_results(results, rule, unity_id, competitor_id, now, given_back)
    first = next(counting, None)
    return first if first is None or not results.adds_up(unity_id) else first + sum(counting)


def counting_results(
    results: ResultsState,
    rule: Rule,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    now: datetime | None,
    given_back: Iterable[ResultLine] = (),
) -> Iterator[int]:
    """The results that count, as `total_of_results` takes them."""
    for one in results.of(unity_id, competitor_id, given_back):
        its = one.sequence, one.origin, one.recorded_at, one.competition_id
        if rule.counts(*its, competitor_id, unity_id, now):
            yield one.result


def signed(sign: Literal[-1, 1], deltas: Iterable[Delta]) -> tuple[Delta, ...]:
    """The deltas, or their opposites if `sign` is -1."""
    return tuple([Delta(d.competitor_id, d.unity_id, sign * d.amount) for d in deltas])


def closed_among(state: State, ranking_ids: Iterable[RankingId]) -> str:
    """The names of the closed rankings among these, as text."""
    touched = [state.rankings[ranking_id] for ranking_id in dict.fromkeys(ranking_ids)]
    return ", ".join([cited(ranking.name) for ranking in touched if ranking.closed_at is not None])
