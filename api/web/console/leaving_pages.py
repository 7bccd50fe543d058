"""The pages on which a competitor leaves: it was added by mistake, or it withdraws."""

from typing import Final

from api.interface.direction import isolated
from api.interface.fields import BOOLEAN, Field
from api.web.console.change_page import LOOK, preview_part, seen_form
from api.web.console.frame import Venue, Viewer, console_page, way, ways
from api.web.console.import_page import STEP, hidden
from api.web.console.inputs import Filling, Option, complaint, form, inputs, new_key
from api.web.html import Html, element, joined
from api.web.page import name_text, number_text
from engine.domain.terms import CompetitorId
from projections.answers.foreseen import PREVIEW_AT_ONCE_MAX, Foreseen
from projections.answers.names import NamesById
from projections.answers.registrations import Withdrawing

KEEPS_RESULTS: Final = Field("keeps_results", BOOLEAN, "whether what it has played still counts", required=True)
KEEPS_OPTIONS: Final = (Option("false", "Counts for nobody"), Option("true", "Stays, only the rest does not count"))


def removal_page(
    viewer: Viewer, venue: Venue, competitor_id: CompetitorId, name: str, *, refused: str | None = None
) -> bytes:
    """Removes a competitor that took part in nothing. `refused`: why it cannot be removed."""
    below = f"/competitors/{competitor_id}"
    told = (
        element("p", "It has played nothing. It leaves all tables and lists, and can be registered again."),
        form(Filling(key=new_key()), venue.address(f"{below}/remove"), "Remove it"),
    )
    instead = (
        element("p", refused, class_="fault", role="alert"),
        ways(way("Withdraw it", venue.address(f"{below}/withdraw"))),
    )
    return console_page(
        viewer,
        venue.sport("Remove a {team}"),
        element("p", name_text(name), class_="subject"),
        *(told if refused is None else instead),
        element("p", element("a", "Cancel", href=venue.address("/competitors")), class_="ways"),
        venue=venue,
    )


def withdrawal_page(
    viewer: Viewer, venue: Venue, competitor_id: CompetitorId, name: str, filling: Filling, foreseen: Html | None
) -> bytes:
    """Takes a competitor out of the season. `foreseen`: the effects of the form; None: they have not been looked at."""
    return console_page(
        viewer,
        venue.sport("Withdraw a {team}"),
        element("p", name_text(name), class_="subject"),
        element(
            "p",
            venue.sport("This can be taken back: count each {match} again, and put the {team} back into the tables."),
            class_="warning",
        ),
        foreseen,
        complaint(filling, [KEEPS_RESULTS.name]),
        form(
            filling,
            venue.address(f"/competitors/{competitor_id}/withdraw"),
            LOOK if foreseen is None else "Withdraw it",
            None if foreseen is None else hidden(STEP, seen_form(filling.given)),
            inputs((KEEPS_RESULTS,), filling),
        ),
        element("p", element("a", "Cancel", href=venue.address("/competitors")), class_="ways"),
        venue=venue,
    )


def withdrawal_part(venue: Venue, names: NamesById, found: Withdrawing) -> Html:
    """The effects of a withdrawal."""
    told = [
        (found.voided, "would count for nobody."),
        (found.struck, "would count for the others only."),
    ]
    said = [
        element("p", venue.sport(f"{number_text(len(those))} {'{match}' if len(those) == 1 else '{matches}'} {what}"))
        for those, what in told
        if those
    ]
    if found.rankings:
        left = ", ".join([isolated(names.ranking(one)) for one in found.rankings])
        said.append(element("p", f"It would leave {left}."))
    lines = sum([len(unity.moves) for ranking in found.compared for unity in ranking.unities])
    moved = preview_part(names, Foreseen(found.compared if lines <= PREVIEW_AT_ONCE_MAX else None, []))
    return joined((*said, moved if found.compared else None, None if said else element("p", "Nothing would change.")))
