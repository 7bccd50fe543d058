"""The page of a competitor: their place and what decided it, record, next matches, opponents, and every step that led
there."""

from typing import Final

from msgspec import UNSET

from api.interface.direction import isolated
from api.interface.fields import FROM_1, Field
from api.interface.sports import in_order
from api.web.competition_page import COMPETITIONS
from api.web.competitions import competition_shape, listed
from api.web.explanation_part import steps_part, tiebreaks_part
from api.web.html import Html, element, joined
from api.web.page import Query, RankingPage, Site, ToId, abbreviated, dot, framed_about, name_text
from api.web.result_text import ended_text, score_text
from api.web.table import column_name, column_short, outcome_letter, unity_name, value_text
from api.web.words import Words
from engine.domain.events import Criterion
from engine.domain.terms import RankingId
from projections.answers.about_competitor import AboutCompetitor, AboutCompetitorQuestion, Met
from projections.answers.board_table import BoardTable
from projections.answers.classification import ClassificationLine
from projections.answers.names import NamesById
from projections.answers.rankings import ListedUnity

_CHART: Final = (600, 140)
"""Width and height of the chart, in units of its own."""
_CHART_STEPS: Final = 3


def competitor_page(site: Site, _: NamesById, found: AboutCompetitor, ranking_id: RankingId, query: Query) -> bytes:
    words, names, explanation = site.words, found.names, found.explanation
    competitor_id = explanation.competitor_id
    competitor, unity = names.competitor(competitor_id), names.unity(ranking_id, explanation.unity_id)
    kept = {name: text for name, text in query.items() if name != "to"}
    of_line = site.address({**kept, "line": str(competitor_id)})
    back = f"{of_line}#line-{competitor_id}" if site.has_lines else site.address(kept)
    is_alone = "unity" not in query and names.listed(ranking_id).criteria not in ((), (Criterion(unity.id),))
    to_competition = site.leading(query, COMPETITIONS)
    parts = [
        None if found.table is None else _record(words, found.table),
        _next(words, found, to_competition),
        tiebreaks_part(words, names, ranking_id, explanation.classification),
        _opponents(words, found, site.leading(query, "/competitors"), to_competition),
        _chart(words, names, found, unity),
        element("h2", words("steps")),
        *steps_part(words, names, explanation, unity, to_competition, is_alone=is_alone),
        _earlier(site, found, query),
    ]
    return framed_about(
        site,
        names.ranking(ranking_id),
        competitor.name,
        _place_text(words, found, unity),
        [element("a", words("back"), href=back)],
        element("main", *parts),
        kind="explanation",
        heading=joined((dot(competitor.color), name_text(competitor.name))),
    )


def _place_text(words: Words, found: AboutCompetitor, unity: ListedUnity) -> Html:
    """The place in the table, what decided it, and the moment."""
    end, explanation = found.explanation.end, found.explanation
    at = end.recorded_at if explanation.on is UNSET else explanation.on
    where = _decided(words, found)
    if where is None:
        key = "stands_nowhere" if end.position is None else "not_placed" if end.total is None else "stands"
        total, name = words.number(end.total, unity.notation), isolated(unity_name(words, unity.name))
        where = words(key, position=end.position, total=total, unity=name)
    return words.html("stands_as_of", place=where, time=None if at is None else words.when_element(at))


def _decided(words: Words, found: AboutCompetitor) -> str | None:
    """The place in the classification, and the criterion that separates it from the one above or, of the first place,
    from the one below; None: it is not known, or nothing of the competitor's counts."""
    lines, her = found.around, found.explanation.competitor_id
    number = next((one for one, line in enumerate(lines) if line.competitor_id == her), None)
    if number is None or found.table is None or not found.table.lines[0].placed:
        return None
    own, place = lines[number], words.place(lines[number].position)
    level = [line for line in (*lines[:number], *lines[number + 1 :]) if line.position == own.position]
    if level:
        return words("level_with", place=place, name=isolated(found.names.competitor(level[0].competitor_id).name))
    if len(lines) == 1:
        return place
    other = lines[number - 1] if number else lines[1]
    by = (own if number else other).decided_by
    return place if by is None else _by_criterion(words, found.table, by, place, own, other)


def _by_criterion(
    words: Words, table: BoardTable, by: int, place: str, own: ClassificationLine, other: ClassificationLine
) -> str:
    column, values = table.columns[by], (own.values[by], other.values[by])
    name = isolated(column_name(words, column))
    if None in values or (column.criterion is not None and column.criterion.first):
        return words("decided_on", place=place, unity=name)
    mine, theirs = [words.number(value, column.notation) for value in values]
    return words("decided", place=place, unity=name, own=mine, other=theirs)


