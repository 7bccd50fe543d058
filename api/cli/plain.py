"""Plain text on the standard streams, for which nothing large is imported."""

import os
import sys
from typing import Final, TextIO

_PLAIN_COLUMNS: Final = 80


def write(text: str, stream: TextIO | None = None) -> None:
    """Writes to a stream: by default, standard output. Exits with 1 if that fails: without a message if its reader is
    gone, else with the reason."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            write(f"Standard output cannot be written: {error.strerror}.\n", sys.stderr)
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
