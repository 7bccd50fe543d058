"""The console: what its addresses answer.

    /console                              the tournaments, or the page to sign in
    /console/sign-in, /console/sign-out
    /console/tokens, /console/sessions    access
    /console/tournament/<slug>            a tournament, and below it
        /competitors, /competitions       its lists
        /publication                      what the public sees
        /log                              its log, for auditors
        /webhooks                         its webhooks
        /rankings/<id>                    a ranking; below it its history, the points to add, its classification
        …                                 the changes of `changes.py`, each with its own page

A page is requested with the session's cookie, and shows what its token may see. A change is a POST from a page of ours.
`Handlers.perform` makes it, so the same rows say who may do it, what it takes, and what is wrong with it.
"""

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from api.access.auth import Scope
from api.access.sessions import SESSION_HOURS, create_session, end_session, open_session
from api.desk.opening import create_tournament
from api.http import problems
from api.http.cookies import came_by_tls, kept_cookie, refuse_foreign_change, session_text
from api.http.reply import Reply
from api.http.router import Handler, IncomingRequest, Router
from api.interface.access import refuse_beyond_scope
from api.interface.declarations import RecallContext
from api.interface.fields import FROM_0, FROM_1, SHORT, Field, Fields, FormReader, read_query
from api.web.competitor_page import COMPETITOR_PAGE
from api.web.console import reading_handlers as reads
from api.web.console.access_handlers import AccessHandlers
from api.web.console.answering import (
    DONE_FIELD,
    OFFSET_FIELD,
    UNITY_FIELD,
    Console,
    PageAsked,
    page_reply,
    problem_reply,
    refused_filling,
    see_other,
    venue_of,
)
from api.web.console.bring_import_handlers import BringHandlers
from api.web.console.bring_import_page import BELOW
from api.web.console.change_handlers import ChangeHandlers
from api.web.console.changes import CONSOLE_CHANGES, CREATE_LIKE
from api.web.console.first_steps import FIRST_STEP
from api.web.console.fixture_handlers import FixtureImports
from api.web.console.frame import CONSOLE, Venue, Viewer, message_page, sign_in_page, tournament_address
from api.web.console.import_handlers import CompetitionImports, CompetitorImports, UndoHandlers
from api.web.console.inputs import KEY, Filling, new_key
from api.web.console.leaving_handlers import LeavingHandlers
from api.web.console.scorer_handlers import ScorerHandlers
from api.web.console.scorer_pages import link_page
from api.web.console.sheet_handlers import SheetHandlers
from api.web.console.tournaments_page import (
    TOURNAMENTS_SHOWN,
    ZONE_FIELD,
    Tournaments,
    may_create,
    new_tournament_page,
    tournaments_page,
)
from api.web.ranking_pages import RANKING_PAGES
from engine.domain.errors import Conflict, Forbidden, NotFound, TallybookError, Unacceptable, Unauthenticated
from engine.log import registry
from projections.tables import tables
from projections.verification.noted import last_verified

_AFTER: Final = Field("after", SHORT, "after the tournament with this slug")
_TO_EVENT: Final = Field("to", FROM_1, "up to this event", argument="last")
_TO: Final = re.compile(r"/console(?:[/?][!-~]*)?", re.ASCII)
_TOURNAMENT: Final = "/tournament/{tournament}"
_TITLES: Final = {
    401: "Sign in",
    403: "You may not do this",
    404: "There is nothing here",
    409: "This cannot be done now",
    429: "Too many requests",
    503: "Not now",
}
_SESSION_SECONDS: Final = SESSION_HOURS * 3600

_ZONE: Final = FormReader((ZONE_FIELD,))
_ADDED: Final = Field("added", FROM_1, "1: that event has added points")
_LINK: Final = Field("link", SHORT, "what a scorer's link holds", required=True)
_AFTER_EVENT: Final = Field("after", FROM_0, "only events after this one")

_Make = Callable[[IncomingRequest, Viewer], Awaitable[bytes | Reply]]
_MakeOfTournament = Callable[[RecallContext, Viewer, Venue, PageAsked], Awaitable[bytes | Reply]]


