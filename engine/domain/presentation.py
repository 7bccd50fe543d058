"""How a tournament presents itself: the valid values of zone, language, accent colour and logo. Pure.

Which zones exist depends on the time zone data of the machine, so `projections/answers/zones.py` checks that when a
request is read.
"""

import binascii
import re
from base64 import b64decode
from datetime import UTC, datetime, tzinfo
from typing import Final

from engine.domain.png import png_of
from engine.domain.terms import COLOR_PATTERN

LANGUAGES: Final = ("en", "de", "fr", "es")
"""The languages of boards."""
LOGO_BYTES_MAX: Final = 12_288
"""Bytes of a logo. In base64 it must fit into a message to a webhook."""
LOGO_PIXELS_MAX: Final = 1_024
"""Width and height of a logo."""
LOGO_DEPTH_MAX: Final = 8
"""Bits of each colour of a logo. Judging inflates its pixels, which takes at most some 10 ms with this limit."""
ZONE_DEFAULT: Final = "UTC"

ZONE_PATTERN: Final = "[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,32}){0,3}"
_ZONE: Final = re.compile(ZONE_PATTERN)
_COLOR: Final = re.compile(COLOR_PATTERN)


def zone_fault(zone: str) -> str | None:
    """What is wrong with the form of `zone` as the name of a time zone, or None. The zone need not exist."""
    return None if _ZONE.fullmatch(zone) else "must be the name of a time zone, such as Europe/Berlin"


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """The moment as clocks in `zone` show it. In the first and last hours of the calendar, whose year there may be 0 or
    10000, it is in UTC, on the first or last day of the calendar."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.astimezone(UTC)


def language_fault(language: str) -> str | None:
    """What is wrong with `language` as the language of a board, or None."""
    return None if language in LANGUAGES else f"must be one of {', '.join(LANGUAGES)}"


def accent_fault(accent: str) -> str | None:
    """What is wrong with `accent` as a colour, or None."""
    return None if _COLOR.fullmatch(accent) else "must be 6 hexadecimal characters, without a leading #"


def logo_fault(logo: str) -> str | None:
    """What is wrong with `logo`, in base64, as a picture for every browser, or None."""
    try:
        data = b64decode(logo, validate=True)
    except (binascii.Error, ValueError):
        return "must be a PNG in base64"
    if len(data) > LOGO_BYTES_MAX:
        return f"must have at most {LOGO_BYTES_MAX:,} bytes"
    png = png_of(data)
    if png is None:
        return "must be a whole PNG, with nothing after it"
    if not 1 <= png.width <= LOGO_PIXELS_MAX or not 1 <= png.height <= LOGO_PIXELS_MAX:
        return f"must be 1 to {LOGO_PIXELS_MAX:,} pixels wide and high; it has {png.width} by {png.height}"
    if png.depth > LOGO_DEPTH_MAX:
        return f"must have at most {LOGO_DEPTH_MAX} bits a colour"
    if not png.has_its_pixels:
        return f"must be a PNG with the pixels that it says; its {png.width} by {png.height} cannot be read"
    return None
