"""Sheets of OpenDocument files (ODS), read with the standard library. Pure.

Only `content.xml` is read, never through a converter: those write half an hour as 12:30:00 AM.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from api.imports.readers.archives import member
from api.imports.readers.brought import whole
from api.imports.readers.cells import COLUMNS_MAX, EMPTY, Cell, Sheet, number_text
from api.imports.readers.elements import Element, elements
from engine.domain.errors import Fault, Unreadable

_DURATION: Final = re.compile(
    r"(-?)P(?:([0-9]{1,6})D)?T(?:([0-9]{1,7})H)?(?:([0-9]{1,7})M)?(?:([0-9]{1,9})(?:[.,]([0-9]+))?S)?"
)
_CELLS: Final = ("table-cell", "covered-table-cell")


def sheets(content: bytes) -> Iterator[Sheet]:
    """Raises Unreadable."""
    xml = member(content, lambda name: name == "content.xml")
    *_, styles = elements(xml, skipped=frozenset(("body",)))
    month_first = _month_first(styles)
    rows: list[tuple[int, list[Cell]]] = []
    number = 0
    for element in elements(xml, ("table-row", "table"), frozenset(("automatic-styles", "annotation"))):
        if element.name == "table":
            yield Sheet(element.attributes.get("name", ""), rows)
            rows, number = [], 0
        elif element.name == "table-row":
            cells = _cells(element, month_first)
            times = _count(element, "number-rows-repeated")
            rows += [(number + n, cells) for n in range(1, min(times, 1_000) + 1)] if cells else []
            number += times


def _month_first(root: Element) -> set[str]:
    """The styles of cells that show the month before the day."""
    formats: dict[str, bool] = {}
    for style in root.each("automatic-styles", "date-style"):
        order = [part.name for part in style.children if part.name in ("day", "month")]
        formats[style.attributes.get("name", "")] = order[:1] == ["month"]
    styles = root.each("automatic-styles", "style")
    return {one.attributes.get("name", "") for one in styles if formats.get(one.attributes.get("data-style-name", ""))}


def _cells(row: Element, month_first: set[str]) -> list[Cell]:
    cells: list[Cell] = []
    for element in row.children:
        if element.name in _CELLS and len(cells) < COLUMNS_MAX:
            times = min(_count(element, "number-columns-repeated"), COLUMNS_MAX - len(cells))
            cells += [_cell(element, month_first)] * times
    while cells and cells[-1] == EMPTY:
        cells.pop()
    return cells


def _count(element: Element, name: str) -> int:
    number = whole(element.attributes.get(name, "1"))
    return 1 if number is None else number


def _cell(element: Element, month_first: set[str]) -> Cell:
    own = element.attributes
    try:
        match own.get("value-type"):
            case "date":
                moment = datetime.fromisoformat(own.get("date-value", "")[:26])
                return Cell(date=moment.replace(tzinfo=None), day_first=own.get("style-name") not in month_first)
            case "time":
                return Cell(milliseconds=_milliseconds(own.get("time-value", "")))
            case "float" | "percentage" | "currency":
                return Cell(number_text(float(own.get("value", ""))))
    except ValueError:
        raise Unreadable("The file is damaged.", [Fault(element.where, "its value is not of its type")]) from None
    return Cell("\n".join(map(_text, element.each("p"))).strip())


def _text(paragraph: Element) -> str:
    """Its own text, or that of the parts that have a style."""
    return paragraph.text or "".join(map(_text, paragraph.children))


def _milliseconds(duration: str) -> int:
    """Raises ValueError."""
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise ValueError(duration)
    days, hours, minutes, seconds = (int(found[n] or 0) for n in range(2, 6))
    size = ((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000 + round(float(f"0.{found[6] or 0}") * 1000)
    return -size if found[1] else size
