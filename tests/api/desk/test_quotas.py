"""Quotas: what a tournament may hold, and a token may write, against a naive count of the log."""

import asyncio
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.desk.case import Receipt
from api.desk.desk import Desk
from api.desk.quotas import Share, TokenUse, shares
from api.web.console.overview_page import quota_text
from engine.database.pool import Database
from engine.domain.commands import Command, RegisterCompetitor, RegisterCompetitors
from engine.domain.errors import DatabaseUnavailable, QuotaReached, TokenQuotaReached
from engine.domain.events import CompetitorRegistered, Event, PointsAdded
from engine.domain.terms import OPERATOR, ActorId, CompetitorId, TournamentId
from engine.log import codec, quotas, registry
from engine.log.quotas import ALL_TOKENS, ALL_TOURNAMENTS, Amounts, Quota, QuotaKey
from tests.api.cli.conftest import Tallybook
from tests.bounds import Bounds
from tests.desks import Arena, open_arena, record, recorded, until
from tests.service import Season, Service, slug_of
from tests.tournaments import open_new_tournament

_tokens = count(1_000_000)
_ids = count(5_000_000)


@pytest.fixture(autouse=True)
def small_steps(bounds: Bounds) -> None:
    bounds(COUNTED_AT_ONCE=3, SAVED_EVERY=2)


async def bound(desk: Desk, key: QuotaKey, quota: Quota) -> None:
    """Sets the quota, and has the desk know it."""
    async with desk.database.connection() as connection:
        await quotas.set_quota(connection, key, quota)
    await desk.quotas.read()


def new_competitor() -> RegisterCompetitor:
    number = next(_ids)
    return RegisterCompetitor(competitor_id=CompetitorId(number), name=f"Zoë {number}")


@dataclass
class Naive:
    """A quota, and the events that count for it."""

    quota: Quota
    counted: list[Event] = field(default_factory=list)

    def use(self, what: str) -> int:
        if what == "events":
            return len(self.counted)
        if what == "competitors":
            return len([event for event in self.counted if isinstance(event, CompetitorRegistered)])
        return sum(codec.stored_bytes(event) for event in self.counted)

    def has_room(self, command: Command) -> bool:
        number = len(command.items) if isinstance(command, RegisterCompetitors) else 1
        registered = number if isinstance(command, RegisterCompetitor | RegisterCompetitors) else 0
        need = {"events": number, "competitors": registered, "bytes": 1}
        return all(not need[what] or self.use(what) + need[what] <= most for what, most in self.quota.bounds())


BOUNDS = st.builds(
    Quota,
    events=st.none() | st.integers(1, 25),
    competitors=st.none() | st.integers(1, 15),
    bytes=st.none() | st.integers(1, 1_500),
)
ASKED = st.tuples(st.integers(0, 1), st.sampled_from(["points", 1, 2, 3, 4]))
"""Which token asks, and what: for points, or for how many competitors."""
BATCH = st.tuples(st.integers(0, 1), st.lists(ASKED, min_size=1, max_size=8), st.integers(0, 2))
"""In which tournament, what is asked at once, and how much another process records before."""


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow],
)
@given(
    of_tournaments=st.tuples(BOUNDS, BOUNDS), of_tokens=st.tuples(BOUNDS, BOUNDS), batches=st.lists(BATCH, max_size=5)
)
async def test_a_process_accepts_what_has_room_and_nothing_more(
    service: Service,
    of_tournaments: tuple[Quota, Quota],
    of_tokens: tuple[Quota, Quota],
    batches: list[tuple[int, list[tuple[int, str | int]], int]],
) -> None:
    desk, database = service.desk, service.database
    arenas = [await open_arena(database) for _ in range(2)]
    tokens = [ActorId(next(_tokens)) for _ in range(2)]
    tournaments_now = [
        Naive(quota, await recorded(database, a.tournament_id)) for quota, a in zip(of_tournaments, arenas, strict=True)
    ]
    tokens_now = [Naive(quota) for quota in of_tokens]
    for arena, naive in zip(arenas, tournaments_now, strict=True):
        await bound(desk, (arena.tournament_id, ALL_TOKENS), naive.quota)
    for token, naive in zip(tokens, tokens_now, strict=True):
        await bound(desk, (ALL_TOURNAMENTS, token), naive.quota)

    for which, asked, by_others in batches:
        arena, of_tournament = arenas[which], tournaments_now[which]
        for _ in range(by_others):
            one = new_competitor()
            event = CompetitorRegistered(competitor_id=one.competitor_id, name=one.name)
            async with database.connection() as connection:
                await record(connection, arena.tournament_id, event)
            of_tournament.counted.append(event)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            await desk.live_pool.make_current(live)
            for token in tokens:  # or the first change of a token would wait for that, while others pass it
                await desk.quotas.settle(live, token)
            commands = [(token, _command(arena, what)) for token, what in asked]
            pending = [desk.submit(live, command, actor=tokens[token]) for token, command in commands]
            outcomes = await asyncio.gather(*pending, return_exceptions=True)
        for (token, command), outcome in zip(commands, outcomes, strict=True):
            if not (of_tournament.has_room(command) and tokens_now[token].has_room(command)):
                assert isinstance(outcome, QuotaReached | TokenQuotaReached), (command, outcome)
            else:
                assert isinstance(outcome, Receipt), (command, outcome)
                of_tournament.counted += outcome.events
                tokens_now[token].counted += outcome.events
        assert await recorded(database, arena.tournament_id) == of_tournament.counted

    pairs = [((arena.tournament_id, ALL_TOKENS), naive) for arena, naive in zip(arenas, tournaments_now, strict=True)]
    pairs += [((ALL_TOURNAMENTS, token), naive) for token, naive in zip(tokens, tokens_now, strict=True)]
    for key, naive in pairs:
        said = [Share(what, naive.use(what), most) for what, most in naive.quota.bounds()]
        assert await shares(database, key) == said


