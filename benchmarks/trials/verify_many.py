"""A verification of many small tournaments, read one by one and in batches. To be run by itself:

    python -m benchmarks.trials.verify_many

It starts a PostgreSQL of its own and makes 2,000 tournaments of six events, folded into tables. Prints milliseconds for
each tournament and events a second, the medians of three pairs of runs that take turns.
"""

import asyncio
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from benchmarks.trials.beside import Place
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import Database, open_database
from engine.domain.events import Delta, PointsAdded
from engine.domain.terms import OPERATOR, TournamentId
from engine.log import log
from engine.log.log import Block, Head, Request
from projections.tables.worker import Worker
from projections.verification import source
from projections.verification.all_tournaments import Plan, verify_all
from projections.verification.progress import Difference

TOURNAMENTS: Final = 2_000
POINTS: Final = 3
ROUNDS: Final = 3


async def make(database: Database) -> None:
    places = [await Place.made(database) for _ in range(TOURNAMENTS)]
    async with database.connection() as connection:
        for _ in range(POINTS):
            heads = await log.heads(connection, [place.tournament_id for place in places])
            for n in range(0, TOURNAMENTS, 100):
                await log.append(connection, [block(place, heads) for place in places[n : n + 100]], wait=True)
    await Worker(database).catch_up()


def block(place: Place, heads: dict[TournamentId, Head]) -> Block:
    event = PointsAdded(ranking_id=place.ranking_id, deltas=(Delta(place.competitor_id, place.unity_id, 1),))
    return Block(
        tournament_id=place.tournament_id,
        judged_at=heads[place.tournament_id].sequence,
        judged_digest=heads[place.tournament_id].digest,
        requests=(Request(events=(event,), actor=OPERATOR),),
    )


async def verified(database: Database, together: int) -> tuple[float, float]:
    """Seconds for each tournament, and events a second."""
    source.TOGETHER_MAX = together  # type: ignore[misc]
    began_at = perf_counter()
    report = await verify_all(database, Plan(), on_difference=_refuse, on_events=lambda _done, _all: None)
    seconds = perf_counter() - began_at
    assert len(report.heads) == TOURNAMENTS
    return seconds / TOURNAMENTS, report.events / seconds


def _refuse(difference: Difference) -> None:
    raise AssertionError(str(difference))


async def main() -> None:
    rounds: dict[int, list[tuple[float, float]]] = {1: [], source.TOGETHER_MAX: []}
    with tempfile.TemporaryDirectory() as directory:
        async with embedded_postgres(Path(directory) / "pg", settings={"max_wal_size": "4GB"}) as cluster:
            await migrate(cluster.dsn)
            async with open_database(cluster.dsn, name="bench") as database:
                await make(database)
                for _ in range(ROUNDS):
                    for together, took in rounds.items():
                        took.append(await verified(database, together))
    for together, took in rounds.items():
        seconds, rate = (median(column) for column in zip(*took, strict=True))
        print(f"{together:>4} at once: {seconds * 1000:6.2f} ms a tournament, {rate:7.0f} events a second")


if __name__ == "__main__":
    asyncio.run(main())
