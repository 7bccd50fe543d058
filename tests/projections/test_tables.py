"""Live = tables = replay, on the real database: whatever way a tournament's state comes about, it is the same state."""

import asyncio
from datetime import UTC, datetime
from itertools import chain, cycle
from typing import Final

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.events import (
    CompetitionAdded,
    Delta,
    Event,
    ParticipantsChanged,
    PointsAdded,
    RankingCreated,
)
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from projections.board.board import FOLD_VERSION
from projections.live.tournament import LiveTournament
from projections.tables import tables
from projections.tables.worker import Worker
from tests.bounds import set_bounds
from tests.conftest import A_COMMIT_EACH
from tests.desks import open_arena, until, waiting_for_locks
from tests.histories import board_of, histories, judged_by, runs
from tests.positions import standings
from tests.projections.boards import laid_out
from tests.projections.written import (
    append,
    assert_live_shows_the_log,
    assert_tables_show_the_log,
    block_sizes,
    in_tables,
    loaded,
    made_by_fold,
    on_the_database,
    rich_histories,
    whole_log,
    written,
)
from tests.tournaments import open_new_tournament

everything_at_once: Final = (1_000,)


# ── Tables = replay ─────────────────────────────────────────────────────────────────────────────────────


@on_the_database
@given(history=rich_histories, sizes=block_sizes)
async def test_the_tables_show_what_the_log_says(database: Database, history: list[Event], sizes: list[int]) -> None:
    tournament_id = await written(database, history, sizes)
    assert await Worker(database).catch_up() == len(history) + 1
    await assert_tables_show_the_log(database, tournament_id)
    assert await Worker(database).catch_up() == 0


_ROWS: Final = """
    SELECT array_agg(r.row ORDER BY r.row)
    FROM (
        SELECT to_jsonb(t) - 'recorded_at' FROM checkpoint AS t
        UNION ALL SELECT to_jsonb(t) FROM publication AS t
        UNION ALL SELECT to_jsonb(t) FROM competitor AS t
        UNION ALL SELECT to_jsonb(t) FROM competition AS t
        UNION ALL SELECT to_jsonb(t) FROM participant AS t
        UNION ALL SELECT to_jsonb(t) FROM ranking AS t
        UNION ALL SELECT to_jsonb(t) FROM enrolment AS t
        UNION ALL SELECT to_jsonb(t) FROM unity AS t
        UNION ALL SELECT to_jsonb(t) FROM total AS t
    ) AS r (row)
"""
_EMPTY: Final = """
    TRUNCATE checkpoint, publication, competitor, competition, participant, ranking, enrolment, unity, total
"""


@pytest.mark.one_postgresql(A_COMMIT_EACH)
@settings(on_the_database, max_examples=6)
@given(
    many=st.lists(st.tuples(histories(commands_max=20), block_sizes), min_size=2, max_size=6),
    events_max=st.sampled_from([1, 10, 50, 10_000]),
    keeping=st.booleans(),
)
async def test_many_tournaments_folded_together_give_the_rows_that_each_gives_alone(
    database: Database,
    owner: asyncpg.Connection,
    many: list[tuple[list[Event], list[int]]],
    events_max: int,
    keeping: bool,
) -> None:
    """In batches of any size; with boards that were kept, or read from the tables."""
    await owner.execute(_EMPTY)
    tournaments = [await written(database, history, sizes) for history, sizes in many]
    with pytest.MonkeyPatch.context() as patched:
        set_bounds(patched, TAIL_EVENTS_MAX=events_max)
        worker = Worker(database)
        left = set(tournaments)
        while left:
            worker = worker if keeping else Worker(database)
            left = (await worker._fold(sorted(left))).left
    for tournament_id in tournaments:
        await assert_tables_show_the_log(database, tournament_id)
    await Worker(database).catch_up()  # those of examples before
    together = await owner.fetchval(_ROWS)
    await owner.execute(_EMPTY)
    with pytest.MonkeyPatch.context() as patched:
        set_bounds(patched, BATCH_TOURNAMENTS_MAX=1)
        await Worker(database).catch_up()
    assert await owner.fetchval(_ROWS) == together


@on_the_database
@given(
    history=rich_histories,
    sizes=block_sizes,
    turns=st.lists(st.sampled_from([None, None, 0, 1]), min_size=1, max_size=12),
)
async def test_the_tables_show_it_whichever_worker_folds_and_whenever(
    database: Database, history: list[Event], sizes: list[int], turns: list[int | None]
) -> None:
    workers = [Worker(database), Worker(database)]  # each keeps boards, which the other one's work makes stale
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    for run, turn in zip(runs(history, cycle(sizes)), cycle(turns), strict=False):
        head = await append(database, tournament_id, run)
        if turn is not None:
            await workers[turn].catch_up()
            assert (await in_tables(database, tournament_id))[0] == head
            await assert_tables_show_the_log(database, tournament_id)
    await asyncio.gather(*[worker.catch_up() for worker in workers])
    await assert_tables_show_the_log(database, tournament_id)


