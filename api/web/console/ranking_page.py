"""The page of a ranking: its table, with links to its history and to its changes. The page for adding points has the
same table, with a field in each line."""

import re
from collections.abc import Container, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from api.access.auth import Scope
from api.interface.competition_names import competition_text
from api.interface.direction import isolated
from api.interface.sports import in_order
from api.web.console.changes import ADD_POINTS
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, live, tabs, way, ways
from api.web.console.inputs import Filling, Option, complaint, form, inputs
from api.web.console.overview_page import state_text, unity_text
from api.web.html import Child, Html, element, joined
from api.web.page import Query, abbreviated, dot, name_text, number_text
from api.web.ranking_pages import RANKING_PAGES
from api.web.table import column_name, column_short, value_text
from api.web.words import ENGLISH
from engine.domain.notation import WHOLE, Notation
from engine.domain.terms import CompetitorId, RankingId
from projections.answers.board_table import BOARD_LINES, BoardTable, Named, TableLine
from projections.answers.competitions import CompetitionList
from projections.answers.names import NamesById
from projections.answers.rankings import ListedRanking, ListedUnity
from projections.answers.view import View

_ADDED: Final = "added"
"""In the query: the event `done` added points."""
POINTS: Final = "points[{competitor_id}]"
"""The field of a line for its points."""
ENTRY: Final = re.compile(r"points\[([1-9][0-9]{0,18})\]", re.ASCII)
"""The name of such a field; the group is the competitor's id."""
DELTAS_NAME: Final = "participants_delta"
COMPETITIONS_SUGGESTED: Final = 500
"""Newest competitions that the form offers."""
_WHOSE: Final = re.compile(r"\bcompetitor ([1-9][0-9]{0,18})\b", re.ASCII)


def ranking_page(
    viewer: Viewer,
    venue: Venue,
    ranking: ListedRanking,
    table: BoardTable,
    unscored: Html | None,
    query: Query,
) -> bytes:
    """The page. `unscored`: its results that give nothing, if there are any."""
    below = f"/rankings/{ranking.id}"
    columns = [column_name(ENGLISH, one) for one in table.columns]
    order = in_order(one.unity for one in table.columns)
    shown = [(abbreviated(columns[number], column_short(ENGLISH, table.columns[number])), "value") for number in order]
    heads: list[tuple[Child, str]] = [("#", "position"), (venue.sport("{Team}"), "name"), *shown]
    rows = [_line(venue, below, table, line, query, order) for line in table.lines]
    undo = venue.address(f"{below}/undo/{query['done']}") if {"done", _ADDED} <= query.keys() else None
    return console_page(
        viewer,
        ranking.name,
        done_message(query, undo),
        None if ranking.description is None else element("p", ranking.description),
        element("p", venue.sport(f"{number_text(table.count)} {{teams}}, {state_text(ranking)}")),
        _columns(venue, below, table),
        live("table", data_table(f"{ranking.name}, {', '.join(columns)}", heads, rows)),
        _pages(venue, below, table, query),
        unscored,
        ways(*_ways_on(viewer, venue, ranking, query)),
        venue=venue,
    )


def _ways_on(viewer: Viewer, venue: Venue, ranking: ListedRanking, query: Query) -> list[Html]:
    """Links to what the viewer may do with the ranking, the most likely one first."""
    below = f"/rankings/{ranking.id}"
    links = [
        way("History", venue.address(f"{below}/history")),
        *[
            way(ENGLISH(one.link), venue.address(below + one.below))
            for one in RANKING_PAGES
            if one.link and one.suits(ranking.scorings)
        ],
    ]
    is_open = ranking.closed_at is None
    if viewer.may(Scope.WRITE) and ranking.scorings:
        links.insert(0, way("Enter results", venue.address("/matchday"), chief=True))
    if viewer.may(Scope.WRITE) and is_open:
        by_hand = way("Add points", venue.address(f"{below}/add", _kept(query)), chief=not ranking.scorings)
        links.insert(len(links) if ranking.scorings else 0, by_hand)
        links.append(way("Fixtures", venue.address(f"{below}/fixtures")))
        links.append(way("Import from a file", venue.address(f"{below}/import")))
        links.append(way(venue.sport("{Teams}"), venue.address(f"{below}/participants")))
        links.append(way("Order of the table", venue.address(f"{below}/classification")))
        links.append(way("What results give", venue.address(f"{below}/scoring")))
        links.append(way("Add a column", venue.address(f"{below}/unities/new")))
        links.append(way("Name, description and zones", venue.address(f"{below}/information")))
    if viewer.may(Scope.ADMIN):
        change = ("Close it", "close") if is_open else ("Reopen it", "reopen")
        links.append(way(change[0], venue.address(f"{below}/{change[1]}")))
        change = ("Show it again", "show") if ranking.hidden else ("Hide it", "hide")
        links.append(way(change[0], venue.address(f"{below}/{change[1]}")))
    return links


def _line(
    venue: Venue, below: str, table: BoardTable, line: TableLine, query: Query, order: Iterable[int]
) -> list[Child]:
    explained = venue.address(f"{below}/competitors/{line.competitor_id}", _kept(query))
    name = joined((dot(line.color), element("a", name_text(line.name), href=explained)))
    return [line.place, name, *[value_text(ENGLISH, table, line, number) for number in order]]


