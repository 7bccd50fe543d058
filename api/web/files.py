"""The static files of pages: styles and JavaScript modules.

They are served as they are in the package, compressed once in each process. An address contains a digest of all files,
so its content never changes, and a browser requests it once. Modules import each other by relative paths, so the
modules of a page always have the same version. A process of another version answers 404; pages are complete without
scripts.
"""

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Final

import msgspec
from msgspec import Struct

from api.http.preferences import accepted_encodings
from api.http.reply import FOR_EVER, Reply, header
from api.http.router import NOTHING_HERE, IncomingRequest, Router
from api.web.accent import accent_style
from api.web.words import table
from engine.domain.errors import NotFound
from engine.domain.presentation import LANGUAGES

PATH: Final = "/static/{version}/{file...}"
_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ACCENT: Final = re.compile(r"accent/([0-9a-f]{6})\.css", re.ASCII)
_NEGOTIATED: Final = header("Vary", "Accept-Encoding") + header("X-Content-Type-Options", "nosniff")
_COMPRESSED: Final = header("Content-Encoding", "gzip")


class _File(Struct, frozen=True):
    plain: bytes
    compressed: bytes
    media_type: str


class StaticFiles:
    """The files in the package, in memory. `version`: the digest of all of them."""

    def __init__(self) -> None:
        self._files = dict(_read(files("api.web") / "static")) | dict(_words())
        digest = hashlib.sha256()
        for name, file in sorted(self._files.items()):
            digest.update(f"{name} {len(file.plain)} ".encode() + file.plain)
        self.version = digest.hexdigest()[:16]

    def address(self, name: str) -> str:
        """The address of the file with this name, such as "board.css". Raises KeyError if there is none."""
        _ = self._files[name]
        return f"/static/{self.version}/{name}"

    def accent_address(self, color: str) -> str:
        """The address of the style for this accent colour. The style is made on request."""
        return f"/static/{self.version}/accent/{color}.css"

    @property
    def sizes(self) -> Mapping[str, int]:
        """The compressed size of each file in bytes, by name."""
        return {name: len(file.compressed) for name, file in self._files.items()}

    def add_to(self, router: Router) -> None:
        async def answer(incoming: IncomingRequest) -> Reply:
            name = incoming.parameters["file"]
            accent = _ACCENT.fullmatch(name)
            file = self._files.get(name) if accent is None else _file(accent_style(accent[1]), ".css")
            if file is None or incoming.parameters["version"] != self.version:
                raise NotFound(NOTHING_HERE)
            is_plain = not accepted_encodings(incoming.request.headers.getall("Accept-Encoding", ())).gzip
            body, headers = (file.plain, _NEGOTIATED) if is_plain else (file.compressed, _NEGOTIATED + _COMPRESSED)
            return Reply(body, media_type=file.media_type, headers=headers, kept=FOR_EVER)

        router.add("GET", PATH, answer)


@cache
def static_files() -> StaticFiles:
    """The files of this process, read and compressed at the first call."""
    return StaticFiles()


def _words() -> Iterator[tuple[str, _File]]:
    """The words of scripts, a module for each language."""
    for language in LANGUAGES:
        words = {key: texts[language] for key, texts in table()["script"].items()}
        yield f"words.{language}.js", _file(b"export default %b;\n" % msgspec.json.encode(words), ".js")


def _file(plain: bytes, suffix: str) -> _File:
    return _File(plain, gzip.compress(plain, mtime=0), _MEDIA_TYPES[suffix])


def _read(folder: Traversable, within: str = "") -> Iterator[tuple[str, _File]]:
    """The files below `folder` that are served, with their names."""
    for found in folder.iterdir():
        name = within + found.name
        if found.is_dir():
            yield from _read(found, f"{name}/")
        elif (suffix := PurePosixPath(name).suffix) in _MEDIA_TYPES:
            yield name, _file(found.read_bytes(), suffix)
