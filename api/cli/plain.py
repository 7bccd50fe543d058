"""Plain text on standard output, for which nothing large is imported."""

import os
import sys


def write(text: str) -> None:
    """Writes to standard output. Exits with 1 and without a message if its reader is gone, as rich does for tables."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
