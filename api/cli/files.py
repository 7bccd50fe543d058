"""Files that commands import: their text, and the rows of those that are CSV.

Spreadsheets write CSV with commas, or with semicolons where a comma stands in numbers, with or without a byte order
mark, and with any line ends. All are taken.
"""

import csv
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.domain.errors import Unreadable

STDIN: Final = Path("-")
_PIECE_BYTES: Final = 65_536


def read_text(path: Path) -> str:
    """The text of the file, or of standard input for `-`. Raises Unreadable."""
    try:
        content = _standard_input() if path == STDIN else path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"The file is not UTF-8 (at byte {error.start}); save it as UTF-8.") from error


def _standard_input() -> bytes:
    """The whole text. Meanwhile Ctrl-C ends the command, even where it is usually handled otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        pieces = []
        while piece := os.read(sys.stdin.fileno(), _PIECE_BYTES):  # one `read` of all would look at no signal meanwhile
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        signal.signal(signal.SIGINT, before)


def csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that hold something, each with the number of its last line; the first row tells the delimiter. Raises
    Unreadable."""
    first, _, _ = text.partition("\n")
    delimiter = ";" if first.count(";") > first.count(",") else ","
    # The csv module gets lines as they are in the file. A quoted field may hold line ends, and str.splitlines would
    # also break at characters that end no line.
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    try:
        for row in rows:
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise Unreadable(f"The file is not CSV: {error} (line {rows.line_num}).") from error
