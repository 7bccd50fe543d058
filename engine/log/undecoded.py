"""Events as their text stands in the log, with the digests of their blocks: for streams, webhooks and `follow`.

Functions take a connection and do not translate driver errors: readers use `pool.unavailable`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import is_distributed
from engine.domain.errors import LogForked
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log.heads import Head
from engine.log.reading import CHUNK_BYTES_MAX, CHUNK_EVENTS_MAX
from engine.log.rows import ASIDE, TEXT

# Like `_CHUNK` of `reading.py` for several tournaments, with the digest of each event's block. Returns nothing of a
# tournament if the block of its event `after` has another digest.
_STORED: Final = f"""
    SELECT a.tournament_id, s.sequence, s.recorded_at, s.actor, s.kind, s.body, b.digest
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
            SELECT sequence, recorded_at, actor, kind, {TEXT}
            FROM event
            WHERE tournament_id = a.tournament_id AND sequence > a.after AND sequence <= a.upto
            ORDER BY sequence
            LIMIT $5
        ) AS e
    ) AS s
    CROSS JOIN LATERAL (
        SELECT digest
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
    SELECT s.sequence, s.recorded_at, s.actor, s.kind, s.body, b.digest
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
            LIMIT $5
        ) AS e
    ) AS s
    CROSS JOIN LATERAL (
        SELECT digest
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


class Stored(Struct, frozen=True, gc=False):
    """An event as it stands in the log: `body` is its text. `kind` None: it was set aside. `digest`: that of the block
    it is in."""

    sequence: Sequence
    recorded_at: datetime
    actor: ActorId
    kind: str | None
    body: str
    digest: bytes


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
