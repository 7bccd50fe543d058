"""Services behind HAProxy: what an add costs where one, two, four or eight of them share the tournaments.

It needs haproxy and wrk. Run it alone:

    .venv-bench/bin/python -m benchmarks.trials.many_services

It starts a separate PostgreSQL, eight services without workers, and an HAProxy for each number of services. These
choose the service by the rules of `deploy/haproxy/haproxy.cfg`, without TLS; another HAProxy gives each of two services
every second request. wrk adds one delta at a time: to one tournament, to 1,000 in a Zipf distribution, and to 1,000
alike. Prints microseconds of processor time per add, of all services and of PostgreSQL, in interleaved rounds: medians,
and the ratio to one service in the same round. "Beside a stranger" is one service while another one, with a separate
database, proxy and wrk, is under the same load: the two share only the machine.
"""

import asyncio
import random
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Final

from msgspec import Struct

from benchmarks import load, machine
from benchmarks.load import CONNECTIONS
from benchmarks.processes import free_port, running
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import DSN_VARIABLE, Product, installed, token
from benchmarks.traffic import REQUESTS, adds, store
from benchmarks.trials.beside import postgres_seconds
from benchmarks.world import Field, Tournament, Zipf, open_tournaments, seeding, settle
from engine.database.embedded import embedded_postgres

SERVICES: Final = 8
TOURNAMENTS: Final = 1_000
ROUNDS: Final = 3
SECONDS: Final = 4
WARM_SECONDS: Final = 2
"""Services without requests in the previous round read what others have appended."""
CONFIGURATION: Final = machine.ROOT / "deploy" / "haproxy" / "haproxy.cfg"


class Way(Struct, frozen=True):
    """The number of services and of connections to them. `owned`: each tournament belongs to one service. `beside`:
    next to a stranger."""

    services: int
    connections: int
    owned: bool = True
    beside: bool = False

    def __str__(self) -> str:
        more = ("" if self.owned else ", any service") + (", beside a stranger" if self.beside else "")
        return f"{self.services} services, {self.connections} clients{more}"


WAYS: Final = (
    Way(1, CONNECTIONS),
    Way(1, CONNECTIONS, beside=True),
    Way(2, CONNECTIONS),
    Way(2, 2 * CONNECTIONS),
    Way(2, 2 * CONNECTIONS, owned=False),
    Way(4, 4 * CONNECTIONS),
    Way(8, 8 * CONNECTIONS),
)


class Cost(Struct, frozen=True):
    """Microseconds of processor time per add, and adds a second."""

    services: float
    postgres: float
    proxy: float
    rate: float

    @property
    def in_all(self) -> float:
        """Without the proxy."""
        return self.services + self.postgres


@asynccontextmanager
async def service(product: Product, dsn: str, port: int, log: Path) -> AsyncIterator[list[int]]:
    """Its processes."""
    command = [product.command, "serve", "--port", str(port), "--no-worker", "--proxies", "1"]
    async with running(command, log=log, ready='"event":"listening"', environment={DSN_VARIABLE: dsn}) as process:
        yield [process.pid, *machine.children_of(process.pid)]


def configuration(ports: list[int], port: int, *, owned: bool) -> str:
    """The deployed configuration, with other ports, without TLS, and without the limit on connections."""
    text = CONFIGURATION.read_text(encoding="utf-8")
    text = re.sub(
        r"    bind :443 .*\n    bind :80\n    http-request redirect .*\n", f"    bind 127.0.0.1:{port}\n", text
    )
    text = re.sub(r"    ssl-default-bind-options .*\n", "", text)
    servers = "".join([f"    server s{n} 127.0.0.1:{other}\n" for n, other in enumerate(ports)])
    text, replaced = re.subn(r"    server first .*\n    server second .*\n", servers, text)
    assert replaced == 1
    if not owned:
        text = re.sub(r"    balance hdr.*\n    hash-type .*\n", "    balance roundrobin\n", text)
    return text


@asynccontextmanager
async def proxy(ports: list[int], way: Way, directory: Path) -> AsyncIterator[tuple[str, int]]:
    """Where it answers, and its process."""
    port = free_port()
    file = directory / f"haproxy-{port}.cfg"
    file.write_text(configuration(ports[: way.services], port, owned=way.owned), encoding="utf-8")
    command = ["haproxy", "-db", "-V", "-f", str(file)]
    async with running(command, log=file.with_suffix(".log"), ready="Available polling systems|Loading success") as one:
        yield f"http://127.0.0.1:{port}", one.pid


