"""What the operations of each kind have in common: from a request to the bytes of its answer.

GET   token ─► scope ─► tournament ─► query ─► live tournament, made current ─► bytes
                                                    └─► the log, for questions about the past ─► bytes
POST  token ─► scope ─► tournament ─► body ─► form ─► command ─► desk ─► bytes
PUT
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, assert_never

from aiohttp import web

from api.desk.conditions import Condition, parse_if_match
from api.desk.desk import Desk
from api.desk.remembered import Slugs
from api.http.auth import Guard, Scope, Token
from api.http.body import Bodies
from api.http.compression import Compression
from api.http.forms import Form, fingerprint, parse_id
from api.http.outgoing import Later, Long, Outgoing
from api.http.preferences import prefers_minimal
from api.http.reply import Reply, header
from api.http.router import Handler, IncomingRequest, Router
from api.http.throttle import Throttle, address_of
from api.interface.declarations import (
    TOURNAMENT,
    Operation,
    Preview,
    Read,
    Recall,
    RecallContext,
    Write,
    method_of,
    scope_of,
)
from api.interface.fields import ITEMS, FormReader, ItemsReader, read_query
from api.interface.lookup import ranking_of
from api.interface.operations import OPERATIONS
from api.interface.rendering import TaggedBody
from api.interface.voiding import render_preview
from engine.domain.commands import Command
from engine.domain.errors import Forbidden, NotFound, Unauthenticated, Unreadable
from engine.domain.terms import TournamentId
from engine.process.turns import in_turns
from projections.live.tournament import LiveTournament
from projections.past.past import Past

PathIds = Mapping[str, Any]

QUERIES_KEPT_MAX: Final = 1_000
QUERY_KEPT_CHARACTERS_MAX: Final = 50
SLUG_CHARACTERS_LOGGED: Final = 100
_NO_TOURNAMENT: Final = "There is no such tournament; see the slug in its address."
_MINIMAL_APPLIED: Final = header("Preference-Applied", "return=minimal")
_IDEMPOTENCY_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


class Handlers:
    """Answers the OPERATIONS with one desk. Raises errors; `front.py` answers them."""

    def __init__(
        self,
        desk: Desk,
        guard: Guard,
        outgoing: Outgoing,
        compression: Compression,
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
        self._compression = compression
        self._past = Past(desk.database, outgoing.turns)
        self._slugs = Slugs(desk.database)

    def add_to(self, router: Router) -> None:
        for operation in OPERATIONS:
            router.add(method_of(operation), TOURNAMENT + operation.path, self._handler(operation))

    def _handler(self, operation: Operation) -> Handler:
        match operation:
            case Read():
                return self._read_handler(operation)
            case Recall():
                return self._recall_handler(operation)
            case Write():
                return self._write_handler(operation)
            case Preview():
                return self._preview_handler(operation)
            case _:
                assert_never(operation)

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

    async def _pin(self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId) -> LiveTournament:
        """Pins the live of the tournament, once it is sure to be that of the path. The caller must unpin it.

        After a restore a slug can mean another tournament than before, and an id can belong to another one. So the slug
        of the live decides: it is from the same moment as its log. Raises as `_tournament`, `LivePool.pin` and
        `LivePool.make_current`.
        """
        slug = incoming.parameters["tournament"]
        live = await self._desk.live_pool.pin(tournament_id)
        if live.slug == slug:
            return live
        try:
            self._slugs.forget(slug)
            await self._desk.live_pool.make_current(live)
        finally:
            self._desk.live_pool.unpin(live)
        live = await self._desk.live_pool.pin(await self._tournament(incoming, token))
        if live.slug == slug:
            return live
        self._desk.live_pool.unpin(live)
        raise NotFound(_NO_TOURNAMENT)

    @asynccontextmanager
    async def _pinned(
        self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId
    ) -> AsyncIterator[LiveTournament]:
        """As `_pin`, and unpins it at the end. For requests that are rare enough for what this costs."""
        live = await self._pin(incoming, token, tournament_id)
        try:
            yield live
        finally:
            self._desk.live_pool.unpin(live)

    def _read_handler(self, operation: Read) -> Handler:
        understood: dict[str, dict[str, Any]] = {}  # by query: mostly the same few come again

        def arguments(request: web.BaseRequest) -> dict[str, Any]:
            query = request.rel_url.raw_query_string
            read = understood.get(query)
            if read is None:
                read = _read_query(request, operation)
                if len(understood) < QUERIES_KEPT_MAX and len(query) <= QUERY_KEPT_CHARACTERS_MAX:
                    understood[query] = read
            return read

        async def handle(incoming: IncomingRequest) -> Reply:
            token = await self.authenticated(incoming, scope_of(operation))
            tournament_id = await self._tournament(incoming, token)
            read = arguments(incoming.request)
            question = operation.question(**_ids(incoming.parameters), **read)
            live = await self._pin(incoming, token, tournament_id)
            try:
                await self._desk.live_pool.make_current(live)
                if operation.find is not None:
                    question = await operation.find(live, self._outgoing.turns, question)
                await live.nested_sets.settle()
                made = operation.render(live, operation.answer, question)
                answer = made if isinstance(made, TaggedBody) else await self._outgoing.begun(made)
            finally:
                self._desk.live_pool.unpin(live)
            return await self._compression.reply(incoming.request, answer.body, etag=answer.etag)

        return handle

    def _recall_handler(self, operation: Recall) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            token = await self.authenticated(incoming, scope_of(operation))
            tournament_id = await self._tournament(incoming, token)
            arguments = _read_query(incoming.request, operation)
            question = operation.question(**_ids(incoming.parameters), **arguments)
            async with self._pinned(incoming, token, tournament_id) as live:
                await self._desk.live_pool.make_current(live)
                ranking_of(live.board, question.ranking_id)
                head = live.head
                context = RecallContext(live, self._past, self._outgoing.turns, self._outgoing.begun)
                answer = await operation.render(context, operation.answer, question)
                if context.log_is_read:
                    await self._past.refuse_replaced(tournament_id, head)  # or its slices may be of two histories
            return await self._compression.reply(incoming.request, answer.body, etag=answer.etag)

        return handle

    def _write_handler(self, operation: Write) -> Handler:
        form_reader = FormReader(operation.takes)
        items_reader = ItemsReader(operation.fields)

        def form_of_json(body: bytes) -> Form:
            return form_reader.form_of(form_reader.json_objects.read_body(body))

        async def handle(incoming: IncomingRequest) -> Reply:
            request = incoming.request
            token = await self.authenticated(incoming, operation.scope)
            tournament_id = await self._tournament(incoming, token)
            _refuse_query(request)
            key = _idempotency_key(request)
            form = await self._bodies.form(request, form_of_json)
            ids = _ids(incoming.parameters)
            condition = _condition(request, ids)
            minimal = "Prefer" in request.headers and prefers_minimal(request.headers.getall("Prefer"))
            many = operation.many if form.get(ITEMS) else None
            if many is None:
                (command,) = await self._commands(operation, ids, [form_reader.read(form)])
            else:
                items = await self._commands(operation, ids, await in_turns(items_reader.read(form)))
                command = many.command(items=tuple(items))
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
                if minimal:
                    made: bytes | Later = operation.minimal(receipt.events, of_items=many is not None)
                else:
                    await live.nested_sets.settle()
                    made = operation.whole(live, receipt.events, of_items=many is not None)
                body = made if isinstance(made, bytes) else await self._outgoing.begun_after_all(made)
            finally:
                self._desk.live_pool.unpin(live)
            incoming.facts["sequence"] = receipt.last_sequence
            headers = header("Tallybook-Sequence", receipt.last_sequence)
            if minimal:
                headers += _MINIMAL_APPLIED
            if receipt.replayed:
                incoming.facts["replayed"] = True
                headers += header("Idempotency-Replayed", "true")
            return Reply(body, headers=headers)

        return handle

    async def _commands(self, operation: Write, ids: PathIds, said: list[dict[str, Any]]) -> list[Command]:
        """A command for each of these arguments, with the fresh ids that it needs. Raises DatabaseUnavailable."""
        names = operation.new_ids.values()
        new_ids = iter(await self._desk.new_ids(len(names) * len(said)) if names else ())
        return [operation.command(**ids, **arguments, **{name: next(new_ids) for name in names}) for arguments in said]

    def _preview_handler(self, operation: Preview) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            token = await self.authenticated(incoming, scope_of(operation))
            tournament_id = await self._tournament(incoming, token)
            arguments = _read_query(incoming.request, operation)
            command = operation.command(**_ids(incoming.parameters), **arguments)
            async with self._pinned(incoming, token, tournament_id) as live:
                decided = await self._desk.preview(live, command)
                body = render_preview(live, operation.answer, decided)
                if isinstance(body, Long):
                    await self._outgoing.begun(lambda: body)  # it has begun, and is only to be counted
            return await self._compression.reply(incoming.request, body)

        return handle


def _ids(parameters: Mapping[str, str]) -> PathIds:
    """The ids among the parameters of a path, by name. Raises NotFound for a text that cannot be an id."""
    ids = {}
    for name, text in parameters.items():
        if name != "tournament":
            number = parse_id(text)
            if number is None:
                raise NotFound.of(name.removesuffix("_id"), repr(text[:40]))
            ids[name] = number
    return ids


def _refuse_query(request: web.BaseRequest) -> None:
    read_query(_query(request), ())


def _read_query(request: web.BaseRequest, operation: Read | Recall | Preview) -> dict[str, Any]:
    return read_query(_query(request), operation.fields)


def _query(request: web.BaseRequest) -> list[tuple[str, str]]:
    return list(request.query.items()) if request.query_string else []


def _idempotency_key(request: web.BaseRequest) -> str | None:
    if "Idempotency-Key" not in request.headers:
        return None
    keys = request.headers.getall("Idempotency-Key")
    if len(keys) > 1 or not _IDEMPOTENCY_KEY.fullmatch(keys[0]):
        raise Unreadable("Idempotency-Key must be one value of 1 to 255 visible ASCII characters.")
    return keys[0]


def _condition(request: web.BaseRequest, ids: PathIds) -> Condition | None:
    if "If-Match" not in request.headers:
        return None
    return parse_if_match(request.headers.getall("If-Match"), ids)
