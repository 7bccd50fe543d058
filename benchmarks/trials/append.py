"""`engine.log` alone: appends one-delta requests over one connection, commit after commit, and nothing else.

With one tournament, all requests of a commit are one block. With several, they are drawn Zipf-distributed and grouped
into one block per tournament, as by the product's appender. The trial measures `appending.append`: encoding, the way to
PostgreSQL, the function, the commit. The requests are made beforehand. Figures: events a second, microseconds of
its processor time per event, and the p50 of one commit in microseconds.
"""

import random
from statistics import median
from time import perf_counter
from typing import Final

import asyncpg
import uvloop
from msgspec import Struct

from benchmarks.trials import Stopwatch, say, told
from benchmarks.world import Tournament, Zipf, judged
from engine.database.pool import open_database
from engine.domain.terms import TournamentId
from engine.log import appending, heads
from engine.log.appending import Appended, Block
from engine.log.heads import Head

SEED: Final = 10


class Settings(Struct, frozen=True, kw_only=True):
    """`commits` of `size` requests each."""

    database: str
    tournaments: list[Tournament]
    size: int
    commits: int


async def run(settings: Settings) -> None:
    batches = list(Zipf(settings.tournaments).batches(random.Random(SEED), size=settings.size, count=settings.commits))
    stopwatch = Stopwatch()
    async with open_database(settings.database, name="bench") as database, database.connection() as connection:
        at = await heads.current(connection, [tournament.tournament_id for tournament in settings.tournaments])
        with stopwatch.timing():
            took = [await _append(connection, batch, at) for batch in batches]
    say(
        events_per_second=settings.size * settings.commits / stopwatch.seconds,
        busy_us=stopwatch.busy_seconds / (settings.size * settings.commits) * 1e6,
        p50_us=median(took) * 1e6,
    )


async def _append(connection: asyncpg.Connection, batch: list[Block], at: dict[TournamentId, Head]) -> float:
    """Seconds that one commit took."""
    started_at = perf_counter()
    for block, outcome in zip(
        batch, await appending.append(connection, [judged(block, at) for block in batch], wait=False), strict=True
    ):
        assert isinstance(outcome, Appended), outcome
        assert outcome.last_sequence is not None
        assert outcome.digest is not None
        at[block.tournament_id] = Head(outcome.last_sequence, outcome.digest)
    return perf_counter() - started_at


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
