"""The page of the cross table: each against each."""

from typing import Final

from api.web.competition_page import COMPETITIONS
from api.web.html import Child, Html, element, joined
from api.web.page import Query, RankingPage, Site, ToId, abbreviated, dot, framed_about, name_text
from api.web.result_text import result_text
from api.web.words import Words
from engine.domain.terms import CompetitorId, RankingId
from projections.answers.cross_table import CrossResult, CrossTable, CrossTableQuestion
from projections.answers.names import NamesById

CROSS: Final = "/cross"
"""The path of the page, below that of the board."""


def cross_page(site: Site, names: NamesById, found: CrossTable, ranking_id: RankingId, query: Query) -> bytes:
    """The page: a row and a column for each competitor."""
    words = site.words
    to = site.leading(query, COMPETITIONS)
    left_out, none = None, words("cross_of_two" if found.others else "no_matches")
    if found.results and found.left_out:
        left_out = element("p", words("and_more", number=found.left_out).strip(" ,"))
    return framed_about(
        site,
        names.ranking(ranking_id),
        words("cross_table"),
        words("cross_read"),
        [element("a", words("back"), href=site.address(query))],
        element(
            "main",
            _table(words, names, found, to) if found.results else element("p", none),
            left_out,
        ),
        kind="cross",
    )


def _table(words: Words, names: NamesById, found: CrossTable, to: ToId) -> Html:
    its = {one: names.competitor(one).name for one in found.competitors}
    columns = [
        element("th", element("abbr", number, title=name), scope="col") for number, name in enumerate(its.values(), 1)
    ]
    rows = [
        element("tr", element("th", f"{number} ", _named(names, one), scope="row"), *_cells(words, found, one, to))
        for number, one in enumerate(found.competitors, 1)
    ]
    table = element(
        "table",
        element("caption", words("cross_table"), class_="unseen"),
        element("thead", element("tr", element("th", words("competitor"), scope="col"), *columns)),
        element("tbody", *rows),
    )
    return element("div", table, class_="scrolled", tabindex=0, role="region", aria_label=words("cross_table"))


def _named(names: NamesById, competitor_id: CompetitorId) -> Html:
    competitor = names.competitor(competitor_id)
    return joined((dot(competitor.color), name_text(competitor.name)))


def _cells(words: Words, found: CrossTable, row: CompetitorId, to: ToId) -> list[Child]:
    return [
        element("td", class_="self")
        if row == column
        else element("td", *[_result(words, one, to) for one in found.results.get((row, column), ())])
        for column in found.competitors
    ]


def _result(words: Words, one: CrossResult, to: ToId) -> Html:
    text = abbreviated(result_text(words, one.result), one.result)
    said = element("a", text, href=to(one.competition_id)) if one.result else "\N{MIDDLE DOT}"
    return element("p", said, element("span", words("cause_void"), class_="late") if one.struck else None)


CROSS_PAGE: Final = RankingPage(below=CROSS, link=None, question=CrossTableQuestion, page=cross_page)
