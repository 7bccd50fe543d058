"""Files that commands import."""

import os
import signal
import sys
from pathlib import Path
from typing import Final

from engine.domain.errors import Unreadable

STDIN: Final = Path("-")
_PIECE_BYTES: Final = 65_536


def read_whole(path: Path) -> bytes:
    """The content of the file, or of standard input for `-`. Raises Unreadable."""
    try:
        return _standard_input() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error


def read_bytes(path: Path, most: int) -> bytes:
    """The first bytes of the file, at `most` this many. Raises Unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error


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
