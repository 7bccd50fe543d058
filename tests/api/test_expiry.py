"""Points that expire, with the clock of the log in the test's hands: once, and never late for an answer.

`Naive` says what counts from the documentation alone: a line counts if and only if its event is not undone, its
competition is not voided, its competitor is not struck there, and it has not expired. `tests/what_counts` holds all
doors against it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from typing import Any, Final

import asyncpg
import pytest
from asyncpg import QueryCanceledError
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field

from api.desk.desk import Desk
from api.desk.evidence import PointsAtAnotherDate, PointsDue
from api.web.words import ENGLISH
from engine.database.pool import Database
from engine.domain import commands, events, expirations
from engine.domain.awards import Award, Scoring
from engine.domain.commands import AddPoints, Command
from engine.domain.errors import Conflict, DatabaseUnavailable, QueueFull
from engine.domain.events import Criterion, Delta, Event, Total
from engine.domain.expirations import Expiration, Redating
from engine.domain.expiry import LASTS_PATTERN, ExpiresOn, duration
from engine.domain.terms import (
    OPERATOR,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Sequence,
    Sort,
    TournamentId,
    UnityId,
)
from engine.log import appending, heads
from engine.log.appending import Block, Request
from engine.process.time_slices import in_time_slices
from projections.answers.classification import ClassificationQuestion
from projections.answers.view import ask, view_of
from projections.live import due, pool
from projections.live.given_results import read_results
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.tables import tables
from projections.tables.worker import Worker
from projections.verification.erasures import erase_in_log
from projections.verification.findings import Difference
from tests.api.asking import refused
from tests.api.public_boards import Board, change
from tests.bounds import Bounds
from tests.calls import Calls, held_after, noted_calls
from tests.desks import (
    HOLD_HEAD,
    desk_at,
    desks_at,
    holding,
    is_idle,
    record,
    recorded,
    submit,
    turns_at_calls,
    until,
    waiting_for_locks,
)
from tests.projections.verified import verified
from tests.service import Answer, Season, Service, deltas, listed
from tests.told_clock import ToldClock, told_clock
from tests.tournaments import open_new_tournament

Totals = dict[tuple[UnityId, CompetitorId], int]

ANN, BOB, CID = CompetitorId(101), CompetitorId(102), CompetitorId(103)
RANKING, OTHER = RankingId(201), RankingId(202)
HOURLY, DAILY, WEEKLY, EVER = UnityId(301), UnityId(302), UnityId(303), UnityId(304)
PEAK, LEAST, LATEST = UnityId(305), UnityId(306), UnityId(307)
LASTS = {
    HOURLY: timedelta(minutes=90),
    DAILY: timedelta(days=3),
    WEEKLY: timedelta(weeks=2),
    PEAK: timedelta(days=2),
    LEAST: timedelta(hours=6),
    LATEST: timedelta(hours=20),
}
DAYS = {DAILY, PEAK}
BOUNDARIES = {one: timedelta(days=1) if one in DAYS else timedelta(minutes=1) for one in LASTS}
BOUNDARIES[WEEKLY] = timedelta(weeks=1)
MONDAY = datetime(2024, 1, 1, tzinfo=UTC)


class Added(Struct):
    """An event that added points, as the documentation speaks of it."""

    recorded_at: datetime
    competition: CompetitionId | None
    lines: list[tuple[CompetitorId, UnityId, int]]
    undone: bool = False


class Naive(Struct):
    """What has happened, and what counts."""

    added: dict[Sequence, Added] = field(default_factory=dict)
    dates: dict[CompetitionId, datetime | None] = field(default_factory=dict)
    struck: set[tuple[CompetitionId, CompetitorId]] = field(default_factory=set)

    def took_place(self, one: Added) -> datetime:
        date = None if one.competition is None else self.dates[one.competition]
        return one.recorded_at if date is None else date

    def counting(self, now: datetime) -> Iterator[tuple[CompetitionId | None, CompetitorId, UnityId, int]]:
        """The lines that count, in the order of the log."""
        for one in self.added.values():
            if one.undone:
                continue
            for competitor, unity, amount in one.lines:
                if one.competition is not None and (one.competition, competitor) in self.struck:
                    continue
                if unity in LASTS and now - (now - MONDAY) % BOUNDARIES[unity] >= self.took_place(one) + LASTS[unity]:
                    continue
                yield one.competition, competitor, unity, amount

    def totals(self, now: datetime) -> Totals:
        """Those that are not 0, and those that there are of results."""
        found: Totals = {}
        for _, competitor, unity, amount in self.counting(now):
            named = unity, competitor
            if unity == LATEST or (unity in (PEAK, LEAST) and named not in found):
                found[named] = amount
            elif unity in (PEAK, LEAST):
                found[named] = max(amount, found[named]) if unity == PEAK else min(amount, found[named])
            else:
                found[named] = found.get(named, 0) + amount
        return {named: total for named, total in found.items() if total or named[0] in (PEAK, LEAST, LATEST)}

    def best_of(self, number: int, wanted: UnityId, now: datetime) -> dict[CompetitorId, int]:
        """By competitor: the points without a competition, and the best sums in competitions."""
        sums: dict[CompetitorId, dict[CompetitionId | None, int]] = {one: {} for one in (ANN, BOB, CID)}
        for competition, competitor, unity, amount in self.counting(now):
            if unity == wanted:
                sums[competitor][competition] = sums[competitor].get(competition, 0) + amount
        return {competitor: its.pop(None, 0) + sum(sorted(its.values())[-number:]) for competitor, its in sums.items()}


class World:
    """A tournament with points that expire, two desks that serve it, and what there should be."""

    def __init__(self, desks: list[Desk], tournament_id: TournamentId, clock: ToldClock) -> None:
        self.desks, self.tournament_id, self.clock = desks, tournament_id, clock
        self.naive = Naive()

    async def do(self, desk: int, command: Command) -> Any:
        return await submit(self.desks[desk], self.tournament_id, command)

    @classmethod
    async def begun(cls, desks: list[Desk], database: Database, clock: ToldClock) -> "World":
        world = cls(desks, await open_new_tournament(database, actor=OPERATOR), clock)
        await world._begin()
        return world

    async def _begin(self) -> None:
        for one in (ANN, BOB, CID):
            await self.do(0, commands.RegisterCompetitor(competitor_id=one, name=f"Number {one}"))
        for ranking, main, lasts, on in (
            (RANKING, HOURLY, "PT1H30M", ExpiresOn.MINUTE),
            (OTHER, WEEKLY, "P2W", ExpiresOn.WEEK),
        ):
            created = commands.CreateRanking(
                ranking_id=ranking,
                main_unity_id=main,
                name=f"Ranking {ranking}",
                main_unity_name="points",
                participants=(ANN, BOB, CID),
                main_unity_lasts=lasts,
                main_unity_expires_on=on,
            )
            await self.do(0, created)
        daily = commands.AddUnity(
            ranking_id=RANKING, unity_id=DAILY, name="daily", lasts="P3D", expires_on=ExpiresOn.DAY
        )
        await self.do(0, daily)
        await self.do(0, commands.AddUnity(ranking_id=RANKING, unity_id=EVER, name="ever"))
        for unity, lasts, on, counts, sort in (
            (PEAK, "P2D", ExpiresOn.DAY, Counts.BEST, Sort.DESC),
            (LEAST, "PT6H", ExpiresOn.MINUTE, Counts.BEST, Sort.ASC),
            (LATEST, "PT20H", ExpiresOn.MINUTE, Counts.LAST, Sort.DESC),
        ):
            of_results = commands.AddUnity(
                ranking_id=RANKING,
                unity_id=unity,
                name=f"results {unity}",
                lasts=lasts,
                expires_on=on,
                counts=counts,
                sort=sort,
            )
            await self.do(0, of_results)
        for ranking, unity, first in (RANKING, DAILY, PEAK), (OTHER, WEEKLY, WEEKLY):
            criteria = Criterion(unity_id=unity, best=2), Criterion(unity_id=first, first=True)
            await self.do(0, commands.DeclareClassification(ranking_id=ranking, criteria=criteria))

    async def add(
        self, desk: int, competition: CompetitionId | None, *lines: tuple[CompetitorId, UnityId, int]
    ) -> None:
        ranking = OTHER if lines[0][1] == WEEKLY else RANKING
        deltas = tuple([Delta(*line) for line in lines])
        added = await self.do(desk, AddPoints(ranking_id=ranking, deltas=deltas, competition_id=competition))
        self.naive.added[added.sequence] = Added(self.clock.now, competition, list(lines))

    async def totals(self, desk: int) -> dict[tuple[UnityId, CompetitorId], int]:
        """What a read shows."""
        async with self.desks[desk].live_pool.pinned(self.tournament_id) as live:
            await self.desks[desk].live_pool.make_current(live, read_at=float("inf"))
            return totals_of(live.board)

    async def events(self) -> list[events.Event]:
        return await recorded(self.desks[0].database, self.tournament_id)


def totals_of(board: Any) -> dict[tuple[UnityId, CompetitorId], int]:
    return {
        (unity_id, competitor_id): total
        for ranking in board.rankings.values()
        for unity_id, unity in ranking.unities.items()
        for competitor_id, kept in unity.totals.items()
        if kept and (total := unity.notation.shown(kept)) is not None
    }


@pytest.fixture
async def clock(owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch) -> ToldClock:
    return await told_clock(owner, monkeypatch)


@asynccontextmanager
async def world_at(dsn: str, database: Database, clock: ToldClock) -> AsyncIterator[World]:
    async with desks_at(dsn) as desks:
        yield await World.begun(desks, database, clock)


async def test_points_expire_once_however_many_look_and_add_at_the_boundary(
    dsn: str, database: Database, clock: ToldClock
) -> None:
    async with world_at(dsn, database, clock) as world:
        for _ in range(4):
            await asyncio.gather(*(world.add(desk, None, (who, HOURLY, 1)) for desk in (0, 1) for who in (ANN, BOB)))
            await clock.pass_by(minutes=30)
        for _ in range(6):
            await clock.pass_by(minutes=20)
            adds = [world.add(desk, None, (CID, HOURLY, 1)) for desk in (0, 1)]
            shown, *_ = await asyncio.gather(*(world.totals(desk) for desk in (0, 1, 0, 1)), *adds)
            assert shown.get((HOURLY, ANN), 0) == world.naive.totals(clock.now).get((HOURLY, ANN), 0)
        expired = [event for event in await world.events() if isinstance(event, events.PointsExpired)]
    taken = sum(-delta.amount for event in expired for delta in event.deltas if delta.competitor_id == ANN)
    assert taken == 8
    assert len({event.boundary for event in expired}) == len(expired)


async def test_a_result_that_has_expired_when_it_is_added_shares_its_block_with_nothing(
    dsn: str, database: Database, clock: ToldClock, owner: asyncpg.Connection
) -> None:
    """Its expiry says a total, which is valid only where it was judged."""
    long_ago = clock.now - timedelta(days=3)
    match = CompetitionId(501)
    async with world_at(dsn, database, clock) as world:
        await world.do(0, commands.AddCompetition(competition_id=match, group_id=1, started_at=long_ago))
        await world.add(0, match, (BOB, PEAK, 1))  # for which the results are read
        adding: list[asyncio.Task[None]] = []
        async with holding(dsn, HOLD_HEAD, world.tournament_id):
            for competition, unity in (None, EVER), (None, EVER), (match, PEAK):
                adding.append(asyncio.create_task(world.add(0, competition, (ANN, unity, 1))))
                await until(lambda: len(world.desks[0]._under_way) == len(adding))
            await until(lambda: waiting_for_locks(owner, "append_block"))
        await asyncio.gather(*adding)
        *_, ordinary, result = world.naive.added
    ends = "SELECT last_sequence FROM block WHERE tournament_id = $1 ORDER BY last_sequence DESC LIMIT 2"
    assert [end for (end,) in await owner.fetch(ends, world.tournament_id)] == [result + 1, ordinary]


async def test_a_tournament_without_expiry_is_read_beside_one_whose_points_expire(
    dsn: str, database: Database, clock: ToldClock
) -> None:
    async with world_at(dsn, database, clock) as world:
        live_pool = world.desks[0].live_pool
        async with live_pool.pinned(await open_new_tournament(database, actor=OPERATOR)) as live:
            await live_pool.make_current(live, read_at=float("inf"))
            assert not live.board.rankings


async def test_others_get_their_turns_however_many_points_expire(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world_at(dsn, database, clock) as world:
        await asyncio.gather(*(world.add(0, None, (who, one, 2)) for who in (ANN, BOB) for one in (HOURLY, LEAST) * 20))
        await clock.pass_by(hours=24)
        async with turns_at_calls(monkeypatch, Expiration, "take") as turns:
            assert not any((await world.totals(0)).values())
    assert len(turns) == 80
    assert all(later > earlier + 1 for earlier, later in pairwise(turns))


async def test_a_clock_that_is_put_back_lets_nothing_expire_early_or_twice(
    dsn: str, database: Database, clock: ToldClock
) -> None:
    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5))
        await clock.pass_by(minutes=60)
        await world.totals(1)  # nothing is due, and it knows that
        await clock.pass_by(minutes=-30)
        await world.add(1, None, (BOB, HOURLY, 3))
        await clock.pass_by(minutes=61)
        assert await world.totals(0) == {(HOURLY, BOB): 3}
        await clock.pass_by(hours=-24)
        assert await world.totals(1) == {(HOURLY, BOB): 3}
        await world.do(1, AddPoints(ranking_id=RANKING, deltas=(Delta(CID, HOURLY, 2),)))  # as of the log's time
        assert await world.totals(0) == {(HOURLY, BOB): 3, (HOURLY, CID): 2}
        expired = [event for event in await world.events() if isinstance(event, events.PointsExpired)]
    assert [event.deltas for event in expired] == [(Delta(ANN, HOURLY, -5),)]


async def test_waiting_for_a_long_expiry_ends_in_an_error_and_holds_up_no_other(
    dsn: str,
    owner: asyncpg.Connection,
    database: Database,
    clock: ToldClock,
    monkeypatch: pytest.MonkeyPatch,
    bounds: Bounds,
) -> None:
    goes_on, look_up = asyncio.Event(), PointsDue.look_up
    async with desks_at(dsn) as desks:
        slow, other = [await World.begun(desks, database, clock) for _ in range(2)]
        for world in slow, other:
            await world.add(0, None, (ANN, HOURLY, 5))

        async def held(points: PointsDue, live_pool: LivePool) -> None:
            if points._live.tournament_id == slow.tournament_id:
                await goes_on.wait()
            await look_up(points, live_pool)

        monkeypatch.setattr(PointsDue, "look_up", held)
        bounds(EXPIRY_SECONDS_MAX=0.05)
        await clock.pass_by(hours=2)
        with pytest.raises(DatabaseUnavailable):
            await slow.totals(0)

        async def other_has_expired() -> bool:
            expired = "SELECT EXISTS (SELECT FROM event WHERE tournament_id = $1 AND kind = 'PointsExpired')"
            return bool(await owner.fetchval(expired, other.tournament_id))

        await until(other_has_expired)
        goes_on.set()
        bounds(EXPIRY_SECONDS_MAX=15.0)
        assert await slow.totals(0) == {}


async def test_an_expiry_that_takes_longer_than_to_the_next_boundary_reads_only_what_is_due_since(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    looks, look_up = list[int](), PointsDue.look_up

    async def slowly(points: PointsDue, live_pool: LivePool) -> None:
        before = len(taken)
        await look_up(points, live_pool)
        looks.append(len(taken) - before)
        if looks[-1]:
            await clock.pass_by(seconds=61)

    async with world_at(dsn, database, clock) as world:
        for minutes in (1, 1, 3):
            await world.add(0, None, (ANN, HOURLY, 5), (BOB, LATEST, 3))
            await clock.pass_by(minutes=minutes)
        await clock.pass_by(minutes=86)
        assert await world.totals(0) == world.naive.totals(clock.now)
        monkeypatch.setattr(PointsDue, "look_up", slowly)
        taken = calls(Expiration, "take")
        await clock.pass_by(minutes=1)
        assert await world.totals(0) == world.naive.totals(clock.now)
        assert len(taken) == len({sequence for _, sequence, *_ in taken}) == sum(looks)
        assert looks[-1] == 0


async def test_a_clock_that_is_put_back_while_points_are_summed_lets_nothing_expire_early_or_twice(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look_up = list[PointsDue](), PointsDue.look_up

    async def putting_back(points: PointsDue, live_pool: LivePool) -> None:
        await look_up(points, live_pool)
        looks.append(points)
        if len(looks) == 1:
            await clock.pass_by(minutes=-30)

    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5))
        await clock.pass_by(minutes=31)
        await world.add(0, None, (BOB, HOURLY, 3))
        await clock.pass_by(minutes=61)
        monkeypatch.setattr(PointsDue, "look_up", putting_back)
        assert await world.totals(0) == {(HOURLY, ANN): 5, (HOURLY, BOB): 3}
        assert len(looks) <= 4
        await clock.pass_by(minutes=31)
        assert await world.totals(0) == {(HOURLY, BOB): 3}
        await clock.pass_by(minutes=31)
        assert await world.totals(1) == {}
        expired = [event for event in await world.events() if isinstance(event, events.PointsExpired)]
        assert [event.deltas for event in expired] == [(Delta(ANN, HOURLY, -5),), (Delta(BOB, HOURLY, -3),)]
        assert await differences(database) == []


async def test_an_expiry_is_not_refused_for_having_waited(
    dsn: str, database: Database, clock: ToldClock, calls: Calls, bounds: Bounds
) -> None:
    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5))
        looks = calls(PointsDue, "look_up")
        bounds(WAITED_SECONDS_MAX=-1.0, BLOCK_REQUESTS_MAX=4)  # everybody has waited too long
        await clock.pass_by(hours=2)
        adds = [world.add(0, None, (BOB, HOURLY, 1)) for _ in range(20)]
        outcomes = await asyncio.gather(*adds, return_exceptions=True)
        assert None in outcomes
        assert {type(one) for one in outcomes if one is not None} == {QueueFull}
        assert len(looks) == 1
        assert await world.totals(0) == {(HOURLY, BOB): outcomes.count(None)}


async def differences(database: Database) -> list[Difference]:
    """What `verify` finds, apart from the function that has been given another clock."""
    found = (await verified(database)).differences
    return [difference for difference in found if difference.field != "function.append_block"]


def expiry(*lines: tuple[CompetitorId, UnityId, int], minutes: int = 0, ranking: RankingId = RANKING) -> Event:
    """At a boundary this many minutes after the beginning of the forgeries' hour."""
    boundary = MONDAY + timedelta(hours=12, minutes=minutes)
    deltas = tuple([Delta(*line) for line in lines if line[1] != PEAK])
    totals = tuple([Total(who, unity, None) for who, unity, _ in lines if unity == PEAK])
    return events.PointsExpired(ranking_id=ranking, boundary=boundary, deltas=deltas, totals=totals)


