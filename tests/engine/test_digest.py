"""The hash chain: what Python computes is what PostgreSQL computed when it appended."""

from datetime import UTC, datetime
from hashlib import sha256
from uuid import uuid4

import asyncpg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import codec, log
from engine.database import Database
from engine.digest import chain, event_bytes, genesis
from engine.events import CompetitorRegistered, Delta, Event, PointsAdded, RankingClosed
from engine.log import Appended, Block, Head, Request
from engine.terms import ID_MAX, OPERATOR, TournamentId
from tests.histories import any_event, stored_texts, unhurried
from tests.tournaments import open_new_tournament

on_the_database = settings(
    unhurried, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)  # the same database for all examples
int64s = st.integers(-ID_MAX - 1, ID_MAX)
clock_times = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))
stored_events = st.tuples(int64s, clock_times, int64s, stored_texts, st.none() | stored_texts, stored_texts)

# ── The format ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_log_begins_with_the_digest_of_its_format_and_its_tournament() -> None:
    assert genesis(TournamentId(258)) == sha256(b"tallybook log 1\0\0\0\0\0\0\1\2").digest()


def test_an_event_is_three_numbers_and_three_texts_each_after_its_length() -> None:
    recorded_at = datetime(1970, 1, 1, 0, 0, 1, 2, tzinfo=UTC)
    assert event_bytes(3, recorded_at, 4, "Tag", "é", "{}") == (
        b"\0\0\0\0\0\0\0\3"
        b"\0\0\0\0\0\x0f\x42\x42"  # 1,000,002 µs
        b"\0\0\0\0\0\0\0\4"
        b"\0\0\0\3Tag"
        b"\0\0\0\2\xc3\xa9"
        b"\0\0\0\2{}"
    )


def test_no_key_is_told_from_an_empty_one() -> None:
    recorded_at = datetime(1970, 1, 1, tzinfo=UTC)
    without, with_empty = (event_bytes(1, recorded_at, 0, "", key, "") for key in (None, ""))
    assert without == bytes(7) + b"\1" + bytes(16) + bytes(4) + b"\xff\xff\xff\xff" + bytes(4)
    assert with_empty == bytes(7) + b"\1" + bytes(16) + bytes(12)


def test_a_block_is_chained_by_the_digest_of_its_events() -> None:
    assert chain(b"before", [b"one", b"two"]) == sha256(b"before" + sha256(b"onetwo").digest()).digest()


@unhurried
@given(stored_events, stored_events)
def test_different_events_have_different_bytes(one: tuple, other: tuple) -> None:
    assert (event_bytes(*one) == event_bytes(*other)) == (one == other)


# ── Python and PostgreSQL ───────────────────────────────────────────────────────────────────────────────

_GENESES = "SELECT genesis_digest(t.id) AS digest FROM unnest($1::bigint[]) WITH ORDINALITY AS t (id, n) ORDER BY t.n"
_EVENT_BYTES = """
    SELECT event_bytes(
        e.sequence, (extract(epoch FROM e.recorded_at) * 1000000)::bigint, e.actor, e.kind, e.key, e.body
    )
    FROM unnest($1::bigint[], $2::timestamptz[], $3::bigint[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY
        AS e (sequence, recorded_at, actor, kind, key, body, n)
    ORDER BY e.n
"""


async def test_postgresql_begins_a_log_with_the_same_digest(owner: asyncpg.Connection) -> None:
    tournament_ids = [1, 2, 255, 256, 2**32, ID_MAX]
    digests = [row["digest"] for row in await owner.fetch(_GENESES, tournament_ids)]
    assert digests == [genesis(TournamentId(tournament_id)) for tournament_id in tournament_ids]


@settings(on_the_database, max_examples=50)
@given(events=st.lists(stored_events, min_size=1, max_size=40))
async def test_postgresql_makes_the_same_bytes_of_any_event(owner: asyncpg.Connection, events: list[tuple]) -> None:
    columns = [list(column) for column in zip(*events, strict=True)]
    rows = await owner.fetch(_EVENT_BYTES, *columns)
    assert [row["event_bytes"] for row in rows] == [event_bytes(*event) for event in events]


# ── A log ───────────────────────────────────────────────────────────────────────────────────────────────

_BLOCKS = "SELECT first_sequence, last_sequence, digest FROM block WHERE tournament_id = $1 ORDER BY last_sequence"
_EVENTS = """
    SELECT sequence, recorded_at, actor, kind, idempotency_key, body
    FROM event
    WHERE tournament_id = $1 AND sequence BETWEEN $2 AND $3
    ORDER BY sequence
"""


