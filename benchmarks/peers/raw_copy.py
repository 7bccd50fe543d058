"""Raw PostgreSQL, writing: `COPY` of the rows that the product appended, into a table like the product's.

The table has the same columns and primary key. The rows are the same, in the same order and in commits of the same
size, over one connection; no function, no chain, no block, no head. They are in memory beforehand. Figure: events a
second.
"""

from typing import Final

import asyncpg
import uvloop
from msgspec import Struct

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
_CREATE: Final = "CREATE TABLE public.copied (LIKE tallybook.event INCLUDING ALL)"


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
