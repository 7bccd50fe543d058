"""Services to ask over HTTP, and clients of theirs with a token that may do everything."""

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from io import BytesIO

import asyncpg
import pytest
import structlog

from engine.domain.terms import OPERATOR, TournamentId
from engine.process.telemetry import log_to
from tests.api.asking import Log
from tests.api.cli.conftest import Tallybook
from tests.api.public_boards import Board
from tests.api.scored import League, league_of
from tests.api.visitor import Visitor, visiting
from tests.conftest import Administrator
from tests.service import Client, Season, Service, make_token, play_season, serve, slug_of
from tests.tournaments import open_new_tournament

SEASON = f"tallybook_season_{os.getpid()}"
"""The database that tests with a `season` have a copy of."""


@pytest.fixture
def log_lines() -> Iterator[BytesIO]:
    """What the services log, written as in production."""
    before = structlog.get_config()
    lines = BytesIO()
    log_to(lines)
    structlog.configure(cache_logger_on_first_use=False)  # or the loggers would write here for ever
    yield lines
    structlog.configure(**before)


@pytest.fixture(scope="session")
def template_season(administrator: Administrator) -> Iterator[Season]:
    """The season of the template SEASON. The service that its client asked is gone."""
    yield administrator.make_template(SEASON, _play_season)
    administrator.drop(SEASON)


async def _play_season(dsn: str) -> Season:
    async with serve(dsn) as service:
        tournament_id = await open_new_tournament(service.database, actor=OPERATOR)
        slug = await slug_of(service.database, tournament_id)
        return await play_season(service.client(slug, await make_token(service.database)))


@pytest.fixture
def begun_with(request: pytest.FixtureRequest) -> Season | None:
    """What the database begins with where the test asks for a `season`: to play it takes longer than to copy it."""
    return request.getfixturevalue("template_season") if "season" in request.fixturenames else None


@pytest.fixture
def templates() -> dict[str, str]:
    return {"season": SEASON}


@pytest.fixture
async def service(dsn: str, log_lines: BytesIO) -> AsyncIterator[Service]:
    async with serve(dsn, lines=log_lines) as service:
        yield service


@pytest.fixture
async def peer(dsn: str, log_lines: BytesIO) -> AsyncIterator[Service]:
    """Another service on the same database."""
    async with serve(dsn) as peer:
        yield peer


@pytest.fixture
async def token(service: Service, begun_with: Season | None) -> str:
    """An admin's, for all tournaments."""
    return (begun_with and begun_with.client.token) or await make_token(service.database)


@pytest.fixture
async def clients_tournament(service: Service, begun_with: Season | None) -> TournamentId:
    """The tournament of `client`."""
    if begun_with is None:
        return await open_new_tournament(service.database, actor=OPERATOR)
    async with service.database.connection() as connection:
        return TournamentId(await connection.fetchval("SELECT tournament_id FROM tournament"))


@pytest.fixture
async def client(service: Service, token: str, clients_tournament: TournamentId) -> Client:
    """A client of `service`, for a tournament in which nothing has happened but its opening, and the `season` if the
    test asks for one."""
    return service.client(await slug_of(service.database, clients_tournament), token)


@pytest.fixture
def log(owner: asyncpg.Connection) -> Log:
    return Log(owner)


@pytest.fixture
def board(service: Service, client: Client) -> Board:
    return Board(service, client.tournament)


@pytest.fixture
async def peers_client(peer: Service, token: str, client: Client) -> Client:
    """A client of `peer`, for the same tournament with the same token."""
    return peer.client(client.tournament, token)


@pytest.fixture
async def season(client: Client, template_season: Season) -> Season:
    return replace(template_season, client=client)


# ── Elsewhere ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def tallybook(dsn: str) -> Tallybook:
    """The command line, with the database of the test."""
    return Tallybook(dsn)


@pytest.fixture
async def other_owner(other_dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(other_dsn, server_settings={"search_path": "tallybook"})
    yield connection
    await connection.close()


@pytest.fixture
async def visitor(service: Service, season: Season) -> AsyncIterator[Visitor]:
    """Signed in with the season's token, which may do everything."""
    async with visiting(service, season.client.token) as visitor:
        yield visitor


@pytest.fixture
async def league(season: Season) -> League:
    return await league_of(season.client)
