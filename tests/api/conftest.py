"""Services to ask over HTTP, and clients of theirs with a token that may do everything."""

from collections.abc import AsyncIterator, Iterator
from io import BytesIO

import pytest
import structlog

from engine.domain.terms import OPERATOR, TournamentId
from engine.process.telemetry import log_json
from tests.api.service import Client, Season, Service, make_token, play_season, serve, slug_of
from tests.tournaments import open_new_tournament


@pytest.fixture
def log_lines() -> Iterator[BytesIO]:
    """What the services log, written as in production."""
    before = structlog.get_config()
    lines = BytesIO()
    log_json(lines)
    structlog.configure(cache_logger_on_first_use=False)  # or the loggers would write here for ever
    yield lines
    structlog.configure(**before)


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
async def token(service: Service) -> str:
    """An admin's, for all tournaments."""
    return await make_token(service.database)


@pytest.fixture
async def clients_tournament(service: Service) -> TournamentId:
    """The tournament of `client`."""
    return await open_new_tournament(service.database, actor=OPERATOR)


@pytest.fixture
async def client(service: Service, token: str, clients_tournament: TournamentId) -> Client:
    """A client of `service`, for a tournament in which nothing has happened but its opening."""
    return service.client(await slug_of(service.database, clients_tournament), token)


@pytest.fixture
async def peers_client(peer: Service, token: str, client: Client) -> Client:
    """A client of `peer`, for the same tournament with the same token."""
    return peer.client(client.tournament, token)


@pytest.fixture
async def season(client: Client) -> Season:
    return await play_season(client)
