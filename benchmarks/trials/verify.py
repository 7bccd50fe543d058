"""A verification: the whole log of one tournament, its tables, its chain, as `tallybook verify` does it.

Figures: events a second, microseconds of its processor time per event, and the peak memory of the process, in MiB.
"""

import resource

import uvloop
from msgspec import Struct

from benchmarks.trials import Stopwatch, say, told
from engine.database.pool import open_database
from projections.verification.all_tournaments import Plan, verify_all
from projections.verification.findings import Difference


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    slug: str


async def run(settings: Settings) -> None:
    stopwatch = Stopwatch()
    async with open_database(settings.database, name="bench", connections_max=2) as database:
        with stopwatch.timing():
            report = await verify_all(
                database, Plan(slug=settings.slug), on_difference=_refuse, on_events=lambda _done, _all: None
            )
    say(
        events_per_second=report.events / stopwatch.seconds,
        busy_us=stopwatch.busy_seconds / report.events * 1e6,
        memory_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _refuse(difference: Difference) -> None:
    raise AssertionError(str(difference))


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