@settings(on_the_database, max_examples=8)
@given(history=rich_histories, sizes=block_sizes)
async def test_while_the_log_grows_and_workers_run_nothing_is_lost_or_doubled_and_every_live_is_consistent(
    database: Database, history: list[Event], sizes: list[int]
) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    grown = asyncio.Event()

    async def grow() -> None:
        for run in runs(history, cycle(sizes)):
            await append(database, tournament_id, run)
        grown.set()

    async def work() -> int:
        worker = Worker(database)
        folded = 0
        while not grown.is_set():
            folded += await worker.catch_up()
        return folded + await worker.catch_up()

    async def look() -> list[LiveTournament]:
        loaded_tournaments = []
        while not grown.is_set():
            loaded_tournaments.append(await loaded(database, tournament_id))
        return loaded_tournaments

    _, loaded_tournaments, *folded = await asyncio.gather(grow(), look(), work(), work(), work())
    assert sum(folded) == len(history) + 1
    await assert_tables_show_the_log(database, tournament_id)
    replayed = await whole_log(database, tournament_id)
    for loaded_live in loaded_tournaments:
        seen = replayed[: loaded_live.head.sequence]
        assert laid_out(loaded_live.board) == laid_out(board_of(seen))
        assert judged_by(loaded_live.board) == judged_by(board_of(seen))


@pytest.mark.parametrize("year", [1, 9999])
async def test_a_competition_may_have_started_in_any_year(
    database: Database, tournament_id: TournamentId, year: int
) -> None:
    started_at = datetime(year, 1, 1, tzinfo=UTC)
    added = CompetitionAdded(competition_id=CompetitionId(1), group_id=1, started_at=started_at)
    await append(database, tournament_id, [added])
    await Worker(database).catch_up()
    await assert_tables_show_the_log(database, tournament_id)


async def test_points_of_one_who_was_never_enrolled_are_kept(database: Database, tournament_id: TournamentId) -> None:
    """They were enrolled by an event that has been set aside."""
    ranking_id, unity_id, *competitor_ids = RankingId(1), UnityId(2), *map(CompetitorId, range(3, 7))
    created = RankingCreated(
        ranking_id=ranking_id,
        name="Overall",
        participants=tuple(competitor_ids[:2]),
        main_unity_id=unity_id,
        main_unity_name="Points",
    )
    points = PointsAdded(ranking_id=ranking_id, deltas=(Delta(competitor_ids[2], unity_id, 5),))
    joined = ParticipantsChanged(ranking_id=ranking_id, added=tuple(competitor_ids[3:]))
    for events in [created], [points], [joined, points], [joined]:
        await append(database, tournament_id, events)
        await Worker(database).catch_up()
        await assert_tables_show_the_log(database, tournament_id)


async def test_a_name_is_forgotten_after_a_worker_that_is_folding_its_tournament(
    database: Database, owner: asyncpg.Connection
) -> None:
    arena = await open_arena(database)
    await Worker(database).catch_up()

    async def forget() -> None:
        async with database.connection() as connection, connection.transaction():
            await tables.forget(connection, arena.tournament_id, arena.competitors[0])

    async def waits_or_is_done() -> bool:
        return forgetting.done() or bool(await waiting_for_locks(owner, "checkpoint"))

    async with database.connection() as folding, folding.transaction():
        await tables.claim(folding, [arena.tournament_id])
        forgetting = asyncio.create_task(forget())
        await until(waits_or_is_done)
        assert not forgetting.done()
    await forgetting


# ── LiveTournament = replay ───────────────────────────────────────────────────────────────────────────────────────


@on_the_database
@given(history=rich_histories, sizes=block_sizes, data=st.data())
async def test_a_live_is_what_a_replay_gives_however_far_the_tables_are(
    database: Database, history: list[Event], sizes: list[int], data: st.DataObject
) -> None:
    blocks = list(runs(history, cycle(sizes)))
    in_time = data.draw(st.integers(0, len(blocks)))
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    await assert_live_shows_the_log(database, tournament_id)  # there are no tables yet
    for number, run in enumerate(blocks):
        if number == in_time:
            await Worker(database).catch_up()
        await append(database, tournament_id, run)
    await assert_live_shows_the_log(database, tournament_id)
    await Worker(database).catch_up()
    await assert_live_shows_the_log(database, tournament_id)


@on_the_database
@given(history=rich_histories, sizes=block_sizes, data=st.data())
async def test_a_live_that_follows_the_log_stays_what_a_replay_gives(
    database: Database, history: list[Event], sizes: list[int], data: st.DataObject
) -> None:
    """Loaded somewhere in the middle, it folds the rest in steps; what it is given twice it folds once."""
    blocks = list(runs(history, cycle(sizes)))
    loaded_at = data.draw(st.integers(0, len(blocks)))
    tournament_id = await written(database, list(chain(*blocks[:loaded_at])), everything_at_once)
    followed = await loaded(database, tournament_id)
    for run in blocks[loaded_at:]:
        head = await append(database, tournament_id, run)
        async with database.connection() as connection:
            await followed.catch_up(connection, head)
    replayed = await whole_log(database, tournament_id)
    followed.fold(replayed, followed.head)
    assert followed.head.sequence == len(replayed)
    assert laid_out(followed.board) == laid_out(board_of(replayed))
    assert judged_by(followed.board) == judged_by(board_of(replayed))


