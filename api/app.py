"""The aiohttp application of one process: routes, middleware, limits."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from socket import socket
from typing import Final

from aiohttp import web
from aiohttp.http import HttpProcessingError
from aiohttp.log import server_logger

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
        logger=_logger(),
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


def _logger() -> logging.Logger:
    """What aiohttp reports its troubles to, but for what is not HTTP: it would cite that, and a token with it."""
    logger = server_logger.getChild("tallybook")
    logger.addFilter(_cites_no_request)
    return logger


def _cites_no_request(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)
