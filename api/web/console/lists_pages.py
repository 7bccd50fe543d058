"""The pages that list the competitors and the competitions of a tournament."""

from collections.abc import Sequence as Items
from typing import Final

from api.access.auth import Scope
from api.interface.competition_names import competition_text
from api.interface.direction import isolated
from api.web.console.frame import Venue, Viewer, console_page, data_table, done_message, live, way, ways
from api.web.html import Child, Html, element, joined
from api.web.page import Query, dot, name_text, number_text
from engine.domain.terms import CompetitionId, CompetitorId
from projections.answers.names import NamesById
from projections.board.board import Board, Competition, Competitor

ITEMS_SHOWN: Final = 100
"""Competitors or competitions on one page."""


def competitors_page(viewer: Viewer, venue: Venue, board: Board, offset: int, query: Query) -> bytes:
    """The competitors after the first `offset`, in the order of their registration."""
    shown = list(board.competitors.run(offset + 1, offset + ITEMS_SHOWN))
    may_write = viewer.may(Scope.WRITE)
    heads = [("Competitor", "name"), ("Id", "value"), ("Tags", "")]
    if may_write:
        heads.append(("Actions", "action"))
    rows = [_competitor(viewer, venue, *one) for one in shown]
    new = way("Register a competitor", venue.address("/competitors/new"), chief=True) if may_write else None
    several = way("Import competitors", venue.address("/competitors/import")) if may_write else None
    return console_page(
        viewer,
        "Competitors",
        done_message(query),
        ways(new, several),
        live(
            "competitors",
            data_table("Competitors", heads, rows, stacked=True) if rows else element("p", "There are none yet."),
        ),
        _pages(venue, "/competitors", offset, len(board.competitors)),
        venue=venue,
        below="/competitors",
    )


def _competitor(viewer: Viewer, venue: Venue, competitor_id: CompetitorId, found: Competitor) -> list[Child]:
    row: list[Child] = [
        joined((dot(found.color), name_text(found.name))),
        competitor_id,
        ", ".join(map(isolated, found.tags)),
    ]
    if viewer.may(Scope.WRITE):
        links = [_link(venue, f"/competitors/{competitor_id}/change", "Change", found.name)]
        if viewer.may(Scope.ADMIN):
            links.append(_link(venue, f"/competitors/{competitor_id}/export", "Export", found.name))
            links.append(_link(venue, f"/competitors/{competitor_id}/erase", "Erase", found.name))
        row.append(None if found.erased else joined(links))
    return row


def competitions_page(viewer: Viewer, venue: Venue, board: Board, offset: int, query: Query) -> bytes:
    """The competitions after the newest `offset`, the newest first."""
    last = len(board.competitions) - offset
    shown = list(board.competitions.run(last - ITEMS_SHOWN + 1, last))[::-1]
    may_write = viewer.may(Scope.WRITE)
    heads = [("Competition", "name"), ("Group", "value"), ("Start", "when"), ("Result", "")]
    if may_write:
        heads.append(("Actions", "action"))
    rows = [_competition(viewer, venue, board, *one) for one in shown]
    new = way("Add a competition", venue.address("/competitions/new"), chief=True) if may_write else None
    return console_page(
        viewer,
        "Competitions",
        done_message(query),
        ways(new, way("Imports", venue.address("/imports"))),
        live(
            "competitions",
            data_table("Competitions", heads, rows, stacked=True) if rows else element("p", "There are none yet."),
        ),
        _pages(venue, "/competitions", offset, len(board.competitions)),
        venue=venue,
        below="/competitions",
    )


def _competition(
    viewer: Viewer, venue: Venue, board: Board, competition_id: CompetitionId, found: Competition
) -> list[Child]:
    what = competition_text(NamesById(board), found)
    voided = None if found.voided_at is None else element("span", "voided", class_="badge")
    struck = element("span", f"{len(found.struck)} struck", class_="badge") if found.struck else None
    row: list[Child] = [
        joined((what, voided, struck)),
        found.group_id,
        venue.words.time_element(found.started_at),
        _result(board, found),
    ]
    if viewer.may(Scope.WRITE):
        below = f"/competitions/{competition_id}"
        links = [_link(venue, f"{below}/record", "Result", what)]
        if viewer.may(Scope.ADMIN):
            is_voided = found.voided_at is not None
            change = ("Have it count", "unvoid") if is_voided else ("Void", "void")
            links.append(_link(venue, f"{below}/{change[1]}", change[0], what))
            links.append(_link(venue, f"{below}/strike", "Strike", what))
            if found.struck:
                links.append(_link(venue, f"{below}/unstrike", "Unstrike", what))
        row.append(joined(links))
    return row


def _result(board: Board, found: Competition) -> str:
    winner = "" if found.winner_id is None else f"won by {isolated(board.competitors[found.winner_id].name)}"
    if found.result is None:
        return winner
    if isinstance(found.result, str):
        return ", ".join(filter(None, (isolated(found.result), winner)))
    return winner or f"{len(found.result)} performances"


def _link(venue: Venue, below: str, text: str, what: str) -> Html:
    """A link that tells a screen reader what it is about."""
    return element("a", text, element("span", f" {what}", class_="unseen"), href=venue.address(below), class_="act")


def _pages(venue: Venue, below: str, offset: int, count: int) -> Html | None:
    links: Items[Html | None] = (
        way("Before", venue.address(below, {"offset": str(max(offset - ITEMS_SHOWN, 0))})) if offset else None,
        way("Further", venue.address(below, {"offset": str(offset + ITEMS_SHOWN)}))
        if offset + ITEMS_SHOWN < count
        else None,
    )
    shown = f"{number_text(min(offset + ITEMS_SHOWN, count))} of {number_text(count)}"
    return joined((element("p", shown, class_="moment"), ways(*links))) if count > ITEMS_SHOWN else None


def competitor_choices(board: Board) -> Html:
    """The ids of competitors, for forms that take ids: the first ones, and the number of the rest."""
    shown = [
        element("li", element("bdi", name, class_="chosen"), " ", element("code", one), data_id=one)
        for one, name in ((one, found.name) for one, found in board.competitors.run(1, ITEMS_SHOWN))
    ]
    rest = len(board.competitors) - len(shown)
    more = element("p", f"{number_text(rest)} more are in the list of competitors.") if rest else None
    return element(
        "details", element("summary", "Competitors and their ids"), element("ul", *shown), more, class_="ids"
    )
