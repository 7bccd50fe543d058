"""The page of leaders: how long each competitor stood first, who did from when to when, and where the clocks differ."""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from datetime import datetime, timedelta
from typing import Final

from api.interface.resources.leaders import LeadersShape
from api.web.html import Html, element, joined
from api.web.page import Query, Site, dot, framed, name_text, number_text, time_element
from engine.domain.terms import CompetitorId, RankingId, UnityId
from projections.board.board import Board

_CLOCKS: Final = {"log": ("as published", "As published"), "world": ("as it took place", "As it took place")}


def leaders_page(site: Site, board: Board, shown: LeadersShape, ranking_id: RankingId, query: Query) -> bytes:
    """The page, with the last reigns first. `board` knows the names of all who led."""
    ranking = board.rankings[ranking_id]
    unity = ranking.unities[UnityId(shown.unity_id)]
    others = [
        element("a", text, href=site.address({**query, "clock": clock}, "/leaders"))
        for clock, (_, text) in _CLOCKS.items()
        if clock != shown.clock
    ]
    others += [
        element("a", name_text(one.name), href=site.address({**query, "unity": str(unity_id)}, "/leaders"))
        for unity_id, one in ranking.unities.items()
        if one is not unity
    ]
    kept = {name: text for name, text in query.items() if name != "clock"}
    back = element("a", "Back to the table", href=site.address(kept))
    until = None if shown.until is None else joined((", up to ", _time(shown.until)))
    head = element(
        "header",
        element("p", name_text(site.name), " · ", name_text(ranking.name), class_="tournament"),
        element("h1", "Leaders"),
        element("p", "First in ", name_text(unity.name), f", {_CLOCKS[shown.clock][0]}", until, class_="moment"),
    )
    body = joined(
        (
            element("nav", *[part for one in (back, *others) for part in (one, " ")], class_="ways"),
            head,
            element("main", *_told(board, shown)),
        )
    )
    return framed(site, f"Leaders · {ranking.name} · {site.name}", body, kind="explanation", scripts=False)


def _told(board: Board, shown: LeadersShape) -> list[Html]:
    if not shown.reigns:
        return [element("p", "Nobody has led yet.")]
    times = [
        _row(
            _names(board, [one.competitor_id]),
            ("Time", _duration(one.seconds)),
            ("Competitions", number_text(one.competitions)),
            ("Times", number_text(one.runs)),
            ("Longest", _duration(_seconds(one.longest.since, one.longest.until))),
        )
        for one in shown.competitors
    ]
    reigns = [
        _row(_names(board, one.competitors), ("Since", _time(one.since)), ("Until", _time(one.until)))
        for one in reversed(shown.reigns)
    ]
    told = [
        *_section("Time at the top", ("Competitor", "Time", "Competitions", "Times", "Longest"), times),
        *_section("Who led", ("Competitor", "Since", "Until"), reigns),
    ]
    if shown.differences:
        differences = [
            _row(
                _names(board, one.log),
                ("Took place", _names(board, one.world)),
                ("Since", _time(one.since)),
                ("Until", _time(one.until)),
            )
            for one in reversed(shown.differences)
        ]
        heads = ("As published", "As it took place", "Since", "Until")
        told += _section("Where what was published differs", heads, differences)
    return told


def _section(title: str, heads: Items[str], rows: Iterable[Html]) -> tuple[Html, Html]:
    first, *others = heads
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


def _names(board: Board, competitor_ids: Iterable[int]) -> Html:
    found = [board.competitors[CompetitorId(one)] for one in competitor_ids]
    if not found:
        return element("span", "Nobody")
    return joined([element("p", dot(one.color), name_text(one.name)) for one in found])


def _time(instant: str | None) -> Html | None:
    return None if instant is None else time_element(datetime.fromisoformat(instant))


def _seconds(since: str, until: str) -> int:
    return int((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds())


def _duration(seconds: int) -> str:
    """Days, or where there are none, hours and minutes."""
    time = timedelta(seconds=seconds)
    if time.days:
        return f"{number_text(time.days)} {'day' if time.days == 1 else 'days'}"
    return f"{seconds // 3600} h {seconds // 60 % 60} min"
