"""`tallybook serve` as it is run, with its own event loop and parser, among those who mean it no good."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Final

import pytest
from aiohttp import ClientSession, DummyCookieJar
from yarl import URL

from api.service.api_process import connections_with
from api.service.settings import MEMORY_MIB_MAX, MEMORY_MIB_MIN
from engine.database.pool import POOL_CONNECTIONS_MAX, Database
from engine.domain.events import CompetitorRegistered, RankingCreated
from engine.domain.terms import CompetitorId, RankingId, TournamentId, UnityId
from engine.log import registry
from tests.api.service.served import FIGURE
from tests.desks import GUARD_SECONDS, open_arena, record, until
from tests.proxy import Proxy, proxy
from tests.running import Running, said, started
from tests.service import Client, make_token, register, slug_of

DESCRIPTORS: Final = 250
READINESS: Final = "SELECT count(*) FROM stopped"
"""The first statement of `/readyz`."""
IDLE: Final = 4
"""Connections to the database that a process has besides that of its appends: one more than tasks of its own may use
at the same time."""


@pytest.fixture
async def between(dsn: str) -> AsyncIterator[Proxy]:
    async with proxy(dsn) as between:
        yield between


@pytest.fixture
async def running(between: Proxy, tmp_path: Path) -> AsyncIterator[Running]:
    with started(tmp_path, "serve", "--port", "0", "--no-worker", TALLYBOOK_DATABASE_URL=between.dsn) as running:
        await running.address()
        yield running


@pytest.fixture
async def client(running: Running, database: Database, tournament_id: TournamentId) -> AsyncIterator[Client]:
    token, slug = await make_token(database), await slug_of(database, tournament_id)
    async with ClientSession(cookie_jar=DummyCookieJar()) as session:
        yield Client(session, await running.address(), slug, token)


def flood(url: URL, stack: ExitStack, connections: int) -> list[socket.socket]:
    """So many connections at once, as far as they can be had."""
    sockets = []
    for _ in range(connections):
        with suppress(OSError):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex((url.host, url.port))
            sockets.append(one)
    return sockets


async def at_once(client: Client, path: str) -> list[int]:
    """How a process answers as many requests at once as it may have connections to the database."""
    answers = await asyncio.gather(*(client.send("GET", path) for _ in range(POOL_CONNECTIONS_MAX)))
    return [answer.status for answer in answers]


async def test_a_service_keeps_descriptors_for_its_database(
    dsn: str, tmp_path: Path, database: Database, tournament_id: TournamentId
) -> None:
    token, slug = await make_token(database), await slug_of(database, tournament_id)
    options = ("--port", "0", "--no-worker")
    with started(tmp_path, "serve", *options, descriptors=DESCRIPTORS, TALLYBOOK_DATABASE_URL=dsn) as running:
        url = URL(await running.address())
        async with ClientSession(cookie_jar=DummyCookieJar()) as session:
            client = Client(session, str(url), slug, token)
            await at_once(client, "/healthz")  # the client keeps its connections; the database is not asked
            (api,) = await running.started_pids("api")
            with ExitStack() as stack:
                flood(url, stack, 800)
                await register(client, "Ada")
                async with asyncio.timeout(GUARD_SECONDS):
                    while set(await at_once(client, "/readyz")) != {200}:  # a busy machine connects too slowly at first
                        assert len(os.listdir(f"/proc/{api}/fd")) < DESCRIPTORS
        assert running.pids("api") == [api]


async def test_a_service_out_of_descriptors_continues(between: Proxy, running: Running, client: Client) -> None:
    """Its limit is lowered while it runs, and it does not know. A request that needs one more connection to the
    database cannot be answered. While the answers to those that have one are kept back, each of the others needs
    one."""
    await register(client, "Ada")
    url = URL(await running.address())
    (api,) = await running.started_pids("api")
    await at_once(client, "/healthz")
    async with AsyncExitStack() as stack, asyncio.timeout(GUARD_SECONDS):
        held = [await stack.enter_async_context(between.holding_answers(READINESS)) for _ in range(IDLE)]
        asked = [asyncio.create_task(client.send("GET", "/readyz")) for _ in held]
        for one in held:
            await one.wait()
    assert {answer.status for answer in await asyncio.gather(*asked)} == {200}
    resource.prlimit(api, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with ExitStack() as stack:
        flood(url, stack, 800)
        await until(lambda: len(os.listdir(f"/proc/{api}/fd")) == DESCRIPTORS)
        async with between.holding_answers(READINESS, number=POOL_CONNECTIONS_MAX) as answered:
            asked = [asyncio.create_task(client.send("GET", "/readyz")) for _ in range(POOL_CONNECTIONS_MAX)]
            await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            async with asyncio.timeout(GUARD_SECONDS):
                await answered.wait()
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200, 503}
    async with asyncio.timeout(GUARD_SECONDS):
        while set(await at_once(client, "/readyz")) != {200}:
            pass
    assert (await client.get("competitors.json")).status == 200
    async with asyncio.timeout(GUARD_SECONDS), ClientSession() as fresh:
        while True:
            with suppress(OSError):
                async with fresh.get(url / "healthz") as answer:
                    assert answer.status == 200
                    break
    assert running.pids("api") == [api]


@pytest.mark.parametrize(
    ("descriptors", "wanted", "taken"),
    [(1_000_000, 10_000, 10_000), (10_128, 10_000, 10_000), (1_024, 10_000, 896), (64, 10, 1)],
)
def test_a_process_takes_as_many_clients_as_it_has_descriptors_for(descriptors: int, wanted: int, taken: int) -> None:
    assert connections_with(descriptors, wanted) == taken


async def test_what_the_operator_chooses_reaches_the_processes(
    dsn: str, tmp_path: Path, database: Database, tournament_id: TournamentId
) -> None:
    token, slug = await make_token(database), await slug_of(database, tournament_id)
    options = ("--port", "0", "--no-worker", "--requests-per-second", "2", "--proxies", "1")
    with started(tmp_path, "serve", *options, TALLYBOOK_DATABASE_URL=dsn) as running:
        async with ClientSession(cookie_jar=DummyCookieJar()) as session:
            client = Client(session, await running.address(), slug, token)
            answers = await asyncio.gather(*(client.get("rankings.json") for _ in range(20)))
            assert {answer.status for answer in answers} == {200, 429}
            nobody = Client(session, await running.address(), slug, None)
            failures = [(await nobody.get("rankings.json", {"X-Forwarded-For": "1.1.1.1"})).status for _ in range(100)]
            assert failures[0] == 401
            assert failures[-1] == 429
            assert (await nobody.get("rankings.json", {"X-Forwarded-For": "1.1.1.2"})).status == 401


@pytest.mark.parametrize(("mib", "loaded"), [(16, 3), (64, 2)])
async def test_a_tournament_is_loaded_again_only_if_memory_is_for_fewer(
    dsn: str, tmp_path: Path, database: Database, mib: int, loaded: int
) -> None:
    token, tournaments = await make_token(database), [await large_tournament(database) for _ in range(2)]
    options = ("--port", "0", "--no-worker", "--open-metrics", "--memory", str(mib))
    with started(tmp_path, "serve", *options, TALLYBOOK_DATABASE_URL=dsn) as running:
        async with ClientSession(cookie_jar=DummyCookieJar()) as session:
            url = await running.address()
            for tournament in [*tournaments, tournaments[0]]:
                client = Client(session, url, await slug_of(database, tournament), token)
                assert (await client.get("competitors.json?per_page=1")).status == 200
            answer = await client.send("GET", "/metrics")
    assert dict(FIGURE.findall(answer.body.decode()))["tallybook_lives_loaded_total"] == f"{loaded}.0"


async def large_tournament(database: Database) -> TournamentId:
    """One that takes more than 8 MiB of memory, and less than 32: a hundred rankings of a thousand competitors."""
    arena = await open_arena(database)
    async with database.connection() as connection:
        ids = await registry.next_ids(connection, 1_200)
        competitors = tuple(map(CompetitorId, ids[:1_000]))
        registered = (CompetitorRegistered(competitor_id=number, name=f"C{number}") for number in competitors)
        await record(connection, arena.tournament_id, *registered)
        for ranking, unity in zip(ids[1_000:1_100], ids[1_100:], strict=True):
            created = RankingCreated(
                ranking_id=RankingId(ranking),
                name=f"R{ranking}",
                participants=competitors,
                main_unity_id=UnityId(unity),
                main_unity_name="Points",
            )
            await record(connection, arena.tournament_id, created)
    return arena.tournament_id


@pytest.mark.parametrize(
    "option",
    [
        ("--requests-per-second", "0"),
        ("--proxies", "-1"),
        ("--proxies", "11"),
        ("--memory", str(MEMORY_MIB_MIN - 1)),
        ("--memory", str(MEMORY_MIB_MAX + 1)),
    ],
)
async def test_limits_have_limits(tmp_path: Path, option: tuple[str, str]) -> None:
    refused = await asyncio.to_thread(said, "serve", *option, TALLYBOOK_DATA_DIR=str(tmp_path))
    assert refused.code == 2


async def test_the_service_does_not_start_with_a_parser_that_takes_anything(dsn: str) -> None:
    refused = await asyncio.to_thread(
        said, "serve", "--port", "0", TALLYBOOK_DATABASE_URL=dsn, AIOHTTP_NO_EXTENSIONS="1"
    )
    assert refused.code == 1
    assert "aiohttp is installed without its HTTP parser in C" in refused.err
