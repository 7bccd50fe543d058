"""Imports into a tournament through the console: competitors, competitions, and undoing an import of competitions."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence as Items
from typing import ClassVar, Generic, TypeVar

from api.access.auth import Scope
from api.http.forms import Form
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.imports.competitions import CompetitionLine, Competitions, read_competitions
from api.imports.competitors import CompetitorLine, Competitors, read_competitors
from api.imports.importer import BrokenOff, Importer
from api.imports.kinds import FileKind, FileLine
from api.imports.rows import FileRows, read_csv
from api.imports.undoing import Undoing, plan_undoing, undo_import
from api.interface.access import refuse_beyond_scope
from api.interface.competition_names import competition_text
from api.web.console import competition_import_pages
from api.web.console.answering import Console, address_of, refused_reply, see_other, venue_of
from api.web.console.change_page import preview_part
from api.web.console.competition_import_pages import (
    PASTED_COMPETITIONS_MAX,
    competitions_look,
    competitions_offer,
    dates_of,
)
from api.web.console.first_steps import STEP_MATCHES, STEP_NAMES, first_steps, page_after
from api.web.console.frame import Venue, Viewer, tournament_address
from api.web.console.import_page import (
    BACK,
    CSV,
    MAKE,
    STEP,
    Look,
    Offer,
    competitors_look,
    competitors_offer,
    import_page,
    is_sure,
    leaves_out,
    look_page,
)
from api.web.console.inputs import KEY, Filling, new_key
from engine.domain.errors import QueueFull, TallybookError, Unreadable
from engine.domain.terms import ITEMS_MAX, CompetitionId, RankingId
from projections.answers.foreseen import ForeseenQuestion
from projections.answers.lookup import ranking_of
from projections.answers.view import View, ask

_Line = TypeVar("_Line", bound=FileLine)


class ImportHandlers(ABC, Generic[_Line]):
    """Shows the effects of a form, then imports its lines. Those that are sent again count as imported already. `path`:
    of the page, below the tournament; `then`: of the page that follows, unless it is the first time in a new
    tournament, of which this is the `step`."""

    path: ClassVar[str]
    then: ClassVar[str]
    step: ClassVar[int]

    def __init__(self, console: Console) -> None:
        self._console = console

    @abstractmethod
    def _offer(self, view: View, venue: Venue, incoming: IncomingRequest, filling: Filling) -> Offer:
        """Raises NotFound."""

    @abstractmethod
    def _kind(self, view: View, incoming: IncomingRequest, form: Form) -> FileKind[_Line]:
        """Raises Unreadable, Unacceptable and NotFound."""

    @abstractmethod
    def _look(self, view: View, venue: Venue, incoming: IncomingRequest, new: Items[_Line]) -> Look: ...

    async def form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._page(incoming, viewer, Filling(key=new_key()))

    async def _page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as view:
            venue = await venue_of(view, incoming)
            return import_page(viewer, venue, self._offer(view, venue, incoming, filling), filling)

    async def take(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        form = await self._console.body(incoming)
        key = form.pop(KEY, "")
        if form.get(STEP) == BACK:
            return await self._page(incoming, viewer, Filling(key=new_key(), given=form))
        try:
            async with self._console.handlers.visited(incoming, viewer.token) as view:
                kind = self._kind(view, incoming, form)
                if not kind.rows:
                    raise Unreadable("There are no lines after the first.")
                importer = Importer(self._console.desk, view.live, kind, asyncio.Event())
                await importer.judge()
                if form.get(STEP) != MAKE or not is_sure(form, importer.questions):
                    venue, filling = await venue_of(view, incoming), Filling(key=key or new_key(), given=form)
                    offer, new = self._offer(view, venue, incoming, filling), importer.waiting
                    return look_page(
                        viewer,
                        venue,
                        offer,
                        self._look(view, venue, incoming, new),
                        kind.warning,
                        filling,
                        new=len(new),
                        already=len(importer.lines) - len(new),
                        done=kind.done,
                        left_out=kind.left_out,
                        questions=importer.questions,
                    )
                self._console.desk.refuse_late(view.live.tournament_id)
                is_first = not first_steps(view, viewer)[self.step].is_done
                await importer.submit(viewer.token.token_id, to_nobody)
                done = view.live.head.sequence
                then = page_after(view, viewer, self.step, self.then) if is_first else self.then
        except TallybookError as error:
            return await refused_reply(self._page, incoming, viewer, error, key=key, form=form)
        return see_other(address_of(incoming, then, {"done": str(done)}))


class CompetitorImports(ImportHandlers[CompetitorLine]):
    path = "/competitors/import"
    then = "/competitors"
    step = STEP_NAMES

    def _offer(self, view: View, venue: Venue, incoming: IncomingRequest, filling: Filling) -> Offer:
        return competitors_offer(venue, filling)

    def _kind(self, view: View, incoming: IncomingRequest, form: Form) -> Competitors:
        return read_competitors(_rows(form), ITEMS_MAX, leave_out=leaves_out(form))

    def _look(self, view: View, venue: Venue, incoming: IncomingRequest, new: Items[CompetitorLine]) -> Look:
        return competitors_look(view.names, new)


class CompetitionImports(ImportHandlers[CompetitionLine]):
    path = "/rankings/{ranking_id}/import"
    then = "/imports"
    step = STEP_MATCHES

    def _offer(self, view: View, venue: Venue, incoming: IncomingRequest, filling: Filling) -> Offer:
        ranking_id = ranking_id_of(incoming)
        return competitions_offer(venue, ranking_id, ranking_of(view.live.board, ranking_id).name, filling)

    def _kind(self, view: View, incoming: IncomingRequest, form: Form) -> Competitions:
        return read_competitions(
            _rows(form),
            ranking_id_of(incoming),
            PASTED_COMPETITIONS_MAX,
            leave_out=leaves_out(form),
            dates=dates_of(form),
        )

    def _look(self, view: View, venue: Venue, incoming: IncomingRequest, new: Items[CompetitionLine]) -> Look:
        ranking = ranking_of(view.live.board, ranking_id_of(incoming))
        unities = {unity_id: (unity.name, unity.notation) for unity_id, unity in ranking.unities.items()}
        return competitions_look(venue, view.names, unities, new)


def _rows(form: Form) -> FileRows:
    return read_csv(form.get(CSV, "").encode())


def ranking_id_of(incoming: IncomingRequest) -> RankingId:
    return RankingId(incoming.ids["ranking_id"])


class UndoHandlers:
    """Shows the effects of undoing an import, then undoes it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def ask(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._page(incoming, viewer, Filling(key=new_key()))

    async def _page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as view:
            board, names = view.live.board, view.names
            planned = await self._planned(incoming, viewer, view)
            previewed = preview_part(view.names, await ask(view, ForeseenQuestion(planned.events)))
            venue = await venue_of(view, incoming)

            def text_of(competition_id: CompetitionId) -> str:
                return competition_text(names, board.competitions[competition_id])

            return competition_import_pages.undo_page(viewer, venue, planned, text_of, previewed, filling)

    async def undo(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        form = await self._console.body(incoming)
        key = form.pop(KEY, "")
        try:
            async with self._console.handlers.visited(incoming, viewer.token) as view:
                planned = await self._planned(incoming, viewer, view)
                self._console.desk.refuse_late(view.live.tournament_id)
                await undo_import(
                    self._console.desk,
                    view.live,
                    planned,
                    actor=viewer.token.token_id,
                    stop=asyncio.Event(),
                    progress=to_nobody,
                )
                done = view.live.head.sequence
        except (BrokenOff, QueueFull) as error:
            return await refused_reply(self._page, incoming, viewer, error, key=key, form=form)
        return see_other(tournament_address(incoming.parameters["tournament"], "/imports", {"done": str(done)}))

    async def _planned(self, incoming: IncomingRequest, viewer: Viewer, view: View) -> Undoing:
        """The effects of undoing the import of the path. A token without scope admin can only undo its own."""
        only_of = None if viewer.may(Scope.ADMIN) else viewer.token.token_id
        return await plan_undoing(self._console.desk, view.live, incoming.parameters["import_name"], only_of=only_of)


def to_nobody(_done: int, _of: int) -> None:
    """A page shows no progress."""
