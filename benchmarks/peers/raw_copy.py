"""Raw PostgreSQL, writing: `COPY` of the events that the product appended, a row each.

The table has the columns, primary key and indexes of `peers/rows.py`. The events are the same, in the same order and in
commits of the same size, over one connection; no function, no chain, no block, no head. They are in memory beforehand.
Figure: events a second.
"""

from typing import Final

import asyncpg
import uvloop
from msgspec import Struct

from benchmarks.peers.rows import CREATE_EVENTS
from benchmarks.service import OWNER_SETTINGS
from benchmarks.trials import Stopwatch, say, told

COLUMNS: Final = ("tournament_id", "sequence", "recorded_at", "actor", "kind", "idempotency_key", "body")
TABLE: Final = "copied"
_ROWS: Final = """
    SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body
    FROM event
    WHERE tournament_id = $1 AND kind = 'PointsAdded'
    ORDER BY sequence
"""
_DROP: Final = "DROP TABLE IF EXISTS public.copied"
_CREATE: Final = CREATE_EVENTS.format("public.copied")


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    tournament_id: int
    size: int


async def run(settings: Settings) -> None:
    connection = await asyncpg.connect(settings.database, server_settings=OWNER_SETTINGS)
    rows = [tuple(row) for row in await connection.fetch(_ROWS, settings.tournament_id)]
    commits = [rows[start : start + settings.size] for start in range(0, len(rows), settings.size)]
    await connection.execute(_DROP)
    await connection.execute(_CREATE)
    await connection.execute("CHECKPOINT")
    stopwatch = Stopwatch()
    with stopwatch.timing():
        for records in commits:
            await connection.copy_records_to_table(TABLE, schema_name="public", columns=COLUMNS, records=records)
    await connection.close()
    say(events_per_second=len(rows) / stopwatch.seconds)


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
