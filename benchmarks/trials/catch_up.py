"""The worker alone: folds everything that the tables lack, until nothing is left (`Worker.catch_up`).

Figure: events a second.
"""

import uvloop
from msgspec import Struct

from benchmarks.trials import Stopwatch, say, told
from engine.database.pool import open_database
from engine.process.telemetry import log_to
from projections.tables.worker import Worker


class Settings(Struct, frozen=True, kw_only=True):
    database: str


async def run(settings: Settings) -> None:
    log_to()
    stopwatch = Stopwatch()
    async with open_database(settings.database, name="bench", connections_max=4) as database:
        with stopwatch.timing():
            events = await Worker(database).catch_up()
    say(events=events, events_per_second=events / stopwatch.seconds)


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
