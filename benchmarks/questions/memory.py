"""Question 14: what does a tournament take in the memory of an API process, and what does an idle process take?

Tournaments of different sizes, with points for every competitor in every unity and with tables up to date, are loaded
one after another in a separate process (`trials/memory.py`). The difference between two sizes, by tracemalloc, is the
memory of one more competitor, unity or competition. The sizes are chosen so that Python's hash tables are equally full
in both. The rows are about the live itself: head and board. The memory of the answers that it keeps is among the
figures.

An idle API process is that of a service which has just started. Its resident memory counts, including memory that it
shares with others.
"""

import asyncio
from typing import Any, Final

from benchmarks import machine
from benchmarks.rounds import interleaved
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.world import Field, Tournament, everyone_scores, open_tournaments, seeding, settle

NUMBERS: Final = (14,)
NEEDS: Final = ()
SIZES: Final = {
    "base": Field(competitors=2_000, unities=1, competitions=1_000),
    "competitors": Field(competitors=8_000, unities=1, competitions=1_000),
    "unities": Field(competitors=2_000, unities=5, competitions=1_000),
    "competitions": Field(competitors=2_000, unities=1, competitions=4_000),
}
MORE: Final = {"competitors": 6_000, "unities": 4 * 2_000, "competitions": 3_000}
_NAMES: Final = {
    "competitors": "per competitor with one unity",
    "unities": "per competitor and further unity",
    "competitions": "per competition of two",
}
_ROWS: Final = {"14a": "competitors", "14b": "unities", "14c": "competitions"}
IDLE_SECONDS: Final = 1.0


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("memory")
    tournaments: dict[str, Tournament] = {}
    async with seeding(dsn) as connection:
        for name, field in SIZES.items():
            (tournaments[name],) = await open_tournaments(connection, name, 1, field)
            await everyone_scores(connection, tournaments[name])
    await setting.trial("catch_up", {"database": dsn})
    await settle(dsn)

    async def loaded() -> dict[str, Any]:
        return await setting.trial("memory", {"database": dsn, "tournaments": tournaments})

    async def idle() -> dict[str, Any]:
        async with setting.service(dsn, "idle") as service:
            await asyncio.sleep(IDLE_SECONDS)
            return {"api": machine.rss_bytes(service.api), "worker": machine.rss_bytes(service.worker)}

    rounds = setting.scaled(setting.rounds, quick=1)  # they hardly differ
    runs = await interleaved(rounds, {"loaded": loaded, "idle": idle})
    return _findings(runs["loaded"], runs["idle"])


def _findings(loaded: list[dict[str, Any]], idle: list[dict[str, Any]]) -> Findings:
    findings = Findings()
    for key, kind in _ROWS.items():
        findings.values[key] = [_each(run, kind, "loaded") for run in loaded]
        samples = [_each(run, kind, "answered") for run in loaded]
        findings.figure(f"memory {_NAMES[kind]}, kept answers included", "bytes", samples)
    findings.values["14d"] = [run["api"] / 2**20 for run in idle]
    findings.figure("memory of an idle worker process", "MiB", [run["worker"] / 2**20 for run in idle])
    return findings


def _each(run: dict[str, Any], kind: str, when: str) -> float:
    """The memory of one more of `kind`."""
    return float(run[f"{kind}_{when}"] - run[f"base_{when}"]) / MORE[kind]
