"""The proxy itself: it leaves nothing open."""

import asyncio
import gc

from tests.desks import GUARD_SECONDS
from tests.proxy import proxy


async def test_a_proxy_that_ends_closes_the_connection_it_is_just_passing_on(dsn: str) -> None:
    """At whichever step it ends. A stream left open raises a warning, which fails the test."""
    for turns in range(12):
        async with proxy(dsn) as between:
            reader, writer = await asyncio.open_unix_connection(f"{between.socket_directory}/.s.PGSQL.5432")
            for _ in range(turns):
                await asyncio.sleep(0)
        async with asyncio.timeout(GUARD_SECONDS):
            assert await reader.read() == b"", turns
        writer.close()
        await writer.wait_closed()
        del reader, writer
    gc.collect()
