"""Cases 65 and 66: files that are cut off, and answers that nobody reads."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import aiohttp
from msgspec import Struct

from assurance.faults.clients import NotSent
from assurance.faults.history import Outcome, percentile
from assurance.faults.replaced import look_whole
from assurance.faults.stage import Stage, processor_seconds
from assurance.faults.table import Trial, case
from benchmarks.machine import rss_bytes
from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    UnityAdded,
)
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sort, TournamentId, UnityId
from engine.log import appending, heads, registry
from engine.log.appending import Block, Request
from tests.cut_imports import Cut, cut_import
from tests.desks import until

# ── 65 ──────────────────────────────────────────────────────────────────────────────────────────────────


@case(
    65,
    "Cut import",
    "SIGINT and kill -9 at random moments of `competitor import`, under load; the same command twice more",
    "everybody there once, in the file's order; an import cut off by Ctrl-C says so; I1-I12",
)
async def cut_imports(trial: Trial) -> None:
    rounds = trial.times(20, least=1)
    cuts: Counter[str] = Counter()
    doubles = missing = 0
    async with trial.stage(tournaments=1) as stage:
        for n in range(rounds):
            slug = f"import-{n}"
            async with stage.cluster.owner() as owner:
                opened = registry.open_tournament(
                    owner, registry.new_tournament_id(), name=slug, slug=slug, actor=OPERATOR
                )
                assert await opened
            folder = trial.folder / slug
            folder.mkdir()
            where = ("--database-url", stage.cluster.dsn)
            count = trial.times(5_000, least=300)
            async with stage.load(clients=2):
                became = await cut_import(
                    where, stage.cluster.dsn, slug, folder, trial.random, count=count, cuts=trial.random.randint(1, 4)
                )
            doubles, missing = doubles + became.doubles, missing + became.missing
            cuts.update(cut.how.name for cut in became.cuts if cut.code != 0)
            trial.look("I2", became.doubles == 0, f"{became.doubles} of {count} are there twice")
            trial.look("I1", became.missing == 0, f"{became.missing} of {count} are missing: {became.err}")
            trial.look("I7", became.in_order, "they are in another order than in the file")
            told = all(cut.told or _was_through(cut) for cut in became.cuts)
            trial.look("I10", told and became.code == 0, f"{became}")
            trial.look("I2", became.again.startswith("nothing to do: all "), f"once more: {became.again}")
        await look_whole(trial, stage.cluster)
        await trial.judge(stage)
    trial.show(bool(cuts), "no import was cut off")
    trial.tell(f"{rounds} files, cut off by {dict(cuts)}; {doubles} doubles, {missing} missing")


def _was_through(cut: Cut) -> bool:
    """Whether it had said that all are registered when it was cut off, and had only to end."""
    return "competitors registered" in cut.err


# ── 66 ──────────────────────────────────────────────────────────────────────────────────────────────────

UNREAD: Final = 200
"""Clients that ask for a large answer and do not read it."""
AT_ONCE: Final = 20
"""Clients that ask for the same at the same time, and read it."""
GROWN_BYTES_MAX: Final = 320 * 1024 * 1024
"""By which one service may grow: what it may have unsent, 128 MiB, what it may have rendered, 64 MiB, the tournament
itself, and what Python's allocator does not give back."""
STALL_SECONDS_MAX: Final = 0.04
"""Of processor time, between a question for health and its answer, with one reader: two rounds of the loop, of 20 ms
each. With many readers, each of which has a round in between, it is only reported."""
P99_SECONDS_MAX: Final = 2.0
GROWN_TIMES_MAX: Final = 4.0
"""Others may wait so much longer than before, where the machine has so much else to do that P99_SECONDS_MAX is not kept
anyway."""
COMPETITORS: Final = 10_000
RANKINGS: Final = 16
UNITIES: Final = 8
ADDS: Final = 200
EVENTS_AT_ONCE: Final = 1_000


class Large(Struct, frozen=True):
    """A tournament in which everything is as large as it may be within reason."""

    slug: str
    ranking_id: int
    unity_ids: tuple[int, ...]
    competitors: tuple[int, ...]
    competition_id: int

    def answers(self) -> dict[str, str]:
        """Paths by what they ask for."""
        below = f"/tournament/{self.slug}"
        ranking = f"{below}/rankings/{self.ranking_id}"
        return {
            "rankings": f"{below}/rankings.json",
            "competitors": f"{below}/competitors.json?per_page=200",
            "competitions": f"{below}/competitions.json?per_page=200",
            "standings": f"{ranking}/standings.json",
            "history": f"{ranking}/history.json?limit=1000",
            "explain": f"{ranking}/explain.json?competitor={self.competitors[0]}&unity={self.unity_ids[0]}",
            "void": f"{below}/competitions/{self.competition_id}/void.json",
        }