ANNS: Final = (ANN, HOURLY, -5)
BACK: Final = (ANN, HOURLY, 5)
REDATED: Final = events.CompetitionChanged(competition_id=CompetitionId(401), started_at=MONDAY - timedelta(days=9))
FORGED_EXPIRIES: Final[dict[str, tuple[list[list[Event]], set[tuple[int, str]]]]] = {
    "the right one": ([[expiry(ANNS)]], set()),
    "taken back by its opposite": (
        [[expiry(ANNS)], [expiry(BACK)], [expiry(ANNS)]],
        {(1, "event.deltas"), (2, "event.deltas")},
    ),
    "of an earlier boundary": ([[expiry(ANNS, minutes=-1)]], {(0, "event.boundary")}),
    "of the end of time": (
        [[events.PointsExpired(ranking_id=RANKING, boundary=datetime.max.replace(tzinfo=UTC), deltas=(Delta(*ANNS),))]],
        {(0, "event.boundary")},
    ),
    "without a line": ([[expiry(ANNS)], [expiry()]], {(1, "event.body")}),
    "with another line": ([[expiry(ANNS, (BOB, HOURLY, 0))]], {(0, "event.deltas")}),
    "in two lines": ([[expiry((ANN, HOURLY, -7), (ANN, HOURLY, 2))]], {(0, "event.deltas")}),
    "in two events": (
        [[expiry((ANN, HOURLY, -4)), expiry((ANN, HOURLY, -1))]],
        {(0, "event.deltas"), (1, "event.deltas")},
    ),
    "with a total that does not expire": ([[expiry(ANNS, (BOB, PEAK, 0))]], {(0, "event.deltas")}),
    "of another ranking": (
        [[expiry(ANNS)], [expiry((BOB, WEEKLY, -1), ranking=OTHER)]],
        {(1, "event.deltas")},
    ),
    "after what was recorded since": (
        [[events.RankingHidden(ranking_id=OTHER)], [expiry(ANNS)]],
        {(1, "event.deltas")},
    ),
    "because of something else": (
        [[events.RankingHidden(ranking_id=OTHER), expiry(ANNS)]],
        {(1, "event.deltas")},
    ),
    "before something else": (
        [[expiry(ANNS), events.RankingHidden(ranking_id=OTHER)]],
        {(0, "event.kind")},
    ),
    "with a date": ([[expiry(ANNS)], [REDATED, expiry((ANN, EVER, -3))]], {(2, "event.body"), (2, "event.deltas")}),
    "with a date, of other points": (
        [[expiry(ANNS)], [REDATED, expiry((BOB, DAILY, -3))]],
        {(2, "event.deltas")},
    ),
    "with a date, of these points": ([[expiry(ANNS)], [REDATED, expiry((BOB, DAILY, -2))]], set()),
    "left out, as a date is changed": ([[expiry(ANNS)], [REDATED]], {(1, "event.deltas")}),
    "left out, and back by another date": (
        [[expiry(ANNS)], [REDATED], [events.CompetitionChanged(competition_id=CompetitionId(401), started_at=None)]],
        {(1, "event.deltas"), (2, "event.deltas")},
    ),
    "with a reopening, though nothing is due": (
        [
            [expiry(ANNS)],
            [events.RankingClosed(ranking_id=RANKING)],
            [events.RankingReopened(ranking_id=RANKING), expiry((BOB, DAILY, -2))],
        ],
        {(3, "event.deltas")},
    ),
}
"""What is recorded after points were due, block by block; and what `verify` names: which of these events, and which
field."""


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("blocks", "expected"), FORGED_EXPIRIES.values(), ids=FORGED_EXPIRIES.keys())
async def test_verify_names_each_expiry_that_no_request_could_have_caused(
    dsn: str,
    database: Database,
    owner: asyncpg.Connection,
    clock: ToldClock,
    blocks: list[list[Event]],
    expected: set[tuple[int, str]],
) -> None:
    async with world_at(dsn, database, clock) as world:
        await clock.set(MONDAY + timedelta(hours=10, minutes=30))
        await world.add(0, None, (ANN, HOURLY, 5))
        await world.do(0, commands.AddCompetition(competition_id=CompetitionId(401), group_id=1))
        await world.add(0, CompetitionId(401), (BOB, DAILY, 2), (BOB, EVER, 3))
    first = len(await recorded(database, world.tournament_id))
    await clock.set(MONDAY + timedelta(hours=12))
    for block in blocks:
        await record(owner, world.tournament_id, *block)
    found = {(d.sequence, d.field) for d in await differences(database) if d.sequence is not None}
    assert found == {(first + 1 + number, field) for number, field in expected}


