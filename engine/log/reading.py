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
from typing import Final
from uuid import UUID

import msgspec
from asyncpg import Connection
from msgspec import Struct

from engine.domain.errors import LogForked
from engine.domain.events import (
    CompetitionAdded,
    CompetitionChanged,
    CompetitorErased,
    CompetitorRegistered,
    Points,
    PointsAdded,
    PointsExpired,
    PointsReversed,
    PointsScored,
    Recorded,
    TournamentOpened,
    TournamentRenamed,
)
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId
from engine.log import codec
from engine.log.rows import ASIDE, ASIDES, EVENTS_BETWEEN, PERSONALS, event_of, events_at, events_of, lines_of, within

_EVENT: Final = events_at("SELECT $2::bigint AS sequence", personal=True)
# The event that gave tournament $1 the name it has after the event $2: the last renaming, or the opening.
_NAMING: Final = events_at(
    f"""
    SELECT coalesce(
        (
            SELECT max(sequence)
            FROM topic
            WHERE tournament_id = $1 AND topic = -2 AND sequence <= $2
                AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
        ),
        1
    ) AS sequence
    """  # noqa: S608 # `ASIDE` is in `rows.py`
)
# Goes back from $2 over events with one of the topics $3, and over those that were set aside.
_LAST_JUDGED_AT: Final = f"""
    WITH RECURSIVE back (sequence) AS (
        SELECT $2::bigint
        UNION ALL
        SELECT b.sequence - 1
        FROM back AS b
        WHERE b.sequence IN (SELECT sequence FROM ({ASIDE}) AS set_aside) OR EXISTS (
            SELECT FROM topic WHERE tournament_id = $1 AND topic = ANY($3::bigint[]) AND sequence = b.sequence
        )
    )
    SELECT b.recorded_at
    FROM (SELECT min(sequence) AS sequence FROM back) AS last
    CROSS JOIN LATERAL (
        SELECT recorded_at
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= last.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE last.sequence > 0
"""  # noqa: S608 # `ASIDE` is in `rows.py`
_UNJUDGED: Final = [topic for kind, topic in codec.TOPICS.items() if not kind.judged]
_BLOCK_WITH: Final = f"""
    SELECT b.first_sequence, b.last_sequence, b.recorded_at, b.text, {PERSONALS}, {ASIDES}
    FROM block AS b
    WHERE b.tournament_id = $1 AND b.last_sequence >= $2
    ORDER BY b.last_sequence
    LIMIT 1
"""  # noqa: S608 # the columns are in `rows.py`


def _within_bytes(events: str, *, bytes_max: str) -> str:
    """The statement that reads those of `events` (a subquery) which begin within the first `bytes_max` bytes of
    lines."""
    return f"""
    SELECT sequence, recorded_at, line, is_aside
    FROM (
        SELECT *, sum(octet_length(line)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM ({events}) AS e
    ) AS s
    WHERE size - octet_length(line) < {bytes_max}
    ORDER BY sequence
    """  # noqa: S608 # written down below


