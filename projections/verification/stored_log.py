"""The stored log, for verification: bytes and catalogues, without trust in their content.

Like `engine/log/reading.py`, this is SQL on events and blocks. Unlike that file, it does not fold events, trust a
column that another one could contradict, or raise because of invalid data. PostgreSQL's own functions (never those of
the migrations, which the checked database could have changed) build the text of a block from its events, in the format
of `digest.block_text`. The hashed text is the text that is decoded. A batch comes as one row for each block, not for
each event: this makes a check of the whole log as fast as reading it.

Functions take a connection, as a rule within `one_moment`, and do not translate driver errors.
"""

import re
from collections.abc import AsyncIterator
from collections.abc import Sequence as Items
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final

import msgspec
from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import is_distributed
from engine.domain.terms import ActorId, CompetitorId, Sequence, TournamentId
from engine.log import codec
from engine.log.digest import EventColumns, columns_of

BLOCKS_MAX: Final = 500
BYTES_MAX: Final = 512 * 1024
"""A read ends after this many blocks, or with the block that brings their texts to this many bytes."""
BLOCK_EVENTS_MAX: Final = 250_000
"""Events that are read of one block. The service never writes that many; this bounds how much a false block can make
the verifier read."""
LOOK_SECONDS_MAX: Final = 3_600.0
"""The time limit of one statement here; the service's own statements have some seconds."""

# ── One moment ──────────────────────────────────────────────────────────────────────────────────────────

# A check computes between two statements, and a statement may count millions of rows.
_UNHURRIED: Final = """
    SET LOCAL statement_timeout = '1h';
    SET LOCAL idle_in_transaction_session_timeout = '1h'
"""
# A session at a node then asks the node's own shards, too, over a connection: some statements here cannot do without
# one, and then none in the transaction may.
_ASK_ALL_ALIKE: Final = "SET LOCAL citus.enable_local_execution = off"
_EXPORT: Final = "SELECT pg_export_snapshot()"
_IMPORT: Final = "SET TRANSACTION SNAPSHOT '{}'"
_SNAPSHOT_NAME: Final = re.compile(r"[0-9A-F-]+")


@asynccontextmanager
async def one_moment(connection: Connection, of: str | None = None) -> AsyncIterator[str]:
    """A read-only transaction with one snapshot of the database. Yields the snapshot's name: other transactions that
    pass it as `of` while this one lasts see the same snapshot.

    On a distributed database, it has one snapshot per node, and the name is useless to others."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        if is_distributed(connection):
            await connection.execute(_UNHURRIED)
            await connection.execute(_ASK_ALL_ALIKE)
            yield ""
            return
        if of is not None:
            assert _SNAPSHOT_NAME.fullmatch(of)
            await connection.execute(_IMPORT.format(of))
        await connection.execute(_UNHURRIED)
        name: str = of if of is not None else await connection.fetchval(_EXPORT)
        yield name


# ── One tournament, or many ─────────────────────────────────────────────────────────────────────────────


def for_each(statement: str) -> str:
    """Applies `statement`, which is about the tournament $1, to each of an array of tournaments. Rows begin with the
    tournament. `statement` must have an order or a limit, or else PostgreSQL would turn everything into one join."""
    return f"""
    SELECT a.tournament_id, asked.*
    FROM unnest($1::bigint[]) AS a (tournament_id)
    CROSS JOIN LATERAL ({statement.replace("$1", "a.tournament_id")}) AS asked
