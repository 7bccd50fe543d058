"""All reads of events that are to be folded or sent.

Verification reads the stored bytes by SQL of its own (`projections/verification/stored_log.py`).

Times are UTC, digests 32 bytes. Functions take a connection and do not translate driver errors: readers use
`pool.unavailable`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Mapping, Sized
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import count, repeat
from typing import Any, Final
from uuid import UUID

import msgspec
from asyncpg import Connection, Record
from msgspec import Struct

from engine.database.distribution import is_distributed
from engine.domain.errors import LogForked, LogUnreadable
from engine.domain.events import (
    EventSetAside,
    Ignored,
    Points,
    PointsAdded,
    Recorded,
    TournamentOpened,
    TournamentRenamed,
)
from engine.domain.terms import ActorId, CompetitionId, CompetitorId, Sequence, TournamentId
from engine.log import codec, digest
from engine.log.appending import Unseen
from engine.process.time_slices import TimeSlice

# The head is the last block. The view `head` would find it by way of another table.
_HEAD: Final = "SELECT last_sequence, digest FROM block WHERE tournament_id = $1 ORDER BY last_sequence DESC LIMIT 1"
_NOW: Final = "SELECT clock_timestamp()"
_HEADS: Final = """
    SELECT a.tournament_id, b.last_sequence, b.digest
    FROM unnest($1::bigint[]) AS a (tournament_id)
    CROSS JOIN LATERAL (
        SELECT last_sequence, digest
        FROM block
        WHERE tournament_id = a.tournament_id
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS b
"""
# PostgreSQL never turns ordered subqueries with a limit into joins: each is a walk along an index, as long as
# `enable_bitmapscan` is off (`engine/database/pool.py`).
_BLOCKS: Final = """
    SELECT a.tournament_id, b.last_sequence, b.digest, b.bytes
    FROM unnest($1::bigint[], $2::bigint[]) AS a (tournament_id, sequence)
    CROSS JOIN LATERAL (
        SELECT last_sequence, digest, bytes
        FROM block
        WHERE tournament_id = a.tournament_id AND last_sequence >= a.sequence
        ORDER BY last_sequence
        LIMIT $3
    ) AS b
"""
_BLOCKS_OF_ONE: Final = """
    SELECT last_sequence, digest, bytes
    FROM block
    WHERE tournament_id = $1 AND last_sequence >= $2
    ORDER BY last_sequence
    LIMIT $3
"""
# The text of an event, as `codec.join` makes it of its body and its personal fields.
_TEXT: Final = """
    CASE WHEN personal IS NULL THEN body ELSE left(body, -81) || ',' || substr(personal, 66) END AS body"""
# Statements that read events return `kind` NULL for an event that was set aside; `_POINTS_EVENTS` leaves such events
# out. The subselect does not depend on the row, so it is executed once, by an index that is usually empty, and an empty
# set is not even searched. But planning it takes as long as reading a short tail. So `_EVENTS` asks only whether there
# is an EventSetAside at all. If so, every `kind` is NULL, and `_EVENTS_MARKING_SET_ASIDE` reads again.
_EVENTS: Final = f"""
    SELECT
        a.tournament_id, e.sequence, e.recorded_at, e.actor,
        CASE
            WHEN EXISTS (SELECT FROM event WHERE kind = 'EventSetAside' AND tournament_id = ANY($1::bigint[])) THEN NULL
            ELSE e.kind
        END AS kind,
        e.idempotency_key, e.body
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS a (tournament_id, after, upto)
    CROSS JOIN LATERAL (
        SELECT sequence, recorded_at, actor, kind, idempotency_key, {_TEXT}
        FROM event
        WHERE tournament_id = a.tournament_id AND sequence > a.after AND sequence <= a.upto
        ORDER BY sequence
        LIMIT a.upto - a.after
    ) AS e
"""  # noqa: S608 # written down above
_EVENTS_MARKING_SET_ASIDE: Final = f"""
    SELECT
        a.tournament_id, e.sequence, e.recorded_at, e.actor,
        CASE
            WHEN (a.tournament_id, e.sequence) IN (
                SELECT tournament_id, sequence FROM set_aside WHERE tournament_id = ANY($1::bigint[])
            ) THEN NULL
            ELSE e.kind
        END AS kind,
        e.idempotency_key, e.body
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS a (tournament_id, after, upto)
    CROSS JOIN LATERAL (
        SELECT sequence, recorded_at, actor, kind, idempotency_key, {_TEXT}
        FROM event
        WHERE tournament_id = a.tournament_id AND sequence > a.after AND sequence <= a.upto
        ORDER BY sequence
        LIMIT a.upto - a.after
    ) AS e
"""  # noqa: S608 # written down above
# The rows of the view `set_aside` for tournament $1. Each table is restricted to it, or a distributed database would
# ask all shards.
_SET_ASIDE: Final = """
    SELECT s.sequence, s.set_aside_by
    FROM (
        SELECT
            substring(body FROM '^\\{"sequence":([1-9][0-9]{0,17}),"digest":"[0-9a-f]{64}"\\}$')::bigint AS sequence,
            substring(body FROM '"digest":"([0-9a-f]{64})"\\}$') AS digest,
            sequence AS set_aside_by
        FROM event
        WHERE tournament_id = $1 AND kind = 'EventSetAside'
    ) AS s
    CROSS JOIN LATERAL (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= s.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE s.sequence < s.set_aside_by AND s.digest = encode(b.digest, 'hex')
"""
# For tournament $1. The kind of an event that was set aside is not read: it is a no-op in every reader.
_COLUMNS: Final = f"""
        tournament_id, sequence, recorded_at, actor,
        CASE
            WHEN sequence IN (SELECT sequence FROM ({_SET_ASIDE}) AS set_aside) THEN NULL
            ELSE kind
        END AS kind,
        idempotency_key, {_TEXT}"""  # noqa: S608 # written down above
_EVENTS_OF_ONE: Final = f"""
    SELECT
        tournament_id, sequence, recorded_at, actor,
        CASE WHEN EXISTS (SELECT FROM event WHERE kind = 'EventSetAside' AND tournament_id = $1) THEN NULL ELSE kind END
            AS kind,
        idempotency_key, {_TEXT}
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence
"""  # noqa: S608 # written down above
_EVENTS_OF_ONE_MARKING_SET_ASIDE: Final = f"""
    SELECT {_COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence
"""  # noqa: S608 # the columns are written down above
_EVENT: Final = f"""
    SELECT {_COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence = $2
"""  # noqa: S608 # the columns are written down above
# The event that gave tournament $1 the name it has after the event $2: the last renaming, or the opening.
_NAMING: Final = f"""
    SELECT {_COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence = coalesce(
        (
            SELECT sequence
            FROM event
            WHERE tournament_id = $1 AND kind = 'TournamentRenamed' AND sequence <= $2
                AND sequence NOT IN (SELECT sequence FROM ({_SET_ASIDE}) AS set_aside)
            ORDER BY sequence DESC
            LIMIT 1
        ),
        1
    )
"""  # noqa: S608 # the columns are written down above
# Walks along the index until it has $4 events or $5 bytes of bodies; it returns at least one event.
_CHUNK: Final = f"""
    SELECT {_COLUMNS}
    FROM (
        SELECT
            tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body, personal,
            sum(octet_length(body) + coalesce(octet_length(personal), 0))
                OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM (
            SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body, personal
            FROM event
            WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
            ORDER BY sequence
            LIMIT $4
        ) AS e
    ) AS s
    WHERE size <= $5 OR sequence = $2 + 1
    ORDER BY sequence
"""  # noqa: S608 # the columns are written down above
# Like _CHUNK for several tournaments, with the digest of each event's block, and whether the block ends there. Returns
# nothing of a tournament if the block of its event `after` has another digest.
_STORED: Final = f"""
    SELECT a.tournament_id, s.sequence, s.recorded_at, s.actor, s.kind, s.body, b.digest, b.last_sequence = s.sequence
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[]) AS a (tournament_id, after, digest, upto)
    CROSS JOIN LATERAL (
        SELECT
            sequence, recorded_at, actor, body,
            CASE
                WHEN sequence IN (SELECT sequence FROM set_aside WHERE tournament_id = a.tournament_id) THEN NULL
                ELSE kind
            END AS kind,
            sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM (
            SELECT sequence, recorded_at, actor, kind, {_TEXT}
            FROM event
            WHERE tournament_id = a.tournament_id AND sequence > a.after AND sequence <= a.upto
            ORDER BY sequence
            LIMIT $5
        ) AS e
    ) AS s
    CROSS JOIN LATERAL (
        SELECT last_sequence, digest
        FROM block
        WHERE tournament_id = a.tournament_id AND last_sequence >= s.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE (s.size <= $6 OR s.sequence = a.after + 1) AND (a.after = 0 OR a.digest = (
        SELECT digest
        FROM block
        WHERE tournament_id = a.tournament_id AND last_sequence >= a.after
        ORDER BY last_sequence
        LIMIT 1
    ))
"""  # noqa: S608 # written down above
_STORED_OF_ONE: Final = f"""
    SELECT s.sequence, s.recorded_at, s.actor, s.kind, s.body, b.digest, b.last_sequence = s.sequence
    FROM (
        SELECT
            sequence, recorded_at, actor, body,
            CASE WHEN sequence IN (SELECT sequence FROM ({_SET_ASIDE}) AS set_aside) THEN NULL ELSE kind END AS kind,
            sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM (
            SELECT sequence, recorded_at, actor, kind, {_TEXT}
            FROM event
            WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $4
            ORDER BY sequence
            LIMIT $5
        ) AS e
    ) AS s
    CROSS JOIN LATERAL (
        SELECT last_sequence, digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= s.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE (s.size <= $6 OR s.sequence = $2 + 1) AND ($2 = 0 OR $3 = (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= $2
        ORDER BY last_sequence
        LIMIT 1
    ))
    ORDER BY s.sequence
"""  # noqa: S608 # written down above
# Finds the last sequence at or before the moment by bisection: within one log, the time never decreases.
_LAST_AT: Final = """
    WITH RECURSIVE search (low, high) AS (
        SELECT 0::bigint, $2::bigint
        UNION ALL
        SELECT
            CASE WHEN e.recorded_at <= $3 THEN e.sequence ELSE s.low END,
            CASE WHEN e.recorded_at <= $3 THEN s.high ELSE e.sequence - 1 END
        FROM search AS s
        CROSS JOIN LATERAL (
            SELECT sequence, recorded_at
            FROM event
            WHERE tournament_id = $1 AND sequence = (s.low + s.high + 1) / 2
        ) AS e
        WHERE s.low < s.high
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
# As the index `event_competition` spells them: the competition that an event names, and which events name one.
_COMPETITION: Final = """
    rtrim(left(split_part(split_part(left(body, 80), '"competition_id":', 2), ',', 1), 20), '}') COLLATE "C"
"""
_NAMES_COMPETITION: Final = """
    kind IN ('PointsAdded', 'PointsReversed') AND strpos(left(body, 80), '"competition_id":') > 0
"""


def _within_bytes(events: str, *, bytes_max: str) -> str:
    """The statement that reads those of `events` (a subquery) which begin within the first `bytes_max` bytes of
    bodies."""
    return f"""
    SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body
    FROM (
        SELECT
            tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body,
            sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM ({events}) AS e
    ) AS s
    WHERE size - octet_length(body) < {bytes_max}
    ORDER BY sequence
    """  # noqa: S608 # written down below


# Uses the index `event_competition`.
_POINTS_EVENTS: Final = _within_bytes(
    f"""
            SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body
            FROM event
            WHERE tournament_id = $1
                AND {_COMPETITION} = $2
                AND {_NAMES_COMPETITION}
                AND sequence > $3 AND sequence <= $4
                AND sequence NOT IN (SELECT sequence FROM ({_SET_ASIDE}) AS set_aside)
            ORDER BY sequence
            LIMIT $5
    """,  # noqa: S608 # written down above
    bytes_max="$6",
)
# One row for each event, after its competition's `after`; one of nulls for a competition without any. Of a competition
# at most $5 events, of all as many as `_POINTS_EVENTS` with $6 bytes. Uses the same index.
_POINTS_OF_COMPETITIONS: Final = f"""
    SELECT n, tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body
    FROM (
        SELECT
            c.n, e.tournament_id, e.sequence, e.recorded_at, e.actor, e.kind, e.idempotency_key, e.body,
            sum(octet_length(e.body)) OVER (ORDER BY c.n, e.sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS c (competition, after, n)
        LEFT JOIN LATERAL (
            SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body
            FROM event
            WHERE tournament_id = $1
                AND {_COMPETITION} = c.competition
                AND {_NAMES_COMPETITION}
                AND sequence > c.after AND sequence <= $4
                AND sequence NOT IN (SELECT sequence FROM ({_SET_ASIDE}) AS set_aside)
            ORDER BY sequence
            LIMIT $5
        ) AS e ON true
    ) AS s
    WHERE coalesce(size - octet_length(body), 0) < $6
    ORDER BY n, sequence
"""  # noqa: S608 # written down above
# Uses the index `event_reversal`.
_REVERSALS: Final = _within_bytes(
    f"""
            SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, body
            FROM event
            WHERE tournament_id = $1 AND kind = 'PointsReversed' AND sequence > $2 AND sequence <= $3
                AND sequence NOT IN (SELECT sequence FROM ({_SET_ASIDE}) AS set_aside)
            ORDER BY sequence
            LIMIT $4
    """,  # noqa: S608 # written down above
    bytes_max="$5",
)
_SECRET: Final = "SELECT append_id FROM block WHERE tournament_id = $1 ORDER BY last_sequence LIMIT 1"  # noqa: S105 - no password
# Uses the index `event_erased`.
# Uses the index `event_personal`.
_PERSONAL: Final = """
    SELECT personal
    FROM event
    WHERE tournament_id = $1 AND personal IS NOT NULL
        AND (rtrim(split_part(split_part(left(body, 40), ':', 2), ',', 1), '}') COLLATE "C") = $2
    ORDER BY sequence
"""
_MENTIONING: Final = """
    SELECT sequence, kind, idempotency_key, body
    FROM (
        SELECT
            sequence, kind, idempotency_key, body,
            sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM (
            SELECT sequence, kind, idempotency_key, body
            FROM event
            WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
                AND (body ~ $4 OR idempotency_key ~ $5)
            ORDER BY sequence
            LIMIT $6
        ) AS e
    ) AS s
    WHERE size - octet_length(body) < $7
    ORDER BY sequence
"""
_ERASED_SINCE: Final = """
    SELECT rtrim(split_part(body, ':', 2), '}')::bigint AS competitor_id
    FROM event
    WHERE tournament_id = $1 AND kind = 'CompetitorErased' AND sequence > $2
    ORDER BY sequence
"""
_SET_ASIDE_SINCE: Final = f"""
    SELECT EXISTS (SELECT FROM ({_SET_ASIDE}) AS set_aside WHERE sequence <= $2 AND set_aside_by > $2)
"""  # noqa: S608 # written down above
# The events of one request are in one block, one after the other.
_REQUEST: Final = f"""
    SELECT {_COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence >= $2 AND sequence <= (
        SELECT last_sequence FROM block WHERE tournament_id = $1 AND last_sequence >= $2 ORDER BY last_sequence LIMIT 1
    ) AND idempotency_key = $3
    ORDER BY sequence
"""  # noqa: S608 # the columns are written down above
# Like _EVENTS, one walk along each index for each key, whatever the statistics say.
_KEYED: Final = f"""
    SELECT i.fingerprint, e.tournament_id, e.sequence, e.recorded_at, e.actor, e.kind, e.idempotency_key, e.body
    FROM unnest($2::text[]) AS k (idempotency_key)
    CROSS JOIN LATERAL (
        SELECT fingerprint, sequence
        FROM idempotency
        WHERE tournament_id = $1 AND idempotency_key = k.idempotency_key
        LIMIT 1
    ) AS i
    CROSS JOIN LATERAL (
        SELECT {_COLUMNS}
        FROM event
        WHERE tournament_id = $1 AND sequence = i.sequence
        LIMIT 1
    ) AS e
"""  # noqa: S608 # the columns are written down above
TAIL_BLOCKS_MAX: Final = 2_000
"""Blocks of one tournament that are read at once."""
TAIL_EVENTS_MAX: Final = 10_000
TAIL_BYTES_MAX: Final = 4 * 1024 * 1024
"""Events, and bytes of their blocks' texts, that are read at once; they are decoded in time slices."""


class Head(Struct, frozen=True):
    """The last sequence of a tournament, and the digest of its last block."""

    sequence: Sequence
    digest: bytes


class Tail(Struct, frozen=True):
    """Whole blocks of events, and the head they lead to. No events: there are no more."""

    events: list[Recorded]
    head: Head


def beginning(tournament_id: TournamentId) -> Head:
    """The head before the first event of a log."""
    return Head(Sequence(0), digest.genesis(tournament_id))


async def heads(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Head]:
    """The head of each tournament that exists, at a moment during the call. On a plain database, that is the same
    moment for all."""
    if len(tournament_ids) == 1:
        (tournament_id,) = tournament_ids
        row = await connection.fetchrow(_HEAD, tournament_id)
        return {} if row is None else {tournament_id: Head(*row)}
    if not is_distributed(connection):
        rows = await connection.fetch(_HEADS, list(tournament_ids))
        return {tournament_id: Head(sequence, digest_) for tournament_id, sequence, digest_ in rows}
    found = {tournament_id: await connection.fetchrow(_HEAD, tournament_id) for tournament_id in tournament_ids}
    return {tournament_id: Head(*row) for tournament_id, row in found.items() if row is not None}


async def now(connection: Connection) -> datetime:
    """The time of the database."""
    moment: datetime = await connection.fetchval(_NOW)
    return moment


async def tail(
    connection: Connection,
    tournament_id: TournamentId,
    after: Head,
    *,
    blocks_max: int = TAIL_BLOCKS_MAX,
    bytes_max: int | None = None,
) -> Tail:
    """The events of one tournament that follow `after`. Raises as `tails` does."""
    read = await tails(connection, {tournament_id: after}, blocks_max=blocks_max, bytes_max=bytes_max)
    return read.tails.get(tournament_id, Tail([], after))


def unseen_tail(tournament_id: TournamentId, after: Head, unseen: Unseen) -> Tail | None:
    """The events of `unseen`, which follow `after`, where the block was judged. None: they have to be read from the
    log, because something was set aside there, or has a form that the service does not write.

    Raises LogForked if their chain of digests, recomputed from `after`, does not lead to where the append says, and
    LogUnreadable if an event cannot be decoded.
    """
    events: list[Recorded] = []
    head = after
    for line in unseen.text.encode().split(b"\n"):
        text, _, apart = line.partition(b"\t")
        try:
            block = digest.columns_of(text)
            recorded_at = digest.moment(block.recorded_us)
            bodies = list(map(codec.join, block.bodies, _personals(apart))) if apart else block.bodies
        except (msgspec.ValidationError, OverflowError):
            return None
        if EventSetAside.tag in block.kinds:
            return None
        keys = block.keys or repeat(None)
        for row in zip(count(head.sequence + 1), block.actors, block.kinds, keys, bodies, strict=False):
            sequence, actor, kind, key, body = row
            events.append(_recorded((tournament_id, sequence, recorded_at, actor, kind, key, body)))
        head = Head(Sequence(head.sequence + len(block.kinds)), digest.chain(head.digest, text))
    if head.digest != unseen.digest:
        raise LogForked(tournament_id, after.sequence)
    return Tail(events, head)


_personals: Final = msgspec.json.Decoder(list[str | None]).decode


class Tails(Struct, frozen=True):
    """`tails`: the tail of each tournament of which something was read. `unread`: those that have more."""

    tails: dict[TournamentId, Tail]
    unread: set[TournamentId]


async def tails(
    connection: Connection,
    after: Mapping[TournamentId, Head],
    *,
    blocks_max: int = TAIL_BLOCKS_MAX,
    bytes_max: int | None = None,
) -> Tails:
    """The events that follow `after`, for each of its tournaments: whole blocks, at most TAIL_EVENTS_MAX events and
    `bytes_max` (else TAIL_BYTES_MAX) bytes in total, unless the first block that is read has more.

    Each tournament gets an equal share, but at least one block. A tournament whose part no longer fits into the total
    gets nothing. Several queries see one truth, because what has been appended never changes.

    Raises LogForked if no block of the log ends in exactly this head (unless it is the beginning) or if an event is
    missing, and LogUnreadable if an event cannot be decoded. If that happens in several tournaments, the error names
    one of them.
    """
    return await _decoded(after, await _read(connection, after, blocks_max=blocks_max, bytes_max=bytes_max))


async def tails_to_head(
    connection: Connection, tournament_id: TournamentId, after: Head, *, bytes_max: int
) -> AsyncGenerator[Tail, None]:
    """All events of one tournament that follow `after`, tail by tail: while one is decoded and used, PostgreSQL reads
    the next one. Use it `aclosing`, and the connection for nothing else meanwhile. `bytes_max` is that of `tails`, and
    so is what is raised."""
    reading = asyncio.create_task(_read(connection, {tournament_id: after}, bytes_max=bytes_max))
    try:
        while tournament_id in (read := await reading).spans:
            to = read.spans[tournament_id]
            reading = asyncio.create_task(_read(connection, {tournament_id: to}, bytes_max=bytes_max))
            await asyncio.sleep(0)  # it sends its query
            yield (await _decoded({tournament_id: after}, read)).tails[tournament_id]
            after = to
    finally:
        await asyncio.wait([reading])  # cancelling what PostgreSQL is at would end the transaction
        if not reading.cancelled():
            reading.exception()  # retrieved, because a cancelled caller does not want it


class _Read(Struct, frozen=True):
    """Rows of events as they were read: how far of each tournament, and which tournaments have more."""

    spans: dict[TournamentId, Head]
    unread: set[TournamentId]
    rows: Items[Any]


async def _read(
    connection: Connection,
    after: Mapping[TournamentId, Head],
    *,
    blocks_max: int = TAIL_BLOCKS_MAX,
    bytes_max: int | None = None,
) -> _Read:
    bytes_max = TAIL_BYTES_MAX if bytes_max is None else bytes_max
    spans, unread = _spans(after, await _blocks(connection, after, blocks_max), blocks_max, bytes_max)
    if not spans:
        return _Read(spans, unread, [])
    rows = await _rows(connection, {t: (after[t].sequence, end.sequence) for t, end in spans.items()})
    return _Read(spans, unread, rows)


async def _decoded(after: Mapping[TournamentId, Head], read: _Read) -> Tails:
    """The events that were read."""
    decoded = await _recorded_in_time_slices(read.rows)
    if len(read.spans) == 1:
        events = dict.fromkeys(read.spans, decoded)
    else:
        events = {tournament_id: [] for tournament_id in read.spans}
        for row, recorded in zip(read.rows, decoded, strict=True):
            events[row[0]].append(recorded)
    for tournament_id, end in read.spans.items():
        if len(events[tournament_id]) != end.sequence - after[tournament_id].sequence:
            raise LogForked(tournament_id, after[tournament_id].sequence)
    return Tails(
        {tournament_id: Tail(events[tournament_id], end) for tournament_id, end in read.spans.items()}, read.unread
    )


async def _rows(connection: Connection, spans: Mapping[TournamentId, tuple[Sequence, Sequence]]) -> list[Record]:
    """The events of each tournament that follow the first sequence of its span, up to the second."""
    if len(spans) == 1:
        ((tournament_id, span),) = spans.items()
        rows: list[Record] = await connection.fetch(_EVENTS_OF_ONE, tournament_id, *span)
        if rows and rows[0]["kind"] is None:
            rows = await connection.fetch(_EVENTS_OF_ONE_MARKING_SET_ASIDE, tournament_id, *span)
        return rows
    if is_distributed(connection):
        return [row for one, span in spans.items() for row in await _rows(connection, {one: span})]
    asked = list(spans), [after for after, _ in spans.values()], [upto for _, upto in spans.values()]
    rows = await connection.fetch(_EVENTS, *asked)
    if rows and rows[0]["kind"] is None:
        rows = await connection.fetch(_EVENTS_MARKING_SET_ASIDE, *asked)
    return rows


class _End(Struct, frozen=True):
    """The end of a block, and the size of its text in bytes."""

    head: Head
    size: int


async def _blocks(
    connection: Connection, after: Mapping[TournamentId, Head], blocks_max: int
) -> dict[TournamentId, list[_End]]:
    """The ends of the blocks that follow `after`: one more than may be read, to tell whether there is more.

    Raises LogForked.
    """
    limit = min(blocks_max, _share(TAIL_EVENTS_MAX, after)) + 2  # the block that ends there already, and one more
    ends: dict[TournamentId, list[_End]] = {
        tournament_id: [_End(beginning(tournament_id), 0)] if head.sequence == 0 else []
        for tournament_id, head in after.items()
    }
    if len(after) == 1 or is_distributed(connection):
        for tournament_id, head in after.items():
            rows = await connection.fetch(_BLOCKS_OF_ONE, tournament_id, head.sequence, limit)
            ends[tournament_id] += [_End(Head(sequence, digest_), size) for sequence, digest_, size in rows]
    elif after:
        for tournament_id, sequence, digest_, size in await connection.fetch(
            _BLOCKS, list(after), [head.sequence for head in after.values()], limit
        ):
            ends[tournament_id].append(_End(Head(sequence, digest_), size))
    for tournament_id, head in after.items():
        if not ends[tournament_id] or ends[tournament_id].pop(0).head != head:
            raise LogForked(tournament_id, head.sequence)
    return ends


def _spans(
    after: Mapping[TournamentId, Head], ends: Mapping[TournamentId, list[_End]], blocks_max: int, bytes_max: int
) -> tuple[dict[TournamentId, Head], set[TournamentId]]:
    """How far to read each tournament that has something to read, and which tournaments have more than that."""
    spans: dict[TournamentId, Head] = {}
    unread: set[TournamentId] = set()
    all_events = all_bytes = 0
    for tournament_id, of_blocks in ends.items():
        taken = count = size = 0
        for end in of_blocks[:blocks_max]:
            events = end.head.sequence - after[tournament_id].sequence
            heavy = events > _share(TAIL_EVENTS_MAX, after) or size + end.size > _share(bytes_max, after)
            if taken and heavy:
                break
            taken, count, size = taken + 1, events, size + end.size
        if spans and (all_events + count > TAIL_EVENTS_MAX or all_bytes + size > bytes_max):
            taken = 0
        if taken:
            spans[tournament_id] = of_blocks[taken - 1].head
            all_events, all_bytes = all_events + count, all_bytes + size
        if taken < len(of_blocks):
            unread.add(tournament_id)
    return spans, unread


def _share(total: int, among: Sized) -> int:
    return max(1, total // max(1, len(among)))


async def event_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Recorded:
    """The event with this sequence. Raises LogForked if it is no longer there, and LogUnreadable."""
    row = await connection.fetchrow(_EVENT, tournament_id, sequence)
    if row is None:
        raise LogForked(tournament_id, sequence)
    return _recorded(row)


async def request_at(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence, idempotency_key: str
) -> list[Recorded]:
    """The events of the request with this key, whose first event has this sequence. Raises as `event_at`, also if that
    event is another request's."""
    rows = await connection.fetch(_REQUEST, tournament_id, sequence, idempotency_key)
    if not rows or rows[0]["sequence"] != sequence:
        raise LogForked(tournament_id, sequence)
    return await _recorded_in_time_slices(rows)


CHUNK_EVENTS_MAX: Final = 1_000
CHUNK_BYTES_MAX: Final = 128 * 1024
"""Events, and bytes of their bodies, that work on the past reads at once. Decoding and folding them takes a few
milliseconds, in which the process does nothing else."""


async def chunk_of(
    connection: Connection, tournament_id: TournamentId, after: Sequence, upto: Sequence
) -> list[Recorded]:
    """One chunk of the events that follow sequence `after`, up to `upto`: at least one event, if there is one.

    A chunk has at most CHUNK_EVENTS_MAX events and CHUNK_BYTES_MAX bytes, unless its first event is larger. Raises
    LogForked if an event is missing, and LogUnreadable.
    """
    rows = await connection.fetch(_CHUNK, tournament_id, after, upto, CHUNK_EVENTS_MAX, CHUNK_BYTES_MAX)
    events = await _recorded_in_time_slices(rows)
    if (not events and after < upto) or (events and events[-1].sequence != after + len(events)):
        raise LogForked(tournament_id, after)
    return events


async def points_of_request(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence
) -> dict[Sequence, PointsAdded]:
    """The points of the whole request that added those of the event `sequence`, by sequence, without what was set
    aside. Empty: that event adds none. Raises as `event_at`."""
    named = (await event_at(connection, tournament_id, sequence)).event
    if not isinstance(named, PointsAdded):
        return {}
    number, count = named.part or (1, 1)
    after, upto = Sequence(sequence - number), Sequence(sequence - number + count)
    found: dict[Sequence, PointsAdded] = {}
    while after < upto:
        events = await chunk_of(connection, tournament_id, after, upto)
        found |= {one.sequence: one.event for one in events if isinstance(one.event, PointsAdded)}
        after = events[-1].sequence
    return found


class Stored(Struct, frozen=True, gc=False):
    """An event as it stands in the log: `body` is its text. `kind` None: it was set aside. `digest`: that of the block
    it is in; `ends_block`: it is the last of that block."""

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    kind: str | None
    body: str
    digest: bytes
    ends_block: bool


async def stored(
    connection: Connection,
    tournament_id: TournamentId,
    after: Head,
    upto: Sequence,
    *,
    events_max: int = CHUNK_EVENTS_MAX,
    bytes_max: int = CHUNK_BYTES_MAX,
) -> list[Stored]:
    """The events that follow `after`, up to `upto`, not decoded: at least one, if there is one, at most `events_max`,
    and `bytes_max` bytes of bodies unless the first is larger. `after` has the digest of the block of its event, which
    need not be the last of that block; of 0, any.

    Raises LogForked if that block has another digest now, or if an event is missing.
    """
    spans = {tournament_id: (after, upto)}
    found = await stored_of(connection, spans, events_max=events_max, bytes_max=bytes_max)
    if tournament_id not in found:
        raise LogForked(tournament_id, after.sequence)
    return found[tournament_id]


async def stored_of(
    connection: Connection,
    spans: Mapping[TournamentId, tuple[Head, Sequence]],
    *,
    events_max: int = CHUNK_EVENTS_MAX,
    bytes_max: int = CHUNK_BYTES_MAX,
) -> dict[TournamentId, list[Stored]]:
    """Like `stored` for several tournaments. The limits of events and bytes hold for each; each has its own `after` and
    `upto`. Tournaments for which `stored` would raise LogForked are missing."""
    found: dict[TournamentId, list[Stored]] = {tournament_id: [] for tournament_id in spans}
    if len(spans) == 1 or is_distributed(connection):
        for tournament_id, (after, upto) in spans.items():
            asked = tournament_id, after.sequence, after.digest, upto, events_max, bytes_max
            found[tournament_id] += [Stored(*row) for row in await connection.fetch(_STORED_OF_ONE, *asked)]
    else:
        for tournament_id, *stored in await connection.fetch(
            _STORED,
            list(spans),
            [after.sequence for after, _ in spans.values()],
            [after.digest for after, _ in spans.values()],
            [upto for _, upto in spans.values()],
            events_max,
            bytes_max,
        ):
            found[tournament_id].append(Stored(*stored))
    return {tournament_id: events for tournament_id, events in found.items() if _follow(events, *spans[tournament_id])}


def _follow(events: list[Stored], after: Head, upto: Sequence) -> bool:
    """Whether they follow `after` without a gap. None do if there is nothing up to `upto`."""
    if not events:
        return after.sequence >= upto
    return events[-1].sequence == after.sequence + len(events)


async def last_at(connection: Connection, tournament_id: TournamentId, moment: datetime, upto: Sequence) -> Sequence:
    """The last sequence, up to `upto`, of an event recorded at or before `moment` (UTC); 0: there is none.

    Raises LogForked if an event that the search looks at is missing.
    """
    sequence: Sequence | None = await connection.fetchval(_LAST_AT, tournament_id, upto, moment)
    if sequence is None:
        raise LogForked(tournament_id, upto)
    return sequence


async def has_head(connection: Connection, tournament_id: TournamentId, head: Head) -> bool:
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


async def set_aside_since(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> bool:
    """Whether an event beyond `sequence` set aside one up to it, so that a fold up to `sequence` may be wrong."""
    since: bool = await connection.fetchval(_SET_ASIDE_SINCE, tournament_id, sequence)
    return since


async def secret_of(connection: Connection, tournament_id: TournamentId) -> bytes:
    """A secret of the tournament, which no stream, proof or digest contains: the random id under which its first block
    was appended. Keys that are made of names are made with it, so that nobody can guess the name from the key."""
    append_id: UUID = await connection.fetchval(_SECRET, tournament_id)
    return append_id.bytes


async def erased_since(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> list[CompetitorId]:
    """The competitors that events beyond `sequence` erased."""
    return [row["competitor_id"] for row in await connection.fetch(_ERASED_SINCE, tournament_id, sequence)]


class _Named(Struct):
    name: str | None = None


_decode_named: Final = msgspec.json.Decoder(_Named).decode


async def names_of(connection: Connection, tournament_id: TournamentId, competitor_id: CompetitorId) -> list[str]:
    """Every name that the competitor had, from the first to the last; none once it is erased."""
    rows = await connection.fetch(_PERSONAL, tournament_id, str(competitor_id))
    told = [_decode_named(row["personal"][codec.SALT_DIGITS :]).name for row in rows]
    return [name for name in told if name is not None]


class Mentioning(Struct, frozen=True):
    """An event as it is stored, but for its personal fields."""

    sequence: Sequence
    kind: str
    idempotency_key: str | None
    body: str


async def mentioning(
    connection: Connection, tournament_id: TournamentId, after: Sequence, upto: Sequence, in_bodies: str, in_texts: str
) -> list[Mentioning]:
    """The next events after `after` up to `upto` in whose body or key one of these patterns is found; none: there are
    no more."""
    bounds = CHUNK_EVENTS_MAX, CHUNK_BYTES_MAX
    rows = await connection.fetch(_MENTIONING, tournament_id, after, upto, in_bodies, in_texts, *bounds)
    return [Mentioning(*row.values()) for row in rows]


async def points_of(
    connection: Connection, tournament_id: TournamentId, competition_id: CompetitionId, upto: Sequence
) -> AsyncIterator[Recorded]:
    """Yields, in order, every event up to `upto` that gave or reversed points of the competition.

    Reads only these, in chunks of at most CHUNK_EVENTS_MAX events; a chunk ends with the event that brings it to
    CHUNK_BYTES_MAX bytes. Events that were set aside are left out. Raises LogUnreadable.
    """
    after = Sequence(0)
    while rows := await connection.fetch(
        _POINTS_EVENTS, tournament_id, str(competition_id), after, upto, CHUNK_EVENTS_MAX, CHUNK_BYTES_MAX
    ):
        for row in rows:
            recorded = _recorded(row)
            event = recorded.event
            if isinstance(event, Points) and event.competition_id == competition_id:
                yield recorded
        after = Sequence(rows[-1]["sequence"])


COMPETITIONS_AT_ONCE_MAX: Final = 200
EVENTS_OF_COMPETITION_AT_ONCE_MAX: Final = 20


async def points_of_competitions(
    connection: Connection, tournament_id: TournamentId, pending: deque[tuple[CompetitionId, Sequence]], upto: Sequence
) -> list[Recorded]:
    """Events up to `upto` that gave or reversed points of the first competitions of `pending`, each after its sequence.
    At least one, unless these have no more; they leave `pending` then. The sequences in `pending` advance. Events that
    were set aside are left out. Raises LogUnreadable."""
    asked = [pending.popleft() for _ in range(min(len(pending), COMPETITIONS_AT_ONCE_MAX))]
    rows = await connection.fetch(
        _POINTS_OF_COMPETITIONS,
        tournament_id,
        [str(competition_id) for competition_id, _ in asked],
        [after for _, after in asked],
        upto,
        EVENTS_OF_COMPETITION_AT_ONCE_MAX,
        CHUNK_BYTES_MAX,
    )
    reached: dict[int, Sequence | None] = {row["n"]: row["sequence"] for row in rows}
    left = [(one, reached.get(n, after)) for n, (one, after) in enumerate(asked, start=1)]
    pending.extendleft([(one, after) for one, after in reversed(left) if after is not None])
    return await _recorded_in_time_slices([tuple(row)[1:] for row in rows if row["sequence"] is not None])


async def reversals(
    connection: Connection, tournament_id: TournamentId, after: Sequence, upto: Sequence
) -> list[Recorded]:
    """One chunk of the reversals after sequence `after`, up to `upto`; empty: there are no more. Those that were set
    aside are left out. Raises LogUnreadable."""
    rows = await connection.fetch(_REVERSALS, tournament_id, after, upto, CHUNK_EVENTS_MAX, CHUNK_BYTES_MAX)
    return await _recorded_in_time_slices(rows)


IDEMPOTENCY_KEYS_MAX: Final = 1_000
"""Keys that one query looks up."""


class KeyedEvent(Struct, frozen=True):
    """The first event of the request that used a key, and that request's fingerprint."""

    fingerprint: bytes
    recorded: Recorded


async def keyed(
    connection: Connection, tournament_id: TournamentId, idempotency_keys: Items[str]
) -> dict[str, KeyedEvent]:
    """What became of each of the keys that a request has used, by key.

    Raises LogUnreadable, and ValueError for more than IDEMPOTENCY_KEYS_MAX keys.
    """
    if len(idempotency_keys) > IDEMPOTENCY_KEYS_MAX:
        raise ValueError(f"{len(idempotency_keys)} keys are more than {IDEMPOTENCY_KEYS_MAX}")
    rows = await connection.fetch(_KEYED, tournament_id, idempotency_keys)
    found = [KeyedEvent(row[0], _recorded(tuple(row)[1:])) for row in rows]
    return {one.recorded.idempotency_key: one for one in found if one.recorded.idempotency_key is not None}


async def _recorded_in_time_slices(rows: Iterable[Any]) -> list[Recorded]:
    """The events of these rows, decoded in time slices: one event may hold thousands of deltas."""
    events, time_slice = [], TimeSlice()
    for row in rows:
        events.append(_recorded(row))
        if (len(events) % _SMALL_AT_ONCE == 0 or len(row[-1]) > _SMALL_CHARACTERS_MAX) and time_slice.over:
            await time_slice.give_way()
    return events


_SMALL_AT_ONCE: Final = 16
_SMALL_CHARACTERS_MAX: Final = 1_000
"""Events with a body of at most so many characters are decoded 16 at once, because the clock costs a tenth of each."""


def _recorded(row: Any) -> Recorded:
    tournament_id, sequence, recorded_at, actor, kind, key, body = row
    if kind is None:
        return Recorded(sequence, recorded_at, actor, key, _IGNORED)
    try:
        return Recorded(sequence, recorded_at, actor, key, codec.decode(kind, body))
    except codec.Undecodable as error:
        raise LogUnreadable(tournament_id, sequence, str(error)) from error


_IGNORED: Final = Ignored()


async def name_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> str:
    """The name of a tournament after this event. Raises LogUnreadable."""
    naming = _recorded(await connection.fetchrow(_NAMING, tournament_id, sequence)).event
    assert isinstance(naming, TournamentOpened | TournamentRenamed)  # the opening cannot be set aside
    return naming.name
