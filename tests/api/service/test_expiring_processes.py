"""A service of two processes while time passes: whichever answers shows what counts, whoever changed it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg
import pytest
from aiohttp import ClientSession, DummyCookieJar, TCPConnector
from yarl import URL

from api.desk.desk import Desk
from engine.database.pool import Database
from tests.api.service.test_processes import accepted_by
from tests.desks import desks_at
from tests.projections.verified import verified
from tests.running import started
from tests.service import Service, make_token
from tests.told_clock import IN_PROCESSES, told_clock
from tests.what_counts.doors import Doors
from tests.what_counts.playing import Tournament

CONNECTIONS: Final = 24
"""To the service; the kernel divides them among its processes."""
STEPS: Final = 150


@asynccontextmanager
async def connected(url: str, database: Database, desk: Desk) -> AsyncIterator[Service]:
    """The service, asked over one connection."""
    async with ClientSession(connector=TCPConnector(limit=1), cookie_jar=DummyCookieJar()) as session:
        yield Service(url, session, database, desk)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
async def test_either_process_shows_what_counts(
    dsn: str, owner: asyncpg.Connection, database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: int
) -> None:
    """Others change the tournament, so that each has to read that; both are asked at once when something expires."""
    clock, token = await told_clock(owner, monkeypatch), await make_token(database)
    options = ("--processes", "2", "--port", "0", "--database-url", dsn)
    with started(tmp_path, "serve", *options, **IN_PROCESSES) as running:
        url = await running.address()
        async with AsyncExitStack() as stack:
            desks = await stack.enter_async_context(desks_at(dsn))
            tournament = Tournament(desks, database, clock, seed)
            await tournament.begin()
            services = [await stack.enter_async_context(connected(url, database, desks[0])) for _ in range(CONNECTIONS)]
            doors = [await Doors.of(service, owner, tournament, token) for service in services]
            for _ in range(STEPS):
                await tournament.step()
                asking = tournament.random.sample(doors, 3)
                await asyncio.gather(*(door.client.get("rankings.json") for door in asking))
                await asking[0].compare_live()
            for door in doors:
                await door.compare_expiring()
                for moment in await door.some_moments(3):
                    await door.compare_past(moment)
            assert all(accepted_by(pid, URL(url).port or 0) for pid in running.pids("api")), (
                "one process has nothing to do"
            )
            assert tournament.refused < tournament.submitted / 2
        assert await running.stopped() == 0
    await clock.give_back()
    assert (await verified(database)).differences == []
