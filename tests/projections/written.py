"""Histories written to a log, and what tables and lives must show of them."""

from collections.abc import Iterable
from itertools import cycle
from typing import Final

import asyncpg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.events import Event, Recorded
from engine.domain.terms import OPERATOR, Sequence, TournamentId
from engine.log import appending, heads, tails
from engine.log.appending import Appended, Block, Request
from projections.board.board import Board
from projections.live import tournament
from projections.live.tournament import LiveTournament
from projections.tables import snapshots, tables
from tests.bounds import Bounds
from tests.histories import board_of, histories, judged_by, runs, unhurried
from tests.projections.boards import laid_out
from tests.tournaments import open_new_tournament


@pytest.fixture
def in_small_steps(bounds: Bounds) -> None:
    """Snapshots every few events, and chunks of a few."""
    bounds(INTERVAL_EVENTS_MIN=5, INTERVAL_EVENTS_PER_ROW=0, CHUNK_EVENTS_MAX=3, TAIL_EVENTS_MAX=7)


async def kept(database: Database, tournament_id: TournamentId) -> list[Sequence]:
    async with database.connection() as connection:
        return await snapshots.sequences(connection, tournament_id)


async def drop_some(database: Database, tournament_id: TournamentId, dropped: int) -> None:
    """Every `dropped`th snapshot goes; 0: none."""
    sequences = await kept(database, tournament_id)
    async with database.connection() as connection:
        left = [s for n, s in enumerate(sequences) if dropped == 0 or n % dropped]
        await snapshots.drop_others(connection, tournament_id, left)


# The database is the same for all examples; each has a tournament of its own in it. A failing history is shown as it
# was found: shrinking takes minutes here, in which one would rather copy it to where it can be looked at.
on_the_database = settings(
    unhurried,
    max_examples=12,
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
a_few_times = settings(on_the_database, max_examples=5)

rich_histories: Final = histories(commands_max=60)
block_sizes: Final = st.lists(st.integers(1, 8), min_size=1, max_size=5)


async def append(database: Database, tournament_id: TournamentId, run: list[Event]) -> Sequence:
    """Appends one block, a request each event; answers the head."""
    requests = tuple(Request(events=(event,), actor=OPERATOR) for event in run)
    async with database.connection() as connection:
        judged_at = (await heads.current(connection, [tournament_id]))[tournament_id].sequence
        block = Block(tournament_id=tournament_id, judged_at=judged_at, judged_digest=None, requests=requests)
        (appended,) = await appending.append(connection, [block], wait=True)
    assert isinstance(appended, Appended)
    assert appended.last_sequence == judged_at + len(run)
    return appended.last_sequence


async def written(database: Database, history: list[Event], sizes: Iterable[int]) -> TournamentId:
    """A new tournament with this history, in blocks of these sizes."""
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    for run in runs(history, cycle(sizes)):
        await append(database, tournament_id, run)
    return tournament_id


async def whole_log(database: Database, tournament_id: TournamentId) -> list[Recorded]:
    recorded: list[Recorded] = []
    head = heads.beginning(tournament_id)
    async with database.connection() as connection:
        while True:
            tail = await tails.tail(connection, tournament_id, head, blocks_max=7)
            if not tail.events:
                return recorded
            recorded += tail.events
            head = tail.head


async def in_tables(database: Database, tournament_id: TournamentId) -> tuple[Sequence, Board]:
    """The checkpoint's sequence, and the board that the rows make up."""
    async with database.connection() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        checkpoint = await tables.checkpoint(connection, tournament_id)
        board = await tables.load_board(connection, tournament_id)
    return (Sequence(0) if checkpoint is None else checkpoint.head.sequence), board


async def loaded(database: Database, tournament_id: TournamentId) -> LiveTournament:
    async with database.connection() as connection:
        return await tournament.load(connection, tournament_id)


async def assert_tables_show_the_log(database: Database, tournament_id: TournamentId) -> None:
    replayed = await whole_log(database, tournament_id)
    sequence, board = await in_tables(database, tournament_id)
    assert sequence == len(replayed)
    assert laid_out(board) == laid_out(board_of(replayed))


async def assert_live_shows_the_log(database: Database, tournament_id: TournamentId) -> None:
    replayed = await whole_log(database, tournament_id)
    loaded_live = await loaded(database, tournament_id)
    async with database.connection() as connection:
        found = await heads.current(connection, [tournament_id])
    assert loaded_live.head == found[tournament_id]
    assert loaded_live.head.sequence == len(replayed)
    assert laid_out(loaded_live.board) == laid_out(board_of(replayed))
    assert judged_by(loaded_live.board) == judged_by(board_of(replayed))


_SPOIL: Final = (
    "UPDATE competitor SET name = 'spoilt' WHERE tournament_id = $1",
    "UPDATE unity SET version = version + 100 WHERE tournament_id = $1",
    "UPDATE total SET total = total + 100 WHERE tournament_id = $1",
    "UPDATE enrolment SET number = number + 100 WHERE tournament_id = $1",
    "INSERT INTO total (tournament_id, unity_id, competitor_id, total) VALUES ($1, -1, -1, 5)",
    "INSERT INTO competition SELECT $1, -1, 999, 7, now(), '', NULL, NULL, now(), now()",
)
_MADE_BY = "UPDATE checkpoint SET fold_version = $2 WHERE tournament_id = $1"


async def made_by_fold(version: int, owner: asyncpg.Connection, tournament_id: TournamentId) -> None:
    """The tables are now those of another version of the fold, which saw everything differently."""
    for statement in _SPOIL:
        await owner.execute(statement, tournament_id)
    await owner.execute(_MADE_BY, tournament_id, version)
