"""How names are compared. Pure.

A letter with an accent has several spellings in Unicode, which look alike: `é` is U+00E9, or `e` and U+0301. Names are
kept as they were given, and compared by keys.
"""

from typing import Final
from unicodedata import combining, normalize

_ACCENTS_FROM: Final = 200
"""Marks of these combining classes are accents. Lower classes are those of marks that make another letter, such as the
voiced kana."""
_STROKES: Final = str.maketrans("đħıłøŧ", "dhilot")
"""Letters of which Unicode does not say that they have an accent."""


def name_key(name: str) -> str:
    """What all spellings of a name have in common. Upper and lower case differ; white space around it is ignored."""
    return normalize("NFC", name.strip())


def caseless_key(text: str) -> str:
    """As `name_key`, in any case."""
    return normalize("NFC", normalize("NFD", text).casefold())


def search_key(text: str) -> str:
    """`text` without accents, in any case: `Łódź` and `LODZ` have the same."""
    text = text.casefold()
    if text.isascii():
        return text
    letters = [letter for letter in normalize("NFD", text) if combining(letter) < _ACCENTS_FROM]
    return normalize("NFC", "".join(letters)).translate(_STROKES)
