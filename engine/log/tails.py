"""The events that follow a head, in whole blocks: what boards and tables are folded from.

Functions take a connection and do not translate driver errors: readers use `pool.unavailable`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sized
from typing import Final

from asyncpg import Connection, Record
from msgspec import Struct

from engine.database.distribution import TournamentQuery
from engine.domain.errors import LogForked
from engine.domain.events import Recorded
from engine.domain.terms import Sequence, TournamentId
from engine.log import codec, digest
from engine.log.appending import Unseen
from engine.log.heads import Head, beginning
from engine.log.rows import ASIDE, PERSONALS, BlockLines, decoded, events_of, lines_of

# The block that ends at $2, and $3 - 1 that follow it, with the texts of as many as have $4 events and $5 bytes.
# PostgreSQL never turns ordered subqueries into joins: each is a walk along an index, as long as `enable_bitmapscan` is
# off (`engine/database/pool.py`).
_BLOCKS: Final = TournamentQuery(
    f"""
    SELECT
        $1::bigint AS tournament_id, b.first_sequence, b.last_sequence, b.recorded_at, b.digest, b.text,
        {PERSONALS},
        EXISTS (SELECT FROM topic WHERE tournament_id = $1 AND topic = -1) AS has_asides
    FROM (
        SELECT
            first_sequence, last_sequence, recorded_at, digest,
            CASE WHEN is_read THEN text END AS text, is_read AND personal AS personal
        FROM (
            SELECT
                *,
                last_sequence > $2 AND (
                    first_sequence = $2 + 1 OR last_sequence - $2 <= $4
                    AND sum(CASE WHEN last_sequence > $2 THEN octet_length(text) END)
                        OVER (ORDER BY last_sequence ROWS UNBOUNDED PRECEDING) <= $5
                ) AS is_read
            FROM (
                SELECT first_sequence, last_sequence, recorded_at, digest, personal, text
                FROM block
                WHERE tournament_id = $1 AND last_sequence >= $2
                ORDER BY last_sequence
                LIMIT $3
            ) AS b
        ) AS b
    ) AS b
    ORDER BY b.last_sequence
    """,  # noqa: S608 # the columns are in `rows.py`
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
    return await _decoded(await _read(connection, after, blocks_max=blocks_max, bytes_max=bytes_max))


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
            yield (await _decoded(read)).tails[tournament_id]
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
    if codec.sets_aside(unseen.text):
        return None
    blocks = []
    head = after
    for stored in unseen.text.split("\x1e"):
        text, _, personals = stored.partition("\x1d")
        found = digest.block_in(text)
        if found is None or not digest.is_moment(found.recorded_us):
            return None
        blocks.append(BlockLines(found.first_sequence, found.count, found.recorded_at, found.lines, personals or None))
        head = Head(Sequence(head.sequence + found.count), digest.chain(head.digest, text.encode()))
    if head.digest != unseen.digest:
        raise LogForked(tournament_id, after.sequence)
    return Tail(decoded(tournament_id, blocks), head)


class _Read(Struct, frozen=True):
    """Blocks as they were read: how far of each tournament, which tournaments have more, and which have events that
    were set aside."""

    spans: dict[TournamentId, Head]
    unread: set[TournamentId]
    blocks: dict[TournamentId, list[BlockLines]]
    aside: dict[TournamentId, set[Sequence]]


async def _read(
    connection: Connection,
    after: Mapping[TournamentId, Head],
    *,
    blocks_max: int = TAIL_BLOCKS_MAX,
    bytes_max: int | None = None,
) -> _Read:
    """Raises LogForked."""
    bytes_max = bytes_max or TAIL_BYTES_MAX
    events_share = _share(TAIL_EVENTS_MAX, after)
    blocks_max = min(blocks_max, events_share)
    asked = {tournament_id: (head.sequence,) for tournament_id, head in after.items()}
    # The block that ends there already, and one more.
    rows = await _BLOCKS.fetch(connection, asked, blocks_max + 2, events_share, _share(bytes_max, after))
    found: dict[TournamentId, list[Record]] = {tournament_id: [] for tournament_id in after}
    for row in rows:
        found[row["tournament_id"]].append(row)
    read = _Read({}, set(), {}, {})
    events = size = 0
    for tournament_id, following in found.items():
        begin = head = after[tournament_id]
        if head != beginning(tournament_id) and (not following or _end(following.pop(0)) != head):
            raise LogForked(tournament_id, head.sequence)
        blocks: list[BlockLines] = []
        for row in following:
            if row["text"] is None or len(blocks) == blocks_max:
                break
            if row["first_sequence"] != head.sequence + 1:
                raise LogForked(tournament_id, begin.sequence)
            head = _end(row)
            blocks.append(lines_of(tournament_id, row))
        count, length = head.sequence - begin.sequence, sum(len(block.text) for block in blocks)
        if read.spans and (events + count > TAIL_EVENTS_MAX or size + length > bytes_max):
            blocks = []
        if blocks:
            events, size = events + count, size + length
            read.spans[tournament_id], read.blocks[tournament_id] = head, blocks
            if following[0]["has_asides"]:
                read.aside[tournament_id] = set()
        if len(blocks) < len(following):
            read.unread.add(tournament_id)
    for tournament_id, aside in read.aside.items():
        aside.update(row["sequence"] for row in await connection.fetch(ASIDE, tournament_id))
    return read


def _end(row: Record) -> Head:
    return Head(row["last_sequence"], row["digest"])


async def _decoded(read: _Read) -> Tails:
    """The events that were read."""
    return Tails(
        {
            tournament_id: Tail(
                await events_of(tournament_id, read.blocks[tournament_id], read.aside.get(tournament_id, ())), head
            )
            for tournament_id, head in read.spans.items()
        },
        read.unread,
    )


def _share(total: int, among: Sized) -> int:
    return max(1, total // max(1, len(among)))
