"""What tournaments whose points expire cost a process that nobody asks anything: processor time and statements.

    .venv/bin/python -m benchmarks.trials.idle --tournaments 1600

A desk opens the tournaments, each with a ranking whose points last 52 weeks. Then it waits. The sweep of tournaments
outside memory is measured as well: it happens every ten seconds.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Final

import asyncpg
import uvloop

from api.desk.desk import open_desk
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.domain.commands import CreateRanking, RegisterCompetitor
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import registry
from projections.tables.worker import Worker

SECONDS: Final = 20
_COMPETITOR: Final = CompetitorId(1)
_ROLLING: Final = CreateRanking(
    ranking_id=RankingId(2),
    name="Rolling",
    participants=(_COMPETITOR,),
    main_unity_id=UnityId(3),
    main_unity_name="points",
    main_unity_lasts="P52W",
    main_unity_expires_on=ExpiresOn.WEEK,
)
_STATEMENTS: Final = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"


async def run(tournaments: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with embedded_postgres(Path(directory) / "pg") as cluster:
            await migrate(cluster.dsn)
            async with open_database(cluster.dsn, name="idle") as database, open_desk(database) as desk:
                for number in range(1, tournaments + 1):
                    tournament_id = TournamentId(number)
                    async with database.connection() as connection:
                        name = f"t{number}"
                        await registry.open_tournament(connection, tournament_id, name=name, slug=name, actor=OPERATOR)
                    async with desk.live_pool.pinned(tournament_id) as live:
                        for command in (RegisterCompetitor(competitor_id=_COMPETITOR, name="Ann"), _ROLLING):
                            await desk.submit(live, command, actor=OPERATOR)
                await Worker(database).catch_up()
                owner = await asyncpg.connect(cluster.dsn)
                await asyncio.sleep(10)
                before, busy, began_at = await owner.fetchval(_STATEMENTS), time.process_time(), time.perf_counter()
                await asyncio.sleep(SECONDS)
                share = (time.process_time() - busy) / (time.perf_counter() - began_at)
                await asyncio.sleep(1)  # PostgreSQL counts late
                statements = (await owner.fetchval(_STATEMENTS) - before) / (SECONDS + 1)
                await owner.close()
                print(f"{tournaments} tournaments: {share:.2%} of a core, {statements:.0f} statements a second")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tournaments", type=int, default=1_600)
    uvloop.run(run(parser.parse_args().tournaments))