async def test_an_erasure_by_an_operator_hides_no_boundary(dsn: str, database: Database, clock: ToldClock) -> None:
    """It is appended to a tournament that is stopped, or while another process has not looked at the clock yet."""
    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5), (ANN, PEAK, 7))
        await clock.pass_by(hours=2)
        await erase_in_log(database, world.tournament_id, BOB)
        assert await differences(database) == []
        assert await world.totals(0) == {(PEAK, ANN): 7}
        await clock.pass_by(days=3)
        await erase_in_log(database, world.tournament_id, CID)
    async with desks_at(dsn) as desks:
        world.desks = desks
        assert await world.totals(1) == {}
        assert await differences(database) == []


async def test_setting_an_expiry_aside_lets_the_points_expire_again(
    dsn: str, database: Database, clock: ToldClock
) -> None:
    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5))
        await clock.pass_by(hours=2)
        assert await world.totals(0) == {}
        head = len(await world.events())
        async with database.connection() as connection:
            around = await heads.block_around(connection, world.tournament_id, Sequence(head))
            assert around is not None
            aside = events.EventSetAside(sequence=Sequence(head), digest=around[0].hex())
            block = Block(
                tournament_id=world.tournament_id,
                judged_at=Sequence(head),
                judged_digest=around[0],
                requests=(Request(events=(aside,), actor=OPERATOR),),
            )
            await appending.append(connection, [block], wait=True)
    async with desks_at(dsn) as desks:
        world.desks = desks
        assert await world.totals(0) == {}
        assert await differences(database) == []


