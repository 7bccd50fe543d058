"""The stored log, for verification: bytes and catalogues, without trust in their content.

Like `engine/log/reading.py`, this is SQL on blocks. Unlike that file, it does not fold events, trust a column that
another one could contradict, or raise because of invalid data. PostgreSQL's own functions (never those of the
migrations, which the checked database could have changed) make what is hashed of a block. The hashed text is the text
that is decoded.

Functions take a connection, as a rule within `one_moment`, and do not translate driver errors.
"""

import re
from collections.abc import AsyncIterator, Iterator
from collections.abc import Sequence as Items
from contextlib import asynccontextmanager
from datetime import datetime
from hashlib import md5
from typing import Any, Final

import msgspec
from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import is_distributed
from engine.domain.events import Event
from engine.domain.terms import ActorId, CompetitorId, Sequence, TournamentId
from engine.log import codec
from engine.log.codec import BlockContent, LogEntry, are_plain, regular_entries

BLOCKS_MAX: Final = 500
BYTES_MAX: Final = 512 * 1024
"""A read ends after this many blocks, or with the block that brings their texts to this many bytes."""
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

# The text is NULL if the block has no finite time. Bytes are summed as floats: the sum of bigints would be numeric.
_BLOCKS: Final = """
    SELECT
        coalesce(b.first_sequence, 0) AS first_sequence, b.last_sequence, coalesce(b.digest, '') AS digest,
        CASE WHEN isfinite(b.recorded_at) THEN convert_to(
            b.first_sequence || ' ' || (extract(epoch FROM b.recorded_at) * 1000000)::bigint || chr(10) || b.text,
            'UTF8'
        ) END AS text,
        CASE WHEN isfinite(b.recorded_at) THEN (extract(epoch FROM b.recorded_at) * 1000000)::bigint END AS recorded_us,
        b.log_bytes, b.structure_sequence, b.created, b.whole, b.rules, b.personal,
        CASE WHEN b.personal THEN (
            SELECT json_agg(json_build_array(p.sequence, p.competitor_id, p.text))::text
            FROM personal AS p
            WHERE p.tournament_id = $1 AND p.sequence BETWEEN b.first_sequence AND b.last_sequence
        ) END AS personals
    FROM (
        SELECT
            *, answers IS NULL AS whole,
            coalesce(
                sum(octet_length(text)::float8) OVER (
                    ORDER BY last_sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ),
                0
            ) AS bytes_before
        FROM (
            SELECT *
            FROM block
            WHERE tournament_id = $1 AND last_sequence > $2
            ORDER BY last_sequence
            LIMIT $3
        ) AS following
    ) AS b
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
_KEYS: Final = """
    SELECT idempotency_key, sequence
    FROM idempotency
    WHERE tournament_id = $1 AND idempotency_key = ANY($2::text[])
"""
_NOT_ERASED: Final = """
    SELECT competitor_id, sequence
    FROM personal
    WHERE tournament_id = $1 AND competitor_id = ANY($2::bigint[])
    ORDER BY sequence