def _columns(venue: Venue, below: str, table: BoardTable) -> Html | None:
    others = [one for one in table.unities if one.id != table.sole]
    if not others:
        return None
    whole = "Table", venue.address(below), table.unity_id in (None, table.sole)
    return tabs("Tables of this ranking", [whole, *_unity_tabs(venue, below, others, table.unity_id)])


def _unity_tabs(
    venue: Venue, below: str, unities: Iterable[Named | ListedUnity], chosen: int | None
) -> Iterator[tuple[str, str, bool]]:
    for one in unities:
        yield one.name, venue.address(below, {"unity": str(one.id)}), one.id == chosen


def _pages(venue: Venue, below: str, table: BoardTable, query: Query) -> Html | None:
    end = table.offset + len(table.lines)
    before = max(table.offset - BOARD_LINES, 0)
    links = []
    if table.offset:
        links.append(way("Previous lines", venue.address(below, {**_kept(query), "offset": str(before)})))
    if end < table.count:
        links.append(way("Next lines", venue.address(below, {**_kept(query), "offset": str(end)})))
    return ways(*links)


def _kept(query: Query) -> Query:
    return {name: query[name] for name in ("unity",) if name in query}


# ── Adding points ───────────────────────────────────────────────────────────────────────────────────────


def points_page(
    viewer: Viewer,
    venue: Venue,
    view: View,
    table: BoardTable,
    newest: CompetitionList,
    filling: Filling,
    query: Query,
) -> bytes:
    """The form that adds points of one unity to the competitors on one page of the table. `newest`: competitions, which
    most points are for."""
    ranking = view.ranking(RankingId(table.ranking_id))
    below = f"/rankings/{ranking.id}"
    unity = next(one for one in ranking.unities if one.id == table.unity_id)
    whose = faults_by_line(filling)
    lines = [_Line(CompetitorId(line.competitor_id), line.name, line.color, line.values[0]) for line in table.lines]
    lines += _elsewhere(view.names, {line.competitor_id for line in lines}, filling)
    shown = [field.name for field in ADD_POINTS.fields if field.name != DELTAS_NAME]
    placed = {message for line in lines for message in whose.get(line.competitor_id, [])}
    rest = [fault for fault in filling.faults if fault.field not in shown and fault.message not in placed]
    heads = [(venue.sport("{Team}"), "name"), (unity.name, "value"), ("To add", "entry")]
    rows = [_entry(line, unity.notation, filling, whose.get(line.competitor_id, [])) for line in lines]
    unities = tabs("Columns", _unity_tabs(venue, f"{below}/add", ranking.unities, unity.id))
    fields = [field for field in ADD_POINTS.fields if field.name in shown]
    of_many = venue.words("competition_of")
    suggested = [
        Option("", ""),
        *[Option(f"id:{one}", competition_text(view.names, its, of_many)) for one, its in newest.competitions.items()],
    ]
    kept = {"unity": str(unity.id), "offset": str(table.offset)}
    return console_page(
        viewer,
        f"Add points to {ranking.name}",
        element("p", element("a", "Back to the table", href=venue.address(below, _kept(query))), class_="ways"),
        unities if len(ranking.unities) > 1 else None,
        complaint(Filling(key="", message=filling.message, faults=rest), []),
        form(
            filling,
            venue.address(f"{below}/add", kept),
            "Add these points",
            data_table(f"Points to add in {unity_text(unity)}", heads, rows),
            _pages(venue, f"{below}/add", table, query),
            inputs(fields, replace(filling, sport=venue.sport, options={"competition_id": suggested})),
        ),
        venue=venue,
    )


class _Line(Struct, frozen=True):
    """A line of the form. `total` is None if the competitor is not on this page of the table."""

    competitor_id: CompetitorId
    name: str
    color: str
    total: int | None


def _elsewhere(names: NamesById, here: Container[CompetitorId], filling: Filling) -> list[_Line]:
    """Lines for those who were given points in the form as it was sent, and are not `here` any more."""
    typed = [name for name, text in filling.given.items() if text.strip()]
    ids = [CompetitorId(int(named[1])) for name in typed if (named := ENTRY.fullmatch(name))]
    found = names.competitors([one for one in ids if one not in here])
    return [_Line(one, competitor.name, competitor.color, None) for one, competitor in found.items()]


def _entry(line: _Line, notation: Notation, filling: Filling, wrong: list[str]) -> list[Child]:
    name = POINTS.format(competitor_id=line.competitor_id)
    said = "; ".join(wrong).replace(f"competitor {line.competitor_id}", isolated(line.name))
    entry = element(
        "input",
        name=name,
        id=f"field-{line.competitor_id}",
        value=filling.given.get(name, ""),
        inputmode="numeric" if notation == WHOLE else "text",
        autocomplete="off",
        aria_label=f"Points for {line.name}",
        aria_invalid="true" if wrong else None,
        aria_describedby=f"fault-{line.competitor_id}" if wrong else None,
    )
    fault = element("p", f"{said}.", class_="fault", id=f"fault-{line.competitor_id}") if wrong else None
    return [
        joined((dot(line.color), name_text(line.name))),
        "" if line.total is None else number_text(line.total, notation),
        joined((entry, fault)),
    ]


def faults_by_line(filling: Filling) -> dict[int, list[str]]:
    """The faults of each competitor's points: a fault's message names the competitor."""
    found: dict[int, list[str]] = {}
    for fault in filling.faults:
        if fault.field == DELTAS_NAME and (whose := _WHOSE.search(fault.message)):
            found.setdefault(int(whose[1]), []).append(fault.message)
    return found
