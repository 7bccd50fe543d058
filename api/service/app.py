"""The HTTP server of one process: aiohttp's server with our front behind it, and its limits."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket
from typing import Final

from api.desk.desk import Desk
from api.http import throttle
from api.http.accepting import accepting
from api.http.body import BODY_SECONDS_MAX
from api.http.compression import Compression
from api.http.connections import HEADER_BYTES_MAX, HEADERS_MAX, READ_BYTES, TARGET_BYTES_MAX, Connections
from api.http.front import Front, TracedFront
from api.http.limits import CLIENT_CONNECTIONS_MAX
from api.http.outgoing import Outgoing
from api.http.router import Router
from api.http.sharing import Sharing
from api.interface.access import Access
from api.interface.handlers import Handlers
from api.interface.public import reads, stream
from api.service import health
from api.service.settings import Settings
from api.stream.followers import LISTENERS_SHARE, Streams
from engine.process import tracing
from engine.process.background import background
from engine.process.telemetry import Lines
from engine.process.time_slices import TimeSlices

SHUTDOWN_SECONDS_MAX: Final = 10.0
"""Time for requests under way when the process ends. aiohttp waits that long twice."""
AS_USUAL: Final = Settings()


def make_front(
    desk: Desk,
    lines: Lines,
    settings: Settings = AS_USUAL,
    *,
    throttles: Path | None = None,
    settle: Callable[[], None] = lambda: None,
) -> Front:
    """Makes the front that answers with `desk` and logs to `lines`. `throttles`: the file in which the processes of the
    service count requests; None: this one counts alone. `settle` is called in a thread once the pages are imported."""
    router = Router()
    outgoing = Outgoing(TimeSlices(), bytes_max=settings.unsent_bytes)
    compression = Compression(outgoing)
    listeners_max = max(1, int(settings.connections * LISTENERS_SHARE))
    streams = Streams(desk.live_pool, desk.database, outgoing.time_slices, listeners_max=listeners_max)
    pace = settings.requests_per_second
    access = Access(
        desk.database,
        failures=throttle.failures(at_once=settings.failures_at_once, shared=throttles),
        requests=None if pace is None else throttle.requests(pace, shared=throttles),
        proxies=settings.proxies,
    )
    handlers = Handlers(desk, access, outgoing, compression, streams)
    handlers.add_to(router)
    visits = None if pace is None else throttle.visits(pace, shared=throttles)
    reads.add_to(router, compression, handlers.public_views, visits=visits, proxies=settings.proxies)
    stream.add_to(router, handlers.public_views, streams, desk.database, visits=visits, proxies=settings.proxies)
    health.add_to(
        router,
        authenticate=access.authenticated,
        database=desk.database,
        quotas=desk.quotas,
        open_metrics=settings.open_metrics,
    )
    sharing = Sharing(settings.origins)
    sharing.add_to(router)

    def pages() -> Router:
        from api.web.pages import pages_router  # noqa: PLC0415 - with what it imports, it takes 8 MiB

        made = pages_router(
            handlers, compression, desk, nothing_at=router.nothing_at, visits=visits, proxies=settings.proxies
        )
        sharing.add_to(made)
        settle()
        return made

    router.add_later(pages)
    if tracing.spans is None:
        return Front(router, lines, outgoing, sharing=sharing, background=streams.run)
    return TracedFront(tracing.spans, router, lines, outgoing, sharing=sharing, background=streams.run)


@asynccontextmanager
async def serving(
    front: Front, listener: socket, *, connections_max: int = CLIENT_CONNECTIONS_MAX
) -> AsyncIterator[None]:
    """Has `front` answer on a listening socket. Leaving the context finishes the requests that were taken."""
    connections = Connections(
        front.answer,
        front.misread,
        front.outgoing,
        connections_max=connections_max,
        lingering_time=BODY_SECONDS_MAX,
        max_line_size=TARGET_BYTES_MAX,
        max_field_size=HEADER_BYTES_MAX,
        max_headers=HEADERS_MAX,
        read_bufsize=READ_BYTES,
    )
    async with background() as tasks:
        watching = tasks.create_task(connections.watch())
        streaming = tasks.create_task(front.background())
        try:
            async with accepting(listener, connections):
                yield
        finally:
            streaming.cancel()
            await asyncio.wait([streaming])  # ends the streams, which never end on their own
            await asyncio.sleep(0)  # requests that have come in are begun, so that their connections are not idle
            connections.pre_shutdown()
            await connections.shutdown(SHUTDOWN_SECONDS_MAX)
            watching.cancel()
