"""The files of pages: kept for ever by browsers, compressed, and never of another version."""

import gzip
import re
from importlib.resources import files
from typing import Final

import pytest

from api.web.files import static_files
from engine.domain.presentation import LANGUAGES
from tests.service import Client, Service

STATIC = files("api.web") / "static"


@pytest.fixture
async def stranger(service: Service) -> Client:
    """A client without a token."""
    return service.client("none", None)


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("board.css", "text/css"), ("board.js", "text/javascript"), ("lit-html/directives/repeat.js", "text/javascript")],
)
async def test_a_file_is_sent_as_it_stands_and_may_be_kept_for_ever(
    stranger: Client, name: str, media_type: str
) -> None:
    plain = await stranger.send("GET", static_files().address(name))
    packed = await stranger.send("GET", static_files().address(name), headers={"Accept-Encoding": "gzip"})
    assert plain.status == packed.status == 200
    assert plain.body == STATIC.joinpath(name).read_bytes()
    assert packed.headers["Content-Type"] == f"{media_type}; charset=utf-8"
    assert packed.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert packed.body in (plain.body, gzip.compress(plain.body, mtime=0))  # clients may unpack it on the way


async def test_other_versions_and_other_files_are_not_there(stranger: Client) -> None:
    for path in ("/static/0000000000000000/board.css", f"/static/{static_files().version}/../board.py"):
        assert (await stranger.send("GET", path)).status == 404
    assert (await stranger.send("GET", static_files().address("board.css") + "x")).status == 404


WORDS: Final = {f"words.{language}.js" for language in LANGUAGES}
"""Modules that are made of words.json."""


def test_modules_name_only_modules_that_are_there() -> None:
    names = set(static_files().sizes)
    for name in names:
        if name.endswith(".js") and name not in WORDS:
            folder = name.rpartition("/")[0]
            text = STATIC.joinpath(name).read_text(encoding="utf-8")
            for named in re.findall(r"""(?:\bfrom\s*|\bimport\s*\(?\s*)["'](\.[^"']+)["']""", text):
                assert _resolved(folder, named) in names, (name, named)


def _resolved(folder: str, named: str) -> str:
    parts = folder.split("/") if folder else []
    for part in named.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def test_what_the_first_view_loads_is_small() -> None:
    """With its page, 100 KB: lit-html and our own files. What draws a race is loaded when it is asked for."""
    sizes = static_files().sizes
    assert sum(size for name, size in sizes.items() if not name.startswith("uplot/")) < 60_000