async def recomputed(owner: asyncpg.Connection, tournament_id: TournamentId) -> list[Head]:
    """The head after each block, from the stored events alone; each is held against what the block says."""
    digest, heads = genesis(tournament_id), []
    for first_sequence, last_sequence, stored in await owner.fetch(_BLOCKS, tournament_id):
        rows = await owner.fetch(_EVENTS, tournament_id, first_sequence, last_sequence)
        assert [row["sequence"] for row in rows] == list(range(first_sequence, last_sequence + 1))
        digest = chain(digest, [event_bytes(*row) for row in rows])
        assert stored == digest
        heads.append(Head(last_sequence, digest))
    return heads


async def appended(database: Database, tournament_id: TournamentId, *requests: Request) -> Appended:
    async with database.connection() as connection:
        heads = await log.heads(connection, [tournament_id])
        block = Block(
            tournament_id=tournament_id,
            judged_at=heads[tournament_id].sequence,
            requests=requests,
            append_id=uuid4(),
        )
        (outcome,) = await log.append(connection, [block], wait=True)
    assert isinstance(outcome, Appended)
    return outcome


def request(*events: Event, actor: int = OPERATOR, key: str | None = None) -> Request:
    return Request(
        events=events,
        actor=actor,
        idempotency_key=key,
        fingerprint=None if key is None else sha256(key.encode()).digest(),
    )


ANNA = CompetitorRegistered(competitor_id=1, name='Anna \N{FOX FACE} \u2028 \\ "')
POINTS = PointsAdded(ranking_id=30, deltas=(Delta(1, 40, -2147483647),))
CLOSED = RankingClosed(ranking_id=30)


async def test_the_chain_of_a_log_can_be_computed_again(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    one = await appended(database, tournament_id, request(ANNA))
    two = await appended(
        database,
        tournament_id,
        request(POINTS, actor=ID_MAX, key="a key"),
        request(POINTS),
        request(POINTS, POINTS, ANNA, actor=7, key="another"),
        request(CLOSED),
    )
    beginning, *blocks = await recomputed(owner, tournament_id)
    assert beginning.sequence == 1
    assert [(head.sequence, head.digest) for head in blocks] == [(2, one.digest), (8, two.digest)]
    assert [one.previous_digest, two.previous_digest] == [beginning.digest, one.digest]
    async with database.connection() as connection:
        assert await log.heads(connection, [tournament_id]) == {tournament_id: blocks[-1]}


async def test_what_was_not_recorded_is_not_in_the_chain(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    await appended(database, tournament_id, request(POINTS, POINTS, key="known"))
    mixed = await appended(
        database,
        tournament_id,
        request(POINTS, POINTS, key="known"),
        request(ANNA, key="new"),
        request(ANNA, key="new"),
        request(POINTS),
    )
    assert mixed.answers == (-2, 4, -4, 5)
    nothing = await appended(database, tournament_id, request(POINTS, POINTS, key="known"))
    assert nothing.digest is None
    heads = await recomputed(owner, tournament_id)
    assert [head.sequence for head in heads] == [1, 3, 5]
    assert heads[-1].digest == mixed.digest


async def test_the_same_events_in_another_tournament_have_another_chain(
    database: Database, owner: asyncpg.Connection
) -> None:
    tournament_ids = [await open_new_tournament(database, actor=OPERATOR) for _ in range(2)]
    digests = {(await appended(database, tournament_id, request(ANNA))).digest for tournament_id in tournament_ids}
    assert len(digests) == 2
    assert digests == {(await recomputed(owner, tournament_id))[-1].digest for tournament_id in tournament_ids}


@settings(on_the_database, max_examples=20)
@given(blocks=st.lists(st.lists(st.lists(any_event(), min_size=1, max_size=3), min_size=1, max_size=3), max_size=3))
async def test_the_chain_of_any_log_can_be_computed_again(
    database: Database, owner: asyncpg.Connection, blocks: list[list[list[Event]]]
) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    digests = [
        (await appended(database, tournament_id, *[request(*events) for events in block])).digest for block in blocks
    ]
    heads = await recomputed(owner, tournament_id)
    assert [head.digest for head in heads[1:]] == digests
    async with database.connection() as connection:
        tail = await log.tail(connection, tournament_id, log.beginning(tournament_id), blocks_max=10)
    written = [event for block in blocks for events in block for event in events]
    assert [codec.encode(recorded.event) for recorded in tail.events[1:]] == [codec.encode(event) for event in written]
