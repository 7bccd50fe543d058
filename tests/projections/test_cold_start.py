"""A long log is no reason to wait, when its tables are up to date; nor is a large tournament, for anybody else."""

import time
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given

from api.desk.desk import Desk, open_desk
from api.interface.resources.rankings import RankingQuestion
from engine.database.pool import Database
from engine.domain.commands import CreateRanking, RegisterCompetitor
from engine.domain.events import CompetitionAdded, CompetitorRegistered, Delta, Event, PointsAdded
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import appending, heads, tails
from engine.log.appending import Appended, Block, Request
from engine.log.heads import Head
from engine.log.rows import BlockLines
from projections.live import tournament
from projections.tables import tables
from projections.tables.rebuild import rebuild
from projections.tables.worker import Worker
from tests.api.rendered import ADD, answered
from tests.bounds import Bounds, set_bounds
from tests.desks import turns_of_others
from tests.projections.written import (
    assert_live_shows_the_log,
    assert_tables_show_the_log,
    block_sizes,
    on_the_database,
    rich_histories,
    written,
)

EVENTS = 200_000
BLOCK_REQUESTS = 500
COMPETITORS = 20


@pytest.mark.long
async def test_the_first_read_of_a_tournament_with_200_000_events_takes_well_under_a_second(
    database: Database, desk: Desk, tournament_id: TournamentId
) -> None:
    async with desk.live_pool.pinned(tournament_id) as live:
        competitor_ids = []
        for number in range(COMPETITORS):
            competitor_ids.append(CompetitorId(await desk.new_id()))
            command = RegisterCompetitor(competitor_id=competitor_ids[-1], name=f"Competitor {number}")
            await desk.submit(live, command, actor=OPERATOR)
        ranking_id, unity_id = RankingId(await desk.new_id()), UnityId(await desk.new_id())
        created = CreateRanking(
            ranking_id=ranking_id,
            main_unity_id=unity_id,
            name="Ranking",
            main_unity_name="points",
            participants=tuple(competitor_ids),
        )
        await desk.submit(live, created, actor=OPERATOR)
        head = last = live.head
    requests = tuple(
        Request(
            events=(PointsAdded(ranking_id=ranking_id, deltas=(Delta(competitor_ids[n % COMPETITORS], unity_id, 1),)),),
            actor=OPERATOR,
        )
        for n in range(BLOCK_REQUESTS)
    )
    async with database.connection() as connection:
        for _ in range(EVENTS // BLOCK_REQUESTS):
            block = Block(
                tournament_id=tournament_id, judged_at=last.sequence, judged_digest=last.digest, requests=requests
            )
            (outcome,) = await appending.append(connection, [block], wait=True)
            assert isinstance(outcome, Appended)
            assert outcome.last_sequence is not None
            assert outcome.digest is not None
            last = Head(outcome.last_sequence, outcome.digest)
    await Worker(database).catch_up()

    async with open_desk(database) as elsewhere:
        started_at = time.perf_counter()
        async with elsewhere.live_pool.pinned(tournament_id) as cold:
            await elsewhere.live_pool.make_current(cold)
            body = answered(cold, ADD, RankingQuestion(ranking_id))
        seconds = time.perf_counter() - started_at

    assert cold.head.sequence == head.sequence + EVENTS
    assert f'"total":{EVENTS // COMPETITORS}}}'.encode() in body
    assert seconds < 0.5


# ── Large ones ──────────────────────────────────────────────────────────────────────────────────────────

MANY = 300


async def registered(database: Database) -> TournamentId:
    """A tournament with MANY competitors, appended as one block."""
    names = [CompetitorRegistered(competitor_id=CompetitorId(10**6 + n), name=f"C {n}") for n in range(MANY)]
    return await written(database, [*names], [MANY])


async def test_a_large_tournament_is_read_and_written_in_chunks_between_which_others_have_their_turn(
    database: Database, bounds: Bounds
) -> None:
    bounds(ROWS_MAX=1)
    tournament_id = await registered(database)
    async with turns_of_others() as number:
        await Worker(database).catch_up()
        assert next(number) > MANY
    async with turns_of_others() as number, database.connection() as connection:
        await tables.load_board(connection, tournament_id)
        assert next(number) > MANY
    await assert_tables_show_the_log(database, tournament_id)


async def test_reading_competitions_takes_less_than_twice_the_memory_that_they_keep(database: Database) -> None:
    """The participants of all were read first, which took three times the memory."""
    history: list[Event] = [CompetitorRegistered(competitor_id=CompetitorId(n), name=f"C {n}") for n in (1, 2)]
    history += [
        CompetitionAdded(
            competition_id=CompetitionId(10**6 + n), group_id=n, participants=(CompetitorId(1), CompetitorId(2))
        )
        for n in range(5_000)
    ]
    tournament_id = await written(database, history, [1_000])
    await Worker(database).catch_up()
    async with database.connection() as connection:
        await tables.load_board(connection, tournament_id)  # what the driver keeps of statements and types is there
        tracemalloc.start()
        try:
            board = await tables.load_board(connection, tournament_id)
            kept_bytes, most_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(board.competitions) == 5_000
    assert most_bytes < 2 * kept_bytes


def test_a_long_block_is_decoded_in_parts(bounds: Bounds) -> None:
    bounds(SLICE_CHARACTERS_MAX=4)
    block = BlockLines(Sequence(5), 4, datetime(2026, 1, 2, tzinfo=UTC), "aa\nbb\ncccccc\nd")
    assert [(part.first_sequence, part.count, part.text) for part in block.parts()] == [
        (5, 2, "aa\nbb"),
        (7, 1, "cccccc"),
        (8, 1, "d"),
    ]


async def test_a_long_log_is_decoded_and_folded_turn_by_turn(
    database: Database, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    bounds(SLICE_SECONDS_MAX=-1.0)
    bounds(SLICE_CHARACTERS_MAX=1)
    bounds(FOLDED_AT_ONCE=1)
    tournament_id = await registered(database)
    async with turns_of_others() as number, database.connection() as connection:
        await tails.tail(connection, tournament_id, heads.beginning(tournament_id))
        assert next(number) > MANY
    async with turns_of_others() as number, database.connection() as connection:
        await tournament.load(connection, tournament_id)
        assert next(number) > 2 * MANY
    await Worker(database).catch_up()
    async with turns_of_others() as number, database.connection() as connection:
        bounds(ROWS_MAX=1)
        await tournament.load(connection, tournament_id)
        assert next(number) > MANY
    async with turns_of_others() as number:
        assert not (await rebuild(database, tournament_id)).replaced
        assert next(number) > 2 * MANY


@on_the_database
@given(history=rich_histories, sizes=block_sizes)
async def test_what_is_read_and_written_in_chunks_is_the_same(
    database: Database, history: list[Event], sizes: list[int]
) -> None:
    tournament_id = await written(database, history, sizes)
    with pytest.MonkeyPatch.context() as patched:
        set_bounds(patched, ROWS_MAX=2)
        await Worker(database).catch_up()
        await assert_tables_show_the_log(database, tournament_id)
        await assert_live_shows_the_log(database, tournament_id)
