"""Question 18: how fast is a whole log verified, and in how much memory?

One tournament of 20 competitors with a million one-delta events in blocks of 64, as a load of 64 connections leaves
them, and its tables. All rows that are read are in the memory of the operating system.

`all_tournaments.verify_all` (`trials/verify.py`) against a plain `SELECT` of the same events and blocks in rows,
through asyncpg, made into Python objects and thrown away (`peers/raw_select.py`). Events a second. 18b: the same with a
block for each event, as lone requests leave them. The memory of both is measured too; it must not depend on the log's
length.
"""

from functools import partial
from typing import Any, Final

from benchmarks.rounds import interleaved
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.world import Field, Tournament, add_points, open_tournaments, seeding, settle

NUMBERS: Final = (18,)
NEEDS: Final = ()
EVENTS: Final = 1_000_000
QUICK_EVENTS: Final = 200_000
LONE_EVENTS: Final = 100_000
QUICK_LONE_EVENTS: Final = 20_000
BLOCK_EVENTS: Final = 64
SEED: Final = 18

SELECT: Final = "plain SELECT of events and blocks"
VERIFY: Final = "verify"
LONE: Final = ", a block for each event"


async def measure(setting: Setting) -> Findings:
    events = setting.scaled(EVENTS, quick=QUICK_EVENTS)
    lone_events = setting.scaled(LONE_EVENTS, quick=QUICK_LONE_EVENTS)
    dsn = await setting.database("verifying")
    async with seeding(dsn) as connection:
        together, lone = await open_tournaments(connection, "verified", 2, Field())
        await add_points(connection, together, events=events, block_events=BLOCK_EVENTS, seed=SEED)
        await add_points(connection, lone, events=lone_events, block_events=1, seed=SEED)
    await setting.trial("catch_up", {"database": dsn})
    await settle(dsn)
    runs = await interleaved(
        setting.rounds,
        {
            SELECT: partial(_select, setting, dsn, together),
            VERIFY: partial(_verify, setting, dsn, together),
            SELECT + LONE: partial(_select, setting, dsn, lone),
            VERIFY + LONE: partial(_verify, setting, dsn, lone),
        },
    )
    findings = Findings()
    rates = {name: [run["events_per_second"] for run in of_name] for name, of_name in runs.items()}
    for name, samples in rates.items():
        findings.figure(name, "events a second", samples)
    for name in VERIFY, VERIFY + LONE:
        findings.figure(
            f"{name}: processor time of the process per event", "µs", [run["busy_us"] for run in runs[name]]
        )
        findings.figure(f"{name}: memory", "MiB", [run["memory_mib"] for run in runs[name]])
    findings.ratio("18a", rates[VERIFY], rates[SELECT])
    findings.ratio("18b", rates[VERIFY + LONE], rates[SELECT + LONE])
    if setting.quick:
        findings.notes.append(f"18: scaled down, {events:,} events instead of {EVENTS:,}")
    return findings


async def _select(setting: Setting, dsn: str, tournament: Tournament) -> dict[str, Any]:
    settings = {"database": dsn, "tournament_id": tournament.tournament_id, "blocks": True}
    return await setting.peer_trial("raw_select", settings)


async def _verify(setting: Setting, dsn: str, tournament: Tournament) -> dict[str, Any]:
    return await setting.trial("verify", {"database": dsn, "slug": tournament.slug})
