"""Questions 8 and 9: how long does an `add.json` take, alone and at a fixed rate?

One tournament of 20 competitors, one delta a request.

8: one connection of wrk, one request after the other: the p50, against 2.5 times the ceiling's plus the p50 of one
commit of one event by asyncpg alone (`trials/append.py`, in a database without a worker).

9: 500 and 2,000 requests a second at equal intervals, by an open loop that counts from the time when a request was due
(`openloop.py`): the p99, against the better of crud's and Redis's in the same round; both are equally durable. A
contestant slower than the rate falls behind, and its latency grows until the load ends.
"""

import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import asking, contest, ledger
from benchmarks.peers.serving import Settings
from benchmarks.processes import figures_of
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import Service
from benchmarks.setting import REDIS, Peer, Setting
from benchmarks.table import Findings
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Tournament, open_tournaments, seeding

NUMBERS: Final = (8, 9)
NEEDS: Final = ("wrk",)
CEILINGS: Final = 2.5
RATES: Final = (500, 2_000)
"""Requests a second of question 9."""
SECONDS: Final = 15
QUICK_SECONDS: Final = 2
COMMITS: Final = 4_000
QUICK_COMMITS: Final = 400
SEED: Final = 8

Figures = dict[str, Any]


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("latency")
    alone = await setting.database("latency_alone")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "latency", 1, contest.QUESTION_1)
    async with seeding(alone) as connection:
        appended_to = await open_tournaments(connection, "alone", 1, Field())
    async with setting.service(dsn, "latency") as service, AsyncExitStack() as stack:
        race = _Race(setting, service, tournaments)
        peers = await race.peers(stack)
        commits = setting.scaled(COMMITS, quick=QUICK_COMMITS)
        commit = {"database": alone, "tournaments": appended_to, "size": 1, "commits": commits}
        contestants: dict[str, Contestant[Figures]] = {
            "one connection, ceiling": partial(race.one_connection, peers["ceiling"].url),
            "one commit of one event": partial(setting.trial, "append", commit),
            "one connection, ours": race.one_connection_ours,
        }
        for rate in RATES:
            for who, peer in peers.items():
                contestants[_fixed(rate, who)] = partial(race.fixed_rate_peer, peer.url, rate, keeps=who != "ceiling")
            contestants[_fixed(rate, "ours")] = partial(race.fixed_rate_ours, rate)
        return _findings(await interleaved(setting.rounds, contestants))


class _Race:
    """The contestants and their tournaments."""

    def __init__(self, setting: Setting, service: Service, tournaments: list[Tournament]) -> None:
        self._setting = setting
        self._service = service
        self._tournaments = tournaments
        self._requests: Path = setting.requests("latency", adds(tournaments * REQUESTS, service.token, seed=SEED))

    async def peers(self, stack: AsyncExitStack) -> dict[str, Peer]:
        """The contestants by name; their servers run while `stack` is open. Redis is left out if it is not
        installed."""
        setting, token = self._setting, self._service.token
        rankings = await asking.rankings_for_peers(self._service, self._tournaments)
        sizes = Settings(token=token, sizes=await asking.add_sizes(self._service, self._tournaments))
        database = await setting.cluster.database("latency_crud")
        crud = Settings(token=token, database=database, rankings=rankings)
        peers = {
            "ceiling": await stack.enter_async_context(setting.peer("ceiling", sizes)),
            "crud": await stack.enter_async_context(setting.peer("crud", crud)),
        }
        if REDIS.missing is None:
            redis = await stack.enter_async_context(setting.store(REDIS, "latency"))
            kept = Settings(token=token, database=redis.socket, rankings=rankings)
            peers["redis"] = await stack.enter_async_context(setting.peer("redis_sets", kept))
        return peers

    async def one_connection(self, url: str) -> Figures:
        load = await self._setting.load(url, self._requests, connections=1)
        return {"p50_us": load.p50_us}

    async def one_connection_ours(self) -> Figures:
        load = await contest.ours(self._setting, self._service, self._tournaments, self._requests, connections=1)
        return {"p50_us": load.p50_us}

    async def fixed_rate_peer(self, url: str, rate: int, *, keeps: bool) -> Figures:
        """`keeps`: the peer keeps a ledger, which is checked."""
        if not keeps:
            return await self._fixed_rate(url, rate)
        before = await ledger.peer_recorded(url, self._service.token)
        figures = await self._fixed_rate(url, rate)
        after = await ledger.peer_recorded(url, self._service.token)
        ledger.check_peer(before, after, acknowledged=figures["answers"], sent=figures["answers"])
        return figures

    async def fixed_rate_ours(self, rate: int) -> Figures:
        before = await ledger.opened(self._service, self._tournaments)
        figures = await self._fixed_rate(self._service.url, rate)
        await before.close(acknowledged=figures["answers"], sent=figures["answers"])
        return figures

    async def _fixed_rate(self, url: str, rate: int) -> Figures:
        host, _, port = url.removeprefix("http://").partition(":")
        await self._setting.cluster.checkpoint()
        settings = {
            "host": host,
            "port": int(port),
            "requests": str(self._requests),
            "rate": rate,
            "seconds": self._setting.scaled(SECONDS, quick=QUICK_SECONDS),
        }
        command = [sys.executable, "-m", "benchmarks.openloop"]
        return await figures_of(command, settings, log=self._setting.log("openloop"))


def _fixed(rate: int, who: str) -> str:
    return f"{rate:,} adds a second, {who}"


def _findings(figures: dict[str, list[Figures]]) -> Findings:
    findings = Findings()
    p50 = {name: [one["p50_us"] for one in runs] for name, runs in figures.items() if name.startswith("one")}
    for name, samples in p50.items():
        findings.figure(f"{name}: p50", "µs", samples)
    ceiling, commit = p50["one connection, ceiling"], p50["one commit of one event"]
    allowed = [CEILINGS * c + a for c, a in zip(ceiling, commit, strict=True)]
    findings.ratio("8", p50["one connection, ours"], allowed)

    for name, runs in figures.items():
        if not name.startswith("one"):
            for what in ("p50", "p90", "p99", "highest", "driver_late_p99"):
                findings.figure(f"{name}: {what.replace('_', ' ')}", "ms", [one[f"{what}_ms"] for one in runs])
    for key, rate in zip(("9a", "9b"), RATES, strict=True):
        if (refusal := REDIS.missing) is not None:
            findings.missing[key] = refusal
            continue
        p99 = {who: [one["p99_ms"] for one in figures[_fixed(rate, who)]] for who in ("crud", "redis", "ours")}
        findings.ratio(key, p99["ours"], list(map(min, p99["crud"], p99["redis"])))
    return findings
