"""The log as rows of the peers' own.

The product keeps a block in one row. Peers are measured with a row for each event and one for each block: the columns,
keys and indexes that the product's tables had when it kept events like this, so that ratios to them stay comparable.
"""

from typing import Final

import asyncpg

EVENTS: Final = "public.event_row"
BLOCKS: Final = "public.block_row"
CREATE_EVENTS: Final = """
    CREATE TABLE {0} (
        tournament_id   bigint NOT NULL,
        sequence        bigint NOT NULL,
        recorded_at     timestamptz NOT NULL,
        actor           bigint NOT NULL,
        kind            text NOT NULL,
        idempotency_key text,
        body            text NOT NULL,
        personal        text,
        PRIMARY KEY (tournament_id, sequence)
    );
    ALTER TABLE {0} ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE INDEX ON {0} (tournament_id, sequence) WHERE kind = 'EventSetAside';
    CREATE INDEX ON {0} (tournament_id, sequence) WHERE kind = 'TournamentRenamed';
    CREATE INDEX ON {0} (
        tournament_id,
        (rtrim(left(split_part(split_part(left(body, 80), '"competition_id":', 2), ',', 1), 20), '}}') COLLATE "C"),
        sequence
    ) WHERE kind IN ('PointsAdded', 'PointsReversed') AND strpos(left(body, 80), '"competition_id":') > 0;
    CREATE INDEX ON {0} (tournament_id, sequence) WHERE kind = 'PointsReversed';
    CREATE INDEX ON {0} (
        tournament_id, (rtrim(split_part(split_part(left(body, 40), ':', 2), ',', 1), '}}') COLLATE "C")
    ) WHERE personal IS NOT NULL;
    CREATE INDEX ON {0} (tournament_id, sequence) WHERE kind = 'CompetitorErased';
"""
_CREATE_BLOCKS: Final = """
    CREATE TABLE {0} (
        tournament_id      bigint NOT NULL,
        last_sequence      bigint NOT NULL,
        first_sequence     bigint NOT NULL,
        recorded_at        timestamptz NOT NULL,
        digest             bytea NOT NULL,
        bytes              bigint NOT NULL,
        append_id          uuid NOT NULL,
        answers            bigint[],
        structure_sequence bigint,
        created            bigint[],
        rules              smallint NOT NULL DEFAULT 1,
        PRIMARY KEY (tournament_id, last_sequence)
    );
"""
_EXISTS: Final = "SELECT to_regclass($1) IS NOT NULL"
_HAS: Final = f"SELECT EXISTS (SELECT FROM {EVENTS} WHERE tournament_id = $1)"
_FILL_EVENTS: Final = f"""
    INSERT INTO {EVENTS} (tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body, personal)
    SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body, personal
    FROM tallybook.event
    WHERE tournament_id = $1
    ORDER BY sequence
"""
_FILL_BLOCKS: Final = f"""
    INSERT INTO {BLOCKS} (
        tournament_id, last_sequence, first_sequence, recorded_at, digest, bytes, append_id, answers,
        structure_sequence, created, rules
    )
    SELECT
        tournament_id, last_sequence, first_sequence, recorded_at, digest, octet_length(text), append_id, answers,
        structure_sequence, created, rules
    FROM tallybook.block
    WHERE tournament_id = $1
    ORDER BY last_sequence
"""


async def fill(connection: asyncpg.Connection, tournament_id: int) -> None:
    """Has the tournament's events and blocks as rows, vacuumed and on disk."""
    if not await connection.fetchval(_EXISTS, EVENTS):
        await connection.execute(CREATE_EVENTS.format(EVENTS))
        await connection.execute(_CREATE_BLOCKS.format(BLOCKS))
    if await connection.fetchval(_HAS, tournament_id):
        return
    async with connection.transaction():
        await connection.execute(_FILL_EVENTS, tournament_id)
        await connection.execute(_FILL_BLOCKS, tournament_id)
    for table in (EVENTS, BLOCKS):
        await connection.execute(f"VACUUM (ANALYZE) {table}")
    await connection.execute("CHECKPOINT")
