"""Millions of deltas that have not expired yet: memory, the cost of an add, and stalls; and the same when they expire.

Run it alone, for six minutes:

    .venv-bench/bin/python -m benchmarks.trials.unexpired --millions 10

A service takes requests of 1,000 deltas each for one ranking, whose points expire after `LASTS_MINUTES`. Meanwhile, and
until all have expired, a probe reads a ranking of another tournament; a stall is how long it waits beyond its usual
wait. An add is one delta for the first ranking, over one connection. Prints the time, the memory of both processes
and the longest stall of each phase.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import uvloop

from benchmarks import machine
from benchmarks.service import Service, installed, serving
from benchmarks.sizes.measuring import Probe, probing
from engine.database.embedded import embedded_postgres

LASTS_MINUTES: Final = 3
"""Enough to add ten million; they expire at several boundaries, one each minute."""
COMPETITORS: Final = 1_000
REQUESTS_AT_ONCE: Final = 4
ADDS: Final = 2_000


@asynccontextmanager
async def _phase(name: str, service: Service, probe: Probe) -> AsyncIterator[None]:
    """Prints what happens within."""
    before, began_at = machine.cpu_seconds(service.api), time.perf_counter()
    await probe.begin()
    yield
    stall_ms = await probe.stall_ms()
    seconds, busy = time.perf_counter() - began_at, machine.cpu_seconds(service.api) - before
    api, worker = (machine.rss_bytes(pid) / 2**20 for pid in (service.api, service.worker))
    print(
        f"{name:24}{seconds:6.1f} s  API process {busy:6.2f} s busy, {api:.1f} MiB  worker {worker:.1f} MiB  "
        f"longest stall {stall_ms:.1f} ms",
        flush=True,
    )


class _Rolling:
    """A ranking whose points expire, and requests to it."""

    def __init__(self, service: Service, session: aiohttp.ClientSession) -> None:
        self._service, self._session = service, session

    async def ask(self, method: str, path: str, **form: object) -> Any:
        async with self._session.request(method, self._service.url + path, data=form) as response:
            body = await response.read()
            assert response.status == 200, body
            return json.loads(body)

    async def open(self, slug: str) -> None:
        below = f"/tournament/{slug}"
        ids: list[int] = []
        while len(ids) < COMPETITORS:
            items = json.dumps([{"name": f"Competitor {len(ids) + n}"} for n in range(100)])
            created = await self.ask("POST", f"{below}/competitors.json", items=items)
            ids += [one["id"] for one in created["competitors"]["competitor"]]
        ranking = (
            await self.ask(
                "POST",
                f"{below}/rankings.json",
                name="Rolling",
                main_unity_name="points",
                main_unity_lasts=f"PT{LASTS_MINUTES}M",
                main_unity_expires_on="minute",
                participants=",".join(map(str, ids)),
            )
        )["ranking"]
        self._unity_id = ranking["unities"][0]["id"]
        self._ranking = f"{below}/rankings/{ranking['id']}"
        self._one = self._deltas(ids[:1])
        self._all = self._deltas(ids)

    def _deltas(self, competitor_ids: list[int]) -> str:
        unities = [{"unity_id": self._unity_id, "delta": 1}]
        return json.dumps([{"competitor_id": one, "unities": unities} for one in competitor_ids])

    async def add(self, deltas: str) -> None:
        headers = {"Prefer": "return=minimal"}
        url = f"{self._service.url}{self._ranking}/add.json"
        async with self._session.put(url, data={"participants_delta": deltas}, headers=headers) as response:
            assert response.status < 300, await response.read()

    async def add_all(self, times: int) -> None:
        left = iter(range(times))

        async def some() -> None:
            for _ in left:
                await self.add(self._all)

        await asyncio.gather(*(some() for _ in range(REQUESTS_AT_ONCE)))

    async def add_singly(self) -> None:
        for _ in range(ADDS):
            await self.add(self._one)

    async def total(self) -> int:
        """The total of the first in the ranking."""
        unity = (await self.ask("GET", f"{self._ranking}/standings.json?top=1"))["ranking"]["unities"][0]
        return int(unity["competitors_ranking"][0]["total"])


async def run(millions: float) -> None:
    product = installed()
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = await stack.enter_async_context(embedded_postgres(directory / "pg", settings={"max_wal_size": "4GB"}))
        product.run("migrate", dsn=cluster.dsn)
        service = await stack.enter_async_context(serving(product, cluster.dsn, log=directory / "serve.log"))
        headers = {"Authorization": f"Bearer {service.token}"}
        session = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        slugs = [product.run("tournament", "create", name, dsn=cluster.dsn).split()[-1] for name in ("One", "Other")]
        rolling = _Rolling(service, session)
        await rolling.open(slugs[0])
        path = f"/tournament/{slugs[1]}/rankings.json"
        probe = await stack.enter_async_context(probing(service, path))
        await probe.become_used()
        async with _phase(f"{ADDS:,} adds", service, probe):
            await rolling.add_singly()
        async with _phase(f"{millions} million deltas", service, probe):
            await rolling.add_all(round(1_000 * millions))
        async with _phase(f"{ADDS:,} adds", service, probe):
            await rolling.add_singly()
        async with _phase("all expire", service, probe):
            while await rolling.total():  # noqa: ASYNC110 - it is another process where they expire
                await asyncio.sleep(1)
        async with _phase(f"{ADDS:,} adds", service, probe):
            await rolling.add_singly()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, default=10)
    uvloop.run(run(parser.parse_args().millions))
