"""Question 23: what is served when far more clients ask than can be served?

One API process, one tournament of 20 competitors, one delta a request, by wrk over 64 connections and over thousands.
Each of these asks again at once, whatever the answer. A rate is of adds in the log, counted once the connections stand.

23a to 23c: 2,500, 5,500 and 11,000 connections, against 64 in the same round. Then the same numbers backwards: the grid
shows whether a rate depends on earlier load.

23d: 5,500 connections, after all sessions of the database had been stopped for 1.5 s.

23e: 5,500 connections next to a client of another tournament, which asks every 20 ms over one connection; 23f is the
p99 of its answers, and 23g that of a client that connects each time, from when the crowd begins to connect.

23h: how much more memory the process takes with 11,000 connections than with 64.

A full run has five rounds at least. The figures also have the ceiling, crud and Redis with 5,500 connections, by their
answers.
"""

import asyncio
import os
import re
import resource
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any, Final

from msgspec.structs import replace

from benchmarks import asking, ledger, load, machine
from benchmarks.peers.serving import Settings
from benchmarks.service import Service, owner
from benchmarks.setting import REDIS, Setting
from benchmarks.table import Findings, Grid, percentile
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Tournament, open_tournaments, seeding

NUMBERS: Final = (23,)
NEEDS: Final = ("wrk",)
ROUNDS: Final = 5
FEW: Final = 64
CROWDS: Final = (2_500, 5_500, 11_000)
QUICK_CROWDS: Final = (250, 500, 1_000)
STANDING_SECONDS: Final = 8
QUICK_STANDING_SECONDS: Final = 2
"""Until all connections stand."""
SECONDS: Final = 8
QUICK_SECONDS: Final = 2
HALT_SECONDS: Final = 1.5
CALM_PAUSE_SECONDS: Final = 0.02
ANSWER_SECONDS_MAX: Final = 30.0
FILES_KEPT: Final = 200
SEED: Final = 23

_HEAD: Final = "SELECT sequence FROM head WHERE tournament_id = $1"


async def measure(setting: Setting) -> Findings:
    if not setting.quick:
        setting = replace(setting, rounds=max(setting.rounds, ROUNDS))
    dsn = await setting.database("overload")
    async with seeding(dsn) as connection:
        hot, calm = await open_tournaments(connection, "overload", 2, Field())
    findings = Findings()
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # wrk inherits it
    try:
        async with setting.service(dsn, "overload") as service:
            crowd = _Crowd(setting, service, hot, calm)
            sizes = QUICK_CROWDS if setting.quick else CROWDS
            await _there_and_back(findings, crowd, tuple(size for size in sizes if size + FILES_KEPT <= most))
            await _halted(findings, crowd, sizes[1])
            await _calm(findings, crowd, sizes[1])
            await _peers(findings, crowd, sizes[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    return findings


class _Crowd:
    """The clients that ask for more than can be served."""

    def __init__(self, setting: Setting, service: Service, hot: Tournament, calm: Tournament) -> None:
        self.setting = setting
        self.service = service
        self.hot = hot
        self.requests = setting.requests("overload", adds([hot] * REQUESTS, service.token, seed=SEED))
        self.calm_request = adds([calm], service.token, seed=SEED)[0]
        self.few: list[float] = []  # the rates with FEW connections, one for each round
        self.standing = setting.scaled(STANDING_SECONDS, quick=QUICK_STANDING_SECONDS)
        self.seconds = setting.scaled(SECONDS, quick=QUICK_SECONDS)

    async def rate(self, meanwhile: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)) -> float:
        """The adds that come into the log in a second, from when `meanwhile` is done."""
        async with owner(self.service.dsn) as connection:
            await asyncio.sleep(self.standing)
            await meanwhile()
            began_at, before = time.perf_counter(), await connection.fetchval(_HEAD, self.hot.tournament_id)
            await asyncio.sleep(self.seconds)
            now = await connection.fetchval(_HEAD, self.hot.tournament_id)
            return float(now - before) / (time.perf_counter() - began_at)

    @asynccontextmanager
    async def asking(self, connections: int, *, halted: bool = False) -> AsyncIterator[list[load.Load]]:
        """That many connections ask within the context, which must take `rate` once. The list has the figures of wrk
        afterwards. Raises WrongAnswer if an acknowledged add is not in the log."""
        await self.setting.cluster.checkpoint()
        seconds = round(self.standing + self.seconds + 1 + 2 * halted)
        before = await ledger.opened(self.service, [self.hot])
        loading = asyncio.create_task(
            load.loaded(self.service.url, self.requests, seconds=seconds, connections=connections)
        )
        seen: list[load.Load] = []
        try:
            yield seen
            seen.append(await loading)
        finally:
            loading.cancel()
            with suppress(asyncio.CancelledError):
                await loading
        acknowledged = seen[0].adds_acknowledged - seen[0].refused
        await before.close(acknowledged=acknowledged, sent=seen[0].sent)


async def _there_and_back(findings: Findings, crowd: _Crowd, sizes: tuple[int, ...]) -> None:
    steps = (FEW, *sizes, *sizes[-2::-1], FEW)
    runs: list[list[tuple[float, load.Load]]] = []
    more_bytes: list[float] = []
    for _ in range(crowd.setting.rounds):
        run: list[tuple[float, load.Load]] = []
        for connections in steps:
            async with crowd.asking(connections) as seen:
                rate = await crowd.rate()
                if connections == FEW and not run:
                    quiet = machine.rss_bytes(crowd.service.api)
                if connections == sizes[-1]:
                    more_bytes.append((machine.rss_bytes(crowd.service.api) - quiet) / 2**20)
            run.append((rate, seen[0]))
        runs.append(run)
        crowd.few.append(run[0][0])
    for key, place in zip(("23a", "23b", "23c"), range(1, len(sizes) + 1), strict=False):
        findings.ratio(key, [run[place][0] for run in runs], crowd.few)
    findings.values["23h"] = more_bytes
    rows = []
    for place, connections in enumerate(steps):
        rates = [run[place][0] for run in runs]
        way = "there" if place <= len(sizes) else "back"
        findings.figure(f"overload, {way}: {connections:,} connections", "a second", rates)
        p99_ms = median([run[place][1].p99_us / 1e3 for run in runs])
        refused = median([run[place][1].refused / run[place][1].seconds for run in runs])
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        rows.append([f"{connections:,}", f"{median(rates):,.0f}", spread, f"{p99_ms:,.0f}", f"{refused:,.0f}"])
    head = ["connections, in this order", "adds a second", "lowest to highest", "p99, ms", "refused a second"]
    notes = ["p99 and refusals are wrk's, over the whole run: from before its connections stood, and with refusals."]
    findings.grids.append(Grid(title="Overload, there and back", head=head, rows=rows, notes=notes))


async def _halted(findings: Findings, crowd: _Crowd, connections: int) -> None:
    async def halt() -> None:
        pids = [pid for some in (await crowd.service.backends()).values() for pid in some]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(HALT_SECONDS)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    rates = []
    for _ in range(crowd.setting.rounds):
        async with crowd.asking(connections, halted=True):
            rates.append(await crowd.rate(halt))
    findings.figure(f"{connections:,} connections, after a halt of the database", "a second", rates)
    findings.ratio("23d", rates, crowd.few)


async def _calm(findings: Findings, crowd: _Crowd, connections: int) -> None:
    rates: list[float] = []
    p99: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(crowd.setting.rounds):
        waits: dict[bool, list[float]] = {True: [], False: []}
        async with crowd.asking(connections):
            clients = [asyncio.create_task(_ask(crowd, waits[False], is_kept=False))]

            async def others(clients: list[asyncio.Task[None]] = clients, waits: Any = waits) -> None:
                clients.append(asyncio.create_task(_ask(crowd, waits[True], is_kept=True)))

            rates.append(await crowd.rate(others))
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)
        for is_kept, some in waits.items():
            p99[is_kept].append(percentile(some, 99) * 1e3)
    findings.figure(f"{connections:,} connections, next to a calm client", "a second", rates)
    findings.ratio("23e", rates, crowd.few)
    findings.values["23f"] = p99[True]
    findings.values["23g"] = p99[False]


