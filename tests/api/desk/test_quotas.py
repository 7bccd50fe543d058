"""Quotas: what a tournament may hold, against a naive count of the log."""

import asyncio
import json
from itertools import count

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.desk.desk import Desk
from api.desk.quotas import Share, shares_of
from api.web.console.overview_page import quota_text
from engine.database.pool import Database
from engine.domain.commands import Command, RegisterCompetitor, RegisterCompetitors
from engine.domain.errors import QuotaReached
from engine.domain.events import CompetitorRegistered
from engine.domain.terms import OPERATOR, CompetitorId, TournamentId
from engine.log import quotas, registry
from engine.log.quotas import Quota
from tests.api.cli.conftest import Tallybook
from tests.desks import Arena, open_arena, record, recorded
from tests.service import Season, Service

_ids = count(5_000_000)
_BYTES = "SELECT max(log_bytes) FROM block WHERE tournament_id = $1"


async def bound(desk: Desk, tournament_id: TournamentId, quota: Quota) -> None:
    """Sets the quota, and has the desk know it."""
    async with desk.database.connection() as connection:
        await quotas.set_quota(connection, tournament_id, quota)
    await desk.quotas.read()


def new_competitor() -> RegisterCompetitor:
    number = next(_ids)
    return RegisterCompetitor(competitor_id=CompetitorId(number), name=f"Zoë {number}")


def command_of(arena: Arena, what: str | int) -> Command:
    if what == "points":
        return arena.points()
    if what == 1:
        return new_competitor()
    return RegisterCompetitors(items=tuple(new_competitor() for _ in range(int(what))))


async def used(database: Database, owner: asyncpg.Connection, tournament_id: TournamentId) -> dict[str, int]:
    log = await recorded(database, tournament_id)
    competitors = len([event for event in log if isinstance(event, CompetitorRegistered)])
    size = await owner.fetchval(_BYTES, tournament_id)
    return {"events": len(log), "competitors": competitors, "bytes": size}


BOUNDS = st.builds(
    Quota,
    events=st.none() | st.integers(1, 25),
    competitors=st.none() | st.integers(1, 15),
    bytes=st.none() | st.integers(1, 3_000),
)
ASKED = st.sampled_from(["points", 1, 2, 3, 4, "elsewhere"])
"""For points, for how many competitors, or what another process records."""


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow],
)
@given(of_tournaments=st.tuples(BOUNDS, BOUNDS), asked=st.lists(st.tuples(st.integers(0, 1), ASKED), max_size=20))
async def test_a_process_accepts_what_has_room_and_nothing_more(
    service: Service,
    owner: asyncpg.Connection,
    of_tournaments: tuple[Quota, Quota],
    asked: list[tuple[int, str | int]],
) -> None:
    desk, database = service.desk, service.database
    arenas = [await open_arena(database) for _ in of_tournaments]
    for arena, quota in zip(arenas, of_tournaments, strict=True):
        await bound(desk, arena.tournament_id, quota)
    for which, what in asked:
        arena, one = arenas[which], new_competitor()
        if what == "elsewhere":
            event = CompetitorRegistered(competitor_id=one.competitor_id, name=one.name)
            async with database.connection() as connection:
                await record(connection, arena.tournament_id, event)
            continue
        await desk.quotas.read()
        before = await used(database, owner, arena.tournament_id)
        number = what if isinstance(what, int) else 1
        need = {"events": number, "competitors": 0 if what == "points" else number, "bytes": 1}
        has_room = all(not need[of] or before[of] + need[of] <= most for of, most in of_tournaments[which].bounds())
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            await desk.live_pool.make_current(live)
            if has_room:
                await desk.submit(live, command_of(arena, what), actor=OPERATOR)
            else:
                with pytest.raises(QuotaReached):
                    await desk.submit(live, command_of(arena, what), actor=OPERATOR)
    for arena, quota in zip(arenas, of_tournaments, strict=True):
        now = await used(database, owner, arena.tournament_id)
        async with desk.live_pool.pinned(arena.tournament_id) as live:
            await desk.live_pool.make_current(live)
            assert await shares_of(database, live) == [Share(what, now[what], most) for what, most in quota.bounds()]


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


async def test_a_bound_is_exceeded_by_no_more_than_the_processes_have_under_way(
    service: Service, peer: Service, season: Season, database: Database
) -> None:
    slug, under_way, room = season.client.tournament, 10, 15
    desks = [service.desk, peer.desk]
    async with database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
        assert tournament_id is not None
    head = len(await recorded(database, tournament_id))
    for desk in desks:
        await bound(desk, tournament_id, Quota(events=head + room))
    clients = [each.client(slug, season.client.token) for each in (service, peer)]
    accepted = 0
    while True:
        asked = [client.post("competitors.json", {"name": "Eve"}) for client in clients for _ in range(under_way)]
        statuses = [answer.status for answer in await asyncio.gather(*asked)]
        assert set(statuses) <= {200, 409}
        accepted += statuses.count(200)
        if 200 not in statuses:
            break
    assert room <= accepted <= room + 2 * under_way
    assert len(await recorded(database, tournament_id)) == head + accepted
