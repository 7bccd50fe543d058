"""The page of a change: its effects, and the form that makes it. Looking at the page changes nothing."""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET, Struct

from api.interface.direction import isolated
from api.interface.resources.voiding import (
    PREVIEW_AT_ONCE_MAX,
    ClassificationMoveShape,
    ComparedRankingShape,
    StandingMoveShape,
)
from api.web.console.changes import Beginning, Change
from api.web.console.frame import Venue, Viewer, console_page, data_table
from api.web.console.import_page import STEP, hidden
from api.web.console.inputs import Filling, boxes, complaint, form, inputs
from api.web.console.lists_pages import competitor_choices
from api.web.html import Child, Html, element, joined
from api.web.page import name_text, number_text
from engine.domain.notation import WHOLE, Notation
from engine.domain.terms import RankingId, UnityId
from projections.board.board import Board
from projections.past.mentions import Mentions

LOOK: Final = "See what would change"
MOVES_SHOWN: Final = 100
"""Moves of one table that a preview shows."""


class _Preview(Struct):
    rankings: list[ComparedRankingShape]


_PREVIEW: Final = msgspec.json.Decoder(_Preview)


def change_page(
    viewer: Viewer,
    venue: Venue,
    board: Board,
    change: Change,
    beginning: Beginning,
    filling: Filling,
    *,
    address: str,
    back: str,
    previewed: Html | None,
) -> bytes:
    """The page. `address`: where the form is sent. `back`: the page that led here. `previewed`: the effects of the
    change."""
    fields = change.fields(beginning)
    looks = change.looks_at_form and previewed is None
    chosen = "participants" if beginning.fields is None or fields else "competitors"
    shown = [field.name for field in fields] + ([chosen] if beginning.boxes else [])
    return console_page(
        viewer,
        change.title,
        element("p", beginning.about, class_="subject") if beginning.about else None,
        None if change.warning is None else element("p", change.warning, class_="warning"),
        previewed,
        complaint(filling, shown),
        form(
            filling,
            address,
            LOOK if looks else change.button,
            hidden(STEP, seen_form(filling.given)) if change.looks_at_form and not looks else None,
            inputs(fields, filling),
            boxes("Competitors", chosen, beginning.boxes, filling) if beginning.boxes else None,
            competitor_choices(board) if change.with_competitors and not beginning.boxes else None,
            dangerous=change.warning is not None and not looks,
        ),
        element("p", element("a", "Leave it as it is", href=back), class_="ways"),
        venue=venue,
    )


def seen_form(given: Mapping[str, str]) -> str:
    """The content of a form, to check that its effects were looked at."""
    return urlencode(sorted(given.items()))


def preview_part(board: Board, body: bytes | None) -> Html:
    """The moves in the body of a preview, as tables. None: there are too many."""
    if body is None:
        return element(
            "p",
            f"More than {number_text(PREVIEW_AT_ONCE_MAX)} lines would have to be compared, which is too long for this "
            "page. The command line and the interface show all moves.",
            class_="warning",
        )
    tables = [_compared(board, ranking) for ranking in _PREVIEW.decode(body).rankings]
    return joined(tables) if tables else element("p", "Nobody would move: it gave no points that still count.")


def mentions_part(mentions: Mentions) -> Html:
    """The texts that contain a competitor's name, which stays in them."""
    if not mentions.listed:
        return element("p", "No reason, result, location, description, name of a ranking or key has its name in it.")
    rows: list[list[Child]] = [[number_text(one.sequence), one.field, name_text(one.text)] for one in mentions.listed]
    heads = [("Event", "value"), ("Field", "name"), ("Text", "name")]
    left_out = mentions.left_out
    return element(
        "section",
        element("h2", "Its name stays in these texts"),
        data_table("Texts with its name", heads, rows),
        element("p", f"{number_text(left_out)} more have it, too.") if left_out else None,
        class_="preview",
    )


def _compared(board: Board, ranking: ComparedRankingShape) -> Html:
    parts: list[Html] = []
    if ranking.classification is not UNSET:
        moved = [move for move in ranking.classification if move.position_before != move.position_after]
        parts.append(_moves(f"{isolated(ranking.name)}: table", [_classified(move) for move in moved], ["Place"]))
    for unity in ranking.unities:
        notation = board.rankings[RankingId(ranking.id)].unities[UnityId(unity.id)].notation
        changed_first = sorted(unity.moves, key=lambda move: move.total_before == move.total_after)
        changed = [_move(move, notation) for move in changed_first if _differs(move)]
        parts.append(_moves(f"{isolated(ranking.name)}: {isolated(unity.name)}", changed, ["Place", "Total"]))
    return element("section", *parts, class_="preview")


def _moves(caption: str, rows: Items[list[Child]], columns: Items[str]) -> Html:
    heading = element("h2", caption)
    if not rows:
        return joined((heading, element("p", "Nobody would move.")))
    heads = [("Competitor", "name"), *[(text, "value") for text in columns]]
    rest = len(rows) - MOVES_SHOWN
    more = element("p", f"{number_text(rest)} more would move.") if rest > 0 else None
    return joined((heading, data_table(f"Moves in {caption}", heads, rows[:MOVES_SHOWN]), more))


def _differs(move: StandingMoveShape) -> bool:
    return (move.position_before, move.total_before) != (move.position_after, move.total_after)


def _move(move: StandingMoveShape, notation: Notation) -> list[Child]:
    return [
        name_text(move.name),
        _from_to(move.position_before, move.position_after),
        _from_to(move.total_before, move.total_after, notation),
    ]


def _classified(move: ClassificationMoveShape) -> list[Child]:
    return [name_text(move.name), _from_to(move.position_before, move.position_after)]


def _from_to(before: int | None, after: int | None, notation: Notation = WHOLE) -> str:
    if before == after:
        return _text(before, notation)
    return f"{_text(before, notation)} → {_text(after, notation)}"


def _text(number: int | None, notation: Notation) -> str:
    return "none" if number is None else number_text(number, notation)
