"""The pages for registering competitors from CSV: the text, its effects, and the form that registers them. Pure."""

from collections.abc import Collection, Mapping
from collections.abc import Sequence as Items
from itertools import islice
from typing import Final

from msgspec import Struct, json

from api.interface.cells import csv_rows
from api.interface.fields import ITEMS
from api.web.console.frame import Venue, Viewer, console_page, data_table
from api.web.console.inputs import Filling, complaint, form
from api.web.html import Child, Html, element, joined
from api.web.page import number_text
from engine.domain.commands import RegisterCompetitor, RegisterCompetitors
from engine.domain.errors import Fault, Unacceptable, Unreadable
from engine.domain.judging import decide
from engine.domain.steps import Steps
from engine.domain.terms import ITEMS_MAX, CompetitorId
from projections.board.board import Board

CSV: Final = "csv"
"""The field that has the text."""
STEP: Final = "step"
"""The hidden field that is set once the effects were seen."""
ROWS_SHOWN: Final = 200
"""Lines whose effects are shown."""
_COLUMNS: Final = ("name", "tags", "color", "parent")


class ImportedLine(Struct, frozen=True):
    """A competitor in the text: the number of the line, and its content, as the operation takes it."""

    number: int
    item: Mapping[str, object]


class ImportedText(Struct, frozen=True):
    """The lines of a text, and the names among them that competitors have already."""

    lines: list[ImportedLine]
    known: Collection[str]


def read(board: Board, text: str) -> Steps[ImportedText]:
    """Reads the text, and checks its lines. Raises Unreadable, and Unacceptable with every fault by its line."""
    rows = csv_rows(text.removeprefix("\ufeff"))
    _, first = next(rows, (1, []))
    columns = [column.strip() for column in first]
    if columns[:1] != ["name"] or len(set(columns)) < len(columns) or {*columns} - {*_COLUMNS}:
        raise Unreadable("The first line must name the columns: name, then any of tags, color, parent.")
    numbered = list(islice(rows, ITEMS_MAX + 1))
    if not 0 < len(numbered) <= ITEMS_MAX:
        raise Unreadable(f"The text must have from 1 to {number_text(ITEMS_MAX)} lines after the first.")
    wanted = {field.strip() for _, row in numbered for field in row}
    ids: dict[str, list[CompetitorId]] = {}
    for one, found in board.competitors.run(1, len(board.competitors)):
        if found.name in wanted:
            ids.setdefault(found.name, []).append(one)
        yield
    lines, faults = [], []
    for number, row in numbered:
        if len(row) != len(columns):
            faults.append(Fault(f"line {number}", "has more or fewer fields than the first line has columns"))
            continue
        said = dict(zip(columns, [text.strip() for text in row], strict=True))
        item: dict[str, object] = {name: text for name, text in said.items() if text}
        if "tags" in item:
            item["tags"] = [tag.strip() for tag in said["tags"].split("|") if tag.strip()]
        if "parent" in item and said["parent"] in ids:
            if len(ids[said["parent"]]) > 1:
                faults.append(Fault(f"line {number}, parent", f"several competitors are called {said['parent']!r}"))
            item["parent"] = ids[said["parent"]][0]
        elif "parent" in item:
            faults.append(Fault(f"line {number}, parent", f"there is no competitor {said['parent']!r} yet"))
        lines.append(ImportedLine(number, item))
    if not faults:
        faults = _judged(board, lines)
    if faults:
        raise Unacceptable("Nothing was registered; correct these lines.", faults)
    return ImportedText(lines, ids.keys())


def _judged(board: Board, lines: Items[ImportedLine]) -> list[Fault]:
    """The faults that the operation would find. No competitor has an id below 0."""
    items = [
        RegisterCompetitor(
            competitor_id=CompetitorId(-line.number),
            name=str(line.item.get("name", "")),
            tags=tuple(line.item.get("tags", ())),  # type: ignore[arg-type] # a list of texts
            color=line.item.get("color"),  # type: ignore[arg-type] # a text
        )
        for line in lines
    ]
    try:
        decide(board, RegisterCompetitors(items=tuple(items)))
    except Unacceptable as refusal:
        return [_by_line(fault, lines) for fault in refusal.faults] or [Fault("lines", refusal.message)]
    return []