_WITH_TOPIC: Final = f"""
    SELECT sequence
    FROM topic
    WHERE tournament_id = $1 AND topic = $2 AND sequence > $3 AND sequence <= $4
        AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
    ORDER BY sequence
    LIMIT $5
"""  # noqa: S608 # `ASIDE` is in `rows.py`
_EVENTS_WITH_TOPIC: Final = _within_bytes(events_at(_WITH_TOPIC), bytes_max="$6")
# One row for each event, after its competition's `after`; one of nulls for a competition without any. Of a competition
# at most $5 events, of all as many as `_EVENTS_WITH_TOPIC` with $6 bytes.
_POINTS_OF_COMPETITIONS: Final = f"""
    WITH wanted AS MATERIALIZED (
        SELECT c.n, t.sequence
        FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS c (competition_id, after, n)
        LEFT JOIN LATERAL (
            SELECT sequence
            FROM topic
            WHERE tournament_id = $1 AND topic = c.competition_id AND sequence > c.after AND sequence <= $4
                AND sequence NOT IN (SELECT sequence FROM ({ASIDE}) AS set_aside)
            ORDER BY sequence
            LIMIT $5
        ) AS t ON true
    )
    SELECT n, sequence, recorded_at, line, is_aside
    FROM (
        SELECT
            w.n, e.sequence, e.recorded_at, e.line, e.is_aside,
            sum(octet_length(e.line)) OVER (ORDER BY w.n, e.sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM wanted AS w
        LEFT JOIN ({events_at("SELECT sequence FROM wanted WHERE sequence IS NOT NULL")}) AS e USING (sequence)
    ) AS s
    WHERE coalesce(size - octet_length(line), 0) < $6
    ORDER BY n, sequence
"""  # noqa: S608 # written down above
# The first $5 sequences after $3, up to $4, of events with one of the topics $2.
_WITH_TOPICS: Final = """
    SELECT sequence
    FROM topic
    WHERE tournament_id = $1 AND topic = ANY($2::bigint[]) AND sequence > $3 AND sequence <= $4
    ORDER BY sequence
    LIMIT $5
"""
# The first $6 sequences after $4, up to $5, of events with topics after $2, up to $3.
_WITH_TOPICS_BETWEEN: Final = """
    SELECT sequence
    FROM topic
    WHERE tournament_id = $1 AND topic > $2 AND topic <= $3 AND sequence > $4 AND sequence <= $5
    ORDER BY sequence
    LIMIT $6
"""
_EVENTS_AT: Final = _within_bytes(events_at("SELECT unnest($2::bigint[]) AS sequence"), bytes_max="$3")
_SECRET: Final = "SELECT append_id FROM block WHERE tournament_id = $1 ORDER BY last_sequence LIMIT 1"  # noqa: S105 - no password
_PERSONAL: Final = "SELECT text FROM personal WHERE tournament_id = $1 AND competitor_id = $2 ORDER BY sequence"
# A line that is not that of an event has no key and no body, so nothing is found in it.
_MENTIONING: Final = r"""
    SELECT sequence, line
    FROM (
        SELECT
            sequence, line,
            sum(octet_length(line)) OVER (ORDER BY sequence ROWS UNBOUNDED PRECEDING) AS size
        FROM (
            SELECT sequence, line
            FROM (
                SELECT
                    b.first_sequence + l.n - 1 AS sequence, l.line,
                    regexp_match(l.line, '^\["[A-Za-z]*",[0-9]*,(?:null|"((?:[^"\\]|\\.)*)"),(.*)\]$') AS parts
                FROM block AS b
                CROSS JOIN LATERAL string_to_table(b.text, chr(10)) WITH ORDINALITY AS l (line, n)
                WHERE b.tournament_id = $1 AND b.last_sequence > $2 AND b.first_sequence <= $3
                ORDER BY b.last_sequence, l.n
            ) AS l
            WHERE sequence > $2 AND sequence <= $3 AND (parts[2] ~ $4 OR parts[1] ~ $5)
            ORDER BY sequence
            LIMIT $6
        ) AS e
    ) AS s
    WHERE size - octet_length(line) < $7
    ORDER BY sequence
"""
_ERASED_SINCE: Final = events_at(
    "SELECT sequence FROM topic WHERE tournament_id = $1 AND topic = -3 AND sequence > $2 ORDER BY sequence"
)
_SET_ASIDE_SINCE: Final = f"""
    SELECT EXISTS (SELECT FROM ({ASIDE}) AS set_aside WHERE sequence <= $2 AND set_aside_by > $2)
"""  # noqa: S608 # written down above
# One walk along the index for each key, whatever the statistics say.
_KEYED: Final = f"""
    WITH used AS MATERIALIZED (
        SELECT i.fingerprint, i.sequence
        FROM unnest($2::text[]) AS k (idempotency_key)
        CROSS JOIN LATERAL (
            SELECT fingerprint, sequence
            FROM idempotency
            WHERE tournament_id = $1 AND idempotency_key = k.idempotency_key
            LIMIT 1
        ) AS i
    )
    SELECT u.fingerprint, e.*
    FROM used AS u
    JOIN ({events_at("SELECT sequence FROM used", personal=True)}) AS e USING (sequence)
"""  # noqa: S608 # written down above


