"""Events as their text stands in the log, with the digests of their blocks: for streams, webhooks and `follow`.

Functions take a connection and do not translate driver errors: readers use `pool.unavailable`.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from asyncpg import Connection, Record
from msgspec import Struct

from engine.database.distribution import TournamentQuery
from engine.domain.errors import LogForked
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log import codec
from engine.log.heads import Head
from engine.log.reading import CHUNK_BYTES_MAX, CHUNK_EVENTS_MAX
from engine.log.rows import EVENTS_BETWEEN, within

# Like `EVENTS_BETWEEN` of `rows.py`. Returns nothing if the block of event $2 has another digest than $6, or if no
# block with digest $8 ends at $7.
_STORED: Final = TournamentQuery(
    f"""
    SELECT $1::bigint AS tournament_id, b.*
    FROM ({EVENTS_BETWEEN}) AS b
    WHERE ($2 = 0 OR $6 = (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= $2
        ORDER BY last_sequence
        LIMIT 1
    )) AND ($7::bigint = 0 OR $8 = (SELECT digest FROM block WHERE tournament_id = $1 AND last_sequence = $7))
    ORDER BY b.last_sequence
    """,  # noqa: S608 # written down in `rows.py`
    "bigint",
    "bigint",
    "bigint",
    "bigint",
    "bigint",
    "bytea",
    "bigint",
    "bytea",
)
_NONE: Final = Head(Sequence(0), b"")


class Stored(Struct, frozen=True, gc=False):
    """An event as it stands in the log: `body` is its text. `kind` None: it was set aside. `digest`: that of the block
    it is in."""

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    kind: str | None
    body: str
    digest: bytes


class EventSpan(Struct, frozen=True):
    """The events of a log that follow `after`, up to `upto`. `after` has the digest of the block of its event, which
    need not be the last of that block; of 0, any. `known`: a head of the log, or it is another log."""

    after: Head
    upto: Sequence
    known: Head | None = None


async def stored(
    connection: Connection,
    tournament_id: TournamentId,
    span: EventSpan,
    *,
    events_max: int = CHUNK_EVENTS_MAX,
    bytes_max: int = CHUNK_BYTES_MAX,
) -> list[Stored]:
    """The first events of the span, not decoded: at least one, if there is one, at most `events_max`, and `bytes_max`
    bytes of bodies unless the first is larger.

    Raises LogForked if the log does not have `after` or `known`, or if an event is missing.
    """
    found = await stored_of(connection, {tournament_id: span}, events_max=events_max, bytes_max=bytes_max)
    if tournament_id not in found:
        raise LogForked(tournament_id, span.after.sequence)
    return found[tournament_id]


async def stored_of(
    connection: Connection,
    spans: Mapping[TournamentId, EventSpan],
    *,
    events_max: int = CHUNK_EVENTS_MAX,
    bytes_max: int = CHUNK_BYTES_MAX,
) -> dict[TournamentId, list[Stored]]:
    """Like `stored` for several tournaments. The limits of events and bytes hold for each. Tournaments for which
    `stored` would raise LogForked are missing."""
    found: dict[TournamentId, list[Record]] = {tournament_id: [] for tournament_id in spans}
    bounds = events_max, bytes_max
    asked = {tournament_id: _values(span, *bounds) for tournament_id, span in spans.items()}
    for row in await _STORED.fetch(connection, asked):
        found[row["tournament_id"]].append(row)
    stored = {}
    for tournament_id, rows in found.items():
        span = spans[tournament_id]
        with suppress(LogForked):  # of a block that lacks events
            events = _stored(tournament_id, rows, span, *bounds)
            if _follow(events, span):
                stored[tournament_id] = events
    return stored


def _values(span: EventSpan, events_max: int, bytes_max: int) -> tuple[object, ...]:
    known = span.known or _NONE
    after = span.after
    return after.sequence, span.upto, events_max, bytes_max, after.digest, known.sequence, known.digest


def _stored(
    tournament_id: TournamentId, rows: list[Record], span: EventSpan, events_max: int, bytes_max: int
) -> list[Stored]:
    """Raises LogForked if a block lacks events."""
    events = []
    each = within(tournament_id, rows, span.after.sequence, span.upto, events_max, bytes_max)
    for row, lines in zip(rows, each, strict=False):
        for number, line in enumerate(lines.joined().split("\n"), lines.first_sequence):
            is_aside = number in row["aside"]
            parts = codec.any_parts_of(line)
            kind = None if is_aside else parts.kind
            events.append(Stored(Sequence(number), lines.recorded_at, parts.actor, kind, parts.body, row["digest"]))
    return events


def _follow(events: list[Stored], span: EventSpan) -> bool:
    """Whether they are of the span, without a gap. None are if there is nothing in it."""
    if not events:
        return span.after.sequence >= span.upto
    return events[-1].sequence == span.after.sequence + len(events)
