"""Names in text of one line, in whichever direction they are written. Pure."""

import unicodedata
from typing import Final

ISOLATE: Final = "\u2068"
END_OF_ISOLATE: Final = "\u2069"
_FROM_THE_RIGHT: Final = frozenset(("R", "AL", "AN"))


def isolated(text: str) -> str:
    """The text; if any of it is written from right to left, between the two characters that keep it from reordering
    the numbers and names next to it (Unicode Standard Annex 9, section 2.4.2)."""
    if text.isascii() or _FROM_THE_RIGHT.isdisjoint(map(unicodedata.bidirectional, text)):
        return text
    return f"{ISOLATE}{text}{END_OF_ISOLATE}"