async def test_a_reopening_expires_nothing_early_when_the_clock_is_put_back(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world_at(dsn, database, clock) as world:
        await clock.pass_by(minutes=28)
        await world.add(0, None, (ANN, HOURLY, 5))
        await world.do(0, commands.CloseRanking(ranking_id=RANKING))
        await clock.pass_by(minutes=92)
        await world.totals(0)
        with held_after(monkeypatch, PointsAtAnotherDate, "look_up") as held:
            reopening = asyncio.create_task(world.do(0, commands.ReopenRanking(ranking_id=RANKING)))
            await held.has_done.wait()
        await clock.pass_by(minutes=-5)
        await world.add(0, None, (BOB, WEEKLY, 1))
        held.goes_on.set()
        await reopening
        assert await world.totals(0) == {(HOURLY, ANN): 5, (WEEKLY, BOB): 1}
        await clock.pass_by(minutes=4)
        assert await world.totals(0) == {(WEEKLY, BOB): 1}


async def test_an_expiry_is_summed_again_when_its_board_was_replaced(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(BEHIND_EVENTS_MAX=10)
    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, PEAK, 5))

        async def reading(live_pool: LivePool, live: LiveTournament, ranking_ids: list[RankingId]) -> None:
            if not replaced:
                replaced.append(live.board)
                for _ in range(12):
                    await world.add(1, None, (BOB, EVER, 1))
                await Worker(database).catch_up()
                await live_pool.make_current(live)
                assert live.board is not replaced[0]
            await read_results(live_pool, live, ranking_ids)

        replaced: list[object] = []
        monkeypatch.setattr(due, "read_results", reading)
        live_pool = world.desks[0].live_pool
        async with live_pool.pinned(world.tournament_id) as live:
            points = PointsDue(live, clock.now + timedelta(days=4))
            await points.look_up(live_pool)
            assert not points.is_current
            await points.look_up(live_pool)
            assert points.is_current
            found = points.decide()
            points.close()
    (expired,) = found
    assert isinstance(expired, events.PointsExpired)
    assert [(total.competitor_id, total.unity_id, total.total) for total in expired.totals] == [(ANN, PEAK, None)]


async def has_expired(owner: asyncpg.Connection) -> bool:
    return await owner.fetchval("SELECT kind FROM event ORDER BY sequence DESC LIMIT 1") == "PointsExpired"


@pytest.mark.parametrize("desk", [0, 1])
async def test_a_tournament_that_nobody_asks_for_expires_too(
    dsn: str, owner: asyncpg.Connection, database: Database, clock: ToldClock, desk: int
) -> None:
    async with world_at(dsn, database, clock) as world:
        await world.add(desk, None, (ANN, HOURLY, 5))
        await clock.pass_by(minutes=91)
        await until(lambda: has_expired(owner))


async def test_what_is_due_soon_after_the_clock_was_put_back_expires_although_nobody_asks(
    dsn: str, owner: asyncpg.Connection, database: Database, clock: ToldClock
) -> None:
    match, took_place = CompetitionId(501), clock.now - timedelta(minutes=45)
    async with world_at(dsn, database, clock) as world:
        await world.do(0, commands.AddCompetition(competition_id=match, group_id=1, started_at=took_place))
        await world.add(0, None, (ANN, EVER, 1))
        await clock.pass_by(minutes=60)
        assert await world.totals(1) == {(EVER, ANN): 1}
        watched = world.desks[1].live_pool.expiring
        await until(lambda: bool(watched) and all(boundary > clock.now for boundary in watched.values()))
        await clock.pass_by(minutes=-30)
        await world.add(1, match, (BOB, HOURLY, 3))
        await world.totals(1)
        await clock.pass_by(minutes=16)
        await until(lambda: has_expired(owner))


