"""Plain text on the standard streams, for which nothing large is imported."""

import os
import sys
from typing import Final, TextIO

_PLAIN_COLUMNS: Final = 80


def write(text: str, stream: TextIO | None = None) -> None:
    """Writes to a stream: by default, standard output. Exits with 1 and without a message if its reader is gone."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        sys.exit(1)


def terminal_columns() -> int:
    """The width of the terminal."""
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit():
        return int(given)
    for stream in sys.__stdin__, sys.__stdout__, sys.__stderr__:
        if stream is not None and stream.isatty():
            return os.get_terminal_size(stream.fileno()).columns or _PLAIN_COLUMNS
    return _PLAIN_COLUMNS
