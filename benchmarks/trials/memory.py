"""What a tournament takes in memory once it is loaded: the difference between two sizes of it, by tracemalloc.

The tables are up to date, so the tournament is loaded as in a process that has not seen it before. `loaded` counts the
live as the design defines it (head, board). `answered` also counts the pieces of answers that are kept with it after
every kind of answer was requested. Figures: bytes of each tournament, loaded and answered.
"""

import gc
import tracemalloc

import uvloop
from msgspec import Struct

from api.interface.declarations import Read
from api.interface.operations import OPERATIONS
from api.interface.paging import PER_PAGE_MAX, PageQuestion
from api.interface.rendering import whole
from api.interface.resources.rankings import RankingQuestion, RankingsQuestion
from api.interface.resources.standings import STANDINGS, render_standings
from benchmarks.trials import say, told
from benchmarks.world import Tournament
from engine.database.pool import Database, open_database
from projections.live.tournament import LiveTournament, load


class Settings(Struct, frozen=True, kw_only=True):
    """Tournaments by names that the caller chooses."""

    database: str
    tournaments: dict[str, Tournament]


async def run(settings: Settings) -> None:
    figures: dict[str, float] = {}
    async with open_database(settings.database, name="bench") as database:
        for tournament in settings.tournaments.values():
            await _measured(database, tournament)  # caches of the driver and of imports are filled
        tracemalloc.start()
        for name, tournament in settings.tournaments.items():
            loaded, answered = await _measured(database, tournament)
            figures |= {f"{name}_loaded": loaded, f"{name}_answered": answered}
    say(**figures)


async def _measured(database: Database, tournament: Tournament) -> tuple[int, int]:
    before = _traced_bytes()
    async with database.connection() as connection:
        live = await load(connection, tournament.tournament_id)
    loaded = _traced_bytes() - before
    _answer_everything(live, tournament)
    return loaded, _traced_bytes() - before


def _answer_everything(live: LiveTournament, tournament: Tournament) -> None:
    whole(render_standings(live, STANDINGS, RankingQuestion(tournament.ranking_id)))
    page = PageQuestion(1, PER_PAGE_MAX)
    asked = {"rankings.json": RankingsQuestion(), "competitors.json": page, "competitions.json": page}
    for operation in OPERATIONS:
        if isinstance(operation, Read) and operation.path in asked:
            whole(operation.render(live, operation.answer, asked[operation.path]))


def _traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
