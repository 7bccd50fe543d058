"""The service as most people would write it: aiohttp and asyncpg, one transaction per request, totals that are updated.

Each request writes its history rows, updates the totals, and selects the standing with `RANK() OVER` for the answer,
which has the shape of the product's. It is tuned fairly, and takes the faster way where there is a choice: a pool of
the best size, statements prepared once per connection (asyncpg's cache), an index for every look-up, rows with room for
updates in place (`fillfactor`), JSON by msgspec, the token compared in memory, no foreign keys, and no counter for the
version, at which every request would queue: the version is the sum of the changes of each total.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg
import msgspec
from aiohttp import web
from asyncpg import Connection, Pool

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

CONNECTIONS: Final = 16

_SCHEMA: Final = """
    CREATE TABLE tournament (tournament_id bigint PRIMARY KEY, slug text NOT NULL UNIQUE);
    CREATE TABLE ranking (
        ranking_id bigint PRIMARY KEY, tournament_id bigint NOT NULL, name text NOT NULL, description text,
        closed_at timestamptz
    );
    CREATE TABLE unity (
        unity_id bigint PRIMARY KEY, ranking_id bigint NOT NULL, name text NOT NULL, number int NOT NULL
    );
    CREATE INDEX ON unity (ranking_id, number);
    CREATE TABLE competitor (
        competitor_id bigint PRIMARY KEY, name text NOT NULL, tags text[] NOT NULL, color text NOT NULL,
        level int NOT NULL, lft int NOT NULL, rgt int NOT NULL, created_at text NOT NULL, updated_at text NOT NULL
    );
    CREATE TABLE enrolment (
        ranking_id bigint NOT NULL, number int NOT NULL, competitor_id bigint NOT NULL,
        PRIMARY KEY (ranking_id, number)
    );
    CREATE TABLE total (
        unity_id bigint NOT NULL, competitor_id bigint NOT NULL, number int NOT NULL,
        total bigint NOT NULL DEFAULT 0, changes bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (unity_id, competitor_id)
    ) WITH (fillfactor = 50);
    CREATE TABLE history (
        history_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, unity_id bigint NOT NULL,
        competitor_id bigint NOT NULL, competition_id bigint, delta bigint NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX ON history (competitor_id, unity_id);
"""
_RANKING: Final = """
    SELECT r.name, r.description, r.closed_at
    FROM ranking AS r
    JOIN tournament AS t ON t.tournament_id = r.tournament_id
    WHERE t.slug = $1 AND r.ranking_id = $2
"""
_RECORD: Final = """
    INSERT INTO history (unity_id, competitor_id, competition_id, delta)
    SELECT d.unity_id, d.competitor_id, $4, d.delta
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS d (unity_id, competitor_id, delta)
"""
_ADD: Final = """
    UPDATE total
    SET total = total + $3, changes = changes + 1
    WHERE unity_id = $1 AND competitor_id = $2
"""
_STANDINGS: Final = """
    SELECT u.unity_id, u.name, u.number = 1 AS general, s.competitor_id, s.total, s.changes,
        rank() OVER (PARTITION BY s.unity_id ORDER BY s.total DESC) AS position
    FROM unity AS u
    JOIN total AS s ON s.unity_id = u.unity_id
    WHERE u.ranking_id = $1
    ORDER BY u.number, position, s.number
"""
_COMPETITORS: Final = """
    SELECT c.competitor_id AS id, c.name, c.tags, c.color, c.level, c.lft, c.rgt, c.created_at, c.updated_at
    FROM enrolment AS e
    JOIN competitor AS c ON c.competitor_id = e.competitor_id
    WHERE e.ranking_id = $1
    ORDER BY e.number
"""
_RECORDED: Final = "SELECT count(*) FROM history"
_LEDGER: Final = """
    SELECT (SELECT count(*) FROM history) AS recorded,
        NOT EXISTS (
            SELECT
            FROM total AS s
            LEFT JOIN (
                SELECT unity_id, competitor_id, sum(delta) AS total FROM history GROUP BY unity_id, competitor_id
            ) AS h ON h.unity_id = s.unity_id AND h.competitor_id = s.competitor_id
            WHERE s.total <> coalesce(h.total, 0)
        ) AS exact
"""


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[web.Application]:
    async with asyncpg.create_pool(settings.database, min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
        async with pool.acquire() as connection:
            await _fill(connection, settings.rankings)
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        app.router.add_put(
            "/tournament/{tournament}/rankings/{ranking_id}/add.json", lambda r: _add(r, pool, settings.token)
        )
        app.router.add_get("/recorded", lambda _: _recorded(pool))
        app.router.add_get("/ledger", lambda _: _ledger(pool))
        yield app


async def _add(request: web.Request, pool: Pool, token: str) -> web.Response:
    authenticated(request, token)
    form = await request.post()
    deltas = parsed_lines(form)
    competition_id = int(str(form["competition_id"])) if "competition_id" in form else None
    ranking_id = int(request.match_info["ranking_id"])
    async with pool.acquire() as connection, connection.transaction():
        ranking = await connection.fetchrow(_RANKING, request.match_info["tournament"], ranking_id)
        if ranking is None:
            raise web.HTTPNotFound
        if ranking["closed_at"] is not None:
            raise web.HTTPConflict
        await connection.execute(
            _RECORD, [u for _, u, _ in deltas], [c for c, _, _ in deltas], [d for _, _, d in deltas], competition_id
        )
        for competitor_id, unity_id, amount in sorted(deltas):
            if await connection.execute(_ADD, unity_id, competitor_id, amount) != "UPDATE 1":
                raise web.HTTPUnprocessableEntity
        standings = await connection.fetch(_STANDINGS, ranking_id)
        competitors = await connection.fetch(_COMPETITORS, ranking_id)
    return json_response(_shown(ranking_id, ranking, competitors, standings))


def _shown(ranking_id: int, ranking: Any, competitors: list[Any], standings: list[Any]) -> bytes:
    unities: dict[int, dict[str, Any]] = {}
    for row in standings:
        unity = unities.setdefault(
            row["unity_id"],
            {"name": row["name"], "version": 1, "competitors_ranking": [], "general": row["general"]},
        )
        unity["version"] += row["changes"]
        unity["competitors_ranking"].append(
            {"competitor_id": row["competitor_id"], "position": row["position"], "total": row["total"]}
        )
    shown = {
        "id": ranking_id,
        "name": ranking["name"],
        "description": ranking["description"],
        "closed_at": None,
        "competitors": [{**row, "tags": [{"name": tag} for tag in row["tags"]]} for row in competitors],
        "unities": list(unities.values()),
    }
    return msgspec.json.encode({"status": 200, "message": "ok", "ranking": shown})


async def _recorded(pool: Pool) -> web.Response:
    return json_response(msgspec.json.encode(Recorded(await pool.fetchval(_RECORDED))))


async def _ledger(pool: Pool) -> web.Response:
    return json_response(msgspec.json.encode(Ledger(*await pool.fetchrow(_LEDGER))))


# ── Its data ────────────────────────────────────────────────────────────────────────────────────────────

_ADD_TOURNAMENT: Final = "INSERT INTO tournament (tournament_id, slug) VALUES ($1, $2)"
_ADD_RANKING: Final = "INSERT INTO ranking (ranking_id, tournament_id, name) VALUES ($1, $2, $3)"
_ADD_UNITY: Final = "INSERT INTO unity (unity_id, ranking_id, name, number) VALUES ($1, $2, $3, $4)"
_ADD_COMPETITOR: Final = """
    INSERT INTO competitor (competitor_id, name, tags, color, level, lft, rgt, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_ENROL: Final = "INSERT INTO enrolment (ranking_id, number, competitor_id) VALUES ($1, $2, $3)"
_START: Final = """
    INSERT INTO total (unity_id, competitor_id, number)
    SELECT u.unity_id, e.competitor_id, e.number
    FROM enrolment AS e
    JOIN unity AS u ON u.ranking_id = e.ranking_id
"""


async def _fill(connection: Connection, rankings: list[Ranking]) -> None:
    await connection.execute(_SCHEMA)
    for tournament_id, ranking in enumerate(rankings, start=1):
        shown = ranking.shown
        await connection.execute(_ADD_TOURNAMENT, tournament_id, ranking.slug)
        await connection.execute(_ADD_RANKING, shown["id"], tournament_id, shown["name"])
        for number, (unity_id, unity) in enumerate(zip(ranking.unity_ids, shown["unities"], strict=True), start=1):
            await connection.execute(_ADD_UNITY, unity_id, shown["id"], unity["name"], number)
        await connection.executemany(_ADD_COMPETITOR, [_competitor_row(c) for c in shown["competitors"]])
        await connection.executemany(_ENROL, [(shown["id"], n, c["id"]) for n, c in enumerate(shown["competitors"])])
    await connection.execute(_START)
    await connection.execute("VACUUM ANALYZE")


def _competitor_row(c: dict[str, Any]) -> tuple[object, ...]:
    tags = [tag["name"] for tag in c["tags"]]
    return c["id"], c["name"], tags, c["color"], c["level"], c["lft"], c["rgt"], c["created_at"], c["updated_at"]


if __name__ == "__main__":
    main(application)
