"""The zones of a table: what places lead to, such as promotion or relegation.

Pure. They are declared as text, one a line: `1..4 promotion: Champions League`. Places from the bottom are negative:
`-3..-1 relegation: Relegation` is about the last three.
"""

import re
from collections.abc import Sequence as Items
from typing import Final, Literal, get_args

from msgspec import Struct

ZoneKind = Literal["promotion", "play-off", "relegation", "neutral"]

ZONES_MAX: Final = 10
"""Zones of a table."""
ZONE_CHARACTERS_MAX: Final = 80
"""Characters that say what a zone is."""

_KINDS: Final[dict[str, ZoneKind]] = {kind: kind for kind in get_args(ZoneKind)}
_PLACE: Final = "-?[1-9][0-9]{0,6}"
_LINE: Final = rf"({_PLACE})(?:\.\.({_PLACE}))? ({'|'.join(_KINDS)}): (\S(?:[^\n;]{{0,{ZONE_CHARACTERS_MAX - 2}}}\S)?)"
_ZONE: Final = re.compile(_LINE)
_WRITTEN: Final = re.compile(
    rf"({_PLACE})\s*(?:(?:\.\.|[-\u2013])\s*({_PLACE}))?\s+({'|'.join(_KINDS)})\s*:?\s+(\S.*)",
    re.IGNORECASE | re.ASCII,
)


class TableZone(Struct, frozen=True):
    """The places from `first` to `last`, from 1; or from the bottom: -1 is the last one. `text`: what they lead to."""

    first: int
    last: int
    kind: ZoneKind
    text: str

    def places(self, count: int) -> range:
        """Those of a table with this number of lines."""
        first, last = [one if one > 0 else count + 1 + one for one in (self.first, self.last)]
        return range(max(first, 1), min(last, count) + 1)


def zones_of(declared: str | None) -> list[TableZone]:
    """The zones of what `declared_zones` made."""
    found = [] if declared is None else [match.groups() for match in _ZONE.finditer(declared)]
    return [TableZone(int(first), int(last or first), _KINDS[kind], text) for first, last, kind, text in found]


def zone_at(zones: Items[TableZone], place: int, count: int) -> int | None:
    """The number of the first zone that has this place of a table with `count` lines."""
    return next((number for number, zone in enumerate(zones) if place in zone.places(count)), None)


def declared_zones(written: str) -> str:
    """The zones as they are declared, of what a person wrote, in lines or separated by semicolons. Raises ValueError
    with what is wrong."""
    lines = [line for line in re.split(r"[\r\n;]", written) if line.strip()]
    if len(lines) > ZONES_MAX:
        raise ValueError(f"must be at most {ZONES_MAX} zones")
    return "\n".join(map(_declared, lines))


def _declared(line: str) -> str:
    match = _WRITTEN.fullmatch(line.strip())
    if match is None:
        like = "1..4 promotion: Champions League, or -3..-1 relegation: Down"
        raise ValueError(f"must be lines like {like}; of the kinds {', '.join(_KINDS)}")
    first, last, kind, text = match.groups()
    if last is not None and ((int(first) > 0) != (int(last) > 0) or int(first) > int(last)):
        fault = "must go from the better place to the worse one, both counted from the same end"
        raise ValueError(f"{fault}, unlike {first}..{last}")
    text = text.lstrip()  # of every space, like names; the pattern knows only those of ASCII
    if len(text) > ZONE_CHARACTERS_MAX:
        raise ValueError(f"must say what a zone is in at most {ZONE_CHARACTERS_MAX} characters")
    places = first if last in (None, first) else f"{first}..{last}"
    return f"{places} {kind.lower()}: {text}"
