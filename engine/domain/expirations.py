"""Which points stop counting because they have expired, or count again because they no longer have.

Pure. Each ranking gets one PointsExpired.
"""

from collections.abc import Container, Iterable, Mapping
from datetime import datetime

from engine.domain import events
from engine.domain.counting import (
    AS_NOW,
    Afterwards,
    ExpiryTimes,
    TotalOf,
    closed_among,
    counting_of,
    declared_date,
    give_back,
    now_of,
    of_lines,
    over_by,
    took_place_at,
    totals_of_named,
)
from engine.domain.errors import Conflict
from engine.domain.events import Delta, Event
from engine.domain.state import RankingState, ResultLine, State
from engine.domain.steps import Steps, finished
from engine.domain.terms import DELTA_MAX, CompetitionId, RankingId, Sequence, UnityId


def expired_at_once(
    state: State, competition_id: CompetitionId | None, added: Iterable[Event], times: ExpiryTimes
) -> tuple[Event, ...]:
    """The expiry of those added points that have already expired."""
    if declared_date(state, competition_id) is None:
        return ()
    return finished(_at_once(state, competition_id, added, times.now).decided(times.now, AS_NOW))


def say_totals(decided: Iterable[Event]) -> bool:
    """Whether any of the expiries says totals, which are valid only in the state that they were decided by."""
    return any(isinstance(event, events.PointsExpired) and event.totals for event in decided)


def lines_at_once(
    state: State, competition_id: CompetitionId | None, added: Iterable[Event], now: datetime
) -> "LinesByRanking":
    """The lines of `expired_at_once`."""
    return finished(_at_once(state, competition_id, added, now).lines())


def _at_once(state: State, competition_id: CompetitionId | None, added: Iterable[Event], now: datetime) -> "_Sums":
    sums, date = _Sums(state), declared_date(state, competition_id)
    for points in added:
        assert isinstance(points, events.PointsAdded)
        if date is not None:
            sums.stop(points, over_by(state.rankings[points.ranking_id], date, now))
    return sums


_Due = tuple[UnityId, datetime, datetime]
"""A unity in which those points expire that took place after the first time, and not after the second."""


class Expiration:
    """The expiry of points that expire by `until`. In the state, everything due by `now` has expired."""

    def __init__(self, state: State, now: datetime, until: datetime) -> None:
        self._state, self._now, self._until = state, now, until
        self._sums = _Sums(state)
        self._due: dict[RankingId, list[_Due]] = {}

    def take(self, sequence: Sequence, recorded_at: datetime, points: events.PointsAdded) -> None:
        """Takes an event's points, which may expire."""
        ranking = self._state.rankings[points.ranking_id]
        if (due := self._due.get(points.ranking_id)) is None:
            due = self._due[points.ranking_id] = self._due_in(ranking)
        took_place = took_place_at(self._state, recorded_at, points.competition_id)
        over = {unity_id for unity_id, after, by in due if after < took_place <= by}
        if over and sequence not in ranking.undone:
            self._sums.stop(points, over)

    def extend(self, until: datetime) -> None:
        """Goes on to the points that expire later, by `until`."""
        self._now, self._until = self._until, until
        self._due.clear()

    def _due_in(self, ranking: RankingState) -> list[_Due]:
        now = now_of(ranking, self._now)
        expiries = [(one, ranking.unities[one].expiry) for one in ranking.special]
        return [(one, its.over_up_to(now), its.over_up_to(self._until)) for one, its in expiries if its is not None]

    def lines(self) -> "LinesByRanking":
        """The lines of the events."""
        return finished(self._sums.lines())

    def decided(self) -> Steps[tuple[Event, ...]]:
        """The events. Raises LacksResults."""
        return self._sums.decided(self._until, Afterwards(now=self._until))


class Redating:
    """The points that expire, or count again, when a competition gets this `date`; None: none is declared. In the
    state, everything due by `now` has expired."""

    def __init__(self, state: State, competition_id: CompetitionId, date: datetime | None, now: datetime) -> None:
        self._state, self._competition_id, self._date, self._now = state, competition_id, date, now
        self._sums = _Sums(state)

    def take(self, sequence: Sequence, recorded_at: datetime, points: events.PointsAdded) -> None:
        """Takes an event's points of the competition."""
        ranking = self._state.rankings[points.ranking_id]
        if sequence not in ranking.undone:
            now = now_of(ranking, self._now)
            before = over_by(ranking, took_place_at(self._state, recorded_at, self._competition_id), now)
            after = over_by(ranking, self._date or recorded_at, now)
            self._sums.start(sequence, points, before - after)
            self._sums.stop(points, after - before)

    def refuse_closed(self) -> None:
        """Raises Conflict if such points are in a closed ranking."""
        if closed := closed_among(self._state, self._sums.rankings):
            raise Conflict(
                f"By another date, points of competition {self._competition_id} would count otherwise in closed "
                f"rankings; have them reopened first: {closed}."
            )

    def lines(self) -> "LinesByRanking":
        """The lines of the events."""
        return finished(self._sums.lines())

    def decided(self) -> Steps[tuple[Event, ...]]:
        """The events. Raises LacksResults."""
        afterwards = Afterwards(now=self._now, dates={self._competition_id: self._date})
        return self._sums.decided(self._now, afterwards)


LinesByRanking = dict[RankingId, tuple[tuple[Delta, ...], list[TotalOf]]]
"""For each ranking, the deltas of its PointsExpired, and whose totals it names."""


class _Sums:
    """Sums the lines that stop counting because they have expired, or start because they no longer have."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._deltas: dict[RankingId, dict[TotalOf, int]] = {}
        self._of_results: dict[TotalOf, RankingId] = {}
        self._given_back: dict[TotalOf, list[ResultLine]] = {}

    @property
    def rankings(self) -> Iterable[RankingId]:
        """Those of all lines."""
        return self._deltas

    def stop(self, points: events.PointsAdded, over: Container[UnityId]) -> None:
        """Adds the counting lines of this event in the unities `over`: they stop counting."""
        self._take(points, over, -1)

    def start(self, sequence: Sequence, points: events.PointsAdded, back: Container[UnityId]) -> None:
        """Adds the lines of this event in the unities `back` that nothing else prevents from counting: they start."""
        give_back(self._given_back, sequence, self._take(points, back, 1).results)

    def _take(self, points: events.PointsAdded, unities: Container[UnityId], sign: int) -> events.PointsAdded:
        its = of_lines(counting_of(self._state, points), lambda line: line.unity_id in unities)
        if events.changed_by(its):
            sums = self._deltas.setdefault(points.ranking_id, {})
            for line in its.deltas:
                named = line.unity_id, line.competitor_id
                sums[named] = sums.get(named, 0) + sign * line.amount
            for line in its.results:
                self._of_results[line.unity_id, line.competitor_id] = points.ranking_id
        return its

    def decided(self, boundary: datetime, afterwards: Afterwards) -> Steps[tuple[Event, ...]]:
        """One PointsExpired for each ranking. Raises LacksResults."""
        after = yield from totals_of_named(self._state, self._of_results, afterwards, self._given_back)
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
