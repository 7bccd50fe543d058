"""Selected events: one of them, the next chunk, those of a competition or of a request, reversals, used keys, names.

`heads.py` reads heads, `tails.py` whole tails, `undecoded.py` events as text. Verification reads the stored bytes by
SQL of its own (`projections/verification/stored_log.py`).

Times are UTC, digests 32 bytes. Functions take a connection and do not translate driver errors: readers use
`pool.unavailable`.
"""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from collections.abc import Sequence as Items
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final, get_args
from uuid import UUID

import msgspec
from asyncpg import Connection
from msgspec import Struct

from engine.domain.errors import LogForked
from engine.domain.events import (
    Event,
    Points,
    PointsAdded,
    Recorded,
    TournamentOpened,
    TournamentRenamed,
)
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId
from engine.log import codec
from engine.log.rows import ASIDE, COLUMNS, event_of, events_of

_EVENT: Final = f"""
    SELECT {COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence = $2
"""  # noqa: S608 # the columns are in `rows.py`
# The event that gave tournament $1 the name it has after the event $2: the last renaming, or the opening.
_NAMING: Final = f"""
    SELECT {COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence = coalesce(
        (
            SELECT sequence
            FROM event
            WHERE tournament_id = $1 AND kind = 'TournamentRenamed' AND sequence <= $2
                AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
            ORDER BY sequence DESC
            LIMIT 1
        ),
        1
    )
"""  # noqa: S608 # the columns are in `rows.py`
_LAST_JUDGED_AT: Final = f"""
    SELECT recorded_at
    FROM event
    WHERE tournament_id = $1 AND sequence <= $2 AND kind <> ALL ($3)
        AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
    ORDER BY sequence DESC
    LIMIT 1
"""  # noqa: S608 # `ASIDE` is in `rows.py`
# The events of the block that holds event $2, unless that is its last one. `begins`: the event begins a request. Others
# are an expiry, which is alone in a block that it begins; a reversal, whose request ends its block; a later part of
# points; and one of several competitors or competitions.
_BLOCK_WITH: Final = f"""
    SELECT
        e.sequence,
        e.begins,
        CASE WHEN e.kind = 'PointsExpired' THEN (e.body::json ->> 'ranking_id')::bigint END AS expires
    FROM (
        SELECT
            e.sequence,
            e.kind,
            e.body,
            CASE e.kind
                WHEN 'PointsExpired' THEN false
                WHEN 'PointsReversed' THEN lag(e.kind) OVER log NOT IN (
                    'PointsReversed', 'CompetitionVoided', 'CompetitionUnvoided', 'CompetitorsStruck',
                    'CompetitorsUnstruck'
                )
                WHEN 'PointsAdded' THEN e.body !~ '"part":\\[(?!1,)'
                WHEN lag(e.kind) OVER log THEN
                    e.kind NOT IN ('CompetitorRegistered', 'CompetitionAdded')
                    OR e.idempotency_key IS DISTINCT FROM lag(e.idempotency_key) OVER log
                ELSE true
            END AS begins
        FROM (
            SELECT first_sequence, last_sequence
            FROM block
            WHERE tournament_id = $1 AND last_sequence >= $2
            ORDER BY last_sequence
            LIMIT 1
        ) AS b
        JOIN event AS e ON e.tournament_id = $1 AND e.sequence BETWEEN b.first_sequence AND b.last_sequence
        WHERE b.last_sequence > $2
        WINDOW log AS (ORDER BY e.sequence)
    ) AS e
    WHERE e.sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
    ORDER BY e.sequence
"""  # noqa: S608 # `ASIDE` is in `rows.py`
_UNJUDGED: Final = [kind.tag for kind in get_args(Event) if not kind.judged]
# Walks along the index until it has $4 events or $5 bytes of bodies; it returns at least one event.
_CHUNK: Final = f"""
    SELECT {COLUMNS}
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
"""  # noqa: S608 # the columns are in `rows.py`
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
                AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
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
                AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
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
                AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
            ORDER BY sequence
            LIMIT $4
    """,  # noqa: S608 # written down above
    bytes_max="$5",
)
_SECRET: Final = "SELECT append_id FROM block WHERE tournament_id = $1 ORDER BY last_sequence LIMIT 1"  # noqa: S105 - no password
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
# Uses the index `event_erased`.
_ERASED_SINCE: Final = """
    SELECT rtrim(split_part(body, ':', 2), '}')::bigint AS competitor_id
    FROM event
    WHERE tournament_id = $1 AND kind = 'CompetitorErased' AND sequence > $2
    ORDER BY sequence
"""
_SET_ASIDE_SINCE: Final = f"""
    SELECT EXISTS (SELECT FROM ({ASIDE}) AS set_aside WHERE sequence <= $2 AND set_aside_by > $2)
"""  # noqa: S608 # written down above
# The events of one request are in one block, one after the other.
_REQUEST: Final = f"""
    SELECT {COLUMNS}
    FROM event
    WHERE tournament_id = $1 AND sequence >= $2 AND sequence <= (
        SELECT last_sequence FROM block WHERE tournament_id = $1 AND last_sequence >= $2 ORDER BY last_sequence LIMIT 1
    ) AND idempotency_key = $3
    ORDER BY sequence
