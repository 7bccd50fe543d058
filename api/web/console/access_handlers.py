"""Access to the console: tokens and sessions."""

from api.access import granting
from api.access.auth import Scope
from api.access.granting import TOKEN_TOURNAMENTS_MAX
from api.access.sessions import SessionId, end_session, open_sessions
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.interface.access import refuse_beyond_scope
from api.web.console.access_pages import (
    asked_token,
    made_token_page,
    new_token_page,
    revoke_page,
    sessions_page,
    tokens_page,
)
from api.web.console.answering import Console, page_reply, problem_reply, refused_filling, see_other
from api.web.console.frame import CONSOLE, Viewer
from api.web.console.inputs import KEY, Filling, new_key
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.ids import parse_id
from engine.domain.terms import ActorId
from engine.log import registry


class AccessHandlers:
    """Makes and revokes tokens, and ends sessions, within the reach of the viewer's token."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def tokens(self, _incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        return tokens_page(viewer, await granting.within_reach(self._console.database, viewer.token))

    async def token_form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        return await self._token_page(viewer, Filling(key=new_key()))

    async def _token_page(self, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.database.connection() as connection:
            among = viewer.token.tournament_ids
            mine = await registry.tournaments_after(connection, "", among, TOKEN_TOURNAMENTS_MAX + 1)
        return new_token_page(viewer, mine, filling)

    async def make_token(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Makes a token. Only this answer shows it."""
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        form = await self._console.body(incoming)
        form.pop(KEY, None)
        try:
            asked = asked_token(form)
            token, text = await granting.grant(
                self._console.database,
                viewer.token,
                name=asked.name,
                scope=asked.scope,
                slugs=asked.slugs,
                expires_in_days=asked.expires_in_days,
            )
        except Unacceptable as error:
            page = await self._token_page(viewer, refused_filling(error, "", form, None))
            return problem_reply(incoming, error, page)
        return page_reply(made_token_page(viewer, token, text))

    async def ask_to_revoke(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        token_id = parse_id(incoming.parameters["token_id"])
        return revoke_page(viewer, await granting.in_use(self._console.database, viewer.token, token_id))

    async def revoke(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        refuse_beyond_scope(viewer.token, Scope.ADMIN)
        await granting.revoke(self._console.database, viewer.token, parse_id(incoming.parameters["token_id"]))
        return see_other(f"{CONSOLE}/tokens")

    async def sessions(self, _incoming: IncomingRequest, viewer: Viewer) -> bytes:
        names = {
            token.token_id: token.name for token in await granting.within_reach(self._console.database, viewer.token)
        }
        async with self._console.database.connection() as connection:
            sessions = await open_sessions(connection, names)
        return sessions_page(viewer, sessions, names)

    async def end_session(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        session_id = SessionId(parse_id(incoming.parameters["session_id"]) or 0)
        token_ids: list[ActorId] = [
            token.token_id for token in await granting.within_reach(self._console.database, viewer.token)
        ]
        async with self._console.database.writing() as connection:
            if not await end_session(connection, session_id, token_ids):
                raise NotFound("There is no such session, or it has ended.")
        return see_other(f"{CONSOLE}/sessions")
