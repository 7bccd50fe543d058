"""Raw PostgreSQL, reading: only a plain `SELECT`, through asyncpg, of the rows that a replay reads; or, with `blocks`,
of those that a verification reads, which are events and blocks.

It reads ROWS_PER_SELECT rows at a time, because nobody holds a whole log in memory at once. Figure: events a second.
"""

from typing import Final

import asyncpg
import uvloop
from msgspec import Struct

from benchmarks.service import OWNER_SETTINGS
from benchmarks.trials import Stopwatch, say, told

ROWS_PER_SELECT: Final = 100_000
_ROWS: Final = """
    SELECT sequence, recorded_at, actor, kind, idempotency_key, body
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence
"""
_BLOCKS: Final = """
    SELECT first_sequence, last_sequence, recorded_at, digest, bytes
    FROM block
    WHERE tournament_id = $1 AND last_sequence > $2 AND last_sequence <= $3
    ORDER BY last_sequence
"""


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    tournament_id: int
    blocks: bool = False


async def run(settings: Settings) -> None:
    connection = await asyncpg.connect(settings.database, server_settings=OWNER_SETTINGS)
    await connection.fetch(_ROWS, settings.tournament_id, 0, 1)
    stopwatch = Stopwatch()
    read = 0
    with stopwatch.timing():
        while rows := await connection.fetch(_ROWS, settings.tournament_id, read, read + ROWS_PER_SELECT):
            if settings.blocks:
                await connection.fetch(_BLOCKS, settings.tournament_id, read, read + ROWS_PER_SELECT)
            read += len(rows)
    await connection.close()
    say(events_per_second=read / stopwatch.seconds)


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
