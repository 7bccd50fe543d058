"""Who led from when to when is what the tables of all moments say, on either clock."""

from collections.abc import Callable, Generator, Iterable
from datetime import UTC, datetime, timedelta, timezone
from itertools import groupby, pairwise
from typing import TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.events import Points, Recorded, root
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from projections.board.board import Ranking
from projections.past import leaders
from projections.past.leaders import PublishedLeaders, Reigns, TrueLeaders, differences, times_at_top
from tests.bounds import set_bounds
from tests.histories import board_of, dated_histories, logs, undone_in, unhurried
from tests.positions import standings
from tests.projections.test_world_clock import NaiveClock

_T = TypeVar("_T")
Who = tuple[CompetitorId, ...]
_LATE = datetime.max.replace(tzinfo=UTC)


class Naive:
    """The leaders of a unity by the tables of all moments, each made from nothing."""

    def __init__(self, log: list[Recorded], ranking_id: RankingId, unity_id: UnityId) -> None:
        self.log, self.ranking_id, self.unity_id = log, ranking_id, unity_id
        self.board = board_of(log)
        undone = undone_in(log)
        self.given = [one for one in log if self.is_about(one)]
        self.counted = [
            one
            for one in self.given
            if isinstance(one.event, Points)
            and root(one.sequence, one.event) not in undone
            and one.event.competition_id not in self.board.voided
            and self.counts_for_somebody(one.event)
        ]

    def is_about(self, recorded: Recorded) -> bool:
        event = recorded.event
        return isinstance(event, Points) and self.unity_id in {delta.unity_id for delta in event.deltas}

    def counts_for_somebody(self, event: Points) -> bool:
        struck = () if event.competition_id is None else self.board.struck.get(event.competition_id, ())
        return any(delta.unity_id == self.unity_id and delta.competitor_id not in struck for delta in event.deltas)

    def first(self, ranking: Ranking, totals: dict[CompetitorId, int]) -> Who:
        lines = standings(ranking.participants, totals, ranking.unities[self.unity_id].sort)
        them = sorted(line.competitor_id for line in lines if line.position == 1)
        return tuple(them) if len(them) <= leaders.SHARED_MAX else ()

    def published(self, at: datetime) -> Who:
        board = board_of([one for one in self.log if one.recorded_at <= at])
        if not any(one.recorded_at <= at for one in self.given):
            return ()
        ranking = board.rankings[self.ranking_id]
        return self.first(ranking, dict(ranking.unities[self.unity_id].totals))

    def true(self, at: datetime) -> Who:
        clock, totals = NaiveClock(self.log, at), dict[CompetitorId, int]()
        if not any(clock.takes_place_at(one) <= at for one in self.counted):
            return ()
        for event in clock.points(self.ranking_id):
            for delta in event.deltas:
                if delta.unity_id == self.unity_id:
                    totals[delta.competitor_id] = totals.get(delta.competitor_id, 0) + delta.amount
        return self.first(self.board.rankings[self.ranking_id], totals)

    def competitions(self, times: Iterable[tuple[datetime, Recorded]], by: Callable[[datetime], Who]) -> dict[int, int]:
        """After how many competitions each led."""
        first: dict[CompetitionId, datetime] = {}
        for at, one in times:
            assert isinstance(one.event, Points)
            if (cause := one.event.competition_id) is not None:
                first[cause] = min(at, first.get(cause, at))
        led = [one for at in first.values() for one in by(at)]
        return {one: led.count(one) for one in led}


def reigns_of(changes: Iterable[datetime], by: Callable[[datetime], Who]) -> list[tuple[datetime, Who]]:
    found = [(next(group), who) for who, group in groupby(sorted(changes), key=by)]
    return found[1:] if found and not found[0][1] else found


def shown(reigns: Reigns) -> list[tuple[datetime, Who]]:
    found = list(reigns)
    assert [one.until for one in found] == [*[one.since for one in found[1:]], None][: len(found)]
    return [(one.since, one.competitors) for one in found]


def result(steps: Generator[None, None, _T]) -> _T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(_T, end.value)


@unhurried
@given(logs() | logs(of=dated_histories()), st.integers(1, 4), st.data())
def test_the_leaders_are_those_in_the_tables_of_all_moments(
    log: list[Recorded], size: int, data: st.DataObject
) -> None:
    until = data.draw(st.none() | st.sampled_from([one.recorded_at for one in log]), label="until")
    shared = data.draw(st.integers(1, 4), label="shared at most")
    for ranking_id, ranking in board_of(log).rankings.items():
        for unity_id in ranking.unities:
            with pytest.MonkeyPatch.context() as small:
                set_bounds(small, SHARED_MAX=shared)
                _check(log, ranking_id, unity_id, size, until)


