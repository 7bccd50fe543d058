"""What tracing costs an add: processor time of the process that answers, including its threads. Run it alone:

    python -m benchmarks.trials.tracing

It starts a separate PostgreSQL, and answers wrk in this process. In turn, tracing is off, off again (which shows the
noise), on with no request recorded, and on with all of them recorded and batches of spans thrown away. Prints
microseconds per add in the best round, which the rest of the machine disturbed least, its ratio to off, and the median.
Then it prints how long an add takes to find out that tracing is off.
"""

import socket
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from io import BytesIO
from pathlib import Path
from statistics import median
from time import process_time
from timeit import repeat
from typing import Final

import uvloop
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from api.access import auth
from api.access.auth import Scope
from api.desk.desk import open_desk
from api.service.app import make_front, serving
from benchmarks import load, traffic, world
from benchmarks.world import Field
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.process import tracing
from engine.process.telemetry import Lines

ROUNDS: Final = 20
WRK_SECONDS: Final = 1
LOOKS: Final = 200_000


class Nowhere(SpanExporter):
    """Discards all spans."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def provider(sampler: Sampler) -> TracerProvider:
    made = TracerProvider(sampler=sampler)
    made.add_span_processor(BatchSpanProcessor(Nowhere()))
    return made


async def run(dsn: str, directory: Path) -> None:
    async with world.seeding(dsn) as connection:
        (tournament,) = await world.open_tournaments(connection, "traced", 1, Field(competitors=20))
    providers = {
        "off": None,
        "off, once more": None,
        "on, none recorded": provider(ALWAYS_OFF),
        "on, all recorded": provider(ALWAYS_ON),
    }
    took: dict[str, list[float]] = {name: [] for name in providers}
    urls = {}
    async with open_database(dsn, name="bench") as database, open_desk(database) as desk, AsyncExitStack() as stack:
        async with database.connection() as connection:
            _, token = await auth.create(
                connection, name="bench", scope=Scope.ADMIN, tournament_ids=None, expires_in_days=None
            )
        adds = traffic.adds([tournament] * traffic.REQUESTS, token, seed=1)
        requests = traffic.store(adds, directory / "requests")
        for name, chosen in providers.items():
            tracing.use(chosen)
            listener = socket.create_server(("127.0.0.1", 0), backlog=512)
            await stack.enter_async_context(serving(make_front(desk, Lines(BytesIO())), listener))
            urls[name] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for round_ in range(ROUNDS + 1):
            for name, chosen in providers.items():
                tracing.use(chosen)
                before = process_time()
                answers = (await load.measured(urls[name], requests, seconds=WRK_SECONDS)).answers
                if round_:  # the first warms up
                    took[name].append((process_time() - before) / answers * 1e6)
        tracing.use(None)
    for name, times in took.items():
        print(f"{name:20}{min(times):8.1f} µs  {min(times) / min(took['off']):6.3f}  (median {median(times):.1f} µs)")
    look = "None if tracing.spans is None else tracing.spans.current_request()"
    best = min(repeat(look, globals={"tracing": tracing}, number=LOOKS, repeat=5))
    print(f"to find it off: {best / LOOKS * 1e9:.1f} ns")


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        async with embedded_postgres(Path(name) / "pg") as postgres:
            await migrate(postgres.dsn)
            await run(postgres.dsn, Path(name))


if __name__ == "__main__":
    uvloop.run(main())
