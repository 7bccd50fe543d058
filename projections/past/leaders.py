"""Who led a unity from when to when, on both clocks.

Pure. The leaders at a moment are the competitors that share position 1 of its table. Nobody leads before the first
points, or while more than SHARED_MAX share the first place; in a unity that counts results, nobody leads without one.
On the log's clock a moment is a time of recording, with the list and the sort of that time. On the world's clock it is
a time at which points took place (`world_clock.py`), with the list and the sort of the given board; points that are
voided or undone on that board have no moment.
"""

from array import array
from collections.abc import Generator, Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from heapq import merge, nsmallest
from itertools import groupby, islice
from typing import Final

from msgspec import Struct

from engine.domain.events import Delta, Event, Points, Recorded, changed_by, origin
from engine.domain.lines import rule_of
from engine.domain.presentation import in_zone
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from projections.board.board import Board, Unity, folding, moved_by
from projections.board.order import OrderedLines
from projections.board.results import PassingResults
from projections.columns.enrolment import Totals

SHARED_MAX: Final = 20
"""The most competitors that can share the first place and still lead."""
_LINES_AT_ONCE: Final = 512
_REIGNS_AT_ONCE: Final = 100
_MICROSECOND: Final = timedelta(microseconds=1)
_WEEK_DAYS: Final = 7
_LAST: Final = datetime.max.replace(tzinfo=UTC)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Leading = tuple[CompetitorId, ...]
"""Ids in ascending order; empty: nobody leads."""


# ── Findings ────────────────────────────────────────────────────────────────────────────────────────────


class Reign(Struct, frozen=True):
    """These competitors shared the first place from `since` until just before `until`; null: to the end. No
    competitors: nobody led."""

    since: datetime
    until: datetime | None
    competitors: Leading


class Reigns:
    """The reigns on one clock up to the time `until`; None: all. `last`: the last moment; None: there was none.
    `competitions`: for each competitor, the number of competitions after which they led."""

    def __init__(self, until: datetime | None = None) -> None:
        self.last: datetime | None = None
        self.competitions: dict[CompetitorId, int] = {}
        self._until = until
        self._begun: list[tuple[datetime, Leading]] = []

    def lead(self, at: datetime, leaders: Leading, competitions: int) -> None:
        """Notes that these lead from `at` on, which is later than in the call before. `competitions`: the number of
        competitions that gave their first points then."""
        if self._until is not None and at > self._until:
            return
        self.last = at
        if leaders != (self._begun[-1][1] if self._begun else ()):
            self._begun.append((at, leaders))
        for one in leaders:
            self.competitions[one] = self.competitions.get(one, 0) + competitions

    def __len__(self) -> int:
        return len(self._begun)

    def run(self, start: int, stop: int) -> list[Reign]:
        """The reigns from number `start`, counted from 0, to before `stop`, in order of time; fewer if there are no
        more."""
        begun = self._begun[start : stop + 1]
        ends = [*[since for since, _ in begun[1:]], None]
        return [Reign(at, end, them) for (at, them), end in zip(begun, ends, strict=False)][: stop - start]

    def __iter__(self) -> Iterator[Reign]:
        return (self.run(number, number + 1)[0] for number in range(len(self)))


class TopRun(Struct, frozen=True):
    since: datetime
    until: datetime


class TimeAtTop(Struct, frozen=True, kw_only=True):
    """A competitor's time at the top, `shared_seconds` of it with others. `days`, `weeks`: the number of days, and of
    Sundays, at whose end they led, in the tournament's zone. `competitions`: the number of competitions after which
    they led. `runs`: how often they reached the top."""

    competitor_id: CompetitorId
    seconds: int
    shared_seconds: int
    days: int
    weeks: int
    competitions: int
    runs: int
    longest: TopRun


class _Runs(Struct, kw_only=True):
    """The runs of one competitor, as they are added up: `time` at the top, alone or not; `shared`: the part of it that
    was not alone."""

    competitor_id: CompetitorId
    zone: tzinfo
    time: timedelta = timedelta()
    shared: timedelta = timedelta()
    days: int = 0
    weeks: int = 0
    runs: int = 0
    longest: TopRun

    def add(self, since: datetime, until: datetime) -> None:
        """Adds a run from `since` until just before `until`."""
        self.runs += 1
        self.time += until - since
        began, ended = _day(since, self.zone), _day(until, self.zone)
        self.days += ended - began
        self.weeks += ended // _WEEK_DAYS - began // _WEEK_DAYS
        if until - since > self.longest.until - self.longest.since:
            self.longest = TopRun(since, until)

    def told(self, competitions: int) -> TimeAtTop:
        return TimeAtTop(
            competitor_id=self.competitor_id,
            seconds=int(self.time.total_seconds()),
            shared_seconds=int(self.shared.total_seconds()),
            days=self.days,
            weeks=self.weeks,
            competitions=competitions,
            runs=self.runs,
            longest=self.longest,
        )


