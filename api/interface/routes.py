"""Every operation over HTTP: one table, and what the operations of each kind have in common.

GET   token ─► scope ─► tournament ─► query ─► live, made current ─► bytes
                                                    └─► log, of the past ─► bytes
POST  token ─► scope ─► tournament ─► body ─► form ─► command ─► desk ─► bytes
PUT
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from aiohttp import web
from msgspec import Struct

from api.desk.conditions import Condition, parse_if_match
from api.desk.desk import Desk
from api.desk.remembered import Slugs
from api.http.auth import Guard, Scope, Token
from api.http.body import Bodies
from api.http.forms import Form, fingerprint, parse_id
from api.http.outgoing import Later, Long, Outgoing
from api.http.reply import Reply, header
from api.http.router import Handler, IncomingRequest, Router
from api.http.throttle import Throttle, address_of
from api.interface import answers, answers_past, comparisons, queries, resources, wire
from api.interface.answers import Listing
from api.interface.known import ranking_of, refuse_unknown, unity_of
from engine.domain.commands import Command, UnvoidCompetition, VoidCompetition
from engine.domain.errors import Forbidden, NotFound, Unauthenticated, Unreadable
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from projections.live.live import Live
from projections.past.history import Filter
from projections.past.past import AtVersion, Past

Ids = Mapping[str, int]
Query = list[tuple[str, str]]
Recalling = Callable[[Outgoing, Past, Live, RankingId], Awaitable[Listing | Long]]


class Read(Struct, frozen=True):
    """A list. `answer` reads the query, and returns what renders the list."""

    path: str
    answer: Callable[[Query], Callable[[Live], Listing | Later]]


class Show(Struct, frozen=True):
    """A single resource. `answer` renders it; the ids are those of the path, by name."""

    path: str
    answer: Callable[[Live, Ids], Listing | Later]


class Recall(Struct, frozen=True):
    """A look at the past of a ranking. `answer` reads the query, and returns what reads the log and renders it. The
    live that this is given is current: it knows the head, and what exists by now."""

    path: str
    answer: Callable[[Query], Recalling]


class Write(Struct, frozen=True):
    """A change. `command` makes the command that a form asks for; the ids are those of the path, by name."""

    method: str
    path: str
    command: Callable[[Desk, Form, Ids], Awaitable[Command]]
    scope: Scope = Scope.WRITE


class Preview(Struct, frozen=True):
    """Shows what a change would lead to: the standings before and after. Nothing is recorded."""

    path: str
    command: type[VoidCompetition | UnvoidCompetition]


# ── The table ───────────────────────────────────────────────────────────────────────────────────────────


def _list_rankings(query: Query) -> Callable[[Live], Listing | Later]:
    wire.parse_no_query(query)
    return answers.rankings


def _list_competitions(query: Query) -> Callable[[Live], Listing | Later]:
    page = wire.parse_page(query)
    return lambda live: answers.competitions(live, page)


def _list_competitors(query: Query) -> Callable[[Live], Listing | Later]:
    page = wire.parse_page(query)
    return lambda live: answers.competitors(live, page)


def _show_ranking(live: Live, ids: Ids) -> Listing | Later:
    return resources.ranking(live, RankingId(ids["ranking_id"]))


def _show_competition(live: Live, ids: Ids) -> Listing | Later:
    return resources.competition(live, CompetitionId(ids["competition_id"]))


def _show_competitor(live: Live, ids: Ids) -> Listing | Later:
    return resources.competitor(live, CompetitorId(ids["competitor_id"]))


def _show_standings(query: Query) -> Recalling:
    moment = queries.parse_moment(query)

    async def answer(outgoing: Outgoing, past: Past, live: Live, ranking_id: RankingId) -> Listing | Long:
        if isinstance(moment, AtVersion):
            unity_of(live, ranking_id, moment.unity_id)
        if moment is None:
            head, made = live.head, answers.modified_ranking(live, ranking_id)
            body = made if isinstance(made, bytes) else await outgoing.begun(made)
            head = head if isinstance(body, bytes) else body.head
            recorded_at = await past.recorded_at(live.tournament_id, head.sequence)
            return answers_past.standings(body, head.sequence, recorded_at, head)
        head = live.head
        then = await past.at(live.tournament_id, ranking_id, moment, head.sequence)
        made = answers.modified_ranking(answers_past.as_it_was(live.tournament_id, then), ranking_id)
        body = made if isinstance(made, bytes) else await outgoing.begun(made)
        return answers_past.standings(body, then.sequence, then.recorded_at, head)

    return answer


def _show_history(query: Query) -> Recalling:
    wanted = queries.parse_history(query)

    async def answer(_: Outgoing, past: Past, live: Live, ranking_id: RankingId) -> Listing | Long:
        refuse_unknown(live, ranking_id, wanted.asked)
        span = await past.span(live.tournament_id, live.head.sequence, wanted.bounds)
        page = await past.page(
            live.tournament_id, ranking_id, span, asked=wanted.asked, after=wanted.after, limit=wanted.limit
        )
        return answers_past.history(page)

    return answer


def _explain(query: Query) -> Recalling:
    wanted = queries.parse_explain(query)

    async def answer(_: Outgoing, past: Past, live: Live, ranking_id: RankingId) -> Listing | Long:
        unity_id = unity_of(live, ranking_id, wanted.unity_id)
        refuse_unknown(live, ranking_id, Filter(competitor_id=wanted.competitor_id))
        told = await past.explanation(
            live.tournament_id,
            ranking_id,
            unity_id,
            wanted.competitor_id,
            start=wanted.start,
            end=wanted.end or live.head.sequence,
            head=live.head.sequence,
            limit=wanted.limit,
        )
        return answers_past.explanation(told, unity_id, wanted.competitor_id)

    return answer


async def _create_ranking(desk: Desk, form: Form, _: Ids) -> Command:
    return wire.create_ranking(form, RankingId(await desk.new_id()), UnityId(await desk.new_id()))


async def _modify_ranking(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.modify_ranking(form, RankingId(ids["ranking_id"]))


async def _add_points(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.add_points(form, RankingId(ids["ranking_id"]))


async def _add_unity(desk: Desk, form: Form, ids: Ids) -> Command:
    return wire.add_unity(form, RankingId(ids["ranking_id"]), UnityId(await desk.new_id()))


async def _close_ranking(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.close_ranking(form, RankingId(ids["ranking_id"]))


async def _reopen_ranking(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.reopen_ranking(form, RankingId(ids["ranking_id"]))


async def _add_competition(desk: Desk, form: Form, _: Ids) -> Command:
    return wire.add_competition(form, CompetitionId(await desk.new_id()))


async def _change_competition(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.change_competition(form, CompetitionId(ids["competition_id"]))


async def _void_competition(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.void_competition(form, CompetitionId(ids["competition_id"]))


async def _unvoid_competition(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.unvoid_competition(form, CompetitionId(ids["competition_id"]))


async def _register_competitor(desk: Desk, form: Form, _: Ids) -> Command:
    return wire.register_competitor(form, CompetitorId(await desk.new_id()))


async def _change_competitor(_: Desk, form: Form, ids: Ids) -> Command:
    return wire.change_competitor(form, CompetitorId(ids["competitor_id"]))


_TOURNAMENT: Final = "/tournament/{tournament}"

ROUTES: Final[tuple[Read | Show | Recall | Write | Preview, ...]] = (
    Write("PUT", _TOURNAMENT + "/rankings/{ranking_id}/add.json", _add_points),
    Read(_TOURNAMENT + "/rankings.json", _list_rankings),
    Write("POST", _TOURNAMENT + "/rankings.json", _create_ranking),
    Write("PUT", _TOURNAMENT + "/rankings/{ranking_id}.json", _modify_ranking),
    Read(_TOURNAMENT + "/competitions.json", _list_competitions),
    Write("POST", _TOURNAMENT + "/competitions.json", _add_competition),
    Read(_TOURNAMENT + "/competitors.json", _list_competitors),
    # Ours, in the style of the interface's seven.
    Show(_TOURNAMENT + "/rankings/{ranking_id}.json", _show_ranking),
    Show(_TOURNAMENT + "/competitions/{competition_id}.json", _show_competition),
    Show(_TOURNAMENT + "/competitors/{competitor_id}.json", _show_competitor),
    Write("POST", _TOURNAMENT + "/competitors.json", _register_competitor),
    Write("PUT", _TOURNAMENT + "/competitors/{competitor_id}.json", _change_competitor),
    Write("PUT", _TOURNAMENT + "/competitions/{competition_id}.json", _change_competition),
    Write("POST", _TOURNAMENT + "/rankings/{ranking_id}/unities.json", _add_unity),
    Write("PUT", _TOURNAMENT + "/rankings/{ranking_id}/close.json", _close_ranking, Scope.ADMIN),
    Write("PUT", _TOURNAMENT + "/rankings/{ranking_id}/reopen.json", _reopen_ranking, Scope.ADMIN),
    Write("PUT", _TOURNAMENT + "/competitions/{competition_id}/void.json", _void_competition, Scope.ADMIN),
    Write("PUT", _TOURNAMENT + "/competitions/{competition_id}/unvoid.json", _unvoid_competition, Scope.ADMIN),
    Preview(_TOURNAMENT + "/competitions/{competition_id}/void.json", VoidCompetition),
    Preview(_TOURNAMENT + "/competitions/{competition_id}/unvoid.json", UnvoidCompetition),
    Recall(_TOURNAMENT + "/rankings/{ranking_id}/standings.json", _show_standings),
    Recall(_TOURNAMENT + "/rankings/{ranking_id}/history.json", _show_history),
    Recall(_TOURNAMENT + "/rankings/{ranking_id}/explain.json", _explain),
)


# ── What they have in common ────────────────────────────────────────────────────────────────────────────

QUERIES_KEPT_MAX: Final = 1_000
QUERY_KEPT_CHARACTERS_MAX: Final = 50
SLUG_CHARACTERS_LOGGED: Final = 100
_NO_TOURNAMENT: Final = "There is no such tournament; see the slug in its address."
_IDEMPOTENCY_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


class Operations:
    """Answers the routes of ROUTES with one desk. Raises errors; `front.py` answers them."""

    def __init__(
        self,
        desk: Desk,
        guard: Guard,
        outgoing: Outgoing,
        *,
        failures: Throttle,
        requests: Throttle | None = None,
        proxies: int = 0,
    ) -> None:
        self._desk = desk
        self._guard = guard
        self._bodies = Bodies()
        self._failures = failures
        self._requests = requests
        self._proxies = proxies
        self._outgoing = outgoing
        self._past = Past(desk.database, outgoing.turns)
        self._slugs = Slugs(desk.database)

    def add_to(self, router: Router) -> None:
        for route in ROUTES:
            match route:
                case Read():
                    router.add("GET", route.path, self._read_handler(route))
                case Show():
                    router.add("GET", route.path, self._show_handler(route))
                case Recall():
                    router.add("GET", route.path, self._recall_handler(route))
                case Write():
                    router.add(route.method, route.path, self._write_handler(route))
                case Preview():
                    router.add("GET", route.path, self._preview_handler(route))

    async def authenticated(self, incoming: IncomingRequest, scope: Scope) -> Token:
        """Returns the token of a request if it reaches as far as `scope`, and counts the request.

        Raises Unauthenticated, Forbidden, TooManyRequests and DatabaseUnavailable.
        """
        authorization = incoming.request.headers.get("Authorization")
        token = self._guard.kept(authorization) or await self._looked_up(incoming.request, authorization)
        incoming.facts["actor"] = token.token_id
        if self._requests is not None:
            self._requests.take(token.token_id)
        if token.scope < scope:
            raise Forbidden(f"This needs a token of scope {scope.text}; this token's is {token.scope.text}.")
        return token

    async def _looked_up(self, request: web.BaseRequest, authorization: str | None) -> Token:
        """Looks up a token that is not known, or no longer. If it was good a moment ago, the failures of others at its
        address do not hold it up."""
        if self._guard.knew(authorization):
            return await self._guard.token_of(authorization)
        address = address_of(request, proxies=self._proxies)
        self._failures.refuse(address)
        try:
            return await self._guard.token_of(authorization)
        except Unauthenticated:
            self._failures.count(address)
            raise

    async def _tournament(self, incoming: IncomingRequest, token: Token) -> TournamentId:
        """The tournament of the path. Raises the same NotFound if it does not exist and if the token is not for it, and
        DatabaseUnavailable."""
        slug = incoming.parameters["tournament"]
        incoming.facts["tournament"] = slug[:SLUG_CHARACTERS_LOGGED]
        tournament_id = await self._slugs.tournament_id(slug)
        if tournament_id is None or not token.allows(tournament_id):
            raise NotFound(_NO_TOURNAMENT)
        return tournament_id

    async def _pin(self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId) -> Live:
        """Pins the live of the tournament, once it is sure to be that of the path. The caller must unpin it.

        After a restore a slug can mean another tournament than before, and an id can belong to another one. So the slug
        of the live decides: it is from the same moment as its log. Raises as `_tournament`, `Lives.pin` and
        `Lives.current`.
        """
        slug = incoming.parameters["tournament"]
        live = await self._desk.lives.pin(tournament_id)
        if live.slug == slug:
            return live
        try:
            self._slugs.forget(slug)
            await self._desk.lives.current(live)
        finally:
            self._desk.lives.unpin(live)
        live = await self._desk.lives.pin(await self._tournament(incoming, token))
        if live.slug == slug:
            return live
        self._desk.lives.unpin(live)
        raise NotFound(_NO_TOURNAMENT)

    @asynccontextmanager
    async def _pinned(
        self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId
    ) -> AsyncIterator[Live]:
        """As `_pin`, and unpins it at the end. For requests that are rare enough for what this costs."""
        live = await self._pin(incoming, token, tournament_id)
        try:
            yield live
        finally:
            self._desk.lives.unpin(live)

    def _read_handler(self, route: Read) -> Handler:
        understood: dict[str, Callable[[Live], Listing | Later]] = {}  # by query: mostly the same few come again

        def answering(request: web.BaseRequest) -> Callable[[Live], Listing | Later]:
            query = request.rel_url.raw_query_string
            answer = understood.get(query)
            if answer is None:
                answer = route.answer(_query(request))
                if len(understood) < QUERIES_KEPT_MAX and len(query) <= QUERY_KEPT_CHARACTERS_MAX:
                    understood[query] = answer
            return answer

        async def handle(incoming: IncomingRequest) -> Reply:
            token = await self.authenticated(incoming, Scope.READ)
            tournament_id = await self._tournament(incoming, token)
            answer = answering(incoming.request)
            live = await self._pin(incoming, token, tournament_id)
            try:
                await self._desk.lives.current(live)
                made = answer(live)
                listing = made if isinstance(made, Listing) else await self._outgoing.begun(made)
            finally:
                self._desk.lives.unpin(live)
            return _list_reply(incoming.request, listing)

        return handle

    def _show_handler(self, route: Show) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            token = await self.authenticated(incoming, Scope.READ)
            tournament_id = await self._tournament(incoming, token)
            wire.parse_no_query(_query(incoming.request))
            ids = _ids(incoming.parameters)
            async with self._pinned(incoming, token, tournament_id) as live:
                await self._desk.lives.current(live)
                made = route.answer(live, ids)
                listing = made if isinstance(made, Listing) else await self._outgoing.begun(made)
            return _list_reply(incoming.request, listing)

        return handle

    def _recall_handler(self, route: Recall) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            token = await self.authenticated(incoming, Scope.READ)
            tournament_id = await self._tournament(incoming, token)
            answer = route.answer(_query(incoming.request))
            ranking_id = RankingId(_ids(incoming.parameters)["ranking_id"])
            async with self._pinned(incoming, token, tournament_id) as live:
                await self._desk.lives.current(live)
                ranking_of(live, ranking_id)
                head = live.head
                listing = await answer(self._outgoing, self._past, live, ranking_id)
                await self._past.refuse_replaced(tournament_id, head)
            return _list_reply(incoming.request, listing)

        return handle

    def _write_handler(self, route: Write) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            request = incoming.request
            token = await self.authenticated(incoming, route.scope)
            tournament_id = await self._tournament(incoming, token)
            wire.parse_no_query(_query(request))
            key = _idempotency_key(request)
            form = await self._bodies.form(request)
            ids = _ids(incoming.parameters)
            condition = _condition(request, ids)
            command = await route.command(self._desk, form, ids)
            live = await self._pin(incoming, token, tournament_id)
            try:
                receipt = await self._desk.submit(
                    live,
                    command,
                    actor=token.token_id,
                    idempotency_key=key,
                    fingerprint=None if key is None else fingerprint(request.method, request.path, form),
                    condition=condition,
                )
                made = answers.change(live, receipt.event)
                body = made if isinstance(made, bytes) else await self._outgoing.begun_after_all(made)
            finally:
                self._desk.lives.unpin(live)
            incoming.facts["sequence"] = receipt.sequence
            headers = header("Tallybook-Sequence", receipt.sequence)
            if receipt.replayed:
                incoming.facts["replayed"] = True
                headers += header("Idempotency-Replayed", "true")
            return Reply(body, headers=headers)

        return handle

    def _preview_handler(self, route: Preview) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            token = await self.authenticated(incoming, Scope.ADMIN)
            tournament_id = await self._tournament(incoming, token)
            wire.parse_no_query(_query(incoming.request))
            command = route.command(competition_id=CompetitionId(_ids(incoming.parameters)["competition_id"]))
            async with self._pinned(incoming, token, tournament_id) as live:
                decided = await self._desk.preview(live, command)
                body = comparisons.preview(live, decided)
                return Reply(body if isinstance(body, bytes) else await self._outgoing.begun(partial(_begun, body)))

        return handle


def _begun(long: Long) -> Long:
    return long


def _ids(parameters: Mapping[str, str]) -> Ids:
    """The ids among the parameters of a path, by name. Raises NotFound for a text that cannot be an id."""
    ids = {}
    for name, text in parameters.items():
        if name != "tournament":
            number = parse_id(text)
            if number is None:
                raise NotFound(f"This tournament has no {name.removesuffix('_id')} {text[:40]!r}.")
            ids[name] = number
    return ids


def _query(request: web.BaseRequest) -> Query:
    return list(request.query.items()) if request.query_string else []


def _idempotency_key(request: web.BaseRequest) -> str | None:
    if "Idempotency-Key" not in request.headers:
        return None
    keys = request.headers.getall("Idempotency-Key")
    if len(keys) > 1 or not _IDEMPOTENCY_KEY.fullmatch(keys[0]):
        raise Unreadable("Idempotency-Key must be one value of 1 to 255 visible ASCII characters.")
    return keys[0]


def _condition(request: web.BaseRequest, ids: Ids) -> Condition | None:
    if "If-Match" not in request.headers:
        return None
    return parse_if_match(request.headers.getall("If-Match"), ids)


def _list_reply(request: web.BaseRequest, listing: Listing | Long) -> Reply:
    """The listing, or 304 if the client has just these bytes already."""
    headers = header("ETag", f'"{listing.etag}"')
    if "If-None-Match" in request.headers:
        asked = request.if_none_match or ()
        if request.headers["If-None-Match"] == "*" or any(tag.value == listing.etag for tag in asked):
            return Reply(b"", code=304, headers=headers)
    return Reply(listing.body, headers=headers)