async def measured(
    url: str, proxy_pid: int, services: list[int], postmaster: int, requests: Path, connections: int
) -> Cost:
    await load.measured(url, requests, seconds=WARM_SECONDS, connections=connections)

    def used() -> tuple[float, float, float]:
        return sum(map(machine.cpu_seconds, services)), postgres_seconds(postmaster), machine.cpu_seconds(proxy_pid)

    before = used()
    found = await load.measured(url, requests, seconds=SECONDS, connections=connections)
    services_us, postgres_us, proxy_us = [
        (now - then) / found.answers * 1e6 for now, then in zip(used(), before, strict=True)
    ]
    return Cost(services_us, postgres_us, proxy_us, found.rate)


@asynccontextmanager
async def stranger(
    product: Product, loads: dict[str, list[Tournament]], directory: Path
) -> AsyncIterator[dict[str, tuple[str, Path]]]:
    """A service with a separate PostgreSQL and proxy, and tournaments like those of `loads`. For each load it has the
    address of the proxy, and the requests."""
    settings = {"max_wal_size": "4GB"}
    async with embedded_postgres(directory / "pg", settings=settings) as cluster, AsyncExitStack() as stack:
        product.run("migrate", dsn=cluster.dsn)
        known = sorted({one.slug: one for those in loads.values() for one in those}.values(), key=lambda one: one.slug)
        async with seeding(cluster.dsn) as connection:
            made = await open_tournaments(connection, "t", len(known), Field())
        await settle(cluster.dsn)
        same = dict(zip([one.slug for one in known], made, strict=True))
        port = free_port()
        await stack.enter_async_context(service(product, cluster.dsn, port, directory / "service.log"))
        url, _ = await stack.enter_async_context(proxy([port], Way(1, CONNECTIONS), directory))
        secret = token(product, cluster.dsn)
        yield {
            name: (url, store(adds([same[one.slug] for one in those], secret, seed=18), directory / f"{n}.requests"))
            for n, (name, those) in enumerate(loads.items())
        }


async def beside(other: tuple[str, Path], run: Contestant[Cost]) -> Cost:
    """The cost of a run while the stranger has such a load."""
    seconds = WARM_SECONDS + SECONDS
    cost, _ = await asyncio.gather(run(), load.measured(*other, seconds=seconds, connections=CONNECTIONS))
    return cost


def told(load_name: str, costs: dict[str, list[Cost]]) -> None:
    one, *_ = costs.values()
    print(load_name)
    for way, found in costs.items():
        services = [cost.services / alone.services for cost, alone in zip(found, one, strict=True)]
        whole = [cost.in_all / alone.in_all for cost, alone in zip(found, one, strict=True)]
        print(
            f"  {way:>38}: services {median(cost.services for cost in found):.0f} µs,"
            f" PostgreSQL {median(cost.postgres for cost in found):.0f} µs,"
            f" proxy {median(cost.proxy for cost in found):.0f} µs,"
            f" {median(cost.rate for cost in found):.0f} a second;"
            f" services {median(services):.2f} times ({min(services):.2f} to {max(services):.2f}),"
            f" with PostgreSQL {median(whole):.2f} times ({min(whole):.2f} to {max(whole):.2f})",
            flush=True,
        )


async def main() -> None:
    product = installed()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        settings = {"max_wal_size": "4GB", "max_connections": "300"}
        async with embedded_postgres(directory / "pg", settings=settings) as cluster, AsyncExitStack() as stack:
            dsn, postmaster = cluster.dsn, cluster.pid
            assert postmaster is not None
            product.run("migrate", dsn=dsn)
            async with seeding(dsn) as connection:
                tournaments = await open_tournaments(connection, "t", TOURNAMENTS, Field())
            await settle(dsn)
            secret = token(product, dsn)
            ports = [free_port() for _ in range(SERVICES)]
            pids = [
                await stack.enter_async_context(service(product, dsn, port, directory / f"{port}.log"))
                for port in ports
            ]
            draw = random.Random(18)
            loads: dict[str, list[Tournament]] = {
                "one tournament": [tournaments[0]] * REQUESTS,
                "1,000 tournaments, Zipf": Zipf(tournaments).draw(draw, REQUESTS),
                "1,000 tournaments alike": draw.choices(tournaments, k=REQUESTS),
            }
            files = {
                name: store(adds(those, secret, seed=18), directory / f"{n}.requests")
                for n, (name, those) in enumerate(loads.items())
            }
            proxies = {way: await stack.enter_async_context(proxy(ports, way, directory)) for way in WAYS}
            apart = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            strangers = await stack.enter_async_context(stranger(product, loads, apart))
            for name, file in files.items():
                contestants: dict[str, Contestant[Cost]] = {}
                for way in WAYS:
                    services = [*chain(*pids[: way.services])]
                    run = partial(measured, *proxies[way], services, postmaster, file, way.connections)
                    contestants[str(way)] = partial(beside, strangers[name], run) if way.beside else run
                told(name, await interleaved(ROUNDS, contestants))


if __name__ == "__main__":
    for command in ("haproxy", "wrk"):
        if shutil.which(command) is None:
            sys.exit(f"{command} is not installed")
    asyncio.run(main())
