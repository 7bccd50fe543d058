"""The pages about a ranking. Board and console lead to each, and take address, query and link from its row."""

from collections.abc import Mapping
from typing import Any, Final

from api.web import competition_page, contest_page, cross_page, leaders_page, rounds_page
from api.web.page import Query, RankingPage, Site
from engine.domain.terms import RankingId
from projections.answers.view import View, ask

RANKING_PAGES: Final[tuple[RankingPage, ...]] = (
    rounds_page.ROUNDS_PAGE,
    cross_page.CROSS_PAGE,
    contest_page.CONTEST_PAGE,
    competition_page.COMPETITION_PAGE,
    *leaders_page.PAGES,
)


async def shown_page(
    page: RankingPage, view: View, site: Site, ranking_id: RankingId, arguments: Mapping[str, Any], query: Query
) -> bytes:
    """The page for these arguments. Raises as its question does."""
    question = page.question(**{**page.given, **arguments, "ranking_id": ranking_id})
    return page.page(site, view.names, await ask(view, question), ranking_id, query)
