"""The service on Redis: aiohttp and redis.asyncio, a sorted set per unity, a stream of events.

Each request is one MULTI: `XADD` to the stream, `ZINCRBY` for every delta, and the values of the answer: the standing
(`ZRANGE … REV WITHSCORES`) and the length of the stream, which is the version. Redis runs with `appendfsync always`, so
an answer is given when the change is on disk, as in the product. It is tuned fairly: the parser in C (hiredis), a unix
socket, a pool of connections, the competitors' JSON kept ready in the process, positions counted in one pass.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from aiohttp import web
from msgspec import Raw, Struct
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import UnixDomainSocketConnection

from benchmarks.peers.serving import (
    BODY_BYTES_MAX,
    Ledger,
    Ranking,
    Recorded,
    Settings,
    authenticated,
    json_response,
    main,
    parsed_lines,
)

CONNECTIONS: Final = 64
_ENTRIES_PER_READ: Final = 10_000


class _Kept(Struct, frozen=True):
    """The parts of a ranking that do not change, as JSON that is made once."""

    slug: str
    name: str
    competitors: Raw
    unities: dict[int, tuple[str, bool]]


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[web.Application]:
    pool = BlockingConnectionPool(
        connection_class=UnixDomainSocketConnection, path=settings.database, max_connections=CONNECTIONS
    )
    redis = Redis(connection_pool=pool)
    kept = {ranking.shown["id"]: _kept(ranking) for ranking in settings.rankings}
    await _fill(redis, settings.rankings)

    async def add(request: web.Request) -> web.Response:
        authenticated(request, settings.token)
        form = await request.post()
        deltas = parsed_lines(form)
        ranking_id = int(request.match_info["ranking_id"])
        ranking = kept.get(ranking_id)
        if ranking is None or ranking.slug != request.match_info["tournament"]:
            raise web.HTTPNotFound
        answers = await _record(redis, ranking, ranking_id, deltas, str(form.get("competition_id", "")))
        return json_response(_shown(ranking_id, ranking, answers[-len(ranking.unities) - 1 :]))

    async def recorded(_: web.Request) -> web.Response:
        count = sum([await redis.xlen(_stream(ranking_id)) for ranking_id in kept])
        return json_response(msgspec.json.encode(Recorded(count)))

    async def ledger(_: web.Request) -> web.Response:
        found = [await _ledger(redis, ranking_id, ranking) for ranking_id, ranking in kept.items()]
        whole = Ledger(sum(one.recorded for one in found), all(one.exact for one in found))
        return json_response(msgspec.json.encode(whole))

    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_put("/tournament/{tournament}/rankings/{ranking_id}/add.json", add)
    app.router.add_get("/recorded", recorded)
    app.router.add_get("/ledger", ledger)
    yield app
    await redis.aclose()
    await pool.aclose()


async def _record(
    redis: Redis, ranking: _Kept, ranking_id: int, deltas: list[tuple[int, int, int]], competition_id: str
) -> list[Any]:
    async with redis.pipeline(transaction=True) as transaction:
        for competitor_id, unity_id, amount in deltas:
            entry = {"competitor": competitor_id, "unity": unity_id, "delta": amount, "competition": competition_id}
            transaction.xadd(_stream(ranking_id), entry)  # type: ignore[arg-type] # its types are invariant
            transaction.zincrby(_standing(unity_id), amount, str(competitor_id))
        transaction.xlen(_stream(ranking_id))
        for unity_id in ranking.unities:
            transaction.zrange(_standing(unity_id), 0, -1, desc=True, withscores=True)
        return await transaction.execute()


def _shown(ranking_id: int, ranking: _Kept, answers: list[Any]) -> bytes:
    version, *standings = answers
    unities = [
        {"name": name, "version": 1 + version, "competitors_ranking": _lines(standing), "general": general}
        for (name, general), standing in zip(ranking.unities.values(), standings, strict=True)
    ]
    shown = {
        "id": ranking_id,
        "name": ranking.name,
        "description": None,
        "closed_at": None,
        "competitors": ranking.competitors,
        "unities": unities,
    }
    return msgspec.json.encode({"status": 200, "message": "ok", "ranking": shown})


def _lines(standing: list[tuple[bytes, float]]) -> list[dict[str, int]]:
    lines = []
    position, previous = 0, None
    for place, (competitor_id, total) in enumerate(standing, start=1):
        if total != previous:
            position, previous = place, total
        lines.append({"competitor_id": int(competitor_id), "position": position, "total": int(total)})
    return lines


async def _ledger(redis: Redis, ranking_id: int, ranking: _Kept) -> Ledger:
    sums: dict[tuple[int, int], int] = {}
    recorded = 0
    after = "-"
    while entries := await _entries(redis, ranking_id, after):
        recorded += len(entries)
        for _, entry in entries:
            line = int(entry[b"unity"]), int(entry[b"competitor"])
            sums[line] = sums.get(line, 0) + int(entry[b"delta"])
        after = f"({entries[-1][0].decode()}"
    exact = True
    for unity_id in ranking.unities:
        standing: Any = await redis.zrange(_standing(unity_id), 0, -1, withscores=True)
        for competitor_id, total in standing:
            exact = exact and sums.get((unity_id, int(competitor_id)), 0) == total
    return Ledger(recorded, exact)


async def _entries(redis: Redis, ranking_id: int, after: str) -> Any:
    """The next entries of the stream, with ids and fields as bytes."""
    return await redis.xrange(_stream(ranking_id), min=after, count=_ENTRIES_PER_READ)


async def _fill(redis: Redis, rankings: list[Ranking]) -> None:
    for ranking in rankings:
        for unity_id in ranking.unity_ids:
            await redis.zadd(_standing(unity_id), {str(c["id"]): 0 for c in ranking.shown["competitors"]})


def _kept(ranking: Ranking) -> _Kept:
    shown = ranking.shown
    unities = zip(ranking.unity_ids, shown["unities"], strict=True)
    return _Kept(
        ranking.slug,
        shown["name"],
        Raw(msgspec.json.encode(shown["competitors"])),
        {unity_id: (unity["name"], unity["general"]) for unity_id, unity in unities},
    )


def _standing(unity_id: int) -> str:
    return f"standing:{unity_id}"


def _stream(ranking_id: int) -> str:
    return f"happened:{ranking_id}"


if __name__ == "__main__":
    main(application)
