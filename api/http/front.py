"""Surrounds every request: bounds their number, turns errors into answers, and writes the canonical line and metrics.

It catches every exception that nothing below it has caught: such a defect is answered as an unknown outcome, and logged
with its traceback. A test lists all places that do so (`tests/test_project.py`).
"""

import re
from collections.abc import Awaitable, Callable, Coroutine
from functools import lru_cache, partial
from time import monotonic
from typing import Any, Final

from api.http import problems
from api.http.aiohttp_private import Sent
from api.http.outgoing import Outgoing
from api.http.reply import Reply, new_request_id
from api.http.request import HttpRequest
from api.http.router import IncomingRequest, Router
from api.http.sharing import Sharing
from api.http.turned_away import Door
from engine.domain.errors import QueueFull, Refusal, TallybookError, Unreadable
from engine.process.logs import Logger
from engine.process.telemetry import ERRORS, REQUEST_SECONDS, Lines, adder, by_kind, observer
from engine.process.tracing import Spans

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
"""Methods that metrics tell apart."""
_ERRORS: Final = by_kind(ERRORS, {500, *problems.STATUSES.values()})
_REQUEST_ID: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
_NOT_SHARED: Final = Sharing()
_logger: Final = Logger()


async def _nothing() -> None:
    pass


class Front:
    """The front of one process: its HTTP server calls `answer` for every request. The canonical lines go to `lines`.
    `background` must run meanwhile, until it is cancelled."""

    def __init__(
        self,
        router: Router,
        lines: Lines,
        outgoing: Outgoing,
        *,
        sharing: Sharing = _NOT_SHARED,
        background: Callable[[], Coroutine[None, None, None]] = _nothing,
    ) -> None:
        self.background = background
        self.outgoing = outgoing
        self._router = router
        self._lines = lines
        self._sharing = sharing
        self._door = Door(lines)

    async def answer(self, request: HttpRequest) -> Sent:
        """Answers a request. Raises nothing but CancelledError."""
        if (away := self._door.turned_away(request)) is not None:
            return away
        incoming = IncomingRequest(request, self._request_id(request), monotonic())
        try:
            reply = await self._answered(incoming)
        except QueueFull as full:
            if (away := self._door.turn_away(request, full)) is not None:
                return away
            reply = self._problem(incoming, full)
        except TallybookError as error:
            reply = self._problem(incoming, error)
        except Exception:
            _logger.exception(
                "request_failed", request_id=incoming.request_id, method=request.method, path=request.path
            )
            incoming.facts["code"] = "defect"
            reply = Reply(problems.body(500, problems.DEFECT_MESSAGE), code=500)
        reply.request_id = incoming.request_id
        reply.on_end = partial(self._note, incoming, reply.code)  # the client need not wait for that
        return reply

    def misread(self, request: HttpRequest, error: TallybookError) -> Reply:
        """Answers what is not a request, or arrives too slowly. Ends its connection without reading anything else."""
        incoming = IncomingRequest(request, self._request_id(request), monotonic())
        reply = self._problem(incoming, error)
        reply.closing = reply.lingers = True
        reply.request_id = incoming.request_id
        reply.on_end = partial(self._note, incoming, reply.code)
        return reply

    def _answered(self, incoming: IncomingRequest) -> Awaitable[Reply]:
        request = incoming.request
        if not request.is_ordinary and request.version.major != 1:
            raise Unreadable("The request cannot be read; send it as HTTP/1.1.")
        found = self._router.resolve(request.method, request.url.raw_path)
        incoming.path, incoming.parameters, incoming.known_ids = found.path, found.parameters, found.ids
        if "Expect" in request.headers and request.headers["Expect"].lower() != "100-continue":
            raise Unreadable("The header Expect asks for something that this server does not support; leave it out.")
        return found.handler(incoming)

    def _note(self, incoming: IncomingRequest, status: int) -> None:
        seconds = monotonic() - incoming.taken_at
        method, path = incoming.request.method, incoming.path
        _observer(method, path, status)(seconds)
        if incoming.routine and status == 200:
            return
        self._lines.event(
            "request",
            request_id=incoming.request_id,
            method=method,
            route=path,
            status=status,
            milliseconds=round(seconds * 1000, 2),
            **incoming.facts,
        )

    def _problem(self, incoming: IncomingRequest, error: TallybookError) -> Reply:
        status = problems.STATUSES.get(type(error), 500)
        incoming.facts["code"] = error.code
        faults = error.faults if isinstance(error, Refusal) else ()
        headers = problems.headers(error) + self._sharing.lines(incoming.request)
        reply = Reply(problems.body(status, error.message, faults), code=status, headers=headers)
        reply.closing = isinstance(error, Unreadable)  # the rest of the body is not read
        return reply

    def _request_id(self, request: HttpRequest) -> str:
        """The client's id, or a random one."""
        given = request.headers.get("X-Request-Id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        return new_request_id()


class TracedFront(Front):
    """A Front whose requests are in spans. Bytes that are not a request have none."""

    def __init__(self, spans: Spans, *means: Any, **more: Any) -> None:
        super().__init__(*means, **more)
        self._spans = spans

    async def _answered(self, incoming: IncomingRequest) -> Reply:
        request = incoming.request
        with self._spans.request(method_label(request.method), request.headers) as incoming.span:
            incoming.facts["trace_id"] = self._spans.trace_id(incoming.span)
            return await super()._answered(incoming)

    def _note(self, incoming: IncomingRequest, status: int) -> None:
        super()._note(incoming, status)
        if hasattr(incoming, "span"):
            facts = incoming.facts | {"request_id": incoming.request_id}
            self._spans.end_request(incoming.span, method_label(incoming.request.method), incoming.path, status, facts)


def method_label(method: str) -> str:
    """The method as a label. Clients can invent methods, and each would be another series of figures."""
    return method if method in METHODS else "other"


@lru_cache(maxsize=10_000)
def _observer(method: str, path: str, status: int) -> Callable[[float], None]:
    """The function that observes such answers. There are few, and looking one up each time takes longer than
    observing."""
    observe = observer(REQUEST_SECONDS.labels(method_label(method), path, status))
    if status < 400:
        return observe
    count = adder(_ERRORS[status])

    def observe_error(seconds: float) -> None:
        observe(seconds)
        count(1)

    return observe_error
