"""How the numbers of a unity are written for people: as decimals or as times.

Pure. Points are whole numbers of a smallest unit everywhere: in events, in tables, and in the interface. A notation
defines how pages and texts show them, and how people type them: 125 is `12.5` with one decimal, and `2:05` as a time in
seconds. `api/web/static/words.js` does the same in a browser.
"""

import re
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from engine.domain.marks import mark_of, result_of
from engine.domain.terms import RESULT_MAX, Sort

DECIMALS_MAX: Final = 6

NONE: Final = "\N{EN DASH}"
"""The text for a missing total."""

INFINITE: Final = RESULT_MAX
"""The shown value of a quotient by 0."""

TimeUnit = Literal["s", "ms"]
"""The smallest unit of a time: seconds or milliseconds."""

DIGITS_READ_MAX: Final = 20
"""The maximum number of digits that are read: more than any total has."""


class Notation(Struct, frozen=True, omit_defaults=True, gc=False):
    """`decimals`: the number of digits after the point. `time`: numbers are written as hours, minutes and seconds
    instead. `results`: totals are results of this sort, stored as marks (`marks.py`); None: they are sums. `quotient`:
    INFINITE is infinite."""

    decimals: int = 0
    time: TimeUnit | None = None
    results: Sort | None = None
    quotient: bool = False

    def shown(self, total: int) -> int | None:
        """The total to show for a stored one; None: there is none, because no result counts."""
        return total if self.results is None else result_of(total, self.results)

    @property
    def of_points(self) -> "Notation":
        """The notation of points rather than totals."""
        return replace(self, results=None)

    def change(self, before: int, after: int) -> int:
        """The difference of two stored totals; a missing one is like 0."""
        return (self.shown(after) or 0) - (self.shown(before) or 0)

    def kept(self, total: int | None) -> int:
        """The stored form of a shown total."""
        return (total or 0) if self.results is None else mark_of(total, self.results)

    def text(self, number: int | None) -> str:
        """The number as people write it: `12.5`, `-0.50`, `2:03:17`, `2:03:17.4`, `0:09.58`. None, a missing total, is
        a dash."""
        if number is None:
            return NONE
        sign, size = "-" if number < 0 else "", abs(number)
        if self.quotient and size == INFINITE:
            return f"{sign}\N{INFINITY}"
        if self.time is not None:
            return sign + _time_text(*divmod(size, _PER_SECOND[self.time]))
        if self.decimals == 0:
            return f"{sign}{size}"
        whole, rest = divmod(size, 10**self.decimals)
        return f"{sign}{whole}.{rest:0{self.decimals}d}"

    def number(self, text: str) -> int:
        """The number that a person wrote, perhaps with a comma, such as `12,5`, or a half, such as `12½`. Raises
        ValueError with what the text must be."""
        if self.time is None and self.decimals == 0 and _DIGITS.fullmatch(text):
            return int(text)  # most are
        sign, size = ("-", text[1:]) if text[:1] in _MINUS else ("", text.removeprefix("+"))
        found = self._size(with_point(size))
        if found is None:
            raise ValueError(self.fault)
        return -found if sign else found

    @property
    def fault(self) -> str:
        """The message for a text that is not a number in this notation."""
        if self.time is not None:
            return f"must be a time, such as 2:03:17{'.4' if self.time == 'ms' else ''}, 3:05 or 45"
        if self.decimals == 0:
            return "must be a whole number, in digits only"
        return f"must be a number with at most {self.decimals} decimal{'s' * (self.decimals > 1)}, such as 12.5"

    def _size(self, text: str) -> int | None:
        """The number that a text without a sign represents; None: it is not a number."""
        digits = 0 if self.time == "s" else 3 if self.time == "ms" else self.decimals
        whole, point, rest = text.partition(".")
        first, *parts = [whole] if self.time is None else whole.split(":")
        if not _DIGITS.fullmatch(first) or len(parts) > 2 or not all(_SIXTIETHS.fullmatch(part) for part in parts):
            return None
        if point and not (_DIGITS.fullmatch(rest) and len(rest) <= digits):
            return None
        size, smallest = int(first), int(10**digits)
        for part in parts:
            size = 60 * size + int(part)
        return size * smallest + int(rest.ljust(digits, "0") or 0)


WHOLE: Final = Notation()
"""The notation of a unity that declares none."""

_PER_SECOND: Final[dict[TimeUnit, int]] = {"s": 1, "ms": 1000}
_MINUS: Final = ("-", "\N{MINUS SIGN}")  # pages show the second one, so it is pasted
_DIGITS: Final = re.compile(f"[0-9]{{1,{DIGITS_READ_MAX}}}")
_SIXTIETHS: Final = re.compile("[0-5][0-9]")


def with_point(text: str) -> str:
    """A number without a sign, with a point for its comma or its half."""
    if text == "1/2":
        return "0.5"
    if text.endswith("½"):
        return f"{text[:-1] or 0}.5"
    return text.replace(",", ".")


def _time_text(seconds: int, milliseconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    rest = f".{milliseconds:03d}".rstrip("0") if milliseconds else ""
    return f"{f'{hours}:{minutes:02d}' if hours else minutes}:{seconds:02d}{rest}"
