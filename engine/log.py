"""The log of events in PostgreSQL: append, read, heads. The only SQL on events and blocks.

What the database promises stands beside the function `append_block` in `migrations/0001_log.sql`: sequences
without gaps in the order of commits, one door, one chain of digests. Here it is put into Python values and
nothing is added, except for one thing that only the client can know: whether a commit was confirmed.

Times are UTC, digests 32 bytes. Functions take a connection; driver errors come through as they are (the
appender tells them apart, readers use `database.unavailable`).
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final
from uuid import UUID, uuid4

from asyncpg import Connection, InterfaceError
from msgspec import Struct, field

from engine import codec, digest
from engine.errors import LogForked, LogUnreadable
from engine.events import Event, Recorded, TournamentOpened
from engine.terms import ActorId, Sequence, TournamentId

_APPEND: Final = """
    SELECT status, first_sequence, last_sequence, recorded_at, previous_digest, digest, answers
    FROM append_block(
        $1, $2, $3, $4, $5, $6, $7, $8,
        string_to_array($9, chr(10))::bigint[], string_to_array($10, chr(10)), string_to_array($11, chr(10))
    )
"""
_OPEN: Final = "SELECT open_tournament($1, $2, $3, $4, $5, $6, $7)"
_HEADS: Final = """
    SELECT tournament_id, sequence, digest
    FROM head
    WHERE tournament_id = ANY($1::bigint[])
"""
_BLOCKS: Final = """
    SELECT last_sequence, digest
    FROM block
    WHERE tournament_id = $1 AND last_sequence >= $2
    ORDER BY last_sequence
    LIMIT $3
"""
_EVENTS: Final = """
    SELECT sequence, recorded_at, actor, kind, idempotency_key, body
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
    ORDER BY sequence
"""
_BODY_BYTES: Final = """
    SELECT coalesce(sum(octet_length(body)), 0)::bigint
    FROM event
    WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $3