# ── What SQL shows ──────────────────────────────────────────────────────────────────────────────────────

_STANDING = """
    SELECT ranking_id, unity_id, competitor_id, position, total, version, tournament, ranking, unity, competitor
    FROM standing
    WHERE tournament_id = $1
    ORDER BY ranking_id, unity_id, position, enrolled
"""


@on_the_database
@given(history=rich_histories)
async def test_the_view_of_standings_shows_what_answers_show(database: Database, history: list[Event]) -> None:
    tournament_id = await written(database, history, everything_at_once)
    await Worker(database).catch_up()
    async with database.connection() as connection:
        rows = await connection.fetch(_STANDING, tournament_id)
        slug = await connection.fetchval("SELECT slug FROM tournament WHERE tournament_id = $1", tournament_id)
    board = board_of(await whole_log(database, tournament_id))
    assert [tuple(row) for row in rows] == [
        (
            ranking_id,
            unity_id,
            line.competitor_id,
            line.position,
            line.total,
            unity.version,
            slug,
            ranking.name,
            unity.name,
            board.competitors[CompetitorId(line.competitor_id)].name,
        )
        for ranking_id, ranking in sorted(board.rankings.items())
        for unity_id, unity in sorted(ranking.unities.items())
        for line in standings(ranking.participants, unity.totals, unity.sort)
    ]


# ── Other versions of the fold ──────────────────────────────────────────────────────────────────────────

_CHECKPOINT = "SELECT sequence, digest, fold_version FROM checkpoint WHERE tournament_id = $1"
_STRAY_TOTALS = "SELECT count(*) FROM total WHERE tournament_id = $1 AND unity_id = -1"

a_few_times = settings(on_the_database, max_examples=5)


@a_few_times
@given(history=rich_histories, sizes=block_sizes, more=st.booleans())
async def test_tables_of_an_older_fold_are_made_again_from_the_beginning(
    database: Database, owner: asyncpg.Connection, history: list[Event], sizes: list[int], more: bool
) -> None:
    tournament_id = await written(database, history[:-1] if more else history, sizes)
    worker = Worker(database)
    await worker.catch_up()
    await made_by_fold(FOLD_VERSION - 1, owner, tournament_id)
    if more:
        await append(database, tournament_id, history[-1:])
    await assert_live_shows_the_log(database, tournament_id)  # also before a worker came to it
    assert await worker.catch_up() == len(history) + 1
    await assert_tables_show_the_log(database, tournament_id)
    await assert_live_shows_the_log(database, tournament_id)
    assert await owner.fetchval(_STRAY_TOTALS, tournament_id) == 0
    assert (await owner.fetchrow(_CHECKPOINT, tournament_id))["fold_version"] == FOLD_VERSION


@a_few_times
@given(history=rich_histories, sizes=block_sizes)
async def test_tables_of_a_newer_fold_are_left_alone_and_the_live_is_replayed(
    database: Database, owner: asyncpg.Connection, history: list[Event], sizes: list[int]
) -> None:
    tournament_id = await written(database, history[:-1], sizes)
    worker = Worker(database)
    await worker.catch_up()
    await made_by_fold(FOLD_VERSION + 1, owner, tournament_id)
    await append(database, tournament_id, history[-1:])
    before = await owner.fetchrow(_CHECKPOINT, tournament_id), await in_tables(database, tournament_id)
    assert await worker.catch_up() == 0
    assert (await worker._fold([tournament_id])).events == 0  # as where a hint names it
    assert (await Worker(database)._fold([tournament_id])).events == 0
    after = await owner.fetchrow(_CHECKPOINT, tournament_id), await in_tables(database, tournament_id)
    assert after == before
    await assert_live_shows_the_log(database, tournament_id)


async def test_tables_of_a_newer_fold_do_not_stand_in_the_way_of_others(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    """They are no candidates."""
    await Worker(database).catch_up()
    await made_by_fold(FOLD_VERSION + 1, owner, tournament_id)
    await append(database, tournament_id, [(await whole_log(database, tournament_id))[0].event])
    other_id = await open_new_tournament(database, actor=OPERATOR)
    async with database.connection() as connection:
        assert await tables.behind(connection, [tournament_id, other_id], stopped_seconds=0) == [other_id]


async def test_one_by_one_the_same_tournaments_are_behind_as_together(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    """The nodes of a distributed database are asked about one after the other."""
    await Worker(database).catch_up()
    new_id, stopped_id = [await open_new_tournament(database, actor=OPERATOR) for _ in range(2)]
    await owner.execute("INSERT INTO stopped VALUES ($1, 1, 'unreadable', now())", stopped_id)
    among = [tournament_id, new_id, stopped_id]
    async with database.connection() as connection:
        assert await tables.behind(connection, among, stopped_seconds=60) == [new_id]
        found = [await connection.fetchval(tables._BEHIND.one, one, FOLD_VERSION, 60) for one in among]
    assert found == [None, new_id, None]
