"""Question 20: a leaderboard of a million: what do changes and windows cost, also in a sorted set or an indexed table?

Redis (`ZINCRBY`, `ZREVRANK`, `ZREVRANGE`; with AOF always, and with AOF everysec), Valkey with AOF always, and
PostgreSQL (an index on the total, `count(*)` for the rank), each behind aiohttp, and the product with minimal answers
and windows. All start with the same totals and are sent the same bodies over 64 connections: points for one member,
five lines on each side of a member, the top ten. The peers keep no history, have no equal positions and answer with ids
alone; the product answers with the competitors of the window, and its changes are judged, versioned and kept in a log
permanently.

After the last round the product's windows are compared with a count of the log, and the changes that each contestant
has recorded with those that it acknowledged. Then the process that holds the board is killed (the API process, Redis, a
PostgreSQL backend, which takes all others with it). The time counts until a window is answered again.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg
import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout
from msgspec import Struct

from benchmarks import leaderboard, ledger, machine, traffic
from benchmarks.asking import Asker, enrol
from benchmarks.ledger import WrongAnswer
from benchmarks.load import Load
from benchmarks.peers.serving import Recorded, Settings
from benchmarks.processes import ProgramFailed
from benchmarks.rounds import interleaved
from benchmarks.service import Service, owner
from benchmarks.setting import REDIS, VALKEY, Peer, Setting, Store
from benchmarks.sizes import worlds
from benchmarks.sizes.measuring import wait_for_tables
from benchmarks.sizes.worlds import Size, World
from benchmarks.table import Findings
from benchmarks.traffic import Request
from benchmarks.world import Tournament, seeding, settle
from engine.domain.terms import Counts

NUMBERS: Final = (20,)
NEEDS: Final = ("wrk",)
MEMBERS: Final = 1_000_000
QUICK_MEMBERS: Final = 10_000
REQUESTS: Final = 50_000
SECONDS: Final = 8
QUICK_SECONDS: Final = 1
CHECKED: Final = 20
"""Windows around members that are compared with the log."""
READY_SECONDS_MAX: Final = 120.0
POLL_SECONDS: Final = 0.002
SEED: Final = 20

OURS: Final = "ours"
ALWAYS: Final = "redis, AOF always"
EVERYSEC: Final = "redis, AOF everysec"
TABLE: Final = "an indexed table"
WRITES: Final = "points for a member"
AROUND: Final = "around a member"
TOP: Final = "top ten"
Written = Callable[..., list[Request]]


class Rules(Struct, frozen=True, kw_only=True):
    """What a board counts, and its peers. `kinds`: kinds of requests, by row. `redis`: the module of the peer that runs
    on each of `stores`, by the names of contestants. `writes` makes the requests, and `counted` the board from the
    log."""

    name: str
    number: int
    counts: Counts
    kinds: dict[str, str]
    redis: str
    stores: dict[str, Store]
    has_table: bool
    writes: Written
    counted: Callable[[asyncpg.Connection, Tournament], Awaitable[leaderboard.Board]]


VALKEY_ALWAYS: Final = "valkey, AOF always"
SUMS: Final = Rules(
    name="leaderboard",
    number=20,
    counts=Counts.SUM,
    kinds={"20a": WRITES, "20b": AROUND, "20c": TOP},
    redis="leaderboard_redis",
    stores={ALWAYS: REDIS, EVERYSEC: Store("redis", "everysec"), VALKEY_ALWAYS: VALKEY},
    has_table=True,
    writes=traffic.leaderboard_adds,
    counted=leaderboard.counted,
)


class Contestant(Struct, frozen=True, kw_only=True):
    """A contestant. `serving` and `store`: processes whose memory counts. `kill` ends the process that holds the board
    and returns when it is gone; `revive` starts it again if nothing else does. `recorded`: how many changes it has
    counted."""

    url: str
    serving: int
    store: Callable[[], Awaitable[list[int]]]
    kill: Callable[[], Coroutine[Any, Any, None]]
    revive: Callable[[], Coroutine[Any, Any, None]]
    recorded: Callable[[], Awaitable[int]]


async def measure(setting: Setting) -> Findings:
    return await raced(setting, SUMS)


async def raced(setting: Setting, rules: Rules) -> Findings:
    members = setting.scaled(MEMBERS, quick=QUICK_MEMBERS)
    size = Size(competitors=0, participants=members, rankings=0, competitions=1, events=0, tournaments=1, keys=0)
    dsn = await setting.database(rules.name)
    async with seeding(dsn) as connection:
        world = await worlds.make(connection, size, counts=rules.counts)
    await settle(dsn)
    async with setting.service(dsn, rules.name) as service, AsyncExitStack() as stack:
        if refusal := await _enrolled(service, world):
            return Findings(missing=dict.fromkeys(rules.kinds, refusal))
        race = _Race(setting, service, world, rules)
        await race.enter(stack)
        await race.warm_up()
        loads = await interleaved(setting.rounds, dict(race.runs()))
        findings = _findings(loads, rules)
        await race.check(loads)
        async with owner(service.dsn) as connection:
            board = await rules.counted(connection, world.tournament)
        await leaderboard.check(service, world.tournament, board, around=CHECKED)
        await race.weigh(findings)
        await race.kill_all(findings)
    if ALWAYS not in race.contestants:
        findings.missing |= dict.fromkeys(rules.kinds, REDIS.missing or "")
    if setting.quick:
        findings.notes.append(f"{rules.number}: scaled down, {members:,} members instead of {MEMBERS:,}")
    return findings


async def _enrolled(service: Service, world: World) -> str:
    """Enrols the remaining members. Returns why the service refused, or nothing."""
    await wait_for_tables(service.dsn)
    try:
        await enrol(service, world.tournament, world.not_yet_enrolled)
    except ProgramFailed as refusal:
        return str(refusal)
    async with seeding(service.dsn) as connection:
        await worlds.score_all(connection, world)
    await wait_for_tables(service.dsn)
    return ""


class _Race:
    """Who runs, and on what."""

    def __init__(self, setting: Setting, service: Service, world: World, rules: Rules) -> None:
        self.contestants: dict[str, Contestant] = {}
        self._rules = rules
        self._setting = setting
        self._service = service
        self._world = world
        self._requests = self._written()
        self._before: dict[str, int] = {}

    async def enter(self, stack: AsyncExitStack) -> None:
        """Starts the peers, which run while `stack` is open."""
        async with owner(self._service.dsn) as connection:
            board = await self._rules.counted(connection, self._world.tournament)
        self._members = [(line.competitor_id, line.total) for line in board.lines]
        self.contestants[OURS] = Contestant(
            url=self._service.url,
            serving=self._service.api,
            store=partial(_backends, self._service.dsn),
            kill=partial(_kill, self._service.api),
            revive=_nothing,
            recorded=self._events,
        )
        for name, one in self._rules.stores.items():
            if one.missing is None:
                await self._enter_store(stack, name, one)
        if self._rules.has_table:
            await self._enter_table(stack)
        for name, contestant in self.contestants.items():
            self._before[name] = await contestant.recorded()

    async def _enter_table(self, stack: AsyncExitStack) -> None:
        dsn = await self._setting.cluster.database("leaderboard_table")
        peer = await self._peer(stack, "leaderboard_table", dsn)
        self.contestants[TABLE] = Contestant(
            url=peer.url,
            serving=peer.pid,
            store=partial(_backends, dsn),
            kill=partial(_kill_backend, dsn),
            revive=_nothing,
            recorded=partial(self._counted, peer.url),
        )

    async def _enter_store(self, stack: AsyncExitStack, name: str, one: Store) -> None:
        kept = self._rules.name
        running = await stack.enter_async_context(self._setting.store(one, kept, is_killed=True))
        peer = await self._peer(stack, self._rules.redis, running.socket)

        async def revive() -> None:
            await stack.enter_async_context(self._setting.store(one, kept))

        async def store() -> list[int]:
            return [running.pid]

        self.contestants[name] = Contestant(
            url=peer.url,
            serving=peer.pid,
            store=store,
            kill=partial(_kill, running.pid),
            revive=revive,
            recorded=partial(self._counted, peer.url),
        )

    def runs(self) -> Iterator[tuple[str, Callable[[], Awaitable[Load]]]]:
        seconds = self._setting.scaled(SECONDS, quick=QUICK_SECONDS)
        for kind, requests in self._requests.items():
            for name, contestant in self.contestants.items():
                yield f"{kind}, {name}", partial(self._loaded, contestant.url, requests, seconds)

    async def _loaded(self, url: str, requests: Path, seconds: int) -> Load:
        """A run, and then a wait for the queries that its clients have abandoned: those of the table take seconds."""
        load = await self._setting.load(url, requests, seconds=seconds)
        async with owner(self._service.dsn) as connection:
            while await connection.fetchval(_AT_WORK):  # noqa: ASYNC110 - it is other processes that work
                await asyncio.sleep(POLL_SECONDS)
        return load

    async def warm_up(self) -> None:
        """Asks each contestant for a window. The product then puts its lines in order, as the peers did when they were
        filled. That time is part of the time until it answers again after a kill."""
        for contestant in self.contestants.values():
            async with Asker(contestant.url, self._service.token) as asker:
                await asker.get(self._window)

    async def check(self, loads: dict[str, list[Load]]) -> None:
        """Compares the changes that each has recorded with those that it acknowledged. Raises WrongAnswer."""
        for name, contestant in self.contestants.items():
            writes = loads[f"{WRITES}, {name}"]
            recorded = await contestant.recorded() - self._before[name]
            acknowledged, sent = sum(load.answers for load in writes), sum(load.sent for load in writes)
            if not acknowledged <= recorded <= sent:
                raise WrongAnswer(f"{name}: {sent} sent, {acknowledged} acknowledged, but {recorded} recorded")

    async def weigh(self, findings: Findings) -> None:
        for name, contestant in self.contestants.items():
            serving = machine.rss_bytes(contestant.serving)
            store = sum(map(machine.pss_bytes, await contestant.store()))
            count = len(self._members)
            of = f"{self._rules.name}, memory per member"
            findings.figure(f"{of}, serving process: {name}", "bytes", [serving / count])
            findings.figure(f"{of}, store: {name}", "bytes", [store / count])
            findings.figure(f"{of}: {name}", "bytes", [(serving + store) / count])

    async def kill_all(self, findings: Findings) -> None:
        """How long each takes to answer again. The table comes last, because killing it restarts PostgreSQL for all."""
        for name, contestant in self.contestants.items():
            seconds = await _ready_again(contestant, self._window, self._service.token)
            findings.figure(f"{self._rules.name}, ready after kill -9: {name}", "s", [seconds])

    @property
    def _window(self) -> str:
        """The path of the lines around a member."""
        member, _ = self._members[len(self._members) // 2]
        tournament = self._world.tournament
        return f"{tournament.path}/rankings/{tournament.ranking_id}/standings.json?{leaderboard.around_query(member)}"

    async def _peer(self, stack: AsyncExitStack, module: str, database: str) -> Peer:
        settings = Settings(token=self._service.token, database=database, members=self._members)
        return await stack.enter_async_context(self._setting.peer(module, settings))

    async def _events(self) -> int:
        return await ledger.adds_recorded(self._service, [self._world.tournament])

    async def _counted(self, url: str) -> int:
        async with Asker(url, self._service.token) as asker:
            return msgspec.json.decode(await asker.get("/recorded"), type=Recorded).recorded

    def _written(self) -> dict[str, Path]:
        tournament, token = self._world.tournament, self._service.token
        members = Random(SEED).choices(tournament.competitor_ids, k=REQUESTS)
        requests = {
            WRITES: self._rules.writes(tournament, token, count=REQUESTS, seed=SEED),
            AROUND: traffic.windows(tournament, token, map(leaderboard.around_query, members)),
            TOP: traffic.windows(tournament, token, [leaderboard.top_query()]),
        }
        return {kind: self._setting.requests(f"leaderboard-{kind[:3]}", some) for kind, some in requests.items()}


def _findings(loads: dict[str, list[Load]], rules: Rules) -> Findings:
    findings = Findings()
    for name, runs in loads.items():
        findings.figure(f"{rules.name}, {name}", "a second", [load.rate for load in runs])
    for name, runs in loads.items():
        findings.figure(f"{rules.name}, {name}: p99", "ms", [load.p99_us / 1e3 for load in runs])
    for key, kind in rules.kinds.items():
        if f"{kind}, {ALWAYS}" in loads:
            ours, redis = loads[f"{kind}, {OURS}"], loads[f"{kind}, {ALWAYS}"]
            findings.ratio(key, [load.rate for load in ours], [load.rate for load in redis])
    return findings


async def _ready_again(contestant: Contestant, path: str, token: str) -> float:
    """Seconds from the end of the process that holds the board until a window is answered. Raises TimeoutError."""
    began_at = time.perf_counter()
    await contestant.kill()
    reviving = asyncio.create_task(contestant.revive())
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        asyncio.timeout(READY_SECONDS_MAX),
        ClientSession(contestant.url, headers=headers, timeout=ClientTimeout(total=READY_SECONDS_MAX)) as session,
    ):
        while not await _answers(session, path):  # noqa: ASYNC110 - it is another process that comes back
            await asyncio.sleep(POLL_SECONDS)
        seconds = time.perf_counter() - began_at
        await reviving
    return seconds


async def _answers(session: ClientSession, path: str) -> bool:
    try:
        async with session.get(path) as response:
            await response.read()
            return response.status == 200
    except (ClientError, ConnectionError):
        return False


async def _nothing() -> None:
    """For processes that a supervisor starts again."""


async def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    while machine.processor_seconds(pid):  # noqa: ASYNC110 - until it is gone
        await asyncio.sleep(POLL_SECONDS)


async def _kill_backend(dsn: str) -> None:
    """Kills one PostgreSQL process, and waits until the server has ended all others, as it does after such a kill."""
    connection = await asyncpg.connect(dsn)
    (pid, *_) = [row["pid"] for row in await connection.fetch(_BACKENDS)]
    os.kill(pid, signal.SIGKILL)
    while not connection.is_closed():  # noqa: ASYNC110 - it is another process that closes it
        await asyncio.sleep(POLL_SECONDS)


async def _backends(dsn: str) -> list[int]:
    """The processes of PostgreSQL that work for this database, except the one that answers; then those that work for
    all."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch(_BACKENDS)
    finally:
        await connection.close()
    return [row["pid"] for row in rows]


_AT_WORK: Final = """
    SELECT count(*)
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND state = 'active' AND backend_type = 'client backend'
"""
_BACKENDS: Final = """
    SELECT pid
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND (datname = current_database() OR datname IS NULL)
    ORDER BY datname IS NULL, pid
"""
