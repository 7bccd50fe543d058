"""What adding points costs: processor time by process, bytes of the log. The capacity page is calculated from it.

Processor time is read from /proc from the start of a run until the tables have caught up with it, so that the worker's
share is complete. PostgreSQL's time is split by the clients of its processes.
"""

from typing import Final

import asyncpg
from msgspec import Struct

from benchmarks import machine
from benchmarks.load import Load
from benchmarks.service import Service, owner
from benchmarks.table import Findings

API: Final = "API process"
WORKER: Final = "worker process"
CEILING: Final = "the ceiling's process"
SIDES: Final = (API, "PostgreSQL for tallybook api", WORKER, "PostgreSQL for tallybook worker")
"""What works for the product."""

_SIZES: Final = """
    SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS wal_bytes, (SELECT count(*) FROM block) AS blocks,
        (SELECT sum(pg_total_relation_size(t)) FROM unnest('{block,topic,personal}'::regclass[]) AS t) AS log_bytes
"""


class Costs(Struct, frozen=True, kw_only=True):
    """The costs of one run: microseconds of processor time per request, by process; bytes per event."""

    cpu_us: dict[str, float]
    log_bytes: float
    wal_bytes: float
    events_per_block: float


class Meter:
    """Use `started` before a run, and `stopped` when its tables have caught up."""

    def __init__(self, service: Service, ticks: dict[str, dict[int, float]], sizes: asyncpg.Record) -> None:
        self._service = service
        self._ticks = ticks
        self._sizes = sizes

    async def spent(self, requests: int) -> dict[str, float]:
        """Microseconds of processor time per request so far, by process."""
        ticks = await _ticks(self._service)
        return {side: _used(self._ticks.get(side, {}), now) / requests * 1e6 for side, now in ticks.items()}

    async def stopped(self, load: Load) -> Costs:
        sizes = await _sizes(self._service)
        grown = {name: int(sizes[name] - self._sizes[name]) for name in sizes.keys()}  # noqa: SIM118 - a Record
        adds = load.adds_sent
        return Costs(
            cpu_us=await self.spent(adds),
            log_bytes=grown["log_bytes"] / adds,
            wal_bytes=grown["wal_bytes"] / adds,
            events_per_block=adds / max(grown["blocks"], 1),
        )


async def started(service: Service) -> Meter:
    return Meter(service, await _ticks(service), await _sizes(service))


def add_to(findings: Findings, name: str, costs: list[Costs]) -> None:
    """Puts the costs of several runs of the load `name` among the figures. An add of one request is one event."""
    for side in sorted({side for one in costs for side in one.cpu_us}):
        findings.figure(cpu_of(name, side), "µs", [one.cpu_us.get(side, 0.0) for one in costs])
    findings.figure(f"{name}: log per event, indexes included", "bytes", [one.log_bytes for one in costs])
    findings.figure(f"{name}: write-ahead log per add, tables included", "bytes", [one.wal_bytes for one in costs])
    findings.figure(f"{name}: events in a block", "", [one.events_per_block for one in costs])


def cpu_of(name: str, side: str) -> str:
    """The name of the figure for the time that `side` spends on a request under the load `name`."""
    return f"{name}: processor time per request, {side}"


async def _ticks(service: Service) -> dict[str, dict[int, float]]:
    """Seconds of processor time so far, by side and process."""
    sides = {f"PostgreSQL for {side}": pids for side, pids in (await service.backends()).items()}
    sides |= {API: service.apis, WORKER: [service.worker]}
    return {side: {pid: machine.cpu_seconds(pid) for pid in pids} for side, pids in sides.items()}


def _used(before: dict[int, float], now: dict[int, float]) -> float:
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in now.items())


async def _sizes(service: Service) -> asyncpg.Record:
    async with owner(service.dsn) as connection:
        return await connection.fetchrow(_SIZES)
