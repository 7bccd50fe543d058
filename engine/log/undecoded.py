"""Events as their text stands in the log, with the digests of their blocks: for streams, webhooks and `follow`.

Functions take a connection and do not translate driver errors: readers use `pool.unavailable`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import TournamentQuery
from engine.domain.errors import LogForked
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log.heads import Head
from engine.log.reading import CHUNK_BYTES_MAX, CHUNK_EVENTS_MAX
from engine.log.rows import ASIDE, TEXT

# Like `_CHUNK` of `reading.py`, with the digest of each event's block. Returns nothing if the block of event $2 has
# another digest than $3, or if no block with digest $6 ends at $5.
_STORED: Final = TournamentQuery(
    f"""
    SELECT $1::bigint AS tournament_id, s.sequence, s.recorded_at, s.actor, s.kind, s.body, b.digest
    FROM (
        SELECT
            sequence, recorded_at, actor, body,
            CASE WHEN sequence IN (SELECT sequence FROM ({ASIDE}) AS set_aside) THEN NULL ELSE kind END AS kind,
            sum(octet_length(body)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM (
            SELECT sequence, recorded_at, actor, kind, {TEXT}
            FROM event
            WHERE tournament_id = $1 AND sequence > $2 AND sequence <= $4
            ORDER BY sequence
            LIMIT $7
        ) AS e
    ) AS s
    CROSS JOIN LATERAL (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= s.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE (s.size <= $8 OR s.sequence = $2 + 1) AND ($2 = 0 OR $3 = (
        SELECT digest
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= $2
        ORDER BY last_sequence
        LIMIT 1
    )) AND ($5::bigint = 0 OR $6 = (SELECT digest FROM block WHERE tournament_id = $1 AND last_sequence = $5))
    ORDER BY s.sequence
    """,  # noqa: S608 # written down above
    "bigint",
    "bigint",
    "bytea",
    "bigint",
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
    found: dict[TournamentId, list[Stored]] = {tournament_id: [] for tournament_id in spans}
    asked = {tournament_id: _values(span) for tournament_id, span in spans.items()}
    for row in await _STORED.fetch(connection, asked, events_max, bytes_max):
        found[row[0]].append(Stored(*row[1:]))
    return {tournament_id: events for tournament_id, events in found.items() if _follow(events, spans[tournament_id])}


def _values(span: EventSpan) -> tuple[Sequence, bytes, Sequence, Sequence, bytes]:
    known = span.known or _NONE
    return span.after.sequence, span.after.digest, span.upto, known.sequence, known.digest


def _follow(events: list[Stored], span: EventSpan) -> bool:
    """Whether they are of the span, without a gap. None are if there is nothing in it."""
    if not events:
        return span.after.sequence >= span.upto
    return events[-1].sequence == span.after.sequence + len(events)
