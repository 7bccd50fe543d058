"""Raw PostgreSQL, reading: only a plain `SELECT`, through asyncpg, of the events that a replay reads, a row each; or,
with `blocks`, of those and their blocks, as a verification reads them. The rows are those of `peers/rows.py`.

It reads ROWS_PER_SELECT rows at a time, because nobody holds a whole log in memory at once. Figure: events a second.
"""

from typing import Final

import asyncpg
import uvloop
from msgspec import Struct

from benchmarks.peers.rows import BLOCKS, EVENTS, fill
from benchmarks.service import OWNER_SETTINGS
from benchmarks.trials import Stopwatch, say, told

ROWS_PER_SELECT: Final = 100_000
_ROWS: Final = f"""
    SELECT sequence, recorded_at, actor, kind, idempotency_key, body
    FROM {EVENTS}
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence
"""
_BLOCKS: Final = f"""
    SELECT first_sequence, last_sequence, recorded_at, digest, bytes
    FROM {BLOCKS}
    WHERE tournament_id = $1 AND last_sequence > $2 AND last_sequence <= $3
    ORDER BY last_sequence
"""


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    tournament_id: int
    blocks: bool = False


async def run(settings: Settings) -> None:
    connection = await asyncpg.connect(settings.database, server_settings=OWNER_SETTINGS)
    await fill(connection, settings.tournament_id)
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