"""


class StoredPersonal(Struct, frozen=True, array_like=True):
    """Personal fields of an event, and the competitor by whom they are found."""

    sequence: Sequence
    competitor_id: CompetitorId
    text: str


class StoredBlock(Struct, frozen=True, gc=False):
    """A row of `block`, and the personal fields of its events.

    `text` is what is hashed, None if its time is infinite. `log_size` is the column `log_bytes`. `whole`: all that was
    sent with it was appended. `rules`: the version of the rules that judged it. `personal`: it says that its events had
    personal fields. `personals`: these, as JSON; None: they were erased, or there were none.
    """

    first_sequence: Sequence
    last_sequence: Sequence
    digest: bytes
    text: bytes | None
    recorded_us: int | None
    log_size: int
    structure_sequence: Sequence
    created: list[int] | None
    whole: bool
    rules: int
    personal: bool
    personals: str | None

    @property
    def personal_size(self) -> int:
        """Bytes of its personal fields."""
        return sum([len(one.text.encode()) for one in self.personal_fields().values()])

    @property
    def lines(self) -> bytes:
        """The lines of the text; empty if there is none."""
        return b"" if self.text is None else self.text[self.text.index(b"\n") + 1 :]

    def content(self, entries: list[LogEntry] | None = None) -> BlockContent | None:
        """The content of the text, if there is one. `entries`: its lines, if they are decoded."""
        if self.text is None or self.recorded_us is None:
            return None
        return BlockContent(self.first_sequence, self.recorded_us, self.lines, entries)

    def is_whole(self, count: int) -> bool:
        """Whether it has a text and a time, `count` events, and no personal fields."""
        return (
            self.recorded_us is not None
            and self.personals is None
            and self.last_sequence - self.first_sequence + 1 == count
        )

    def personal_fields(self) -> dict[Sequence, StoredPersonal]:
        """The personal fields of its events, by their sequences."""
        if self.personals is None:
            return {}
        return {one.sequence: one for one in _decode_personals(self.personals)}

    def texts(self, content: BlockContent) -> list[str]:
        """The texts of its events: their bodies (those of `content`) with their personal fields."""
        personals = self.personal_fields()
        return [
            parts.body if (own := personals.get(Sequence(number))) is None else codec.join(parts.body, own.text)
            for number, parts in enumerate(content.parts, self.first_sequence)
        ]


class BlockRun(Struct, frozen=True):
    """Blocks that follow each other. `plain`: their events, all of which are points with nothing but a ranking and
    deltas. Otherwise it is empty, and there is one block, with its `content`, if there is any."""

    blocks: list[StoredBlock]
    plain: list[Event]
    content: BlockContent | None = None

    @property
    def size(self) -> int:
        return sum([len(block.text or b"") for block in self.blocks])


def runs(blocks: Items[StoredBlock], bytes_max: int) -> Iterator[BlockRun]:
    """These blocks, in order, in runs of some `bytes_max`. They are decoded in one step."""
    lines = [block.lines for block in blocks]
    joined = b"\n".join(lines)
    entries = regular_entries(joined)
    all_plain = entries is not None and are_plain(joined, len(entries))
    together: list[StoredBlock] = []
    plain: list[Event] = []
    size = at = 0
    for block, its in zip(blocks, lines, strict=True):
        count = its.count(b"\n") + 1
        found = None if entries is None else entries[at : at + count]
        at += count
        if found is not None and (all_plain or are_plain(its, count)) and block.is_whole(count):
            if together and (together[-1].last_sequence + 1 != block.first_sequence or size >= bytes_max):
                yield BlockRun(together, plain)
                together, plain, size = [], [], 0
            together.append(block)
            plain += [entry.event for entry in found]
            size += len(its)
            continue
        if together:
            yield BlockRun(together, plain)
            together, plain, size = [], [], 0
        yield BlockRun([block], [], block.content(found))
    if together:
        yield BlockRun(together, plain)


_decode_personals: Final = msgspec.json.Decoder(list[StoredPersonal]).decode


async def blocks(connection: Connection, tournament_id: TournamentId, after: Sequence) -> list[StoredBlock]:
    """The blocks that end after `after`, in order: BLOCKS_MAX at most, ending with the one that brings their texts to
    BYTES_MAX bytes."""
    return (await blocks_of(connection, [tournament_id], after, BYTES_MAX)).get(tournament_id, [])


async def blocks_of(
    connection: Connection, tournament_ids: Items[TournamentId], after: Sequence, bytes_max: int
) -> dict[TournamentId, list[StoredBlock]]:
    """The blocks of each of the tournaments, as `blocks`, with `bytes_max` instead of BYTES_MAX."""
    bounds = after, BLOCKS_MAX, bytes_max
    found = await rows_of(connection, _BLOCKS, _ALL_BLOCKS, tournament_ids, *bounds)
    return {tournament_id: [StoredBlock(*row) for row in rows] for tournament_id, rows in found.items()}


async def end_before(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Sequence:
    """The end of the last block that ends before `sequence`; 0: there is none."""
    return Sequence(await connection.fetchval(_BLOCK_OF, tournament_id, sequence) or 0)


async def digest_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> bytes | None:
    """The stored digest of the block that ends at `sequence`; None: no block does."""
    digest: bytes | None = await connection.fetchval(_DIGEST, tournament_id, sequence)
    return digest


async def not_erased(
    connection: Connection, tournament_id: TournamentId, competitor_ids: Items[CompetitorId]
) -> list[tuple[CompetitorId, Sequence]]:
    """The events that have personal fields of these competitors, with the competitor."""
    rows = await connection.fetch(_NOT_ERASED, tournament_id, competitor_ids, timeout=LOOK_SECONDS_MAX)
    return [tuple(row) for row in rows]


async def key_sequences(connection: Connection, tournament_id: TournamentId, keys: Items[str]) -> dict[str, Sequence]:
    """The sequences that are remembered for these idempotency keys; keys that are not remembered are left out."""
    return {row[0]: row[1] for row in await connection.fetch(_KEYS, tournament_id, keys)} if keys else {}


# ── What is stored next to the blocks ───────────────────────────────────────────────────────────────────

_BEFORE: Final = "SELECT min(last_sequence) AS sequence FROM block WHERE tournament_id = $1 AND last_sequence < 1"
_ALL_BEFORE: Final = for_each(_BEFORE)
# The hash of a topic is the beginning of an MD5, as a number: `hash_of_topic` is the same.
_COUNTS: Final = """
    SELECT
        (SELECT count(*) FROM idempotency WHERE tournament_id = $1) AS keys,
        (
            SELECT min(p.sequence)
            FROM personal AS p
            LEFT JOIN LATERAL (
                SELECT first_sequence, personal
                FROM block
                WHERE tournament_id = $1 AND last_sequence >= p.sequence
                ORDER BY last_sequence
                LIMIT 1
            ) AS b ON true
            WHERE p.tournament_id = $1 AND (b.personal AND b.first_sequence <= p.sequence) IS NOT TRUE
        ) AS unseen_personal,
        count(*) AS topics,
        (coalesce(sum(('x' || left(md5(topic || ' ' || sequence), 15))::bit(60)::bigint), 0) % (1::int8 << 60))::bigint
            AS topics_sum
    FROM topic
    WHERE tournament_id = $1
