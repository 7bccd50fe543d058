"""A tournament of 100,000 competitors, as many competitions and a ranking of 10,000 with three unities: is brought
into memory, from its tables and from its log, and its tables are made anew. To be run by itself, with the address of
an empty migrated database:

    python -m benchmarks.trials.large postgresql://…

Figures: seconds, the longest turn of the event loop in milliseconds, of processor time (so that other programs do not
count): so long everybody else in the process waits.
"""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvloop

from api.service.api_process import GC_THRESHOLDS
from engine.database.pool import Database, open_database
from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    UnityAdded,
)
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.log import log
from engine.log.log import Appended, Block, Request
from projections.board.board import FOLD_VERSION
from projections.live import tournament
from projections.tables import tables
from projections.tables.rebuild import rebuild
from projections.tables.worker import Worker

COMPETITORS = 100_000
ENROLLED = 10_000
UNITIES = (900_001, 900_002, 900_003)
RANKING = RankingId(900_000)
BLOCK_EVENTS = 1_000


def history() -> list[Event]:
    competitors = [CompetitorId(n) for n in range(1, COMPETITORS + 1)]
    enrolled = tuple(competitors[:ENROLLED])
    return [
        *(CompetitorRegistered(competitor_id=c, name=f"Competitor number {c}", color="0044ff") for c in competitors),
        *(
            CompetitionAdded(
                competition_id=CompetitionId(1_000_000 + c),
                group_id=1,
                participants=(c, CompetitorId(c % COMPETITORS + 1)),
                result="1-0",
                winner_id=c,
            )
            for c in competitors
        ),
        RankingCreated(
            ranking_id=RANKING,
            name="All",
            participants=enrolled,
            main_unity_id=UnityId(UNITIES[0]),
            main_unity_name="a",
        ),
        *(UnityAdded(ranking_id=RANKING, unity_id=UnityId(u), name=f"u{u}", sort=Sort.DESC) for u in UNITIES[1:]),
        *(
            PointsAdded(ranking_id=RANKING, deltas=tuple(Delta(c, UnityId(u), 5) for c in enrolled[n : n + 1_000]))
            for u in UNITIES
            for n in range(0, ENROLLED, 1_000)
        ),
    ]


async def write(database: Database) -> TournamentId:
    async with database.connection() as connection:
        tournament_id = TournamentId((await log.next_ids(connection, 1))[0])
        assert await log.open_tournament(connection, tournament_id, name="Large", slug="large", actor=OPERATOR)
        events, sequence = history(), 1
        for n in range(0, len(events), BLOCK_EVENTS):
            requests = tuple(Request(events=(event,), actor=OPERATOR) for event in events[n : n + BLOCK_EVENTS])
            block = Block(
                tournament_id=tournament_id, judged_at=Sequence(sequence), judged_digest=None, requests=requests
            )
            (appended,) = await log.append(connection, [block], wait=True)
            assert isinstance(appended, Appended)
            assert appended.last_sequence is not None
            sequence = appended.last_sequence
    return tournament_id


@asynccontextmanager
async def measured(name: str) -> AsyncIterator[None]:
    turns: list[float] = []

    async def tick() -> None:
        while True:
            began_at = time.thread_time()
            await asyncio.sleep(0)
            turns.append(time.thread_time() - began_at)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    turns.clear()
    began_at, processor_at = time.perf_counter(), time.thread_time()
    try:
        yield
    finally:
        seconds, processor = time.perf_counter() - began_at, time.thread_time() - processor_at
        ticking.cancel()
        over = sum(turn > 0.02 for turn in turns)
        longest = ", ".join(f"{turn * 1000:.1f}" for turn in sorted(turns)[:-4:-1])
        print(
            f"{name}: {seconds:.2f} s ({processor:.2f} of the processor), turns {len(turns)}, longest {longest} ms, "
            f"{over} over 20 ms",
            flush=True,
        )


async def main(dsn: str) -> None:
    owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    async with open_database(dsn, name="large") as database:
        known = await owner.fetchval("SELECT tournament_id FROM tournament WHERE slug = 'large'")
        tournament_id = TournamentId(known) if known else await write(database)
        await owner.execute("ANALYZE")
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        async with measured("cold load from the log"), database.connection() as connection:
            by_log = await tournament.load(connection, tournament_id)
        async with measured("worker folds it"):
            await Worker(database).catch_up()
        async with measured("cold load from the tables"), database.connection() as connection:
            by_tables = await tournament.load(connection, tournament_id)
        assert by_tables.board == by_log.board
        del by_log, by_tables
        async with measured("rebuild, nothing differs"):
            await rebuild(database, tournament_id)
        await owner.execute("UPDATE checkpoint SET fold_version = $1", FOLD_VERSION - 1)
        async with measured("rebuild, all replaced"):
            await rebuild(database, tournament_id)
        async with measured("a worker reads the board"), database.connection() as connection:
            await tables.load_board(connection, tournament_id)
        await owner.execute("DELETE FROM checkpoint")
        await owner.execute("DELETE FROM snapshot")
        for statement in tables._CLEAR:
            await owner.execute(statement, [tournament_id])
    await owner.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
