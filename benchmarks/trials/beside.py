"""Two processes write to the same tournaments at random: what an add costs if the append returns what the other process
has appended, and if that has to be read again. Run it alone:

    python -m benchmarks.trials.beside

It starts a separate PostgreSQL and two processes with a desk each, 32 clients, and adds of one delta over 200
tournaments. The rounds of the two ways alternate. Prints, for each way, the medians of statements per add, of
microseconds of processor time per add (of the two processes, and of PostgreSQL), and of adds a second.
"""

import asyncio
import os
import random
import resource
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final

import asyncpg
import msgspec
import uvloop
from msgspec import Struct

from api.desk.desk import Desk, open_desk
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import Database, open_database
from engine.domain.commands import AddPoints
from engine.domain.events import CompetitorRegistered, Delta, RankingCreated
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import appender, appending, heads, registry
from engine.log.appending import Block, Request

TOURNAMENTS: Final = 200
CLIENTS: Final = 32
SECONDS: Final = 4.0
ROUNDS: Final = 3


class Place(Struct, frozen=True):
    tournament_id: TournamentId
    ranking_id: RankingId
    unity_id: UnityId
    competitor_id: CompetitorId

    @classmethod
    async def made(cls, database: Database) -> "Place":
        async with database.connection() as connection:
            ids = await registry.next_ids(connection, 3)
            place = cls(registry.new_tournament_id(), RankingId(ids[0]), UnityId(ids[1]), CompetitorId(ids[2]))
            await registry.open_tournament(
                connection, place.tournament_id, name="T", slug=f"t-{place.tournament_id}", actor=OPERATOR
            )
            events = (
                CompetitorRegistered(competitor_id=place.competitor_id, name="A"),
                RankingCreated(
                    ranking_id=place.ranking_id,
                    name="R",
                    participants=(place.competitor_id,),
                    main_unity_id=place.unity_id,
                    main_unity_name="P",
                ),
            )
            head = (await heads.current(connection, [place.tournament_id]))[place.tournament_id]
            block = Block(
                tournament_id=place.tournament_id,
                judged_at=head.sequence,
                judged_digest=head.digest,
                requests=(Request(events=events, actor=OPERATOR),),
            )
            await appending.append(connection, [block], wait=True)
        return place


class Told(Struct, frozen=True):
    """The settings of a process: the database, its tournaments, and whether appends return what they followed."""

    dsn: str
    places: list[Place]
    tells: bool


async def add(desk: Desk, places: list[Place], until: float, draw: random.Random) -> int:
    adds = 0
    while perf_counter() < until:
        place = draw.choice(places)
        async with desk.live_pool.pinned(place.tournament_id) as live:
            points = AddPoints(ranking_id=place.ranking_id, deltas=(Delta(place.competitor_id, place.unity_id, 1),))
            await desk.submit(live, points, actor=OPERATOR, idempotency_key=None, fingerprint=None)
        adds += 1
    return adds


async def one_process(told: Told) -> None:
    if not told.tells:
        appender.UNSEEN_BYTES_MAX = 0  # type: ignore[misc]
    statements = 0

    def note(_query: object) -> None:
        nonlocal statements
        statements += 1

    async with open_database(told.dsn, name="bench") as database, open_desk(database) as desk:
        pool: Any = database._pool
        settle = pool._init

        async def settle_and_note(connection: asyncpg.Connection) -> None:
            await settle(connection)
            connection.add_query_logger(note)

        pool._init = settle_and_note
        await pool.expire_connections()
        for place in told.places:
            async with desk.live_pool.pinned(place.tournament_id):
                pass
        statements = 0
        before, began_at = resource.getrusage(resource.RUSAGE_SELF), perf_counter()
        draw = random.Random(os.getpid())
        adds = await asyncio.gather(*[add(desk, told.places, began_at + SECONDS, draw) for _ in range(CLIENTS)])
        after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.buffer.write(msgspec.json.encode({"adds": sum(adds), "seconds": seconds, "statements": statements}))


def postgres_seconds(postmaster: int) -> float:
    """Processor time of the processes of a server, including those that have ended."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == postmaster:
                ticks += int(fields[11]) + int(fields[12])
            elif int(entry.name) == postmaster:
                ticks += int(fields[13]) + int(fields[14])
    return ticks / os.sysconf("SC_CLK_TCK")


async def one_round(dsn: str, places: list[Place], tells: bool, postmaster: int) -> tuple[float, float, float, float]:
    told = msgspec.json.encode(Told(dsn, places, tells))
    before = postgres_seconds(postmaster)
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.trials.beside", "process",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [msgspec.json.decode(out) for out, _ in await asyncio.gather(*[p.communicate(told) for p in processes])]
    adds = sum(one["adds"] for one in said)
    return (
        sum(one["statements"] for one in said) / adds,
        sum(one["seconds"] for one in said) / adds * 1e6,
        (postgres_seconds(postmaster) - before) / adds * 1e6,
        adds / SECONDS,
    )


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with embedded_postgres(Path(directory) / "pg", settings={"max_wal_size": "4GB"}) as cluster:
            await migrate(cluster.dsn)
            assert cluster.pid is not None
            async with open_database(cluster.dsn, name="bench") as database:
                places = [await Place.made(database) for _ in range(TOURNAMENTS)]
            rounds: dict[bool, list[tuple[float, float, float, float]]] = {False: [], True: []}
            for _ in range(ROUNDS):
                for tells in (False, True):
                    rounds[tells].append(await one_round(cluster.dsn, places, tells, cluster.pid))
    for tells, name in ((False, "read again"), (True, "told")):
        statements, processes, postgres, rate = (median(column) for column in zip(*rounds[tells], strict=True))
        cost = f"{statements:.2f} statements, {processes:.0f} + {postgres:.0f} µs an add"
        print(f"{name:>10}: {cost}, {rate:.0f} adds a second")


if __name__ == "__main__":
    if sys.argv[1:] == ["process"]:
        uvloop.run(one_process(msgspec.json.decode(sys.stdin.buffer.read(), type=Told)))
    else:
        asyncio.run(main())
