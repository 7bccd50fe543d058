"""The page of a change: its effects, and the form that makes it. Looking at the page changes nothing."""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Final
from urllib.parse import urlencode

from msgspec import UNSET

from api.interface.direction import isolated
from api.web.console.changes import Change
from api.web.console.frame import Venue, Viewer, console_page, data_table
from api.web.console.import_page import STEP, hidden
from api.web.console.inputs import Beginning, Filling, boxes, complaint, form, inputs
from api.web.console.lists_pages import competitor_choices, unscored_text
from api.web.html import Child, Html, element, joined
from api.web.page import name_text, number_text
from engine.domain.notation import WHOLE, Notation
from projections.answers.competitors import CompetitorList
from projections.answers.erasure import ErasureEffect
from projections.answers.foreseen import (
    PREVIEW_AT_ONCE_MAX,
    ClassificationMove,
    ComparedRanking,
    Foreseen,
    StandingMove,
)
from projections.answers.names import NamesById

LOOK: Final = "See what would change"
MOVES_SHOWN: Final = 100
"""Moves of one table that a preview shows."""


def change_page(
    viewer: Viewer,
    venue: Venue,
    competitors: CompetitorList | None,
    change: Change,
    beginning: Beginning,
    filling: Filling,
    *,
    address: str,
    back: str,
    previewed: Html | None,
    said: Html | None,
) -> bytes:
    """The page. `competitors`: those whose ids are shown. `address`: where the form is sent. `back`: the page that led
    here. `previewed`: the effects of the change. `said`: of the page before."""
    fields, sport = change.fields(beginning), venue.sport
    looks = change.looks_at_form and change.preview is not None and not beginning.at_once and previewed is None
    chosen = "participants" if beginning.fields is None or fields else "competitors"
    shown = [field.name for field in fields] + ([chosen] if beginning.boxes else [])
    return console_page(
        viewer,
        sport(change.title),
        said,
        element("p", beginning.about, class_="subject") if beginning.about else None,
        None if change.warning is None else element("p", sport(change.warning), class_="warning"),
        beginning.shown,
        previewed,
        complaint(filling, shown),
        form(
            filling,
            address,
            LOOK if looks else sport(change.button),
            hidden(STEP, seen_form(filling.given)) if change.looks_at_form and not looks else None,
            inputs(fields, filling),
            boxes(sport("{Teams}"), chosen, beginning.boxes, filling) if beginning.boxes else None,
            None if competitors is None else competitor_choices(competitors),
            is_final=change.final and not looks,
        ),
        element("p", element("a", "Cancel", href=back), class_="ways"),
        venue=venue,
    )


def seen_form(given: Mapping[str, str]) -> str:
    """The content of a form, to check that its effects were looked at."""
    return urlencode(sorted(given.items()))


def preview_part(names: NamesById, foreseen: Foreseen) -> Html:
    """The moves that a change would lead to, as tables."""
    if foreseen.rankings is None:
        return element(
            "p",
            f"More than {number_text(PREVIEW_AT_ONCE_MAX)} lines would have to be compared, which is too long for this "
            "page. The command line and the interface show all moves.",
            class_="warning",
        )
    tables = [_compared(names, ranking) for ranking in foreseen.rankings]
    told = tables or [element("p", "Nobody would move: it gave no points that still count.")]
    return joined((unscored_text(names, foreseen.unscored), *told))


def mentions_part(erasure: ErasureEffect) -> Html:
    """The texts that contain a competitor's name, which stays in them."""
    if not erasure.mentions:
        return element("p", "Its name is in no reason, result, location, description, ranking name or key.")
    rows: list[list[Child]] = [[number_text(one.sequence), one.field, name_text(one.text)] for one in erasure.mentions]
    heads = [("Change", "value"), ("Field", "name"), ("Text", "name")]
    left_out = erasure.mentions_left_out
    return element(
        "section",
        element("h2", "Its name stays in these texts"),
        data_table("Texts with its name", heads, rows),
        element("p", f"{number_text(left_out)} more contain it.") if left_out else None,
        class_="preview",
    )


def _compared(names: NamesById, ranking: ComparedRanking) -> Html:
    parts: list[Html] = []
    if ranking.classification is not UNSET:
        moved = [move for move in ranking.classification if move.position_before != move.position_after]
        parts.append(_moves(f"{isolated(ranking.name)}: table", [_classified(move) for move in moved], ["Place"]))
    for unity in ranking.unities:
        notation = names.unity(ranking.id, unity.id).notation
        changed_first = sorted(unity.moves, key=lambda move: move.total_before == move.total_after)
        changed = [_move(move, notation) for move in changed_first if _differs(move)]
        parts.append(_moves(f"{isolated(ranking.name)}: {isolated(unity.name)}", changed, ["Place", "Total"]))
    return element("section", *parts, class_="preview")


def _moves(caption: str, rows: Items[list[Child]], columns: Items[str]) -> Html:
    heading = element("h2", caption)
    if not rows:
        return joined((heading, element("p", "Nobody would move.")))
    heads = [("Name", "name"), *[(text, "value") for text in columns]]
    rest = len(rows) - MOVES_SHOWN
    more = element("p", f"{number_text(rest)} more would move.") if rest > 0 else None
    return joined((heading, data_table(f"Moves in {caption}", heads, rows[:MOVES_SHOWN]), more))


def _differs(move: StandingMove) -> bool:
    return (move.position_before, move.total_before) != (move.position_after, move.total_after)


def _move(move: StandingMove, notation: Notation) -> list[Child]:
    return [
        name_text(move.name),
        _from_to(
            None if move.total_before is None else move.position_before,
            None if move.total_after is None else move.position_after,
        ),
        _from_to(move.total_before, move.total_after, notation),
    ]


def _classified(move: ClassificationMove) -> list[Child]:
    return [name_text(move.name), _from_to(move.position_before, move.position_after)]


def _from_to(before: int | None, after: int | None, notation: Notation = WHOLE) -> str:
    if before == after:
        return number_text(before, notation)
    return f"{number_text(before, notation)} → {number_text(after, notation)}"
