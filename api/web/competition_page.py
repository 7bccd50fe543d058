"""The page of a competition: who met, when and where, how it ended, the points it gave, and its corrections."""

from collections.abc import Iterable, Mapping
from typing import Final

from api.interface.competition_names import short_text
from api.interface.direction import isolated
from api.interface.sports import in_order
from api.web.html import Child, Html, element, joined
from api.web.page import Query, RankingPage, Site, abbreviated, dot, framed_about, name_text
from api.web.result_text import ended_text, performances_text, result_text, score_text
from api.web.scored_text import scored_text
from api.web.table import unity_name, unity_short
from api.web.words import Words
from engine.domain.events import Result
from engine.domain.terms import RankingId, UnityId
from projections.answers.about_competition import AboutCompetition, AboutCompetitionQuestion, EnteredResult, TakingPart
from projections.answers.names import NamesById
from projections.answers.rankings import ListedUnity

COMPETITIONS: Final = "/competitions"
"""The path of the pages of competitions, below that of the board."""


def competition_page(
    site: Site, names: NamesById, found: AboutCompetition, ranking_id: RankingId, query: Query
) -> bytes:
    words, competition = site.words, found.shown.competition
    title = short_text(names, competition, words("competition_of"))
    result = competition.result if isinstance(competition.result, str) else ""
    heading = None
    if len(competition.participants) == 2:
        one, other = [names.competitor(who).name for who in competition.participants]
        between = (score_text(words, result) if "|" not in result else "") or "\N{EN DASH}"
        title = f"{isolated(one)} {between} {isolated(other)}"
        heading = joined((name_text(one), f" {between} ", name_text(other)))
    return framed_about(
        site,
        names.ranking(ranking_id),
        title,
        _said(words, found, result),
        [element("a", words("back"), href=site.address({name: query[name] for name in ("ranking",) if name in query}))],
        element("main", *_parts(site, names, found, ranking_id, query)),
        kind="explanation",
        heading=heading,
    )


def _said(words: Words, found: AboutCompetition, result: str) -> Html:
    """Round, time, place, and how it ended."""
    shown, competition = found.shown, found.shown.competition
    number = None if competition.round is None else words("round", number=competition.round)
    said: list[Child] = [
        name_text(competition.round_name) if competition.round_name else number,
        None if shown.took_place is None else words.when_element(shown.took_place),
        name_text(competition.location) if competition.location else None,
        ended_text(words, result) or None,
        None if competition.voided_at is None else element("strong", words("cause_void")),
    ]
    return joined([part for one in said if one is not None for part in (", ", one)][1:])


def _parts(
    site: Site, names: NamesById, found: AboutCompetition, ranking_id: RankingId, query: Query
) -> Iterable[Html | None]:
    words, given = site.words, {its.unity_id for one in found.who for its in one.given}
    all_unities = [names.unity(ranking_id, one) for one in names.unities(ranking_id) if one in given]
    unities = [all_unities[number] for number in in_order(one.name for one in all_unities)]
    rows = [_row(site, names, found, unities, one, query) for one in found.who]
    shown = [abbreviated(unity_name(words, one.name), unity_short(words, one.name)) for one in unities]
    heads = [element("th", one, scope="col", class_="value") for one in shown]
    if rows:
        yield element("h2", words("points_given")) if unities else None
        yield element(
            "table",
            element("caption", words("points_given"), class_="unseen"),
            element("thead", element("tr", element("th", words("competitor"), scope="col", class_="name"), *heads)),
            element("tbody", *rows),
        )
    if found.left_out:
        yield element("p", words("more", number=words.number(found.left_out)))
    told = [line for one in found.who for line in _rules(words, names, found, unities, one)]
    if told:
        yield element("details", element("summary", words("points_why")), element("ul", *told))
    if len(found.entered) > 1:
        summary = element("summary", words("corrections", number=len(found.entered) - 1))
        earlier = [None, *[one.result for one in found.entered]]
        results = [element("li", *_result(words, names, *its)) for its in zip(found.entered, earlier, strict=False)]
        yield element("details", summary, element("ol", *results))


def _row(
    site: Site, names: NamesById, found: AboutCompetition, unities: Iterable[ListedUnity], one: TakingPart, query: Query
) -> Html:
    words, competitor = site.words, names.competitor(one.competitor_id)
    address = site.leading(query, "/competitors")(one.competitor_id)
    name = joined((dot(competitor.color), element("a", name_text(competitor.name), href=address)))
    main = [its.scored for its in one.given if its.unity_id == next(iter(found.notations)) and its.scored is not None]
    why = [scored_text(words, names, its, next(iter(found.notations.values()))) for its in main]
    amounts = {its.unity_id: words.number(its.amount, found.notations[its.unity_id]) for its in one.given}
    return element(
        "tr",
        element(
            "td",
            element("span", name, class_="who"),
            None if one.performance is None else f" {result_text(words, one.performance)}",
            *[element("p", text, class_="reason") for text in why],
            element("span", words("cause_void"), class_="late") if one.struck else None,
            class_="name",
        ),
        *[
            element("td", amounts.get(UnityId(its.id)), class_="value", data_label=unity_name(words, its.name))
            for its in unities
        ],
    )


def _rules(
    words: Words, names: NamesById, found: AboutCompetition, unities: Iterable[ListedUnity], one: TakingPart
) -> Iterable[Html]:
    """What a competitor got each of their points for."""
    given = {its.unity_id: its for its in one.given}
    for unity in unities:
        its = given.get(UnityId(unity.id))
        if its is not None and its.scored is not None and its.amount:
            told = scored_text(words, names, its.scored, found.notations[its.unity_id])
            named = name_text(names.competitor(one.competitor_id).name)
            yield element("li", named, f", {unity_name(words, unity.name)}: {told}")


def _result(words: Words, names: NamesById, one: EnteredResult, before: Result | None) -> Iterable[Child]:
    """When it was entered, and what; of many performances, those that were others before."""
    result = one.result
    if isinstance(result, Mapping):
        told = performances_text(words, names, result, before)
    elif result or one.winner_id is None:
        told = isolated(result_text(words, result)) if result else words("no_result")
    else:
        told = isolated(names.competitor(one.winner_id).name)
    return words.time_element(one.recorded_at), ": ", told


COMPETITION_PAGE: Final = RankingPage(
    below=f"{COMPETITIONS}/{{competition_id}}", link=None, question=AboutCompetitionQuestion, page=competition_page
)
