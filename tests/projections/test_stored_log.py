"""The log as stored bytes: the text of a block is that from which its digest was made, whatever is in it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.events import Event
from engine.domain.terms import ID_MAX, OPERATOR, ActorId, Sequence
from engine.log import appending, digest, heads, tails
from engine.log.appending import Appended, Block, Request
from projections.verification import stored_log
from tests.bounds import Bounds
from tests.desks import Arena, open_arena, record
from tests.histories import any_event
from tests.projections.written import on_the_database
from tests.sql import NUMBER_OF_SHARD, flattened, rows_scanned
from tests.tournaments import open_new_tournament

keys = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
requests = st.tuples(st.lists(any_event(), min_size=1, max_size=3), st.integers(0, ID_MAX), keys)


@settings(on_the_database, max_examples=20)
@given(blocks=st.lists(st.lists(requests, min_size=1, max_size=4), max_size=4))
async def test_the_text_of_any_block_leads_to_its_digest(
    database: Database, blocks: list[list[tuple[list[Event], int, str | None]]]
) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    async with database.connection() as connection:
        for block in blocks:
            head = (await heads.current(connection, [tournament_id]))[tournament_id]
            given_requests = tuple(
                Request(
                    events=tuple(events),
                    actor=ActorId(actor),
                    idempotency_key=key,
                    fingerprint=None if key is None else b"same",
                )
                for events, actor, key in block
            )
            of_block = Block(
                tournament_id=tournament_id, judged_at=head.sequence, judged_digest=head.digest, requests=given_requests
            )
            (appended,) = await appending.append(connection, [of_block], wait=True)
            assert isinstance(appended, Appended)
        known, last = digest.genesis(tournament_id), Sequence(0)
        for found in await stored_log.blocks(connection, tournament_id, last):
            assert found.text is not None
            known = digest.chain(known, found.text)
            assert known == found.digest
            content = found.content()
            assert content is not None
            assert content.count == len(content.parts) == found.last_sequence - last
            last = found.last_sequence
        head = (await heads.current(connection, [tournament_id]))[tournament_id]
    assert (head.sequence, head.digest) == (last, known)


@pytest.fixture
async def arena(database: Database) -> Arena:
    arena = await open_arena(database)
    async with database.connection() as connection:
        tail = await tails.tail(connection, arena.tournament_id, heads.beginning(arena.tournament_id))
        for _ in range(10):
            await record(connection, arena.tournament_id, tail.events[1].event)
    return arena


@pytest.mark.parametrize(("bytes_max", "blocks_max", "most"), [(1, 100, 1), (10**6, 3, 3), (10**6, 100, 12)])
async def test_blocks_are_read_in_chunks_that_are_bounded_and_none_is_missed(
    database: Database, arena: Arena, bounds: Bounds, bytes_max: int, blocks_max: int, most: int
) -> None:
    bounds(BYTES_MAX=bytes_max, BLOCKS_MAX=blocks_max)
    ends: list[int] = [0]
    async with database.connection() as connection:
        while chunk := await stored_log.blocks(connection, arena.tournament_id, Sequence(ends[-1])):
            assert len(chunk) <= most
            ends += [block.last_sequence for block in chunk]
    assert ends == [0, 1, *range(4, 15)]


@pytest.mark.one_postgresql("nodes have no moment in common")
async def test_others_see_the_same_moment_by_its_name(database: Database, arena: Arena) -> None:
    async with (
        database.connection() as one,
        database.connection() as other,
        database.connection() as third,
        stored_log.one_moment(one) as moment,
    ):
        before = await stored_log.registered_tournaments(one, arena.tournament_id)
        tail = await tails.tail(third, arena.tournament_id, heads.beginning(arena.tournament_id))
        await record(third, arena.tournament_id, tail.events[1].event)
        async with stored_log.one_moment(other, moment):
            assert await stored_log.registered_tournaments(other, arena.tournament_id) == before
        assert await stored_log.registered_tournaments(third, arena.tournament_id) != before


async def test_a_moment_is_read_only_and_in_no_hurry(database: Database) -> None:
    async with database.connection() as connection, stored_log.one_moment(connection):
        for name, value in (
            ("transaction_read_only", "on"),
            ("statement_timeout", "1h"),
            ("idle_in_transaction_session_timeout", "1h"),
        ):
            assert await connection.fetchval("SELECT current_setting($1)", name) == value


async def test_blocks_and_their_events_are_found_by_their_keys(database: Database, arena: Arena) -> None:
    """And nothing is scanned beyond those that are read: what is checked may be as long as it likes."""
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {stored_log._BLOCKS}"
    for mode in ("force_custom_plan", "force_generic_plan"):
        async with database.connection() as connection, connection.transaction():
            await connection.execute(f"SET LOCAL plan_cache_mode = {mode}")
            explained = await connection.fetchval(explain, arena.tournament_id, 4, 3, 10**6)
        nodes = [node for node in flattened(json.loads(explained)[0]["Plan"]) if "Index Name" in node]
        assert {NUMBER_OF_SHARD.sub("", node["Index Name"]) for node in nodes} == {"block_pkey", "personal_pkey"}
        assert sum(map(rows_scanned, nodes)) <= 2 * 3
