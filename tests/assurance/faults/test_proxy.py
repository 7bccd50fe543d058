"""The proxy itself: it leaves nothing open."""

import asyncio
import gc

import pytest

from tests.desks import GUARD_SECONDS
from tests.proxy import proxy


@pytest.mark.parametrize("turns", range(12))
async def test_a_proxy_that_ends_closes_the_connection_it_is_just_passing_on(dsn: str, turns: int) -> None:
    """At whichever step it ends. A stream left open raises a warning, which fails the test."""
    async with proxy(dsn) as between:
        reader, writer = await asyncio.open_unix_connection(f"{between.socket_directory}/.s.PGSQL.5432")
        for _ in range(turns):
            await asyncio.sleep(0)
    async with asyncio.timeout(GUARD_SECONDS):
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    gc.collect()
