"""A leaderboard as a table: an index on the total, `UPDATE` for points and `count(*)` for the rank, behind aiohttp.

It keeps no history. It is tuned fairly: a pool of the best size, statements prepared once per connection (asyncpg's
cache), one statement and no transaction block for a change, one statement for a window, and an index that answers
counts and windows without reading the table.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg
from aiohttp import web
from asyncpg import Pool

from benchmarks.peers.leaderboards import Line, leaderboard
from benchmarks.peers.serving import Settings, main

CONNECTIONS: Final = 16

_SCHEMA: Final = """
    CREATE TABLE board (
        member bigint PRIMARY KEY, total bigint NOT NULL, changes bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 80)
"""
_INDEX: Final = "CREATE INDEX ON board (total DESC, member)"
_ADD: Final = "UPDATE board SET total = total + $2, changes = changes + 1 WHERE member = $1"
_TOP: Final = """
    SELECT rank() OVER (ORDER BY total DESC) AS position, member, total
    FROM (SELECT member, total FROM board ORDER BY total DESC, member LIMIT $1) AS first
    ORDER BY total DESC, member
"""
_AROUND: Final = """
    WITH me AS (SELECT member, total FROM board WHERE member = $1),
    above AS (
        SELECT b.member, b.total
        FROM me
        CROSS JOIN LATERAL (
            SELECT member, total
            FROM board
            WHERE total >= me.total AND (total > me.total OR member < me.member)
            ORDER BY total, member DESC
            LIMIT $2
        ) AS b
    ),
    below AS (
        SELECT b.member, b.total
        FROM me
        CROSS JOIN LATERAL (
            SELECT member, total
            FROM board
            WHERE total <= me.total AND (total < me.total OR member > me.member)
            ORDER BY total DESC, member
            LIMIT $2
        ) AS b
    ),
    lines AS (SELECT * FROM above UNION ALL SELECT * FROM me UNION ALL SELECT * FROM below)
    SELECT
        (SELECT count(*) FROM board WHERE total > (SELECT max(total) FROM lines))
            + rank() OVER (ORDER BY total DESC) AS position,
        member, total
    FROM lines
    ORDER BY total DESC, member
"""
_RECORDED: Final = "SELECT coalesce(sum(changes), 0)::bigint FROM board"


class Table:
    """The store."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, member: int, amount: int) -> None:
        if await self._pool.execute(_ADD, member, amount) != "UPDATE 1":
            raise web.HTTPUnprocessableEntity

    async def around(self, member: int, span: int) -> list[Line]:
        return [Line(*row) for row in await self._pool.fetch(_AROUND, member, span)]

    async def top(self, count: int) -> list[Line]:
        return [Line(*row) for row in await self._pool.fetch(_TOP, count)]

    async def recorded(self) -> int:
        return int(await self._pool.fetchval(_RECORDED))


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[web.Application]:
    async with asyncpg.create_pool(settings.database, min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
        async with pool.acquire() as connection:
            await connection.execute(_SCHEMA)
            await connection.copy_records_to_table("board", records=settings.members, columns=["member", "total"])
            await connection.execute(_INDEX)
            await connection.execute("VACUUM ANALYZE board")
        yield leaderboard(settings, Table(pool))


if __name__ == "__main__":
    main(application)
