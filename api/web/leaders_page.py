"""The page of leaders: how long each competitor led, who led when, and the times at which the clocks differ."""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from datetime import datetime, timedelta
from typing import Final

from api.interface.fields import Field, one_of
from api.web.html import Html, element, joined
from api.web.page import Query, RankingPage, Site, dot, framed_about, name_text
from api.web.table import unity_name
from api.web.words import Words
from engine.domain.terms import CompetitorId, RankingId
from projections.answers.leaders import Leaders, LeadersQuestion
from projections.answers.names import NamesById

_CLOCKS: Final = {"log": "as_published", "world": "as_it_was"}
_CLOCK: Final = Field("clock", one_of(*_CLOCKS), "as published, or by the dates of competitions; absent: world")


def leaders_page(site: Site, names: NamesById, found: Leaders, ranking_id: RankingId, query: Query) -> bytes:
    """The page, with the last reigns first."""
    words, ranking, unities = site.words, names.ranking(ranking_id), names.unities(ranking_id)
    others = [
        element("a", words(key), href=site.address({**query, "clock": clock}, "/leaders"))
        for clock, key in _CLOCKS.items()
        if clock != found.clock
    ]
    others += [
        element(
            "a", name_text(unity_name(words, name)), href=site.address({**query, "unity": str(unity_id)}, "/leaders")
        )
        for unity_id, name in unities.items()
        if unity_id != found.unity_id
    ]
    kept = {name: text for name, text in query.items() if name != "clock"}
    back = element("a", words("back"), href=site.address(kept))
    first = words.html(
        "first_as_published" if found.clock == "log" else "first_as_it_was",
        unity=name_text(unity_name(words, unities[found.unity_id])),
    )
    if found.until is not None:
        first = words.html("up_to", what=first, time=_time(words, found.until))
    told = element("main", *_told(words, names, found))
    return framed_about(site, ranking, words("leaders"), first, (back, *others), told, kind="explanation")


def _told(words: Words, names: NamesById, found: Leaders) -> list[Html]:
    if not found.reigns:
        return [element("p", words("no_leaders"))]
    times = [
        _row(
            _names(words, names, [one.competitor_id]),
            (words("duration"), _duration(words, timedelta(seconds=one.seconds))),
            (words("competitions"), words.number(one.competitions)),
            (words("runs"), words.number(one.runs)),
            (words("longest"), _duration(words, one.longest.until - one.longest.since)),
        )
        for one in found.times
    ]
    reigns = [
        _row(
            _names(words, names, one.competitors),
            (words("since"), _time(words, one.since)),
            (words("until"), _time(words, one.until)),
        )
        for one in reversed(found.reigns)
    ]
    told = [
        *_section(words, ("time_at_top", "competitor", "duration", "competitions", "runs", "longest"), times),
        *_section(words, ("who_led", "competitor", "since", "until"), reigns),
    ]
    if found.differences:
        differences = [
            _row(
                _names(words, names, one.log),
                (words("as_it_was"), _names(words, names, one.world)),
                (words("since"), _time(words, one.since)),
                (words("until"), _time(words, one.until)),
            )
            for one in reversed(found.differences)
        ]
        told += _section(words, ("clocks_differ", "as_published", "as_it_was", "since", "until"), differences)
    return told


def _section(words: Words, keys: Items[str], rows: Iterable[Html]) -> tuple[Html, Html]:
    """A title, and a table. `keys`: of the title, then of the columns."""
    title, first, *others = [words(key) for key in keys]
    cells = [element("th", first, scope="col", class_="name")]
    cells += [element("th", text, scope="col", class_="value") for text in others]
    table = element(
        "table",
        element("caption", title, class_="unseen"),
        element("thead", element("tr", *cells)),
        element("tbody", *rows),
    )
    return element("h2", title), table


def _row(name: Html, *values: tuple[str, Html | str | None]) -> Html:
    cells = [element("td", value, class_="value", data_label=label) for label, value in values]
    return element("tr", element("td", name, class_="name"), *cells)


def _names(words: Words, names: NamesById, competitor_ids: Iterable[CompetitorId]) -> Html:
    found = [names.competitor(one) for one in competitor_ids]
    if not found:
        return element("span", words("nobody"))
    return joined([element("p", dot(one.color), name_text(one.name)) for one in found])


def _time(words: Words, moment: datetime | None) -> Html | None:
    return None if moment is None else words.when_element(moment)


def _duration(words: Words, time: timedelta) -> str:
    """Days; hours and minutes if it is less than a day."""
    if time.days:
        return words.counted("days", time.days)
    return f"{time.seconds // 3600} h {time.seconds // 60 % 60} min"


PAGES: Final = (
    RankingPage(
        below="/leaders",
        link="leaders",
        question=LeadersQuestion,
        page=leaders_page,
        fields=(_CLOCK,),
        given={"clock": "world", "offset": None},
    ),
)
