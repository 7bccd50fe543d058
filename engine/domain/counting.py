"""What judging needs of points that start or stop counting, and the totals of results afterwards.

Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, Literal, Protocol

import msgspec

from engine.domain import events
from engine.domain.commands import CausedPoints
from engine.domain.events import Delta, Recorded, Total
from engine.domain.faults import cited
from engine.domain.lines import Line, Rule, part_of
from engine.domain.state import GivenResult, ResultLine, ResultsState, State
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


Turn = tuple[bool, list[ResultLine]]
"""Results of one competitor in one unity that start (True) or stop counting with an event."""
Turns = dict[TotalOf, tuple[RankingId, list[Turn]]]
"""Those with the events of a request, in their order, each with its ranking."""


def take_turn(
    turns: Turns, ranking_id: RankingId, lines: Iterable[tuple[TotalOf, ResultLine]], *, starting: bool
) -> None:
    """Adds the results that start or stop counting with the next event: that which gave them, or is reversed."""
    for named, line in lines:
        if (known := turns.get(named)) is None:
            turns[named] = ranking_id, [(starting, [line])]
        elif known[1][-1][1][-1].sequence == line.sequence:
            known[1][-1][1].append(line)
        else:
            known[1].append((starting, [line]))


class TotalsInOrder:
    """The totals that the events of a request name, each after its event. `totals`: for each competitor and unity, from
    the last event to the first."""

    def __init__(self, totals: Mapping[TotalOf, list[Total]]) -> None:
        self._totals = totals

    def after_next(self, results: Iterable[Delta]) -> tuple[Total, ...]:
        """The totals of the competitors and unities that these results name, each once, after the next event with which
        results of theirs start or stop counting."""
        named = dict.fromkeys([(one.unity_id, one.competitor_id) for one in results])
        return tuple([self._totals[of].pop() for of in named])


def totals_after(
    results: KnownResults, turned: Iterable[Turned], rules: Mapping[RankingId, Rule], *, starting: bool
) -> Steps[TotalsInOrder]:
    """The totals of all competitors with a result among these lines, by the `rules` that hold afterwards. `starting`:
    they start to count. Raises LacksResults."""
    turns: Turns = {}
    for one in turned:
        lines = result_lines(one.sequence, one.points, one.lines, FIRST_TIME)
        take_turn(turns, one.points.ranking_id, lines, starting=starting)
        yield
    return (yield from totals_in_order(results, turns, rules, None))


def result_lines(
    sequence: Sequence, points: events.PointsAdded, lines: Iterable[Line], recorded_at: datetime
) -> Iterator[tuple[TotalOf, ResultLine]]:
    """The results among these lines of the points, the event `sequence`, each with the total that it is part of."""
    first, since, cause = events.origin(sequence, points), points.since or recorded_at, points.competition_id
    for line in lines:
        if line.is_result:
            its = line.delta
            back = ResultLine(sequence, first, line.number, its.amount, since, cause)
            yield (its.unity_id, its.competitor_id), back


def totals_in_order(
    known: KnownResults, turns: Turns, rules: Mapping[RankingId, Rule], now: datetime | None
) -> Steps[TotalsInOrder]:
    """The totals after each of the events with which these results turn. `rules`, `now`: as in `totals_of_named`.
    Raises LacksResults."""
    results = _read_of(known, {ranking_id for ranking_id, _ in turns.values()})
    totals: dict[TotalOf, list[Total]] = {}
    for named, (ranking_id, its) in turns.items():
        of, rule, (unity_id, competitor_id) = results[ranking_id], rules[ranking_id], named
        if len(its) == 1:  # the usual case, which needs no order
            ((starts, lines),) = its
            total = total_of_results(of, rule, unity_id, competitor_id, now, lines if starts else ())
            totals[named] = [Total(competitor_id, unity_id, total)]
            yield
            continue
        running = running_totals(of, rule, unity_id, competitor_id, now, its)
        next(running)
        totals[named] = []
        for total in running:
            totals[named].append(Total(competitor_id, unity_id, total))
            yield
        totals[named].reverse()
    return TotalsInOrder(totals)


def running_totals(
    results: ResultsState,
    rule: Rule,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    now: datetime | None,
    turns: Collection[Turn],
) -> Iterator[int | None]:
    """The total of a competitor in a unity before a request, then after each of its `turns`. `rule`, `now`: as in
    `total_of_results`, after the request. The `results` may be those before the request, or those after it."""
    started = {line.sequence for starts, lines in turns if starts for line in lines}
    stopping = [line for starts, lines in turns if not starts for line in lines]
    counting = counting_results(results, rule, unity_id, competitor_id, now)
    others = (one for one in counting if one.sequence not in started)
    if results.adds_up(unity_id):
        added = [one.result for one in (*others, *stopping)]
        number, total = len(added), sum(added)
        yield total if number else None
        for starts, lines in turns:
            sign = 1 if starts else -1
            number, total = number + sign * len(lines), total + sign * sum([line.result for line in lines])
            yield total if number else None
        return
    first = [ResultLine(one.sequence, one.origin, 0, one.result, one.recorded_at, None) for one in islice(others, 1)]
    heap = [(results.precedence(unity_id, line), line.result) for line in (*first, *stopping)]
    heapify(heap)
    yield heap[0][1] if heap else None
    stopped = set[int]()
    for starts, lines in turns:
        for line in lines:
            number = results.precedence(unity_id, line)
            if starts:
                heappush(heap, (number, line.result))
            else:
                stopped.add(number)
        while heap and heap[0][0] in stopped:
            heappop(heap)
        yield heap[0][1] if heap else None


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
    results = _read_of(known, set(named.values()))
    totals = {}
    for (unity_id, competitor_id), ranking_id in named.items():
        its, back = results[ranking_id], given_back.get((unity_id, competitor_id), ())
        total = total_of_results(its, rules[ranking_id], unity_id, competitor_id, now, back)
        totals[unity_id, competitor_id] = Total(competitor_id, unity_id, total)
        yield
    return totals


def _read_of(known: KnownResults, ranking_ids: Collection[RankingId]) -> dict[RankingId, ResultsState]:
    """The results of these rankings. Raises LacksResults."""
    found = {one: its for one in ranking_ids if (its := known.get(one)) is not None}
    if missing := [one for one in ranking_ids if one not in found]:
        raise LacksResults(missing)
    return found


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
    if first is None or not results.adds_up(unity_id):
        return None if first is None else first.result
    return first.result + sum([one.result for one in counting])


def counting_results(
    results: ResultsState,
    rule: Rule,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    now: datetime | None,
    given_back: Iterable[ResultLine] = (),
) -> Iterator[GivenResult]:
    """The results that count, as `total_of_results` takes them."""
    for one in results.of(unity_id, competitor_id, given_back):
        its = one.sequence, one.origin, one.recorded_at, one.competition_id
        if rule.counts(*its, competitor_id, unity_id, now):
            yield one


def signed(sign: Literal[-1, 1], deltas: Iterable[Delta]) -> tuple[Delta, ...]:
    """The deltas, or their opposites if `sign` is -1."""
    return tuple([Delta(d.competitor_id, d.unity_id, sign * d.amount) for d in deltas])


def closed_among(state: State, ranking_ids: Iterable[RankingId]) -> str:
    """The names of the closed rankings among these, as text."""
    touched = [state.rankings[ranking_id] for ranking_id in dict.fromkeys(ranking_ids)]
    return ", ".join([cited(ranking.name) for ranking in touched if ranking.closed_at is not None])
