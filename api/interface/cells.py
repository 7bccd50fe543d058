"""Rows as CSV, with names that no spreadsheet takes for formulas; and CSV as rows. Pure.

Spreadsheets write CSV with commas, or with semicolons where a comma stands in numbers, with or without a byte order
mark or a first line `sep=;`, with any line ends, and with lines of empty fields. All are taken.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from engine.domain.errors import Unreadable

_SEPARATOR: Final = re.compile(r'"?sep=([;,])"?[;,]*(?=[\r\n]|\Z)', re.IGNORECASE | re.ASCII)
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - full width


def harmless(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula: an apostrophe is put before what begins like one.

    Source: OWASP, CSV Injection. Leading blanks are ignored, because some programs trim them.
    """
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_FORMULA_STARTS) else text


class CsvForm(Struct, frozen=True):
    """How CSV is written: what it `begins` with, its `delimiter`, and the `point` of its numbers."""

    begins: str = ""
    delimiter: str = ","
    point: str = "."

    def number(self, text: str) -> str:
        return text.replace(".", self.point)


PLAIN: Final = CsvForm()
EXCEL: Final = CsvForm("\ufeff", ";", ",")
"""What Excel opens as it is where a comma is the decimal sign."""


def csv_text(rows: Iterable[Iterable[object]], form: CsvForm = PLAIN) -> str:
    """The rows, with the line ends of RFC 4180."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n", delimiter=form.delimiter).writerows(rows)
    return text.getvalue()


def csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that hold something, each with the number of its last line; the first line tells the delimiter. Raises
    Unreadable."""
    first, _, _ = text.partition("\n")
    said = _SEPARATOR.match(text)
    delimiter = said[1] if said else ";" if first.count(";") > first.count(",") else ","
    # The csv module gets lines as they are in the file. A quoted field may hold line ends, and str.splitlines would
    # also break at characters that end no line.
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    try:
        for row in rows:
            if any(map(str.strip, row)) and not (said and rows.line_num == 1):
                yield rows.line_num, row
    except csv.Error as error:
        raise Unreadable(f"The file is not CSV: {error} (line {rows.line_num}).") from error
