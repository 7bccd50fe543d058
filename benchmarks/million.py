"""A leaderboard of a million, from the first competitor to the last proof: imported, enrolled, scored a million times.

    python -m benchmarks.million [--competitors N] [--scores N] [--clients N] [--windows N]

Competitors are imported from files by the command line, and enrolled in one ranking by the service. Clients then add
points, each with an idempotency key, over separate connections. Halfway through, the API process is killed; clients
repeat the requests that had no answer. At the end the log holds each score once; the top ten and some windows around
randomly drawn competitors are compared with the clients' own records; and `tallybook verify` finds nothing.

Prints what each step took, and the most memory that each process had. PostgreSQL's processes count the shared buffers
that they have touched. Exit codes: 0 all of it holds; 1 something does not, and is named.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import msgspec
import uvloop
from msgspec import Struct

from benchmarks import leaderboard, machine, service, traffic
from benchmarks.asking import Asker, enrol
from benchmarks.cluster import open_cluster
from benchmarks.ledger import WrongAnswer
from benchmarks.past import WORK_DIRECTORY, ran
from benchmarks.processes import ProgramFailed
from benchmarks.service import Product, Service, installed, owner, serving
from benchmarks.sizes.measuring import wait_for_tables
from benchmarks.sizes.worlds import ENROLLED_AT_ONCE, chunks
from benchmarks.world import Tournament
from engine.domain.terms import CompetitorId, RankingId, TournamentId, UnityId

COMPETITORS: Final = 1_000_000
SCORES: Final = 1_000_000
CLIENTS: Final = 64
WINDOWS: Final = 100
FILE_LINES: Final = 100_000
"""Competitors in one file, the most that an import takes."""
POINTS_MAX: Final = 1_000
RETRY_SECONDS: Final = 0.05
READY_SECONDS_MAX: Final = 300.0
NAME: Final = "Leaderboard"
SEED: Final = 21

_REGISTERED: Final = """
    SELECT (body::json ->> 'competitor_id')::bigint AS competitor_id
    FROM event
    WHERE tournament_id = $1 AND kind = 'CompetitorRegistered'
    ORDER BY sequence
"""
_ADDS: Final = "SELECT count(*) FROM event WHERE tournament_id = $1 AND kind = 'PointsAdded'"


class Share(Struct, frozen=True, kw_only=True):
    """The size of the run. `windows`: around how many competitors windows are compared."""

    competitors: int = COMPETITORS
    scores: int = SCORES
    clients: int = CLIENTS
    windows: int = WINDOWS


class Shown(Struct, frozen=True, kw_only=True):
    """The observations: seconds by step, peak MiB by process, and how many requests were sent a second time."""

    seconds: dict[str, float]
    memory_mib: dict[str, float]
    repeated: int


async def shown(share: Share) -> Shown:
    """Runs all of it in a new database. Raises WrongAnswer, and ProgramFailed with the product's message."""
    with tempfile.TemporaryDirectory(prefix="tallybook-million-", dir=os.environ.get("TMPDIR", WORK_DIRECTORY)) as name:
        directory = Path(name)
        async with open_cluster(directory / "postgres") as cluster:
            product, dsn = installed(), await cluster.database("million")
            product.run("migrate", dsn=dsn)
            return await _Showing(share, product, dsn, directory).all_of_it()


