"""What scripts of pages on other sites may read, and how their browsers ask for it first (CORS).

Nothing at PATHS_FOR_ALL needs a token, so every page may read it. What needs one is for pages of the origins
that the operator names. No cookie opens anything here: browsers show a page no answer to a request that sent one unless
`Access-Control-Allow-Credentials` allows it.
"""

from collections.abc import Collection
from typing import Final

from api.http.reply import Reply, header
from api.http.request import HttpRequest
from api.http.router import Handler, IncomingRequest, Router

PATHS_FOR_ALL: Final = ("/board/", "/openapi.json")
OF_TOKENS: Final = ("/tournament/", "/tournaments.json", "/tokens.json", "/tokens/")
PREFLIGHT_SECONDS: Final = 7_200
"""A browser need not ask again for this long."""
REQUEST_HEADERS: Final = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, X-Request-Id"
)
_ALLOWED: Final = b'{"status":200,"message":"The header Allow lists the methods."}'
_EXPOSED: Final = header(
    "Access-Control-Expose-Headers", "ETag, Idempotency-Replayed, Preference-Applied, Retry-After, X-Request-Id"
)
_FOR_ALL: Final = header("Access-Control-Allow-Origin", "*") + _EXPOSED
_BY_ORIGIN: Final = header("Vary", "Origin")


class Sharing:
    """Tells browsers which answers pages of other sites may read: those with a token only if they are of `origins`."""

    def __init__(self, origins: Collection[str] = ()) -> None:
        self._origins = frozenset(origins)
        self._shared = (*PATHS_FOR_ALL, *OF_TOKENS) if origins else PATHS_FOR_ALL

    def add_to(self, router: Router) -> None:
        """Makes the handlers of all shared addresses say who may read their answers, and has them answer OPTIONS."""
        for template, handlers in router.routes():
            if not template.startswith(self._shared):
                continue
            for method, handler in handlers.items():
                if method != "HEAD":  # that of GET
                    router.add(method, template, self._shown(handler))
            router.add("OPTIONS", template, self._options(", ".join(sorted({*handlers, "OPTIONS"}))))

    def lines(self, request: HttpRequest) -> str:
        """The lines of the head by which a page of another site may read the answer; empty: none may."""
        path = request.url.raw_path
        if path.startswith(PATHS_FOR_ALL):
            return _FOR_ALL
        if not path.startswith(self._shared):
            return ""
        origin = request.headers.get("Origin")
        if origin not in self._origins:
            return _BY_ORIGIN
        return header("Access-Control-Allow-Origin", origin) + _EXPOSED + _BY_ORIGIN

    def _shown(self, handler: Handler) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            reply = await handler(incoming)
            reply.headers_sent += self.lines(incoming.request)
            return reply

        return handle

    def _options(self, methods: str) -> Handler:
        asked = (
            header("Access-Control-Allow-Methods", methods)
            + header("Access-Control-Allow-Headers", REQUEST_HEADERS)
            + header("Access-Control-Max-Age", PREFLIGHT_SECONDS)
        )

        async def handle(incoming: IncomingRequest) -> Reply:
            incoming.routine = True
            return Reply(_ALLOWED, headers=header("Allow", methods) + asked + self.lines(incoming.request))

        return handle
