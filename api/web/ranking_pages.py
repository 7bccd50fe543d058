"""Pages about a ranking, to which its board leads: each is a row in the module that renders it."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from api.interface.fields import Fields
from api.web.page import Query, Site
from engine.domain.terms import RankingId
from projections.answers.names import NamesById
from projections.answers.view import Question, View, ask


class RankingPage(Struct, frozen=True, kw_only=True):
    """`below`: its path below that of the board. `link`: the word that leads to it. `fields`: those of its query,
    besides ranking, unity and language. `question` is made of the query, and of `given` where the query says nothing;
    `page` renders the answer."""

    below: str
    link: str
    question: Callable[..., Question[Any]]
    page: Callable[[Site, NamesById, Any, RankingId, Query], bytes]
    fields: Fields = ()
    given: Mapping[str, Any] = {}

    async def shown(
        self, view: View, site: Site, ranking_id: RankingId, arguments: Mapping[str, Any], query: Query
    ) -> bytes:
        """The page for these arguments. Raises as the question does."""
        question = self.question(**{**self.given, **arguments, "ranking_id": ranking_id})
        return self.page(site, view.names, await ask(view, question), ranking_id, query)
