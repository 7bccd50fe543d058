"""Draws a picture with pillow.

A letter is drawn with the first font that has it: one of pymupdf-fonts, or else one of SYSTEM_FONTS on this machine. A
letter that none has is left out. If nothing remains of a name, the competitor's id is shown.
"""

import unicodedata
from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont
from pymupdf_fonts import fontbuffers

from api.web.pictured import HEIGHT, WIDTH, Pictured
from engine.domain.events import COLOR_DEFAULT
from engine.domain.table_zones import ZoneKind

SYSTEM_FONTS: Final = (
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",  # Debian: fonts-noto-cjk
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",  # Debian: fonts-droid-fallback
    "/usr/share/fonts/truetype/noto/NotoSansArmenian-Regular.ttf",  # Debian: fonts-noto-core, and those below
    "/usr/share/fonts/truetype/noto/NotoSansBengali-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSansTamil-Regular.ttf",
)
"""Fonts of the system, for letters that the installed ones do not have."""
DRAWN_CHARACTERS_MAX: Final = 120
"""Characters of a name that are considered; no more fit."""


def draw(shown: Pictured) -> bytes:
    """The picture as a PNG. Takes about a tenth of a second."""
    image = Image.new("RGB", (WIDTH, HEIGHT), _PAPER)
    canvas = ImageDraw.Draw(image)
    _head(canvas, shown)
    _lines(image, canvas, shown)
    _foot(canvas, shown)
    encoded = BytesIO()
    image.save(encoded, "PNG", compress_level=6)
    return encoded.getvalue()


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────

_PAPER: Final = "#fbfaf7"
_INK: Final = "#1c1e22"
_MUTED: Final = "#5d626b"
_LINE: Final = "#e2ded5"
_EDGE: Final = "#8f8b83"  # of a dot, which may have the colour of the paper
_ACCENT: Final = "#1a56b0"
_ZONES: Final[dict[ZoneKind, tuple[str, int, int]]] = {
    "promotion": ("#17703f", 1, 0),
    "play-off": (_ACCENT, 12, 6),
    "neutral": (_MUTED, 1, 0),
    "relegation": ("#a8321f", 4, 4),
}
"""The colour of a zone, and how its bar is broken, as on the board: pixels drawn, and left out."""
_BAR: Final = 44  # of the zones
_BAR_WIDTH: Final = 9
_LEFT: Final = 64
_RIGHT: Final = WIDTH - 64
_TOP: Final = 196  # of the lines
_BOTTOM: Final = 572
_ROW_MAX: Final = 92.0
_ZONE_WIDTH_MIN: Final = 120.0  # of a zone at the foot
_TITLE_SIZES: Final = (54, 46, 40, 34)  # the first in which it fits
_DOT_SCALE: Final = 4  # a circle is drawn this many times as large, then shrunk, for a smooth edge


def _head(canvas: ImageDraw.ImageDraw, shown: Pictured) -> None:
    canvas.rectangle((0, 0, WIDTH, 10), fill=_ACCENT)
    _text(canvas, shown.tournament, _LEFT, 66, size=30, fill=_MUTED, width=_RIGHT - _LEFT)
    size = next(
        (one for one in _TITLE_SIZES if _width(shown.ranking, one, bold=True) <= _RIGHT - _LEFT), _TITLE_SIZES[-1]
    )
    _text(canvas, shown.ranking, _LEFT, 122, size=size, fill=_INK, bold=True, width=_RIGHT - _LEFT)
    _text(canvas, shown.column, _RIGHT, 166, size=24, fill=_MUTED, width=420, at_right=True)


def _lines(image: Image.Image, canvas: ImageDraw.ImageDraw, shown: Pictured) -> None:
    if not shown.lines:
        _text(canvas, shown.nobody, _LEFT, _TOP + 60, size=36, fill=_MUTED, width=_RIGHT - _LEFT)
        return
    row = min((_BOTTOM - _TOP) / len(shown.lines), _ROW_MAX)
    size = int(row * 0.6)
    positions = max(_width(line.place, size, bold=True) for line in shown.lines)
    dots = any(line.color != COLOR_DEFAULT for line in shown.lines)
    names = _LEFT + positions + size * (1.7 if dots else 0.7)
    for number, line in enumerate(shown.lines):
        top = _TOP + row * number
        middle = top + row / 2
        canvas.line((_LEFT, top, _RIGHT, top), fill=_LINE, width=2)
        if line.zone is not None:
            _bar(canvas, line.zone, _BAR, top + 2, top + row)
        _text(canvas, line.place, _LEFT + positions, middle, size=size, fill=_MUTED, bold=True, at_right=True)
        if line.color != COLOR_DEFAULT:
            _dot(image, names - size * 0.75, middle, size * 0.28, line.color)
        value = _width(line.value, size, bold=True)
        name = line.name if _drawable(line.name) else shown.numbered.replace("{number}", str(line.competitor_id))
        _text(canvas, name, names, middle, size=size, fill=_INK, width=_RIGHT - value - size - names)
        _text(canvas, line.value, _RIGHT, middle, size=size, fill=_INK, bold=True, at_right=True)


def _bar(canvas: ImageDraw.ImageDraw, zone: ZoneKind, x: float, top: float, bottom: float) -> None:
    color, drawn, left_out = _ZONES[zone]
    for y in range(int(top), int(bottom), drawn + left_out):
        canvas.rectangle((x, y, x + _BAR_WIDTH - 1, min(y + drawn, int(bottom)) - 1), fill=color)


