"""Access to the console: tokens and sessions."""

from collections.abc import Sequence as Items

from api.access import auth
from api.access.auth import Scope, Token
from api.access.sessions import SessionId, end_session, open_sessions
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.interface.access import refuse_beyond_scope
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
from api.web.console.answering import Console, page_reply, problem_reply, refused_filling, see_other
from api.web.console.frame import CONSOLE, Viewer
from api.web.console.inputs import KEY, Filling, new_key
from engine.domain.errors import Fault, NotFound, Unacceptable
from engine.domain.ids import parse_id
from engine.domain.terms import ActorId, TournamentId
from engine.log import registry


class AccessHandlers:
    """Makes and revokes tokens, and ends sessions, within the reach of the viewer's token."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def tokens(self, _incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        return tokens_page(viewer, await self._within_reach(viewer))

    async def token_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        return new_token_page(viewer, Filling(key=new_key()))

    async def make_token(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Makes a token. Only this answer shows it."""
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        form = await self._console.body(incoming)
        form.pop(KEY, None)
        try:
            asked = asked_token(form)
            tournament_ids = await self._asked_tournaments(viewer, asked.slugs)
            refuse_longer_life(viewer.token, asked.expires_in_days)
            async with self._console.database.connection() as connection:
                token, text = await auth.create(
                    connection,
                    name=asked.name,
                    scope=asked.scope,
                    tournament_ids=tournament_ids,
                    expires_in_days=asked.expires_in_days,
                )
        except Unacceptable as error:
            return problem_reply(incoming, error, new_token_page(viewer, refused_filling(error, "", form, None)))
        return page_reply(made_token_page(viewer, token, text))

    async def ask_to_revoke(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        return revoke_page(viewer, await self._token(incoming, viewer))

    async def revoke(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        token = await self._token(incoming, viewer)
        async with self._console.database.connection() as connection:
            await auth.revoke(connection, token.token_id)
        return see_other(f"{CONSOLE}/tokens")

    async def sessions(self, _incoming: IncomingRequest, viewer: Viewer) -> bytes:
        names = {token.token_id: token.name for token in await self._within_reach(viewer)}
        async with self._console.database.connection() as connection:
            sessions = await open_sessions(connection, names)
        return sessions_page(viewer, sessions, names)

    async def end_session(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        session_id = SessionId(parse_id(incoming.parameters["session_id"]) or 0)
        token_ids: list[ActorId] = [token.token_id for token in await self._within_reach(viewer)]
        async with self._console.database.connection() as connection:
            if not await end_session(connection, session_id, token_ids):
                raise NotFound("There is no such session, or it has ended.")
        return see_other(f"{CONSOLE}/sessions")

    async def _within_reach(self, viewer: Viewer) -> list[Token]:
        """The tokens that the viewer may see, newest first."""
        async with self._console.database.connection() as connection:
            return [token for token in reversed(await auth.listed(connection)) if reaches(viewer.token, token)]

    async def _asked_tournaments(self, viewer: Viewer, slugs: Items[str]) -> list[TournamentId] | None:
        """The tournaments that a new token is for, among the viewer's own; None: all. Raises Unacceptable."""
        if not slugs:
            return None if viewer.token.tournament_ids is None else sorted(viewer.token.tournament_ids)
        found: list[TournamentId] = []
        async with self._console.database.connection() as connection:
            for slug in slugs:
                tournament_id = await registry.tournament_named(connection, slug)
                if tournament_id is None or not viewer.token.allows(tournament_id):
                    raise unacceptable_token(Fault("tournaments", f"{slug!r} is not a tournament of your token"))
                found.append(tournament_id)
        return found

    async def _token(self, incoming: IncomingRequest, viewer: Viewer) -> Token:
        """The token of the path. Raises Forbidden, and NotFound if the token is out of reach or already revoked."""
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        token_id = parse_id(incoming.parameters["token_id"])
        for token in await self._within_reach(viewer):
            if token.token_id == token_id and token.revoked_at is None:
                return token
        raise NotFound("There is no such token in use.")
