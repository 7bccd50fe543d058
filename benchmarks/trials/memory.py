"""What a tournament takes in memory once it is loaded: the difference between two sizes of it, by tracemalloc.

The tables are up to date, so it is loaded as a process loads it that has not seen it before. `loaded` counts the
live as the design defines it (head, board), `answered` also the pieces of answers that are kept with it after every
kind of answer was asked for. Figures: bytes of each tournament, loaded and answered.
"""

import gc
import tracemalloc

import uvloop
from msgspec import Struct

from api.interface import answers
from api.interface.wire import PER_PAGE_MAX, Page
from benchmarks.trials import say, told
from benchmarks.world import Tournament
from engine.database.pool import Database, open_database
from projections.live.live import Live, load


class Settings(Struct, frozen=True, kw_only=True):
    """Tournaments by names of one's own."""

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


def _answer_everything(live: Live, tournament: Tournament) -> None:
    answers.whole(answers.modified_ranking(live, tournament.ranking_id))
    answers.whole(answers.rankings(live))
    answers.whole(answers.competitors(live, Page(1, PER_PAGE_MAX)))
    answers.whole(answers.competitions(live, Page(1, PER_PAGE_MAX)))


def _traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
