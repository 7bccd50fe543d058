"""How a tournament presents itself: the valid values of zone, language, accent colour and logo. Pure.

Which zones exist depends on the time zone data of the machine, so `projections/answers/zones.py` checks that when a
request is read.
"""

import binascii
import re
from base64 import b64decode
from datetime import UTC, datetime, tzinfo
from typing import Final

from engine.domain.terms import COLOR_PATTERN

LANGUAGES: Final = ("en", "de", "fr", "es")
"""The languages of boards."""
LOGO_BYTES_MAX: Final = 12_288
"""Bytes of a logo. In base64 it must fit into a message to a webhook."""
LOGO_PIXELS_MAX: Final = 1_024
"""Width and height of a logo."""
ZONE_DEFAULT: Final = "UTC"

ZONE_PATTERN: Final = "[A-Za-z][A-Za-z0-9_+-]{0,31}(?:/[A-Za-z0-9_+-]{1,32}){0,3}"
_ZONE: Final = re.compile(ZONE_PATTERN)
_COLOR: Final = re.compile(COLOR_PATTERN)
_PNG: Final = re.compile(rb"\x89PNG\r\n\x1a\n\0\0\0\rIHDR(.{4})(.{4})", re.DOTALL)
_PNG_END: Final = b"\0\0\0\0IEND\xaeB`\x82"


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
    """What is wrong with `logo`, in base64, as a PNG of a small size, or None. Browsers decode its pixels."""
    try:
        data = b64decode(logo, validate=True)
    except (binascii.Error, ValueError):
        return "must be a PNG in base64"
    if len(data) > LOGO_BYTES_MAX:
        return f"must have at most {LOGO_BYTES_MAX:,} bytes"
    head = _PNG.match(data)
    if head is None or not data.endswith(_PNG_END):
        return "must be a complete PNG with nothing after it"
    width, height = int.from_bytes(head[1]), int.from_bytes(head[2])
    if not 1 <= width <= LOGO_PIXELS_MAX or not 1 <= height <= LOGO_PIXELS_MAX:
        return f"must be 1 to {LOGO_PIXELS_MAX:,} pixels wide and high; it has {width} by {height}"
    return None
