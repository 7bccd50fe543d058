"""Moments of the past as a service answers them, one after the other: from the nearest snapshot, by sequence.

Figures: the median and the slowest in milliseconds, the same for pages of history of 1,000 lines, and the longest time
for which no other task had a turn.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from statistics import median
from time import perf_counter, thread_time
from typing import Final

import uvloop
from msgspec import Struct

from benchmarks.trials import say, told
from benchmarks.world import Tournament
from engine.database.pool import Database, open_database
from engine.domain.terms import Sequence
from engine.log import heads
from projections.past import moments, pages
from projections.past.moments import AtSequence, Span
from projections.past.past import Past

MOMENTS: Final = 200
PAGES: Final = 50
PAGE_LINES: Final = 1_000
FOUNDING_EVENTS: Final = 30
"""The number of events after which the ranking exists."""


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    tournament: Tournament
    seed: int


async def run(settings: Settings) -> None:
    async with open_database(settings.database, name="bench") as database:
        at, page, head = await _asks(database, settings.tournament)
        draw = random.Random(settings.seed)
        drawn = [Sequence(draw.randint(FOUNDING_EVENTS, head)) for _ in range(MOMENTS)]
        await at(head)
        held: list[float] = []
        watch = asyncio.create_task(_watch(held))
        moments = [await _timed(at, sequence) for sequence in drawn]
        pages = [await _timed(page, sequence) for sequence in drawn[:PAGES]]
        watch.cancel()
    say(
        moment_ms_median=median(moments) * 1e3,
        moment_ms_max=max(moments) * 1e3,
        page_ms_median=median(pages) * 1e3,
        page_ms_max=max(pages) * 1e3,
        held_ms_p99=sorted(held)[int(len(held) * 0.99)] * 1e3,
        held_ms_max=max(held) * 1e3,
    )


_Ask = Callable[[Sequence], Awaitable[object]]


async def _asks(database: Database, tournament: Tournament) -> tuple[_Ask, _Ask, Sequence]:
    past, tournament_id, ranking_id = Past(database), tournament.tournament_id, tournament.ranking_id
    async with database.connection() as connection:
        head = (await heads.current(connection, [tournament_id]))[tournament_id].sequence

    async def at(sequence: Sequence) -> object:
        return await moments.at(past, tournament_id, ranking_id, AtSequence(sequence), head)

    async def page(sequence: Sequence) -> object:
        return await pages.page(past, tournament_id, ranking_id, Span(sequence, head), limit=PAGE_LINES)

    return at, page, head


async def _timed(ask: _Ask, sequence: Sequence) -> float:
    started_at = perf_counter()
    await ask(sequence)
    return perf_counter() - started_at


async def _watch(held: list[float]) -> None:
    """How long each turn of the event loop takes while moments are asked for, in processor time of this thread only."""
    while True:
        started_at = thread_time()
        await asyncio.sleep(0)
        held.append(thread_time() - started_at)


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
