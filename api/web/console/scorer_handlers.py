"""Links with which scorers enter the results of some matches: made, shown once, and ended in one step."""

from datetime import UTC, datetime
from functools import partial

from api.access import granting
from api.access.auth import Scope, Token
from api.http.cookies import own_origin
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.interface.access import refuse_beyond_scope
from api.interface.scorers import link_for
from api.web.console.answering import Console, address_of, page_reply, refused_reply, see_other, venue_of
from api.web.console.frame import Viewer
from api.web.console.inputs import KEY, Filling, new_key
from api.web.console.scorer_pages import made_link_page, scorers_page
from engine.domain.errors import NotFound, TallybookError
from engine.domain.ids import parse_id
from engine.domain.terms import TournamentId
from engine.log import reading
from projections.answers.rounds import RoundMatchesQuestion
from projections.answers.view import ask


class ScorerHandlers:
    """`proxies`: the number of trusted proxies that requests pass through."""

    def __init__(self, console: Console, *, proxies: int) -> None:
        self._console = console
        self._proxies = proxies

    async def form(self, incoming: IncomingRequest, viewer: Viewer) -> bytes:
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        return await self._page(incoming, viewer, Filling(key=new_key()))

    async def _page(self, incoming: IncomingRequest, viewer: Viewer, filling: Filling) -> bytes:
        async with self._console.handlers.visited(incoming, viewer.token) as view:
            found = await ask(view, RoundMatchesQuestion(now=datetime.now(UTC)))
            links = await self._links(viewer, view.live.tournament_id)
            return scorers_page(viewer, await venue_of(view, incoming), found.rounds, links, filling)

    async def _links(self, viewer: Viewer, tournament_id: TournamentId) -> list[Token]:
        """Those of the tournament that are in use, newest first."""
        now = datetime.now(UTC)
        return [
            token
            for token in await granting.within_reach(self._console.database, viewer.token)
            if token.part is not None and token.allows(tournament_id) and token.revoked_at is None
            if token.expires_at is None or token.expires_at > now
        ]

    async def make(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Makes a link. Only this answer shows it, and that to the same form, sent again."""
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        sent = await self._console.body(incoming)
        key = sent.pop(KEY, "") or new_key()
        try:
            async with self._console.handlers.visited(incoming, viewer.token) as view:
                part, until = await link_for(view, sent)
                async with self._console.database.connection_for(view.live.tournament_id) as connection:
                    secret = await reading.secret_of(connection, view.live.tournament_id)
                token, text = await granting.grant_scoring(
                    self._console.database,
                    viewer.token,
                    view.live.tournament_id,
                    name=sent.get("name", ""),
                    part=part,
                    until=until,
                    secret=granting.secret_for(secret, key, sent),
                )
                venue = await venue_of(view, incoming)
        except TallybookError as error:
            return await refused_reply(partial(self._page), incoming, viewer, error, key="", form=sent)
        link = f"{own_origin(incoming.request, proxies=self._proxies)}{granting.LINK}{text}"
        return page_reply(made_link_page(viewer, venue, token, link))

    async def revoke(self, incoming: IncomingRequest, viewer: Viewer) -> Reply:
        """Ends a link, at once."""
        refuse_beyond_scope(viewer.token, Scope.WRITE)
        token_id = parse_id(incoming.parameters["token_id"])
        async with self._console.handlers.visited(incoming, viewer.token) as view:
            if token_id not in [one.token_id for one in await self._links(viewer, view.live.tournament_id)]:
                raise NotFound("There is no such link in use.")
        await granting.revoke(self._console.database, viewer.token, token_id)
        return see_other(address_of(incoming, "/scorers"))
