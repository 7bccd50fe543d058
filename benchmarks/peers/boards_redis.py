"""Many leaderboards in Redis behind aiohttp: a sorted set each, `ZADD GT` for several members at once, and `ZREVRANGE`
for the top."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import UnixDomainSocketConnection

from benchmarks.peers.leaderboards import Line
from benchmarks.peers.serving import (
    BODY_BYTES_MAX,
    Recorded,
    Settings,
    authenticated,
    json_response,
    main,
    parsed_lines,
)

CONNECTIONS: Final = 200
_CHANGED: Final = msgspec.json.encode({"status": 200, "message": "ok"})


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[web.Application]:
    pool = BlockingConnectionPool(
        connection_class=UnixDomainSocketConnection, path=settings.database, max_connections=CONNECTIONS
    )
    redis = Redis(connection_pool=pool)

    async def add(request: web.Request) -> web.Response:
        authenticated(request, settings.token)
        results = {str(member): result for member, _, result in parsed_lines(await request.post())}
        await redis.zadd(request.match_info["ranking_id"], results, gt=True)
        return json_response(_CHANGED)

    async def top(request: web.Request) -> web.Response:
        authenticated(request, settings.token)
        last = int(request.query["top"]) - 1
        found = await redis.zrevrange(request.match_info["ranking_id"], 0, last, withscores=True)
        lines = [Line(place, int(member), int(result)) for place, (member, result) in enumerate(found, start=1)]
        return json_response(msgspec.json.encode({"status": 200, "message": "ok", "lines": lines}))

    async def recorded(_: web.Request) -> web.Response:
        statistics = await redis.info("commandstats")
        return json_response(msgspec.json.encode(Recorded(int(statistics.get("cmdstat_zadd", {"calls": 0})["calls"]))))

    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_put("/tournament/{tournament}/rankings/{ranking_id}/add.json", add)
    app.router.add_get("/tournament/{tournament}/rankings/{ranking_id}/standings.json", top)
    app.router.add_get("/recorded", recorded)
    yield app
    await redis.aclose()
    await pool.aclose()


if __name__ == "__main__":
    main(application)
