"""Which points stop counting because they have expired, or count again because they no longer have.

Pure. Each ranking gets one PointsExpired.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from datetime import datetime
from typing import Final

from engine.domain import events
from engine.domain.counting import (
    GivenBack,
    Known,
    KnownResults,
    TotalOf,
    closed_among,
    result_lines,
    totals_of_named,
)
from engine.domain.errors import Conflict
from engine.domain.events import Delta, Event, Recorded
from engine.domain.lines import Line, Rule, declared_date, rule_of
from engine.domain.state import State
from engine.domain.steps import Steps, finished
from engine.domain.terms import DELTA_MAX, CompetitionId, RankingId, Sequence

_NOT_RECORDED: Final = Sequence(0)


def expired_at_once(
    state: State, competition_id: CompetitionId | None, added: Iterable[Event], known: Known
) -> tuple[Event, ...]:
    """The expiry of those added points that have already expired."""
    if known.now is None or declared_date(state, competition_id) is None:
        return ()
    return finished(_at_once(state, added, known.now).decided(known.results, known.now, None))


def say_totals(decided: Iterable[Event]) -> bool:
    """Whether any of the expiries says totals, which are valid only in the state that they were decided by."""
    return any(isinstance(event, events.PointsExpired) and event.totals for event in decided)


def lines_at_once(
    state: State, competition_id: CompetitionId | None, added: Iterable[Event], now: datetime
) -> "LinesByRanking":
    """The lines of `expired_at_once`."""
    dated = () if declared_date(state, competition_id) is None else added
    return finished(_at_once(state, dated, now).lines())


def _at_once(state: State, added: Iterable[Event], now: datetime) -> "_Sums":
    sums = _Sums(state)
    for points in added:  # of a competition with a date: they took place at it
        assert isinstance(points, events.PointsAdded)
        rule = sums.rule(points.ranking_id)
        for line in rule.lines(_NOT_RECORDED, now, points):
            if line.expires_at is not None and line.expires_at <= rule.by(now):
                sums.stop(points.ranking_id, line)
    return sums


class Expiration:
    """The expiry of points that expire in these rankings by `until`. In the state, everything due by `now` has expired.
    A closed ranking is one that is about to be reopened."""

    def __init__(self, state: State, now: datetime, until: datetime, ranking_ids: Container[RankingId]) -> None:
        self._now, self._until = now, until
        self._ranking_ids = ranking_ids
        self._sums = _Sums(state, Rule.reopening)

    def take(self, recorded: Recorded) -> None:
        """Takes an event, if it gives points in one of the rankings."""
        event = recorded.event
        if isinstance(event, events.PointsAdded) and event.ranking_id in self._ranking_ids:
            rule = self._sums.rule(event.ranking_id)
            for line in rule.lines(recorded.sequence, recorded.recorded_at, event) if rule.expiries else ():
                if line.expires_at is not None and rule.by(self._now) < line.expires_at <= self._until:
                    self._sums.stop(event.ranking_id, line)

    def extend(self, until: datetime) -> None:
        """Goes on to the points that expire later, by `until`."""
        self._now, self._until = self._until, until

    def lines(self) -> "LinesByRanking":
        """The lines of the events."""
        return finished(self._sums.lines())

    def decided(self, known: KnownResults) -> Steps[tuple[Event, ...]]:
        """The events. Raises LacksResults."""
        return self._sums.decided(known, self._until, self._until)


class Redating:
    """The points that expire, or count again, when a competition gets this `date`; None: none is declared. In the
    state, everything due by `now` has expired."""

    def __init__(self, state: State, competition_id: CompetitionId, date: datetime | None, now: datetime) -> None:
        self._state, self._competition_id, self._date, self._now = state, competition_id, date, now
        self._sums = _Sums(state, self._dated)

    def _dated(self, rule: Rule) -> Rule:
        return rule.dating({self._competition_id: self._date})

    def take(self, recorded: Recorded) -> None:
        """Takes an event about points of the competition."""
        if not isinstance(recorded.event, events.PointsAdded):
            return
        ranking_id = recorded.event.ranking_id
        rule = self._sums.rule(ranking_id)
        counted = {(line.is_result, line.number): line for line in rule.of(recorded, self._now)}
        for line in self._dated(rule).of(recorded, self._now):
            if counted.pop((line.is_result, line.number), None) is None:
                self._sums.start(recorded, recorded.event, line)
        for line in counted.values():
            self._sums.stop(ranking_id, line)

    def refuse_closed(self) -> None:
        """Raises Conflict if such points are in a closed ranking."""
        if closed := closed_among(self._state, self._sums.rankings):
            raise Conflict(
                f"With another date, points of competition {self._competition_id} would count differently in closed "
                f"rankings; reopen them first: {closed}."
            )

    def lines(self) -> "LinesByRanking":
        """The lines of the events."""
        return finished(self._sums.lines())

    def decided(self, known: KnownResults) -> Steps[tuple[Event, ...]]:
        """The events. Raises LacksResults."""
        return self._sums.decided(known, self._now, self._now)


LinesByRanking = dict[RankingId, tuple[tuple[Delta, ...], list[TotalOf]]]
"""For each ranking, the deltas of its PointsExpired, and whose totals it names."""


class _Sums:
    """Sums the lines that stop counting because they have expired, or start because they no longer have. `after`: the
    rule of a ranking in the state that follows, made of the present one; None: they are the same."""

    def __init__(self, state: State, after: Callable[[Rule], Rule] | None = None) -> None:
        self._state, self._after = state, after
        self._rules: dict[RankingId, Rule] = {}
        self._deltas: dict[RankingId, dict[TotalOf, int]] = {}
        self._of_results: dict[TotalOf, RankingId] = {}
        self._given_back: GivenBack = {}

    @property
    def rankings(self) -> Iterable[RankingId]:
        """Those of all lines."""
        return self._deltas

    def rule(self, ranking_id: RankingId) -> Rule:
        """The rule of a ranking in the present state."""
        if (rule := self._rules.get(ranking_id)) is None:
            rule = self._rules[ranking_id] = rule_of(self._state, ranking_id)
        return rule

    def stop(self, ranking_id: RankingId, line: Line) -> None:
        """Adds a line that stops counting."""
        self._take(ranking_id, line, -1)

    def start(self, recorded: Recorded, points: events.PointsAdded, line: Line) -> None:
        """Adds a line of these recorded points that starts to count."""
        self._take(points.ranking_id, line, 1)
        for named, back in result_lines(recorded.sequence, points, [line], recorded.recorded_at):
            self._given_back.setdefault(named, []).append(back)

    def _take(self, ranking_id: RankingId, line: Line, sign: int) -> None:
        sums = self._deltas.setdefault(ranking_id, {})
        named = line.delta.unity_id, line.delta.competitor_id
        if line.is_result:
            self._of_results[named] = ranking_id
        else:
            sums[named] = sums.get(named, 0) + sign * line.delta.amount

    def decided(self, known: KnownResults, boundary: datetime, now: datetime | None) -> Steps[tuple[Event, ...]]:
        """One PointsExpired for each ranking. `now`: the time up to which results have expired afterwards; None: only
        the added ones have. Raises LacksResults."""
        rules = {one: rule if self._after is None else self._after(rule) for one, rule in self._rules.items()}
        after = yield from totals_of_named(known, self._of_results, rules, now, self._given_back)
        lines = yield from self.lines()
        expired = []
        for ranking_id, (deltas, named) in lines.items():
            totals = tuple([after[one] for one in named])
            expired.append(events.PointsExpired(ranking_id=ranking_id, boundary=boundary, deltas=deltas, totals=totals))
            yield
        return tuple(expired)

    def lines(self) -> Steps[LinesByRanking]:
        named: dict[RankingId, list[TotalOf]] = {}
        for one, ranking_id in self._of_results.items():
            named.setdefault(ranking_id, []).append(one)
            yield
        found: LinesByRanking = {}
        for ranking_id, sums in self._deltas.items():
            deltas = yield from _lines_of(sums)
            found[ranking_id] = deltas, named.get(ranking_id, [])
        return found


def _lines_of(sums: Mapping[TotalOf, int]) -> Steps[tuple[Delta, ...]]:
    """For each competitor and unity, one line with the sum, even if it is 0, or several if one line cannot hold it."""
    found: list[Delta] = []
    for (unity_id, competitor_id), amount in sums.items():
        left = amount
        while abs(left) > DELTA_MAX:
            part = DELTA_MAX if left > 0 else -DELTA_MAX
            found.append(Delta(competitor_id, unity_id, part))
            left -= part
        found.append(Delta(competitor_id, unity_id, left))
        yield
    return tuple(found)