"""
TOPICS_SUM: Final = 1 << 60
"""Sums of the hashes are kept as remainders of this."""
_ALL_COUNTS: Final = for_each(_COUNTS)
_ALL_KEYS: Final = """
    SELECT tournament_id, idempotency_key, sequence
    FROM idempotency
    WHERE tournament_id = ANY($1::bigint[])
    LIMIT $2
"""


async def before_the_beginning(
    connection: Connection, tournament_ids: Items[TournamentId]
) -> dict[TournamentId, Sequence]:
    """The first block of each tournament that ends before 1, if there is one."""
    found = await rows_of(connection, _BEFORE, _ALL_BEFORE, tournament_ids)
    return {tournament_id: row[0] for tournament_id, (row,) in found.items() if row[0] is not None}


class StoredCounts(Struct, frozen=True):
    """What a tournament has next to its blocks: idempotency keys, and topics, with the sum of the hashes of these
    (`hash_of_topic`). `unseen_personal`: the first personal fields that no reader looks for, because the block does not
    say that it has some."""

    keys: int = 0
    unseen_personal: Sequence | None = None
    topics: int = 0
    topics_sum: int = 0


async def counts(connection: Connection, tournament_ids: Items[TournamentId]) -> dict[TournamentId, StoredCounts]:
    """What each of the tournaments has next to its blocks."""
    found = await rows_of(connection, _COUNTS, _ALL_COUNTS, tournament_ids)
    return {tournament_id: StoredCounts(*row) for tournament_id, (row,) in found.items()}


def hash_of_topic(topic: int, sequence: Sequence) -> int:
    """A number by which the topics of events are compared with those that the database has, all at once."""
    return int(md5(f"{topic} {sequence}".encode(), usedforsecurity=False).hexdigest()[:15], 16)


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


_STORED_EVENT: Final = """
    SELECT digest, recorded_at, split_part(text, chr(10), ($2 - first_sequence + 1)::int) AS line
    FROM (
        SELECT *
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= $2
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE first_sequence <= $2
"""


class StoredEvent(Struct, frozen=True):
    """An event as it is stored, without its key, and the digest of the block that holds it. Of a line that is not that
    of an event, the kind is empty, and the body is the line."""

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    kind: str
    body: str
    digest: bytes


async def stored_event(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> StoredEvent | None:
    """The event with this sequence; None: there is none, or no block that holds it."""
    row = await connection.fetchrow(_STORED_EVENT, tournament_id, sequence)
    if row is None:
        return None
    parts = codec.any_parts_of(row["line"])
    return StoredEvent(sequence, row["recorded_at"], parts.actor, parts.kind, parts.body, row["digest"])


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