class _Showing:
    def __init__(self, share: Share, product: Product, dsn: str, directory: Path) -> None:
        self._share = share
        self._product = product
        self._dsn = dsn
        self._directory = directory
        self._seconds: dict[str, float] = {}
        self._memory_mib: dict[str, float] = {}

    async def all_of_it(self) -> Shown:
        slug = self._product.run("tournament", "create", NAME, dsn=self._dsn).strip()
        async with serving(self._product, self._dsn, log=self._directory / "service") as running:
            with self._timed("import"):
                await self._import(slug)
            async with owner(self._dsn) as connection:
                with self._timed("enrolment"):
                    tournament = await self._enrol(running, connection, slug)
                books = _Books(tournament, self._share.scores)
                with self._timed("scores, with a kill -9 in between"):
                    await self._score(running, tournament, books)
                with self._timed("tables caught up"):
                    await wait_for_tables(self._dsn)
                await _check_log(connection, tournament, books)
                board = leaderboard.Board(tournament.competitor_ids, books.totals)
                with self._timed("windows compared"):
                    await leaderboard.check(running, tournament, board, around=self._share.windows)
                await self._weigh(running, connection, "at the end")
        with self._timed("verify"):
            await self._ran("verify", slug)
        return Shown(seconds=self._seconds, memory_mib=self._memory_mib, repeated=books.repeated)

    async def _import(self, slug: str) -> None:
        for number, some in enumerate(chunks(range(self._share.competitors), FILE_LINES)):
            file = self._directory / f"{number}.csv"
            file.write_text("name\n" + "".join(f"Member {n}\n" for n in some))
            await self._ran("competitor", "import", slug, str(file))

    async def _enrol(self, running: Service, connection: asyncpg.Connection, slug: str) -> Tournament:
        tournament_id = await connection.fetchval("SELECT tournament_id FROM tournament WHERE slug = $1", slug)
        members = [row["competitor_id"] for row in await connection.fetch(_REGISTERED, tournament_id)]
        if len(members) != self._share.competitors:
            raise WrongAnswer(f"{self._share.competitors} were imported, but {len(members)} are registered")
        form = {"name": "All", "main_unity_name": "points", "participants": ",".join(map(str, members[:1]))}
        async with Asker(running.url, running.token) as asker:
            made = json.loads(await asker.post(f"/tournament/{slug}/rankings.json", form, minimal=True))
        tournament = Tournament(
            tournament_id=TournamentId(tournament_id),
            slug=slug,
            ranking_id=RankingId(made["id"]),
            unity_ids=(UnityId(made["unity_id"]),),
            competitor_ids=tuple(map(CompetitorId, members)),
            competition_ids=(),
        )
        await enrol(running, tournament, chunks(members[1:], ENROLLED_AT_ONCE))
        return tournament

    async def _score(self, running: Service, tournament: Tournament, books: "_Books") -> None:
        """Sends all scores, and kills the API process when half of them are answered."""
        half = asyncio.Event()
        try:
            await self._score_and_kill(running, tournament, books, half)
        except* (ProgramFailed, WrongAnswer) as failures:
            raise failures.exceptions[0] from None

    async def _score_and_kill(
        self, running: Service, tournament: Tournament, books: "_Books", half: asyncio.Event
    ) -> None:
        async with asyncio.TaskGroup() as clients:
            for _ in range(self._share.clients):
                clients.create_task(_Client(running, tournament, books, half).send_all())
            await half.wait()
            async with owner(self._dsn) as connection:
                await self._weigh(running, connection, "before the kill")
            api = service.processes(running.supervisor)["api"]
            began_at = time.perf_counter()
            os.kill(api, signal.SIGKILL)
            answered = books.answered
            async with asyncio.timeout(READY_SECONDS_MAX):
                while books.answered <= answered + self._share.clients:  # noqa: ASYNC110 - another process comes back
                    await asyncio.sleep(RETRY_SECONDS)
            self._seconds["scores answered again after kill -9"] = time.perf_counter() - began_at

    async def _weigh(self, running: Service, connection: asyncpg.Connection, when: str) -> None:
        """Notes the most memory that each process has had."""
        for kind, pid in {"supervisor": running.supervisor, **service.processes(running.supervisor)}.items():
            self._memory_mib[f"{kind}, {when}"] = machine.peak_rss_bytes(pid) / 2**20
        for side, pids in (await service.backends(connection)).items():
            peaks = [machine.peak_rss_bytes(pid) for pid in pids]
            self._memory_mib[f"PostgreSQL for {side}, largest of {len(pids)}, {when}"] = max(peaks) / 2**20

    async def _ran(self, *arguments: str) -> None:
        told = await asyncio.to_thread(ran, self._product, self._dsn, *arguments)
        name = f"tallybook {' '.join(arguments[:2] if arguments[0] == 'competitor' else arguments[:1])}"
        self._memory_mib[name] = max(self._memory_mib.get(name, 0.0), told.memory_megabytes)

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began_at = time.perf_counter()
        yield
        self._seconds[step] = time.perf_counter() - began_at


