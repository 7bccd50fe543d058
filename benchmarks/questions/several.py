"""Question 27: what does a second API process bring on the same two cores, and what does it cost?

The loads of questions 1 (`add.json` of one delta, one tournament of 20 competitors), 5 (`GET rankings.json` of 16
tournaments) and 6 (`add.json`, 1,000 tournaments, Zipf-distributed), over 64 connections: to one process; to two that
share the port (`serve --processes 2`), where any process answers any request; and to two services with half of the
tournaments and of the connections each, as behind a proxy that chooses by tournament. Each way has its own database.

The processor time of a request is that of all API processes, and of PostgreSQL for them; `docs/BENCHMARKS.md`
calculates from it what more cores bring.
"""

import random
from contextlib import AsyncExitStack
from functools import partial
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from benchmarks import asking, traffic
from benchmarks.contest import Metered, metered
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import Service
from benchmarks.setting import Setting
from benchmarks.table import PROCESSES, Findings, Grid
from benchmarks.world import Field, Tournament, Zipf, open_tournaments, seeding, settle

NUMBERS: Final = (27,)
NEEDS: Final = ("wrk",)
SEED: Final = 27
WARM_UPS: Final = 4
"""How often each tournament is asked first where any process may answer, so that almost always both have it."""

ONE: Final = "one process"
ANY: Final = "two, each request at any"
OWNED: Final = "two, each tournament at one"
BUSY: Final = "add.json, 20 competitors"
READS: Final = "GET rankings.json"
MANY: Final = "add.json, 1,000 tournaments"
_TOURNAMENTS: Final = {BUSY: 1, READS: 16, MANY: 1_000}
_ROWS: Final = {"27a": (BUSY, ANY), "27b": (READS, ANY), "27c": (MANY, OWNED)}


class _Way(Struct, frozen=True):
    """Its services on one database, and its tournaments."""

    services: list[Service]
    tournaments: list[Tournament]


async def measure(setting: Setting) -> Findings:
    async with AsyncExitStack() as stack:
        ways = {
            ONE: await _way(setting, stack, "one"),
            ANY: await _way(setting, stack, "any", "--processes", "2", warm_ups=WARM_UPS),
            OWNED: await _way(setting, stack, "owned", services=2),
        }
        contestants: dict[str, Contestant[Metered]] = {
            f"{load}, {name}": _contestant(setting, way, load, name)
            for load in _TOURNAMENTS
            for name, way in ways.items()
            if (load, name) != (BUSY, OWNED)  # one tournament belongs to one
        }
        runs = await interleaved(setting.scaled(setting.rounds, quick=1), contestants)
    findings = Findings()
    for name, of_name in runs.items():
        findings.figure(name, "a second", [run.rate for run in of_name])
        findings.figure(f"{name}: processor time, API processes", "µs", [run.api_us for run in of_name])
        findings.figure(f"{name}: processor time, PostgreSQL for them", "µs", [run.postgres_us for run in of_name])
    for key, (load, way) in _ROWS.items():
        two, one = ([run.rate for run in runs[f"{load}, {name}"]] for name in (way, ONE))
        findings.ratio(key, two, one)
    rows = [
        [name, *(f"{median(figures):,.0f}" for figures in zip(*map(astuple, of_name), strict=True))]
        for name, of_name in runs.items()
    ]
    head = ["load", "a second", "API processes, µs", "PostgreSQL for them, µs"]
    notes = ["µs of processor time of a request, without the worker and the load generator, which share the cores."]
    findings.grids = [Grid(title=PROCESSES, head=head, rows=rows, notes=notes)]
    return findings


async def _way(
    setting: Setting, stack: AsyncExitStack, name: str, *options: str, services: int = 1, warm_ups: int = 1
) -> _Way:
    dsn = await setting.database(f"several_{name}")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "several", max(_TOURNAMENTS.values()), Field())
    await settle(dsn)
    running = []
    for n in range(services):
        running.append(await stack.enter_async_context(setting.service(dsn, f"several-{name}-{n}", *options)))
        for _ in range(warm_ups):
            await asking.add_sizes(running[-1], tournaments[n::services])
    return _Way(running, tournaments)


def _contestant(setting: Setting, way: _Way, load: str, name: str) -> Contestant[Metered]:
    """Each service gets the requests to its share of the tournaments."""
    tournaments, count = way.tournaments[: _TOURNAMENTS[load]], len(way.services)
    drawn = tournaments if load == READS else Zipf(tournaments).draw(random.Random(SEED), traffic.REQUESTS)
    files = []
    for n, service in enumerate(way.services):
        its = {tournament.slug for tournament in tournaments[n::count]}
        mine = [tournament for tournament in drawn if tournament.slug in its]
        render = traffic.rankings if load == READS else partial(traffic.adds, seed=SEED)
        files.append(setting.requests(f"several, {load}, {name}, {n}", render(mine, service.token)))
    return partial(metered, setting, way.services, tournaments, files)
