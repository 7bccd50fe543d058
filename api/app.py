"""The aiohttp application of one process: routes, middleware, limits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import socket
from typing import Final

from aiohttp import web

from api import operations
from api.auth import Guard
from api.body import BODY_SECONDS_MAX
from api.desk import Desk
from api.forms import BODY_BYTES_MAX
from api.middleware import Watch
from api.routes import Operations

KEEPALIVE_SECONDS: Final = 75.0
SHUTDOWN_SECONDS_MAX: Final = 10.0
"""For requests under way, when the process ends; aiohttp waits that long twice."""
HEADER_BYTES_MAX: Final = 8_190
"""Of the request line, and of each header."""


def make_app(desk: Desk, watch: Watch, *, open_metrics: bool = False) -> web.Application:
    """The application that answers with `desk`."""
    app = web.Application(middlewares=[watch.middleware()], client_max_size=BODY_BYTES_MAX)
    handlers = Operations(desk, Guard(desk.database))
    handlers.add_to(app.router)
    operations.add_to(app.router, operations=handlers, database=desk.database, open_metrics=open_metrics)
    return app


@asynccontextmanager
async def serving(app: web.Application, listener: socket) -> AsyncIterator[None]:
    """Serves `app` on a listening socket. Leaving it finishes the requests that were taken."""
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        auto_decompress=False,
        keepalive_timeout=KEEPALIVE_SECONDS,
        lingering_time=BODY_SECONDS_MAX,
        max_line_size=HEADER_BYTES_MAX,
        max_field_size=HEADER_BYTES_MAX,
        shutdown_timeout=SHUTDOWN_SECONDS_MAX,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()
