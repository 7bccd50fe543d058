"""Clients of a stream, and what they should know in the end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from tests.desks import GUARD_SECONDS
from tests.service import Client, Season, Service, deltas
from tests.spectator import NDJSON, SSE, Connected, Lines, Spectator, connected, shown

every_format = pytest.mark.parametrize("media_type", [SSE, NDJSON])


@asynccontextmanager
async def listening(service: Service, client: Client, query: str = "", **headers: str) -> AsyncIterator[Connected]:
    """A connection to the stream of the client's tournament, with its token."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    usual = {"Authorization": f"Bearer {client.token}"}
    async with connected(f"{service.url}/tournament/{client.tournament}/events{query}", usual | named) as connection:
        yield connection


async def heard(
    service: Service, client: Client, query: str = "", media_type: str = NDJSON, **headers: str
) -> Spectator:
    """What a client knows once it has caught up, or the stream has ended."""
    spectator = Spectator(media_type)
    async with listening(service, client, query, Accept=media_type, **headers) as connection:
        assert connection.status == 200
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
    return spectator


async def add(season: Season, amount: int, who: int = 0) -> None:
    line = deltas((season.ids[who], season.unity_id, amount))
    answer = await season.client.put(f"{season.path}/add.json", {"participants_delta": line})
    assert answer.status == 200


async def standings(client: Client) -> dict[tuple[int, str], Lines]:
    """Those of every unity, as the service shows them."""
    rankings = (await client.get("rankings.json")).json["rankings"]["ranking"]
    return shown([(await client.get(f"rankings/{ranking['id']}/standings.json")).json for ranking in rankings])


async def ended(connection: Connected) -> None:
    async with asyncio.timeout(GUARD_SECONDS):
        while await connection.piece():
            pass


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0
