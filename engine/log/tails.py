"""The events that follow a head, in whole blocks: what boards and tables are folded from.

Functions take a connection and do not translate driver errors: readers use `pool.unavailable`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sized
from collections.abc import Sequence as Items
from itertools import count, repeat
from operator import itemgetter
from typing import Any, Final

import msgspec
from asyncpg import Connection, Record
from msgspec import Struct

from engine.database.distribution import TournamentQuery
from engine.domain.errors import LogForked
from engine.domain.events import EventSetAside, Recorded
from engine.domain.terms import Sequence, TournamentId
from engine.log import codec, digest
from engine.log.appending import Unseen
from engine.log.heads import Head, beginning
from engine.log.rows import COLUMNS, TEXT, event_of, events_of

# PostgreSQL never turns ordered subqueries into joins: each is a walk along an index, as long as `enable_bitmapscan` is
# off (`engine/database/pool.py`).
_BLOCKS: Final = TournamentQuery(
    """
    SELECT tournament_id, last_sequence, digest, bytes
    FROM block
    WHERE tournament_id = $1 AND last_sequence >= $2
    ORDER BY last_sequence
    LIMIT $3
    """,
    "bigint",
    "bigint",
)
# `kind` is NULL for an event that was set aside. The subselect of `COLUMNS` does not depend on the row: it is executed
# once, by an index that is usually empty, and an empty set is not even searched. But planning it takes as long as
# reading a short tail. So `_EVENTS` asks only whether there is an EventSetAside at all; of several tournaments, once
# for all of them, not for each event. If so, every `kind` is NULL, and `_EVENTS_MARKING_SET_ASIDE` reads again.
_EVENTS: Final = TournamentQuery(
    f"""
    SELECT
        tournament_id, sequence, recorded_at, actor,
        CASE WHEN EXISTS (SELECT FROM event WHERE kind = 'EventSetAside' AND tournament_id = $1) THEN NULL ELSE kind END
            AS kind,
        idempotency_key, {TEXT}
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence
    """,  # noqa: S608 # the text is in `rows.py`
    each=f"""
    SELECT
        e.tournament_id, e.sequence, e.recorded_at, e.actor,
        CASE
            WHEN EXISTS (SELECT FROM event WHERE kind = 'EventSetAside' AND tournament_id = ANY($1::bigint[])) THEN NULL
            ELSE e.kind
        END AS kind,
        e.idempotency_key, e.body
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS a (tournament_id, after, upto)
    CROSS JOIN LATERAL (
        SELECT tournament_id, sequence, recorded_at, actor, kind, idempotency_key, {TEXT}
        FROM event
        WHERE tournament_id = a.tournament_id AND sequence > a.after AND sequence <= a.upto
        ORDER BY sequence
        LIMIT a.upto - a.after
    ) AS e
    """,  # noqa: S608 # the text is in `rows.py`
)
_EVENTS_MARKING_SET_ASIDE: Final = TournamentQuery(
    f"""
    SELECT {COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence
    """,  # noqa: S608 # the columns are in `rows.py`
    "bigint",
    "bigint",
    "bigint",
)
TAIL_BLOCKS_MAX: Final = 2_000
"""Blocks of one tournament that are read at once."""
TAIL_EVENTS_MAX: Final = 10_000
TAIL_BYTES_MAX: Final = 4 * 1024 * 1024
"""Events, and bytes of their blocks' texts, that are read at once; they are decoded in time slices."""


class Tail(Struct, frozen=True):
    """Whole blocks of events, and the head they lead to. No events: there are no more."""

    events: list[Recorded]
    head: Head


class Tails(Struct, frozen=True):
    """`tails`: the tail of each tournament of which something was read. `unread`: those that have more."""

    tails: dict[TournamentId, Tail]
    unread: set[TournamentId]


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
            events.append(event_of((tournament_id, sequence, recorded_at, actor, kind, key, body)))
        head = Head(Sequence(head.sequence + len(block.kinds)), digest.chain(head.digest, text))
    if head.digest != unseen.digest:
        raise LogForked(tournament_id, after.sequence)
    return Tail(events, head)


_personals: Final = msgspec.json.Decoder(list[str | None]).decode


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
    decoded = await events_of(read.rows)
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
    rows = await _EVENTS.fetch(connection, spans)
    if None in map(_KIND, rows):
        rows = await _EVENTS_MARKING_SET_ASIDE.fetch(connection, spans)
    return rows


_KIND: Final = itemgetter(4)


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
    asked = {tournament_id: (head.sequence,) for tournament_id, head in after.items()}
    for tournament_id, sequence, digest_, size in await _BLOCKS.fetch(connection, asked, limit):
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
