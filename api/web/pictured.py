"""What a picture of a table shows, and its size."""

from typing import Final

from msgspec import Struct

from engine.domain.table_zones import ZoneKind

WIDTH: Final = 1200
HEIGHT: Final = 630
"""Of a picture, in pixels."""
PICTURE_LINES: Final = 7
"""Lines of a table that its picture shows."""


class PictureLine(Struct, frozen=True):
    """A line. `value`: the text at its end. `zone`: the kind of its zone; None: it is in none."""

    place: str
    competitor_id: int
    name: str
    color: str
    value: str
    zone: ZoneKind | None = None


class Pictured(Struct, frozen=True):
    """What a picture shows: the first lines, with their values in this `column`, as of a `moment`. `more`: how many
    others there are, in words; empty: none. `zones`: those of the lines, with what is said of them. `nobody`
    stands instead of lines if there are none, and `numbered`, with the id in place of {number}, instead of a name that
    cannot be drawn."""

    tournament: str
    ranking: str
    column: str
    moment: str
    lines: tuple[PictureLine, ...]
    more: str
    nobody: str
    numbered: str
    zones: tuple[tuple[ZoneKind, str], ...] = ()
