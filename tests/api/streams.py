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
async def listening(service: Service, whose: Client | str, query: str = "", **headers: str) -> AsyncIterator[Connected]:
    """A connection to the stream of the client's tournament, with its token; of a slug, to the public one."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(whose, str):
        below = f"board/{whose}"
    else:
        below, named = f"tournament/{whose.tournament}", {"Authorization": f"Bearer {whose.token}"} | named
    async with connected(f"{service.url}/{below}/events{query}", named) as connection:
        yield connection


async def heard(
    service: Service, whose: Client | str, query: str = "", media_type: str = NDJSON, **headers: str
) -> Spectator:
    """What a client knows once it has caught up, or the stream has ended."""
    spectator = Spectator(media_type)
    async with listening(service, whose, query, Accept=media_type, **headers) as connection:
        assert connection.status == 200
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
    return spectator


async def raw(service: Service, whose: Client | str, media_type: str) -> bytes:
    """All bytes of a stream until it has caught up."""
    spectator, pieces = Spectator(media_type), []
    async with listening(service, whose, Accept=media_type) as connection:
        while not spectator.count("caught-up"):
            pieces.append(await connection.piece())
            spectator.feed(pieces[-1])
    return b"".join(pieces)


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
