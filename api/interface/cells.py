"""Rows as CSV, with names that no spreadsheet takes for formulas. Pure."""

import csv
import io
from collections.abc import Iterable
from typing import Final

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 - full width


def harmless(text: str) -> str:
    """`text` as a cell that no spreadsheet takes for a formula: an apostrophe is put before what begins like one.

    Source: OWASP, CSV Injection. Leading blanks are ignored, because some programs trim them.
    """
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_FORMULA_STARTS) else text


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows, with the line ends of RFC 4180."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue()
