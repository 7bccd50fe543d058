"""Bringing the file of another program through the console: what it would make, then all of it."""

import asyncio
from base64 import b64decode
from binascii import Error
from typing import cast, get_args

from api.access.auth import Scope
from api.http.errors import BodyTooLarge
from api.http.forms import Form
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.imports.bringing import Bringing, told
from api.imports.dates import DateOrder
from api.imports.readers.recognising import read_file
from api.interface.access import refuse_beyond_scope
from api.interface.kinds import KindName
from api.web.console.answering import Console, address_of, refused_reply, see_other, venue_of
from api.web.console.bring_import_page import (
    BROUGHT_BYTES_MAX,
    DATES_OPTION,
    FILE,
    FILE_NAME,
    LIKE_OPTION,
    NAME_OPTION,
    bring_page,
    command_text,
    offer_page,
)
from api.web.console.competition_import_pages import PASTED_COMPETITIONS_MAX
from api.web.console.frame import Viewer
from api.web.console.import_handlers import to_nobody
from api.web.console.import_page import MAKE, STEP, is_sure
from api.web.console.inputs import KEY, Filling, new_key
from api.web.page import number_text
from engine.domain.errors import TallybookError, Unacceptable, Unreadable
from engine.process.time_slices import in_time_slices


class BringHandlers:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._page(incoming, viewer, Filling(key=new_key()))

    async def _page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as view:
            return bring_page(viewer, await venue_of(view, incoming), filling)

    async def take(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        slug, given = incoming.parameters["tournament"], dict[str, str]()
        try:
            try:
                given = await self._console.body(incoming)
            except BodyTooLarge:
                raise BodyTooLarge(_beyond(f"{number_text(BROUGHT_BYTES_MAX)} bytes", slug, given)) from None
            given.pop(KEY, "")
            content, name = _file(given)
            reader, brought = await asyncio.to_thread(read_file, content, name)  # it may take a second
            if len(brought.entrants) > PASTED_COMPETITIONS_MAX or len(brought.meetings) > PASTED_COMPETITIONS_MAX:
                most = f"{number_text(PASTED_COMPETITIONS_MAX)} competitors and competitions"
                raise Unacceptable(_beyond(most, slug, given))
            bringing = Bringing(
                brought,
                like=cast("KindName | None", given.get(LIKE_OPTION.name) or None),
                name=given.get(NAME_OPTION.name) or None,
                dates=next((one for one in get_args(DateOrder) if one == given.get(DATES_OPTION.name)), None),
            )
            async with self._console.handlers.visited(incoming, viewer.token) as view:
                plan = await in_time_slices(bringing.judged(reader.name, view.live.board))
                if given.get(STEP) != MAKE or not is_sure(given, plan.questions):
                    venue = await venue_of(view, incoming)
                    return offer_page(viewer, venue, plan, told(plan), Filling(key=new_key(), given=given))
                self._console.desk.refuse_late(view.live.tournament_id)
                await bringing.bring(
                    self._console.desk,
                    view.live,
                    actor=viewer.token.token_id,
                    stop=asyncio.Event(),
                    progress=to_nobody,
                )
                done = view.live.head.sequence
        except TallybookError as error:
            return await refused_reply(self._page, incoming, viewer, error, key="", form=given)
        return see_other(address_of(incoming, "/imports", {"done": str(done)}))


def _file(form: Form) -> tuple[bytes, str]:
    """The file and its name. Text without a name is tried as CSV if nothing else recognises it. Raises Unreadable."""
    if not form.get(FILE_NAME):
        return form.get(FILE, "").encode(), "pasted.csv"
    try:
        return b64decode(form.get(FILE, ""), validate=True), form[FILE_NAME]
    except (Error, ValueError):
        raise Unreadable("The file did not arrive whole; choose it again.") from None


def _beyond(limit: str, slug: str, form: Form) -> str:
    return f"A page brings up to {limit}. Use the command line: {command_text(slug, form)}"
