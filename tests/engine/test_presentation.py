"""Which logos are taken: a whole PNG of a small size. Browsers decode it."""

from base64 import b64decode, b64encode
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.presentation import LOGO_BYTES_MAX, LOGO_PIXELS_MAX, logo_fault
from tests.histories import LOGO

PNG: Final = b64decode(LOGO)


def fault(data: bytes) -> str | None:
    return logo_fault(b64encode(data).decode())


def sized(width: int, height: int) -> bytes:
    return PNG[:16] + width.to_bytes(4) + height.to_bytes(4) + PNG[24:]


def test_a_logo_is_a_whole_png() -> None:
    assert fault(PNG) is None
    for data in (b"", PNG[:-1], PNG + b"x", PNG[1:], b"GIF89a" + PNG[6:], PNG[:8]):
        assert fault(data) == "must be a complete PNG with nothing after it"
    assert fault(PNG + bytes(LOGO_BYTES_MAX)) == f"must have at most {LOGO_BYTES_MAX:,} bytes"
    for text in ("-", "é", LOGO[:-1]):
        assert logo_fault(text) == "must be a PNG in base64"


@pytest.mark.parametrize(("width", "height"), [(0, 3), (3, 0), (LOGO_PIXELS_MAX + 1, 1), (2**32 - 1, 2**31)])
def test_a_logo_is_small(width: int, height: int) -> None:
    assert fault(sized(width, height)) == f"must be 1 to 1,024 pixels wide and high; it has {width} by {height}"
    assert fault(sized(LOGO_PIXELS_MAX, 1)) is None


@given(st.binary(max_size=200), st.integers(0, 60))
def test_any_bytes_are_judged(data: bytes, kept: int) -> None:
    assert fault(PNG[:kept] + data) != ""