async def event_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Recorded:
    """The event with this sequence. Raises LogForked if it is no longer there, and LogUnreadable."""
    row = await connection.fetchrow(_EVENT, tournament_id, sequence)
    if row is None:
        raise LogForked(tournament_id, sequence)
    return event_of(tournament_id, row)


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
    for recorded, begins in await _block_with(connection, tournament_id, sequence):
        if begin is None or begins:
            if recorded.sequence > sequence:
                break
            begin = recorded.sequence
        elif (
            recorded.sequence > sequence
            and isinstance(recorded.event, PointsExpired)
            and recorded.event.ranking_id == ranking_id
        ):
            return begin
    return None


async def begin_of_request(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Sequence:
    """The first event of the request to which the event `sequence` belongs."""
    begin = None
    for recorded, begins in await _block_with(connection, tournament_id, sequence):
        if recorded.sequence > sequence:
            break
        if begin is None or begins:
            begin = recorded.sequence
    return begin or sequence


async def end_of_request(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> Sequence:
    """The last event of the request to which the event `sequence` belongs."""
    end = sequence
    for recorded, begins in await _block_with(connection, tournament_id, sequence):
        if recorded.sequence > sequence:
            if begins:
                break
            end = recorded.sequence
    return end


async def _block_with(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence
) -> list[tuple[Recorded, bool]]:
    """The events of the block that holds the event `sequence`, without those set aside, and whether each begins a
    request."""
    row = await connection.fetchrow(_BLOCK_WITH, tournament_id, sequence)
    if row is None:
        return []
    events = await events_of(tournament_id, [lines_of(tournament_id, row)], row["aside"])
    each = [one for one in events if not one.is_ignored]
    return [(one, _begins(before, one)) for before, one in zip([None, *each], each, strict=False)]


_MANY: Final = ((CompetitorRegistered,), (CompetitionAdded, CompetitionChanged))
"""The events that a request about several competitors, or several competitions, has, in any order."""


def _begins(before: Recorded | None, one: Recorded) -> bool:
    """Whether an event begins a request. Others are an expiry, which is alone in a block that it begins; a reversal,
    whose request ends its block; what a scoring gives; a later part of points; and one of several competitors or
    competitions. (Such requests of one sender without keys cannot be told apart if one block has them: they are one.)
    """
    event, event_before = one.event, None if before is None else before.event
    match event:
        case PointsExpired():
            return False
        case PointsReversed():
            return event.undone is not None and not isinstance(event_before, PointsReversed)
        case PointsScored():
            return False
        case PointsAdded():
            return event.part is None or event.part[0] == 1
    if before is not None and any(isinstance(event, kinds) and isinstance(event_before, kinds) for kinds in _MANY):
        return (one.actor, one.idempotency_key) != (before.actor, before.idempotency_key)
    return True


async def request_at(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence, idempotency_key: str
) -> list[Recorded]:
    """The events of the request with this key, whose first event has this sequence. Raises as `event_at`, also if that
    event is another request's."""
    row = await connection.fetchrow(_BLOCK_WITH, tournament_id, sequence)
    if row is None:
        raise LogForked(tournament_id, sequence)
    # The events of one request are in one block, one after the other.
    lines = lines_of(tournament_id, row).between(Sequence(sequence - 1), row["last_sequence"])
    events = await events_of(tournament_id, [lines], row["aside"])
    if events[0].sequence != sequence or events[0].idempotency_key != idempotency_key:
        raise LogForked(tournament_id, sequence)
    return [one for one in events if one.idempotency_key == idempotency_key]


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
    bounds = CHUNK_EVENTS_MAX, CHUNK_BYTES_MAX
    rows = await connection.fetch(EVENTS_BETWEEN, tournament_id, after, upto, *bounds)
    aside = rows[0]["aside"] if rows else ()
    events = await events_of(tournament_id, within(tournament_id, rows, after, upto, *bounds), aside)
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


async def erased_since(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence
) -> dict[CompetitorId, datetime]:
    """The competitors that events beyond `sequence` erased, and when."""
    rows = await connection.fetch(_ERASED_SINCE, tournament_id, sequence)
    events = [(codec.entry_of(row["line"]).event, row["recorded_at"]) for row in rows]
    return {event.competitor_id: at for event, at in events if isinstance(event, CompetitorErased)}


class _Named(Struct):
    name: str | None = None


_decode_named: Final = msgspec.json.Decoder(_Named).decode


async def names_of(connection: Connection, tournament_id: TournamentId, competitor_id: CompetitorId) -> list[str]:
    """Every name that the competitor had, from the first to the last; none once it is erased."""
    rows = await connection.fetch(_PERSONAL, tournament_id, competitor_id)
    told = [_decode_named(row["text"][codec.SALT_DIGITS :]).name for row in rows]
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
    found = [(row["sequence"], codec.any_parts_of(row["line"])) for row in rows]
    return [Mentioning(number, parts.kind, parts.key, parts.body) for number, parts in found]


async def points_of(
    connection: Connection, tournament_id: TournamentId, competition_id: CompetitionId, upto: Sequence
) -> AsyncIterator[Recorded]:
    """Yields, in order, every event up to `upto` that gave or reversed points of the competition.

    Reads only these, in chunks of at most CHUNK_EVENTS_MAX events; a chunk ends with the event that brings it to
    CHUNK_BYTES_MAX bytes. Events that were set aside are left out. Raises LogUnreadable.
    """
    after = Sequence(0)
    while rows := await connection.fetch(
        _EVENTS_WITH_TOPIC, tournament_id, competition_id, after, upto, CHUNK_EVENTS_MAX, CHUNK_BYTES_MAX
    ):
        for row in rows:
            recorded = event_of(tournament_id, row)
            if isinstance(recorded.event, Points):
                yield recorded
        after = Sequence(rows[-1]["sequence"])


_BEGINNING: Final = Sequence(0)
COMPETITIONS_AT_ONCE_MAX: Final = 200
EVENTS_OF_COMPETITION_AT_ONCE_MAX: Final = 20
LOOKED_UP_AT_ONCE_MAX: Final = 10_000
"""Topics, or sequences, that one query looks up."""


async def points_of_competitions(
    connection: Connection, tournament_id: TournamentId, pending: deque[tuple[CompetitionId, Sequence]], upto: Sequence
) -> list[Recorded]:
    """As `_events_of_competitions`, those that gave or reversed points."""
    events = await _events_of_competitions(connection, tournament_id, pending, upto)
    return [one for one in events if isinstance(one.event, Points)]


async def _events_of_competitions(
    connection: Connection, tournament_id: TournamentId, pending: deque[tuple[CompetitionId, Sequence]], upto: Sequence
) -> list[Recorded]:
    """Events up to `upto` about the first competitions of `pending`, each after its sequence. At least one, unless
    these have no more; they leave `pending` then. The sequences in `pending` advance. Events that
    were set aside are left out. Raises LogUnreadable."""
    asked = [pending.popleft() for _ in range(min(len(pending), COMPETITIONS_AT_ONCE_MAX))]
    rows = await connection.fetch(
        _POINTS_OF_COMPETITIONS,
        tournament_id,
        [competition_id for competition_id, _ in asked],
        [after for _, after in asked],
        upto,
        EVENTS_OF_COMPETITION_AT_ONCE_MAX,
        CHUNK_BYTES_MAX,
    )
    reached: dict[int, Sequence | None] = {row["n"]: row["sequence"] for row in rows}
    left = [(one, reached.get(n, after)) for n, (one, after) in enumerate(asked, start=1)]
    pending.extendleft([(one, after) for one, after in reversed(left) if after is not None])
    return [event_of(tournament_id, row[1:]) for row in rows if row["sequence"] is not None]


async def all_points_of_competitions(
    connected: Connected,
    tournament_id: TournamentId,
    competition_ids: Items[CompetitionId],
    upto: Sequence,
    after: Sequence = _BEGINNING,
) -> AsyncGenerator[list[Recorded], None]:
    """Yields, chunk by chunk, all events after `after` up to `upto` that gave or reversed points of these competitions.
    Raises LogForked and LogUnreadable."""
    for start in range(0, len(competition_ids), LOOKED_UP_AT_ONCE_MAX):
        topics = competition_ids[start : start + LOOKED_UP_AT_ONCE_MAX]
        async for events in _with_topics(connected, tournament_id, _WITH_TOPICS, (topics,), after, upto):
            yield [one for one in events if isinstance(one.event, Points)]


async def changes_of_competitions(
    connected: Connected, tournament_id: TournamentId, competition_ids: Iterable[CompetitionId], upto: Sequence
) -> dict[CompetitionId, list[Recorded]]:
    """The events up to `upto` that changed these competitions, in order. Raises LogUnreadable."""
    pending = deque([(one, _BEGINNING) for one in competition_ids])
    found: dict[CompetitionId, list[Recorded]] = {one: [] for one, _ in pending}
    while pending:
        async with connected() as connection:
            events = await _events_of_competitions(connection, tournament_id, pending, upto)
        for one in events:
            if isinstance(one.event, CompetitionChanged):
                found[one.event.competition_id].append(one)
    return found


async def all_scored(
    connected: Connected, tournament_id: TournamentId, upto: Sequence, only: Items[CompetitionId] | None = None
) -> AsyncGenerator[list[Recorded], None]:
    """Yields, chunk by chunk, all events up to `upto` by which scorings gave points; then those that took points back,
    restored or corrected them. `only`: for these competitions, with other points of them. Raises as
    `all_points_of_competitions`."""
    if only is not None:
        async for events in all_points_of_competitions(connected, tournament_id, only, upto):
            yield events
        return
    changing = codec.changing(_BEGINNING), codec.changing(upto)
    for statement, topics in ((_WITH_TOPICS, ([codec.Topic.SCORED],)), (_WITH_TOPICS_BETWEEN, changing)):
        async for events in _with_topics(connected, tournament_id, statement, topics, _BEGINNING, upto):
            yield events


async def all_changing(
    connected: Connected, tournament_id: TournamentId, places: tuple[Sequence, Sequence], upto: Sequence
) -> AsyncGenerator[list[Recorded], None]:
    """Yields, chunk by chunk, all events after the last of these places, up to `upto`, that took back, restored or
    corrected points with a place in the log after the first of them, up to the last (`origin`). Raises as
    `all_points_of_competitions`."""
    first, last = places
    topics = codec.changing(first), codec.changing(last)
    async for events in _with_topics(connected, tournament_id, _WITH_TOPICS_BETWEEN, topics, last, upto):
        yield events


async def _with_topics(
    connected: Connected,
    tournament_id: TournamentId,
    statement: str,
    topics: tuple[Items[int] | int, ...],
    after: Sequence,
    upto: Sequence,
) -> AsyncGenerator[list[Recorded], None]:
    """Yields, chunk by chunk, the events after `after`, up to `upto`, with topics as one of the statements has them,
    without those that were set aside. Their sequences are read first, as a block with many of them is taken apart once
    for each chunk."""
    while after < upto:
        async with connected() as connection:
            bounds = after, upto, LOOKED_UP_AT_ONCE_MAX
            found = [one["sequence"] for one in await connection.fetch(statement, tournament_id, *topics, *bounds)]
        left: list[Sequence] = found
        while left:
            async with connected() as connection:
                asked = left[:CHUNK_EVENTS_MAX]
                rows = await connection.fetch(_EVENTS_AT, tournament_id, asked, CHUNK_BYTES_MAX)
            if not rows:
                raise LogForked(tournament_id, Sequence(left[0]))
            yield [event_of(tournament_id, row) for row in rows if not row["is_aside"]]
            left = left[len(rows) :]
        if len(found) < LOOKED_UP_AT_ONCE_MAX:
            return
        after = found[-1]


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
    found = [KeyedEvent(row[0], event_of(tournament_id, row[1:])) for row in rows]
    return {one.recorded.idempotency_key: one for one in found if one.recorded.idempotency_key is not None}


async def name_at(connection: Connection, tournament_id: TournamentId, sequence: Sequence) -> str:
    """The name of a tournament after this event. Raises LogUnreadable."""
    naming = event_of(tournament_id, await connection.fetchrow(_NAMING, tournament_id, sequence)).event
    assert isinstance(naming, TournamentOpened | TournamentRenamed)  # the opening cannot be set aside
    return naming.name