@pytest.mark.parametrize("failures", [[], [QueryCanceledError("statement timeout"), DatabaseUnavailable()]])
async def test_a_tournament_that_no_process_has_in_memory_expires_too(
    dsn: str,
    owner: asyncpg.Connection,
    database: Database,
    clock: ToldClock,
    monkeypatch: pytest.MonkeyPatch,
    bounds: Bounds,
    failures: list[Exception],
) -> None:
    """Also if it cannot be loaded at first."""
    load, left = pool.load, [*failures]

    async def load_at_last(*given: Any) -> LiveTournament:
        if left:
            raise left.pop()
        return await load(*given)

    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5))
    await Worker(database).catch_up()
    await clock.pass_by(minutes=91)
    bounds(EXPIRY_SWEEP_SECONDS=0.01)
    monkeypatch.setattr(pool, "load", load_at_last)
    async with desks_at(dsn):
        await until(lambda: has_expired(owner))
    assert not left


async def test_a_tournament_outside_memory_is_looked_at_once_for_each_boundary(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    load, expiring = pool.load, tables.expiring
    loaded: list[LiveTournament] = []
    sweeps: list[object] = []

    async def noted(*given: Any) -> LiveTournament:
        loaded.append(await load(*given))
        return loaded[-1]

    async def counted(*given: Any) -> Any:
        sweeps.append(found := await expiring(*given))
        return found

    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5))
    await Worker(database).catch_up()
    bounds(EXPIRY_SWEEP_SECONDS=0.01)
    monkeypatch.setattr(pool, "load", noted)
    monkeypatch.setattr(tables, "expiring", counted)
    async with desks_at(dsn, 1) as (desk,):
        await until(lambda: len(sweeps) >= 2)  # the first is over
        desk.live_pool.drop(loaded[0])
        await until(lambda: len(sweeps) >= 5)
        assert len(loaded) == 1
        await clock.pass_by(minutes=60)
        await until(lambda: len(loaded) == 2)


@pytest.mark.parametrize("tournaments", [1, 6])
async def test_watching_many_tournaments_asks_for_the_time_as_often_as_watching_one(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch, bounds: Bounds, tournaments: int
) -> None:
    sleep, rounds = asyncio.sleep, list[int]()
    pause = 0.01625  # nothing else sleeps exactly that long

    async def counting(seconds: float, *given: Any) -> None:
        if seconds == pause:
            rounds.append(len(asked))
        await sleep(seconds, *given)

    bounds(EXPIRY_WATCH_SECONDS=pause)
    async with desks_at(dsn, 1) as (watching,):
        for _ in range(tournaments):
            await World.begun([watching], database, clock)
        with monkeypatch.context() as patched:
            asked = noted_calls(patched, heads, "now")
            patched.setattr(asyncio, "sleep", counting)
            await until(lambda: len(rounds) > 5)
    assert {after - before for before, after in pairwise(rounds)} == {1}


async def test_a_tournament_that_only_expires_takes_no_room_of_one_that_is_asked_for(
    dsn: str, owner: asyncpg.Connection, database: Database, clock: ToldClock, bounds: Bounds
) -> None:
    async with world_at(dsn, database, clock) as world:
        await world.add(0, None, (ANN, HOURLY, 5))
    await Worker(database).catch_up()
    asked_for = await open_new_tournament(database, actor=OPERATOR)
    bounds(EXPIRY_SWEEP_SECONDS=0.01)
    async with desk_at(dsn, live_bytes_max=1) as desk:
        async with desk.live_pool.pinned(asked_for):
            pass
        await clock.pass_by(minutes=91)
        await until(lambda: has_expired(owner))
        await until(lambda: is_idle(desk))
        known = desk.live_pool.pin_known(asked_for)
        assert known is not None
        desk.live_pool.unpin(known)


async def test_what_no_unity_can_be_declared_as_is_refused(season: Season) -> None:
    path = f"{season.path}/unities.json"
    declared = {"lasts": "P52W", "expires_on": "week"}
    unity = (await season.client.post(path, {"name": "rolling", **declared})).json["unity"]
    assert (unity["lasts"], unity["expires_on"]) == ("P52W", "week")
    criteria = f"{season.path}/classification.json"
    for wrong, named in (
        ({"lasts": "P1M", "expires_on": "week"}, "lasts"),
        ({"lasts": "P0D", "expires_on": "week"}, "lasts"),
        ({"lasts": "P\u0665W", "expires_on": "week"}, "lasts"),
        ({"lasts": "P5W\n", "expires_on": "week"}, "lasts"),
        ({"lasts": "P52W"}, "expires_on"),
        ({"expires_on": "day"}, "lasts"),
    ):
        refused(await season.client.post(path, {"name": "other", **wrong}), 422, named)
    for more in ({"best": 19}, {"among": "tied"}, {"first": True}):
        body = json.dumps({"criteria": [{"unity": unity["id"], **more}]}).encode()
        answer = await season.client.put(criteria, body, {"Content-Type": "application/json"})
        assert answer.status == 200, answer.body


async def test_no_row_has_a_lasts_that_is_none_of_sqls(
    season: Season, owner: asyncpg.Connection, database: Database
) -> None:
    await make_rolling(season)
    await Worker(database).catch_up()
    with pytest.raises(asyncpg.DataError):
        await owner.execute("UPDATE unity SET lasts = $1 WHERE lasts IS NOT NULL", "P\u0665W")


async def test_every_duration_lasts_as_long_in_sql(owner: asyncpg.Connection) -> None:
    texts = []

    @given(st.from_regex(LASTS_PATTERN, fullmatch=True))
    def draw(text: str) -> None:
        texts.append(text)

    draw()
    asked = "SELECT text::interval AS lasts FROM unnest($1::text[]) AS t (text)"
    assert [row["lasts"] for row in await owner.fetch(asked, texts)] == [duration(text) for text in texts]


async def make_rolling(season: Season) -> tuple[str, UnityId, UnityId]:
    """A ranking of all whose points last a day: its path, the main unity, and one that counts the best result."""
    form = {"name": "Rolling", "main_unity_name": "points", "participants": listed(season.ids)}
    expiring = {"main_unity_lasts": "P1D", "main_unity_expires_on": "day"}
    made = (await season.client.post("rankings.json", form | expiring)).json["ranking"]
    path = f"rankings/{made['id']}"
    best = {"name": "best", "counts": "best", "lasts": "P1D", "expires_on": "day"}
    peak = (await season.client.post(f"{path}/unities.json", best)).json["unity"]["id"]
    return path, made["unities"][0]["id"], peak


