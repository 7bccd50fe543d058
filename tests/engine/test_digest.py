"""The hash chain: what Python computes is what PostgreSQL computed when it appended."""

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
from engine.log.digest import block_in, block_text, chain, genesis, microseconds, moment
from engine.log.heads import Head
from tests.histories import any_event, stored_texts, unhurried
from tests.tournaments import open_new_tournament

on_the_database = settings(
    unhurried, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)  # the same database for all examples
int64s = st.integers(-ID_MAX - 1, ID_MAX)
clock_times = st.datetimes(datetime(1900, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))
block_lines = st.lists(stored_texts, min_size=1, max_size=40).map("\n".join)


# ── The format ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_log_begins_with_the_digest_of_its_format_and_its_tournament() -> None:
    assert genesis(TournamentId(258)) == sha256(b"tallybook log 1\0\0\0\0\0\0\1\2").digest()


def test_the_text_of_a_block_has_its_place_before_its_lines() -> None:
    recorded_at = datetime(1970, 1, 1, 0, 0, 1, 2, tzinfo=UTC)
    points = PointsAdded(ranking_id=3, deltas=(Delta(7, 5, 10),))
    lines = "\n".join([codec.line_of(points, 4), codec.line_of(RankingClosed(ranking_id=3), 5, 'a "k"')])
    assert block_text(Sequence(3), recorded_at, lines).decode() == (
        '3 1000002\n["PointsAdded",4,null,{"ranking_id":3,"deltas":[[7,5,10]]}]\n'
        '["RankingClosed",5,"a \\"k\\"",{"ranking_id":3}]'
    )


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_comes_back_from_the_text_as_it_was(recorded_at: datetime) -> None:
    assert moment(microseconds(recorded_at)) == recorded_at


def test_a_block_is_chained_by_the_digest_of_its_text() -> None:
    assert chain(b"before", b"text") == sha256(b"before" + sha256(b"text").digest()).digest()


@given(int64s, clock_times, block_lines)
def test_the_text_of_a_block_can_be_taken_apart(sequence: int, at: datetime, lines: str) -> None:
    found = block_in(block_text(Sequence(sequence), at, lines).decode())
    assert found is not None
    assert (found.first_sequence, found.recorded_at, found.lines) == (sequence, at, lines)
    assert found.count == len(lines.split("\n"))


# ── Python and PostgreSQL ───────────────────────────────────────────────────────────────────────────────

_GENESES = "SELECT genesis_digest(t.id) AS digest FROM unnest($1::bigint[]) WITH ORDINALITY AS t (id, n) ORDER BY t.n"
_TEXT = "SELECT convert_to(block_place($1, $2) || $3, 'UTF8')"


async def test_postgresql_begins_a_log_with_the_same_digest(owner: asyncpg.Connection) -> None:
    tournament_ids = [1, 2, 255, 256, 2**32, ID_MAX]
    digests = [row["digest"] for row in await owner.fetch(_GENESES, tournament_ids)]
    assert digests == [genesis(TournamentId(tournament_id)) for tournament_id in tournament_ids]


@settings(on_the_database, max_examples=100)
@given(int64s, clock_times, block_lines)
async def test_postgresql_makes_the_same_text_of_any_block(
    owner: asyncpg.Connection, first_sequence: int, recorded_at: datetime, lines: str
) -> None:
    text = await owner.fetchval(_TEXT, first_sequence, recorded_at, lines)
    assert text == block_text(Sequence(first_sequence), recorded_at, lines)


# ── A log ───────────────────────────────────────────────────────────────────────────────────────────────

_BLOCKS = """
    SELECT first_sequence, last_sequence, recorded_at, text, digest
    FROM block
    WHERE tournament_id = $1
    ORDER BY last_sequence
"""


async def recomputed(owner: asyncpg.Connection, tournament_id: TournamentId) -> list[Head]:
    """The head after each block, from the stored texts alone; each is held against what the block says."""
    digest, found = genesis(tournament_id), []
    for first_sequence, last_sequence, recorded_at, text, stored in await owner.fetch(_BLOCKS, tournament_id):
        assert text.count("\n") == last_sequence - first_sequence
        digest = chain(digest, block_text(first_sequence, recorded_at, text))
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
    assert [recorded.event for recorded in tail.events[1:]] == written