"""
# Of several tournaments, each with a place of its own. Scalar and ordered subqueries are never turned into joins: each
# is a look into an index. `last_sequence`: the last end of a block within $3 events, or else that of the first block.
_SPANS: Final = """
    SELECT
        a.tournament_id,
        (SELECT sequence FROM head AS h WHERE h.tournament_id = a.tournament_id) AS head_sequence,
        (
            SELECT digest
            FROM block AS b
            WHERE b.tournament_id = a.tournament_id AND b.last_sequence = a.sequence
        ) AS digest_before,
        reached.last_sequence,
        reached.digest,
        (
            SELECT sum(octet_length(body))::bigint
            FROM event AS e
            WHERE e.tournament_id = a.tournament_id AND e.sequence > a.sequence AND e.sequence <= reached.last_sequence
        ) AS body_bytes
    FROM unnest($1::bigint[], $2::bigint[]) AS a (tournament_id, sequence)
    LEFT JOIN LATERAL (
        SELECT last_sequence, digest
        FROM block
        WHERE tournament_id = a.tournament_id
            AND last_sequence > a.sequence
            AND last_sequence <= greatest(
                a.sequence + $3::bigint,
                (
                    SELECT min(last_sequence)
                    FROM block AS b
                    WHERE b.tournament_id = a.tournament_id AND b.last_sequence > a.sequence
                )
            )
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS reached ON true
"""
_EVENTS_OF_SPANS: Final = """
    SELECT a.tournament_id, e.*
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS a (tournament_id, after, last_sequence)
    CROSS JOIN LATERAL (
        SELECT sequence, recorded_at, actor, kind, idempotency_key, body
        FROM event
        WHERE tournament_id = a.tournament_id AND sequence > a.after AND sequence <= a.last_sequence
        ORDER BY sequence
    ) AS e
"""
_EVENT: Final = """
    SELECT sequence, recorded_at, actor, kind, idempotency_key, body
    FROM event
    WHERE tournament_id = $1 AND sequence = $2
"""
_KEY: Final = """
    SELECT fingerprint, sequence
    FROM idempotency
    WHERE tournament_id = $1 AND idempotency_key = $2
"""
_BY_SLUG: Final = "SELECT tournament_id FROM tournament WHERE slug = $1"
_TOURNAMENTS: Final = """
    SELECT t.tournament_id, t.slug, t.name, h.sequence
    FROM tournament AS t
    JOIN head AS h ON h.tournament_id = t.tournament_id
    ORDER BY t.tournament_id
"""
_NEXT_IDS: Final = "SELECT nextval('resource_id') AS id FROM generate_series(1, $1)"


# ── Appending ───────────────────────────────────────────────────────────────────────────────────────────


class Request(Struct, frozen=True, kw_only=True):
    """What one request asks to have recorded: whole or not at all, once per idempotency key."""

    events: tuple[Event, ...]
    actor: ActorId
    idempotency_key: str | None = None
    fingerprint: bytes | None = None


class Block(Struct, frozen=True, kw_only=True):
    """Requests to append to one tournament in one commit.

    All of them were judged by the log up to `judged_at`. Only the last may be structural itself, so none is
    judged by what another of them changes. `append_id` stays the same when the block is
    sent again because the answer was lost.
    """

    tournament_id: TournamentId
    judged_at: Sequence
    requests: tuple[Request, ...]
    append_id: UUID = field(default_factory=uuid4)


class Appended(Struct, frozen=True, kw_only=True):
    """What became of each request of a block.

    `answers`: n > 0, recorded, its first event has sequence n; n < 0, a repeat of the request whose first event
    has sequence -n; 0, its key belongs to another request. The other fields tell of the block of those that were
    recorded; they are None where none was. `previous_digest` is None for a block that had been sent before.
    """

    answers: tuple[int, ...]
    first_sequence: Sequence | None
    last_sequence: Sequence | None
    recorded_at: datetime | None
    previous_digest: bytes | None
    digest: bytes | None


class NotAppended(StrEnum):
    """Why nothing of a block was recorded."""

    OVERTAKEN = "overtaken"
    """A structural event landed after it was judged, or it was judged by a log that is not this one."""
    BUSY = "busy"
    """Somebody holds the tournament's head, and the call was not to wait."""
    UNKNOWN = "unknown"
    """There is no such tournament."""


class UnconfirmedCommit(Exception):
    """The server committed, but warned that it did not do so as configured (a standby did not confirm)."""


async def append(connection: Connection, blocks: Items[Block], *, wait: bool) -> list[Appended | NotAppended]:
    """Appends `blocks`, of different tournaments, in one commit; the answers are in their order.

    `wait`: wait for heads that others hold, up to the session's lock_timeout, instead of answering BUSY. With
    more than one block that could deadlock unless they come in ascending order of their tournaments.

    Raises a driver error (nothing was recorded, or, where the connection was lost, nobody knows) and
    UnconfirmedCommit (all was recorded, perhaps not for ever).
    """
    warnings: list[object] = []

    def note(_connection: object, message: object) -> None:
        warnings.append(message)

    connection.add_log_listener(note)
    try:
        rows = await connection.fetchmany(_APPEND, [_parameters(block, wait) for block in blocks])
    finally:
        with suppress(InterfaceError):  # the connection was lost, and is taken back already
            connection.remove_log_listener(note)
    if warnings:
        # append_block raises none, so this is the commit's: "canceling wait for synchronous replication".
        raise UnconfirmedCommit(str(warnings[0]))
    return [_outcome(block, row) for block, row in zip(blocks, rows, strict=True)]


def recorded_events(block: Block, appended: Appended) -> Iterator[Recorded]:
    """The events of `block` as the log now holds them, in its order."""
    if appended.recorded_at is None:
        return
    for request, answer in zip(block.requests, appended.answers, strict=True):
        if answer > 0:
            for n, event in enumerate(request.events):
                yield Recorded(
                    Sequence(answer + n), appended.recorded_at, request.actor, request.idempotency_key, event
                )


def _parameters(block: Block, wait: bool) -> tuple[object, ...]:
    requests = block.requests
    keyed = any(request.idempotency_key is not None for request in requests)
    events = [(request.actor, *codec.encode(event)) for request in requests for event in request.events]
    actors, kinds, bodies = zip(*events, strict=True)
    return (
        block.tournament_id,
        block.append_id,
        block.judged_at,
        any(event.structural for event in requests[-1].events),
        wait,
        [len(request.events) for request in requests] if keyed else None,
        [request.idempotency_key for request in requests] if keyed else None,
        [request.fingerprint for request in requests] if keyed else None,
        # In lines, which no tag and no JSON text breaks: the driver takes ten times as long to make arrays of them.
        "\n".join(map(str, actors)),
        "\n".join(kinds),
        "\n".join(bodies),
    )


def _outcome(block: Block, row: Any) -> Appended | NotAppended:
    status, first_sequence, last_sequence, recorded_at, previous_digest, digest, answers = row
    if status != "appended":
        return NotAppended(status)
    return Appended(
        answers=_consecutive(block, first_sequence) if answers is None else tuple(answers),
        first_sequence=first_sequence,
        last_sequence=last_sequence,
        recorded_at=recorded_at,
        previous_digest=previous_digest,
        digest=digest,
    )


def _consecutive(block: Block, first_sequence: Sequence) -> tuple[int, ...]:
    """The first sequence of each request, when all were appended."""
    counts = [len(request.events) for request in block.requests]
    return tuple(accumulate(counts[:-1], initial=first_sequence))


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────


TAIL_EVENTS_MAX: Final = 10_000
TAIL_BYTES_MAX: Final = 4 * 1024 * 1024
"""Events, and bytes of their bodies, that are read, decoded and folded at once: while that is done, nothing else is."""
_TAIL_EVENTS_UNWEIGHED: Final = 64


class Head(Struct, frozen=True):
    """The last sequence of a tournament, and the digest of its last block."""

    sequence: Sequence
    digest: bytes


class Tail(Struct, frozen=True):
    """Whole blocks of events, and the head they lead to. Without events: there are no more."""

    events: list[Recorded]
    head: Head


def beginning(tournament_id: TournamentId) -> Head:
    """Where every log starts from."""
    return Head(Sequence(0), digest.genesis(tournament_id))


async def heads(connection: Connection, tournament_ids: Iterable[TournamentId]) -> dict[TournamentId, Head]:
    """The head of each tournament, as of one moment during the call."""
    rows = await connection.fetch(_HEADS, list(tournament_ids))
    return {row["tournament_id"]: Head(row["sequence"], row["digest"]) for row in rows}


async def tail(connection: Connection, tournament_id: TournamentId, after: Head, *, blocks_max: int) -> Tail:
    """The events of up to `blocks_max` blocks that follow `after`: at most TAIL_EVENTS_MAX events and about
    TAIL_BYTES_MAX bytes, unless the first block has more.

    Raises LogForked unless the log has a block that ends in just this head (or `after` is the beginning), and
    LogUnreadable for an event that cannot be decoded. Two queries see one truth, because what has been
    appended never changes.
    """
    blocks = await connection.fetch(_BLOCKS, tournament_id, after.sequence, blocks_max + 1)
    ends = [Head(row["last_sequence"], row["digest"]) for row in blocks]
    if after.sequence == 0:
        ends = [beginning(tournament_id), *ends[:blocks_max]]
    if not ends or ends[0] != after:
        raise LogForked(tournament_id, after.sequence)
    if len(ends) == 1:
        return Tail([], after)
    ends = [end for n, end in enumerate(ends) if n == 1 or end.sequence <= after.sequence + TAIL_EVENTS_MAX]
    ends = await _within_bytes(connection, tournament_id, ends)
    rows = await connection.fetch(_EVENTS, tournament_id, after.sequence, ends[-1].sequence)
    if len(rows) != ends[-1].sequence - after.sequence:
        raise LogForked(tournament_id, after.sequence)
    return Tail([_recorded(tournament_id, row) for row in rows], ends[-1])


async def _within_bytes(connection: Connection, tournament_id: TournamentId, ends: list[Head]) -> list[Head]:
    """As many of the `ends` of blocks as their bodies are not too heavy for; the first is where they start from."""
    while len(ends) > 2 and ends[-1].sequence - ends[0].sequence > _TAIL_EVENTS_UNWEIGHED:
        size = await connection.fetchval(_BODY_BYTES, tournament_id, ends[0].sequence, ends[-1].sequence)
        if size <= TAIL_BYTES_MAX:
            break
        ends = ends[: max(2, min(len(ends) - 1, len(ends) * TAIL_BYTES_MAX // size))]
    return ends


class Tails(Struct, frozen=True):
    """The tails of those tournaments that have one, and which tournaments have more than was read."""

    tails: dict[TournamentId, Tail]
    unread: set[TournamentId]


async def tails(connection: Connection, after: Mapping[TournamentId, Head]) -> Tails:
    """The events that follow `after`, of each of its tournaments: whole blocks, at most TAIL_EVENTS_MAX events and
    TAIL_BYTES_MAX bytes all together, unless the first block of the first has more.

    Each has the same share in that, and at least one block; where even those are too many, the last tournaments get
    nothing. Raises as `tail` does, for one of those with which something is wrong.
    """
    if not after:
        return Tails({}, set())
    share = TAIL_EVENTS_MAX // len(after)
    while True:
        spans = await _spans(connection, after, share)
        size = sum(span.body_bytes for span in spans)
        if size <= TAIL_BYTES_MAX or share <= 1:
            break
        share = min(share // 2, share * TAIL_BYTES_MAX // size)
    read = {span.tournament_id: span for span in _within_bounds(spans)}
    rows = await connection.fetch(
        _EVENTS_OF_SPANS,
        list(read),
        [span.after.sequence for span in read.values()],
        [span.end.sequence for span in read.values()],
    )
    events: dict[TournamentId, list[Recorded]] = {tournament_id: [] for tournament_id in read}
    for tournament_id, *row in rows:
        events[tournament_id].append(_recorded(tournament_id, row))
    for span in read.values():
        if [r.sequence for r in events[span.tournament_id]] != list(
            range(span.after.sequence + 1, span.end.sequence + 1)
        ):
            raise LogForked(span.tournament_id, span.after.sequence)
    return Tails(
        {tournament_id: Tail(events[tournament_id], span.end) for tournament_id, span in read.items()},
        {s.tournament_id for s in spans if s.tournament_id not in read or s.end.sequence < s.head_sequence},
    )


class _Span(Struct, frozen=True, kw_only=True):
    """Whole blocks of a tournament that has some: from `after` to `end`. `head_sequence`: where its log ends."""

    tournament_id: TournamentId
    after: Head
    end: Head
    head_sequence: Sequence
    body_bytes: int


async def _spans(connection: Connection, after: Mapping[TournamentId, Head], events_max: int) -> list[_Span]:
    """Up to `events_max` events of each tournament, or its first block; none of those that have nothing. Raises
    LogForked."""
    places = [head.sequence for head in after.values()]
    spans = []
    for row in await connection.fetch(_SPANS, list(after), places, events_max):
        tournament_id = row["tournament_id"]
        start = after[tournament_id]
        there = beginning(tournament_id).digest if start.sequence == 0 else row["digest_before"]
        if there != start.digest:
            raise LogForked(tournament_id, start.sequence)
        if row["last_sequence"] is not None:
            end = Head(row["last_sequence"], row["digest"])
            spans.append(
                _Span(
                    tournament_id=tournament_id,
                    after=start,
                    end=end,
                    head_sequence=row["head_sequence"],
                    body_bytes=row["body_bytes"] or 0,
                )
            )
    return spans


def _within_bounds(spans: list[_Span]) -> list[_Span]:
    """The first of `spans`, as many as one may read at once, but at least one."""
    events = accumulate(span.end.sequence - span.after.sequence for span in spans)
    sizes = accumulate(span.body_bytes for span in spans)
    return [
        span
        for n, (span, e, b) in enumerate(zip(spans, events, sizes, strict=True))
        if n == 0 or (e <= TAIL_EVENTS_MAX and b <= TAIL_BYTES_MAX)
    ]


async def event_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Recorded:
    """The event with this sequence. Raises LogForked where it is no longer there, and LogUnreadable."""
    row = await connection.fetchrow(_EVENT, tournament_id, sequence)
    if row is None:
        raise LogForked(tournament_id, sequence)
    return _recorded(tournament_id, row)


class UsedKey(Struct, frozen=True):
    """The request that used an idempotency key: its fingerprint, and the sequence of its first event."""

    fingerprint: bytes
    sequence: Sequence


async def used_key(connection: Connection, tournament_id: TournamentId, idempotency_key: str) -> UsedKey | None:
    """Who used this key, if anybody did."""
    row = await connection.fetchrow(_KEY, tournament_id, idempotency_key)
    return None if row is None else UsedKey(row["fingerprint"], row["sequence"])


def _recorded(tournament_id: TournamentId, row: Any) -> Recorded:
    sequence, recorded_at, actor, kind, key, body = row
    try:
        return Recorded(sequence, recorded_at, actor, key, codec.decode(kind, body))
    except codec.Undecodable as error:
        raise LogUnreadable(tournament_id, sequence, str(error)) from error


# ── The registry ────────────────────────────────────────────────────────────────────────────────────────


class Registered(Struct, frozen=True):
    """A tournament and how long its log is."""

    tournament_id: TournamentId
    slug: str
    name: str
    sequence: Sequence


async def open_tournament(
    connection: Connection, tournament_id: TournamentId, *, name: str, slug: str, actor: ActorId
) -> bool:
    """Enters a tournament in the registry and records that it was opened. False: the slug is taken."""
    kind, body = codec.encode(TournamentOpened(name=name, slug=slug))
    opened: bool = await connection.fetchval(_OPEN, tournament_id, slug, name, uuid4(), actor, kind, body)
    return opened


async def tournament_named(connection: Connection, slug: str) -> TournamentId | None:
    """The tournament whose slug this is."""
    tournament_id: TournamentId | None = await connection.fetchval(_BY_SLUG, slug)
    return tournament_id


async def tournaments(connection: Connection) -> list[Registered]:
    """All tournaments, oldest first."""
    return [Registered(*row) for row in await connection.fetch(_TOURNAMENTS)]


async def next_ids(connection: Connection, count: int) -> list[int]:
    """`count` ids that nobody else has or will have, ascending."""
    return [row["id"] for row in await connection.fetch(_NEXT_IDS, count)]