async def test_windows_history_and_explanations_show_what_expired(season: Season, clock: ToldClock) -> None:
    await clock.set(datetime(2100, 1, 1, 12, tzinfo=UTC))
    client, (ann, bob, *_) = season.client, season.ids
    path, unity, peak = await make_rolling(season)
    await client.put(f"{path}/add.json", {"participants_delta": deltas((ann, unity, 5), (ann, peak, 7))})
    await clock.pass_by(days=1)
    await client.put(f"{path}/add.json", {"participants_delta": deltas((bob, unity, 3))})
    window = f"{path}/standings.json?unity={unity}&top=1"

    def first(answer: Answer) -> list[tuple[int, int]]:
        assert answer.status == 200, answer.body
        lines = answer.json["ranking"]["unities"][0]["competitors_ranking"]
        return [(line["competitor_id"], line["total"]) for line in lines][:1]

    assert first(await client.get(window)) == [(ann, 5)]
    await clock.set(datetime(2100, 1, 3, tzinfo=UTC))
    assert first(await client.get(window)) == first(await client.get(f"{path}/standings.json")) == [(bob, 3)]
    window = f"{path}/expiring.json?until=2100-01-03"
    expiring = (await client.get(f"{window}&competitors={ann},{bob}")).json["expiring"]
    assert [tuple(one.values()) for one in expiring["expiring"]] == [
        (ann, 0, 0, None),
        (bob, 3, 3, None),
    ]
    (of_bob,) = (await client.get(f"{path}/expiring.json?until=2100-01-04&top=1")).json["expiring"]["expiring"]
    assert (of_bob["total_then"], of_bob["expires_at"]) == (0, "2100-01-04T00:00:00.000000Z")
    refused(await client.get(f"{path}/expiring.json?top=1"), 400, "until")
    for_ever = (await client.get(f"{season.path}/expiring.json?until=2100-01-04")).json["expiring"]["expiring"]
    assert all((one["total"], None) == (one["total_then"], one["expires_at"]) for one in for_ever)
    history = (await client.get(f"{path}/history.json?unity={unity}")).json["history"]
    assert [(line["delta"], line["reversal"]) for line in history] == [(5, None), (3, None), (-5, "expiry")]

    async def explained(of: int, query: str = "") -> list[tuple[int | None, int | None, str | None, int | None]]:
        told = (await client.get(f"{path}/explain.json?unity={of}&competitor={ann}{query}")).json["explanation"]
        own = [one for one in told["steps"] if one["total"] != 5 or one["delta"] is not None]  # not when others moved
        return [
            (s["delta"], s["result"], s["reversal"], s["total"]) for s in own if s["cause"] in ("points", "reversal")
        ]

    for query in "", "&on=2100-01-03":
        assert await explained(unity, query) == [(5, None, None, 5), (-5, None, "expiry", 0)]
        assert await explained(peak, query) == [(None, 7, None, 7), (None, None, "expiry", None)]


async def test_what_is_to_defend_is_current_although_nothing_happens(
    season: Season, clock: ToldClock, service: Service
) -> None:
    await clock.set(datetime(2100, 1, 1, 12, tzinfo=UTC))
    client, ann = season.client, season.ids[0]
    form = {"name": "Month", "main_unity_name": "points", "participants": listed(season.ids)}
    expiring = {"main_unity_lasts": "P30D", "main_unity_expires_on": "day"}
    made = (await client.post("rankings.json", form | expiring)).json["ranking"]
    line = deltas((ann, made["unities"][0]["id"], 5))
    await client.put(f"rankings/{made['id']}/add.json", {"participants_delta": line})
    await change(client, published="true")
    board, defended = Board(service, client.tournament), []
    for day in 10, 28:
        await clock.set(datetime(2100, 1, day, tzinfo=UTC))
        table = (await board.get(f"table.json?ranking={made['id']}")).json
        defended.append({line["name"]: line["values"][-1] for line in table["lines"]}["Ada"])
    assert defended == ["0", "5"]


async def test_the_public_sees_what_is_to_defend_at_the_public_end(
    season: Season, clock: ToldClock, service: Service
) -> None:
    await clock.set(datetime(2100, 1, 1, 12, tzinfo=UTC))
    client, (ann, bob, *_) = season.client, season.ids
    path, unity, peak = await make_rolling(season)
    await client.put(f"{path}/add.json", {"participants_delta": deltas((ann, unity, 5), (ann, peak, 7))})
    await clock.pass_by(days=1)
    given = await client.put(f"{path}/add.json", {"participants_delta": deltas((bob, unity, 3))})
    await clock.set(datetime(2100, 1, 3, tzinfo=UTC))
    await change(client, published="true")
    board, below = Board(service, client.tournament), f"{path}/expiring.json?until=2100-01-04&top=1"

    async def defended(query: str = "") -> dict[str, str]:
        table = (await board.get(f"table.json?ranking={path.removeprefix('rankings/')}{query}")).json
        names = [column["name"] for column in table["columns"]]
        assert (ENGLISH("to_defend") in names) == (names[0] == "points" and not query.startswith("&at"))
        return {line["name"]: line["values"][-1] for line in table["lines"]}

    before = await defended()
    assert before == {"Ben": "3", "Ada": "0", "Pair": "0"}
    await defended(f"&unity={peak}")
    await defended(f"&at={given.headers['Tallybook-Sequence']}")
    seen = (await board.get(below)).json["expiring"]
    assert (seen["expiring"][0]["total_then"], seen["competitors"][0]["id"]) == (0, bob)
    await change(client, freeze="now")
    given = await client.put(f"{path}/add.json", {"participants_delta": deltas((bob, unity, 3))})
    assert given.json["ranking"]["unities"][0]["competitors_ranking"][0]["total"] == 6
    for day in 3, 6:  # by the second, all has expired
        await clock.set(datetime(2100, 1, day, 1, tzinfo=UTC))
        assert (await board.get(below)).json["expiring"] == seen
        assert await defended() == before
    await change(client, reveal="all")
    assert await defended() == dict.fromkeys(before, "0")


async def test_a_frozen_board_that_ends_with_an_erasure_shows_one_state(
    season: Season, clock: ToldClock, service: Service, clients_tournament: TournamentId
) -> None:
    """An operator's event comes before what is due: in no value of the board has it expired."""
    await clock.set(datetime(2100, 1, 1, 12, tzinfo=UTC))
    client, (ann, bob, *_) = season.client, season.ids
    path, unity, _ = await make_rolling(season)
    criteria = json.dumps([{"unity": unity, "best": 1}])
    assert (await client.put(f"{path}/classification.json", {"criteria": criteria})).status == 200
    other = (await client.post("competitions.json", {"group_id": 1})).json["competition"]["id"]
    for who, points, cause in ((ann, 5, season.competition_id), (ann, 2, other), (bob, 3, other)):
        form = {"participants_delta": deltas((who, unity, points)), "competition_id": cause}
        assert (await client.put(f"{path}/add.json", form)).status == 200
    await clock.pass_by(days=2)
    erased = await erase_in_log(service.database, clients_tournament, CompetitorId(season.ids[2]))
    await change(client, freeze=erased)
    await change(client, published="true")
    board = Board(service, client.tournament)
    lines = (await board.get(f"{path}/standings.json?unity={unity}")).json["standings"]["standings"]
    assert [line["total"] for line in lines] == [7, 3, 0]
    lines = (await board.get(f"{path}/classification.json")).json["classification"]["standings"]
    assert [(line["position"], line["values"][0]) for line in lines] == [(1, 5), (2, 3), (3, 0)]
    table = (await board.get(f"table.json?ranking={path.removeprefix('rankings/')}")).json
    assert table["columns"][-1]["name"] == ENGLISH("to_defend")
    assert [(line["values"][1], line["values"][-1]) for line in table["lines"]] == [("7", "7"), ("3", "3"), ("0", "0")]
    expiring = (await board.get(f"{path}/expiring.json?until=2100-01-02&top=3")).json["expiring"]["expiring"]
    assert [(line["total"], line["total_then"]) for line in expiring] == [(7, 7), (3, 3), (0, 0)]
    expiring = (await board.get(f"{path}/expiring.json?until=2100-01-03&top=3")).json["expiring"]["expiring"]
    assert [(line["total"], line["total_then"]) for line in expiring] == [(7, 0), (3, 0), (0, 0)]


