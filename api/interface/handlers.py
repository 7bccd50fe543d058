"""What the operations of each kind have in common: from a request to the bytes of its answer.

GET   token ─► scope ─► tournament ─► query ─► live tournament, made current ─► bytes
                                                    └─► the log, for questions about the past ─► bytes
POST  token ─► scope ─► tournament ─► body ─► form ─► command ─► desk ─► bytes
PUT
GET …/events   token, ticket or session ─► tournament ─► query ─► live tournament, made current ─► stream

The console does what it does through `perform`, `preview` and `visited`: the same rows and rules, for the token that
somebody has signed in with.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar, assert_never

from msgspec.structs import replace

from api.access.auth import Scope, Token
from api.desk.case import Receipt
from api.desk.conditions import Condition, Refused, parse_if_match
from api.desk.desk import Desk
from api.desk.fingerprints import fingerprint
from api.http.body import Bodies, form_here
from api.http.compression import Compression
from api.http.forms import Form
from api.http.outgoing import Later, Long, Outgoing
from api.http.preferences import prefers_minimal
from api.http.reply import STREAMED, Reply, header
from api.http.request import HttpRequest
from api.http.router import Handler, IncomingRequest, PathIds, Router
from api.interface import keys
from api.interface.access import Access, refuse_beyond_scope
from api.interface.declarations import (
    IDEMPOTENCY_KEY_PATTERN,
    TOURNAMENT,
    Acting,
    Action,
    Operation,
    Preview,
    Read,
    Recall,
    RecallContext,
    Recording,
    Write,
    method_of,
    scope_of,
)
from api.interface.fields import ITEMS, MARK, FormReader, ItemsReader, lists_of, read_query
from api.interface.operations import ACTIONS, OPERATIONS
from api.interface.public.view import PublicViews
from api.interface.rendering import LINES_AT_ONCE_MAX, TaggedBody, encode, whole
from api.interface.resources.competitions import SHOWN_RANKING
from api.interface.resources.previews import answer_preview
from api.interface.resources.rankings import RankingQuestion
from api.interface.resources.standings import STANDINGS, render_standings
from api.interface.resources.stream import (
    EVENTS,
    StreamQuestion,
    first_after,
    format_of,
    refuse_unknown_ranking,
    start_of,
)
from api.interface.resources.tournaments import pin_named
from api.stream.followers import Streams
from api.stream.frames import WHOLE_LOG, reset
from api.stream.listeners import UNBUFFERED, Asked, StreamReply
from engine.domain.commands import Command, DeleteTournament, Previewed, ReversePoints
from engine.domain.errors import (
    Fault,
    Forbidden,
    HistoryReplaced,
    NotFound,
    QueueFull,
    Unacceptable,
    Unreadable,
)
from engine.domain.events import Event
from engine.domain.terms import TournamentId
from engine.process.time_slices import in_time_slices
from projections.answers.foreseen import Foreseen, ForeseenQuestion
from projections.answers.lookup import named, ranking_of
from projections.answers.view import ask
from projections.answers.zones import with_days
from projections.board.board import Board
from projections.live.pool import in_time
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries
from projections.past import moments
from projections.past.past import Past

QUERIES_KEPT_MAX: Final = 1_000
QUERY_KEPT_CHARACTERS_MAX: Final = 50
_MINIMAL_APPLIED: Final = header("Preference-Applied", "return=minimal")
_IDEMPOTENCY_KEY: Final = re.compile(IDEMPOTENCY_KEY_PATTERN)


class Handlers:
    """Answers the OPERATIONS with one desk. Raises errors; `front.py` answers them."""

    def __init__(
        self,
        desk: Desk,
        access: Access,
        outgoing: Outgoing,
        compression: Compression,
        streams: Streams,
    ) -> None:
        self.access = access
        self._desk = desk
        self._live_pool = desk.live_pool
        self._bodies = Bodies()
        self._outgoing = outgoing
        self._compression = compression
        self._streams = streams
        self._past = Past(desk.database, outgoing.time_slices)
        parts = {"_past": self._past, "time_slices": outgoing.time_slices, "begin": outgoing.begun}
        self._view_parts: dict[str, Any] = parts  # of each RecallContext
        self.public_views = PublicViews(desk, access.slugs, outgoing)

    def add_to(self, router: Router) -> None:
        for operation in OPERATIONS:
            router.add(method_of(operation), TOURNAMENT + operation.path, self._handler(operation))
        router.add("GET", TOURNAMENT + EVENTS.path, self._follow)
        for action in ACTIONS:
            router.add(action.method, action.address, self._action_handler(action))

    def _handler(self, operation: Operation) -> Handler:
        match operation:
            case Read():
                return self._read_handler(operation)
            case Recall():
                return self._recall_handler(operation)
            case Recording():
                return self._recording_handler(operation)
            case Write():
                return self._write_handler(operation)
            case Preview():
                return self._preview_handler(operation)
            case _:
                assert_never(operation)

    async def _pin(self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId) -> LiveTournament:
        """Pins the live of the tournament, as `pin_named`. Raises as that and as `_tournament`."""

        async def again(_: str) -> TournamentId:
            return await self.access.tournament(incoming, token)

        slug = incoming.parameters["tournament"]
        async with in_time(incoming.taken_at):
            return await pin_named(self._live_pool, self.access.slugs, slug, tournament_id, again)

    @asynccontextmanager
    async def _pinned(
        self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId
    ) -> AsyncIterator[LiveTournament]:
        """As `_pin`, and unpins it at the end. For rare requests, because this costs more."""
        live = self._live_pool.pin_known(tournament_id, incoming.parameters["tournament"])
        if live is None:
            live = await self._pin(incoming, token, tournament_id)
        try:
            yield live
        finally:
            self._live_pool.unpin(live)

    @asynccontextmanager
    async def _current(
        self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId
    ) -> AsyncIterator[Board]:
        """The board, as of now."""
        async with self._pinned(incoming, token, tournament_id) as live:
            await self._live_pool.make_current(live, read_at=incoming.taken_at)
            yield live.board

    async def _ids_by_key(self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId) -> PathIds:
        """The ids of a path that has keys in place of some. Raises NotFound."""
        if not any(text.startswith(MARK) for text in incoming.parameters.values()):
            return incoming.ids
        async with self._current(incoming, token, tournament_id) as board:
            return keys.ids_of(incoming.parameters, board, repeats=False)

    async def _ids_of_repeat(
        self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId
    ) -> tuple[PathIds, Refused | None]:
        """As `_ids_by_key`; a request that may be a repeat is refused by the log alone."""
        try:
            return await self._ids_by_key(incoming, token, tournament_id), None
        except NotFound as refusal:
            if "Idempotency-Key" not in incoming.request.headers:
                raise
            async with self._current(incoming, token, tournament_id) as board:
                return keys.ids_of(incoming.parameters, board, repeats=True), Refused(refusal)

    async def _asked_by_key(
        self,
        incoming: IncomingRequest,
        token: Token,
        tournament_id: TournamentId,
        operation: Read | Recall | Preview,
        unreadable: Unreadable,
    ) -> dict[str, Any]:
        """What a query asks that has keys in place of some ids. Raises `unreadable` if it has none, Unreadable and
        Unacceptable."""
        query = _query(incoming.request)
        if not keys.has_keys(query):
            raise unreadable
        made = operation.command if isinstance(operation, Preview) else operation.question
        async with self._current(incoming, token, tournament_id) as board:
            return read_query(keys.query_of(query, made, operation.fields, board), operation.fields)

    def _read_handler(self, operation: Read) -> Handler:
        known, looked_up = self.access.known, self.access.looked_up
        understood: dict[str, dict[str, Any]] = {}  # by query: mostly the same few recur

        def understand(request: HttpRequest) -> dict[str, Any]:
            query, read = request.url.raw_query_string, read_query(_query(request), operation.fields)
            if len(understood) < QUERIES_KEPT_MAX and len(query) <= QUERY_KEPT_CHARACTERS_MAX:
                understood[query] = read
            return read

        scope = scope_of(operation)

        async def handle(incoming: IncomingRequest) -> Reply:
            token, tournament_id = known(incoming, scope) or await looked_up(incoming, scope)
            arguments = understood.get(incoming.request.url.raw_query_string)
            if arguments is None:
                try:
                    arguments = understand(incoming.request)
                except Unreadable as error:
                    arguments = await self._asked_by_key(incoming, token, tournament_id, operation, error)
            if (ids := incoming.known_ids) is None:
                ids = await self._ids_by_key(incoming, token, tournament_id)
            question = operation.question(**ids, **arguments)
            live = self._live_pool.pin_known(tournament_id, incoming.parameters["tournament"])
            if live is None:
                live = await self._pin(incoming, token, tournament_id)
            try:
                await self._live_pool.make_current(live, read_at=incoming.taken_at)
                if operation.find is not None:
                    question = await operation.find(live, self._outgoing.time_slices, question)
                if not live.nested_sets.ready:
                    await live.nested_sets.settle()
                made = operation.render(live, operation.answer, question)
                answer = made if isinstance(made, TaggedBody) else await self._outgoing.begun(made)
            finally:
                self._live_pool.unpin(live)
            return self._compression.reply_at_hand(
                incoming.request, answer.body, etag=answer.etag
            ) or await self._compression.reply(incoming.request, answer.body, etag=answer.etag)

        return handle

    def _recall_handler(self, operation: Recall) -> Handler:
        known, looked_up, compression = self.access.known, self.access.looked_up, self._compression
        scope, fields, render, answer_of = scope_of(operation), operation.fields, operation.render, operation.answer
        is_of_ranking, made = "{ranking_id}" in operation.path, operation.question

        async def handle(incoming: IncomingRequest) -> Reply:
            token, tournament_id = known(incoming, scope) or await looked_up(incoming, scope)
            try:
                arguments = read_query(_query(incoming.request), fields)
            except Unreadable as error:
                arguments = await self._asked_by_key(incoming, token, tournament_id, operation, error)
            if (ids := incoming.known_ids) is None:
                ids = await self._ids_by_key(incoming, token, tournament_id)
            async with self._recalled(incoming, token, tournament_id) as context:
                question = with_days(context.live.board, made(**ids, **arguments)) if arguments else made(**ids)
                if is_of_ranking:
                    ranking_of(context.live.board, question.ranking_id)
                answer = await render(context, answer_of, question)
            return compression.reply_at_hand(
                incoming.request, answer.body, etag=answer.etag
            ) or await compression.reply(incoming.request, answer.body, etag=answer.etag)

        return handle

    @asynccontextmanager
    async def _recalled(
        self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId
    ) -> AsyncIterator[RecallContext]:
        """The sources of answers about the past. Whether the log still has the data read is checked at the end."""
        async with self._pinned(incoming, token, tournament_id) as live:
            await self._live_pool.make_current(live, read_at=incoming.taken_at)
            head = live.head
            context = RecallContext(live, **self._view_parts)
            yield context
            if context.log_is_read:
                await moments.refuse_replaced(self._past, tournament_id, head)  # or its chunks may be of two histories

    def _write_handler(self, operation: Write) -> Handler:  # noqa: PLR0915 - more calls would cost every add
        known, looked_up = self.access.known, self.access.looked_up
        scope, new_ids, make = operation.scope, operation.new_ids, operation.command
        is_bound = make in (ReversePoints, DeleteTournament)
        form_reader = FormReader(operation.takes)
        items_reader, lists = ItemsReader(operation.fields), lists_of(operation.fields)

        def form_of_json(body: bytes) -> Form:
            return form_reader.form_of(form_reader.json_objects.read_body(body))

        async def handle(incoming: IncomingRequest) -> Reply:
            request, headers = incoming.request, incoming.request.headers
            token, tournament_id = known(incoming, scope) or await looked_up(incoming, scope)
            if tournament_id in self._desk.dockets:
                self._desk.refuse_late(tournament_id)  # before the body is taken apart
            if request.url.raw_query_string and not isinstance(operation, Recording):
                _refuse_query(request)
            key = _idempotency_key(headers.getall("Idempotency-Key")) if "Idempotency-Key" in headers else None
            form = form_here(request, lists) or await self._bodies.form(incoming, form_of_json, lists)
            condition: Condition | Refused | None = None
            if (ids := incoming.known_ids) is None:
                ids, condition = await self._ids_of_repeat(incoming, token, tournament_id)
            if "If-Match" in headers:
                stated = parse_if_match(headers.getall("If-Match"), ids)
                condition = condition or stated
            minimal = "Prefer" in headers and prefers_minimal(headers.getall("Prefer"))
            many = operation.many if form.get(ITEMS) else None
            try:
                said = [form_reader.read(form)] if many is None else await in_time_slices(items_reader.read(form))
            except Unacceptable:
                if not keys.has_keys(form.items()):
                    raise
                said, refused = await self._said_by_key(incoming, token, tournament_id, operation, form)
                condition = condition if isinstance(condition, Refused) else refused or condition
            if new_ids:
                await self._add_new_ids(operation, said)
            command = (
                make(**ids, **said[0])
                if many is None
                else many.command(items=tuple([make(**ids, **arguments) for arguments in said]))
            )
            if is_bound:
                command = _of_token(command, token, incoming)
            live = self._live_pool.pin_known(tournament_id, incoming.parameters["tournament"])
            if live is None:
                live = await self._pin(incoming, token, tournament_id)
            try:
                receipt = await self._desk.submit(
                    live,
                    command,
                    actor=token.token_id,
                    idempotency_key=key,
                    fingerprint=None if key is None else fingerprint(request.method, request.path, form),
                    condition=condition,
                    taken_at=incoming.taken_at,
                    size_bytes=request.body_bytes,
                )
                if minimal:
                    made: bytes | Later = operation.minimal(receipt.events, of_items=many is not None)
                else:
                    if not live.nested_sets.ready:
                        await live.nested_sets.settle()
                    made = operation.whole(live, receipt.events, of_items=many is not None)
                body = made if isinstance(made, bytes) else await self._outgoing.begun_after_all(made)
            finally:
                self._live_pool.unpin(live)
            incoming.facts["sequence"] = sequence = receipt.last_sequence
            answer_headers = f"Tallybook-Sequence: {sequence}\r\n"
            if minimal:
                answer_headers += _MINIMAL_APPLIED
            if receipt.replayed:
                incoming.facts["replayed"] = True
                answer_headers += header("Idempotency-Replayed", "true")
            return Reply(body, headers=answer_headers)

        return handle

    async def _said_by_key(
        self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId, operation: Write, form: Form
    ) -> tuple[list[dict[str, Any]], Refused | None]:
        """What a form says that has keys in place of some ids; a request that may be a repeat is refused by the log
        alone. Raises Unacceptable."""
        async with self._current(incoming, token, tournament_id) as board:

            async def said(*, repeats: bool) -> list[dict[str, Any]]:
                by_ids = partial(keys.form_of, fields=operation.fields, board=board, repeats=repeats)
                if operation.many is not None and form.get(ITEMS):
                    return await in_time_slices(ItemsReader(operation.fields).read(form, by_ids))
                return [FormReader(operation.takes).read(by_ids(form))]

            try:
                return await said(repeats=False), None
            except Unacceptable as refusal:
                if "Idempotency-Key" in incoming.request.headers:
                    with suppress(Unacceptable):
                        return await said(repeats=True), Refused(refusal)
                raise

    def _recording_handler(self, operation: Recording) -> Handler:
        write = self._write_handler(operation)

        async def handle(incoming: IncomingRequest) -> Reply:
            ranking_id = read_query(_query(incoming.request), (SHOWN_RANKING,)).get(SHOWN_RANKING.name)
            if ranking_id is None:
                return await write(incoming)
            token, tournament_id = await self.access.looked_up(incoming, operation.scope)
            async with self._pinned(incoming, token, tournament_id) as live:
                await self._live_pool.make_current(live)
                ranking = named(live.board.rankings, "ranking", SHOWN_RANKING.name, ranking_id)
                if len(ranking.participants) * len(ranking.unities) > LINES_AT_ONCE_MAX:
                    raise Unacceptable("Its standings are too long for this answer; show them in windows.")
                reply = await write(incoming)
                await live.nested_sets.settle()
                shown = whole(render_standings(live, STANDINGS, RankingQuestion(ranking_id)))
            if isinstance(reply.body, bytes):
                reply.body = b"%b,%b" % (reply.body[:-1], shown[shown.index(b'"ranking":') :])
            return reply

        return handle

    async def _add_new_ids(self, operation: Write, said: list[dict[str, Any]]) -> None:
        """Adds to each of these arguments of a command the fresh ids that it needs. Raises DatabaseUnavailable."""
        names = operation.new_ids.values()
        new_ids = iter(await self._desk.new_ids(len(names) * len(said)))
        for arguments in said:
            arguments.update({name: next(new_ids) for name in names})

    def _preview_handler(self, operation: Preview) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            token, tournament_id = await self.access.looked_up(incoming, scope_of(operation))
            try:
                arguments = read_query(_query(incoming.request), operation.fields)
            except Unreadable as error:
                arguments = await self._asked_by_key(incoming, token, tournament_id, operation, error)
            if (ids := incoming.known_ids) is None:
                ids = await self._ids_by_key(incoming, token, tournament_id)
            command = operation.command(**ids, **arguments)
            async with self._pinned(incoming, token, tournament_id) as live:
                decided = await self._decided(live, _of_token(command, token, incoming))
                body = await answer_preview(
                    live, operation.answer, decided, RecallContext(live, **self._view_parts).read_sums
                )
                if isinstance(body, Long):
                    await self._outgoing.begun(lambda: body)  # it has begun, and must only be counted
            return await self._compression.reply(incoming.request, body)

        return handle

    async def _decided(self, live: LiveTournament, command: Previewed) -> tuple[Event, ...]:
        tries = Tries()
        while True:
            decided, head = await self._desk.preview(live, command), live.head
            if tries.over():
                break
            await asyncio.sleep(0)  # judging many lines takes as long as comparing them
            if live.head == head:
                break
        return tuple(decided)

    def _action_handler(self, action: Action) -> Handler:
        under_way = 0
        reader = FormReader(action.fields)

        def form_of_json(body: bytes) -> Form:
            return reader.form_of(reader.json_objects.read_body(body))

        async def asked(incoming: IncomingRequest) -> dict[str, Any]:
            if action.method == "GET":
                return read_query(_query(incoming.request), action.fields)
            _refuse_query(incoming.request)
            return reader.read(await self._bodies.form(incoming, form_of_json, lists_of(action.fields)))

        async def handle(incoming: IncomingRequest) -> Reply:
            nonlocal under_way
            keys_sent = incoming.request.headers.getall("Idempotency-Key", ())
            about: tuple[TournamentId, ...] = ()
            if action.of_service:
                token = await self.access.authenticated(incoming, action.scope)
            else:
                token, tournament_id = await self.access.looked_up(incoming, action.scope)
                about = (tournament_id,)
            arguments = await asked(incoming)
            acting = Acting(desk=self._desk, token=token, key=_idempotency_key([*keys_sent]) if keys_sent else None)
            if under_way == action.at_once_max:
                raise QueueFull
            under_way += 1
            try:
                done = await action.perform(acting, *about, **incoming.ids, **arguments)
            finally:
                under_way -= 1
            return Reply(action.answer.body(encode(done)))

        return handle

    # ── For who has signed in ───────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def visited(self, incoming: IncomingRequest, token: Token) -> AsyncIterator[RecallContext]:
        """The sources of pages about the tournament of the path, for the holder of this token. Raises NotFound if the
        token is not for it, HistoryReplaced, DatabaseUnavailable, and TournamentStopped."""
        tournament_id = await self.access.tournament(incoming, token)
        async with self._recalled(incoming, token, tournament_id) as context:
            yield context

    async def perform(
        self, incoming: IncomingRequest, operation: Write, token: Token, form: Form, *, key: str, if_match: str | None
    ) -> Receipt:
        """Performs the operation with this form, for the holder of this token. The ids and the tournament are those of
        the path; an id that the operation's path does not have is a field of its form. `key` and `if_match` are what
        the headers Idempotency-Key and If-Match would say. Raises as the operation does."""
        refuse_beyond_scope(token, operation.scope)
        tournament_id = await self.access.tournament(incoming, token)
        self._desk.refuse_late(tournament_id)
        _refuse_odd_key(key)
        ids, more = _parted(incoming.ids, operation)
        condition = None if if_match is None else parse_if_match([if_match], ids)
        form = {**form, **{name: str(value) for name, value in more.items()}}
        many = operation.many if form.get(ITEMS) else None
        if many is None:
            said = [FormReader(operation.fields).read(form)]
        else:
            said = await in_time_slices(ItemsReader(operation.fields).read(form))
        if operation.new_ids:
            await self._add_new_ids(operation, said)
        made = [operation.command(**ids, **arguments) for arguments in said]
        command = _of_token(made[0] if many is None else many.command(items=tuple(made)), token, incoming)
        path = (TOURNAMENT + operation.path).format(**incoming.parameters)
        async with self._pinned(incoming, token, tournament_id) as live:
            receipt = await self._desk.submit(
                live,
                command,
                actor=token.token_id,
                idempotency_key=key,
                fingerprint=fingerprint(operation.method, path, form),
                condition=condition,
                taken_at=incoming.taken_at,
            )
        incoming.facts["sequence"] = receipt.last_sequence
        if receipt.replayed:
            incoming.facts["replayed"] = True
        return receipt

    async def preview(
        self, incoming: IncomingRequest, operation: Preview, token: Token, form: Form | None = None
    ) -> Foreseen:
        """What the operation would lead to, with the fields of this form. Raises as the operation does."""
        refuse_beyond_scope(token, scope_of(operation))
        tournament_id = await self.access.tournament(incoming, token)
        ids, more = _parted(incoming.ids, operation)
        said = {**(form or {}), **{name: str(value) for name, value in more.items()}}
        query = FormReader(operation.fields).read(said)
        command = _of_token(operation.command(**ids, **query), token, incoming)
        async with self._pinned(incoming, token, tournament_id) as live:
            return await ask(
                RecallContext(live, **self._view_parts), ForeseenQuestion(await self._decided(live, command))
            )

    # ── Streams ─────────────────────────────────────────────────────────────────────────────────────────

    async def _follow(self, incoming: IncomingRequest) -> Reply:
        request = incoming.request
        opener, token = await self.access.opener(incoming)
        tournament_id = await self.access.tournament(incoming, token)
        question = StreamQuestion(**read_query(_query(request), EVENTS.fields))
        form = format_of(request)
        start = start_of(request, question)
        async with self._pinned(incoming, token, tournament_id) as live:
            await self._live_pool.make_current(live, read_at=incoming.taken_at)
            refuse_unknown_ranking(live, question)
            self._streams.refuse_more(tournament_id, WHOLE_LOG, opener)
            head = live.head
            after = await first_after(self._desk.database, live, start, head.sequence)
            if live.dropped:
                raise HistoryReplaced
            if after is None or request.method == "HEAD":
                body = b"" if after is not None else reset(form, live.head, WHOLE_LOG)
                return Reply(body, media_type=form, headers=UNBUFFERED, kept=STREAMED)
            asked = Asked(form=form, after=after, end=head, opener=opener, wanted=question.wanted, speed=question.speed)
            return StreamReply(self._streams, live, asked, incoming.facts)


def _refuse_query(request: HttpRequest) -> None:
    read_query(_query(request), ())


def _query(request: HttpRequest) -> list[tuple[str, str]]:
    return request.query if request.url.raw_query_string else []


_C = TypeVar("_C", bound=Command)


def _of_token(command: _C, token: Token, incoming: IncomingRequest) -> _C:
    """The command; a ReversePoints is bound to events of the token's own, unless its scope is admin. Raises Forbidden
    unless a DeleteTournament is sent with a token for all, and Unacceptable unless it names that of the path."""
    if isinstance(command, DeleteTournament):
        if token.tournament_ids is not None:
            raise Forbidden("This needs a token for all tournaments; this one is for some.")
        if command.slug != (slug := incoming.parameters["tournament"]):
            raise Unacceptable(
                "Nothing was deleted.", [Fault("slug", f"must be {slug}, the tournament that is deleted")]
            )
    if isinstance(command, ReversePoints) and token.scope < Scope.ADMIN:
        return replace(command, only_of=token.token_id)
    return command


def _parted(ids: Mapping[str, Any], operation: Write | Preview) -> tuple[dict[str, Any], dict[str, Any]]:
    """The ids that the path of the operation has, and the others."""
    own = {name: value for name, value in ids.items() if f"{{{name}}}" in operation.path}
    return own, {name: value for name, value in ids.items() if name not in own}


def _idempotency_key(keys: list[str]) -> str:
    _refuse_odd_key(*keys)
    return keys[0]


def _refuse_odd_key(*keys: str) -> None:
    if len(keys) > 1 or not _IDEMPOTENCY_KEY.fullmatch(keys[0]):
        raise Unreadable("Idempotency-Key must be one value of 1 to 255 visible ASCII characters.")
