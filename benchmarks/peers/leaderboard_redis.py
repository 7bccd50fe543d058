"""A leaderboard as most people build it: a sorted set of Redis, `ZINCRBY`, `ZREVRANK` and `ZREVRANGE`, behind aiohttp.

It keeps no history, and equal totals share no position: each member has a place of its own. It is tuned fairly: the
parser in C (hiredis), a unix socket, a pool of connections.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from aiohttp import web
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import UnixDomainSocketConnection

from benchmarks.peers.leaderboards import MEMBERS_AT_ONCE, Line, leaderboard
from benchmarks.peers.serving import Settings, main

CONNECTIONS: Final = 64
BOARD: Final = "board"


class SortedSet:
    """The store."""

    command = "zincrby"
    """The command that changes it."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def add(self, member: int, amount: int) -> None:
        await self._redis.zincrby(BOARD, amount, str(member))

    async def around(self, member: int, span: int) -> list[Line]:
        place = await self._redis.zrevrank(BOARD, str(member))
        if place is None:
            raise web.HTTPUnprocessableEntity
        first = max(place - span, 0)
        return await self._lines(first, place + span)

    async def top(self, count: int) -> list[Line]:
        return await self._lines(0, count - 1)

    async def recorded(self) -> int:
        statistics = await self._redis.info("commandstats")
        return int(statistics.get(f"cmdstat_{self.command}", {"calls": 0})["calls"])

    async def _lines(self, first: int, last: int) -> list[Line]:
        found = await self._redis.zrevrange(BOARD, first, last, withscores=True)
        return [Line(place, int(member), int(total)) for place, (member, total) in enumerate(found, start=first + 1)]


def application(settings: Settings) -> AbstractAsyncContextManager[web.Application]:
    return serving(settings, SortedSet)


@asynccontextmanager
async def serving(settings: Settings, kind: type[SortedSet]) -> AsyncIterator[web.Application]:
    """The server of such a set."""
    pool = BlockingConnectionPool(
        connection_class=UnixDomainSocketConnection, path=settings.database, max_connections=CONNECTIONS
    )
    redis = Redis(connection_pool=pool)
    members = settings.members
    for start in range(0, len(members), MEMBERS_AT_ONCE):
        await redis.zadd(BOARD, {str(member): total for member, total in members[start : start + MEMBERS_AT_ONCE]})
    yield leaderboard(settings, kind(redis))
    await redis.aclose()
    await pool.aclose()


if __name__ == "__main__":
    main(application)