async def test_counting_a_large_log_delays_no_other_tournament(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, database = service.desk, service.database
    large, small = [await open_arena(database) for _ in range(2)]
    async with database.connection() as connection:
        for _ in range(20):
            one = new_competitor()
            event = CompetitorRegistered(competitor_id=one.competitor_id, name=one.name)
            await record(connection, large.tournament_id, event)
    for arena in (large, small):
        await bound(desk, (arena.tournament_id, ALL_TOKENS), Quota(events=1_000))
    turns, counted_on = list[TournamentId](), quotas.counted_on

    async def noted(connection: Any, tournament_id: TournamentId, *more: Any) -> Any:
        turns.append(tournament_id)
        if len(turns) == 2:
            await until(lambda: bool(desk.quotas._counting._waiters))
        return await counted_on(connection, tournament_id, *more)

    monkeypatch.setattr(quotas, "counted_on", noted)
    async with desk.live_pool.pinned(large.tournament_id) as one, desk.live_pool.pinned(small.tournament_id) as other:
        await asyncio.gather(*(desk.quotas.settle(live, OPERATOR) for live in (one, one, other)))
        assert turns.count(large.tournament_id) > 5
        assert turns.index(small.tournament_id) == 2
        assert all(counted.ready for live in (one, other) for counted in desk.quotas._counts[live].values())


async def test_a_count_that_failed_keeps_no_events(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = service.desk
    arena = await open_arena(service.database)
    await bound(desk, (arena.tournament_id, ALL_TOKENS), Quota(events=1_000))

    async def away(*_: Any) -> None:
        raise DatabaseUnavailable

    async with desk.live_pool.pinned(arena.tournament_id) as live:
        with monkeypatch.context() as patched:
            patched.setattr(quotas, "begin", away)
            with pytest.raises(DatabaseUnavailable):
                await desk.submit(live, arena.points(), actor=OPERATOR)
        (counted,) = desk.quotas._counts[live].values()
        points = PointsAdded(ranking_id=arena.ranking_id, deltas=arena.points().deltas)
        async with service.database.connection() as connection:
            await record(connection, arena.tournament_id, points)
        await desk.live_pool.make_current(live)
        assert (counted.ready, counted.early) == (False, None)
        await desk.submit(live, arena.points(), actor=OPERATOR)
        assert counted.use(live.head.sequence).events == live.head.sequence


async def test_only_what_a_token_wrote_since_is_counted_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, database, token = service.desk, service.database, ActorId(next(_tokens))
    arenas = [await open_arena(database) for _ in range(4)]
    await bound(desk, (ALL_TOURNAMENTS, token), Quota(events=1_000))
    for arena in arenas:
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            await desk.submit(live, arena.points(), actor=token)
    for counts in desk.quotas._counts.values():
        counts.pop(token, None)  # as if the tournaments had left the memory
    await desk.quotas.read()
    counted, counted_on = list[TournamentId](), quotas.counted_on

    async def noted(connection: Any, tournament_id: TournamentId, token_id: ActorId, *more: Any) -> Any:
        if token_id == token:
            counted.append(tournament_id)
        return await counted_on(connection, tournament_id, token_id, *more)

    monkeypatch.setattr(quotas, "counted_on", noted)
    await desk.quotas.read()
    assert counted == []
    written = arenas[2].tournament_id
    points = PointsAdded(ranking_id=arenas[2].ranking_id, deltas=arenas[2].points().deltas)
    async with database.connection() as connection:
        await record(connection, written, points, actor=token)
    await desk.quotas.read()
    assert set(counted) == {written}
    assert await shares(database, (ALL_TOURNAMENTS, token)) == [Share("events", 5, 1_000)]
    use = desk.quotas._token(token)
    assert (use.everywhere.events, use.elsewhere(written).events) == (5, 3)


async def test_what_a_token_writes_through_others_counts_though_its_tournament_is_in_memory(service: Service) -> None:
    """Nobody asks this process for that tournament, so it folds nothing of it."""
    desk, database, token = service.desk, service.database, ActorId(next(_tokens))
    here, there = [await open_arena(database) for _ in range(2)]
    await bound(desk, (ALL_TOURNAMENTS, token), Quota(events=5))
    async with desk.live_pool.pinned(here.tournament_id) as live, desk.live_pool.pinned(there.tournament_id) as idle:
        await desk.submit(idle, there.points(), actor=token)
        points = PointsAdded(ranking_id=there.ranking_id, deltas=there.points().deltas)
        async with database.connection() as connection:
            for _ in range(4):
                await record(connection, there.tournament_id, points, actor=token)
        await desk.quotas.read()
        assert [one.percent for one in desk.quotas.near if one.token == token] == [100]
        with pytest.raises(TokenQuotaReached):
            await desk.submit(live, here.points(), actor=token)


async def test_a_quota_that_is_set_again_counts_nothing_of_before_anywhere(service: Service) -> None:
    desk, database, token = service.desk, service.database, ActorId(next(_tokens))
    here, there = [await open_arena(database) for _ in range(2)]
    key = ALL_TOURNAMENTS, token
    await bound(desk, key, Quota(events=1))
    async with desk.live_pool.pinned(here.tournament_id) as live, desk.live_pool.pinned(there.tournament_id) as other:
        await desk.submit(other, there.points(), actor=token)
        async with database.connection() as connection:
            await quotas.set_quota(connection, key, Quota())
        await bound(desk, key, Quota(events=1))
        assert desk.quotas._token(token).everywhere == Amounts()
        await desk.submit(live, here.points(), actor=token)


_NOTES = st.lists(st.tuples(st.integers(1, 4), st.builds(Amounts, *[st.integers(0, 50)] * 3)))


@given(notes=_NOTES)
def test_what_counts_elsewhere_is_the_sum_of_the_others(notes: list[tuple[int, Amounts]]) -> None:
    use, last = TokenUse(ActorId(1)), dict[int, Amounts]()
    for tournament_id, amounts in notes:
        use.note(TournamentId(tournament_id), amounts)
        last[tournament_id] = amounts
    for one in range(1, 5):
        others = [amounts for its, amounts in last.items() if its != one]
        assert use.elsewhere(TournamentId(one)) == sum(others, Amounts())


def _command(arena: Arena, what: str | int) -> Command:
    if what == "points":
        return arena.points()
    if what == 1:
        return new_competitor()
    return RegisterCompetitors(items=tuple(new_competitor() for _ in range(int(what))))


# ── Over HTTP, and by processes ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def tallybook(dsn: str) -> Tallybook:
    return Tallybook(dsn)


async def test_a_refusal_says_bound_and_use_and_repeats_are_still_answered(
    service: Service, season: Season, tallybook: Tallybook
) -> None:
    client, slug = season.client, season.client.tournament
    key = {"Idempotency-Key": "first"}
    first = await client.post("competitors.json", {"name": "Eve"}, headers=key)
    head = int(first.headers["Tallybook-Sequence"])
    said = await tallybook("tournament", "quota", slug, "--events", str(head), "--bytes", "1000000", "--json")
    assert json.loads(said.out)[0] == {"what": "events", "used": head, "bound": head}
    await service.desk.quotas.read()

    refused = await client.post("competitors.json", {"name": "Fay"}, headers={"Idempotency-Key": "second"})
    assert refused.status == 409
    assert refused.json["errors"] == [{"field": "events", "message": f"{head} of {head} are used"}]
    again = await client.post("competitors.json", {"name": "Eve"}, headers=key)
    assert (again.status, again.headers["Idempotency-Replayed"], again.body) == (200, "true", first.body)
    stale = await client.put(f"competitors/{season.ids[0]}.json", {"name": "Gil"}, headers={"If-Match": '"1.0"'})
    assert stale.status == 412
    assert (await client.get("competitors.json")).status == 200
    metrics = (await client.send("GET", "/metrics")).body.decode()
    assert "tallybook_quotas_near 1.0" in metrics
    near = (await client.send("GET", "/readyz")).json["quotas"]
    assert [(one["what"], one["percent"]) for one in near] == [("events", 100)]

    by_the_operator = await tallybook("competitor", "add", slug, "Hal")
    assert by_the_operator.code == 0, by_the_operator.err
    await tallybook("tournament", "quota", slug, "--events", str(head + 2))
    await service.desk.quotas.read()
    accepted = await client.post("competitors.json", {"name": "Fay"}, headers={"Idempotency-Key": "second"})
    assert (accepted.status, accepted.headers["Tallybook-Sequence"]) == (200, str(head + 2))
    assert (await client.post("competitors.json", {"name": "Ida"})).status == 409
    await tallybook("tournament", "quota", slug, "--none")
    await service.desk.quotas.read()
    assert (await client.post("competitors.json", {"name": "Ida"})).status == 200
    assert "quotas" not in (await client.send("GET", "/readyz")).json


@pytest.mark.parametrize(("used", "said"), [(79, "used"), (80, "nearly full"), (100, "no more"), (101, "no more")])
def test_the_console_warns_from_four_fifths_on(used: int, said: str) -> None:
    assert said in quota_text(Share("events", used, 100))
    assert ("nearly" in quota_text(Share("events", used, 100))) == (80 <= used < 100)


async def test_a_token_may_write_as_much_as_it_is_given_in_all_tournaments_together(
    service: Service, season: Season, tallybook: Tallybook
) -> None:
    made = json.loads((await tallybook("token", "create", "guest", "--scope", "write", "--json")).out)
    other = await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR))
    await tallybook("token", "quota", str(made["id"]), "--competitors", "3")
    await service.desk.quotas.read()
    here, there = (service.client(slug, made["token"]) for slug in (season.client.tournament, other))
    statuses = [
        (await client.post("competitors.json", {"name": "Eve"})).status for client in (here, there, here, there)
    ]
    assert statuses == [200, 200, 200, 429]
    refused = await there.post("competitors.json", {"name": "Eve"})
    assert refused.json["errors"] == [{"field": "competitors", "message": "3 of 3 are used"}]
    assert (await here.put(f"{season.path}/information.json", {"name": "Cup"})).status == 200, "that registers nobody"
    assert (await season.client.post("competitors.json", {"name": "Eve"})).status == 200, "another token"
    shown = await tallybook("token", "quota", str(made["id"]), "--json")
    assert json.loads(shown.out) == [{"what": "competitors", "used": 3, "bound": 3}]
    assert (await tallybook("token", "quota", "4711")).code == 1


