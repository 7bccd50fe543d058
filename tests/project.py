"""Where the project lies, its packages, and their modules as text and parsed."""

import ast
from functools import cache
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "projections", "api")
PRODUCT: Final = [path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
"""The modules of the packages."""


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def parsed(name: str) -> ast.Module:
    return ast.parse(text_of(name))
