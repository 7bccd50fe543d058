"""Who asks, and about which tournament: the tokens, tickets and sessions of requests, and the limits on failures."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Final, TypeVar

from api.access.auth import LOOKUPS_AT_ONCE_MAX, Guard, Scope, Token, good_token
from api.access.sessions import Opener, Session, open_session
from api.desk.remembered import Slugs
from api.http.cookies import refuse_foreign, session_text
from api.http.request import HttpRequest
from api.http.router import IncomingRequest
from api.http.throttle import Throttle, address_of
from api.interface.resources.tournaments import SLUG_CHARACTERS_LOGGED
from api.stream.tickets import use_ticket
from engine.database.pool import Database
from engine.domain.errors import NO_TOURNAMENT, Forbidden, NotFound, Unauthenticated
from engine.domain.terms import TournamentId
from projections.live.pool import in_time

_F = TypeVar("_F")
_NO_SESSION: Final = "You are not signed in, or your session has ended; sign in with your token."
_NO_TICKET: Final = "This ticket was used, has expired, or never existed; get a new one for each connection."


class Access:
    """Finds the token of a request and the tournament of its path. `slugs` are the tournaments that are known by
    name."""

    def __init__(
        self, database: Database, *, failures: Throttle, requests: Throttle | None = None, proxies: int = 0
    ) -> None:
        self.slugs = Slugs(database)
        self._database = database
        self._guard = Guard(database)
        self._failures = failures
        self._requests = requests
        self._proxies = proxies
        self._guesses = asyncio.Semaphore(LOOKUPS_AT_ONCE_MAX)

    async def authenticated(self, incoming: IncomingRequest, scope: Scope) -> Token:
        """Returns the token of a request if it has at least this `scope`, and counts the request.

        Raises Unauthenticated, Forbidden, TooManyRequests and DatabaseUnavailable.
        """
        token = await self.token_of(incoming, incoming.request.headers.get("Authorization"))
        refuse_beyond_scope(token, scope)
        return token

    def known(self, incoming: IncomingRequest, scope: Scope) -> tuple[Token, TournamentId] | None:
        """As `looked_up`, if token and tournament are known without a query; None: they are not."""
        slug = incoming.parameters["tournament"]
        token = self._guard.kept(incoming.request.headers.get("Authorization"))
        tournament_id = self.slugs.known(slug)
        if token is None or tournament_id is None:
            return None
        self._count(incoming, token)
        if token.scope < scope:
            refuse_beyond_scope(token, scope)
        return token, self._about(incoming, token, tournament_id)

    async def looked_up(self, incoming: IncomingRequest, scope: Scope) -> tuple[Token, TournamentId]:
        """The token of the request, of at least this `scope`, and the tournament of its path. Raises as `authenticated`
        and `tournament`."""
        async with in_time(incoming.taken_at):
            token = await self.authenticated(incoming, scope)
            return token, await self.tournament(incoming, token)

    async def token_of(self, incoming: IncomingRequest, authorization: str | None) -> Token:
        """Returns the good token in an Authorization header, and counts the request. Raises Unauthenticated,
        TooManyRequests and DatabaseUnavailable."""
        token = self._guard.kept(authorization) or await self._token_of(incoming.request, authorization)
        self._count(incoming, token)
        return token

    def _count(self, incoming: IncomingRequest, token: Token) -> None:
        """Records the token of the request. Raises TooManyRequests."""
        incoming.facts["actor"] = token.token_id
        if self._requests is not None:
            self._requests.take(token.token_id)

    async def session_of(self, incoming: IncomingRequest, text: str) -> tuple[Session, Token]:
        """Returns the open session of this text with its token, and counts the request. Raises Unauthenticated,
        TooManyRequests and DatabaseUnavailable."""
        found = await self._judged(incoming, partial(self._open_session, text), _NO_SESSION)
        self._count(incoming, found[1])
        return found

    async def _judged(self, incoming: IncomingRequest, look_up: Callable[[], Awaitable[_F | None]], refusal: str) -> _F:
        """What `look_up` finds for a session or ticket. That is judged before its address is, or the failures of others
        there would block a good one. Where too many failed, guesses cannot take all connections.

        Raises Unauthenticated with the message `refusal`, TooManyRequests, and as `look_up`.
        """
        address = address_of(incoming.request, proxies=self._proxies)
        turn = self._guesses if self._failures.wait_seconds(address) else nullcontext()
        async with in_time(incoming.taken_at), turn:
            found = await look_up()
        if found is None:
            self._failures.take(address)
            raise Unauthenticated(refusal)
        return found

    async def _open_session(self, text: str) -> tuple[Session, Token] | None:
        async with self._database.connection() as connection:
            return await open_session(connection, text)

    async def _token_of(self, request: HttpRequest, authorization: str | None) -> Token:
        """Looks up a token that is not known, or no longer. If it was good a moment ago, failures of others at the same
        address do not block it."""
        if self._guard.knew(authorization):
            return await self._guard.token_of(authorization)
        address = address_of(request, proxies=self._proxies)
        self._failures.refuse(address)
        try:
            return await self._guard.token_of(authorization)
        except Unauthenticated:
            self._failures.count(address)
            raise

    async def tournament(self, incoming: IncomingRequest, token: Token) -> TournamentId:
        """The tournament of the path. Raises the same NotFound if it does not exist and if the token is not for it, and
        DatabaseUnavailable."""
        return self._about(incoming, token, await self.slugs.tournament_id(incoming.parameters["tournament"]))

    def _about(self, incoming: IncomingRequest, token: Token, tournament_id: TournamentId | None) -> TournamentId:
        """Notes which tournament a request is about, if that exists and the token is for it. Raises NotFound."""
        slug = incoming.parameters["tournament"]
        incoming.facts["tournament"] = slug if tournament_id is not None else slug[:SLUG_CHARACTERS_LOGGED]
        if tournament_id is None or (token.tournament_ids is not None and not token.allows(tournament_id)):
            raise NotFound(NO_TOURNAMENT)
        return tournament_id

    async def opener(self, incoming: IncomingRequest) -> tuple[Opener, Token]:
        """What opens the stream: the token of the request, the one that asked for its ticket, or the session of a page
        of ours. Raises as `authenticated`, and Forbidden if a session is used by another page."""
        request = incoming.request
        ticket, session = request.url.query.get("ticket"), session_text(request)
        if "Authorization" in request.headers or (ticket is None and session is None):
            token = await self.authenticated(incoming, Scope.READ)
            return Opener(token.token_id), token
        if ticket is None and session is not None:
            refuse_foreign(request, proxies=self._proxies)
            opened, token = await self.session_of(incoming, session)
            refuse_beyond_scope(token, Scope.READ)
            return Opener(token.token_id, opened.session_id), token
        slug = incoming.parameters["tournament"]
        token = await self._judged(incoming, partial(self._token_of_ticket, slug, ticket or ""), _NO_TICKET)
        self._count(incoming, token)
        return Opener(token.token_id), token

    async def _token_of_ticket(self, slug: str, ticket: str) -> Token | None:
        tournament_id = await self.slugs.tournament_id(slug)
        if tournament_id is None:
            return None
        async with self._database.connection_for(tournament_id) as connection:
            token_id = await use_ticket(connection, tournament_id, ticket)
            return None if token_id is None else await good_token(connection, token_id)


def refuse_beyond_scope(token: Token, scope: Scope) -> None:
    """Raises Forbidden if the scope of the token is too small."""
    if token.scope < scope:
        raise Forbidden(f"This needs a token of scope {scope.text}; this token's is {token.scope.text}.")
