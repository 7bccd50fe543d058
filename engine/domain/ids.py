"""Ids as texts. Pure."""

from typing import Final

from engine.domain.terms import ID_MAX

_ID_DIGITS_MAX: Final = len(str(ID_MAX))


def _pattern_up_to(most: int) -> str:
    """Of the whole numbers from 1 to `most` in digits; its first one is not 1."""
    digits = str(most)
    smaller = [
        f"{digits[:place]}[{0 if place else 1}-{int(digit) - 1}][0-9]{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if digit != "0"
    ]
    return f"(?:[1-9][0-9]{{0,{len(digits) - 2}}}|{'|'.join(smaller)}|{digits})"


ID_PATTERN: Final = _pattern_up_to(ID_MAX)
"""Of an id in a text."""


def parse_id(text: str) -> int | None:
    """`text` as an id, or None. An id has one spelling: ASCII digits without a leading zero."""
    if not 0 < len(text) <= _ID_DIGITS_MAX or not text.isascii() or not text.isdigit() or text[0] == "0":
        return None
    number = int(text)
    return number if number <= ID_MAX else None
