"""Competitors that leave: one that was added by mistake is removed, one that took part withdraws."""

from typing import Final

from msgspec.structs import replace

from api.access.auth import Scope
from api.desk.desk import changed_already
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.interface.access import refuse_beyond_scope
from api.interface.fields import FormReader
from api.web.console.answering import (
    Console,
    address_of,
    page_reply,
    problem_reply,
    refused_reply,
    see_other,
    venue_of,
)
from api.web.console.change_page import seen_form
from api.web.console.frame import Viewer
from api.web.console.import_page import STEP
from api.web.console.inputs import KEY, Filling, new_key
from api.web.console.leaving_pages import (
    KEEPS_OPTIONS,
    KEEPS_RESULTS,
    removal_page,
    withdrawal_page,
    withdrawal_part,
)
from engine.domain.errors import Conflict, TallybookError
from engine.domain.terms import CompetitorId
from projections.answers.registrations import RemovingQuestion, WithdrawingQuestion
from projections.answers.view import ask

_FORM: Final = FormReader((KEEPS_RESULTS,))


class LeavingHandlers:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def removal_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            competitor_id, venue = CompetitorId(incoming.ids["competitor_id"]), await venue_of(context, incoming)
            name = context.names.competitor(competitor_id).name
            try:
                await ask(context, RemovingQuestion(competitor_id=competitor_id, words=venue.sport))
            except Conflict as error:
                page = removal_page(viewer, venue, competitor_id, name, refused=error.message)
                return problem_reply(incoming, error, page)
            return removal_page(viewer, venue, competitor_id, name)

    async def remove(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Takes the competitor out of its rankings, looks again at what it takes part in, and erases it."""
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        await self._console.body(incoming)
        competitor_id = CompetitorId(incoming.ids["competitor_id"])
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            desk, live, venue = self._console.desk, context.live, await venue_of(context, incoming)
            question = RemovingQuestion(competitor_id=competitor_id, words=venue.sport)
            desk.refuse_late(live.tournament_id)
            if context.competitor(competitor_id).erased is None:  # else the form was sent twice
                with changed_already():
                    *leaving, _ = (await ask(context, question)).commands
                    await desk.submit_all(live, leaving, actor=viewer.token.token_id)
                    await desk.submit_all(live, (await ask(context, question)).commands, actor=viewer.token.token_id)
            done = live.head.sequence
        return see_other(address_of(incoming, "/competitors", {"done": str(done)}))

    async def withdrawal_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        return await self._withdrawal_page(incoming, viewer, Filling(key=new_key()))

    async def _withdrawal_page(
        self, incoming: IncomingRequest, viewer: Viewer, filling: Filling, question: WithdrawingQuestion | None = None
    ) -> bytes:
        """`question`: its answer is shown; None: the form was not sent, or is refused."""
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            competitor_id, venue = CompetitorId(incoming.ids["competitor_id"]), await venue_of(context, incoming)
            name = context.names.competitor(competitor_id).name
            foreseen = None
            if question is not None:
                foreseen = withdrawal_part(venue, context.names, await ask(context, question))
            filling = replace(filling, options={KEEPS_RESULTS.name: KEEPS_OPTIONS}, sport=venue.sport)
            return withdrawal_page(viewer, venue, competitor_id, name, filling, foreseen)

    async def withdraw(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Shows the effects, and withdraws the competitor once they were seen. A form that is sent again does what is
        left to do."""
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        form = await self._console.body(incoming)
        key, seen = form.pop(KEY, "") or new_key(), form.pop(STEP, None)
        try:
            competitor_id = CompetitorId(incoming.ids["competitor_id"])
            question = WithdrawingQuestion(competitor_id=competitor_id, **_FORM.read(form))
            if seen != seen_form(form):
                return page_reply(await self._withdrawal_page(incoming, viewer, Filling(key=key, given=form), question))
            async with self._console.handlers.visited(incoming, viewer.token) as context:
                desk, live = self._console.desk, context.live
                desk.refuse_late(live.tournament_id)
                commands = (await ask(context, question)).commands
                with changed_already():
                    await desk.submit_all(live, commands, actor=viewer.token.token_id)
                done = live.head.sequence
        except TallybookError as error:
            return await refused_reply(self._withdrawal_page, incoming, viewer, error, key=key, form=form)
        return see_other(address_of(incoming, "/competitors", {"done": str(done)}))