def _day(moment: datetime, zone: tzinfo) -> int:
    """The number of days that have ended by then, counted from a Monday."""
    return in_zone(moment, zone).toordinal() - 1


def times_at_top(
    reigns: Reigns, end: datetime, most: int, zone: tzinfo
) -> Generator[None, None, tuple[int, list[TimeAtTop]]]:
    """The number of competitors that led, and the times of up to `most` of them, the longest first. Counts the time up
    to and including `end`, and days in `zone`. Pauses for other work."""
    found: dict[CompetitorId, _Runs] = {}
    leading: dict[CompetitorId, datetime] = {}
    end = min(end, _LAST - _MICROSECOND) + _MICROSECOND
    for number, reign in enumerate(reigns, start=1):
        for one in [*leading]:
            if one not in reign.competitors:
                found[one].add(leading.pop(one), reign.since)
        for one in reign.competitors:
            leading.setdefault(one, reign.since)
            if one not in found:
                found[one] = _Runs(competitor_id=one, zone=zone, longest=TopRun(reign.since, reign.since))
            if len(reign.competitors) > 1:
                found[one].shared += (reign.until or end) - reign.since
        if number % _REIGNS_AT_ONCE == 0:
            yield
    for one, since in leading.items():
        found[one].add(since, end)
    longest: list[_Runs] = []
    rest = iter(found.values())
    while some := [*islice(rest, _REIGNS_AT_ONCE)]:
        longest = nsmallest(most, [*longest, *some], key=lambda runs: (-runs.time, runs.competitor_id))
        yield
    return len(found), [runs.told(reigns.competitions[runs.competitor_id]) for runs in longest]


class ClockDifference(Struct, frozen=True):
    """The leaders by each clock, while they differ: from `since` until just before `until`; null: to the end."""

    since: datetime
    until: datetime | None
    log: Leading
    world: Leading


def differences(by_log: Reigns, by_world: Reigns) -> Generator[None, None, list[ClockDifference]]:
    """The differences between the clocks from the first published leader on, in order of time. Pauses for other
    work."""
    changes = merge(
        ((reign.since, 0, reign.competitors) for reign in by_log),
        ((reign.since, 1, reign.competitors) for reign in by_world),
    )
    found: list[ClockDifference] = []
    leading: list[Leading] = [(), ()]
    since: datetime | None = None
    for number, (at, its) in enumerate(groupby(changes, key=lambda change: change[0]), start=1):
        if since is not None and leading[0] != leading[1]:
            found.append(ClockDifference(since, at, *leading))
        for _, clock, leaders in its:
            leading[clock] = leaders
            if clock == 0 or since is not None:
                since = at
        if number % _REIGNS_AT_ONCE == 0:
            yield
    if since is not None and leading[0] != leading[1]:
        found.append(ClockDifference(since, None, *leading))
    return found


def _leaders(order: OrderedLines, unity: Unity) -> Leading:
    first = order.run(0, 1)
    if not first:
        return ()
    [(line, competitor_id)] = first
    if unity.notation.shown(unity.totals.get(competitor_id, 0)) is None:
        return ()
    _, stop = order.level(line)
    return () if stop > SHARED_MAX else tuple(sorted(CompetitorId(one) for one in order.competitors(0, stop)))


# ── The log's clock ─────────────────────────────────────────────────────────────────────────────────────


class PublishedLeaders:
    """Use `follow` for all events of the log, then `finish`; `reigns` is the result."""

    def __init__(
        self, tournament_id: TournamentId, ranking_id: RankingId, unity_id: UnityId, until: datetime | None
    ) -> None:
        self.reigns = Reigns(until)
        self._tournament_id, self._ranking_id, self._unity_id = tournament_id, ranking_id, unity_id
        self._board = Board()  # only this ranking
        self._order: OrderedLines | None = None
        self._at: datetime | None = None
        self._has_points = False
        self._competitions: set[CompetitionId] = set()
        # Since the last moment:
        self._may_differ = False
        self._changed: dict[CompetitorId, int | None] = {}
        self._new_competitions = 0

    def follow(self, events: Iterable[Recorded]) -> Generator[None, None, None]:
        """Takes the next events, with pauses for other work. Raises LogUnreadable."""
        for recorded in events:
            if getattr(recorded.event, "ranking_id", None) == self._ranking_id:
                if recorded.recorded_at != self._at:
                    yield from self.finish()
                    self._at = recorded.recorded_at
                self._note(recorded.event)
                yield
                for _ in folding(self._tournament_id, self._board, [recorded]):
                    yield
            yield

    def finish(self) -> Generator[None, None, None]:
        """Completes the current moment."""
        if self._at is None or not (self._may_differ and self._has_points):
            return
        ranking = self._board.rankings[self._ranking_id]
        unity = ranking.unities[self._unity_id]
        if self._order is None or self._order.outdated:
            self._order = yield from OrderedLines.in_steps(ranking.participants, unity.totals, unity.sort)
        else:
            yield from self._order.replace_all(self._changed.keys(), self._changed.values())
        self.reigns.lead(self._at, _leaders(self._order, unity), self._new_competitions)
        self._may_differ, self._changed, self._new_competitions = False, {}, 0

    def _note(self, event: Event) -> None:
        """Notes what `event` will change. Call it before `event` is folded."""
        if isinstance(event, Points):
            touched = [line.competitor_id for line in changed_by(event) if line.unity_id == self._unity_id]
            if touched:
                self._has_points = True
                self._touch(touched)
                if event.competition_id is not None and event.competition_id not in self._competitions:
                    self._competitions.add(event.competition_id)
                    self._new_competitions += 1
        elif (moved := moved_by(self._board, event)) is not None and moved.unity_id in (None, self._unity_id):
            if moved.competitors is None:
                self._may_differ, self._order = True, None
            else:
                self._touch(moved.competitors)

    def _touch(self, competitor_ids: Iterable[CompetitorId]) -> None:
        self._may_differ = True
        if self._order is not None:
            for one in competitor_ids:
                if one not in self._changed:
                    self._changed[one] = self._order.line(one)


