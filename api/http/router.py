"""Finds the handler of a request by the template that its path matches and by its method."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from msgspec import Struct

from api.http.errors import MethodNotAllowed
from api.http.reply import Reply
from api.http.request import HttpRequest
from engine.domain.errors import NotFound
from engine.domain.ids import parse_id

if TYPE_CHECKING:
    from opentelemetry.trace import Span

PATHS_KEPT_MAX: Final = 10_000
PATH_KEPT_CHARACTERS_MAX: Final = 300
"""A process remembers the handlers of this many paths of up to this many characters. It looks up longer paths each
time."""

LIKENESS: Final = 0.8
"""How like an unknown path another must be, from 0 to 1, to be named in its place."""

_GIVING_WAY_SECONDS: Final = 0.0005
"""How long a request waits for a thread that makes a router. By default, it would wait 5 ms each time it goes on."""

PathIds = Mapping[str, Any]
NOTHING_HERE: Final = "There is nothing at this address."
NO_PATH: Final = "none"
"""The template of a request whose path matches none."""


class IncomingRequest:
    """A request that is being answered, as the operations see it.

    `taken_at` is when all of it had come in, by the monotonic clock. `path` is the template that its path matches,
    NO_PATH before it is found; `parameters` are the variable parts of the path, by name; `facts`: the additional fields
    of its canonical line. A `routine` request has no line if it succeeds. `span` is set while it is traced.
    """

    __slots__ = ("facts", "known_ids", "parameters", "path", "request", "request_id", "routine", "span", "taken_at")
    span: "Span"

    def __init__(self, request: HttpRequest, request_id: str, taken_at: float) -> None:
        self.request = request
        self.request_id = request_id
        self.taken_at = taken_at
        self.path = NO_PATH
        self.parameters: Mapping[str, str] = {}
        self.known_ids: PathIds | None = None
        self.facts: dict[str, object] = {}
        self.routine = False

    @property
    def ids(self) -> PathIds:
        """The ids among the parameters, by name. Raises NotFound for a text that cannot be an id."""
        return _ids_of(self.parameters) if self.known_ids is None else self.known_ids


Handler = Callable[[IncomingRequest], Awaitable[Reply]]


class Found(Struct, frozen=True):
    """How a request is answered. `path` is the template, `parameters` its variable parts, decoded. `ids` has the ids
    among them; None: one of them cannot be an id."""

    path: str
    handler: Handler
    parameters: Mapping[str, str]
    ids: PathIds | None


class Router:
    """Templates are written like /tournament/{tournament}/rankings.json. Those added first are tried first."""

    def __init__(self) -> None:
        self._handlers: dict[str, dict[str, Handler]] = {}  # by template and method
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._found: dict[tuple[str, str], Found] = {}
        self._nothing: Found | None = None
        self._later: Callable[[], Router] | None = None
        self._completing: asyncio.Task[None] | None = None

    def add_nothing(self, handler: Handler) -> None:
        """Has `handler` answer GET and HEAD at every other path. Without one, they are refused."""
        self._nothing = Found(NO_PATH, handler, {}, {})

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Has `handler` answer `method` at the template `path`. A handler of GET answers HEAD as well. A part {name...}
        may contain slashes."""
        handlers = self._handlers.setdefault(path, {})
        handlers[method] = handler
        if method == "GET":
            handlers["HEAD"] = handler
        self._patterns[path] = re.compile(re.sub(r"\\{(\w+)(\\\.)*\\}", _part, re.escape(path)))

    def add_later(self, make: Callable[[], "Router"]) -> None:
        """Has the router that `make` returns answer what no template here matches. A thread makes it at the first such
        request: a process without one needs neither the time nor the memory."""
        self._later = make

    async def complete(self) -> None:
        """Makes what was added for later, unless it is there. Other requests are answered meanwhile."""
        if self._later is not None:
            if self._completing is None:
                self._completing = asyncio.create_task(self._complete(self._later))
            await asyncio.shield(self._completing)

    async def _complete(self, make: Callable[[], "Router"]) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_GIVING_WAY_SECONDS)
        try:
            made = await asyncio.to_thread(make)
        finally:
            sys.setswitchinterval(interval)
            self._completing = None
        self._handlers |= made._handlers
        self._patterns |= made._patterns
        self._nothing = made._nothing
        self._later = None
        self._found.clear()

    async def _answer_later(self, incoming: IncomingRequest) -> Reply:
        await self.complete()
        found = self.resolve(incoming.request.method, incoming.request.url.raw_path)
        incoming.path, incoming.parameters, incoming.known_ids = found.path, found.parameters, found.ids
        return await found.handler(incoming)

    def routes(self) -> list[tuple[str, Mapping[str, Handler]]]:
        """All templates, with the handlers of their methods."""
        return [(path, dict(handlers)) for path, handlers in self._handlers.items()]

    def resolve(self, method: str, path: str) -> Found:
        """Finds the handler of `path`, which is percent-encoded as it was sent. Raises NotFound and
        MethodNotAllowed."""
        found = self._found.get((method, path))
        if found is None:
            found = self._look_up(method, path)
            if len(path) <= PATH_KEPT_CHARACTERS_MAX:
                if len(self._found) >= PATHS_KEPT_MAX:
                    self._found.clear()
                self._found[method, path] = found
        return found

    def _look_up(self, method: str, path: str) -> Found:
        for template, pattern in self._patterns.items():
            if match := pattern.fullmatch(path):
                handlers = self._handlers[template]
                if method not in handlers:
                    raise MethodNotAllowed("This address does not allow this method.", sorted(handlers))
                parameters = {name: unquote(text) for name, text in match.groupdict().items()}
                try:
                    ids = _ids_of(parameters)
                except NotFound:
                    ids = None  # refused once the client is authenticated
                return Found(template, handlers[method], parameters, ids)
        if self._later is not None:
            return Found(NO_PATH, self._answer_later, {}, {})
        if self._nothing is not None and method in ("GET", "HEAD"):
            return self._nothing
        raise NotFound(self.nothing_at(path))

    def nothing_at(self, path: str) -> str:
        """Says that nothing is at `path`, and which path of as many parts is most like it."""
        path = path.rstrip("/")
        if len(path) <= PATH_KEPT_CHARACTERS_MAX:
            templates = {
                _bare(template): template for template in self._patterns if template.count("/") == path.count("/")
            }
            for like in get_close_matches(_bare(path), templates, n=1, cutoff=LIKENESS):
                return f"{NOTHING_HERE} The most similar one is {templates[like]}."
        return NOTHING_HERE


def _bare(path: str) -> str:
    """A path or template without the names of tournaments, ids and parameters, which say nothing about likeness."""
    return re.sub(r"(?<=^/tournament/)[^/]+|(?<=^/board/)[^/]+|{\w+[.]*}|\b[0-9]+\b", "", path, flags=re.ASCII)


def _part(named: re.Match[str]) -> str:
    return f"(?P<{named[1]}>{'.+' if named[2] else '[^/]+'})"


def _ids_of(parameters: Mapping[str, str]) -> PathIds:
    """The ids among the parameters of a path, by name. Raises NotFound for a text that cannot be an id."""
    ids: dict[str, int] = {}
    for name, text in parameters.items():
        if name != "tournament":
            number = parse_id(text)
            if number is None:
                what, said = name.removesuffix("_id"), repr(text[:40])
                raise NotFound.of(what, said) if "tournament" in parameters else NotFound(f"There is no {what} {said}.")
            ids[name] = number
    return ids