def _check(log: list[Recorded], ranking_id: RankingId, unity_id: UnityId, size: int, until: datetime | None) -> None:
    naive, end = Naive(log, ranking_id, unity_id), until or _LATE
    published = PublishedLeaders(TournamentId(1), ranking_id, unity_id, until)
    true = TrueLeaders(board_of(log), ranking_id, unity_id, until)
    for start in range(0, len(log), size):
        result(published.follow(log[start : start + size]))
        for recorded in log[start : start + size]:
            true.follow(recorded)
    result(published.finish())
    result(true.finish())

    recorded = {one.recorded_at for one in log if one.recorded_at <= end}
    clock = NaiveClock(log, _LATE)
    taken_place = [(at, one) for one in naive.counted if (at := clock.takes_place_at(one)) <= end]
    given = [(one.recorded_at, one) for one in naive.given if one.recorded_at <= end]
    for reigns, changes, times, by in (
        (published.reigns, recorded, given, naive.published),
        (true.reigns, {at for at, _ in taken_place}, taken_place, naive.true),
    ):
        assert shown(reigns) == reigns_of(changes, by)
        competitions = {one: number for one, number in reigns.competitions.items() if number}
        assert competitions == naive.competitions(times, by)


_MONDAY = datetime(2024, 3, 4, tzinfo=UTC)
_changes = st.dictionaries(st.integers(0, 24 * 40), st.lists(st.integers(1, 4), max_size=3, unique=True), max_size=8)


def _led(changes: dict[int, list[int]]) -> Reigns:
    reigns = Reigns()
    for hour, who in sorted(changes.items()):
        reigns.lead(_MONDAY + timedelta(hours=hour), tuple(sorted(CompetitorId(one) for one in who)), 1)
    return reigns


@given(_changes, _changes, st.integers(0, 24 * 50), st.integers(-12, 14))
def test_times_at_the_top_are_those_of_each_hour_and_evening(
    one: dict[int, list[int]], other: dict[int, list[int]], more: int, zone: int
) -> None:
    """Where each hour is asked who leads."""
    by_log, by_world = _led(one), _led(other)
    last = max([*one, *other], default=0) + more
    end = _MONDAY + timedelta(hours=last)
    midnight = 24 - zone if zone >= 0 else -zone

    def at(changes: dict[int, list[int]], hour: float) -> set[int]:
        return set(changes[max(began)]) if (began := [h for h in changes if h <= hour]) else set()

    count, times = result(times_at_top(by_log, end, 3, timezone(timedelta(hours=zone))))
    leaders_seen = {c for who in one.values() for c in who}
    assert (count, len(times)) == (len(leaders_seen), min(3, len(leaders_seen)))
    for top in times:
        led = [top.competitor_id in at(one, hour) for hour in range(last)]
        assert top.seconds // 3600 == sum(led)
        assert top.shared_seconds // 3600 == sum(own and len(at(one, hour)) > 1 for hour, own in enumerate(led))
        evenings = [top.competitor_id in at(one, hour - 0.1) for hour in range(midnight, last + 1, 24)]
        assert (top.days, top.weeks) == (sum(evenings), sum(evenings[6 if zone >= 0 else 0 :: 7]))
        starts = [a for a, (before, now) in enumerate(pairwise([False, *led])) if now and not before]
        assert top.runs in (len(starts), len(starts) + (top.competitor_id in at(one, last)))
        longest = max([len(list(run)) for is_led, run in groupby(led) if is_led], default=0)
        assert (top.longest.until - top.longest.since) // timedelta(hours=1) == longest
        assert top.competitions == sum(top.competitor_id in who for who in one.values())
    assert [top.seconds for top in times] == sorted([top.seconds for top in times], reverse=True)
    found = result(differences(by_log, by_world))
    differing = {
        hour for d in found for hour in range(last) if d.since <= _MONDAY + timedelta(hours=hour) < (d.until or _LATE)
    }
    first = min([hour for hour, who in one.items() if who], default=last)
    assert differing == {hour for hour in range(first, last) if at(one, hour) != at(other, hour)}
    for d in found:
        hour = (d.since - _MONDAY) // timedelta(hours=1)
        assert (set(d.log), set(d.world)) == (at(one, hour), at(other, hour))
