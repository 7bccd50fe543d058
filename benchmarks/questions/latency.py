"""Questions 8 and 9: how long does an `add.json` take, alone and at half of the highest load?

One tournament of 20 competitors, one delta a request.

8: one connection of wrk, one request after the other: the p50, against 2.5 times the ceiling's plus the p50 of one
commit of one event by asyncpg alone (`trials/append.py`, in a database without a worker).

9: at a fixed rate, half of what the product acknowledged over 64 connections in the same round, by an open loop
that counts from when a request was due (`openloop.py`): the p99, against the ceiling's at the same rate.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks import asking, contest, ledger
from benchmarks.peers.serving import Settings
from benchmarks.processes import figures_of
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import Service
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Tournament, open_tournaments, seeding

NUMBERS: Final = (8, 9)
NEEDS: Final = ("wrk",)
CEILINGS: Final = 2.5
SHARE_OF_HIGHEST: Final = 0.5
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
    async with setting.service(dsn, "latency") as service:
        sizes = Settings(token=service.token, sizes=await asking.add_sizes(service, tournaments))
        async with setting.peer("ceiling", sizes) as ceiling:
            race = _Race(setting, service, tournaments)
            commits = setting.scaled(COMMITS, quick=QUICK_COMMITS)
            commit = {"database": alone, "tournaments": appended_to, "size": 1, "commits": commits}
            contestants: dict[str, Contestant[Figures]] = {
                "one connection, ceiling": partial(race.one_connection, ceiling.url),
                "one commit of one event": partial(setting.trial, "append", commit),
                "one connection, ours": race.one_connection_ours,
                "highest, ours": race.highest_ours,
                "half, ceiling": partial(race.half, ceiling.url),
                "half, ours": race.half_ours,
            }
            figures = await interleaved(setting.rounds, contestants)
    return _findings(figures)


class _Race:
    """Who runs, and on what. `half` runs at a share of what `highest_ours` found last."""

    def __init__(self, setting: Setting, service: Service, tournaments: list[Tournament]) -> None:
        self._setting = setting
        self._service = service
        self._tournaments = tournaments
        self._requests: Path = setting.requests("latency", adds(tournaments * REQUESTS, service.token, seed=SEED))
        self._highest_rate = 0.0

    async def one_connection(self, url: str) -> Figures:
        load = await self._setting.load(url, self._requests, connections=1)
        return {"p50_us": load.p50_us}

    async def one_connection_ours(self) -> Figures:
        load = await contest.ours(self._setting, self._service, self._tournaments, self._requests, connections=1)
        return {"p50_us": load.p50_us}

    async def highest_ours(self) -> Figures:
        load = await contest.ours(self._setting, self._service, self._tournaments, self._requests)
        self._highest_rate = load.rate
        return {"rate": load.rate}

    async def half(self, url: str) -> Figures:
        host, _, port = url.removeprefix("http://").partition(":")
        await self._setting.cluster.checkpoint()
        settings = {
            "host": host,
            "port": int(port),
            "requests": str(self._requests),
            "rate": self._highest_rate * SHARE_OF_HIGHEST,
            "seconds": self._setting.scaled(SECONDS, quick=QUICK_SECONDS),
        }
        command = [sys.executable, "-m", "benchmarks.openloop"]
        return await figures_of(command, settings, log=self._setting.log("openloop"))

    async def half_ours(self) -> Figures:
        before = await ledger.opened(self._service, self._tournaments)
        figures = await self.half(self._service.url)
        await before.close(acknowledged=figures["answers"], sent=figures["answers"])
        return figures


def _findings(figures: dict[str, list[Figures]]) -> Findings:
    findings = Findings()
    p50 = {name: [one["p50_us"] for one in runs] for name, runs in figures.items() if name.startswith("one")}
    for name, samples in p50.items():
        findings.figure(f"{name}: p50", "µs", samples)
    ceiling, commit = p50["one connection, ceiling"], p50["one commit of one event"]
    allowed = [CEILINGS * c + a for c, a in zip(ceiling, commit, strict=True)]
    findings.ratio("8", p50["one connection, ours"], allowed)

    findings.figure("fixed rate", "a second", [one["rate"] * SHARE_OF_HIGHEST for one in figures["highest, ours"]])
    for who in ("ceiling", "ours"):
        for name in ("p50", "p90", "p99", "highest", "driver_late_p99"):
            samples = [one[f"{name}_ms"] for one in figures[f"half, {who}"]]
            findings.figure(f"fixed rate, {who}: {name.replace('_', ' ')}", "ms", samples)
    p99 = {who: [one["p99_ms"] for one in figures[f"half, {who}"]] for who in ("ceiling", "ours")}
    findings.ratio("9", p99["ours"], p99["ceiling"])
    return findings