async def _check_log(connection: asyncpg.Connection, tournament: Tournament, books: "_Books") -> None:
    """Raises WrongAnswer unless the log holds each score once."""
    recorded = await connection.fetchval(_ADDS, tournament.tournament_id)
    if recorded != books.scores or books.answered != books.scores:
        raise WrongAnswer(f"{books.scores} scores: {books.answered} were answered, and {recorded} are in the log")


# ── Clients ─────────────────────────────────────────────────────────────────────────────────────────────


class _Books:
    """The clients' records: how many points each competitor has, according to the answers. Clients take scores from
    here."""

    def __init__(self, tournament: Tournament, scores: int) -> None:
        self.scores = scores
        self.totals: Counter[int] = Counter()
        self.answered = 0
        self.repeated = 0
        draw = Random(SEED)
        members = tournament.competitor_ids
        self.drawn = ((n, draw.choice(members), draw.randint(1, POINTS_MAX)) for n in range(scores))

    def enter(self, member: int, points: int) -> None:
        self.answered += 1
        self.totals[member] += points


class _Client:
    """One connection, which sends one score after another. Each is repeated, with its key, until it is answered."""

    def __init__(self, running: Service, tournament: Tournament, books: _Books, half: asyncio.Event) -> None:
        address = urlsplit(running.url)
        self._address = address.hostname, address.port
        self._token = running.token
        self._tournament = tournament
        self._books = books
        self._half = half
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send_all(self) -> None:
        try:
            for n, member, points in self._books.drawn:
                request = traffic.keyed_add(self._tournament, self._token, member, points, key=f"score-{n:012d}")
                while not await self._is_answered(request):
                    self._books.repeated += 1
                    await asyncio.sleep(RETRY_SECONDS)
                self._books.enter(member, points)
                if self._books.answered >= self._books.scores // 2:
                    self._half.set()
        finally:
            self._close()

    async def _is_answered(self, request: bytes) -> bool:
        """Whether the answer was 200. False if the service is away or says so. Raises ProgramFailed if it refuses."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(*self._address)
            reader, writer = self._streams
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            body = await reader.readexactly(_length(head))
        except (ConnectionError, asyncio.IncompleteReadError):
            self._close()
            return False
        if status != 200 and status < 500:
            raise ProgramFailed(f"a score was answered {status}: {body!r}")
        return status == 200

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def _length(head: bytes) -> int:
    """The length of the body, from the head of its answer."""
    lines = head.lower().split(b"\r\n")
    return next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))


# ── The program ─────────────────────────────────────────────────────────────────────────────────────────


def main() -> int:
    share = _share(sys.argv[1:])
    try:
        seen = uvloop.run(shown(share))
    except (WrongAnswer, ProgramFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"{share.competitors:,} competitors, {share.scores:,} scores by {share.clients} clients: all of it holds.")
    print(f"The log holds each score once, though {seen.repeated:,} were sent again, and `verify` is clean.")
    print(f"The top ten, and the lines around {share.windows} competitors, are those that the clients had counted.")
    for step, seconds in seen.seconds.items():
        print(f"{seconds:12,.1f} s    {step}")
    for process, mib in seen.memory_mib.items():
        print(f"{mib:12,.0f} MiB  {process}")
    return 0


def _share(arguments: list[str]) -> Share:
    parser = argparse.ArgumentParser(prog="million", description="A leaderboard of a million, and whether it holds.")
    for name in ("competitors", "scores", "clients", "windows"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Share(), name))
    return msgspec.convert(vars(parser.parse_args(arguments)), Share)


if __name__ == "__main__":
    sys.exit(main())
