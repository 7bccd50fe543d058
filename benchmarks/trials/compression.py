"""What compressed answers cost and save. To be run by itself:

    python -m benchmarks.trials.compression

It starts a PostgreSQL of its own, and a server in a process of its own. A client asks for the bytes as they are and for
gzip by turns, on one connection, as often after a change of a competitor's name as without one. Prints, for each
answer: its bytes, and ms of processor time of the server's process, threads included, for an answer after a change (the
change too) and for one without. Then the answers a second that wrk gets of a kept short answer, by turns; then how long
steps of long answers take, and how often they are flushed.
"""

import asyncio
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from statistics import median
from time import process_time, thread_time
from typing import Final

import psutil
import uvloop
from aiohttp import ClientSession
from msgspec import Struct

from api.desk.desk import open_desk
from api.http import auth
from api.http.auth import Scope
from api.http.compression import compressed, compressed_portions
from api.http.outgoing import PORTION_BYTES
from api.service.app import make_front, serving
from benchmarks import load, traffic, world
from benchmarks.world import Field, Tournament
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.process.telemetry import Lines

ROUNDS: Final = 5
WRK_SECONDS: Final = 3
WRK_CONNECTIONS: Final = 32
ENCODINGS: Final = ("identity", "gzip")


async def serve(dsn: str) -> None:
    """Answers until it is ended; says its port and a token first."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    async with open_database(dsn, name="bench") as database, open_desk(database) as desk:
        async with database.connection() as connection:
            _, token = await auth.create(
                connection, name="bench", scope=Scope.ADMIN, tournament_ids=None, expires_in_days=None
            )
        async with serving(make_front(desk, Lines(BytesIO())), listener):
            print(listener.getsockname()[1], token, flush=True)
            await asyncio.get_running_loop().create_future()


class Server:
    """The process that answers, and a connection to it."""

    def __init__(self, url: str, token: str, process: psutil.Process, session: ClientSession) -> None:
        self.url = url
        self.token = token
        self._process = process
        self._session = session
        self._renamed = 0

    def seconds(self) -> float:
        """Processor time of the process so far."""
        times = self._process.cpu_times()
        return float(times.user + times.system)

    async def rename(self, tournament: Tournament) -> None:
        self._renamed += 1
        path = f"{self.url}{tournament.path}/competitors/{tournament.competitor_ids[0]}.json"
        headers = {"Prefer": "return=minimal"}
        async with self._session.put(path, data={"name": f"Renamed {self._renamed}"}, headers=headers) as answer:
            assert answer.status == 200, await answer.text()

    async def body(self, path: str, encoding: str) -> bytes:
        async with self._session.get(self.url + path, headers={"Accept-Encoding": encoding}) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers.get("Content-Encoding", "identity") == encoding
            return await answer.read()


@asynccontextmanager
async def started(dsn: str) -> AsyncIterator[Server]:
    command = (sys.executable, "-m", "benchmarks.trials.compression", "--serve", dsn)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout
    try:
        port, token = (await process.stdout.readline()).decode().split()
        bearer = {"Authorization": f"Bearer {token}"}
        async with ClientSession(auto_decompress=False, headers=bearer) as session:
            yield Server(f"http://127.0.0.1:{port}", token, psutil.Process(process.pid), session)
    finally:
        process.terminate()
        await process.wait()


class Case(Struct, frozen=True):
    """What is asked for: these paths, together so many times in a round."""

    tournament: Tournament
    paths: tuple[str, ...]
    times: int


async def size(server: Server, case: Case, encoding: str) -> int:
    return sum([len(await server.body(path, encoding)) for path in case.paths])


async def milliseconds(server: Server, case: Case, encoding: str, *, changing: bool) -> float:
    """Processor time of the server for all the paths once."""
    await size(server, case, encoding)
    before = server.seconds()
    for _ in range(case.times):
        if changing:
            await server.rename(case.tournament)
        await size(server, case, encoding)
    return 1e3 * (server.seconds() - before) / case.times


async def print_costs(server: Server, cases: dict[str, Case]) -> None:
    print("| answer | bytes | gzip | times | ms after a change | gzip | times | ms without | gzip | times |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name, case in cases.items():
        sizes = [await size(server, case, encoding) for encoding in ENCODINGS]
        line = [f"{sizes[0]:,}", f"{sizes[1]:,}", f"{sizes[1] / sizes[0]:.2f}"]
        for changing in (True, False):
            rounds = [
                [await milliseconds(server, case, one, changing=changing) for one in ENCODINGS] for _ in range(ROUNDS)
            ]
            plain, gzip = (median(one[side] for one in rounds) for side in (0, 1))
            line += [f"{plain:.2f}", f"{gzip:.2f}", f"{gzip / plain:.2f}"]
        print(f"| {name} | {' | '.join(line)} |", flush=True)


async def print_rates(server: Server, directory: Path, paths: dict[str, str]) -> None:
    print("\n| kept short answer | answers a second | gzip | times |\n|---|---|---|---|", flush=True)
    for name, path in paths.items():
        found: dict[str, list[float]] = {encoding: [] for encoding in ENCODINGS}
        for _ in range(ROUNDS):
            for encoding in ENCODINGS:
                requests = directory / encoding
                bearer = f"Authorization: Bearer {server.token}\r\nAccept-Encoding: {encoding}\r\n"
                traffic.store([f"GET {path} HTTP/1.1\r\nHost: a\r\n{bearer}\r\n".encode()], requests)
                one = await load.measured(server.url, requests, seconds=WRK_SECONDS, connections=WRK_CONNECTIONS)
                found[encoding].append(one.rate)
        plain, gzip = (median(found[encoding]) for encoding in ENCODINGS)
        print(f"| {name} | {plain:,.0f} | {gzip:,.0f} | {gzip / plain:.2f} |", flush=True)


def print_steps(body: bytes) -> None:
    """How long the loop is held by one portion of a long answer, and what flushing costs in bytes."""
    portions = [body[start : start + PORTION_BYTES] for start in range(0, len(body), PORTION_BYTES)]
    longest, whole_seconds, size = [], [], 0
    for _ in range(ROUNDS):
        steps, slowest, began_at = compressed_portions(iter(portions)), 0.0, process_time()
        size, made = 0, b""
        while True:
            step_at = thread_time()
            made = next(steps, b"end")
            slowest = max(slowest, thread_time() - step_at)
            if made == b"end":
                break
            size += len(made)
        longest.append(slowest)
        whole_seconds.append(process_time() - began_at)
    at_once = len(compressed(body))
    print(
        f"\n{len(body):,} bytes in {len(portions)} portions: {1e3 * median(whole_seconds):.1f} ms, the longest step "
        f"{1e3 * median(longest):.2f} ms; {size:,} bytes, at once {at_once:,}."
    )


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        async with embedded_postgres(directory / "pg") as postgres:
            await migrate(postgres.dsn)
            async with world.seeding(postgres.dsn) as connection:
                (small,) = await world.open_tournaments(connection, "small", 1, Field(competitors=1_000))
                (large,) = await world.open_tournaments(connection, "large", 1, Field(competitors=10_000))
                (usual,) = await world.open_tournaments(connection, "usual", 1, Field(competitors=20))
                for tournament in (small, large, usual):
                    await world.everyone_scores(connection, tournament)
            async with started(postgres.dsn) as server:
                pages = tuple(f"{small.path}/competitors.json?per_page=200&page={n}" for n in range(1, 6))
                standings = tuple(f"{t.path}/rankings/{t.ranking_id}/standings.json" for t in (usual, small, large))
                await print_costs(
                    server,
                    {
                        "standings of 20": Case(usual, standings[:1], 300),
                        "a page of 200 competitors": Case(small, pages[:1], 200),
                        "1,000 competitors in 5 pages": Case(small, pages, 40),
                        "standings of 1,000": Case(small, standings[1:2], 50),
                        "standings of 10,000, streamed": Case(large, standings[2:], 10),
                    },
                )
                await print_rates(server, directory, {"standings of 20": standings[0], "a page of 200": pages[0]})
                print_steps(await server.body(standings[2], "identity"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        uvloop.run(serve(sys.argv[2]))
    else:
        uvloop.run(main())
