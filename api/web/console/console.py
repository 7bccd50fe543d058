"""The console: what its addresses answer.

    /console                              the tournaments, or the page to sign in
    /console/sign-in, /console/sign-out
    /console/tokens, /console/sessions    who can come in
    /console/tournament/<slug>            a tournament, and below it
        /competitors, /competitions       its lists
        /publication                      what the public sees of it
        /webhooks                         its webhooks
        /rankings/<id>                    a ranking; below it its history, the points to add, its classification
        …                                 the changes of `changes.py`, each with a page of its own

A page is asked for with the session's cookie, and shows what its token may see. A change is a POST from a page of ours.
It is made by `Handlers.perform`, so the same rows say who may do it, what it takes, and what is wrong with it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Sequence as Items
from functools import partial
from hashlib import sha256
from typing import Any, Final, NoReturn

from msgspec import json
from msgspec.structs import asdict, replace

from api.desk.desk import Desk
from api.desk.opening import open_tournament
from api.desk.quotas import shares
from api.http import auth, problems
from api.http.auth import Scope, Token
from api.http.body import Bodies
from api.http.cookies import came_by_tls, kept_cookie, refuse_foreign_change, session_text
from api.http.errors import MediaTypeUnsupported, TooManyRequests, Unauthenticated
from api.http.forms import Form, cited, fingerprint, parse_id, path_ids, unacceptable
from api.http.reply import Reply, header
from api.http.router import Handler, IncomingRequest, Router
from api.http.sessions import SESSION_HOURS, SessionId, create_session, end_session, open_session, open_sessions
from api.imports.competition_files import Line, Reader
from api.imports.competition_files import read as read_competitions
from api.imports.competition_imports import judge_competitions, play_competitions
from api.imports.outcomes import BrokenOff
from api.imports.undoing import Undoing, plan_undoing, undo_import
from api.interface.access import refuse_beyond_scope
from api.interface.declarations import RecallContext
from api.interface.fields import FROM_0, FROM_1, ID, SHORT, Field, Fields, FormReader, read_query
from api.interface.handlers import Handlers
from api.interface.lookup import competitor_of, ranking_of, unity_of
from api.interface.resources.competitor_erasures import mentions_of
from api.interface.resources.competitor_exports import EXPORT, EXPORTED_MAX, ExportQuestion, answer_export
from api.interface.resources.leaders import LeadersQuestion, leaders_of
from api.interface.resources.standings import recorded_at_head
from api.interface.resources.voiding import COMPARED, answer_preview
from api.web.console import competition_import_pages
from api.web.console.access_pages import (
    asked_token,
    made_token_page,
    new_token_page,
    reaches,
    refuse_longer_life,
    revoke_page,
    sessions_page,
    tokens_page,
    unacceptable_token,
)
from api.web.console.change_page import change_page, mentions_part, preview_part, seen_form
from api.web.console.changes import ADD_POINTS, CONSOLE_CHANGES, DECLARE, REGISTER, Change
from api.web.console.classification_page import classification_page, closed_up, criteria_form, declaration_begun
from api.web.console.competition_import_pages import PASTED_COMPETITIONS_MAX
from api.web.console.frame import (
    CONSOLE,
    CONSOLE_HEADERS,
    Venue,
    Viewer,
    message_page,
    sign_in_page,
    tournament_address,
)
from api.web.console.history_page import HISTORY_EVENTS, HISTORY_LINES, history_page
from api.web.console.import_page import CSV, STEP, import_page, items_form, look_page
from api.web.console.import_page import read as read_lines
from api.web.console.inputs import IF_MATCH, KEY, Filling, new_key
from api.web.console.lists_pages import competitions_page, competitors_page
from api.web.console.overview_page import Overview, overview_page, publication_page
from api.web.console.ranking_page import DELTAS_NAME, points_page, ranking_page
from api.web.console.tournaments_page import (
    TOURNAMENTS_SHOWN,
    ZONE_FIELD,
    Tournaments,
    may_create,
    new_tournament_page,
    tournaments_page,
)
from api.web.console.webhooks_page import webhooks_page
from api.web.explanation_page import explanation_page
from api.web.files import StaticFiles
from api.web.html import HTML_TYPE
from api.web.leaders_page import CLOCK_FIELD, leaders_page
from api.web.page import Query, Site, number_text
from api.web.table import TableAsked, table_of
from api.webhooks.webhooks import listed_webhooks
from engine.domain.commands import ChangePresentation
from engine.domain.errors import (
    Conflict,
    Fault,
    Forbidden,
    KeyReused,
    NotFound,
    PreconditionFailed,
    Refusal,
    TallybookError,
    Unacceptable,
    Unreadable,
)
from engine.domain.notation import Notation
from engine.domain.terms import ActorId, CompetitorId, RankingId, Sequence, TournamentId
from engine.log import import_runs, registry
from engine.log.quotas import ALL_TOKENS
from engine.log.registry import TOURNAMENT_ID_MAX, RegistryEntry
from projections.board.board import Board
from projections.live.tournament import LiveTournament
from projections.past import explaining, folds, moments, pages
from projections.past.moments import Span
from projections.tables import tables
from projections.verification.noted import last_verified

STEPS_OF_CONSOLE: Final = 100
"""Steps of an explanation on one page."""
_TO: Final = re.compile(r"/console(?:[/?][!-~]*)?", re.ASCII)
_ENTRY: Final = re.compile(r"points\[([1-9][0-9]{0,18})\]", re.ASCII)
_TITLES: Final = {
    401: "Sign in",
    403: "This is not yours to do",
    404: "There is nothing here",
    409: "This cannot be done now",
    429: "Too many requests",
    503: "Not now",
}
_SESSION_SECONDS: Final = SESSION_HOURS * 3600

_ZONE: Final = FormReader((ZONE_FIELD,))
_DONE: Final = Field("done", FROM_1, "the event that the page before has recorded")
_ADDED: Final = Field("added", FROM_1, "1: that event has added points")
_OFFSET: Final = Field("offset", FROM_0, "the number to skip")
_AFTER_EVENT: Final = Field("after", FROM_0, "only events after this one")
_UNITY: Final = Field("unity", ID, "which unity; absent: the table", argument="unity_id")

_Make = Callable[[IncomingRequest, Viewer], Awaitable[bytes | Reply]]
_MakeOfTournament = Callable[[RecallContext, Viewer, Venue, "_Asked"], Awaitable[bytes | Reply]]


class _Asked:
    """What a request asks: the ids of its path, and its `query` as it came and as it is read."""

    def __init__(self, incoming: IncomingRequest, fields: Fields) -> None:
        items = incoming.request.query
        self.arguments: dict[str, Any] = read_query(items, fields)
        self.query: Query = dict(items)
        self.ids: Mapping[str, Any] = path_ids(incoming.parameters)


class ConsoleHandlers:
    """Answers for the console. `handlers` answer the operations; `desk` takes imports, and its database has tokens,
    sessions and the registry."""

    def __init__(self, handlers: Handlers, desk: Desk, static: StaticFiles, *, proxies: int) -> None:
        self._handlers = handlers
        self._desk = desk
        self._database = desk.database
        self._static = static
        self._proxies = proxies
        self._bodies = Bodies()

    def add_to(self, router: Router) -> None:
        def page(below: str, make: _Make) -> None:
            router.add("GET", f"{CONSOLE}{below}", self._handler(make))

        def change(below: str, make: _Make) -> None:
            router.add("POST", f"{CONSOLE}{below}", self._handler(make))

        def of_tournament(below: str, make: _MakeOfTournament, *fields: Field, scope: Scope = Scope.READ) -> None:
            page(f"/tournament/{{tournament}}{below}", partial(self._of_tournament, make, fields, scope))

        page("", self._tournaments)
        router.add("POST", f"{CONSOLE}/sign-in", self._sign_in)
        router.add("POST", f"{CONSOLE}/sign-out", self._sign_out)
        page("/tournaments/new", self._tournament_form)
        change("/tournaments/new", self._create_tournament)
        page("/sessions", self._sessions)
        change("/sessions/{session_id}/end", self._end_session)
        page("/tokens", self._tokens)
        page("/tokens/new", self._token_form)
        change("/tokens/new", self._make_token)
        page("/tokens/{token_id}/revoke", self._ask_to_revoke)
        change("/tokens/{token_id}/revoke", self._revoke)
        for one in CONSOLE_CHANGES:
            page(f"/tournament/{{tournament}}{one.path}", partial(self._form, one))
            change(f"/tournament/{{tournament}}{one.path}", partial(self._change, one))
        page("/tournament/{tournament}/rankings/{ranking_id}/add", self._points_form)
        change("/tournament/{tournament}/rankings/{ranking_id}/add", self._add_points)
        page("/tournament/{tournament}/rankings/{ranking_id}/classification", self._declaration_form)
        change("/tournament/{tournament}/rankings/{ranking_id}/classification", self._declare)
        page("/tournament/{tournament}/competitors/import", self._import_form)
        change("/tournament/{tournament}/competitors/import", self._import)
        page("/tournament/{tournament}/rankings/{ranking_id}/import", self._competitions_form)
        change("/tournament/{tournament}/rankings/{ranking_id}/import", self._import_competitions)
        page("/tournament/{tournament}/imports/{import_name}/undo", self._ask_to_undo)
        change("/tournament/{tournament}/imports/{import_name}/undo", self._undo_import)
        of_tournament("", self._overview, _DONE)
        of_tournament("/imports", self._imports, _DONE)
        of_tournament("/webhooks", self._webhooks, scope=Scope.ADMIN)
        of_tournament("/publication", _publication, _DONE, scope=Scope.ADMIN)
        of_tournament("/competitors", _competitors, _DONE, _OFFSET)
        of_tournament("/competitors/{competitor_id}/export", _export, _AFTER_EVENT, scope=Scope.ADMIN)
        of_tournament("/competitions", _competitions, _DONE, _OFFSET)
        of_tournament("/rankings/{ranking_id}", _ranking, _DONE, _ADDED, _OFFSET, _UNITY)
        of_tournament("/rankings/{ranking_id}/history", _history, _TO_EVENT, _DONE)
        of_tournament("/rankings/{ranking_id}/competitors/{competitor_id}", self._explanation, _UNITY, _TO_EVENT)
        of_tournament("/rankings/{ranking_id}/leaders", self._leaders, _UNITY, CLOCK_FIELD)

    # ── Every request ───────────────────────────────────────────────────────────────────────────────────

    def _handler(self, make: _Make) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            viewer: Viewer | None = None
            try:
                if incoming.request.method == "POST":
                    refuse_foreign_change(incoming.request, proxies=self._proxies)
                viewer = await self._viewer(incoming)
                made = await make(incoming, viewer)
            except Unauthenticated as error:
                return self._to_sign_in(incoming, error)
            except TallybookError as error:
                return self._refused(incoming, viewer, error)
            return made if isinstance(made, Reply) else _page(made)

        return handle

    async def _viewer(self, incoming: IncomingRequest) -> Viewer:
        """Raises Unauthenticated, TooManyRequests and DatabaseUnavailable."""
        text = session_text(incoming.request)
        if text is None:
            raise Unauthenticated("")
        session, token = await self._handlers.access.session_of(incoming, text)
        return Viewer(session=session, token=token, static=self._static)

    def _to_sign_in(self, incoming: IncomingRequest, error: Unauthenticated) -> Reply:
        request = incoming.request
        to = request.target if request.method in ("GET", "HEAD") and _TO.fullmatch(request.target) else CONSOLE
        is_elsewhere = request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        page = sign_in_page(self._static, to, error.message or None, is_elsewhere=is_elsewhere and not error.message)
        return _problem(incoming, error, page)

    def _refused(self, incoming: IncomingRequest, viewer: Viewer | None, error: TallybookError) -> Reply:
        title = _TITLES.get(problems.STATUSES.get(type(error), 500), "This cannot be shown")
        return _problem(incoming, error, message_page(viewer, self._static, title, error.message))

    async def _body(self, incoming: IncomingRequest) -> dict[str, str]:
        return dict(await self._bodies.form(incoming, _refuse_json))

    # ── Coming and going ────────────────────────────────────────────────────────────────────────────────

    async def _sign_in(self, incoming: IncomingRequest) -> Reply:
        request, to = incoming.request, CONSOLE
        try:
            refuse_foreign_change(request, proxies=self._proxies)
            form = await self._body(incoming)
            if _TO.fullmatch(form.get("to", "")):
                to = form["to"]
            token = await self._handlers.access.token_of(incoming, f"Bearer {form.get('token', '').strip()}")
            async with self._database.connection() as connection:
                _, text = await create_session(connection, token.token_id)
        except Unauthenticated as error:
            return _problem(incoming, error, sign_in_page(self._static, to, "This token is not accepted."))
        except TallybookError as error:
            return self._refused(incoming, None, error)
        return _see_other(to, self._cookie(incoming, text, _SESSION_SECONDS))

    async def _sign_out(self, incoming: IncomingRequest) -> Reply:
        try:
            refuse_foreign_change(incoming.request, proxies=self._proxies)
            text = session_text(incoming.request)
            async with self._database.connection() as connection:
                found = None if text is None else await open_session(connection, text)
                if found is not None:
                    await end_session(connection, found[0].session_id, [found[0].token_id])
        except TallybookError as error:
            return self._refused(incoming, None, error)
        return _see_other(CONSOLE, self._cookie(incoming, "", 0))

    def _cookie(self, incoming: IncomingRequest, text: str, seconds: int) -> str:
        return kept_cookie(text, seconds=seconds, secure=came_by_tls(incoming.request, proxies=self._proxies))

    # ── Tournaments, tokens, sessions ───────────────────────────────────────────────────────────────────

    async def _tournaments(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        after = read_query(incoming.request.query, (_AFTER,)).get("after", "")
        among = viewer.token.tournament_ids
        async with self._database.connection() as connection:
            found = await registry.tournaments_after(connection, after, among, TOURNAMENTS_SHOWN + 1)
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
        form = await self._body(incoming)
        key, name = form.pop(KEY, "") or new_key(), form.get("name", "")
        tournament_id = TournamentId(1 + int.from_bytes(sha256(key.encode()).digest()) % TOURNAMENT_ID_MAX)
        try:
            zoned = _ZONE.read({ZONE_FIELD.name: form.get(ZONE_FIELD.name, "").strip()})
            async with self._database.connection() as connection:
                opened = await open_tournament(
                    connection, name, actor=viewer.token.token_id, tournament_id=tournament_id
                )
        except (Unacceptable, Conflict) as error:
            return _problem(incoming, error, new_tournament_page(viewer, _refused_filling(error, key, form, None)))
        done = 1
        if zoned["zone"] is not None:
            async with self._desk.live_pool.pinned(tournament_id) as live:
                receipt = await self._desk.submit(
                    live,
                    ChangePresentation(**zoned),
                    actor=viewer.token.token_id,
                    idempotency_key=key,
                    fingerprint=fingerprint("POST", incoming.request.path, form),
                )
            done = receipt.last_sequence
        return _see_other(tournament_address(opened.slug, "", {"done": str(done)}))

    async def _within_reach(self, viewer: Viewer) -> list[Token]:
        """The tokens that the viewer may see, the newest first."""
        async with self._database.connection() as connection:
            return [token for token in reversed(await auth.listed(connection)) if reaches(viewer.token, token)]

    async def _tokens(self, _incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        return tokens_page(viewer, await self._within_reach(viewer))

    async def _token_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        return new_token_page(viewer, Filling(key=new_key()))

    async def _make_token(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Makes a token, which this answer alone shows."""
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        form = await self._body(incoming)
        form.pop(KEY, None)
        try:
            asked = asked_token(form)
            tournament_ids = await self._asked_tournaments(viewer, asked.slugs)
            refuse_longer_life(viewer.token, asked.expires_in_days)
            async with self._database.connection() as connection:
                token, text = await auth.create(
                    connection,
                    name=asked.name,
                    scope=asked.scope,
                    tournament_ids=tournament_ids,
                    expires_in_days=asked.expires_in_days,
                )
        except Unacceptable as error:
            return _problem(incoming, error, new_token_page(viewer, _refused_filling(error, "", form, None)))
        return _page(made_token_page(viewer, token, text))

    async def _asked_tournaments(self, viewer: Viewer, slugs: Items[str]) -> list[TournamentId] | None:
        """The tournaments that a new token is to be for; None: all. They are among the viewer's own. Raises
        Unacceptable."""
        if not slugs:
            return None if viewer.token.tournament_ids is None else sorted(viewer.token.tournament_ids)
        found: list[TournamentId] = []
        async with self._database.connection() as connection:
            for slug in slugs:
                tournament_id = await registry.tournament_named(connection, slug)
                if tournament_id is None or not viewer.token.allows(tournament_id):
                    raise unacceptable_token(Fault("tournaments", f"{slug!r} is none that your token is for"))
                found.append(tournament_id)
        return found

    async def _token(self, incoming: IncomingRequest, viewer: Viewer) -> Token:
        """The token of the path. Raises Forbidden, and NotFound if it is not within reach or revoked already."""
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        token_id = parse_id(incoming.parameters["token_id"])
        for token in await self._within_reach(viewer):
            if token.token_id == token_id and token.revoked_at is None:
                return token
        raise NotFound("There is no such token in use.")

    async def _ask_to_revoke(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        return revoke_page(viewer, await self._token(incoming, viewer))

    async def _revoke(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        token = await self._token(incoming, viewer)
        async with self._database.connection() as connection:
            await auth.revoke(connection, token.token_id)
        return _see_other(f"{CONSOLE}/tokens")

    async def _sessions(self, _incoming: IncomingRequest, viewer: Viewer) -> bytes:
        names = {token.token_id: token.name for token in await self._within_reach(viewer)}
        async with self._database.connection() as connection:
            sessions = await open_sessions(connection, names)
        return sessions_page(viewer, sessions, names)

    async def _end_session(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        session_id = SessionId(parse_id(incoming.parameters["session_id"]) or 0)
        token_ids: list[ActorId] = [token.token_id for token in await self._within_reach(viewer)]
        async with self._database.connection() as connection:
            if not await end_session(connection, session_id, token_ids):
                raise NotFound("There is no such session, or it has ended.")
        return _see_other(f"{CONSOLE}/sessions")

    # ── One tournament ──────────────────────────────────────────────────────────────────────────────────

    async def _of_tournament(
        self, make: _MakeOfTournament, fields: Fields, scope: Scope, incoming: IncomingRequest, viewer: Viewer
    ) -> bytes | Reply:
        refuse_beyond_scope(viewer.token, scope)
        async with self._handlers.visited(incoming, viewer.token) as context:
            asked = _Asked(incoming, fields)
            return await make(context, viewer, await _venue(context, incoming), asked)

    async def _overview(self, context: RecallContext, viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
        tournament_id = context.live.tournament_id
        recorded_at = await recorded_at_head(context, venue.head)
        async with self._database.connection() as connection:
            checkpoint = await tables.checkpoint(connection, tournament_id)
            verified = (await last_verified(connection, [tournament_id])).get(tournament_id)
        entry = RegistryEntry(tournament_id, venue.slug, venue.name, venue.head.sequence)
        board = context.live.board
        overview = Overview(
            entry=entry,
            board=board,
            recorded_at=recorded_at,
            checkpoint=checkpoint,
            verified=verified,
            quota=await shares(self._database, (tournament_id, ALL_TOKENS)),
        )
        return overview_page(viewer, venue, overview, asked.query)

    async def _webhooks(self, context: RecallContext, viewer: Viewer, venue: Venue, _asked: _Asked) -> bytes:
        async with self._database.connection() as connection:
            found = await listed_webhooks(connection, context.live.tournament_id)
        return webhooks_page(viewer, venue, found)

    async def _explanation(self, context: RecallContext, _viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
        live, ranking_id = context.live, RankingId(asked.ids["ranking_id"])
        competitor_id = CompetitorId(asked.ids["competitor_id"])
        unity_id = unity_of(live.board, ranking_id, asked.arguments.get("unity_id"))
        competitor_of(live.board, competitor_id)
        explanation = await explaining.explanation(
            context.past,
            live.tournament_id,
            ranking_id,
            unity_id,
            competitor_id,
            notation=live.board.rankings[ranking_id].unities[unity_id].notation,
            start=Sequence(0),
            end=min(venue.head.sequence, asked.arguments.get("last", venue.head.sequence)),
            head=venue.head.sequence,
            limit=STEPS_OF_CONSOLE,
            latest=True,
        )
        site = _RankingSite(venue.name, venue.slug, self._static, ranking_id=ranking_id)
        return explanation_page(site, live.board, explanation, ranking_id, unity_id, competitor_id, asked.query)

    async def _leaders(self, context: RecallContext, _viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
        ranking_id = RankingId(asked.ids["ranking_id"])
        question = LeadersQuestion(**{"clock": "world", **asked.arguments}, ranking_id=ranking_id)
        shown = await leaders_of(context, question, last=True)
        site = _RankingSite(venue.name, venue.slug, self._static, ranking_id=ranking_id)
        return leaders_page(site, context.live.board, shown, ranking_id, asked.query)

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    async def _form(self, change: Change, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, change.scope)
        read_query(incoming.request.query, ())
        return await self._form_page(change, incoming, viewer, None)

    async def _form_page(
        self, change: Change, incoming: IncomingRequest, viewer: Viewer, refused: Filling | None
    ) -> bytes:
        """The page of a change; `refused`: with what was sent, and what is wrong with it, or nothing."""
        async with self._handlers.visited(incoming, viewer.token) as context:
            board, ids = context.live.board, path_ids(incoming.parameters)
            beginning = change.begin(board, ids)
            filling = Filling(
                key=new_key() if refused is None else refused.key,
                given=beginning.given if refused is None else refused.given,
                if_match=beginning.if_match if refused is None or refused.if_match is None else refused.if_match,
                message=None if refused is None else refused.message,
                faults=() if refused is None else refused.faults,
                options=beginning.options,
                labels=beginning.labels,
            )
            venue = await _venue(context, incoming)
            previewed = None
            if change.preview is not None and (refused is None) is not change.looks_at_form and not filling.message:
                sent = change.read(filling.given) if change.looks_at_form else None
                body = await self._handlers.preview(incoming, change.preview, viewer.token, sent)
                previewed = preview_part(board, body)
            if change.mentions and not filling.message:
                previewed = mentions_part(await mentions_of(context, CompetitorId(ids["competitor_id"])))
            return change_page(
                viewer,
                venue,
                board,
                change,
                beginning,
                filling,
                address=_address(incoming, change.path),
                back=_address(incoming, change.back),
                previewed=previewed,
            )

    async def _change(self, change: Change, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, change.scope)
        form = await self._body(incoming)
        key, if_match, seen = form.pop(KEY, ""), form.pop(IF_MATCH, None), form.pop(STEP, None)
        try:
            if change.looks_at_form and seen != seen_form(form):
                return _page(await self._form_page(change, incoming, viewer, Filling(key=key or new_key(), given=form)))
            receipt = await self._handlers.perform(
                incoming,
                change.operation,
                viewer.token,
                {**change.read(form), **change.fixed},
                key=key,
                if_match=if_match,
            )
        except _NOT_OF_FORMS:
            raise
        except TallybookError as error:
            refused = _refused_filling(error, key, form, if_match)
            return _problem(incoming, error, await self._form_page(change, incoming, viewer, refused))
        then = change.back if change.made is None else change.made.format_map(asdict(receipt.event))
        return _see_other(_address(incoming, then, {"done": str(receipt.last_sequence)}))

    async def _import_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, REGISTER.scope)
        return await self._import_page(incoming, viewer, Filling(key=new_key()))

    async def _import_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._handlers.visited(incoming, viewer.token) as context:
            return import_page(viewer, await _venue(context, incoming), filling)

    async def _import(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        """Shows what the text would lead to; does it, once that was seen."""
        refuse_beyond_scope(viewer.token, REGISTER.scope)
        form = await self._body(incoming)
        key = form.pop(KEY, "")
        try:
            async with self._handlers.visited(incoming, viewer.token) as context:
                board = context.live.board
                lines = read_lines(board, form.get(CSV, ""))
                if form.get(STEP) != "register":
                    filling = Filling(key=key or new_key(), given=form)
                    return look_page(viewer, await _venue(context, incoming), board, lines, filling)
            receipt = await self._handlers.perform(
                incoming, REGISTER, viewer.token, items_form(lines), key=key, if_match=None
            )
        except _NOT_OF_FORMS:
            raise
        except TallybookError as error:
            refused = _refused_filling(error, key, form, None)
            return _problem(incoming, error, await self._import_page(incoming, viewer, refused))
        return _see_other(_address(incoming, "/competitors", {"done": str(receipt.last_sequence)}))

    async def _competitions_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._competitions_page(incoming, viewer, Filling(key=new_key()))

    async def _competitions_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._handlers.visited(incoming, viewer.token) as context:
            ranking_id = RankingId(path_ids(incoming.parameters)["ranking_id"])
            ranking_of(context.live.board, ranking_id)
            venue = await _venue(context, incoming)
            return competition_import_pages.import_page(viewer, venue, context.live.board, ranking_id, filling)

    async def _import_competitions(self, incoming: IncomingRequest, viewer: Viewer) -> bytes | Reply:
        """As `_import`, for competitions. Lines that are sent again are imported already."""
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        form = await self._body(incoming)
        key = form.pop(KEY, "")
        try:
            async with self._handlers.visited(incoming, viewer.token) as context:
                live, ranking_id = context.live, RankingId(path_ids(incoming.parameters)["ranking_id"])
                ranking_of(live.board, ranking_id)
                reader, lines = _read_competitions(live.board, ranking_id, form)
                if form.get(STEP) != "import":
                    judged = await judge_competitions(self._desk, live, ranking_id, reader, lines)
                    filling, venue = Filling(key=key or new_key(), given=form), await _venue(context, incoming)
                    return competition_import_pages.look_page(viewer, venue, live.board, ranking_id, judged, filling)
                await play_competitions(
                    self._desk,
                    live,
                    ranking_id,
                    reader,
                    lines,
                    actor=viewer.token.token_id,
                    stop=asyncio.Event(),
                    progress=_to_nobody,
                )
                done = live.head.sequence
        except _NOT_OF_FORMS:
            raise
        except TallybookError as error:
            refused = _refused_filling(error, key, form, None)
            return _problem(incoming, error, await self._competitions_page(incoming, viewer, refused))
        return _see_other(_address(incoming, "/imports", {"done": str(done)}))

    async def _imports(self, context: RecallContext, viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
        async with self._database.connection() as connection:
            runs = await import_runs.runs(connection, context.live.tournament_id)
        return competition_import_pages.imports_page(viewer, venue, runs, asked.query)

    async def _planned(self, incoming: IncomingRequest, viewer: Viewer, live: LiveTournament) -> Undoing:
        """What undoing the import of the path would do. A token without scope admin undoes its own."""
        only_of = None if viewer.may(Scope.ADMIN) else viewer.token.token_id
        return await plan_undoing(self._desk, live, incoming.parameters["import_name"], only_of=only_of)

    async def _ask_to_undo(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._undo_page(incoming, viewer, Filling(key=new_key()))

    async def _undo_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._handlers.visited(incoming, viewer.token) as context:
            live = context.live
            planned = await self._planned(incoming, viewer, live)
            read = partial(folds.competition_sums, context.past, live.tournament_id)
            body = await answer_preview(live, COMPARED, planned.events, read)
            previewed = preview_part(live.board, body if isinstance(body, bytes) else None)
            venue = await _venue(context, incoming)
            return competition_import_pages.undo_page(viewer, venue, live.board, planned, previewed, filling)

    async def _undo_import(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        form = await self._body(incoming)
        key = form.pop(KEY, "")
        try:
            async with self._handlers.visited(incoming, viewer.token) as context:
                live = context.live
                planned = await self._planned(incoming, viewer, live)
                await undo_import(
                    self._desk,
                    live,
                    planned,
                    actor=viewer.token.token_id,
                    stop=asyncio.Event(),
                    progress=_to_nobody,
                )
                done = live.head.sequence
        except BrokenOff as error:
            refused = _refused_filling(error, key, form, None)
            return _problem(incoming, error, await self._undo_page(incoming, viewer, refused))
        return _see_other(tournament_address(incoming.parameters["tournament"], "/imports", {"done": str(done)}))

    async def _points_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, ADD_POINTS.scope)
        return await self._points_page(incoming, viewer, Filling(key=new_key()))

    async def _points_page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._handlers.visited(incoming, viewer.token) as context:
            asked = _Asked(incoming, _POINTS_QUERY)
            ranking_id = RankingId(asked.ids["ranking_id"])
            unity_id = unity_of(context.live.board, ranking_id, asked.arguments.get("unity_id"))
            offset = asked.arguments.get("offset", 0)
            table = await table_of(context, TableAsked(ranking_id=ranking_id, unity_id=unity_id, offset=offset))
            venue = await _venue(context, incoming)
            return points_page(viewer, venue, context.live.board, table, filling, asked.query)

    async def _add_points(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, ADD_POINTS.scope)
        unity_id = _Asked(incoming, _POINTS_QUERY).arguments.get("unity_id")
        form = await self._body(incoming)
        key = form.pop(KEY, "")
        try:
            if unity_id is None:
                raise Unreadable("The address must say which unity the points are of; open the form again.")
            async with self._handlers.visited(incoming, viewer.token) as context:
                ranking_id = RankingId(path_ids(incoming.parameters)["ranking_id"])
                unity_of(context.live.board, ranking_id, unity_id)
                notation = context.live.board.rankings[ranking_id].unities[unity_id].notation
            receipt = await self._handlers.perform(
                incoming, ADD_POINTS, viewer.token, points_form(form, unity_id, notation), key=key, if_match=None
            )
        except _NOT_OF_FORMS:
            raise
        except TallybookError as error:
            refused = _refused_filling(error, key, form, None)
            return _problem(incoming, error, await self._points_page(incoming, viewer, refused))
        query = {"unity": str(unity_id), "added": "1", "done": str(receipt.last_sequence)}
        return _see_other(_address(incoming, "/rankings/{ranking_id}", query))

    async def _declaration_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, DECLARE.scope)
        read_query(incoming.request.query, ())
        return await self._declaration_page(incoming, viewer, None)

    async def _declaration_page(self, incoming: IncomingRequest, viewer: Viewer, refused: Filling | None) -> bytes:
        async with self._handlers.visited(incoming, viewer.token) as context:
            board = context.live.board
            ranking_id = RankingId(path_ids(incoming.parameters)["ranking_id"])
            begun = declaration_begun(ranking_of(board, ranking_id), new_key())
            filling = begun if refused is None else refused
            if filling.if_match is None:
                filling = replace(filling, if_match=begun.if_match)
            return classification_page(viewer, await _venue(context, incoming), board, ranking_id, filling)

    async def _declare(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, DECLARE.scope)
        form = closed_up(await self._body(incoming))
        key, if_match = form.pop(KEY, ""), form.pop(IF_MATCH, None)
        try:
            receipt = await self._handlers.perform(
                incoming, DECLARE, viewer.token, criteria_form(form), key=key, if_match=if_match
            )
        except _NOT_OF_FORMS:
            raise
        except TallybookError as error:
            refused = _refused_filling(error, key, form, if_match)
            return _problem(incoming, error, await self._declaration_page(incoming, viewer, refused))
        return _see_other(_address(incoming, "/rankings/{ranking_id}", {"done": str(receipt.last_sequence)}))


_NOT_OF_FORMS: Final = (Forbidden, NotFound, TooManyRequests, Unauthenticated)
"""Refusals that no other filling of a form would avoid."""
_AFTER: Final = Field("after", SHORT, "after the tournament with this slug")
_TO_EVENT: Final = Field("to", FROM_1, "up to this event", argument="last")
_POINTS_QUERY: Final[Fields] = (_UNITY, _OFFSET)


def _to_nobody(_done: int, _of: int) -> None:
    """A page shows no progress."""


def _read_competitions(board: Board, ranking_id: RankingId, form: Form) -> tuple[Reader, list[Line]]:
    """The reader and the lines of what was sent. Raises Unreadable and Unacceptable."""
    columns, lines = read_competitions(form.get(CSV, "").removeprefix("\ufeff"))
    if not 0 < len(lines) <= PASTED_COMPETITIONS_MAX:
        raise Unreadable(f"The text must have from 1 to {number_text(PASTED_COMPETITIONS_MAX)} lines after the first.")
    try:
        return Reader(board, ranking_id, columns, competition_import_pages.scoring_of(form)), lines
    except NotFound as error:
        raise Unacceptable(error.message) from error
    except Unacceptable as error:
        faults = [Fault(fault.field.removeprefix("--"), fault.message) for fault in error.faults]
        raise Unacceptable(error.message, faults) from error


def _refuse_unless_may_create(viewer: Viewer) -> None:
    refuse_beyond_scope(viewer.token, Scope.ADMIN)
    if not may_create(viewer):
        raise Forbidden("Your token is for some tournaments only; creating one needs a token for all.")


class _RankingSite(Site, frozen=True, kw_only=True):
    """A ranking in the console, for the pages of boards that it has too: to them, it is as a board."""

    ranking_id: RankingId

    def address(self, query: Query, below: str = "") -> str:
        return tournament_address(self.slug, f"/rankings/{self.ranking_id}{below}", query)


async def _venue(context: RecallContext, incoming: IncomingRequest) -> Venue:
    live = context.live
    name = await moments.name(context.past, live.tournament_id, live.head.sequence)
    return Venue(slug=incoming.parameters["tournament"], name=name, head=live.head)


def _address(incoming: IncomingRequest, below: str, query: Query | None = None) -> str:
    """The address of what lies below the tournament of the request, with the ids of its path."""
    ids = path_ids(incoming.parameters)
    return tournament_address(incoming.parameters["tournament"], below.format(**ids), query)


def points_form(form: Form, unity_id: int, notation: Notation) -> Form:
    """What the operation takes, from a field for each competitor. Those that are empty add nothing. Raises
    Unacceptable for what is no number in the notation of the unity."""
    lines: list[dict[str, Any]] = []
    faults: list[Fault] = []
    rest: dict[str, str] = {}
    for name, text in form.items():
        if (entry := _ENTRY.fullmatch(name)) is None:
            rest[name] = text
        elif text := text.strip():
            try:
                delta = str(notation.number(text))
            except ValueError as error:
                faults.append(Fault(DELTAS_NAME, f"{cited(text)}, for competitor {entry[1]}, {error}"))
            else:
                lines.append({"competitor_id": int(entry[1]), "unities": [{"unity_id": unity_id, "delta": delta}]})
    read = {**rest, DELTAS_NAME: json.encode(lines).decode() if lines else ""}
    if faults:
        raise unacceptable([*faults, *_faults_beside_points(read)])
    return read


def _faults_beside_points(form: Form) -> list[Fault]:
    """What is wrong with the other fields."""
    try:
        FormReader(ADD_POINTS.fields).read(form)
    except Unacceptable as error:
        return [fault for fault in error.faults if fault.field != DELTAS_NAME]
    return []


def _refused_filling(error: TallybookError, key: str, form: Form, if_match: str | None) -> Filling:
    """The form as it was sent, with what is wrong. It keeps its key, unless that belongs to another request, so that
    what may have been recorded is not recorded twice. What has changed meanwhile is confirmed by sending it again."""
    return Filling(
        key=new_key() if isinstance(error, KeyReused) or not key else key,
        given=form,
        if_match=None if isinstance(error, PreconditionFailed) else if_match,
        message=error.message,
        faults=error.faults if isinstance(error, Refusal) else (),
    )


# ── Pages ───────────────────────────────────────────────────────────────────────────────────────────────


async def _publication(context: RecallContext, viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
    return publication_page(viewer, venue, context.live.board, asked.query)


async def _competitors(context: RecallContext, viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
    return competitors_page(viewer, venue, context.live.board, asked.arguments.get("offset", 0), asked.query)


async def _export(context: RecallContext, _viewer: Viewer, _venue: Venue, asked: _Asked) -> Reply:
    """A page of the export, as it is over HTTP, to be kept as a file."""
    competitor_id = CompetitorId(asked.ids["competitor_id"])
    after = Sequence(asked.arguments.get("after", 0))
    question = ExportQuestion(competitor_id=competitor_id, after=after, limit=EXPORTED_MAX)
    made = await answer_export(context, EXPORT, question)
    kept = header("Content-Disposition", f'attachment; filename="competitor-{competitor_id}.json"')
    return Reply(made.body, headers=CONSOLE_HEADERS + kept)


async def _competitions(context: RecallContext, viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
    return competitions_page(viewer, venue, context.live.board, asked.arguments.get("offset", 0), asked.query)


async def _ranking(context: RecallContext, viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
    arguments = asked.arguments
    table = await table_of(
        context,
        TableAsked(
            ranking_id=RankingId(asked.ids["ranking_id"]),
            unity_id=arguments.get("unity_id"),
            offset=arguments.get("offset", 0),
        ),
    )
    return ranking_page(viewer, venue, context.live.board, table, asked.query)


async def _history(context: RecallContext, viewer: Viewer, venue: Venue, asked: _Asked) -> bytes:
    live, ranking_id, head = context.live, RankingId(asked.ids["ranking_id"]), venue.head.sequence
    ranking_of(live.board, ranking_id)
    last = min(asked.arguments.get("last", head), head)
    span = Span(Sequence(max(last - HISTORY_EVENTS + 1, 1)), last)
    page = await pages.page(context.past, live.tournament_id, ranking_id, span, limit=HISTORY_LINES)
    return history_page(viewer, venue, live.board, ranking_id, span, page, asked.query)


# ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────


def _page(body: bytes, *, code: int = 200, headers: str = "") -> Reply:
    return Reply(body, code=code, media_type=HTML_TYPE, headers=CONSOLE_HEADERS + headers)


def _problem(incoming: IncomingRequest, error: TallybookError, body: bytes) -> Reply:
    incoming.facts["code"] = error.code
    reply = _page(body, code=problems.STATUSES.get(type(error), 500), headers=problems.headers(error))
    reply.closing = isinstance(error, Unreadable)  # what is left of the body is not worth reading
    return reply


def _see_other(address: str, headers: str = "") -> Reply:
    """Leads to a page, so that loading it again sends nothing again. The address is one of ours, in ASCII."""
    return _page(b"", code=303, headers=headers + header("Location", address))


def _refuse_json(_body: bytes) -> NoReturn:
    raise MediaTypeUnsupported("Send the form as a browser does.")
