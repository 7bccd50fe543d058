"""Questions 11 and 15: what does a long log cost a process that has to read it, and one that does not?

One tournament of 20 competitors with a million one-delta events in blocks of 64, as a load of 64 connections leaves
them. All rows that are read are in the memory of the operating system.

11: a full replay, without tables: read, decode, fold (`trials/replay.py`), against a plain `SELECT` of the same events
in rows, through asyncpg, made into Python objects and thrown away (`peers/raw_select.py`). Events a second.

15: the tables are brought up to date. Then the first answer of this tournament in a process that does not have it in
memory is compared with that of a tournament of the same size with 1,000 events (`trials/cold_start.py`).
"""

from functools import partial
from typing import Any, Final

from benchmarks.rounds import interleaved
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.world import Field, Tournament, add_points, open_tournaments, seeding, settle

NUMBERS: Final = (11, 15)
NEEDS: Final = ()
EVENTS: Final = 1_000_000
QUICK_EVENTS: Final = 100_000
SMALL_EVENTS: Final = 1_000
BLOCK_EVENTS: Final = 64
COLD_STARTS: Final = 50
QUICK_COLD_STARTS: Final = 20
SEED: Final = 11

SELECT: Final = "plain SELECT"
REPLAY: Final = "full replay"


async def measure(setting: Setting) -> Findings:
    events = setting.scaled(EVENTS, quick=QUICK_EVENTS)
    dsn = await setting.database("long_log")
    async with seeding(dsn) as connection:
        small, large = await open_tournaments(connection, "long", 2, Field())
        await add_points(connection, small, events=SMALL_EVENTS, block_events=BLOCK_EVENTS, seed=SEED)
        await add_points(connection, large, events=events, block_events=BLOCK_EVENTS, seed=SEED)
    await settle(dsn)
    findings = await _replayed(setting, dsn, large)
    await setting.trial("catch_up", {"database": dsn})
    await settle(dsn)
    findings.add(await _started_cold(setting, dsn, small, large))
    if setting.quick:
        findings.notes.append(f"11, 15: scaled down, {events:,} events instead of {EVENTS:,}")
    return findings


async def _replayed(setting: Setting, dsn: str, tournament: Tournament) -> Findings:
    async def rate(figures: Any) -> float:
        return float((await figures())["events_per_second"])

    select = {"database": dsn, "tournament_id": tournament.tournament_id}
    replay = {"database": dsn, "tournament": tournament}
    rates = await interleaved(
        setting.rounds,
        {
            SELECT: partial(rate, partial(setting.peer_trial, "raw_select", select)),
            REPLAY: partial(rate, partial(setting.trial, "replay", replay)),
        },
    )
    findings = Findings()
    for name, samples in rates.items():
        findings.figure(name, "events a second", samples)
    findings.ratio("11", rates[REPLAY], rates[SELECT])
    return findings


async def _started_cold(setting: Setting, dsn: str, small: Tournament, large: Tournament) -> Findings:
    repetitions = setting.scaled(COLD_STARTS, quick=QUICK_COLD_STARTS)
    settings = {"database": dsn, "small": small, "large": large, "repetitions": repetitions}
    runs = (await interleaved(setting.rounds, {"cold": partial(setting.trial, "cold_start", settings)}))["cold"]
    findings = Findings()
    for size in ("small", "large"):
        findings.figure(f"first answer, cold, {size} log", "ms", [run[f"{size}_ms"] for run in runs])
    findings.ratio("15", [run["large_ms"] for run in runs], [run["small_ms"] for run in runs])
    return findings