async def best_then(world: World, ranking: RankingId, sequence: int) -> dict[CompetitorId, int | None]:
    """The first values of the classification after this event."""
    question = ClassificationQuestion(ranking_id=ranking, at_sequence=Sequence(sequence))
    async with world.desks[0].live_pool.pinned(world.tournament_id) as live:
        found = await ask(view_of(world.desks[0].database, live), question)
    return {line.competitor_id: line.values[0] for line in found.standings}


async def add_days(world: World) -> None:
    """Three competitions without a date, in which Ann and Bob get points that expire."""
    for number, points in enumerate((5, 4, 3)):
        one = CompetitionId(500 + number)
        await world.do(0, commands.AddCompetition(competition_id=one, group_id=1))
        world.naive.dates[one] = None
        await world.add(0, one, (ANN, DAILY, points), (BOB, DAILY, 2), (ANN, PEAK, points))
        await world.add(0, one, (ANN, WEEKLY, points), (BOB, WEEKLY, 2))


async def test_what_an_operator_erases_after_a_boundary_is_shown_with_what_has_not_expired_yet(
    dsn: str, database: Database, clock: ToldClock
) -> None:
    async with world_at(dsn, database, clock) as world:
        await add_days(world)
        erased = len(await world.events()) + 1
    before = {RANKING: world.naive.best_of(2, DAILY, clock.now), OTHER: world.naive.best_of(2, WEEKLY, clock.now)}
    nothing = {ANN: 0, BOB: 0, CID: 0}
    assert before[RANKING] == {ANN: 9, BOB: 4, CID: 0}
    await clock.pass_by(weeks=9)
    await erase_in_log(database, world.tournament_id, CID)
    await Worker(database).catch_up()
    assert await differences(database) == []
    async with desks_at(dsn) as desks:
        world.desks = desks
        assert await world.totals(0) == {}
        for ranking, values in before.items():
            assert await best_then(world, ranking, erased) == values
            assert await best_then(world, ranking, erased + 2) == nothing
    await Worker(database).catch_up()
    assert await differences(database) == []


async def test_a_moment_between_the_expiries_of_two_rankings_shows_what_each_has_lost_by_then(
    dsn: str, database: Database, clock: ToldClock
) -> None:
    async with world_at(dsn, database, clock) as world:
        await add_days(world)
        before = {RANKING: world.naive.best_of(2, DAILY, clock.now), OTHER: world.naive.best_of(2, WEEKLY, clock.now)}
        added = len(await world.events())
        await clock.pass_by(weeks=9)
        assert await world.totals(0) == {}
        *_, one, other = await world.events()
        assert isinstance(one, events.PointsExpired)
        assert isinstance(other, events.PointsExpired)
        nothing = {ANN: 0, BOB: 0, CID: 0}
        for sequence, expired in (added, []), (added + 1, [one]), (added + 2, [one, other]):
            gone = {event.ranking_id for event in expired}
            for ranking, values in before.items():
                assert await best_then(world, ranking, sequence) == (nothing if ranking in gone else values)


async def test_a_moment_within_a_request_shows_what_the_request_has_changed_by_then(
    dsn: str, database: Database, clock: ToldClock
) -> None:
    """One that adds points too late, that changes a date, and that reopens a ranking: their expiry follows."""
    async with world_at(dsn, database, clock) as world:
        await add_days(world)
        shown = world.naive.best_of(2, DAILY, clock.now)

        async def expiring(command: Command) -> int:
            """The last event of this request before its expiry, which begins with the one of `RANKING`."""
            await world.do(0, command)
            told = await world.events()
            expired = list(takewhile(lambda event: isinstance(event, events.PointsExpired), reversed(told)))
            assert isinstance(expired[-1], events.PointsExpired)
            assert expired[-1].ranking_id == RANKING
            return len(told) - len(expired)

        long_ago = MONDAY - timedelta(weeks=9)
        await world.do(0, commands.AddCompetition(competition_id=CompetitionId(503), group_id=1, started_at=long_ago))
        added = AddPoints(
            ranking_id=RANKING, deltas=(Delta(ANN, DAILY, 9), Delta(BOB, DAILY, 1)), competition_id=CompetitionId(503)
        )
        sequence = await expiring(added)
        assert await best_then(world, RANKING, sequence) == shown | {ANN: 14, BOB: 4}
        assert await best_then(world, RANKING, sequence + 1) == shown
        sequence = await expiring(commands.ChangeCompetition(competition_id=CompetitionId(500), started_at=long_ago))
        assert await best_then(world, RANKING, sequence) == shown
        shown = shown | {ANN: 7}
        assert await best_then(world, RANKING, sequence + 1) == shown
        await world.do(0, commands.CloseRanking(ranking_id=RANKING))
        await clock.pass_by(weeks=9)
        sequence = await expiring(commands.ReopenRanking(ranking_id=RANKING))
        assert await best_then(world, RANKING, sequence) == shown
        assert await best_then(world, RANKING, sequence + 1) == {ANN: 0, BOB: 0, CID: 0}
        assert await differences(database) == []


