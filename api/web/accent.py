"""The accent colour of a tournament's board: lighter or darker than declared if the declared one would be illegible.

Pure. Text has a contrast of at least 4.5 (WCAG 2.2, 1.4.3) against every paper of `static/board.css`.
"""

from typing import Final

LEGIBLE_CONTRAST_MIN: Final = 4.5
LIGHT_PAPERS: Final = ("fbfaf7", "ffffff", "e7e4dd")
DARK_PAPERS: Final = ("131519", "1b1e24", "23262d")
_STEPS: Final = 64
_Color = tuple[float, float, float]


def accents(color: str) -> tuple[str, str]:
    """The colour as it is drawn on light and on dark pages."""
    return _legible(color, LIGHT_PAPERS, "000000"), _legible(color, DARK_PAPERS, "ffffff")


def accent_style(color: str) -> bytes:
    """The style that gives a page this colour."""
    light, dark = accents(color)
    of_dark = f"@media (prefers-color-scheme: dark) {{\n  :root {{\n    --accent: #{dark};\n  }}\n}}\n"
    return f":root {{\n  --accent: #{light};\n}}\n\n{of_dark}".encode()


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    darker, lighter = sorted((_luminance(_parts(one)), _luminance(_parts(other))))
    return (lighter + 0.05) / (darker + 0.05)


def _legible(color: str, papers: tuple[str, ...], ink: str) -> str:
    """The colour, mixed with just enough `ink` to be legible on each of the papers."""
    for step in range(_STEPS + 1):
        share = step / _STEPS
        mixed = [a + (b - a) * share for a, b in zip(_parts(color), _parts(ink), strict=True)]
        text = "".join([f"{round(one * 255):02x}" for one in mixed])
        if all(contrast(text, paper) >= LEGIBLE_CONTRAST_MIN for paper in papers):
            break
    return text


def _parts(color: str) -> _Color:
    red, green, blue = bytes.fromhex(color)
    return red / 255, green / 255, blue / 255


def _luminance(color: _Color) -> float:
    red, green, blue = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in color]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
