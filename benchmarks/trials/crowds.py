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
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks import load, traffic
from benchmarks.cluster import open_cluster
from benchmarks.processes import running
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


@asynccontextmanager
async def listening(way: Way, service: Service, tournament: Tournament, directory: Path) -> AsyncIterator[None]:
    if not way.listeners:
        yield
        return
    host, _, port = service.url.removeprefix("http://").partition(":")
    settings = {
        "host": host,
        "port": int(port),
        "paths": [f"/tournament/{tournament.slug}/events?after=head"],
        "token": service.token,
        "listeners": way.listeners,
        "deaf": 0,
        "looked_at": 1,
        "figures": str(directory / "listening.json"),
    }
    command = [sys.executable, "-m", "benchmarks.listening"]
    log = directory / "listening.log"
    async with running(command, log=log, ready="ready", stdin=msgspec.json.encode(settings), is_killed=True):
        yield
    log.unlink()  # the next one's must not seem ready


async def rate(service: Service, file: Path, connections: int) -> tuple[float, float]:
    """Good answers and refusals, a second."""
    found = await load.loaded(service.url, file, seconds=SECONDS, connections=connections)
    return (found.answers - found.refused) / found.seconds, found.refused / found.seconds


async def measured(product: Product, dsn: str, way: Way, tournaments: list[Tournament], directory: Path) -> Share:
    options = ("--processes", str(way.processes))
    async with serving(product, dsn, *options, log=directory / "service.log") as service:
        file = traffic.store(requests(way, tournaments, service.token), directory / "requests")
        async with listening(way, service, tournaments[0], directory):
            few, _ = await rate(service, file, FEW)
            many, refused = await rate(service, file, MANY)
    (directory / "service.log").unlink()
    return Share(few, many, refused)


async def main() -> None:
    product = installed()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # wrk and the service inherit it
    found: dict[str, list[Share]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as temporary:
        directory = Path(temporary)
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(open_cluster(directory / "postgres"))
            dsn = await cluster.database("crowds")
            product.run("migrate", dsn=dsn)
            async with seeding(dsn) as connection:
                tournaments = await open_tournaments(connection, "crowds", TOURNAMENTS, Field())
            await settle(dsn)
            for _ in range(ROUNDS):
                for name, way in WAYS.items():
                    found[name].append(await measured(product, dsn, way, tournaments, directory))
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
