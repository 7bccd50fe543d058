"""Around every request: a bound on how many there are, errors as answers, one canonical line, metrics.

One of the two places that catch every exception (the worker's loop is the other): here, so that a defect is answered
as what it is, an unknown outcome, and stands in the log with its traceback.
"""

import re
import time
from functools import cache, partial
from itertools import count
from secrets import token_hex
from typing import Final

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import Histogram

from api import problems
from api.routes import facts_of
from engine.errors import MethodNotAllowed, NotFound, QueueFull, Refusal, TallybookError, Unreadable
from engine.telemetry import REQUEST_SECONDS

REQUESTS_MAX: Final = 5_000
"""Requests under way in one process; further ones are answered 503 at once."""
_REQUEST_ID: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
_REQUEST_NUMBERS: Final = count(1)
_PROCESS_ID: Final = cache(partial(token_hex, 4))
_logger = structlog.get_logger()


class Watch:
    """The middleware of one process."""

    def __init__(self) -> None:
        self._under_way = 0

    def middleware(self) -> Middleware:
        @web.middleware
        async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._around(request, handler)

        return around

    async def _around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started_at = time.perf_counter()
        request_id = _request_id(request)
        self._under_way += 1
        try:
            response = await self._answered(request, handler, request_id)
        finally:
            self._under_way -= 1
        response.headers["X-Request-Id"] = request_id
        _note(request, response.status, request_id, time.perf_counter() - started_at)
        return response

    async def _answered(self, request: web.Request, handler: Handler, request_id: str) -> web.StreamResponse:
        try:
            if request.version.major != 1:
                raise Unreadable("The request cannot be read; send it as HTTP/1.1.")
            if self._under_way > REQUESTS_MAX:
                raise QueueFull
            return await handler(request)
        except TallybookError as error:
            return _problem(request, error)
        except web.HTTPException as error:
            return _problem(request, _ours(error))
        except Exception:
            _logger.exception("request_failed", request_id=request_id, method=request.method, path=request.path)
            facts_of(request)["code"] = "defect"
            return _response(500, problems.body(500, problems.DEFECT_MESSAGE))


def _problem(request: web.Request, error: TallybookError) -> web.Response:
    status = problems.STATUSES.get(type(error), 500)
    facts_of(request)["code"] = error.code
    faults = error.faults if isinstance(error, Refusal) else ()
    response = _response(status, problems.body(status, error.message, faults))
    response.headers.update(problems.headers(error))
    if isinstance(error, Unreadable):
        response.force_close()  # what is left of the body is not worth reading
    return response


def _response(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


def _ours(error: web.HTTPException) -> TallybookError:
    """What aiohttp itself refuses, as one of our errors."""
    if isinstance(error, web.HTTPMethodNotAllowed):
        return MethodNotAllowed("This address does not take this method.", sorted(error.allowed_methods))
    if isinstance(error, web.HTTPNotFound):
        return NotFound("There is nothing at this address.")
    return Unreadable(f"The request cannot be read: {error.reason}.")


def _request_id(request: web.Request) -> str:
    """The client's, or one of ours: random for the process, counted for the request."""
    given = request.headers.get("X-Request-Id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else f"{_PROCESS_ID()}-{next(_REQUEST_NUMBERS)}"


def _note(request: web.Request, status: int, request_id: str, seconds: float) -> None:
    resource = request.match_info.route.resource
    route = resource.canonical if resource is not None else "none"
    _figures(route, status).observe(seconds)
    _logger.info(
        "request",
        request_id=request_id,
        method=request.method,
        route=route,
        status=status,
        milliseconds=round(seconds * 1000, 2),
        **facts_of(request),
    )


@cache
def _figures(route: str, status: int) -> Histogram:
    """Of the few pairs there are; to find them by their labels each time takes longer than to count."""
    return REQUEST_SECONDS.labels(route, status)