@case(
    66,
    "Large answers",
    f"{RANKINGS} rankings of {COMPETITORS:,} competitors: {UNREAD} clients do not read the largest answers, "
    f"{AT_ONCE} at once do",
    f"a service grows by at most {GROWN_BYTES_MAX >> 20} MiB; others are served; one reader stalls the loop for at "
    "most two rounds of 20 ms; I1-I10",
)
async def large_answers(trial: Trial) -> None:
    async with trial.stage(tournaments=2, workers=1) as stage:
        large = await _large(stage, trial.times(COMPETITORS, least=500))
        pid = stage.services[0].pid
        one = await _whole(stage, large.answers()["rankings"])
        base = peak = rss_bytes(pid)
        alone: list[tuple[float, str]] = []
        async with _prober(stage, pid, alone) as asking:
            for name, path in large.answers().items():
                asking.append(name)
                for _ in range(5):
                    await _whole(stage, path)
        stalls: list[tuple[float, str]] = []
        sizes: dict[str, int] = {}
        async with stage.load(clients=4), _prober(stage, pid, stalls) as asking:
            await asyncio.sleep(trial.seconds(10, least=3))
            since = len(stage.history.attempts)
            quiet = percentile([a for a in stage.history.attempts if a.service == 0], 0.99)
            for name, path in large.answers().items():
                asking.append(name)
                async with _unread(stage, [path] * UNREAD):
                    peak = max(peak, await _peak(pid, trial.seconds(10, least=2)))
                found = await asyncio.gather(*(_whole(stage, path) for _ in range(AT_ONCE)))
                sizes[name] = max(map(len, found))
                peak = max(peak, rss_bytes(pid))
                trial.look("I9", len(set(found)) == 1, f"{name}: those at once were answered differently")
            asking.append("all")
            async with _unread(stage, list(large.answers().values()) * (UNREAD // len(large.answers()))):
                peak = max(peak, await _peak(pid, trial.seconds(20, least=2)))
            await stage.resume()
        waited = percentile([a for a in stage.history.attempts[since:] if a.service == 0], 0.99)
        longest, name = max(alone)
        usual = sorted(stalls)[len(stalls) * 99 // 100][0]
        grown = peak - base
        trial.look("I10", grown <= GROWN_BYTES_MAX, f"it grew by {grown >> 20} MiB")
        bound = max(P99_SECONDS_MAX, GROWN_TIMES_MAX * quiet)
        trial.look("I12", waited <= bound, f"p99 of other clients was {waited:.1f} s, before {quiet:.1f} s")
        if longest > STALL_SECONDS_MAX:
            trial.shortcoming += f"a stall of {1000 * longest:.0f} ms of processor, by {name}; "
        trial.look("I9", await _whole(stage, large.answers()["rankings"]) == one, "rankings are not what they were")
        trial.outcomes[Outcome.OK] += (AT_ONCE + 1) * len(sizes)
        await trial.judge(stage)
        trial.tell(
            f"{large_of(sizes)}; from {base >> 20} to {peak >> 20} MiB; p99 of other clients {1000 * waited:.0f} ms, "
            f"before {1000 * quiet:.0f} ms; processor between a question for health and its answer: at most "
            f"{1000 * longest:.0f} ms alongside one reader ({name}), alongside all of them p99 {1000 * usual:.0f} ms"
        )


def large_of(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size / 2**20:.1f} MiB" for name, size in sizes.items())


async def _large(stage: Stage, count: int) -> Large:
    """Opened past the services, which load it when they are asked."""
    slug = "large"
    async with stage.cluster.owner() as owner:
        ids = iter(await registry.next_ids(owner, count + 1 + RANKINGS * (UNITIES + 1)))
        tournament_id = registry.new_tournament_id()
        assert await registry.open_tournament(owner, tournament_id, name="Large", slug=slug, actor=OPERATOR)
        competition_id = CompetitionId(next(ids))
        competitors = tuple(CompetitorId(next(ids)) for _ in range(count))
        await _record(
            owner,
            tournament_id,
            [CompetitorRegistered(competitor_id=who, name=f"Competitor number {who}") for who in competitors],
        )
        of: list[tuple[RankingId, list[UnityId]]] = []
        for n in range(RANKINGS):
            ranking_id, first = RankingId(next(ids)), UnityId(next(ids))
            made = RankingCreated(
                ranking_id=ranking_id,
                name=f"Ranking {n}",
                participants=competitors,
                main_unity_id=first,
                main_unity_name="points",
            )
            unities = [UnityId(next(ids)) for _ in range(UNITIES - 1 if n == 0 else 1)]
            added = [
                UnityAdded(ranking_id=ranking_id, unity_id=unity, name=f"unity {unity}", sort=Sort.DESC)
                for unity in unities
            ]
            await _record(owner, tournament_id, [made, *added])
            of.append((ranking_id, [first, *unities]))
        match = CompetitionAdded(competition_id=competition_id, group_id=1, participants=competitors[:2])
        ranking_id, unity_ids = of[0]
        points = [
            PointsAdded(
                ranking_id=ranking_id,
                deltas=(Delta(competitors[0], unity_ids[0], 1 if n % 2 else -1),),
                competition_id=competition_id if n < ADDS // 2 else None,
            )
            for n in range(ADDS)
        ]
        await _record(owner, tournament_id, [match, *points])
    return Large(slug, ranking_id, tuple(unity_ids), competitors, competition_id)


async def _record(owner: object, tournament_id: TournamentId, events: list[Event]) -> None:
    """Each event is a request of its own, as if it had been asked for."""
    for start in range(0, len(events), EVENTS_AT_ONCE):
        head = (await heads.current(owner, [tournament_id]))[tournament_id]  # type: ignore[arg-type]
        requests = tuple(Request(events=(event,), actor=OPERATOR) for event in events[start : start + EVENTS_AT_ONCE])
        block = Block(
            tournament_id=tournament_id, judged_at=head.sequence, judged_digest=head.digest, requests=requests
        )
        (appended,) = await appending.append(owner, [block], wait=True)  # type: ignore[arg-type]
        assert isinstance(appended, appending.Appended)


async def _whole(stage: Stage, path: str) -> bytes:
    """The answer of the first service, read to its end; asked for again where it is told to come later."""
    url = f"http://127.0.0.1:{stage.services[0].port}{path}"
    headers = {"Authorization": f"Bearer {stage.token}"}
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(timeout=timeout, headers=headers) as session:
        for _ in range(600):
            async with session.get(url) as answer:
                body = await answer.read()
            if answer.status == 200:
                return body
            assert answer.status == 503, (path, answer.status, body[:300])
            await asyncio.sleep(0.1)
    raise AssertionError(f"{path} is never answered")


@asynccontextmanager
async def _unread(stage: Stage, paths: Iterable[str]) -> AsyncIterator[None]:
    """Clients that have asked the first service for these, and do not read."""
    sockets: list[socket.socket] = []
    loop = asyncio.get_running_loop()
    try:
        for path in paths:
            plug = socket.socket()
            plug.setblocking(False)
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            sockets.append(plug)
            await loop.sock_connect(plug, ("127.0.0.1", stage.services[0].port))
            lines = (f"GET {path} HTTP/1.1", "Host: tallybook", f"Authorization: Bearer {stage.token}", "", "")
            await loop.sock_sendall(plug, "\r\n".join(lines).encode())
        yield
    finally:
        for plug in sockets:
            plug.close()


async def _peak(pid: int, seconds: float) -> int:
    """The most memory that the process holds within that time."""
    deadline = time.monotonic() + seconds
    peak = 0
    while time.monotonic() < deadline:
        peak = max(peak, rss_bytes(pid))
        await asyncio.sleep(0.02)
    return peak


@asynccontextmanager
async def _prober(stage: Stage, pid: int, stalls: list[tuple[float, str]]) -> AsyncIterator[list[str]]:
    """Asks for health again and again, and notes how much processor the service took between a question and its answer:
    whatever it did meanwhile, it was not listening. Yields the list whose last is the name of what is being done."""
    doing = ["before"]

    async def probe() -> None:
        caller = stage.caller(0)
        caller._port = lambda: stage.services[0].port
        while True:
            before = processor_seconds(pid)
            try:
                await caller.ask("GET", "/healthz")
            except (NotSent, OSError, EOFError, TimeoutError):
                continue
            stalls.append((processor_seconds(pid) - before, doing[-1]))
            await asyncio.sleep(0.005)

    probing = asyncio.create_task(probe())
    await until(partial(bool, stalls))
    try:
        yield doing
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
