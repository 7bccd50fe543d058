"""Where a log stands: its head, the block around an event, the last event at a moment, and the time of the database.

Functions take a connection and do not translate driver errors: readers use `pool.unavailable`.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import is_distributed, keep_in_place
from engine.database.sessions import refuse_balanced, refuse_standby
from engine.domain.errors import LogForked
from engine.domain.terms import Sequence, TournamentId
from engine.log import digest

# The head is the last block. The view `head` would find it by way of another table. That a standby answers shows in the
# same statement, because a balancer may send each to another server. Asked next to the tournament, it would be asked of
# each of its blocks, which are then sorted, where the plan is of a time when there were few.
_HEAD: Final = """
    SELECT last_sequence, digest
    FROM (
        SELECT last_sequence, digest
        FROM block
        WHERE tournament_id = $1
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS head
    WHERE NOT pg_is_in_recovery()
"""
# Not for one tournament: it takes twice as long, and a distributed database refuses it.
_HEADS: Final = """
    SELECT a.tournament_id, b.last_sequence, b.digest, pg_is_in_recovery()
    FROM unnest($1::bigint[]) AS a (tournament_id)
    LEFT JOIN LATERAL (
        SELECT last_sequence, digest
        FROM block
        WHERE tournament_id = a.tournament_id
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS b ON true
"""
_PREPARED: Final = "SELECT EXISTS (SELECT FROM pg_prepared_xacts WHERE database = current_database())"
_LOG_BYTES: Final = """
    SELECT tournament_id, log_bytes
    FROM block
    WHERE tournament_id = $1
    ORDER BY last_sequence DESC
    LIMIT 1
"""
_LOGS_BYTES: Final = """
    SELECT a.tournament_id, b.log_bytes
    FROM unnest($1::bigint[]) AS a (tournament_id)
    LEFT JOIN LATERAL (
        SELECT log_bytes
        FROM block
        WHERE tournament_id = a.tournament_id
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS b ON true
"""
_NOW: Final = "SELECT clock_timestamp()"
# Finds the last sequence at or before the moment by bisection: within one log, the time never decreases.
_LAST_AT: Final = """
    WITH RECURSIVE search (low, high) AS (
        SELECT 0::bigint, $2::bigint
        UNION ALL
        SELECT
            CASE WHEN b.recorded_at <= $3 THEN least(b.last_sequence, $2) ELSE s.low END,
            CASE WHEN b.recorded_at <= $3 THEN s.high ELSE b.first_sequence - 1 END
        FROM search AS s
        CROSS JOIN LATERAL (
            SELECT first_sequence, last_sequence, recorded_at
            FROM block
            WHERE tournament_id = $1 AND last_sequence >= (s.low + s.high + 1) / 2
            ORDER BY last_sequence
            LIMIT 1
        ) AS b
        WHERE s.low < s.high AND b.first_sequence <= (s.low + s.high + 1) / 2
    )
    SELECT low FROM search WHERE low = high
"""
_BLOCK_DIGEST: Final = "SELECT digest FROM block WHERE tournament_id = $1 AND last_sequence = $2"
_BLOCK_AROUND: Final = """
    SELECT digest, recorded_at
    FROM block
    WHERE tournament_id = $1 AND last_sequence >= $2
    ORDER BY last_sequence
    LIMIT 1
"""


class Head(Struct, frozen=True):
    """The last sequence of a tournament, and the digest of its last block."""

    sequence: Sequence
    digest: bytes


def beginning(tournament_id: TournamentId) -> Head:
    """The head before the first event of a log."""
    return Head(Sequence(0), digest.genesis(tournament_id))


async def current(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Head]:
    """The head of each tournament that exists, at a moment during the call. On a plain database, that is the same
    moment for all. Raises SessionUnfit if a standby has answered."""
    if len(tournament_ids) == 1:
        (tournament_id,) = tournament_ids
        row = await connection.fetchrow(_HEAD, tournament_id)
        if row is not None:
            return {tournament_id: Head(*row)}
        if is_distributed(connection):
            await refuse_balanced(connection)
            return {}
    elif is_distributed(connection):
        return {one: head for each in tournament_ids for one, head in (await current(connection, [each])).items()}
    found = {}
    for tournament_id, sequence, digest_, is_of_standby in await connection.fetch(_HEADS, list(tournament_ids)):
        if is_of_standby:
            refuse_standby(connection)
        if sequence is not None:
            found[tournament_id] = Head(sequence, digest_)
    return found


async def after_moves(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Head]:
    """As `current`, of a distributed database. If a shard has moved, its old node may not know that yet, and what it
    has is out of date. The move is prepared there until then, and this waits for it."""
    if await connection.fetchval(_PREPARED):
        await keep_in_place(connection, tournament_ids)
    return await current(connection, tournament_ids)


async def log_bytes(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, int]:
    """The stored bytes of the log of each tournament that exists."""
    if is_distributed(connection):
        rows = [row for one in tournament_ids for row in await connection.fetch(_LOG_BYTES, one)]
    else:
        rows = await connection.fetch(_LOGS_BYTES, list(tournament_ids))
    return {tournament_id: size for tournament_id, size in map(tuple, rows) if size is not None}


async def now(connection: Connection) -> datetime:
    """The time of the database."""
    moment: datetime = await connection.fetchval(_NOW)
    return moment


async def has(connection: Connection, tournament_id: TournamentId, head: Head) -> bool:
    """Whether the log has a block that ends in exactly this head."""
    digest_: bytes | None = await connection.fetchval(_BLOCK_DIGEST, tournament_id, head.sequence)
    return digest_ == head.digest


async def block_around(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence
) -> tuple[bytes, datetime] | None:
    """The digest of the block that holds the event `sequence`, and when it was recorded; None: the log ends before
    it."""
    row = await connection.fetchrow(_BLOCK_AROUND, tournament_id, sequence)
    return None if row is None else (row["digest"], row["recorded_at"])


async def last_at(connection: Connection, tournament_id: TournamentId, moment: datetime, upto: Sequence) -> Sequence:
    """The last sequence, up to `upto`, of an event recorded at or before `moment` (UTC); 0: there is none.

    Raises LogForked if an event that the search looks at is missing.
    """
    sequence: Sequence | None = await connection.fetchval(_LAST_AT, tournament_id, upto, moment)
    if sequence is None:
        raise LogForked(tournament_id, upto)
    return sequence