def _foot(canvas: ImageDraw.ImageDraw, shown: Pictured) -> None:
    """The number of other lines, as many zones as there is room for, and the moment."""
    x, end = float(_LEFT), _RIGHT - _width(shown.moment, 24, bold=False) - 24
    if shown.more:
        _text(canvas, shown.more, x, 600, size=24, fill=_MUTED)
        x += _width(shown.more, 24, bold=False) + 32
    zones = shown.zones[: int(max(end - x, 0) // _ZONE_WIDTH_MIN)]
    room = (end - x) / max(len(zones), 1) - _BAR_WIDTH - 40
    for zone, said in zones:
        text = _cut(said, 24, room, bold=False)
        _bar(canvas, zone, x, 586, 614)
        _text(canvas, text, x + _BAR_WIDTH + 12, 600, size=24, fill=_MUTED)
        x += _BAR_WIDTH + 40 + _width(text, 24, bold=False)
    _text(canvas, shown.moment, _RIGHT, 600, size=24, fill=_MUTED, at_right=True)


def _dot(image: Image.Image, x: float, y: float, radius: float, color: str) -> None:
    side = int(2 * radius * _DOT_SCALE)
    large = Image.new("RGB", (side, side), _PAPER)
    ImageDraw.Draw(large).ellipse((0, 0, side - 1, side - 1), fill=f"#{color}", outline=_EDGE, width=_DOT_SCALE)
    dot = large.resize((side // _DOT_SCALE, side // _DOT_SCALE), Image.Resampling.LANCZOS)
    image.paste(dot, (int(x - radius), int(y - radius)))


# ── Text ────────────────────────────────────────────────────────────────────────────────────────────────


def _text(
    canvas: ImageDraw.ImageDraw,
    text: str,
    x: float,
    middle: float,
    *,
    size: int,
    fill: str,
    bold: bool = False,
    width: float | None = None,
    at_right: bool = False,
) -> None:
    """Writes the text from `x`, or, `at_right`, up to it, around the height `middle`. Text that does not fit into
    `width` is cut off."""
    if width is not None:
        text = _cut(text, size, width, bold=bold)
    if at_right:
        x -= _width(text, size, bold=bold)
    baseline = middle + size * 0.36
    for run, font in _runs(text, bold=bold):
        sized = _font(font, size)
        canvas.text((x, baseline), run, font=sized, fill=fill, anchor="ls")
        x += sized.getlength(run)


def _cut(text: str, size: int, width: float, *, bold: bool) -> str:
    """The text, cut to fit, with an ellipsis if something was cut off."""
    text = unicodedata.normalize("NFC", text)
    if len(text) <= DRAWN_CHARACTERS_MAX and _width(text, size, bold=bold) <= width:
        return text
    low, high = 0, min(len(text), DRAWN_CHARACTERS_MAX)
    while low < high:
        middle = (low + high + 1) // 2
        if _width(f"{text[:middle].rstrip()}…", size, bold=bold) <= width:
            low = middle
        else:
            high = middle - 1
    return f"{text[:low].rstrip()}…"


def _width(text: str, size: int, *, bold: bool) -> float:
    return sum(_font(font, size).getlength(run) for run, font in _runs(text, bold=bold))


def _drawable(name: str) -> bool:
    return any(not run.isspace() for run, _ in _runs(name[:DRAWN_CHARACTERS_MAX], bold=False))


def _runs(text: str, *, bold: bool) -> Iterator[tuple[str, str]]:
    """The text in runs of one font each. A mark is drawn with the letter before it, or not at all. A blank between two
    runs is a separate run, because one of them may be written from right to left. Where letters are left out, no gap
    remains."""
    run, of_run = "", ""
    font: str | None = None
    for letter in text.strip():
        if not (font and _has(font, letter) and (letter == " " or _is_mark(letter))):
            font = None if _is_mark(letter) else next((one for one in _fonts(bold=bold) if _has(one, letter)), None)
        if font is None or (letter == " " and (not run or run.endswith(" "))):
            continue
        if font != of_run and run:
            yield run.rstrip(), of_run
            if run.endswith(" "):
                yield " ", of_run
            run = ""
        run, of_run = run + letter, font
    if run:
        yield run.rstrip(), of_run


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter).startswith("M")


@cache
def _fonts(*, bold: bool) -> list[str]:
    """The fonts that are tried for a letter, in order: names in pymupdf-fonts, then paths."""
    installed = ["notosbo", "figbo"] if bold else ["notos", "figo"]
    return [*installed, "symbol1", "symbol2", "math", *[font for font in SYSTEM_FONTS if Path(font).is_file()]]


@cache
def _font(font: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(BytesIO(fontbuffers[font]()) if font in fontbuffers else font, size)


_LETTERS_KEPT_MAX: Final = 20_000
_LOOKED_AT_SIZE: Final = 24
_NO_LETTER: Final = "\U0010fffd"  # no font has it

_letters: dict[tuple[str, str], bool] = {}


def _has(font: str, letter: str) -> bool:
    """Whether the font has the letter, that is, draws it differently from one that it does not have."""
    known = _letters.get((font, letter))
    if known is None:
        known = letter.isspace() or _drawn(font, letter) != _drawn(font, _NO_LETTER)
        if len(_letters) >= _LETTERS_KEPT_MAX:
            _letters.clear()
        _letters[font, letter] = known
    return known


def _drawn(font: str, letter: str) -> bytes:
    mask, _ = _font(font, _LOOKED_AT_SIZE).getmask2(letter)
    return bytes(mask)
