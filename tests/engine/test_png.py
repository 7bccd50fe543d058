"""What is taken for a PNG: what every browser shows, and no header that its pixels do not follow."""

import struct
import zlib
from base64 import b64decode, b64encode
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.domain.png import png_of
from engine.domain.presentation import LOGO_BYTES_MAX, LOGO_DEPTH_MAX, LOGO_PIXELS_MAX, logo_fault
from tests.histories import LOGO

WHOLE: Final = "must be a whole PNG, with nothing after it"
PIXELS: Final = "cannot be read"
CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PALETTE: Final = (b"PLTE", bytes(6))
END: Final = (b"IEND", b"")


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + zlib.crc32(kind + content).to_bytes(4)

    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*one) for one in chunks)


def header(width: int, height: int, depth: int = 8, color: int = 2, *methods: int) -> tuple[bytes, bytes]:
    return b"IHDR", struct.pack(">IIBB", width, height, depth, color) + bytes(methods or (0, 0, 0))


def rows(width: int, height: int, depth: int = 8, color: int = 2) -> bytes:
    """Pixels of a picture that is not interlaced, each row with its filter."""
    return bytes((width * depth * CHANNELS[color] + 7) // 8 + 1) * height


def pixels(width: int, height: int, depth: int = 8, color: int = 2) -> tuple[bytes, bytes]:
    return b"IDAT", zlib.compress(rows(width, height, depth, color), 9)


def fault(data: bytes) -> str:
    return logo_fault(b64encode(data).decode()) or ""


def simple(*, head: tuple[bytes, bytes] = header(2, 3), data: tuple[bytes, bytes] = pixels(2, 3)) -> bytes:
    return png(head, data, END)


def interlaced(width: int, height: int) -> bytes:
    """The pixels of a picture of one byte each: in the order of the specification, pixel by pixel."""
    passes = ["16462646", "77777777", "56565656", "77777777", "36463646", "77777777", "56565656", "77777777"]
    content = b""
    for number in "1234567":
        for y in range(height):
            count = sum(passes[y % 8][x % 8] == number for x in range(width))
            content += bytes(count + 1) if count else b""
    return content


MALFORMED: Final = {
    "a header that is too short": (simple(head=(b"IHDR", header(2, 3)[1][:12])), WHOLE),
    "a header that is too long": (simple(head=(b"IHDR", header(2, 3)[1] + b"\0")), WHOLE),
    "an empty header": (simple(head=(b"IHDR", b"")), WHOLE),
    "no width": (simple(head=header(0, 3)), "it has 0 by 3"),
    "no height": (simple(head=header(2, 0)), "it has 2 by 0"),
    "an absurd size": (simple(head=header(2**32 - 1, 2**31)), "it has 4294967295 by 2147483648"),
    "a width beyond the limit": (simple(head=header(1_025, 1), data=pixels(1_025, 1)), "it has 1025 by 1"),
    "colours of 16 bits": (png(header(2, 3, 16), pixels(2, 3, 16), END), "at most 8 bits a colour"),
    "a depth that is none": (simple(head=header(2, 3, 3)), WHOLE),
    "a depth that the colours do not have": (simple(head=header(2, 3, 4)), WHOLE),
    "colours that are none": (simple(head=header(2, 3, 8, 5)), WHOLE),
    "a compression that is none": (simple(head=header(2, 3, 8, 2, 1, 0, 0)), WHOLE),
    "a filtering that is none": (simple(head=header(2, 3, 8, 2, 0, 1, 0)), WHOLE),
    "an interlacing that is none": (simple(head=header(2, 3, 8, 2, 0, 0, 2)), WHOLE),
    "no palette": (png(header(2, 3, 8, 3), pixels(2, 3, 8, 3), END), WHOLE),
    "a palette of half a colour": (png(header(2, 3, 8, 3), (b"PLTE", bytes(4)), pixels(2, 3, 8, 3), END), WHOLE),
    "a palette beyond the depth": (png(header(2, 3, 1, 3), (b"PLTE", bytes(9)), pixels(2, 3, 1, 3), END), WHOLE),
    "a palette for grey": (png(header(2, 3, 8, 0), PALETTE, pixels(2, 3, 8, 0), END), WHOLE),
    "a late palette": (png(header(2, 3, 8, 3), pixels(2, 3, 8, 3), PALETTE, END), WHOLE),
    "two headers": (png(header(2, 3), header(2, 3), pixels(2, 3), END), WHOLE),
    "a late header": (png((b"tEXt", b"x"), header(2, 3), pixels(2, 3), END), WHOLE),
    "no pixels": (png(header(2, 3), END), WHOLE),
    "pixels apart": (png(header(2, 3), pixels(2, 3), (b"tEXt", b"x"), pixels(2, 3), END), WHOLE),
    "no end": (png(header(2, 3), pixels(2, 3)), WHOLE),
    "an end with something in it": (png(header(2, 3), pixels(2, 3), (b"IEND", b"x")), WHOLE),
    "two ends": (png(header(2, 3), pixels(2, 3), END, END), WHOLE),
    "a chunk that is needed and unknown": (png(header(2, 3), (b"NEED", b""), pixels(2, 3), END), WHOLE),
    "another format": (b"GIF89a" + bytes(20), WHOLE),
    "nothing but its mark": (png(), WHOLE),
    "a row too few": (simple(data=pixels(2, 2)), PIXELS),
    "a row too many": (simple(data=pixels(2, 4)), PIXELS),
    "far more than its size": (simple(data=(b"IDAT", zlib.compress(bytes(10_000_000), 9))), PIXELS),
    "pixels that are not compressed": (simple(data=(b"IDAT", rows(2, 3))), PIXELS),
    "pixels that break off": (simple(data=(b"IDAT", pixels(2, 3)[1][:-1])), PIXELS),
    "pixels with something after them": (simple(data=(b"IDAT", pixels(2, 3)[1] + b"x")), PIXELS),
    "a wrong sum of the pixels": (simple(data=(b"IDAT", pixels(2, 3)[1][:-1] + b"\xff")), PIXELS),
    "a filter that is none": (simple(data=(b"IDAT", zlib.compress(rows(2, 2) + b"\5" + bytes(6)))), PIXELS),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_no_browser_need_show_is_refused(what: str) -> None:
    data, expected = MALFORMED[what]
    assert len(data) <= LOGO_BYTES_MAX
    assert expected in fault(data)


WELL_FORMED: Final = {
    "that of the tests": b64decode(LOGO),
    **{
        f"{depth} bits of the colours {color}": png(
            header(5, 3, depth, color), *[PALETTE] * (color == 3), pixels(5, 3, depth, color), END
        )
        for color, depths in {0: (1, 2, 4, 8), 2: (8,), 3: (1, 2, 4, 8), 4: (8,), 6: (8,)}.items()
        for depth in depths
    },
    "a suggested palette": png(header(2, 3), PALETTE, pixels(2, 3), END),
    "pixels in several chunks": png(
        header(2, 3), (b"IDAT", pixels(2, 3)[1][:3]), (b"IDAT", pixels(2, 3)[1][3:]), (b"IDAT", b""), END
    ),
    "what others may ignore": png(header(2, 3), (b"tEXt", b"x"), pixels(2, 3), (b"tIME", bytes(7)), END),
    "the largest": png(header(1_024, 1_024, 8, 6), pixels(1_024, 1_024, 8, 6), END),
}


@pytest.mark.parametrize("what", WELL_FORMED)
def test_what_every_browser_shows_is_taken(what: str) -> None:
    assert len(WELL_FORMED[what]) <= LOGO_BYTES_MAX
    assert fault(WELL_FORMED[what]) == ""


@given(st.integers(1, 20), st.integers(1, 20), st.integers(-1, 1))
def test_interlaced_pictures_have_the_pixels_of_all_passes(width: int, height: int, more: int) -> None:
    content = interlaced(width, height)
    content = content + b"\0" if more > 0 else content[:-1] if more else content
    data = png(header(width, height, 8, 0, 0, 0, 1), (b"IDAT", zlib.compress(content)), END)
    assert bool(fault(data)) == bool(more)


@settings(max_examples=100)
@given(st.data())
def test_any_bytes_are_judged(data: st.DataObject) -> None:
    whole = b64decode(LOGO)
    at = data.draw(st.integers(0, len(whole)))
    changed = whole[:at] + data.draw(st.binary(max_size=20)) + whole[data.draw(st.integers(at, len(whole))) :]
    found = png_of(changed)
    assert (fault(changed) == "") == (
        found is not None
        and max(found.width, found.height) <= LOGO_PIXELS_MAX
        and found.depth <= LOGO_DEPTH_MAX
        and found.has_its_pixels
    )
