"""Sheets of XLSX files, read with openpyxl, because the format of cells is needed. Pure."""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from datetime import date, datetime, time, timedelta
from importlib import import_module
from io import BytesIO, StringIO
from itertools import islice
from typing import Any, Final
from xml.etree.ElementTree import ParseError

from api.imports.readers import archives
from api.imports.readers.cells import COLUMNS_MAX, EMPTY, SHEETS_MAX, Cell, Sheet, number_text
from engine.domain.errors import Unreadable

_DAMAGE: Final = (*archives.DAMAGE, ParseError, TypeError, AttributeError, ArithmeticError, AssertionError, OSError)
"""What openpyxl raises for damaged files: it has no error of its own for them."""
_DAY_MILLISECONDS: Final = 86_400_000
_NOT_SHOWN: Final = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.|AM/PM', re.IGNORECASE)
_ROWS_MAX: Final = 1_048_576
_ROWS_MEASURED: Final = 50
_DOCTYPE: Final = b"<!DOCTYPE"
_SHARED_BYTES_MAX: Final = 32 * 2**20
"""Bytes of the parts of an XLSX file that are kept in memory: all but its sheets."""


def sheets(content: bytes) -> Iterator[Sheet]:
    """Raises Unreadable."""
    try:
        openpyxl = import_module("openpyxl")
    except ModuleNotFoundError:
        raise Unreadable(
            "Reading XLSX needs openpyxl: pip install 'tallybook[files]'. Or save the file as CSV."
        ) from None
    _check_parts(content)
    to_excel = import_module("openpyxl.utils.datetime").to_excel
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):  # it also prints what is wrong with styles
            warnings.simplefilter("ignore")
            book = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
        named = [(sheet.title, sheet) for sheet in book.worksheets[:SHEETS_MAX] if sheet.sheet_state == "visible"]
    except _DAMAGE as error:
        raise _damaged(error) from error
    for name, sheet in named:
        yield Sheet(name, _rows(sheet, lambda value: float(to_excel(value, book.epoch))))


def _check_parts(content: bytes) -> None:
    """No part may name entities, and what openpyxl keeps in memory is bounded."""
    archive = archives.checked(content)
    kept = 0
    for member in archive.infolist():
        if member.filename.endswith((".xml", ".rels")):
            try:
                with archive.open(member) as part:
                    if _DOCTYPE in part.read(4096):
                        raise Unreadable("The file declares a document type, and could name entities; it is not read.")
            except archives.DAMAGE as error:
                raise _damaged(error) from error
        kept += 0 if "worksheets/" in member.filename else member.file_size
    if kept > _SHARED_BYTES_MAX:
        raise Unreadable(f"The file has more than {_SHARED_BYTES_MAX:,} bytes besides its sheets.")


def _rows(sheet: Any, serial: Callable[[Any], float]) -> Iterator[tuple[int, list[Cell]]]:
    """Rows as wide as the widest of the first ones. The dimensions that the file says may be wrong, or enormous."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of what it leaves out
            sheet.reset_dimensions()
            first = islice(sheet.iter_rows(max_col=COLUMNS_MAX), _ROWS_MEASURED)
            width = max(
                [n for row in first for n, cell in enumerate(row, start=1) if cell.value is not None], default=0
            )
            for number, row in enumerate(sheet.iter_rows(max_col=width) if width else (), start=1):
                if number > _ROWS_MAX:
                    raise Unreadable(f"The file is damaged: it has more than {_ROWS_MAX:,} rows.")
                if any(cell.value is not None for cell in row):
                    yield number, [_cell(cell, serial) for cell in row]
    except _DAMAGE as error:
        raise _damaged(error) from error


def _cell(cell: Any, serial: Callable[[Any], float]) -> Cell:
    value = cell.value
    if value is None:
        return EMPTY
    if isinstance(value, str):
        return Cell(value.strip()) if value.strip() else EMPTY
    if isinstance(value, (time, timedelta, date)):
        days = serial(value)
        shown = _NOT_SHOWN.sub("", cell.number_format).lower()
        if isinstance(value, date) and (
            "y" in shown or "d" in shown
        ):  # openpyxl takes long durations for dates of 1900
            day, month = shown.find("d"), shown.find("m")
            moment = value if isinstance(value, datetime) else datetime.combine(value, time())
            return Cell(date=moment, day_first=-1 < day < month or month == -1)
        return Cell(milliseconds=round(days * _DAY_MILLISECONDS))
    return Cell(number_text(value) if isinstance(value, float) else str(value))


def _damaged(error: Exception) -> Unreadable:
    return Unreadable(f"The file is damaged: {type(error).__name__} in its sheets ({str(error)[:200]}).")
