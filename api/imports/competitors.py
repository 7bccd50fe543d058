"""Competitors from files: what a row says of one, and how it is known again.

The columns of CSV are `name`, the first one, and optionally `tags` (separated by `|`), `color` and `parent`. NDJSON has
the same names; there, `tags` may also be an array. A parent is the name or id of a competitor of the tournament or of
an earlier line.
"""

import hmac
import re
from collections.abc import Sequence as Items
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct

from api.desk.fingerprints import fingerprint
from api.imports.importer import FileKind, Line, Print
from api.imports.rows import FileRow, FileRows, taken
from engine.domain.commands import RegisterCompetitor
from engine.domain.errors import Fault, Unacceptable, Unreadable
from engine.domain.steps import Steps
from engine.domain.terms import OPERATION_BYTES, CompetitorId
from projections.board.board import Board

IMPORT_COMPETITORS_MAX: Final = 1_000_000
_ID: Final = re.compile(r"[0-9]{1,19}")


class CompetitorFields(Struct, frozen=True, forbid_unknown_fields=True):
    """What a row says."""

    name: str
    tags: str | list[str] = ""
    color: str = ""
    parent: str | int = ""


class CompetitorRow(Struct, frozen=True):
    """A row that could be read, with the number of its line."""

    number: int
    fields: CompetitorFields


class CompetitorLine(Line):
    """`parent`: an earlier line, or a competitor of the tournament. `is_namesake`: another competitor has its name."""

    parent: "CompetitorLine | CompetitorId | None" = None
    is_namesake = False

    def __init__(self, row: CompetitorRow, secret: bytes) -> None:
        tags = row.fields.tags.split("|") if isinstance(row.fields.tags, str) else row.fields.tags
        self.name = row.fields.name.strip()
        self.tags = tuple([tag.strip() for tag in tags if tag.strip()])
        self.color = row.fields.color.strip()
        self.parent_text = str(row.fields.parent).strip()
        self._secret = secret
        super().__init__(row.number, (self.name, self.tags, self.color, self.parent_text))

    def set_prints(self, occurrence: int) -> None:
        """They must never change, or every competitor would be registered again. They stay when the competitor is
        erased, so without the tournament's secret, nobody can find out by them whether a name is right."""
        form = {"name": self.name, "color": self.color, "parent": self.parent_text}
        form |= {"occurrence": str(occurrence), **{f"tag {n}": tag for n, tag in enumerate(self.tags)}}
        said = fingerprint("IMPORT", "competitor", form)
        said = said[:OPERATION_BYTES] + hmac.digest(self._secret, said, sha256)[OPERATION_BYTES:]
        self.prints = (Print(said, said),)

    def command(self, step: int) -> RegisterCompetitor:
        parent = self.parent
        return RegisterCompetitor(
            competitor_id=CompetitorId(self.id),
            name=self.name,
            tags=self.tags,
            color=self.color or None,
            parent_id=CompetitorId(parent.id) if isinstance(parent, CompetitorLine) else parent,
        )


def read_competitors(file: FileRows, lines_max: int = IMPORT_COMPETITORS_MAX) -> "Competitors":
    """Raises Unreadable, naming every wrong line."""
    columns, known = file.columns, CompetitorFields.__struct_fields__
    if columns is not None and (columns[:1] != ("name",) or len(set(columns)) < len(columns) or {*columns} - {*known}):
        raise Unreadable("The first line must name the columns: name, then any of tags, color, parent.")
    return Competitors(taken(file.rows, lines_max, _row))


def _row(row: FileRow) -> CompetitorRow:
    return CompetitorRow(row.number, msgspec.convert(row.fields, CompetitorFields))


class Competitors(FileKind[CompetitorRow, CompetitorLine]):
    what = "competitor"
    done = "registered"

    def __init__(self, rows: Items[CompetitorRow]) -> None:
        super().__init__(rows)
        self._secret = b""
        self._named: dict[str, list[CompetitorLine | CompetitorId]] = {}
        self._later: dict[str, list[CompetitorLine]] = {}

    def open(self, board: Board, secret: bytes) -> Steps[None]:
        self._secret = secret
        yield

    def line(self, row: CompetitorRow) -> Steps[CompetitorLine]:
        yield
        return CompetitorLine(row, self._secret)

    def look(self, board: Board, lines: Items[CompetitorLine], others_max: int) -> Steps[None]:
        """A competitor that a later line registered in an earlier import is meant as a parent only if no other one has
        the name. That happens if lines have changed places since."""
        of_file = {line.id: line for line in lines if line.is_done}
        wanted = {text for line in lines for text in (line.name, line.parent_text)}
        for competitor_id, competitor in board.competitors.run(1, len(board.competitors)):
            if competitor.name in wanted:
                if (line := of_file.get(competitor_id)) is not None:
                    self._later.setdefault(competitor.name, []).append(line)
                elif competitor.number <= others_max:
                    self._named.setdefault(competitor.name, []).append(competitor_id)
            yield
        for line in lines:
            line.is_namesake = line.name in self._named or line.name in self._later

    def resolve(self, line: CompetitorLine, board: Board) -> None:
        """The parent is the competitor of the name, or, if there is none, of the id."""
        text = line.parent_text
        if not text:
            return
        candidates = self._named.get(text) or self._later.get(text, [])
        if len(candidates) == 1:
            line.parent = candidates[0]
            line.needs = line.parent if isinstance(line.parent, Line) else None
        elif candidates:
            raise _unknown(text, "several competitors have this name; give the id")
        elif _ID.fullmatch(text) and int(text) in board.competitors:
            line.parent = CompetitorId(int(text))
        else:
            raise _unknown(text, "no competitor has this name or id")

    def passed(self, line: CompetitorLine) -> None:
        self._named.setdefault(line.name, []).append(line)


def _unknown(text: str, why: str) -> Unacceptable:
    return Unacceptable("The parent is not known.", [Fault("parent", f"{text!r}: {why}")])