async def test_a_quota_that_is_removed_and_set_again_counts_from_zero_before_a_process_sees_it(
    service: Service, season: Season, tallybook: Tallybook
) -> None:
    made = json.loads((await tallybook("token", "create", "guest", "--scope", "write", "--json")).out)
    client, quota = service.client(season.client.tournament, made["token"]), ("token", "quota", str(made["id"]))
    for _ in range(2):
        await tallybook.done(*quota, "--none")
        await tallybook.done(*quota, "--competitors", "2")
        await service.desk.quotas.read()
        statuses = [(await client.post("competitors.json", {"name": "Eve"})).status for _ in range(3)]
        assert statuses == [200, 200, 429]
        assert await tallybook.json(*quota) == [{"what": "competitors", "used": 2, "bound": 2}]


async def test_several_processes_exceed_a_bound_by_no_more_than_the_others_have_under_way(
    service: Service, peer: Service, season: Season, database: Database
) -> None:
    slug, under_way, room = season.client.tournament, 10, 15
    desks = [service.desk, peer.desk]
    async with database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
        assert tournament_id is not None
    head = len(await recorded(database, tournament_id))
    for desk in desks:
        await bound(desk, (tournament_id, ALL_TOKENS), Quota(events=head + room))
    clients = [each.client(slug, season.client.token) for each in (service, peer)]
    accepted = 0
    while True:
        asked = [client.post("competitors.json", {"name": "Eve"}) for client in clients for _ in range(under_way)]
        statuses = [answer.status for answer in await asyncio.gather(*asked)]
        assert set(statuses) <= {200, 409}
        accepted += statuses.count(200)
        if 200 not in statuses:
            break
    assert room <= accepted <= room + under_way
    assert len(await recorded(database, tournament_id)) == head + accepted
