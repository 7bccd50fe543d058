"""A full replay: reads a tournament's whole log, decodes every event, folds it to a board.

The product does the same to load a tournament without tables into memory (`projections.live.load`). Figure: events a
second.
"""

import uvloop
from msgspec import Struct

from benchmarks.trials import Stopwatch, say, told
from benchmarks.world import Tournament
from engine.database.pool import open_database
from projections.live.tournament import load
from projections.tables import tables


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    tournament: Tournament


async def run(settings: Settings) -> None:
    stopwatch = Stopwatch()
    async with open_database(settings.database, name="bench") as database, database.connection() as connection:
        checkpoint = await tables.checkpoint(connection, settings.tournament.tournament_id)
        assert checkpoint is None, "the tables must be absent, or it is no replay"
        with stopwatch.timing():
            live = await load(connection, settings.tournament.tournament_id)
    say(events_per_second=live.head.sequence / stopwatch.seconds)


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
