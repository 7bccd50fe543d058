"""One run of the product over HTTP, with what belongs to it: the ledger, the lag of the tables, the costs."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks import costs, hot_spots, ledger
from benchmarks.costs import Costs
from benchmarks.ledger import WrongAnswer, check_peer, peer_recorded
from benchmarks.load import CONNECTIONS, Load
from benchmarks.rounds import Contestant
from benchmarks.service import Service, owner
from benchmarks.setting import Setting
from benchmarks.table import Findings, percentile
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Tournament, open_tournaments, seeding

LAG_EVERY_SECONDS: Final = 0.05
LAG_REST: Final = 20
"""The pause between two looks at the lag, as a multiple of the time that a look takes. It keeps the cost to the load
small."""
SIZE_TOLERANCE: Final = 0.1
"""How much answers of two contestants may differ in size, because their headers do."""
QUESTION_1: Final = Field(competitors=20, competitions=50)
SEED: Final = 1


class Observed(Struct, frozen=True, kw_only=True):
    """A run with its observations. `lag_events`: samples of how many events the tables lacked."""

    load: Load
    lag_events: list[int]
    caught_up_seconds: float
    costs: Costs


async def ours(
    setting: Setting,
    service: Service,
    tournaments: list[Tournament],
    requests: Path,
    *,
    connections: int = CONNECTIONS,
    seconds: int | None = None,
) -> Load:
    """One run of the product, checked. Raises WrongAnswer."""
    before = await ledger.opened(service, tournaments)
    load = await setting.load(service.url, requests, connections=connections, seconds=seconds)
    await before.close(acknowledged=load.adds_acknowledged, sent=load.adds_sent)
    return load


async def ours_observed(
    setting: Setting,
    service: Service,
    tournaments: list[Tournament],
    requests: Path,
    *,
    seconds: int | None = None,
) -> Observed:
    """Like `ours`, but also observes the tables and the costs."""
    before = await ledger.opened(service, tournaments)
    await setting.cluster.checkpoint()
    meter = await costs.started(service)
    async with _lag_sampled(service, tournaments) as lag_events:
        load = await setting.load(service.url, requests, seconds=seconds)
    async with owner(service.dsn) as connection:
        caught_up_seconds = await ledger.caught_up(connection, tournaments)
    measured = await meter.stopped(load)
    await before.close(acknowledged=load.adds_acknowledged, sent=load.adds_sent)
    return Observed(load=load, lag_events=lag_events, caught_up_seconds=caught_up_seconds, costs=measured)


def add_to(findings: Findings, name: str, observed: list[Observed]) -> None:
    """Puts what was observed during several runs of the load `name` among the figures."""
    for share in (50, 99):
        lag_events = [percentile(one.lag_events, share) for one in observed]
        findings.figure(f"{name}: tables behind, p{share}", "events", lag_events)
        lag_ms = [lag / one.load.rate * 1e3 for lag, one in zip(lag_events, observed, strict=True)]
        findings.figure(f"{name}: tables behind, p{share} at the rate of the load", "ms", lag_ms)
    caught_up_ms = [one.caught_up_seconds * 1e3 for one in observed]
    findings.figure(f"{name}: tables caught up after it stopped", "ms", caught_up_ms)
    costs.add_to(findings, name, [one.costs for one in observed])


async def profiled(setting: Setting, service: Service, name: str, load: Callable[..., Awaitable[Load]]) -> Findings:
    """Where the processor time of a request goes under the load `name`: by process in one run, and by function of the
    API process in another. `load(seconds=…)` makes the load for that long, `load()` for as long as it usually is."""
    meter = await costs.started(service)
    spent = await meter.spent((await load()).sent)
    findings = Findings(profiles=await hot_spots.recorded(name, service.api, load, setting))
    for side, us in spent.items():
        findings.figure(costs.cpu_of(name, side), "µs", [us])
    return findings


async def peer(setting: Setting, url: str, token: str, requests: Path) -> Load:
    """One run of a peer that keeps a ledger, checked. Raises WrongAnswer."""
    before = await peer_recorded(url, token)
    load = await setting.load(url, requests)
    after = await peer_recorded(url, token)
    check_peer(before, after, acknowledged=load.adds_acknowledged, sent=load.adds_sent)
    return load


class Metered(Struct, frozen=True, kw_only=True):
    """Answers a second, and microseconds of processor time for each: of all API processes, and of PostgreSQL for
    them."""

    rate: float
    api_us: float
    postgres_us: float

    @property
    def whole_us(self) -> float:
        return self.api_us + self.postgres_us


async def metered(
    setting: Setting, services: list[Service], tournaments: list[Tournament], files: list[Path]
) -> Metered:
    """One run of the product, checked: each of several services on one database gets the requests of its file, over an
    equal share of the connections. Raises WrongAnswer."""
    before = await ledger.opened(services[0], tournaments)
    meters = [await costs.started(service) for service in services]
    loads = await asyncio.gather(
        *(
            setting.load(service.url, file, connections=CONNECTIONS // len(services))
            for service, file in zip(services, files, strict=True)
        )
    )
    answers = sum(load.answers for load in loads)
    spent = [await meter.spent(answers) for meter in meters]
    await before.close(
        acknowledged=sum(load.adds_acknowledged for load in loads), sent=sum(load.adds_sent for load in loads)
    )
    return Metered(
        rate=sum(load.rate for load in loads),
        api_us=sum(one[costs.API] for one in spent),
        postgres_us=spent[0]["PostgreSQL for tallybook api"],  # of all services
    )


def against(findings: Findings, key: str, ours: list[Load], other: list[Load]) -> None:
    """Sets a row to the ratio of two rates, round by round. Raises WrongAnswer if the sizes of their answers differ."""
    for one, another in zip(ours, other, strict=True):
        if not 1 - SIZE_TOLERANCE <= one.answer_bytes / another.answer_bytes <= 1 + SIZE_TOLERANCE:
            raise WrongAnswer(f"row {key}: answers of {one.answer_bytes:.0f} and {another.answer_bytes:.0f} bytes")
    findings.ratio(key, [load.rate for load in ours], [load.rate for load in other])


@asynccontextmanager
async def _lag_sampled(service: Service, tournaments: list[Tournament]) -> AsyncIterator[list[int]]:
    samples: list[int] = []

    async def sample() -> None:
        async with owner(service.dsn) as connection:
            while True:
                started_at = time.perf_counter()
                samples.append(await ledger.lag_events(connection, tournaments))
                took = time.perf_counter() - started_at
                await asyncio.sleep(max(LAG_EVERY_SECONDS, LAG_REST * took))

    sampling = asyncio.create_task(sample())
    try:
        yield samples
    finally:
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)


@asynccontextmanager
async def question_1(setting: Setting, name: str) -> AsyncIterator[Contestant[float]]:
    """The load of question 1 in a separate database, as a contestant of other questions: adds a second."""
    dsn = await setting.database(f"{name}_beside")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "beside", 1, QUESTION_1)
    async with setting.service(dsn, f"{name}-beside") as service:
        requests = setting.requests(f"{name}-beside", adds(tournaments * REQUESTS, service.token, seed=SEED))

        async def rate() -> float:
            return (await ours(setting, service, tournaments, requests)).rate

        yield rate
