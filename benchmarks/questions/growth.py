"""Question 13: does the load of question 1 slow down when the database has grown?

Three services, each on a separate database, are loaded one after another. The only tournament of the first has nothing
but its 20 competitors. That of the second has 10 million one-delta events already. The third has 10,000 other
tournaments of 20 competitors next to the loaded one. Before anything is measured, all tables are up to date, and the
grown databases vacuumed. The figure is answers a second over 64 connections.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

import asyncpg

from benchmarks import contest
from benchmarks.load import Load
from benchmarks.rounds import Contestant, interleaved
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Tournament, add_points, open_tournaments, seeding, settle

NUMBERS: Final = (13,)
NEEDS: Final = ("wrk",)
EVENTS: Final = 10_000_000
QUICK_EVENTS: Final = 200_000
TOURNAMENTS: Final = 10_000
QUICK_TOURNAMENTS: Final = 300
BLOCK_EVENTS: Final = 512
"""The largest block of the product; it fills the log sooner."""
SEED: Final = 13

EMPTY: Final = "empty"
LONG: Final = "long"
WIDE: Final = "wide"

Grow = Callable[[asyncpg.Connection, Tournament], Awaitable[None]]


async def measure(setting: Setting) -> Findings:
    events = setting.scaled(EVENTS, quick=QUICK_EVENTS)
    others = setting.scaled(TOURNAMENTS, quick=QUICK_TOURNAMENTS)

    async def nothing(_connection: asyncpg.Connection, _loaded: Tournament) -> None:
        pass

    async def lengthen(connection: asyncpg.Connection, loaded: Tournament) -> None:
        await add_points(connection, loaded, events=events, block_events=BLOCK_EVENTS, seed=SEED)

    async def widen(connection: asyncpg.Connection, _loaded: Tournament) -> None:
        await open_tournaments(connection, "other", others, Field())

    grown = {EMPTY: nothing, LONG: lengthen, WIDE: widen}
    async with AsyncExitStack() as stack:
        contestants = {name: await _contestant(setting, name, grow, stack) for name, grow in grown.items()}
        loads = await interleaved(setting.rounds, contestants)
    rates = {name: [load.rate for load in runs] for name, runs in loads.items()}
    findings = Findings()
    if setting.quick:
        findings.notes.append(
            f"13: scaled down, {events:,} events instead of {EVENTS:,}, "
            f"{others:,} tournaments instead of {TOURNAMENTS:,}"
        )
    for name, samples in rates.items():
        findings.figure(f"add.json, database: {name}", "a second", samples)
    findings.ratio("13a", rates[LONG], rates[EMPTY])
    findings.ratio("13b", rates[WIDE], rates[EMPTY])
    return findings


async def _contestant(setting: Setting, name: str, grow: Grow, stack: AsyncExitStack) -> Contestant[Load]:
    setting.say(f"growing a database: {name}")
    dsn = await setting.database(f"growth_{name}")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "loaded", 1, contest.QUESTION_1)
        await grow(connection, tournaments[0])
    await setting.trial("catch_up", {"database": dsn})
    if name != EMPTY:
        await settle(dsn)
    service = await stack.enter_async_context(setting.service(dsn, f"growth-{name}"))
    requests = setting.requests(f"growth-{name}", adds(tournaments * REQUESTS, service.token, seed=SEED))
    return partial(contest.ours, setting, service, tournaments, requests)
