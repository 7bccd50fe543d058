"""Questions 1 to 4: how many `add.json` of one delta does one API process acknowledge in a second?

One tournament each of 20, 200 and 1,000 competitors gets adds from 64 connections without a pause. The product is
compared with the ceiling at each size, with crud at 20 and 1,000, with Redis and Valkey at 20. Every contestant gets
the same bodies in the same order and answers with the whole standing. The figure is answers a second.

For the product at 20 competitors, it also measures how far the tables lag behind meanwhile, the costs of an add, and at
the end, in a run that does not count, where its API process spends its time.
"""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import asking, contest, costs, hot_spots, machine
from benchmarks.contest import Observed
from benchmarks.load import Load
from benchmarks.peers.serving import Settings
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import Service
from benchmarks.setting import REDIS, VALKEY, Peer, Setting
from benchmarks.table import Findings
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Tournament, open_tournaments, seeding

NUMBERS: Final = (1, 2, 3, 4)
NEEDS: Final = ("wrk",)
SIZES: Final = (20, 200, 1_000)
CRUD_SIZES: Final = (20, 1_000)
COMPETITIONS: Final = 50
SEED: Final = 1
QUESTION_1: Final = "question 1"
STORES: Final = {"4": REDIS, "4b": VALKEY}


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("adds")
    async with seeding(dsn) as connection:
        fields = {
            size: await open_tournaments(
                connection, f"field-{size}", 1, Field(competitors=size, competitions=COMPETITIONS)
            )
            for size in SIZES
        }
    async with setting.service(dsn, "adds") as service, AsyncExitStack() as stack:
        race = _Race(setting, service, fields)
        loads = await interleaved(setting.rounds, await race.contestants(stack))
        profiles = await hot_spots.recorded(QUESTION_1, service.api, partial(race.ours, 20), setting)
    findings = Findings(profiles=profiles)
    _rates(findings, loads)
    findings.figure(costs.cpu_of(QUESTION_1, costs.CEILING), "µs", race.ceiling_us)
    contest.add_to(findings, QUESTION_1, race.observed)
    return findings


class _Race:
    """The contestants and their tournaments. `fields` holds one tournament of each size, each in a separate list."""

    def __init__(self, setting: Setting, service: Service, fields: dict[int, list[Tournament]]) -> None:
        self.observed: list[Observed] = []
        self.ceiling_us: list[float] = []
        self._setting = setting
        self._service = service
        self._fields = fields
        self._requests = {size: self._written(size) for size in fields}

    async def contestants(self, stack: AsyncExitStack) -> dict[str, Contestant[Load]]:
        """The contestants by name; their servers run while `stack` is open."""
        ceiling = await stack.enter_async_context(self._setting.peer("ceiling", await self._sizes()))
        crud = await stack.enter_async_context(
            self._setting.peer("crud", await self._data(CRUD_SIZES, await self._setting.cluster.database("crud")))
        )
        stores = await self._stores(stack)
        contestants: dict[str, Contestant[Load]] = {}
        for size in SIZES:
            contestants[f"ceiling, {size}"] = partial(self._ceiling, ceiling, size)
            if size in CRUD_SIZES:
                contestants[f"crud, {size}"] = partial(self._peer, crud.url, size)
            if size == 20:
                contestants |= {f"{name}, 20": partial(self._peer, peer.url, size) for name, peer in stores.items()}
            contestants[f"ours, {size}"] = partial(self._ours_observed if size == 20 else self.ours, size)
        return contestants

    async def ours(self, size: int, *, seconds: int | None = None) -> Load:
        fields, requests = self._fields[size], self._requests[size]
        return await contest.ours(self._setting, self._service, fields, requests, seconds=seconds)

    async def _ours_observed(self, size: int) -> Load:
        one = await contest.ours_observed(self._setting, self._service, self._fields[size], self._requests[size])
        self.observed.append(one)
        return one.load

    async def _ceiling(self, ceiling: Peer, size: int) -> Load:
        before = machine.cpu_seconds(ceiling.pid)
        load = await self._setting.load(ceiling.url, self._requests[size])
        if size == 20:
            self.ceiling_us.append((machine.cpu_seconds(ceiling.pid) - before) / load.answers * 1e6)
        return load

    async def _peer(self, url: str, size: int) -> Load:
        return await contest.peer(self._setting, url, self._service.token, self._requests[size])

    async def _stores(self, stack: AsyncExitStack) -> dict[str, Peer]:
        peers = {}
        for store in STORES.values():
            if store.missing is None:
                running = await stack.enter_async_context(self._setting.store(store, "adds"))
                data = await self._data([20], running.socket)
                peers[store.name] = await stack.enter_async_context(self._setting.peer("redis_sets", data))
        return peers

    async def _data(self, sizes: Iterable[int], database: str) -> Settings:
        tournaments = [tournament for size in sizes for tournament in self._fields[size]]
        rankings = await asking.rankings_for_peers(self._service, tournaments)
        return Settings(token=self._service.token, database=database, rankings=rankings)

    async def _sizes(self) -> Settings:
        tournaments = [tournament for field in self._fields.values() for tournament in field]
        return Settings(token=self._service.token, sizes=await asking.add_sizes(self._service, tournaments))

    def _written(self, size: int) -> Path:
        (tournament,) = self._fields[size]
        requests = adds([tournament] * REQUESTS, self._service.token, seed=SEED + size)
        return self._setting.requests(f"adds-{size}", requests)


def _rates(findings: Findings, loads: dict[str, list[Load]]) -> None:
    for name, runs in loads.items():
        findings.figure(f"add.json, {name} competitors", "a second", [load.rate for load in runs])
    for name, runs in loads.items():
        findings.figure(f"add.json, {name} competitors: p99", "ms", [load.p99_us / 1e3 for load in runs])
    for key, size in (("1", 20), ("2a", 200), ("2b", 1_000)):
        contest.against(findings, key, loads[f"ours, {size}"], loads[f"ceiling, {size}"])
    for key, size in (("3a", 20), ("3b", 1_000)):
        contest.against(findings, key, loads[f"ours, {size}"], loads[f"crud, {size}"])
    for key, store in STORES.items():
        if store.missing is None:
            contest.against(findings, key, loads["ours, 20"], loads[f"{store.name}, 20"])
        else:
            findings.missing[key] = store.missing
