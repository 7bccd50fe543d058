"""What describes the service itself: its root, its documentation, its OpenAPI document, and the page of addresses where
nothing is. They are the same for everybody."""

from collections.abc import Awaitable, Callable
from typing import Final

from api.http.compression import Compression
from api.http.preferences import accepted_type
from api.http.reply import JSON, REVALIDATED, Reply
from api.http.router import NOTHING_HERE, Handler, IncomingRequest, Router
from api.http.throttle import Throttle, address_of
from api.interface import openapi
from api.interface.public.view import PublicViews
from api.interface.rendering import TaggedBody, tagged_body
from api.web.docs.docs_page import docs_page
from api.web.docs.start_page import start_page
from api.web.files import StaticFiles
from api.web.html import HTML_TYPE
from api.web.page import PAGE_HEADERS
from engine.domain.errors import NotFound

START: Final = "/"
DOCUMENTATION: Final = "/docs"
OPENAPI: Final = "/openapi.json"
_HTML: Final = "text/html"


def add_to(
    router: Router,
    compression: Compression,
    static: StaticFiles,
    views: PublicViews,
    *,
    nothing_at: Callable[[str], str],
    visits: Throttle | None,
    proxies: int,
) -> None:
    """Adds these pages. The root leads to the boards that their organisers listed. `nothing_at`: says that nothing is
    at a path."""

    described = tagged_body(openapi.document())

    async def description(incoming: IncomingRequest) -> Reply:
        return await compression.reply(
            incoming.request, described.body, etag=described.etag, kept=REVALIDATED, is_fixed=True
        )

    def sent(incoming: IncomingRequest, page: TaggedBody, *, is_fixed: bool = False) -> Awaitable[Reply]:
        return compression.reply(
            incoming.request,
            page.body,
            etag=page.etag,
            media_type=HTML_TYPE,
            headers=PAGE_HEADERS,
            kept=REVALIDATED,
            is_fixed=is_fixed,
        )

    def add(path: str, page: bytes) -> None:
        made = tagged_body(page)

        async def answer(incoming: IncomingRequest) -> Reply:
            return await sent(incoming, made, is_fixed=True)

        router.add("GET", path, answer)

    router.add_nothing(_nothing_here(start_page(static, NOTHING_HERE), nothing_at))

    async def start(incoming: IncomingRequest) -> Reply:
        if visits is not None:
            visits.take(address_of(incoming.request, proxies=proxies))
        boards = [(f"/board/{slug}", name) for slug, name in await views.listed()]
        made = tagged_body(start_page(static, boards=boards))
        return await sent(incoming, made)

    router.add("GET", OPENAPI, description)
    router.add("GET", START, start)
    add(DOCUMENTATION, docs_page(static))


def _nothing_here(page: bytes, nothing_at: Callable[[str], str]) -> Handler:
    async def answer(incoming: IncomingRequest) -> Reply:
        """The page for browsers. Raises NotFound for programs."""
        accepted = incoming.request.headers.getall("Accept", ())
        if accepted_type(accepted, (JSON, _HTML)) != _HTML:
            raise NotFound(nothing_at(incoming.request.url.raw_path))
        incoming.facts["code"] = NotFound.code
        return Reply(page, code=404, media_type=HTML_TYPE, headers=PAGE_HEADERS)

    return answer
