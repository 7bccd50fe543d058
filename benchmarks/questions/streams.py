"""Question 22: what do listeners cost, and how soon do they hear?

One API process, tournaments of 20 competitors, one delta a request. Listeners ask for new events (`listening.py`).

Delay: 1,000 adds a second come at a fixed rate (`openloop.py`), to one tournament that all listen to, or spread over
100 tournaments, each with its share of the listeners. The delay is the time from the recording of an event, some
milliseconds before it is acknowledged, to its arrival. One tournament with 10,000 listeners would be 10 million events
a second, more than any machine of this size can send; the figure says how that ends.

22a: adds a second over 64 connections with 100 listeners of that tournament, against the same without any. The same
with 1,000 and 10,000 is among the figures.

22b: how much more memory the API process takes for each of 1,000 listeners that have caught up and receive nothing.

Deaf listeners never read: how much more memory the API process takes after the adds, for each of them.
"""

import asyncio
import resource
import sys
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Final

from benchmarks import contest, machine
from benchmarks.listening import listening
from benchmarks.load import Load
from benchmarks.processes import figures_of
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import Service
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Tournament, open_tournaments, seeding, settle

NUMBERS: Final = (22,)
NEEDS: Final = ("wrk",)
TOURNAMENTS: Final = 100
FEW: Final = 100
LISTENERS: Final = (1_000, 10_000)
QUICK_LISTENERS: Final = (200,)
DEAF: Final = 1_000
QUICK_DEAF: Final = 50
LOOKED_AT: Final = 50
RATE: Final = 1_000
SECONDS: Final = 15
QUICK_SECONDS: Final = 3
IDLE_SECONDS: Final = 2.0
FILES_KEPT: Final = 200
SEED: Final = 22

Figures = dict[str, Any]


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("streams")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "streams", TOURNAMENTS, Field())
    await settle(dsn)
    findings = Findings()
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the listeners' program inherits it
    try:
        async with setting.service(dsn, "streams") as service:
            crowd = _Crowd(setting, service, tournaments)
            sizes = QUICK_LISTENERS if setting.quick else LISTENERS
            numbers = tuple(size for size in sizes if size + FILES_KEPT <= most)
            await _memory(findings, crowd, numbers[0])  # first: what is freed later stays with the process
            await _delays(findings, crowd, numbers)
            await _costs(findings, crowd, numbers)
        async with setting.service(dsn, "streams-deaf") as service:
            await _deaf(findings, _Crowd(setting, service, tournaments))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, most))
    return findings


class _Crowd:
    """The listeners, and the clients that add meanwhile."""

    def __init__(self, setting: Setting, service: Service, tournaments: list[Tournament]) -> None:
        self.setting = setting
        self.service = service
        self._tournaments = tournaments
        self._host, _, self._port = service.url.removeprefix("http://").partition(":")
        self._requests = {
            count: setting.requests(
                f"streams-{count}", adds((tournaments[:count] * REQUESTS)[:REQUESTS], service.token, seed=SEED)
            )
            for count in (1, TOURNAMENTS)
        }

    def listening(
        self, listeners: int, *, tournaments: int = 1, deaf: int = 0, looked_at: int = LOOKED_AT
    ) -> AbstractAsyncContextManager[Figures]:
        """That many clients listen within the context. The dictionary has their figures afterwards."""
        some, directory = self._tournaments[:tournaments], self.setting.directory
        return listening(self.service, some, listeners, directory=directory, looked_at=looked_at, deaf=deaf)

    async def at_fixed_rate(self, *, tournaments: int = 1) -> Figures:
        """RATE adds a second, whatever happens."""
        settings = {
            "host": self._host,
            "port": int(self._port),
            "requests": str(self._requests[tournaments]),
            "rate": RATE,
            "seconds": self.setting.scaled(SECONDS, quick=QUICK_SECONDS),
        }
        command = [sys.executable, "-m", "benchmarks.openloop"]
        return await figures_of(command, settings, log=self.setting.log("openloop"))

    async def at_highest_rate(self, listeners: int, *, seconds: int | None = None) -> Load:
        """The adds to one tournament that are acknowledged while that many listen."""
        async with self.listening(listeners, looked_at=1):  # the listeners are not to take what the adds need
            return await contest.ours(
                self.setting, self.service, self._tournaments[:1], self._requests[1], seconds=seconds
            )


async def _delays(findings: Findings, crowd: _Crowd, numbers: tuple[int, ...]) -> None:
    for listeners in (FEW, *numbers):
        for tournaments in (1, TOURNAMENTS):
            async with crowd.listening(listeners, tournaments=tournaments) as heard:
                written = await crowd.at_fixed_rate(tournaments=tournaments)
                await asyncio.sleep(IDLE_SECONDS)  # what is still on its way
            name = f"{listeners:,} listeners of {tournaments} tournament{'s' * (tournaments > 1)}, 1,000 adds a second"
            if heard["gaps"]:
                findings.failed["22a"] = f"{name}: there were gaps"
            if heard["ended"]:
                findings.notes.append(f"{name}: {heard['ended']} streams ended, because they were not read in time.")
            if heard["events"]:
                findings.figure(f"{name}: delay, p50", "ms", [heard["p50_ms"]])
                findings.figure(f"{name}: delay, p99", "ms", [heard["p99_ms"]])
            findings.figure(f"{name}: add, p99", "ms", [written["p99_ms"]])
            findings.figure(f"{name}: sent to all", "MB", [heard["megabytes"]])


async def _costs(findings: Findings, crowd: _Crowd, numbers: tuple[int, ...]) -> None:
    contestants: dict[str, Contestant[Load]] = {
        str(listeners): partial(crowd.at_highest_rate, listeners) for listeners in (0, FEW, *numbers)
    }
    loads = await interleaved(crowd.setting.rounds, contestants)
    for listeners, runs in loads.items():
        findings.figure(f"add.json with {int(listeners):,} listeners", "a second", [load.rate for load in runs])
    rates = {listeners: [load.rate for load in runs] for listeners, runs in loads.items()}
    findings.ratio("22a", rates[str(FEW)], rates["0"])
    load = partial(crowd.at_highest_rate, FEW)
    findings.add(await contest.profiled(crowd.setting, crowd.service, "question 22", load))


async def _memory(findings: Findings, crowd: _Crowd, listeners: int) -> None:
    async with crowd.listening(1):
        await asyncio.sleep(IDLE_SECONDS)
    before = machine.rss_bytes(crowd.service.api)
    async with crowd.listening(listeners):
        await asyncio.sleep(IDLE_SECONDS)
        findings.values["22b"] = [(machine.rss_bytes(crowd.service.api) - before) / listeners / 1024]


async def _deaf(findings: Findings, crowd: _Crowd) -> None:
    deaf = crowd.setting.scaled(DEAF, quick=QUICK_DEAF)
    async with crowd.listening(1):
        await crowd.at_fixed_rate()
    before = machine.rss_bytes(crowd.service.api)
    async with crowd.listening(1, deaf=deaf):
        await crowd.at_fixed_rate()
        more = machine.rss_bytes(crowd.service.api) - before
    findings.figure("memory per listener that does not read", "KiB", [more / deaf / 1024])
