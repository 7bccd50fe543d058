"""The hash chain: what Python computes is what PostgreSQL computed when it appended."""

import sys
from datetime import UTC, datetime
from hashlib import sha256
from uuid import uuid4

import asyncpg
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.events import CompetitorRegistered, Delta, Event, PointsAdded, RankingClosed
from engine.domain.terms import ID_MAX, OPERATOR, Sequence, TournamentId
from engine.log import appending, codec, heads, tails
from engine.log.appending import Appended, Block, Request
from engine.log.digest import block_text, chain, genesis, microseconds, moment
from engine.log.heads import Head
from tests.histories import any_event, stored_texts, unhurried
from tests.tournaments import open_new_tournament

on_the_database = settings(
    unhurried, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)  # the same database for all examples
int64s = st.integers(-ID_MAX - 1, ID_MAX)
clock_times = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))
stored_blocks = st.lists(
    st.tuples(int64s, stored_texts, st.none() | stored_texts, stored_texts), min_size=1, max_size=40
)


def text_of(first_sequence: int, recorded_at: datetime, events: list[tuple]) -> bytes:
    return block_text(Sequence(first_sequence), recorded_at, *zip(*events, strict=True))


# ── The format ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_log_begins_with_the_digest_of_its_format_and_its_tournament() -> None:
    assert genesis(TournamentId(258)) == sha256(b"tallybook log 1\0\0\0\0\0\0\1\2").digest()


def test_the_text_of_a_block_is_its_columns_in_json() -> None:
    recorded_at = datetime(1970, 1, 1, 0, 0, 1, 2, tzinfo=UTC)
    events = [(4, "Tag", None, '{"a":"é\\n"}'), (-5, "Tog", "k\t\x1f\x7f", "")]
    assert text_of(3, recorded_at, events).decode() == (
        '[3,1000002,[4,-5],["Tag","Tog"],[null,"k\\t\\u001f\x7f"],["{\\"a\\":\\"é\\\\n\\"}",""]]'
    )


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_comes_back_from_the_text_as_it_was(recorded_at: datetime) -> None:
    assert moment(microseconds(recorded_at)) == recorded_at


def test_without_any_key_there_is_no_column_of_keys() -> None:
    recorded_at = datetime(1970, 1, 1, tzinfo=UTC)
    assert text_of(1, recorded_at, [(0, "", None, "")]) == b'[1,0,[0],[""],null,[""]]'
    assert text_of(1, recorded_at, [(0, "", "", "")]) == b'[1,0,[0],[""],[""],[""]]'


def test_a_block_is_chained_by_the_digest_of_its_text() -> None:
    assert chain(b"before", b"text") == sha256(b"before" + sha256(b"text").digest()).digest()


@unhurried
@given(int64s, clock_times, stored_blocks, int64s, clock_times, stored_blocks)
def test_different_blocks_have_different_texts(
    sequence: int, at: datetime, events: list[tuple], other_sequence: int, other_at: datetime, other_events: list[tuple]
) -> None:
    same = (sequence, at, events) == (other_sequence, other_at, other_events)
    assert (text_of(sequence, at, events) == text_of(other_sequence, other_at, other_events)) == same
    assert text_of(sequence, at, events) != text_of(sequence, at, [*events, events[0]])


# ── Python and PostgreSQL ───────────────────────────────────────────────────────────────────────────────

_GENESES = "SELECT genesis_digest(t.id) AS digest FROM unnest($1::bigint[]) WITH ORDINALITY AS t (id, n) ORDER BY t.n"
_TEXT = """
    SELECT convert_to(
        block_text($1, (extract(epoch FROM $2::timestamptz) * 1000000)::bigint, $3, $4, $5, $6), 'UTF8'
    )
"""


async def test_postgresql_begins_a_log_with_the_same_digest(owner: asyncpg.Connection) -> None:
    tournament_ids = [1, 2, 255, 256, 2**32, ID_MAX]
    digests = [row["digest"] for row in await owner.fetch(_GENESES, tournament_ids)]
    assert digests == [genesis(TournamentId(tournament_id)) for tournament_id in tournament_ids]


@settings(on_the_database, max_examples=100)
@given(int64s, clock_times, stored_blocks)
async def test_postgresql_makes_the_same_text_of_any_block(
    owner: asyncpg.Connection, first_sequence: int, recorded_at: datetime, events: list[tuple]
) -> None:
    actors, kinds, keys, bodies = zip(*events, strict=True)
    given_keys = keys if any(key is not None for key in keys) else None
    text = await owner.fetchval(_TEXT, first_sequence, recorded_at, actors, kinds, given_keys, bodies)
    assert text == text_of(first_sequence, recorded_at, events)


async def test_every_character_is_written_alike(owner: asyncpg.Connection) -> None:
    characters = [chr(n) for n in range(1, sys.maxunicode + 1) if not 0xD800 <= n < 0xE000]
    for start in range(0, len(characters), 100_000):
        events = [(0, "", None, "".join(characters[start : start + 100_000]))]
        at = datetime(2024, 1, 1, tzinfo=UTC)
        assert await owner.fetchval(_TEXT, 1, at, [0], [""], None, [events[0][3]]) == text_of(1, at, events)


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
    digest, found = genesis(tournament_id), []
    for first_sequence, last_sequence, stored in await owner.fetch(_BLOCKS, tournament_id):
        rows = await owner.fetch(_EVENTS, tournament_id, first_sequence, last_sequence)
        assert [row["sequence"] for row in rows] == list(range(first_sequence, last_sequence + 1))
        _, times, actors, kinds, keys, bodies = zip(*rows, strict=True)
        assert len(set(times)) == 1
        digest = chain(digest, block_text(first_sequence, times[0], actors, kinds, keys, bodies))
        assert stored == digest
        found.append(Head(last_sequence, digest))
    return found


async def appended(database: Database, tournament_id: TournamentId, *requests: Request) -> Appended:
    async with database.connection() as connection:
        at = await heads.current(connection, [tournament_id])
        block = Block(
            tournament_id=tournament_id,
            judged_at=at[tournament_id].sequence,
            judged_digest=at[tournament_id].digest,
            requests=requests,
            append_id=uuid4().hex,
        )
        (outcome,) = await appending.append(connection, [block], wait=True)
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
        assert await heads.current(connection, [tournament_id]) == {tournament_id: blocks[-1]}


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
    found = await recomputed(owner, tournament_id)
    assert [head.sequence for head in found] == [1, 3, 5]
    assert found[-1].digest == mixed.digest


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
    found = await recomputed(owner, tournament_id)
    assert [head.digest for head in found[1:]] == digests
    async with database.connection() as connection:
        tail = await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=10)
    written = [event for block in blocks for events in block for event in events]
    assert [codec.encode(recorded.event) for recorded in tail.events[1:]] == [codec.encode(event) for event in written]