# ── The world's clock ───────────────────────────────────────────────────────────────────────────────────


class TrueLeaders:
    """Use `follow` for all events of the log up to the one that `board` shows, then `finish`; `reigns` is the result.
    Takes ownership of the board. `lines`: the number of lines followed. `until`: the time up to which points expire;
    None: `now`."""

    def __init__(
        self,
        board: Board,
        ranking_id: RankingId,
        unity_id: UnityId,
        until: datetime | None,
        now: datetime | None = None,
    ) -> None:
        self.reigns = Reigns(until)
        self._board, self._ranking_id, self._unity_id = board, ranking_id, unity_id
        self._rule = rule_of(board, ranking_id)
        self._expired_until = self._rule.by(until or now or _EPOCH)
        # For each line: its time, competitor, amount, competition (0: none), and place. A line that expires is followed
        # by another with the time at which it does.
        self._times, self._competitors, self._amounts, self._causes = array("q"), array("q"), array("q"), array("q")
        self._ends, self._places = array("b"), array("q")
        self._results: dict[CompetitorId, PassingResults] = {}

    @property
    def lines(self) -> int:
        return len(self._times)

    def follow(self, recorded: Recorded) -> None:
        """Takes the next event."""
        for line in self._rule.of(recorded):
            if line.delta.unity_id == self._unity_id:
                assert isinstance(recorded.event, Points)
                place = origin(recorded.sequence, recorded.event)
                self._put(line.took_place, line.delta, recorded.event.competition_id, place)
                if line.expires_at is not None and line.expires_at <= self._expired_until:
                    self._put(line.expires_at, line.delta, None, place, ends=True)

    def _put(
        self, at: datetime, line: Delta, competition_id: CompetitionId | None, place: Sequence, *, ends: bool = False
    ) -> None:
        self._times.append((at - _EPOCH) // _MICROSECOND)
        self._competitors.append(line.competitor_id)
        self._amounts.append(line.amount)
        self._causes.append(competition_id or 0)
        self._ends.append(ends)
        self._places.append(place)

    def finish(self) -> Generator[None, None, None]:
        """Call it after all events."""
        ranking = self._board.rankings[self._ranking_id]
        unity = ranking.unities[self._unity_id]
        unity.totals = Totals(ranking.participants)
        order = yield from OrderedLines.in_steps(ranking.participants, unity.totals, unity.sort)
        competitions: set[int] = {0}
        for at, numbers in groupby((yield from self._in_time()), key=self._times.__getitem__):
            before = len(competitions)
            for number in numbers:
                competitor_id = CompetitorId(self._competitors[number])
                line = order.line(competitor_id)
                unity.totals.add(competitor_id, self._change(unity, competitor_id, number))
                order.replace(line, order.line(competitor_id))
                competitions.add(self._causes[number])
                yield
            self.reigns.lead(_EPOCH + at * _MICROSECOND, _leaders(order, unity), len(competitions) - before)

    def _change(self, unity: Unity, competitor_id: CompetitorId, number: int) -> int:
        """By how much the line changes the competitor's total. The last result is the last one, in the order of the
        log, of those that have taken place."""
        amount, ends = self._amounts[number], self._ends[number]
        if not unity.counts_results:
            return -amount if ends else amount
        results = self._results.get(competitor_id)
        if results is None:
            results = self._results[competitor_id] = PassingResults(unity.counts, unity.sort)
        if ends:
            results.go(number - 1)
        else:
            results.come(number, self._places[number], amount)
        return results.mark() - unity.totals.get(competitor_id)

    def _in_time(self) -> Generator[None, None, Iterator[int]]:
        """The numbers of the lines in order of time."""
        numbers, runs = iter(range(len(self._times))), []
        while run := sorted(islice(numbers, _LINES_AT_ONCE), key=self._times.__getitem__):
            runs.append(array("q", run))
            yield
        return merge(*runs, key=self._times.__getitem__)