async def test_others_get_their_turns_however_many_points_expire_with_a_reopening(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world_at(dsn, database, clock) as world:
        await asyncio.gather(*(world.add(0, None, (who, one, 2)) for who in (ANN, BOB) for one in (HOURLY, LEAST) * 20))
        await world.do(0, commands.CloseRanking(ranking_id=RANKING))
        await clock.pass_by(hours=24)
        await world.totals(0)
        async with turns_at_calls(monkeypatch, Expiration, "take") as turns:
            await world.do(0, commands.ReopenRanking(ranking_id=RANKING))
        assert await world.totals(0) == {}
    assert len(turns) == 80
    assert all(later > earlier + 1 for earlier, later in pairwise(turns))


@pytest.mark.parametrize("redated", [False, True])
async def test_a_reopening_expires_what_is_due_whatever_happened_while_that_was_looked_up(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch, redated: bool
) -> None:
    """Another reopening has let it expire, or by another date it is no longer due."""
    async with world_at(dsn, database, clock) as world:
        cause = CompetitionId(500)
        await world.do(0, commands.AddCompetition(competition_id=cause, group_id=1, started_at=clock.now))
        await world.add(0, cause, (ANN, HOURLY, 5), (ANN, LEAST, 7))
        await world.do(0, commands.CloseRanking(ranking_id=RANKING))
        await clock.pass_by(hours=24)
        await world.totals(0)
        with held_after(monkeypatch, PointsAtAnotherDate, "look_up") as held:
            reopening = asyncio.create_task(world.do(0, commands.ReopenRanking(ranking_id=RANKING)))
            await held.has_done.wait()
        if redated:
            await world.do(1, commands.ChangeCompetition(competition_id=cause, started_at=clock.now))
            expected = {(HOURLY, ANN): 5, (LEAST, ANN): 7}
        else:
            await world.do(1, commands.ReopenRanking(ranking_id=RANKING))
            await world.add(1, None, (BOB, HOURLY, 3))
            await world.do(1, commands.CloseRanking(ranking_id=RANKING))
            expected = {(HOURLY, BOB): 3}
        held.goes_on.set()
        await reopening
        assert await world.totals(0) == expected
        assert await differences(database) == []


async def test_others_get_their_turns_however_many_points_expire_with_another_date(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world_at(dsn, database, clock) as world:
        cause = CompetitionId(500)
        await world.do(0, commands.AddCompetition(competition_id=cause, group_id=1))
        await asyncio.gather(*(world.add(0, cause, (who, HOURLY, 2), (who, LEAST, 5)) for who in (ANN, BOB) * 20))
        async with turns_at_calls(monkeypatch, expirations.Redating, "take") as turns:
            await world.do(0, commands.ChangeCompetition(competition_id=cause, started_at=MONDAY - timedelta(days=1)))
        assert await world.totals(0) == {}
    assert len(turns) == 40
    assert all(later > earlier + 1 for earlier, later in pairwise(turns))


@pytest.mark.parametrize("what", ["added", "undone", "struck", "better", "closed"])
async def test_another_date_expires_what_is_due_whatever_happened_while_that_was_looked_up(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with world_at(dsn, database, clock) as world:
        cause, long_ago = CompetitionId(500), MONDAY - timedelta(days=1)
        await world.do(0, commands.AddCompetition(competition_id=cause, group_id=1))
        world.naive.dates[cause] = None
        await world.add(0, cause, (ANN, HOURLY, 5), (ANN, LEAST, 7), (BOB, HOURLY, 4), (BOB, DAILY, 1))
        (given,) = world.naive.added
        with held_after(monkeypatch, PointsAtAnotherDate, "look_up") as held:
            changed = commands.ChangeCompetition(competition_id=cause, started_at=long_ago)
            redating = asyncio.create_task(world.do(0, changed))
            await held.has_done.wait()
        match what:
            case "added":
                await world.add(1, cause, (ANN, HOURLY, 3), (CID, LEAST, 2))
            case "undone":
                await world.do(1, commands.ReversePoints(ranking_id=RANKING, sequence=given))
                world.naive.added[given].undone = True
            case "struck":
                await world.do(1, commands.StrikeCompetitors(competition_id=cause, competitors=(BOB,)))
                world.naive.struck.add((cause, BOB))
            case "better":
                await world.add(1, None, (ANN, LEAST, 6))
            case "closed":
                await world.do(1, commands.CloseRanking(ranking_id=RANKING))
        held.goes_on.set()
        if what == "closed":
            with pytest.raises(Conflict, match="would count differently in closed rankings"):
                await redating
        else:
            await redating
            world.naive.dates[cause] = long_ago
        assert await world.totals(0) == world.naive.totals(clock.now)
        assert await differences(database) == []


async def test_another_date_takes_away_a_scored_result_whatever_was_added_while_that_was_looked_up(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its event changes the total only by naming it: the scoring was declared after the competition."""
    cause, award = CompetitionId(500), Award(unity_id=LEAST, value="performance")
    async with world_at(dsn, database, clock) as world:
        added = commands.AddCompetition(competition_id=cause, group_id=1, participants=(ANN,), result="5")
        await world.do(0, added)
        declared = commands.DeclareScoring(ranking_id=RANKING, scorings=(Scoring(awards=(award,)),))
        await world.do(0, declared)
        assert await world.totals(0) == {(LEAST, ANN): 5}
        with held_after(monkeypatch, PointsAtAnotherDate, "look_up") as held:
            changed = commands.ChangeCompetition(competition_id=cause, started_at=MONDAY - timedelta(days=1))
            redating = asyncio.create_task(world.do(0, changed))
            await held.has_done.wait()
        await world.add(1, None, (ANN, LEAST, 6))
        held.goes_on.set()
        await redating
        assert await world.totals(0) == {(LEAST, ANN): 6}
        assert await differences(database) == []


@pytest.mark.parametrize(("line", "times"), [((ANN, HOURLY, 3), 0), ((ANN, LEAST, 3), 1)])
async def test_what_expires_with_another_date_is_decided_again_only_if_it_may_be_something_else(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch, calls: Calls, line: Any, times: int
) -> None:
    """Points without the competition change nothing of it, unless they are results where it gave results."""
    decided, look_up = calls(Redating, "decided"), PointsAtAnotherDate.look_up
    async with world_at(dsn, database, clock) as world:
        cause = CompetitionId(500)
        await world.do(0, commands.AddCompetition(competition_id=cause, group_id=1))
        await world.add(0, cause, (ANN, HOURLY, 5), (ANN, LEAST, 7))

        async def followed(points: PointsAtAnotherDate, live_pool: LivePool) -> None:
            await look_up(points, live_pool)
            decided.clear()
            await world.add(0, None, line)

        monkeypatch.setattr(PointsAtAnotherDate, "look_up", followed)
        await world.do(0, commands.ChangeCompetition(competition_id=cause, started_at=MONDAY - timedelta(days=1)))
        assert len(decided) == times
        assert await world.totals(0) == {(line[1], ANN): 3}
        assert await differences(database) == []


async def test_points_that_are_added_while_results_are_read_expire_with_another_date_too(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause, long_ago = CompetitionId(500), MONDAY - timedelta(days=1)
    async with world_at(dsn, database, clock) as world:
        await world.do(0, commands.AddCompetition(competition_id=cause, group_id=1))
        await world.add(0, cause, (ANN, LEAST, 5), (BOB, HOURLY, 4))
        await world.do(0, commands.ChangeCompetition(competition_id=cause, started_at=clock.now))
        added = list[Any]()

        async def adding(live_pool: LivePool, live: LiveTournament, ranking_ids: Any) -> None:
            await read_results(live_pool, live, ranking_ids)
            added.append(await world.add(0, cause, (ANN, HOURLY, 2), (CID, LEAST, 1)))

        with monkeypatch.context() as within:
            within.setattr(due, "read_results", adding)
            await world.do(0, commands.ChangeCompetition(competition_id=cause, started_at=long_ago))
        assert len(added) == 1
        world.naive.dates[cause] = long_ago
        assert await world.totals(0) == world.naive.totals(clock.now)
        assert await differences(database) == []


async def test_points_that_are_added_while_what_expires_with_another_date_is_summed_expire_too(
    dsn: str, database: Database, clock: ToldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cause, long_ago = CompetitionId(500), MONDAY - timedelta(days=1)
    async with world_at(dsn, database, clock) as world:
        await world.do(0, commands.AddCompetition(competition_id=cause, group_id=1))
        world.naive.dates[cause] = None
        await world.add(0, cause, (ANN, HOURLY, 5), (BOB, HOURLY, 4))

        async def interrupted(steps: Any) -> Any:
            next(steps)
            await world.add(1, cause, (ANN, HOURLY, 2), (CID, HOURLY, 3), (CID, LEAST, 1))
            assert len(await world.totals(0)) == 4
            return await in_time_slices(steps)

        with monkeypatch.context() as within:
            within.setattr(due, "in_time_slices", interrupted)
            await world.do(0, commands.ChangeCompetition(competition_id=cause, started_at=long_ago))
        world.naive.dates[cause] = long_ago
        assert await world.totals(0) == world.naive.totals(clock.now) == {}
        assert await differences(database) == []
