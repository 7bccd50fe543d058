"""Cells of spreadsheets, as the readers of sheets need them. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

COLUMNS_MAX: Final = 100
"""Columns of a spreadsheet that is brought."""
SHEETS_MAX: Final = 50


class Cell(Struct, frozen=True, gc=False):
    """A cell. `text`: empty if it is a `date`, or a time of day or duration, in `milliseconds`. `day_first`: whether
    the cell shows the day of the date before the month."""

    text: str = ""
    date: datetime | None = None
    milliseconds: int | None = None
    day_first: bool = True


EMPTY: Final = Cell()


class Sheet(Struct, frozen=True):
    """A sheet, with its rows, which are numbered. Taking rows raises Unreadable at what is damaged."""

    name: str
    rows: Iterable[tuple[int, list[Cell]]]


def number_text(number: float) -> str:
    """A number as people write it: without the digits that binary numbers add."""
    return f"{number:.15g}"
