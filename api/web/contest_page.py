"""The page of the problems of a contest: a row for each team, a column for each problem."""

from typing import Final

from api.web.html import Html, element
from api.web.page import Query, RankingPage, Site, dot, framed_about, name_text
from api.web.table import column_name, column_short, value_text
from api.web.words import Words
from engine.domain.awards import Scoring
from engine.domain.problems import TriedProblem
from engine.domain.terms import RankingId
from projections.answers.board_table import TableLine
from projections.answers.contest import Contest, ContestQuestion, counts_problems
from projections.answers.names import NamesById

FIRST: Final = "\N{BLACK STAR}"
"""Stands at who solved a problem first."""


def contest_page(site: Site, names: NamesById, found: Contest, ranking_id: RankingId, query: Query) -> bytes:
    words, left_out = site.words, found.table.count - len(found.table.lines)
    more = element("p", words("and_more", number=left_out).strip(" ,")) if left_out else None
    return framed_about(
        site,
        names.ranking(ranking_id),
        words("problems"),
        words("problems_read", first=FIRST),
        [element("a", words("back"), href=site.address(query))],
        element("main", _table(site, found, query) if found.labels else element("p", words("no_problems")), more),
        kind="cross contest",
    )


def _table(site: Site, found: Contest, query: Query) -> Html:
    words, table = site.words, found.table
    deciding = [number for number, column in enumerate(table.columns) if column.decides][:2]
    heads = [
        element("th", element("abbr", column_short(words, one), title=column_name(words, one)), scope="col")
        for one in [table.columns[number] for number in deciding]
    ]
    to = site.leading(query, "/competitors")
    rows = [
        element(
            "tr",
            element("th", f"{line.place} ", _named(line, to(line.competitor_id)), scope="row"),
            *[element("td", value_text(words, table, line, number)) for number in deciding],
            *[_cell(words, found, line, label) for label in found.labels],
        )
        for line in table.lines
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", words("problems"), class_="unseen"),
            element(
                "thead",
                element(
                    "tr",
                    element("th", words("competitor"), scope="col"),
                    *heads,
                    *[element("th", label, scope="col") for label in found.labels],
                ),
            ),
            element("tbody", *rows),
            element("tfoot", _sums(words, found, len(deciding))),
        ),
        class_="scrolled",
        tabindex=0,
        role="region",
        aria_label=words("problems"),
    )


def _named(line: TableLine, address: str) -> Html:
    return element("a", dot(line.color), name_text(line.name), href=address)


def _cell(words: Words, found: Contest, line: TableLine, label: str) -> Html:
    """A problem of a team: by sign and by colour."""
    problem = found.tried.get(line.competitor_id, {}).get(label, TriedProblem())
    if problem.minute is not None:
        is_first = problem.minute == found.first[label]
        wrong = element("small", f" +{problem.wrong}") if problem.wrong else None
        star = f"{FIRST} " if is_first else None
        return element("td", star, words.number(problem.minute), wrong, class_="solved first" if is_first else "solved")
    wrong_tries = f"\N{MINUS SIGN}{problem.wrong}" if problem.wrong else ""
    if problem.pending:
        return element("td", f"{wrong_tries} ?{problem.pending}".strip(), class_="pending")
    return element("td", wrong_tries or None, class_="failed" if wrong_tries else None)


def _sums(words: Words, found: Contest, columns: int) -> Html:
    """Who solved each problem, out of all who tried it."""
    cells = []
    for label in found.labels:
        tried = [its[label] for its in found.tried.values() if label in its]
        cells.append(element("td", f"{sum(one.minute is not None for one in tried)}/{len(tried)}"))
    return element("tr", element("th", words("solved_of"), scope="row"), element("td", colspan=columns), *cells)


def _is_contest(scorings: tuple[Scoring, ...]) -> bool:
    return any(map(counts_problems, scorings))


CONTEST_PAGE: Final = RankingPage(
    below="/problems", link="problems", question=ContestQuestion, page=contest_page, suits=_is_contest
)