def _by_line(fault: Fault, lines: Items[ImportedLine]) -> Fault:
    place, _, field = fault.field.partition("].")
    number = place.removeprefix(f"{ITEMS}[")
    if not (number.isascii() and number.isdigit()):
        return fault
    return Fault(f"line {lines[int(number)].number}, {field}", fault.message)


def items_form(lines: Items[ImportedLine]) -> dict[str, str]:
    """The form that the operation takes."""
    return {ITEMS: json.encode([line.item for line in lines]).decode()}


def import_page(viewer: Viewer, venue: Venue, filling: Filling) -> bytes:
    """The form for the text."""
    return console_page(
        viewer,
        "Import competitors",
        complaint(filling, []),
        form(
            filling,
            venue.address("/competitors/import"),
            "Look at them first",
            csv_input(
                filling,
                "Competitors, as CSV",
                "The first line is name, or name,tags,color,parent. Tags are separated by |; a parent is the name of a "
                f"competitor. Up to {number_text(ITEMS_MAX)} lines.",
            ),
        ),
        element("p", element("a", "Leave it", href=venue.address("/competitors")), class_="ways"),
        venue=venue,
    )


def csv_input(filling: Filling, label: str, about: str) -> Html:
    """The field for the text, or for a file."""
    text = element(
        "textarea",
        filling.given.get(CSV, ""),
        name=CSV,
        id="field-csv",
        rows=12,
        required=True,
        spellcheck="false",
        aria_describedby="about-csv",
    )
    return element(
        "div",
        element("label", label, for_="field-csv"),
        text,
        element("p", about, class_="about", id="about-csv"),
        class_="field",
        data_file=CSV,
    )


def look_page(viewer: Viewer, venue: Venue, board: Board, imported: ImportedText, filling: Filling) -> bytes:
    """The effects of the text, and the button that registers it."""
    lines = imported.lines
    rows: list[list[Child]] = [_row(board, line) for line in lines[:ROWS_SHOWN]]
    rest = len(lines) - len(rows)
    twice = [str(line.item["name"]) for line in lines if line.item["name"] in imported.known]
    named = ", ".join(twice[:3]) + (" …" if len(twice) > 3 else "")
    count, heads = number_text(len(lines)), [("Competitor", "name"), ("Tags", ""), ("Color", ""), ("Parent", "")]
    return console_page(
        viewer,
        "Import competitors",
        element("p", f"{count} would be registered. Nothing is recorded yet.", class_="subject"),
        element("p", f"There is a competitor of this name already: {named}.", class_="warning") if twice else None,
        complaint(filling, []),
        data_table("Competitors to register", heads, rows),
        element("p", f"{number_text(rest)} more are not shown here.") if rest else None,
        form(
            filling,
            venue.address("/competitors/import"),
            f"Register {count}",
            joined(
                (
                    hidden(CSV, filling.given.get(CSV, "")),
                    hidden(STEP, "register"),
                )
            ),
        ),
        element("p", element("a", "Start again", href=venue.address("/competitors/import")), class_="ways"),
        venue=venue,
    )


def _row(board: Board, line: ImportedLine) -> list[Child]:
    item = line.item
    parent = item.get("parent")
    return [
        str(item["name"]),
        ", ".join(item.get("tags", ())),  # type: ignore[arg-type] # a list of texts
        str(item.get("color", "")),
        board.competitors[CompetitorId(parent)].name if isinstance(parent, int) else "",
    ]


def hidden(name: str, value: str) -> Html:
    """A hidden field, which passes a value on."""
    return element("input", type="hidden", name=name, value=value)