"""  # noqa: S608 # the columns are in `rows.py`
# Like `_EVENTS` of `tails.py`, one walk along each index for each key, whatever the statistics say.
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
        SELECT {COLUMNS}
        FROM event
        WHERE tournament_id = $1 AND sequence = i.sequence
        LIMIT 1
    ) AS e
"""  # noqa: S608 # the columns are in `rows.py`


async def event_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Recorded:
    """The event with this sequence. Raises LogForked if it is no longer there, and LogUnreadable."""
    row = await connection.fetchrow(_EVENT, tournament_id, sequence)
    if row is None:
        raise LogForked(tournament_id, sequence)
    return event_of(row)


async def last_judged_at(connection: Connection, tournament_id: TournamentId, upto: Sequence) -> datetime:
    """When the last event up to this sequence was recorded that is `judged`: until then, all due points have expired.
    Raises LogForked if there is none."""
    recorded_at: datetime | None = await connection.fetchval(_LAST_JUDGED_AT, tournament_id, upto, _UNJUDGED)
    if recorded_at is None:
        raise LogForked(tournament_id, upto)
    return recorded_at


async def expiring_request(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence, ranking_id: RankingId
) -> Sequence | None:
    """The first event of the request to which the event `sequence` belongs, if points of the ranking expire with that
    request, but after this event; None: they do not."""
    begin = None
    for row in await connection.fetch(_BLOCK_WITH, tournament_id, sequence):
        if begin is None or row["begins"]:
            if row["sequence"] > sequence:
                break
            begin = Sequence(row["sequence"])
        elif row["sequence"] > sequence and row["expires"] == ranking_id:
            return begin
    return None


async def end_of_request(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Sequence:
    """The last event of the request to which the event `sequence` belongs."""
    end = sequence
    for row in await connection.fetch(_BLOCK_WITH, tournament_id, sequence):
        if row["sequence"] > sequence:
            if row["begins"]:
                break
            end = Sequence(row["sequence"])
    return end


async def request_at(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence, idempotency_key: str
) -> list[Recorded]:
    """The events of the request with this key, whose first event has this sequence. Raises as `event_at`, also if that
    event is another request's."""
    rows = await connection.fetch(_REQUEST, tournament_id, sequence, idempotency_key)
    if not rows or rows[0]["sequence"] != sequence:
        raise LogForked(tournament_id, sequence)
    return await events_of(rows)


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
    events = await events_of(rows)
    if (not events and after < upto) or (events and events[-1].sequence != after + len(events)):
        raise LogForked(tournament_id, after)
    return events


Connected = Callable[[], AbstractAsyncContextManager[Connection]]
"""Gives a connection for one chunk."""


async def chunks(
    connected: Connected, tournament_id: TournamentId, after: Sequence, upto: Sequence
) -> AsyncGenerator[list[Recorded], None]:
    """Yields the events after `after` up to `upto`, chunk by chunk. Raises as `chunk_of`."""
    while after < upto:
        async with connected() as connection:
            events = await chunk_of(connection, tournament_id, after, upto)
        yield events
        after = events[-1].sequence


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
            recorded = event_of(row)
            event = recorded.event
            if isinstance(event, Points) and event.competition_id == competition_id:
                yield recorded
        after = Sequence(rows[-1]["sequence"])


_BEGINNING: Final = Sequence(0)
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
    return await events_of([tuple(row)[1:] for row in rows if row["sequence"] is not None])


async def all_points_of_competitions(
    connected: Connected,
    tournament_id: TournamentId,
    competition_ids: Iterable[CompetitionId],
    upto: Sequence,
    after: Sequence = _BEGINNING,
) -> AsyncGenerator[list[Recorded], None]:
    """Yields, chunk by chunk, all events after `after` up to `upto` that gave or reversed points of these competitions.
    Raises as `points_of_competitions`."""
    pending = deque([(one, after) for one in competition_ids])
    while pending:
        async with connected() as connection:
            events = await points_of_competitions(connection, tournament_id, pending, upto)
        yield events


async def reversals(
    connection: Connection, tournament_id: TournamentId, after: Sequence, upto: Sequence
) -> list[Recorded]:
    """One chunk of the reversals after sequence `after`, up to `upto`; empty: there are no more. Those that were set
    aside are left out. Raises LogUnreadable."""
    rows = await connection.fetch(_REVERSALS, tournament_id, after, upto, CHUNK_EVENTS_MAX, CHUNK_BYTES_MAX)
    return await events_of(rows)


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
    found = [KeyedEvent(row[0], event_of(tuple(row)[1:])) for row in rows]
    return {one.recorded.idempotency_key: one for one in found if one.recorded.idempotency_key is not None}


async def name_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> str:
    """The name of a tournament after this event. Raises LogUnreadable."""
    naming = event_of(await connection.fetchrow(_NAMING, tournament_id, sequence)).event
    assert isinstance(naming, TournamentOpened | TournamentRenamed)  # the opening cannot be set aside
    return naming.name
