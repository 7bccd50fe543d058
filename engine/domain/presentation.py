"""How a tournament presents itself: what may be its zone, its language, its accent colour and its logo. Pure.

Which zones there are depends on the data of a machine, so that is asked where a request is read (`api/http/zones.py`).
"""

import binascii
import re
import struct
import zlib
from base64 import b64decode
from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es")
"""The languages of boards."""
LOGO_BYTES_MAX: Final = 12_288
"""Bytes of a logo. In base64 it must fit into a message to a webhook."""
LOGO_PIXELS_MAX: Final = 1_024
"""Width and height of a logo."""
ZONE_DEFAULT: Final = "UTC"

_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,32}){0,3}", re.ASCII)
_COLOR: Final = re.compile(r"[0-9A-Fa-f]{6}", re.ASCII)
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_CHUNK: Final = struct.Struct(">I4s")
_SIZE: Final = struct.Struct(">II")


def zone_fault(zone: str) -> str | None:
    """What is wrong with `zone` as the name of a time zone, or None. There need be no such zone."""
    return None if _ZONE.fullmatch(zone) else "must be the name of a time zone, such as Europe/Berlin"


def language_fault(language: str) -> str | None:
    """What is wrong with `language` as that of a board, or None."""
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
        return f"must have at most {LOGO_BYTES_MAX:,} bytes; it has {len(data):,}"
    size = _size_of_png(data)
    if size is None:
        return "must be a whole PNG, with nothing after it"
    if not all(1 <= one <= LOGO_PIXELS_MAX for one in size):
        return f"must be at most {LOGO_PIXELS_MAX:,} pixels wide and high; it has {size[0]:,} by {size[1]:,}"
    return None


def _size_of_png(data: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG (ISO/IEC 15948, section 5), every chunk of which is whole; None: it is none."""
    if not data.startswith(_PNG):
        return None
    kinds, at = [], len(_PNG)
    while at + _CHUNK.size <= len(data):
        length, kind = _CHUNK.unpack_from(data, at)
        end = at + _CHUNK.size + length
        if data[end : end + 4] != zlib.crc32(data[at + 4 : end]).to_bytes(4):
            return None
        kinds.append(kind)
        at = end + 4
    if at != len(data) or kinds[:1] != [b"IHDR"] or kinds[-1] != b"IEND" or b"IDAT" not in kinds:
        return None
    if kinds.count(b"IEND") > 1 or len(data) < len(_PNG) + _CHUNK.size + _SIZE.size:
        return None
    width, height = _SIZE.unpack_from(data, len(_PNG) + _CHUNK.size)
    return width, height
