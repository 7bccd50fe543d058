"""The page of results and fixtures: all rounds of a ranking, and the matches of one."""

from itertools import groupby
from typing import Final

from msgspec.structs import replace

from api.interface.fields import PHRASE, Field
from api.web.competition_page import COMPETITIONS
from api.web.competitions import competition_shape, listed
from api.web.cross_page import CROSS
from api.web.html import Child, Html, element
from api.web.page import Query, RankingPage, Site, ToId, framed_about, name_text
from api.web.words import Words
from engine.domain.terms import RankingId
from projections.answers.names import NamesById
from projections.answers.rounds import RankingRound, RankingRoundQuestion, Round

_BELOW: Final = "/rounds"
CALENDAR: Final = "/calendar.ics"
"""The path of the calendar, below that of the board."""
_ROUND: Final = Field("round", PHRASE, "which round: its number, name:… or day; absent: the one that is played")


def rounds_page(site: Site, names: NamesById, found: RankingRound, ranking_id: RankingId, query: Query) -> bytes:
    """The page of one round, with links to the others."""
    words, ranking, shown = site.words, names.ranking(ranking_id), found.round
    of_ranking = {name: text for name, text in query.items() if name != "round"}
    alone = {name: text for name, text in query.items() if name == "ranking"}
    title = words("rounds") if shown is None else _name(words, shown)
    return framed_about(
        site,
        ranking,
        title,
        words("rounds"),
        [element("a", words("back"), href=site.address(of_ranking))],
        element("main", *_matches(words, found, site.leading(query, COMPETITIONS)), class_="competitions round"),
        _all_rounds(site, found, of_ranking),
        element("footer", element("p", *_ways(site, found, alone), class_="ways")),
        kind="rounds",
    )


def _matches(words: Words, found: RankingRound, to: ToId) -> list[Child]:
    """Those of the round, by group if there are several."""
    if not found.matches:
        return [element("p", words("no_matches"))]
    groups = [(group, [*its]) for group, its in groupby(found.matches, lambda one: one.competition.group_id)]
    parts: list[Child] = []
    for group_id, its in groups:
        heading = element("h2", words("group_number", number=group_id)) if len(groups) > 1 else None
        # The heading says the round.
        shapes = [replace(competition_shape(words, one, found.notation), round=None, round_name="") for one in its]
        parts += heading, listed(words, shapes, to)
    if found.more:
        parts.append(element("p", words("and_more", number=found.more).strip(" ,")))
    return parts


def _all_rounds(site: Site, found: RankingRound, query: Query) -> Html:
    """A link to each round, with its first day."""
    words = site.words
    items = [
        element(
            "li",
            element(
                "a",
                name_text(_name(words, one)),
                href=site.address({**query, "round": one.key}, _BELOW),
                aria_current="page" if one is found.round else None,
            ),
            " ",
            element("span", words.day(one.begins), class_="where") if one.begins and not one.day else None,
        )
        for one in found.rounds
    ]
    return element(
        "nav", element("h2", words("all_rounds")), element("ol", *items), class_="all-rounds", hidden=not items
    )


def _ways(site: Site, found: RankingRound, query: Query) -> list[Child]:
    """To the other forms of the matches."""
    words = site.words
    file = site.address(query, CALENDAR)
    ways: list[Child] = [element("a", words("calendar_file"), href=file)]
    if site.origin:
        subscribed = f"webcal://{site.origin.partition('://')[2]}{file}"
        ways = [element("a", words("calendar"), href=subscribed), " ", *ways]
    if any(len(one.competition.participants) == 2 for one in found.matches):
        ways = [element("a", words("cross_table"), href=site.address(query, CROSS)), " ", *ways]
    return ways


def _name(words: Words, one: Round) -> str:
    if one.name:
        return one.name
    if one.number is not None:
        return words("round", number=one.number)
    return words("undated") if one.begins is None else words.day(one.begins)


ROUNDS_PAGE: Final = RankingPage(
    below=_BELOW, link="rounds", question=RankingRoundQuestion, page=rounds_page, fields=(_ROUND,)
)
