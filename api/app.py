"""The HTTP server of one process: aiohttp's, with our front behind it, and its limits."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
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
from api.front import Front
from api.router import Router
from api.routes import Operations
from engine.telemetry import Lines

KEEPALIVE_SECONDS: Final = 75.0
SHUTDOWN_SECONDS_MAX: Final = 10.0
"""For requests under way, when the process ends; aiohttp waits that long twice."""
HEADER_BYTES_MAX: Final = 8_190
"""Of the request line, and of each header."""


def make_front(desk: Desk, lines: Lines, *, open_metrics: bool = False) -> Front:
    """The front that answers with `desk` and says so on `lines`."""
    router = Router()
    handlers = Operations(desk, Guard(desk.database))
    handlers.add_to(router)
    operations.add_to(router, operations=handlers, database=desk.database, open_metrics=open_metrics)
    return Front(router, lines)


@asynccontextmanager
async def serving(front: Front, listener: socket) -> AsyncIterator[None]:
    """Has `front` answer on a listening socket. Leaving it finishes the requests that were taken."""
    server = web.Server(
        front.answer,
        request_factory=_request_factory(),
        access_log=None,
        logger=_logger(),
        auto_decompress=False,
        keepalive_timeout=KEEPALIVE_SECONDS,
        lingering_time=BODY_SECONDS_MAX,
        max_line_size=HEADER_BYTES_MAX,
        max_field_size=HEADER_BYTES_MAX,
    )
    runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS_MAX)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()


def _request_factory() -> Callable[..., web.BaseRequest]:
    """Makes the requests of the running loop, which to ask for at each one takes a call of the system."""
    return partial(web.BaseRequest, loop=asyncio.get_running_loop(), client_max_size=BODY_BYTES_MAX)


def _logger() -> logging.Logger:
    """What aiohttp reports its troubles to, but for what is not HTTP: it would cite that, and a token with it."""
    logger = server_logger.getChild("tallybook")
    logger.addFilter(_cites_no_request)
    return logger


def _cites_no_request(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)
