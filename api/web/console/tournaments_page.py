"""The first page of the console: the tournaments that a token is for, and the state of each."""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Final

from msgspec import Struct

from api.access.auth import Scope
from api.web.console.beginnings import PRESENTATION
from api.web.console.frame import CONSOLE, Viewer, console_page, data_table, way, ways
from api.web.console.inputs import Filling, complaint, form, inputs, text_input
from api.web.html import Child, Html, element
from api.web.page import name_text, number_text
from api.web.words import ENGLISH, Words
from engine.domain.terms import Sequence, TournamentId
from engine.log.registry import RegistryEntry
from projections.tables.tables import Checkpoint, Stop
from projections.verification.noted import LastVerified

TOURNAMENTS_SHOWN: Final = 100
"""Tournaments on one page."""
ZONE_FIELD: Final = next(field for field in PRESENTATION.fields if field.name == "zone")


class Tournaments(Struct, frozen=True, kw_only=True):
    """A page of tournaments: how far the tables of each are, which have stopped, and when each was last verified.
    `next`: the slug after which the following page begins; None: there is none."""

    entries: Items[RegistryEntry]
    checkpoints: Mapping[TournamentId, Checkpoint]
    stops: Mapping[TournamentId, Stop]
    verified: Mapping[TournamentId, LastVerified]
    next: str | None


def tournaments_page(viewer: Viewer, shown: Tournaments) -> bytes:
    heads = [("Tournament", "name")]
    is_operator = viewer.may(Scope.ADMIN)
    if is_operator:
        heads += [("State", "state"), ("Checked", "state")]
    rows = [_row(entry, shown, is_operator=is_operator) for entry in shown.entries]
    table: Html = element("p", "There is no tournament for this token.")
    if rows:
        table = data_table("Tournaments", heads, rows)
    further = None if shown.next is None else way("More tournaments", f"{CONSOLE}?after={shown.next}")
    new = way("Create a tournament", f"{CONSOLE}/tournaments/new") if may_create(viewer) else None
    return console_page(viewer, "Tournaments", table, ways(new, further))


def may_create(viewer: Viewer) -> bool:
    """A token for some tournaments only would not be for the new one."""
    return viewer.may(Scope.ADMIN) and viewer.token.tournament_ids is None


def new_tournament_page(viewer: Viewer, filling: Filling) -> bytes:
    return console_page(
        viewer,
        "Create a tournament",
        complaint(filling, ["name", ZONE_FIELD.name]),
        form(
            filling,
            f"{CONSOLE}/tournaments/new",
            "Create it",
            text_input(
                "name",
                "Name",
                filling,
                "its address is made from this, and stays the same when it is renamed",
                required=True,
            ),
            inputs((ZONE_FIELD,), filling),
        ),
        element("p", element("a", "Cancel", href=CONSOLE), class_="ways"),
    )


def _row(entry: RegistryEntry, shown: Tournaments, *, is_operator: bool) -> list[Child]:
    link = element("a", name_text(entry.name), href=f"{CONSOLE}/tournament/{entry.slug}")
    row: list[Child] = [link]
    if is_operator:
        row += [_state(shown, entry), verified_text(shown.verified.get(entry.tournament_id))]
    return row


def lag_text(last: Sequence, checkpoint: Checkpoint | None) -> str:
    """How far the tables are behind a log that ends at the event `last`."""
    behind = last - (0 if checkpoint is None else checkpoint.head.sequence)
    if behind <= 0:
        return "current"
    return f"{number_text(behind)} {'change' if behind == 1 else 'changes'} behind"


def verified_text(last: LastVerified | None, words: Words = ENGLISH) -> Html:
    """When a tournament was last verified, up to which event, and with how many differences."""
    if last is None:
        return element("span", "not yet")
    upto = f", up to change {number_text(last.sequence)}"
    if not last.differences:
        return element("span", words.time_element(last.verified_at), f"{upto}: no difference")
    found = f"{number_text(last.differences)} {'difference' if last.differences == 1 else 'differences'}"
    return element("span", words.time_element(last.verified_at), f"{upto}: ", element("span", found, class_="fault"))


def _state(shown: Tournaments, entry: RegistryEntry) -> Html:
    stop = shown.stops.get(entry.tournament_id)
    lag = lag_text(entry.sequence, shown.checkpoints.get(entry.tournament_id))
    return element("span", lag) if stop is None else stop_text(stop)


def stop_text(stop: Stop) -> Html:
    """Why a tournament has stopped."""
    return element("span", f"stopped at change {stop.sequence}: {stop.reason}", class_="fault")
