"""The pages that list the competitors and the competitions of a tournament."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as Items
from typing import Final

from api.access.auth import Scope
from api.interface.competition_names import competition_text
from api.interface.direction import isolated
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, live, way, ways
from api.web.console.typed_names import typed_text
from api.web.html import Child, Html, element, joined
from api.web.page import Query, dot, name_text, number_text
from api.web.result_text import result_text
from api.web.words import ENGLISH
from engine.domain.events import Result
from engine.domain.terms import CompetitionId, CompetitorId
from projections.answers.competitions import CompetitionList
from projections.answers.competitors import CompetitorList
from projections.answers.names import NamesById
from projections.answers.scoring import UnscoredResult

ITEMS_SHOWN: Final = 100
"""Competitors or competitions on one page."""
VOIDED: Final = "voided"
"""In the query: competitions that do not count are listed, too."""


def competitors_page(viewer: Viewer, venue: Venue, found: CompetitorList, offset: int, query: Query) -> bytes:
    """Those after the first `offset`."""
    may_write = viewer.may(Scope.WRITE)
    heads = [(venue.sport("{Team}"), "name"), ("Tags", "")]
    if may_write:
        heads.append(("Actions", "action"))
    rows = [_competitor(viewer, venue, found, one) for one, its in found.competitors.items() if its.erased is None]
    new = way(venue.sport("Add {teams}"), venue.address("/competitors/names"), chief=True) if may_write else None
    one = way(venue.sport("Add a {team}"), venue.address("/competitors/new")) if may_write else None
    several = way("Import from a file", venue.address("/competitors/import")) if may_write else None
    listed = (
        data_table(venue.sport("{Teams}"), heads, rows, stacked=True) if rows else element("p", "There are none yet.")
    )
    return console_page(
        viewer,
        venue.sport("{Teams}"),
        done_message(query),
        ways(new, one, several),
        live("competitors", listed),
        _pages(venue, "/competitors", offset, found.total, {}),
        venue=venue,
        below="/competitors",
    )


def _competitor(viewer: Viewer, venue: Venue, those: CompetitorList, competitor_id: CompetitorId) -> list[Child]:
    found = those.competitors[competitor_id]
    row: list[Child] = [
        joined((dot(found.color), name_text(found.name))),
        ", ".join(map(isolated, found.tags)),
    ]
    if viewer.may(Scope.WRITE):
        links = [_link(venue, f"/competitors/{competitor_id}/change", "Change", found.name)]
        if viewer.may(Scope.ADMIN):
            links.append(_link(venue, f"/competitors/{competitor_id}/export", "Export", found.name))
            links.append(_link(venue, f"/competitors/{competitor_id}/erase", "Erase", found.name))
            links.append(_link(venue, f"/competitors/{competitor_id}/remove", "Remove", found.name))
            links.append(_link(venue, f"/competitors/{competitor_id}/withdraw", "Withdraw", found.name))
        row.append(joined(links))
    return row


def competitions_page(
    viewer: Viewer,
    venue: Venue,
    names: NamesById,
    found: CompetitionList,
    unscored: Items[UnscoredResult],
    voided: int,
    offset: int,
    query: Query,
) -> bytes:
    """Those after the newest `offset`. `unscored`: the results that give no points. `voided`: how many do not count;
    they are listed only if the query says so."""
    may_write = viewer.may(Scope.WRITE)
    heads = [(venue.sport("{Match}"), "name"), ("Division", "value"), ("Round", ""), ("Start", "when"), ("Result", "")]
    if may_write:
        heads.append(("Actions", "action"))
    of = {one: [its for its in unscored if its.competition_id == one] for one in found.competitions}
    rows = [_competition(viewer, venue, names, found, one, of[one]) for one in found.competitions]
    kept = {VOIDED: query[VOIDED]} if VOIDED in query else {}
    new = way(venue.sport("Add a {match}"), venue.address("/competitions/new"), chief=True) if may_write else None
    listed = (
        data_table(venue.sport("{Matches}"), heads, rows, stacked=True) if rows else element("p", "There are none yet.")
    )
    return console_page(
        viewer,
        venue.sport("{Matches}"),
        done_message(query),
        ways(new, way("Imports", venue.address("/imports"))),
        live("competitions", listed),
        _pages(venue, "/competitions", offset, found.total, kept),
        _others(venue, voided, is_asked=VOIDED in query),
        venue=venue,
        below="/competitions",
    )


def _folded(why: Html) -> Html | None:
    return element("details", element("summary", "no points"), why) if why else None


def unscored_text(names: NamesById, unscored: Iterable[UnscoredResult]) -> Html:
    """In which rankings results give no points, and why; empty for none."""
    told = [(name_text(names.ranking(one.ranking_id)), one.why) for one in unscored]
    return joined([element("p", "No points in ", name, f": {why}", class_="warning") for name, why in told])


def _competition(
    viewer: Viewer,
    venue: Venue,
    names: NamesById,
    those: CompetitionList,
    competition_id: CompetitionId,
    unscored: Items[UnscoredResult],
) -> list[Child]:
    found = those.competitions[competition_id]
    what = competition_text(names, found, venue.words("competition_of"))
    voided = None if found.voided_at is None else element("span", "not counted", class_="badge")
    struck = element("span", f"not counted for {len(found.struck)}", class_="badge") if found.struck else None
    row: list[Child] = [
        joined((what, voided, struck)),
        found.group_id,
        found.round_name or found.round,
        None if found.date is None else venue.words.when_element(found.date),
        joined((recorded_text(names, found.result, found.winner_id), _folded(unscored_text(names, unscored)))),
    ]
    if viewer.may(Scope.WRITE):
        below = f"/competitions/{competition_id}"
        links = [_link(venue, f"{below}/record", "Result", what), _link(venue, f"{below}/change", "Change", what)]
        if viewer.may(Scope.ADMIN):
            is_voided = found.voided_at is not None
            change = ("Count it again", "unvoid") if is_voided else ("Do not count", "void")
            links.append(_link(venue, f"{below}/{change[1]}", change[0], what))
            links.append(_link(venue, f"{below}/strike", "Do not count for some", what))
            if found.struck:
                links.append(_link(venue, f"{below}/unstrike", "Count again for some", what))
        row.append(joined(links))
    return row


def recorded_text(names: NamesById, result: Result | None, winner_id: CompetitorId | None) -> str:
    """What is recorded of a competition; empty: nothing."""
    winner = "" if winner_id is None else f"won by {isolated(names.competitor(winner_id).name)}"
    if result is None:
        return winner
    if isinstance(result, str):
        return ", ".join(filter(None, (*map(isolated, result_text(ENGLISH, result).split("|")), winner)))
    return winner or f"{len(result)} performances"


def _link(venue: Venue, below: str, text: str, what: str) -> Html:
    """A link that tells a screen reader what it is about."""
    return element("a", text, element("span", f" {what}", class_="unseen"), href=venue.address(below), class_="act")


def _others(venue: Venue, voided: int, *, is_asked: bool) -> Html | None:
    if is_asked:
        link = element("a", "Hide what does not count", href=venue.address("/competitions"))
        return element("p", link, class_="ways")
    text = f"Show the {number_text(voided)} that {'does' if voided == 1 else 'do'} not count"
    link = element("a", text, href=venue.address("/competitions", {VOIDED: "1"}))
    return element("p", link, class_="ways") if voided else None


def _pages(venue: Venue, below: str, offset: int, count: int, kept: Query) -> Html | None:
    links: Items[Html | None] = (
        way("Previous", venue.address(below, {**kept, "offset": str(max(offset - ITEMS_SHOWN, 0))}))
        if offset
        else None,
        way("Next", venue.address(below, {**kept, "offset": str(offset + ITEMS_SHOWN)}))
        if offset + ITEMS_SHOWN < count
        else None,
    )
    shown = f"{number_text(min(offset + ITEMS_SHOWN, count))} of {number_text(count)}"
    return joined((element("p", shown, class_="moment"), ways(*links))) if count > ITEMS_SHOWN else None


def competitor_choices(those: CompetitorList) -> Html:
    """The names of competitors, for forms that take them: the first ones, and the number of the rest."""
    alike = Counter(found.name for found in those.competitors.values())
    shown = [
        element("li", element("bdi", found.name, class_="chosen"), data_id=typed_text(one, found.name, alike))
        for one, found in those.competitors.items()
        if found.erased is None
    ]
    rest = those.total - len(those.competitors)
    more = element("p", f"{number_text(rest)} more are in the list.") if rest else None
    return element("details", element("summary", "Names to choose from"), element("ul", *shown), more, class_="ids")