"""  # noqa: S608 # a statement that is written down


async def rows_of(
    connection: Connection, one: str, many: str, tournament_ids: Items[TournamentId], *arguments: object
) -> dict[TournamentId, list[Any]]:
    """The rows of the statement `one` by tournament; `many` is it `for_each`. Of a single tournament, `one` is asked,
    because a distributed database refuses the other."""
    if len(tournament_ids) == 1:
        rows = await connection.fetch(one, tournament_ids[0], *arguments, timeout=LOOK_SECONDS_MAX)
        return {tournament_ids[0]: rows} if rows else {}
    found: dict[TournamentId, list[Any]] = {}
    for row in await connection.fetch(many, tournament_ids, *arguments, timeout=LOOK_SECONDS_MAX):
        found.setdefault(row[0], []).append(row[1:])
    return found


# ── Blocks ──────────────────────────────────────────────────────────────────────────────────────────────

# The text is NULL if there are no events. An infinite time has no µs. Bytes are summed as floats: the sum of bigints
# would be numeric, and take a fifteenth of the whole statement.
_BLOCKS: Final = """
    SELECT
        coalesce(b.first_sequence, 0) AS first_sequence, b.last_sequence, coalesce(b.digest, '') AS digest, b.bytes,
        b.log_bytes, e.count, e.lowest, e.highest, e.recorded_us,
        e.earliest = b.recorded_at AND e.latest = b.recorded_at AND e.timed = e.count AS timely,
        e.keys <> 'null' AS keyed,
        convert_to(
            '[' || e.lowest || ',' || e.recorded_us || ',' || e.actors || ',' || e.kinds || ',' || e.keys || ','
                || e.bodies || ']',
            'UTF8'
        ) AS text,
        b.structure_sequence, b.created, b.whole, b.rules, e.personals
    FROM (
        SELECT
            first_sequence, last_sequence, recorded_at, digest, bytes, log_bytes, structure_sequence, created, whole,
            rules,
            sum(bytes::float8) OVER (ORDER BY last_sequence ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
        FROM (
            SELECT
                first_sequence, last_sequence, recorded_at, digest, bytes, log_bytes, structure_sequence, created,
                answers IS NULL AS whole, rules
            FROM block
            WHERE tournament_id = $1 AND last_sequence > $2
            ORDER BY last_sequence
            LIMIT $3
        ) AS following
    ) AS b
    CROSS JOIN LATERAL (
        SELECT
            count(*) AS count,
            min(sequence) AS lowest,
            max(sequence) AS highest,
            min(recorded_at) AS earliest,
            max(recorded_at) AS latest,
            count(recorded_at) AS timed,
            CASE
                WHEN isfinite(min(recorded_at)) THEN (extract(epoch FROM min(recorded_at)) * 1000000)::bigint
                ELSE 0
            END AS recorded_us,
            array_to_json(array_agg(actor))::text AS actors,
            array_to_json(array_agg(kind))::text AS kinds,
            CASE
                WHEN count(idempotency_key) = 0 THEN 'null'
                ELSE array_to_json(array_agg(idempotency_key))::text
            END AS keys,
            array_to_json(array_agg(body))::text AS bodies,
            CASE WHEN count(personal) > 0 THEN array_agg(personal) END AS personals
        FROM (
            SELECT sequence, recorded_at, actor, kind, idempotency_key, body, personal
            FROM event
            WHERE tournament_id = $1 AND sequence BETWEEN b.first_sequence AND b.last_sequence
            ORDER BY sequence
            LIMIT $5
        ) AS of_block
    ) AS e
    WHERE b.bytes_before < $4
    ORDER BY b.last_sequence
"""
_ALL_BLOCKS: Final = for_each(_BLOCKS)
_BLOCK_OF: Final = """
    SELECT last_sequence
    FROM block
    WHERE tournament_id = $1 AND last_sequence < $2
    ORDER BY last_sequence DESC
    LIMIT 1
"""
_DIGEST: Final = "SELECT digest FROM block WHERE tournament_id = $1 AND last_sequence = $2"
_MISSING: Final = """
    SELECT s.sequence
    FROM generate_series($2::bigint, $3::bigint) AS s (sequence)
    WHERE NOT EXISTS (SELECT FROM event AS e WHERE e.tournament_id = $1 AND e.sequence = s.sequence)
    ORDER BY s.sequence
    LIMIT 1
"""
_KEYS: Final = """
    SELECT idempotency_key, sequence
    FROM idempotency
    WHERE tournament_id = $1 AND idempotency_key = ANY($2::text[])
"""
# Uses the index `event_personal`.
_NOT_ERASED: Final = """
    SELECT e.competitor_id::bigint, e.sequence
    FROM (
        SELECT rtrim(split_part(split_part(left(body, 40), ':', 2), ',', 1), '}') COLLATE "C" AS competitor_id, sequence
        FROM event
        WHERE tournament_id = $1 AND personal IS NOT NULL
            AND rtrim(split_part(split_part(left(body, 40), ':', 2), ',', 1), '}') COLLATE "C" = ANY($2::text[])
    ) AS e
    ORDER BY e.sequence
"""


class StoredBlock(Struct, frozen=True):
    """A row of `block`, and the events that are stored between its sequences.

    `size` is the column `bytes`, `log_size` the column `log_bytes`. `count`, `lowest` and `highest` are of the
    sequences that are there. `text` is the text of the events, None if there are none. `timely`: the block and all of
    them have the same time. `keyed`: one of them has an idempotency key. `whole`: all that was sent with it was
    appended. `rules`: the version of the rules that judged it. `personals`: the personal fields of each event; None: no
    event has any.
    """

    first_sequence: Sequence
    last_sequence: Sequence
    digest: bytes
    size: int
    log_size: int
    count: int
    lowest: Sequence | None
    highest: Sequence | None
    recorded_us: int | None
    timely: bool | None
    keyed: bool
    text: bytes | None
    structure_sequence: Sequence | None
    created: list[int] | None
    whole: bool
    rules: int
    personals: list[str | None] | None

    def columns(self) -> EventColumns | None:
        """The content of the text. None: there is no text, or it has a NULL that is not allowed."""
        try:
            return None if self.text is None else columns_of(self.text)
        except msgspec.ValidationError:
            return None

    def texts(self, columns: EventColumns) -> list[str]:
        """The texts of its events: their bodies (those of `columns`) with their personal fields."""
        if self.personals is None:
            return columns.bodies
        return list(map(codec.join, columns.bodies, self.personals))


async def blocks(connection: Connection, tournament_id: TournamentId, after: Sequence) -> list[StoredBlock]:
    """The blocks that end after `after`, in order: BLOCKS_MAX at most, ending with the one that brings their texts to
    BYTES_MAX bytes."""
    return (await blocks_of(connection, [tournament_id], after, BYTES_MAX)).get(tournament_id, [])


async def blocks_of(
    connection: Connection, tournament_ids: Items[TournamentId], after: Sequence, bytes_max: int
) -> dict[TournamentId, list[StoredBlock]]:
    """The blocks of each of the tournaments, as `blocks`, with `bytes_max` instead of BYTES_MAX."""
    bounds = after, BLOCKS_MAX, bytes_max, BLOCK_EVENTS_MAX
    found = await rows_of(connection, _BLOCKS, _ALL_BLOCKS, tournament_ids, *bounds)
    return {tournament_id: [StoredBlock(*row) for row in rows] for tournament_id, rows in found.items()}


async def end_before(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Sequence:
    """The end of the last block that ends before `sequence`; 0: there is none."""
    return Sequence(await connection.fetchval(_BLOCK_OF, tournament_id, sequence) or 0)


async def digest_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> bytes | None:
    """The stored digest of the block that ends at `sequence`; None: no block does."""
    digest: bytes | None = await connection.fetchval(_DIGEST, tournament_id, sequence)
    return digest


async def missing(
    connection: Connection, tournament_id: TournamentId, first: Sequence, last: Sequence
) -> Sequence | None:
    """The first sequence from `first` to `last` that no event has, not looking beyond `first` + BLOCK_EVENTS_MAX. None:
    events have all of them."""
    upto = min(last, first + BLOCK_EVENTS_MAX)
    sequence: Sequence | None = await connection.fetchval(
        _MISSING, tournament_id, first, upto, timeout=LOOK_SECONDS_MAX
    )
    return sequence


async def not_erased(
    connection: Connection, tournament_id: TournamentId, competitor_ids: Items[CompetitorId]
) -> list[tuple[CompetitorId, Sequence]]:
    """The events that have personal fields of these competitors, with the competitor."""
    asked = [str(competitor_id) for competitor_id in competitor_ids]
    rows = await connection.fetch(_NOT_ERASED, tournament_id, asked, timeout=LOOK_SECONDS_MAX)
    return [tuple(row) for row in rows]


async def key_sequences(connection: Connection, tournament_id: TournamentId, keys: Items[str]) -> dict[str, Sequence]:
    """The sequences that are remembered for these idempotency keys; keys that are not remembered are left out."""
    return {row[0]: row[1] for row in await connection.fetch(_KEYS, tournament_id, keys)} if keys else {}


# ── What is stored next to the blocks ───────────────────────────────────────────────────────────────────

_OUT_OF_RANGE: Final = """
    SELECT
        (SELECT min(sequence) FROM event WHERE tournament_id = $1 AND sequence > b.last) AS event_beyond,
        (SELECT min(sequence) FROM event WHERE tournament_id = $1 AND sequence < 1) AS event_before,
        (SELECT min(last_sequence) FROM block WHERE tournament_id = $1 AND last_sequence < 1) AS block_before
    FROM (SELECT greatest(max(last_sequence), 0) AS last FROM block WHERE tournament_id = $1) AS b
"""
_ALL_OUT_OF_RANGE: Final = for_each(_OUT_OF_RANGE)
# The second is spelled like the index `event_competition`, by which voiding finds points.
_COUNTS: Final = """
    SELECT
        (SELECT count(*) FROM idempotency WHERE tournament_id = $1) AS keys,
        (
            SELECT count(*)
            FROM event
            WHERE tournament_id = $1
                AND sequence BETWEEN 1 AND (SELECT max(last_sequence) FROM block WHERE tournament_id = $1)
                AND kind IN ('PointsAdded', 'PointsReversed') AND strpos(left(body, 80), '"competition_id":') > 0
        ) AS caused
"""
_ALL_COUNTS: Final = for_each(_COUNTS)
_ALL_KEYS: Final = """
    SELECT tournament_id, idempotency_key, sequence
    FROM idempotency
    WHERE tournament_id = ANY($1::bigint[])
    LIMIT $2
"""
_IGNORED: Final = "SELECT tournament_id, sequence FROM set_aside WHERE tournament_id = ANY($1::bigint[])"


class OutOfRange(Struct, frozen=True):
    """The first sequences beyond the last block or before 1. None: there are none."""

    event_beyond: Sequence | None
    event_before: Sequence | None
    block_before: Sequence | None


async def out_of_range(connection: Connection, tournament_ids: Items[TournamentId]) -> dict[TournamentId, OutOfRange]:
    """What is stored of each of the tournaments before 1, or beyond the end of its last block."""
    found = await rows_of(connection, _OUT_OF_RANGE, _ALL_OUT_OF_RANGE, tournament_ids)
    return {tournament_id: OutOfRange(*rows[0]) for tournament_id, rows in found.items()}


async def counts(connection: Connection, tournament_ids: Items[TournamentId]) -> dict[TournamentId, tuple[int, int]]:
    """How many idempotency keys each of the tournaments has, and how many events up to its last block in the index of
    points that competitions caused."""
    found = await rows_of(connection, _COUNTS, _ALL_COUNTS, tournament_ids)
    return {tournament_id: (keys, caused) for tournament_id, ((keys, caused),) in found.items()}


async def all_keys(
    connection: Connection, tournament_ids: Items[TournamentId], limit: int
) -> dict[TournamentId, dict[str, Sequence]]:
    """The idempotency keys that are remembered for the tournaments, and the sequence of each; `limit` of them."""
    found: dict[TournamentId, dict[str, Sequence]] = {}
    for tournament_id, key, sequence in await connection.fetch(
        _ALL_KEYS, tournament_ids, limit, timeout=LOOK_SECONDS_MAX
    ):
        found.setdefault(tournament_id, {})[key] = sequence
    return found


async def ignored(
    connection: Connection, tournament_ids: Items[TournamentId]
) -> dict[TournamentId, frozenset[Sequence]]:
    """The events that the database tells the service to ignore."""
    found: dict[TournamentId, list[Sequence]] = {}
    for tournament_id, sequence in await connection.fetch(_IGNORED, tournament_ids, timeout=LOOK_SECONDS_MAX):
        found.setdefault(tournament_id, []).append(sequence)
    return {tournament_id: frozenset(sequences) for tournament_id, sequences in found.items()}


_STORED_EVENT: Final = """
    SELECT b.digest, e.recorded_at, e.actor, e.kind, e.body
    FROM event AS e
    CROSS JOIN LATERAL (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= e.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE e.tournament_id = $1 AND e.sequence = $2
"""


class StoredEvent(Struct, frozen=True):
    """An event as it is stored, without its key, and the digest of the block that holds it."""

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    kind: str
    body: str
    digest: bytes


async def stored_event(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> StoredEvent | None:
    """The event with this sequence; None: there is none, or no block that holds it."""
    row = await connection.fetchrow(_STORED_EVENT, tournament_id, sequence)
    return None if row is None else StoredEvent(sequence, row[1], row[2], row[3], row[4], row[0])


# ── Heads and the registry ──────────────────────────────────────────────────────────────────────────────

_REGISTERED: Final = """
    SELECT
        t.tournament_id, t.slug, t.name, l.tournament_id IS NOT NULL, b.last_sequence, b.digest,
        CASE WHEN b.recorded_at BETWEEN '0001-01-01Z' AND '9999-12-31 23:59:59.999999Z' THEN b.recorded_at END,
        l.refusals, (SELECT max(number) FROM refusal WHERE tournament_id = t.tournament_id) AS last_refusal
    FROM tournament AS t
    LEFT JOIN append_lock AS l ON l.tournament_id = t.tournament_id
    LEFT JOIN LATERAL (
        SELECT last_sequence, recorded_at, digest
        FROM block
        WHERE tournament_id = t.tournament_id
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS b ON true
    ORDER BY t.tournament_id
"""
# On a distributed database, the registry is read where the connection leads, and the log on its node. A node would
# answer a join of both from its own copy of the registry, which, after a restore of the node, lacks the same
# tournaments as its log.
_REGISTRY: Final = """
    SELECT tournament_id, slug, name
    FROM tournament
    WHERE $1::bigint IS NULL OR tournament_id = $1
    ORDER BY tournament_id
"""
_LOG_OF_ONE: Final = """
    SELECT
        l.tournament_id IS NOT NULL, b.last_sequence, b.digest,
        CASE WHEN b.recorded_at BETWEEN '0001-01-01Z' AND '9999-12-31 23:59:59.999999Z' THEN b.recorded_at END,
        l.refusals, (SELECT max(number) FROM refusal WHERE tournament_id = $1) AS last_refusal
    FROM (SELECT $1::bigint AS tournament_id) AS t
    LEFT JOIN append_lock AS l ON l.tournament_id = $1
    LEFT JOIN LATERAL (
        SELECT last_sequence, recorded_at, digest
        FROM block
        WHERE tournament_id = $1
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS b ON true
"""


class RegisteredTournament(Struct, frozen=True):
    """What the registry says of a tournament, and its last block, whose fields are None if there is none. `locked`: it
    has a row in `append_lock`. `refusals`: how many that row counts; `last_refusal`: the highest number that a refused
    key has."""

    tournament_id: TournamentId
    slug: str
    name: str
    locked: bool
    sequence: Sequence | None
    digest: bytes | None
    recorded_at: datetime | None
    refusals: int | None
    last_refusal: int | None


async def registered_tournaments(
    connection: Connection, tournament_id: TournamentId | None = None
) -> list[RegisteredTournament]:
    """All registered tournaments, or the one with this id; by ascending id. On a distributed database, each has a
    snapshot of its own."""
    if tournament_id is None and not is_distributed(connection):
        rows = await connection.fetch(_REGISTERED, timeout=LOOK_SECONDS_MAX)
    else:
        rows = [
            (*entry, *await connection.fetchrow(_LOG_OF_ONE, entry[0], timeout=LOOK_SECONDS_MAX))
            for entry in await connection.fetch(_REGISTRY, tournament_id)
        ]
    return [RegisteredTournament(*row) for row in rows]