async def _ask(crowd: _Crowd, waits: list[float], *, is_kept: bool) -> None:
    """One client, until it is cancelled: how long each of its adds took, including connecting."""
    host, _, port = crowd.service.url.removeprefix("http://").partition(":")
    wire: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    while True:
        began_at = time.perf_counter()
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            reader, writer = wire or await asyncio.open_connection(host, int(port))
            writer.write(crowd.calm_request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            length = re.search(rb"(?i)content-length: (\d+)", head)
            assert length
            await reader.readexactly(int(length[1]))
        waits.append(time.perf_counter() - began_at)
        if is_kept:
            wire = reader, writer
        else:
            writer.close()
        await asyncio.sleep(CALM_PAUSE_SECONDS)


async def _peers(findings: Findings, crowd: _Crowd, connections: int) -> None:
    setting, tournaments = crowd.setting, [crowd.hot]
    rankings = await asking.rankings_for_peers(crowd.service, tournaments)
    token = crowd.service.token
    peers = {
        "ceiling": ("ceiling", Settings(token=token, sizes=await asking.add_sizes(crowd.service, tournaments))),
        "crud": ("crud", Settings(token=token, database=await setting.cluster.database("crud"), rankings=rankings)),
    }
    for name, (module, settings) in peers.items():
        async with setting.peer(module, settings) as peer:
            await _peer(findings, crowd, name, peer.url, crowd.requests, connections)
    if REDIS.missing is None:
        async with setting.store(REDIS, "overload") as redis:
            settings = Settings(token=token, database=redis.socket, rankings=rankings)
            async with setting.peer("redis_sets", settings) as peer:
                await _peer(findings, crowd, "redis", peer.url, crowd.requests, connections)


async def _peer(findings: Findings, crowd: _Crowd, name: str, url: str, requests: Path, connections: int) -> None:
    seconds = crowd.standing + crowd.seconds
    for number in (FEW, connections):
        seen = await load.loaded(url, requests, seconds=seconds, connections=number)
        good = (seen.answers - seen.refused) / seen.seconds
        findings.figure(f"add.json, {name}, {number:,} connections", "a second", [good])
