"""Which points stop counting because they have expired, or count again because they no longer have.

Pure: part of `judging.decide_at`. Each ranking gets one PointsExpired.
"""

from collections.abc import Container, Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final, Literal

from msgspec import UNSET

from engine.domain import events
from engine.domain.counting import (
    AS_NOW,
    Afterwards,
    ExpiryTimes,
    closed_among,
    counting_of,
    declared_date,
    now_of,
    of_lines,
    over_by,
    signed,
    took_place_at,
    totals_after,
    totals_of,
)
from engine.domain.errors import Conflict
from engine.domain.events import Delta, Event
from engine.domain.state import State
from engine.domain.terms import DELTA_MAX, CompetitionId, CompetitorId, RankingId, Sequence, UnityId


def expired_at_once(
    state: State, competition_id: CompetitionId | None, added: Iterable[Event], times: ExpiryTimes
) -> tuple[Event, ...]:
    """The expiry of those added points that have already expired."""
    date = declared_date(state, competition_id)
    if date is None:
        return ()
    expiring = _Expiring(state)
    for points in added:
        assert isinstance(points, events.PointsAdded)
        over = over_by(state.rankings[points.ranking_id], date, times.now)
        expiring.stop(_NOT_YET, points, over)
    return expiring.decided(times.now, AS_NOW)


def expired_by(state: State, times: ExpiryTimes, rankings: Items[RankingId]) -> tuple[Event, ...]:
    """The expiry, in these rankings, of those points in `times` that expire by `times.until`."""
    assert times.until is not None
    expiring = _Expiring(state)
    for sequence, (recorded_at, points) in times.given.items():
        ranking = state.rankings[points.ranking_id]
        if points.ranking_id in rankings and sequence not in ranking.undone:
            took_place = took_place_at(state, recorded_at, points.competition_id)
            before = over_by(ranking, took_place, now_of(ranking, times.now))
            expiring.stop(sequence, points, over_by(ranking, took_place, times.until) - before)
    return expiring.decided(times.until, Afterwards(now=times.until))


def redated(state: State, changed: events.CompetitionChanged, times: ExpiryTimes) -> tuple[Event, ...]:
    """The events for points that expire, or count again, because the date of a competition changed.

    Raises Conflict if such points are in a closed ranking.
    """
    if changed.started_at is UNSET:
        return ()
    date = changed.started_at
    if date == state.competitions[changed.competition_id].created_at:
        date = None  # means that none is declared
    expiring = _Expiring(state)
    for sequence, (recorded_at, points) in times.given.items():
        ranking = state.rankings[points.ranking_id]
        if sequence not in ranking.undone:
            now = now_of(ranking, times.now)
            before = over_by(ranking, took_place_at(state, recorded_at, points.competition_id), now)
            after = over_by(ranking, date or recorded_at, now)
            expiring.start(sequence, points, before - after)
            expiring.stop(sequence, points, after - before)
    if closed := closed_among(state, expiring.points):
        raise Conflict(
            f"By another date, points of competition {changed.competition_id} would count otherwise in closed "
            f"rankings; have them reopened first: {closed}."
        )
    return expiring.decided(times.now, Afterwards(now=times.now, dates={changed.competition_id: date}))


_NOT_YET: Final = Sequence(0)
"""The sequence of an event that is being judged."""


class _Expiring:
    """Collects the lines that stop counting because they have expired, or start because they no longer have."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._stopping: list[tuple[Sequence, events.PointsAdded]] = []
        self._starting: list[tuple[Sequence, events.PointsAdded]] = []

    @property
    def points(self) -> list[events.PointsAdded]:
        return [points for _, points in (*self._stopping, *self._starting)]

    def stop(self, sequence: Sequence, points: events.PointsAdded, over: Container[UnityId]) -> None:
        """Adds the counting lines of this event in the unities `over`: they stop counting."""
        self._take(self._stopping, sequence, points, over)

    def start(self, sequence: Sequence, points: events.PointsAdded, back: Container[UnityId]) -> None:
        """Adds the lines of this event in the unities `back` that nothing else prevents from counting: they start."""
        self._take(self._starting, sequence, points, back)

    def _take(
        self,
        taken: list[tuple[Sequence, events.PointsAdded]],
        sequence: Sequence,
        points: events.PointsAdded,
        unities: Container[UnityId],
    ) -> None:
        its = of_lines(counting_of(self._state, points), lambda line: line.unity_id in unities)
        if events.changed_by(its):
            taken.append((sequence, its))

    def decided(self, boundary: datetime, afterwards: Afterwards) -> tuple[Event, ...]:
        """One PointsExpired for each ranking. Raises LacksResults."""
        starting = dict(self._starting)
        deltas: dict[RankingId, list[Delta]] = {}
        results: dict[RankingId, list[Delta]] = {}
        touched: dict[Sequence, events.PointsAdded] = {}
        for number, (_, points) in enumerate((*self._stopping, *self._starting)):
            sign: Literal[-1, 1] = -1 if number < len(self._stopping) else 1
            deltas.setdefault(points.ranking_id, []).extend(signed(sign, points.deltas))
            results.setdefault(points.ranking_id, []).extend(points.results)
            touched[Sequence(number)] = points
        totals = totals_after(self._state, touched, afterwards, starting)
        return tuple(
            [
                events.PointsExpired(
                    ranking_id=ranking_id,
                    boundary=boundary,
                    deltas=_summed(its),
                    totals=totals_of(results[ranking_id], totals),
                )
                for ranking_id, its in deltas.items()
            ]
        )


def _summed(lines: Iterable[Delta]) -> tuple[Delta, ...]:
    """For each competitor and unity, one line with the sum, even if it is 0, or several if one line cannot hold it."""
    sums: dict[tuple[CompetitorId, UnityId], int] = {}
    for line in lines:
        named = line.competitor_id, line.unity_id
        sums[named] = sums.get(named, 0) + line.amount
    found: list[Delta] = []
    for (competitor_id, unity_id), amount in sums.items():
        left = amount
        while abs(left) > DELTA_MAX:
            part = DELTA_MAX if left > 0 else -DELTA_MAX
            found.append(Delta(competitor_id, unity_id, part))
            left -= part
        found.append(Delta(competitor_id, unity_id, left))
    return tuple(found)
