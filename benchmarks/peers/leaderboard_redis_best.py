"""Like `leaderboard_redis`, but the best result of a member counts: `ZADD` with `GT`."""

from contextlib import AbstractAsyncContextManager

from aiohttp import web

from benchmarks.peers.leaderboard_redis import BOARD, SortedSet, serving
from benchmarks.peers.serving import Settings, main


class BestResults(SortedSet):
    """The store."""

    command = "zadd"

    async def add(self, member: int, amount: int) -> None:
        await self._redis.zadd(BOARD, {str(member): amount}, gt=True)


def application(settings: Settings) -> AbstractAsyncContextManager[web.Application]:
    return serving(settings, BestResults)


if __name__ == "__main__":
    main(application)
