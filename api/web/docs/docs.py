"""The pages that are about the service itself: its root, and its documentation. Both are the same for everybody."""

from typing import Final

from api.http.compression import Compression
from api.http.reply import Reply
from api.http.router import IncomingRequest, Router
from api.interface.rendering import tagged_body
from api.web.docs.docs_page import docs_page
from api.web.docs.start_page import start_page
from api.web.files import StaticFiles
from api.web.html import HTML_TYPE
from api.web.page import PAGE_HEADERS

START: Final = "/"
DOCUMENTATION: Final = "/docs"


def add_to(router: Router, compression: Compression, static: StaticFiles) -> None:
    """Adds these pages."""

    def add(path: str, page: bytes) -> None:
        made = tagged_body(page)

        async def answer(incoming: IncomingRequest) -> Reply:
            return await compression.reply(
                incoming.request, made.body, etag=made.etag, media_type=HTML_TYPE, headers=PAGE_HEADERS
            )

        router.add("GET", path, answer)

    add(START, start_page(static))
    add(DOCUMENTATION, docs_page(static))
