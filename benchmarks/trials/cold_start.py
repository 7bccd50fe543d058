"""The first answer of tournaments that no process has in memory: load, read barrier, render.

Each repetition has a new pool. So it has only what a process keeps after serving others: connections and their prepared
statements. The tournaments alternate. Figures: the median of each, in milliseconds.
"""

from statistics import median
from time import perf_counter

import uvloop
from msgspec import Struct

from api.interface.rendering import whole
from api.interface.resources.rankings import RankingQuestion
from api.interface.resources.standings import STANDINGS, render_standings
from benchmarks.trials import Stopwatch, say, told
from benchmarks.world import Tournament
from engine.database.pool import Database, open_database
from projections.live.pool import open_live_pool


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    small: Tournament
    large: Tournament
    repetitions: int


async def run(settings: Settings) -> None:
    took: dict[str, list[float]] = {"small": [], "large": []}
    async with open_database(settings.database, name="bench") as database:
        await _first_answer(database, settings.small)
        with Stopwatch().timing():
            for _ in range(settings.repetitions):
                took["small"].append(await _first_answer(database, settings.small))
                took["large"].append(await _first_answer(database, settings.large))
    say(small_ms=median(took["small"]) * 1e3, large_ms=median(took["large"]) * 1e3)


async def _first_answer(database: Database, tournament: Tournament) -> float:
    async with open_live_pool(database) as pool:
        started_at = perf_counter()
        async with pool.pinned(tournament.tournament_id) as live:
            await pool.make_current(live)
            assert whole(render_standings(live, STANDINGS, RankingQuestion(tournament.ranking_id)))
        return perf_counter() - started_at


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
