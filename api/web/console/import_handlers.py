"""Imports into a tournament through the console: competitors, competitions, and undoing an import of competitions."""

import asyncio

from api.access.auth import Scope
from api.http.forms import Form, path_ids
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.imports.competition_files import Line, Reader
from api.imports.competition_files import read as read_competitions
from api.imports.competition_imports import judge_competitions, play_competitions
from api.imports.outcomes import BrokenOff
from api.imports.undoing import Undoing, plan_undoing, undo_import
from api.interface.access import refuse_beyond_scope
from api.web.console import competition_import_pages
from api.web.console.answering import (
    Console,
    address_of,
    refused_reply,
    see_other,
    venue_of,
)
from api.web.console.change_page import preview_part
from api.web.console.changes import REGISTER
from api.web.console.competition_import_pages import PASTED_COMPETITIONS_MAX
from api.web.console.frame import Viewer, tournament_address
from api.web.console.import_page import CSV, STEP, import_page, items_form, look_page
from api.web.console.import_page import read as read_lines
from api.web.console.inputs import KEY, Filling, new_key
from engine.domain.errors import Fault, NotFound, TallybookError, Unacceptable, Unreadable
from engine.domain.terms import RankingId
from engine.process.time_slices import in_time_slices
from projections.answers.foreseen import ForeseenQuestion
from projections.answers.lookup import ranking_of
from projections.answers.view import ask
from projections.board.board import Board
from projections.live.tournament import LiveTournament


class ImportHandlers:
    """Shows the effects of an import or of undoing it, then does it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def competitors_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, REGISTER.scope)
        return await self._competitors_page(incoming, viewer, Filling(key=new_key()))

    async def _competitors_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            return import_page(viewer, await venue_of(context, incoming), filling)

    async def import_competitors(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        """Shows the effects of the text, and, once they were seen, registers its competitors."""
        refuse_beyond_scope(viewer.token, REGISTER.scope)
        form = await self._console.body(incoming)
        key = form.pop(KEY, "")
        try:
            async with self._console.handlers.visited(incoming, viewer.token) as context:
                board = context.live.board
                imported = await in_time_slices(read_lines(board, form.get(CSV, "")))
                if form.get(STEP) != "register":
                    filling = Filling(key=key or new_key(), given=form)
                    return look_page(viewer, await venue_of(context, incoming), board, imported, filling)
            receipt = await self._console.handlers.perform(
                incoming, REGISTER, viewer.token, items_form(imported.lines), key=key, if_match=None
            )
        except TallybookError as error:
            return await refused_reply(self._competitors_page, incoming, viewer, error, key=key, form=form)
        return see_other(address_of(incoming, "/competitors", {"done": str(receipt.last_sequence)}))

    async def competitions_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._competitions_page(incoming, viewer, Filling(key=new_key()))

    async def _competitions_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            ranking_id = RankingId(path_ids(incoming.parameters)["ranking_id"])
            ranking_of(context.live.board, ranking_id)
            venue = await venue_of(context, incoming)
            return competition_import_pages.import_page(viewer, venue, context.live.board, ranking_id, filling)

    async def import_competitions(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        """As `import_competitors`, for competitions. Lines that are sent again count as imported already."""
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        form = await self._console.body(incoming)
        key = form.pop(KEY, "")
        try:
            async with self._console.handlers.visited(incoming, viewer.token) as context:
                live, ranking_id = context.live, RankingId(path_ids(incoming.parameters)["ranking_id"])
                ranking_of(live.board, ranking_id)
                reader, lines = _read_competitions(live.board, ranking_id, form)
                if form.get(STEP) != "import":
                    judged = await judge_competitions(self._console.desk, live, ranking_id, reader, lines)
                    filling, venue = Filling(key=key or new_key(), given=form), await venue_of(context, incoming)
                    return competition_import_pages.look_page(viewer, venue, live.board, ranking_id, judged, filling)
                await play_competitions(
                    self._console.desk,
                    live,
                    ranking_id,
                    reader,
                    lines,
                    actor=viewer.token.token_id,
                    stop=asyncio.Event(),
                    progress=_to_nobody,
                )
                done = live.head.sequence
        except TallybookError as error:
            return await refused_reply(self._competitions_page, incoming, viewer, error, key=key, form=form)
        return see_other(address_of(incoming, "/imports", {"done": str(done)}))

    async def ask_to_undo(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._undo_page(incoming, viewer, Filling(key=new_key()))

    async def _undo_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            live = context.live
            planned = await self._planned(incoming, viewer, live)
            previewed = preview_part(context, await ask(context, ForeseenQuestion(planned.events)))
            venue = await venue_of(context, incoming)
            return competition_import_pages.undo_page(viewer, venue, live.board, planned, previewed, filling)

    async def undo(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        form = await self._console.body(incoming)
        key = form.pop(KEY, "")
        try:
            async with self._console.handlers.visited(incoming, viewer.token) as context:
                live = context.live
                planned = await self._planned(incoming, viewer, live)
                await undo_import(
                    self._console.desk,
                    live,
                    planned,
                    actor=viewer.token.token_id,
                    stop=asyncio.Event(),
                    progress=_to_nobody,
                )
                done = live.head.sequence
        except BrokenOff as error:
            return await refused_reply(self._undo_page, incoming, viewer, error, key=key, form=form)
        return see_other(tournament_address(incoming.parameters["tournament"], "/imports", {"done": str(done)}))

    async def _planned(self, incoming: IncomingRequest, viewer: Viewer, live: LiveTournament) -> Undoing:
        """The effects of undoing the import of the path. A token without scope admin can only undo its own."""
        only_of = None if viewer.may(Scope.ADMIN) else viewer.token.token_id
        return await plan_undoing(self._console.desk, live, incoming.parameters["import_name"], only_of=only_of)


def _to_nobody(_done: int, _of: int) -> None:
    """A page shows no progress."""


def _read_competitions(board: Board, ranking_id: RankingId, form: Form) -> tuple[Reader, list[Line]]:
    """The reader and the lines of what was sent. Raises Unreadable and Unacceptable."""
    columns, lines = read_competitions(form.get(CSV, "").removeprefix("\ufeff"), PASTED_COMPETITIONS_MAX)
    if not lines:
        raise Unreadable("There are no lines after the first.")
    try:
        return Reader(board, ranking_id, columns, competition_import_pages.scoring_of(form)), lines
    except NotFound as error:
        raise Unacceptable(error.message) from error
    except Unacceptable as error:
        faults = [Fault(fault.field.removeprefix("--"), fault.message) for fault in error.faults]
        raise Unacceptable(error.message, faults) from error
