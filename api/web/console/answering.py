"""What the handlers of the console share: reading requests, and answering them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn

from api.desk.desk import Desk
from api.http import problems
from api.http.body import Bodies
from api.http.errors import MediaTypeUnsupported, TooManyRequests
from api.http.forms import Form
from api.http.reply import Reply, header
from api.http.router import IncomingRequest
from api.imports.importer import BrokenOff
from api.interface.declarations import RecallContext
from api.interface.fields import FROM_0, FROM_1, ID, Field, Fields, read_query
from api.interface.handlers import Handlers
from api.interface.sports import sport_of
from api.web.console.frame import CONSOLE_HEADERS, Venue, Viewer, tournament_address
from api.web.console.inputs import Filling, new_key
from api.web.files import StaticFiles
from api.web.html import HTML_TYPE
from api.web.page import Query
from api.web.words import Words
from engine.domain.errors import (
    Forbidden,
    KeyReused,
    NotFound,
    PreconditionFailed,
    Refusal,
    TallybookError,
    Unauthenticated,
    Unavailable,
    Unreadable,
)

OFFSET_FIELD: Final = Field("offset", FROM_0, "the number to skip")
DONE_FIELD: Final = Field("done", FROM_1, "the event that the page before has recorded")
UNITY_FIELD: Final = Field("unity", ID, "which unity; absent: the table", argument="unity_id")
_NOT_OF_FORMS: Final = (Forbidden, NotFound, TooManyRequests, Unauthenticated)
"""Refusals that no other filling of a form would avoid."""


class Console:
    """What all handlers of the console share. `handlers` answer the operations; `desk` takes imports, and its database
    has tokens, sessions and the registry."""

    def __init__(self, handlers: Handlers, desk: Desk, static: StaticFiles) -> None:
        self.handlers = handlers
        self.desk = desk
        self.database = desk.database
        self.static = static
        self._bodies = Bodies()

    async def body(self, incoming: IncomingRequest) -> dict[str, str]:
        return dict(await self._bodies.form(incoming, _refuse_json))


class PageAsked:
    """A request: the ids in its path, and its `query` as received and as read."""

    def __init__(self, incoming: IncomingRequest, fields: Fields) -> None:
        items = incoming.request.query
        self.arguments: dict[str, Any] = read_query(items, fields)
        self.query: Query = dict(items)
        self.ids: Mapping[str, Any] = incoming.ids


async def venue_of(context: RecallContext, incoming: IncomingRequest) -> Venue:
    sport = sport_of(context.live.board.rankings.values())
    words = Words("en", context.publication.presentation.zone, sport)
    slug, head = incoming.parameters["tournament"], context.live.head
    return Venue(slug=slug, name=await context.name(), head=head, words=words, sport=sport)


def address_of(incoming: IncomingRequest, below: str, query: Query | None = None) -> str:
    """The address of a page below the tournament of the request, with the ids of its path."""
    ids = incoming.ids
    return tournament_address(incoming.parameters["tournament"], below.format(**ids), query)


def refused_filling(error: TallybookError, key: str, form: Form, if_match: str | None) -> Filling:
    """The form as it was sent, with its faults. It keeps its key, so that nothing is recorded twice, unless the key
    belongs to another request. After a conflict, sending the form again overrides what has changed meanwhile."""
    return Filling(
        key=new_key() if isinstance(error, KeyReused) or not key else key,
        given=form,
        if_match=None if isinstance(error, PreconditionFailed) else if_match,
        message=error.message,
        faults=error.faults if isinstance(error, Refusal) else (),
    )


async def refused_reply(
    page: Callable[[IncomingRequest, Viewer, Filling], Awaitable[bytes]],
    incoming: IncomingRequest,
    viewer: Viewer,
    error: TallybookError,
    *,
    key: str,
    form: Form,
    if_match: str | None = None,
) -> Reply:
    """The `page` of the form, as it was sent, with its faults. Raises the error if no other filling would avoid it, or
    if the page is unavailable: that says nothing of what became of the form."""
    if isinstance(error, _NOT_OF_FORMS):
        raise error
    try:
        body = await page(incoming, viewer, refused_filling(error, key, form, if_match))
    except Unavailable:
        raise error from None
    return problem_reply(incoming, error, body)


def page_reply(body: bytes, *, code: int = 200, headers: str = "") -> Reply:
    return Reply(body, code=code, media_type=HTML_TYPE, headers=CONSOLE_HEADERS + headers)


def problem_reply(incoming: IncomingRequest, error: TallybookError, body: bytes) -> Reply:
    incoming.facts["code"] = error.code
    why = error.failure if isinstance(error, BrokenOff) else error
    reply = page_reply(body, code=problems.STATUSES.get(type(why), 500), headers=problems.headers(why))
    reply.closing = isinstance(error, Unreadable)  # the rest of the body is not worth reading
    return reply


def see_other(address: str, headers: str = "") -> Reply:
    """Redirects to a page, so that reloading it sends nothing again. The address is one of ours, in ASCII."""
    return page_reply(b"", code=303, headers=headers + header("Location", address))


def _refuse_json(_body: bytes) -> NoReturn:
    raise MediaTypeUnsupported("Send the form as a browser does.")