class ConsoleHandlers:
    """Answers for the console. `proxies`: the number of trusted proxies that requests pass through."""

    def __init__(self, console: Console, *, proxies: int) -> None:
        self._console = console
        self._proxies = proxies

    def add_to(self, router: Router) -> None:
        def page(below: str, make: _Make, scope: Scope = Scope.READ) -> None:
            router.add("GET", f"{CONSOLE}{below}", self._handler(make, scope))

        def form(below: str, show: _Make, send: _Make, scope: Scope = Scope.READ) -> None:
            page(below, show, scope)
            router.add("POST", f"{CONSOLE}{below}", self._handler(send, scope))

        def of_tournament(below: str, make: _MakeOfTournament, *fields: Field, scope: Scope = Scope.READ) -> None:
            page(f"{_TOURNAMENT}{below}", partial(self._of_tournament, make, fields, scope))

        access = AccessHandlers(self._console)
        changes = ChangeHandlers(self._console)
        bring, undo = BringHandlers(self._console), UndoHandlers(self._console)
        page("", self._tournaments, Scope.SCORE)
        router.add("POST", f"{CONSOLE}/sign-in", self._sign_in)
        router.add("POST", f"{CONSOLE}/sign-out", self._sign_out)
        form("/tournaments/new", self._tournament_form, self._create_tournament)
        page("/sessions", access.sessions)
        router.add("POST", f"{CONSOLE}/sessions/{{session_id}}/end", self._handler(access.end_session, Scope.READ))
        page("/tokens", access.tokens)
        form("/tokens/new", access.token_form, access.make_token)
        form("/tokens/{token_id}/revoke", access.ask_to_revoke, access.revoke)
        for one in CONSOLE_CHANGES:
            form(f"{_TOURNAMENT}{one.path}", partial(changes.form, one), partial(changes.change, one))
        sheet = SheetHandlers(self._console)
        form(f"{_TOURNAMENT}/matchday", sheet.form, sheet.save, Scope.SCORE)
        scorers = ScorerHandlers(self._console, proxies=self._proxies)
        router.add("GET", f"{CONSOLE}/score", self._link)
        form(f"{_TOURNAMENT}/scorers", scorers.form, scorers.make)
        router.add(
            "POST", f"{CONSOLE}{_TOURNAMENT}/scorers/{{token_id}}/revoke", self._handler(scorers.revoke, Scope.READ)
        )
        ranking = f"{_TOURNAMENT}/rankings/{{ranking_id}}"
        form(f"{_TOURNAMENT}/rankings/like", partial(changes.form, CREATE_LIKE), changes.create_like)
        leaving, competitor = LeavingHandlers(self._console), f"{_TOURNAMENT}/competitors/{{competitor_id}}"
        form(f"{competitor}/remove", leaving.removal_form, leaving.remove)
        form(f"{competitor}/withdraw", leaving.withdrawal_form, leaving.withdraw)
        form(f"{ranking}/add", changes.points_form, changes.add_points)
        for imports in (CompetitorImports, CompetitionImports, FixtureImports):
            made = imports(self._console)
            form(f"{_TOURNAMENT}{made.path}", made.form, made.take)
        form(f"{_TOURNAMENT}{BELOW}", bring.form, bring.take)
        form(f"{_TOURNAMENT}/imports/{{import_name}}/undo", undo.ask, undo.undo)
        of_tournament("", reads.overview, DONE_FIELD)
        of_tournament("/imports", reads.imports, DONE_FIELD)
        of_tournament("/log", reads.log)
        of_tournament("/webhooks", reads.webhooks, scope=Scope.ADMIN)
        of_tournament("/publication", reads.publication, DONE_FIELD, scope=Scope.ADMIN)
        of_tournament("/competitors", reads.competitors, DONE_FIELD, OFFSET_FIELD)
        of_tournament("/competitors/{competitor_id}/export", reads.export, _AFTER_EVENT, scope=Scope.ADMIN)
        of_tournament("/competitions", reads.competitions, DONE_FIELD, OFFSET_FIELD, reads.VOIDED_FIELD)
        of_tournament("/rankings/{ranking_id}", reads.ranking, DONE_FIELD, _ADDED, OFFSET_FIELD, UNITY_FIELD)
        of_tournament("/rankings/{ranking_id}/history", reads.history, _TO_EVENT, DONE_FIELD)
        for of_ranking in (COMPETITOR_PAGE, *RANKING_PAGES):
            path = f"/rankings/{{ranking_id}}{of_ranking.below}"
            of_tournament(path, partial(reads.of_ranking, of_ranking), UNITY_FIELD, *of_ranking.fields)

    def _handler(self, make: _Make, scope: Scope) -> Handler:
        """What answers with `make`, for viewers whose tokens have at least this scope."""

        async def handle(incoming: IncomingRequest) -> Reply:
            viewer: Viewer | None = None
            try:
                if incoming.request.method == "POST":
                    refuse_foreign_change(incoming.request, proxies=self._proxies)
                viewer = await self._viewer(incoming)
                refuse_beyond_scope(viewer.token, scope)
                made = await make(incoming, viewer)
            except Unauthenticated as error:
                return self._to_sign_in(incoming, error)
            except TallybookError as error:
                return self._refused(incoming, viewer, error)
            return made if isinstance(made, Reply) else page_reply(made)

        return handle

    async def _viewer(self, incoming: IncomingRequest) -> Viewer:
        """Raises Unauthenticated, TooManyRequests and DatabaseUnavailable."""
        text = session_text(incoming.request)
        if text is None:
            raise Unauthenticated("")
        session, token = await self._console.handlers.access.session_of(incoming, text)
        return Viewer(session=session, token=token, static=self._console.static)

    def _to_sign_in(self, incoming: IncomingRequest, error: Unauthenticated) -> Reply:
        request = incoming.request
        to = request.target if request.method in ("GET", "HEAD") and _TO.fullmatch(request.target) else CONSOLE
        is_elsewhere = request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        page = sign_in_page(
            self._console.static, to, error.message or None, is_elsewhere=is_elsewhere and not error.message
        )
        return problem_reply(incoming, error, page)

    def _refused(self, incoming: IncomingRequest, viewer: Viewer | None, error: TallybookError) -> Reply:
        title = _TITLES.get(problems.STATUSES.get(type(error), 500), "This cannot be shown")
        return problem_reply(incoming, error, message_page(viewer, self._console.static, title, error.message))

    async def _sign_in(self, incoming: IncomingRequest) -> Reply:
        request, to = incoming.request, CONSOLE
        try:
            refuse_foreign_change(request, proxies=self._proxies)
            form = await self._console.body(incoming)
            if _TO.fullmatch(form.get("to", "")):
                to = form["to"]
            token = await self._console.handlers.access.token_of(incoming, f"Bearer {form.get('token', '').strip()}")
            async with self._console.database.writing() as connection:
                _, text = await create_session(connection, token.token_id)
        except Unauthenticated as error:
            return problem_reply(incoming, error, sign_in_page(self._console.static, to, "This token is not accepted."))
        except TallybookError as error:
            return self._refused(incoming, None, error)
        return see_other(to, self._cookie(incoming, text, _SESSION_SECONDS))

    async def _link(self, incoming: IncomingRequest) -> Reply:
        """The page of a scorer's link. It only offers to sign in, because programs that show a link ask for it, too;
        and the cookie is kept for requests that a page of ours has caused."""
        try:
            text = read_query(incoming.request.query, (_LINK,)).get("link", "")
            token = await self._console.handlers.access.token_of(incoming, f"Bearer {text}")
            if token.part is None:
                raise NotFound("This is no link of a scorer.")
        except TallybookError as error:
            return self._refused(incoming, None, error)
        return page_reply(link_page(self._console.static, token.name, text))

    async def _sign_out(self, incoming: IncomingRequest) -> Reply:
        try:
            refuse_foreign_change(incoming.request, proxies=self._proxies)
            text = session_text(incoming.request)
            async with self._console.database.writing() as connection:
                found = None if text is None else await open_session(connection, text)
                if found is not None:
                    await end_session(connection, found[0].session_id, [found[0].token_id])
        except TallybookError as error:
            return self._refused(incoming, None, error)
        return see_other(CONSOLE, self._cookie(incoming, "", 0))

    def _cookie(self, incoming: IncomingRequest, text: str, seconds: int) -> str:
        return kept_cookie(text, seconds=seconds, secure=came_by_tls(incoming.request, proxies=self._proxies))

    async def _tournaments(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        """The tournaments; where there is none, the form for the first one; of a scorer, the page of the matches."""
        after = read_query(incoming.request.query, (_AFTER,)).get("after", "")
        among = viewer.token.tournament_ids
        async with self._console.database.connection() as connection:
            found = await registry.tournaments_after(connection, after, among, TOURNAMENTS_SHOWN + 1)
            if viewer.token.part is not None and found:
                return see_other(tournament_address(found[0].slug, "/matchday", {}))
            refuse_beyond_scope(viewer.token, Scope.READ)
            if not found and not after and may_create(viewer):
                return new_tournament_page(viewer, Filling(key=new_key()))
            entries = found[:TOURNAMENTS_SHOWN]
            ids = [entry.tournament_id for entry in entries]
            checkpoints, stops = await tables.checkpoints(connection, ids), await tables.stops(connection, ids)
            verified = await last_verified(connection, ids)
        following = entries[-1].slug if len(found) > len(entries) else None
        shown = Tournaments(entries=entries, checkpoints=checkpoints, stops=stops, verified=verified, next=following)
        return tournaments_page(viewer, shown)

    async def _tournament_form(self, _incoming: IncomingRequest, viewer: Viewer) -> bytes:
        _refuse_unless_may_create(viewer)
        return new_tournament_page(viewer, Filling(key=new_key()))

    async def _create_tournament(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """A form that is sent again finds the tournament that it created: its key gives the id."""
        _refuse_unless_may_create(viewer)
        form = await self._console.body(incoming)
        key, name = form.pop(KEY, "") or new_key(), form.get("name", "")
        try:
            zone = _ZONE.read({ZONE_FIELD.name: form.get(ZONE_FIELD.name, "").strip()})["zone"]
            opened = await create_tournament(self._console.desk, name, zone=zone, actor=viewer.token.token_id, key=key)
        except (Unacceptable, Conflict) as error:
            return problem_reply(incoming, error, new_tournament_page(viewer, refused_filling(error, key, form, None)))
        return see_other(tournament_address(opened.slug, FIRST_STEP, {"done": str(opened.sequence)}))

    async def _of_tournament(
        self, make: _MakeOfTournament, fields: Fields, scope: Scope, incoming: IncomingRequest, viewer: Viewer
    ) -> bytes | Reply:
        refuse_beyond_scope(viewer.token, scope)
        async with self._console.handlers.visited(incoming, viewer.token) as context:
            return await make(context, viewer, await venue_of(context, incoming), PageAsked(incoming, fields))


def _refuse_unless_may_create(viewer: Viewer) -> None:
    refuse_beyond_scope(viewer.token, Scope.ADMIN)
    if not may_create(viewer):
        raise Forbidden("Your token is for some tournaments only; creating one needs a token for all.")