def _record(words: Words, table: BoardTable) -> Html:
    """The line of the table, in the order of the sport, and the recent results."""
    (line,) = table.lines
    items = []
    for number in in_order(one.unity for one in table.columns):
        name, short = column_name(words, table.columns[number]), column_short(words, table.columns[number])
        if value := value_text(words, table, line, number):
            items.append(element("div", element("dt", abbreviated(name, short)), element("dd", value)))
    if line.form:
        letters = [
            element("li", outcome_letter(words, one) or words.number(one.sum, table.form_notation)) for one in line.form
        ]
        items.append(
            element("div", element("dt", words("form")), element("dd", element("ol", *letters), class_="form"))
        )
    return element("dl", *items, class_="record")


def _next(words: Words, found: AboutCompetitor, to: ToId) -> Html | None:
    """The next matches."""
    if not found.next or found.table is None:
        return None
    shapes = [competition_shape(words, one, found.table.form_notation) for one in found.next]
    return element("section", element("h2", words("fixtures")), listed(words, shapes, to), class_="competitions next")


def _opponents(words: Words, found: AboutCompetitor, to_competitor: ToId, to_competition: ToId) -> Html | None:
    """Whom the competitor met and meets, with each result, own score first."""
    if not found.opponents:
        return None
    rows = []
    for opponent_id, matches in found.opponents.items():
        opponent = found.names.competitor(opponent_id)
        name = element("a", name_text(opponent.name), href=to_competitor(opponent_id))
        met = [part for one in matches for part in (_met(words, one, to_competition), " ")]
        rows.append(
            element(
                "tr",
                element("th", element("span", dot(opponent.color), name, class_="who"), scope="row", class_="name"),
                element("td", *met, class_="met"),
            )
        )
    heads = [
        element("th", words("opponent"), scope="col", class_="name"),
        element("th", words("results"), scope="col", class_="met"),
    ]
    return element(
        "section",
        element("h2", words("opponents")),
        element(
            "table",
            element("caption", words("opponents"), class_="unseen"),
            element("thead", element("tr", *heads)),
            element("tbody", *rows),
        ),
        class_="opponents",
    )


def _met(words: Words, one: Met, to: ToId) -> Html:
    when = words("no_result") if one.took_place is None else words.day(one.took_place)
    said = when if one.won is None else words("met_won" if one.won else "met_lost")
    told = score_text(words, one.result) or ", ".join(filter(None, (said, ended_text(words, one.result))))
    struck = element("span", words("cause_void"), class_="late") if one.struck else None
    return element("p", element("a", told, href=to(one.competition_id)), struck)


def _chart(words: Words, names: NamesById, found: AboutCompetitor, unity: ListedUnity) -> Html | None:
    """The total after each of the steps, from the first to the last."""
    totals = [step.total for step in found.explanation.steps if step.is_own and step.total is not None]
    least, most = min(totals, default=0), max(totals, default=0)
    if len(totals) < _CHART_STEPS or least == most:
        return None
    width, height = _CHART
    points = [
        f"{width * number / (len(totals) - 1):.1f},{height - height * (total - least) / (most - least):.1f}"
        for number, total in enumerate(totals)
    ]
    what = unity_name(words, unity.name)
    first, last = [words.number(total, unity.notation) for total in (totals[0], totals[-1])]
    name = names.competitor(found.explanation.competitor_id).name
    line = element("polyline", points=" ".join(points))
    return element(
        "figure",
        element(
            "svg",
            line,
            viewBox=f"-4 -4 {width + 8} {height + 8}",
            role="img",
            aria_label=words("over_time", what=what, lines=f"{name} {last}"),
            preserveAspectRatio="none",
        ),
        element("figcaption", name_text(what), f": {first} \N{RIGHTWARDS ARROW} {last}"),
        class_="chart",
    )


def _earlier(site: Site, found: AboutCompetitor, query: Query) -> Html | None:
    """The link to the steps before those shown."""
    if found.explanation.next is None:
        return None
    below = f"/competitors/{found.explanation.competitor_id}"
    address = site.address({**query, "to": str(found.explanation.next)}, below)
    link = element("a", site.words("earlier"), href=address)
    return element("nav", link, class_="pages", aria_label=site.words("steps"))


COMPETITOR_PAGE: Final = RankingPage(
    below="/competitors/{competitor_id}",
    link=None,
    question=AboutCompetitorQuestion,
    page=competitor_page,
    fields=(Field("to", FROM_1, "up to this event"),),
)
"""On a board, it also has a moment."""
