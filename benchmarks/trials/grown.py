"""What each event costs as the log grows: one tournament of ever more events, and ever more tournaments of a thousand.

Run it alone, with the numbers of events, in rising order, and enough room in TMPDIR (some 600 bytes each):

    nice .venv-bench/bin/python -m benchmarks.trials.grown 100000 1000000 10000000

For each number, it makes a database with one tournament, and one with a tournament for each thousand; blocks have 64
events. Each step is done with the whole database. Prints, for an event, the microseconds of processor time of programs
and PostgreSQL together, and the bytes; and the largest exponent of the whole between neighbours.
"""

import asyncio
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import uvloop

from api.cli.archives import lines_of
from benchmarks.bench import WORK_DIRECTORY
from benchmarks.cluster import SETTINGS, Cluster, find_pgbench
from benchmarks.sizes.table import exponent_of
from benchmarks.trials.beside import postgres_seconds
from benchmarks.world import Field, Tournament, judged, open_tournaments, point_request, seeding, settle, unjudged
from engine.database.embedded import Embedded, embedded_postgres
from engine.database.migrator import as_owner, migrate
from engine.database.pool import open_database
from engine.log import appending, heads
from engine.log.appending import Appended
from engine.log.heads import Head
from engine.process.telemetry import log_to
from projections.live.tournament import load
from projections.tables.worker import Worker
from projections.verification import archives
from projections.verification.all_tournaments import Plan, verify_all

EVENTS_EACH: Final = 1_000
"""Of each of many tournaments."""
BLOCK_EVENTS: Final = 64
REST_SECONDS: Final = 0.5
"""After a step, until the time of sessions that it has ended is that of the server."""
SEED: Final = 64
_EVENTS: Final = "SELECT sum(sequence)::bigint FROM tallybook.head"
_BYTES: Final = "SELECT pg_database_size(current_database())"

Costs = dict[str, float]
"""Of one database, by step: seconds or bytes."""


class Steps:
    """The steps with one database, and what they cost."""

    def __init__(self, server: Embedded, directory: Path) -> None:
        self._server = server
        self._cluster = Cluster(server.dsn, {})
        self._directory = directory
        self._programs = Path(find_pgbench() or "").parent
        self.costs: Costs = {}

    async def all(self, tournaments: int, events: int) -> Costs:
        """Tournaments with this number of events each."""
        dsn = await self._cluster.database("grown")
        await migrate(dsn)
        empty_bytes = await self._asked(dsn, _BYTES)
        async with seeding(dsn) as connection:
            opened = await open_tournaments(connection, "grown", tournaments, Field())
        await self._append(dsn, opened, events)
        await settle(dsn)
        async with open_database(dsn, name="bench", connections_max=4) as database:
            async with self._timed("replay"), database.connection() as connection:
                for tournament in opened:
                    await load(connection, tournament.tournament_id)
            async with self._timed("tables, by the worker"):
                await Worker(database).catch_up()
            await settle(dsn)
            async with self._timed("verify"):
                report = await verify_all(database, Plan(), on_difference=print, on_events=lambda _done, _all: None)
        assert not report.differences_count
        self.costs["disk, with tables"] = await self._asked(dsn, _BYTES) - empty_bytes
        await self._by_archives(dsn, opened)
        await self._by_dump(dsn)
        await self._cluster.drop_databases()
        return self.costs

    async def _append(self, dsn: str, opened: list[Tournament], events: int) -> None:
        draw = random.Random(SEED)
        async with seeding(dsn) as connection:
            at = await heads.current(connection, [tournament.tournament_id for tournament in opened])
            async with self._timed("append"):
                for tournament in opened:
                    requests = cycle([point_request(tournament, draw) for _ in range(BLOCK_EVENTS)])
                    for start in range(0, events, BLOCK_EVENTS):
                        block = unjudged(tournament, list(islice(requests, min(BLOCK_EVENTS, events - start))))
                        (outcome,) = await appending.append(connection, [judged(block, at)], wait=False)
                        assert isinstance(outcome, Appended), outcome
                        assert outcome.last_sequence is not None
                        assert outcome.digest is not None
                        at[tournament.tournament_id] = Head(outcome.last_sequence, outcome.digest)

    async def _by_archives(self, dsn: str, opened: list[Tournament]) -> None:
        directory = self._directory / "archives"
        directory.mkdir()
        async with self._timed("archives written"), open_database(dsn, name="bench") as database:
            for tournament in opened:
                with (directory / tournament.slug).open("w") as file:
                    exported = archives.exported(database, tournament.tournament_id, progress=lambda _done, _all: None)
                    async for line in exported:
                        file.write(line)
        self.costs["archives"] = sum(path.stat().st_size for path in directory.iterdir())
        other = await self._cluster.database("entered")
        await migrate(other)
        async with self._timed("archives restored"), as_owner(other) as owner:
            for path in directory.iterdir():
                await archives.enter(owner, lines_of(path), progress=lambda _done, _all: None)
                path.unlink()
        directory.rmdir()
        await self._dropped(dsn, other)

    async def _by_dump(self, dsn: str) -> None:
        dump = self._directory / "dump"
        async with self._timed("pg_dump -Fc"):
            self._run("pg_dump", "-Fc", "-f", str(dump), dsn)
        self.costs["dump"] = dump.stat().st_size
        other = await self._cluster.database("restored")
        async with self._timed("pg_restore"):
            self._run("pg_restore", "--exit-on-error", "-d", other, str(dump))
        dump.unlink()
        await self._dropped(dsn, other)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([self._programs / program, *arguments], check=True)

    @asynccontextmanager
    async def _timed(self, step: str) -> AsyncIterator[None]:
        await self._cluster.checkpoint()
        before = self._seconds()
        yield
        await asyncio.sleep(REST_SECONDS)
        self.costs[step] = self._seconds() - before

    def _seconds(self) -> float:
        """Processor time of this process, of the programs it has run, and of PostgreSQL."""
        programs = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + programs.ru_utime + programs.ru_stime + postgres_seconds(self._server.pid)

    async def _dropped(self, dsn: str, other: str) -> None:
        """Drops the other database, which has as many events."""
        assert await self._asked(dsn, _EVENTS) == await self._asked(other, _EVENTS)
        await self._cluster.drop(urlsplit(other).path[1:])

    async def _asked(self, dsn: str, statement: str) -> int:
        connection = await asyncpg.connect(dsn)
        try:
            value: int = await connection.fetchval(statement)
        finally:
            await connection.close()
        return value


async def main(sizes: list[int]) -> None:
    log_to()
    found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", WORK_DIRECTORY)) as name:
        settings = SETTINGS | {"max_wal_size": "4GB"}
        async with embedded_postgres(Path(name) / "pg", settings=settings) as server:
            for size in sizes:
                for kind, tournaments in (("one", 1), ("many", size // EVENTS_EACH)):
                    costs = await Steps(server, Path(name)).all(tournaments, size // tournaments)
                    for step, cost in costs.items():
                        found[kind, step][size] = cost
                    print(kind, size, costs, file=sys.stderr, flush=True)
    for (kind, step), cost_of in found.items():
        scale = 1e6 if isinstance(next(iter(cost_of.values())), float) else 1
        of_an_event = [f"{cost / size * scale:.1f}" for size, cost in cost_of.items()]
        print(f"{kind:5} {step:22}", *of_an_event, f"{exponent_of(cost_of.items()):.2f}", sep=" | ")


if __name__ == "__main__":
    uvloop.run(main([int(size) for size in sys.argv[1:]]))
