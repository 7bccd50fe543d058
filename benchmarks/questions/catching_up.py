"""Question 12: how many events does one worker fold into the tables in a second when it has fallen behind?

12a: one tournament of 20 competitors, one-delta events in blocks of 64. 12b: 1,000 tournaments of 20 competitors, the
events drawn Zipf-distributed, 64 in a commit, as the load of question 6 leaves them. Before every run, the tables are
restored to their state before the first of these events; then `Worker.catch_up` runs in a separate process
(`trials/catch_up.py`). Its rate is compared with that of question 1, measured in the same rounds.
"""

import random
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from benchmarks import contest, ledger
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import owner
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.world import Field, Tournament, Zipf, add_batches, add_points, open_tournaments, seeding, settle

NUMBERS: Final = (12,)
NEEDS: Final = ("wrk",)
EVENTS: Final = 500_000
QUICK_EVENTS: Final = 60_000
TOURNAMENTS: Final = 1_000
SPREAD_EVENTS: Final = 200_000
QUICK_SPREAD_EVENTS: Final = 25_600
BLOCK_EVENTS: Final = 64
SEED: Final = 12

ONE: Final = "worker catching up, one tournament"
MANY: Final = "worker catching up, 1,000 tournaments"
ADDS: Final = "question 1, beside question 12"
_TABLES: Final = ("checkpoint", "competitor", "competition", "participant", "ranking", "enrolment", "unity", "total")
_CREATE_SAVED: Final = "CREATE SCHEMA saved"
_SAVE: Final = "CREATE TABLE saved.{0} AS TABLE tallybook.{0}"
_EMPTY: Final = "TRUNCATE tallybook.{0}"
_RESTORE: Final = "INSERT INTO tallybook.{0} TABLE saved.{0}"


async def measure(setting: Setting) -> Findings:
    events = setting.scaled(EVENTS, quick=QUICK_EVENTS)
    spread = setting.scaled(SPREAD_EVENTS, quick=QUICK_SPREAD_EVENTS)
    one, many = await setting.database("behind_one"), await setting.database("behind_many")
    async with seeding(one) as connection:
        (tournament,) = await open_tournaments(connection, "behind", 1, Field())
        await _save(setting, one)
        await add_points(connection, tournament, events=events, block_events=BLOCK_EVENTS, seed=SEED)
    async with seeding(many) as connection:
        tournaments = await open_tournaments(connection, "behind", TOURNAMENTS, Field())
        await _save(setting, many)
        batches = Zipf(tournaments).batches(random.Random(SEED), size=BLOCK_EVENTS, count=spread // BLOCK_EVENTS)
        await add_batches(connection, batches)
    async with AsyncExitStack() as stack:
        contestants: dict[str, Contestant[float]] = {
            ADDS: await stack.enter_async_context(contest.question_1(setting, "catching_up")),
            ONE: partial(_caught_up, setting, one, [tournament]),
            MANY: partial(_caught_up, setting, many, tournaments),
        }
        rates = await interleaved(setting.rounds, contestants)
    findings = Findings()
    if setting.quick:
        findings.notes.append(
            f"12: scaled down, {events:,} and {spread:,} events instead of {EVENTS:,} and {SPREAD_EVENTS:,}"
        )
    for name, samples in rates.items():
        findings.figure(name, "a second", samples)
    findings.ratio("12a", rates[ONE], rates[ADDS])
    findings.ratio("12b", rates[MANY], rates[ADDS])
    return findings


async def _save(setting: Setting, dsn: str) -> None:
    """Brings the tables up to date and keeps a copy of them."""
    await setting.trial("catch_up", {"database": dsn})
    async with owner(dsn) as connection:
        await connection.execute(_CREATE_SAVED)
        for table in _TABLES:
            await connection.execute(_SAVE.format(table))


async def _caught_up(setting: Setting, dsn: str, tournaments: list[Tournament]) -> float:
    """One run from the saved tables. Raises WrongAnswer if they end with anything but the sums of the log."""
    async with owner(dsn) as connection:
        for table in _TABLES:
            await connection.execute(_EMPTY.format(table))
            await connection.execute(_RESTORE.format(table))
    await settle(dsn)
    figures = await setting.trial("catch_up", {"database": dsn})
    await ledger.check_tables(dsn, tournaments)
    return float(figures["events_per_second"])
