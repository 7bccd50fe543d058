"""What a block costs on a distributed database, sent directly to its node or through the coordinator, and on one
PostgreSQL. Run it alone, with the address of a cluster's coordinator as a superuser:

    python -m benchmarks.trials.on_nodes 'postgresql://superuser@/database?host=<socket directory>&port=…'

The database there must be distributed, and nothing else may use its servers, which are on this machine; the trial
leaves its tournaments there. One PostgreSQL is started next to it. A desk adds one delta at a time to 200 tournaments
in random order, for 64 clients, and for 8, so that commits hold many blocks or few; also while a worker makes the
tables. Prints medians of three interleaved rounds: microseconds of processor time per add, of the desk and of each
server, and adds a second.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import asyncpg
import uvloop

from api.desk.desk import open_desk
from benchmarks.service import DSN_VARIABLE, installed
from benchmarks.trials.beside import Place, add, postgres_seconds
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.nodes import Nodes
from engine.database.pool import open_database

TOURNAMENTS: Final = 200
CLIENTS: Final = (64, 8)
SECONDS: Final = 4.0
WARM_SECONDS: Final = 1.0
ROUNDS: Final = 3
_POSTMASTERS: Final = """
    SELECT n.nodeport, split_part(r.result, chr(10), 1)::int
    FROM run_command_on_all_nodes('SELECT pg_read_file(''postmaster.pid'')') AS r
    JOIN pg_dist_node AS n ON n.nodeid = r.nodeid
    ORDER BY n.nodeport
"""
_LAG: Final = """
    SELECT coalesce(sum(h.sequence - coalesce(c.sequence, 0)), 0)::bigint
    FROM head AS h
    LEFT JOIN checkpoint AS c ON c.tournament_id = h.tournament_id
"""

Figures = dict[str, float]


@contextmanager
def by_way_of_the_address() -> Iterator[None]:
    """Within the context, no node is known."""
    of = Nodes.of

    async def nowhere(*_: object) -> dict[object, object]:
        return {}

    Nodes.of = nowhere  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Nodes.of = of  # type: ignore[method-assign]


@asynccontextmanager
async def a_worker(dsn: str) -> AsyncIterator[None]:
    """A worker at this address, which has nothing left to do when the context begins."""
    process = await asyncio.create_subprocess_exec(
        installed().command, "worker", env=os.environ | {DSN_VARIABLE: dsn}, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with open_database(dsn, name="bench") as database, database.connection() as connection:
            while await connection.fetchval(_LAG):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)
        yield
    finally:
        process.terminate()
        await process.wait()


async def one_round(dsn: str, places: list[Place], clients: int, postmasters: dict[str, int]) -> Figures:
    draw = random.Random(18)
    async with open_database(dsn, name="bench") as database, open_desk(database) as desk:
        for place in places:
            async with desk.live_pool.pinned(place.tournament_id):
                pass

        async def adds(seconds: float) -> int:
            until = time.perf_counter() + seconds
            return sum(await asyncio.gather(*[add(desk, places, until, draw) for _ in range(clients)]))

        await adds(WARM_SECONDS)
        before, ours = {name: postgres_seconds(pid) for name, pid in postmasters.items()}, time.process_time()
        count = await adds(SECONDS)
        used = {"desk": time.process_time() - ours}
        used |= {name: postgres_seconds(pid) - before[name] for name, pid in postmasters.items()}
    return {name: seconds / count * 1e6 for name, seconds in used.items()} | {"a second": count / SECONDS}


async def opened(dsn: str) -> list[Place]:
    async with open_database(dsn, name="bench") as database:
        return [await Place.made(database) for _ in range(TOURNAMENTS)]


async def main(coordinator: str) -> None:
    session = await asyncpg.connect(coordinator)
    nodes = {f"node at port {port}": pid for port, pid in await session.fetch(_POSTMASTERS)}
    await session.close()
    with tempfile.TemporaryDirectory() as directory:
        async with embedded_postgres(Path(directory) / "pg", settings={"max_wal_size": "4GB"}) as cluster:
            assert cluster.pid is not None
            await migrate(cluster.dsn)
            alone, apart = await opened(cluster.dsn), await opened(coordinator)
            for clients in CLIENTS:
                rounds: dict[str, list[Figures]] = defaultdict(list)
                for _ in range(ROUNDS):
                    server = {"PostgreSQL": cluster.pid}
                    rounds["one PostgreSQL"].append(await one_round(cluster.dsn, alone, clients, server))
                    with by_way_of_the_address():
                        rounds["by way of the coordinator"].append(await one_round(coordinator, apart, clients, nodes))
                    rounds["straight to nodes"].append(await one_round(coordinator, apart, clients, nodes))
                    async with a_worker(cluster.dsn):
                        rounds["one, a worker"].append(await one_round(cluster.dsn, alone, clients, server))
                    async with a_worker(coordinator):
                        rounds["nodes, a worker"].append(await one_round(coordinator, apart, clients, nodes))
                print(f"{clients} clients")
                for name, figures in rounds.items():
                    told(name, figures)


def told(name: str, rounds: list[Figures]) -> None:
    print(f"{name:>26}: " + ", ".join(f"{key} {median(one[key] for one in rounds):.0f}" for key in rounds[0]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    uvloop.run(main(sys.argv[1]))
