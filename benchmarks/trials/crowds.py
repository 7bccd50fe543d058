"""Overload under other loads than that of question 23: how much of what 64 connections get do thousands get?

It needs wrk. Run it alone:

    .venv-bench/bin/python -m benchmarks.trials.crowds

Each client asks again at once. Prints good answers a second over 64 and over 5,500 connections, the latter's share and
refusals, in interleaved rounds: medians, and the lowest and highest share. The first seconds of each run, in which
connections are made, count as well.
"""

import asyncio
import random
import resource
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from msgspec import Struct

from benchmarks import load, traffic
from benchmarks.cluster import open_cluster
from benchmarks.listening import listening
from benchmarks.rounds import interleaved
from benchmarks.service import Product, Service, installed, serving
from benchmarks.traffic import REQUESTS, Request, adds
from benchmarks.world import Field, Tournament, Zipf, open_tournaments, seeding, settle

FEW: Final = 64
MANY: Final = 5_500
ROUNDS: Final = 3
SECONDS: Final = 12
TOURNAMENTS: Final = 100
LISTENERS: Final = 100
READS_SHARE: Final = 0.9
SEED: Final = 38


class Way(Struct, frozen=True, kw_only=True):
    """Who asks, and what answers."""

    processes: int = 1
    tournaments: int = 1
    reads_share: float = 0.0
    listeners: int = 0


WAYS: Final = {
    "one tournament": Way(),
    "two API processes": Way(processes=2),
    "100 tournaments, Zipf-distributed": Way(tournaments=TOURNAMENTS),
    "nine reads in ten": Way(reads_share=READS_SHARE),
    "100 listeners of the tournament": Way(listeners=LISTENERS),
}


class Share(Struct, frozen=True):
    """Good answers a second over few and many connections, and those refused."""

    few: float
    many: float
    refused: float

    @property
    def share(self) -> float:
        return self.many / self.few


def requests(way: Way, tournaments: list[Tournament], token: str) -> list[Request]:
    draw = random.Random(SEED)
    if way.tournaments > 1:
        drawn = Zipf(tournaments[: way.tournaments]).draw(draw, REQUESTS)
    else:
        drawn = tournaments[:1] * REQUESTS
    writes = adds(drawn, token, seed=SEED)
    if not way.reads_share:
        return writes
    reads = traffic.rankings(drawn, token)
    return traffic.mixed(reads, writes, reads_share=way.reads_share, count=REQUESTS, seed=SEED)


async def rate(service: Service, file: Path, connections: int) -> tuple[float, float]:
    """Good answers and refusals, a second."""
    found = await load.loaded(service.url, file, seconds=SECONDS, connections=connections)
    return (found.answers - found.refused) / found.seconds, found.refused / found.seconds


async def measured(product: Product, dsn: str, way: Way, tournaments: list[Tournament], directory: Path) -> Share:
    options = ("--processes", str(way.processes))
    async with serving(product, dsn, *options, log=directory / "service.log") as service:
        file = traffic.store(requests(way, tournaments, service.token), directory / "requests")
        async with listening(service, tournaments[:1], way.listeners, directory=directory):
            few, _ = await rate(service, file, FEW)
            many, refused = await rate(service, file, MANY)
    (directory / "service.log").unlink()
    return Share(few, many, refused)


async def main() -> None:
    product = installed()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # wrk and the service inherit it
    with tempfile.TemporaryDirectory(dir="/var/tmp") as temporary:
        directory = Path(temporary)
        async with open_cluster(directory / "postgres") as cluster:
            dsn = await cluster.database("crowds")
            product.run("migrate", dsn=dsn)
            async with seeding(dsn) as connection:
                tournaments = await open_tournaments(connection, "crowds", TOURNAMENTS, Field())
            await settle(dsn)
            contestants = {
                name: partial(measured, product, dsn, way, tournaments, directory) for name, way in WAYS.items()
            }
            found = await interleaved(ROUNDS, contestants)
    for name, shares in found.items():
        ratios = [one.share for one in shares]
        print(
            f"{name:>34}: {median(one.few for one in shares):,.0f} a second over {FEW} connections,"
            f" {median(one.many for one in shares):,.0f} over {MANY:,}:"
            f" {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}),"
            f" {median(one.refused for one in shares):,.0f} refused",
            flush=True,
        )


if __name__ == "__main__":
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed")
    asyncio.run(main())
