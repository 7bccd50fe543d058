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

from msgspec import Struct

from api.desk.fingerprints import fingerprint
from api.imports.kinds import FileKind, FileLine, Print
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


class CompetitorLine(FileLine):
    """`parent`: an earlier line, or a competitor of the tournament. `is_namesake`: another competitor has its name."""

    parent: "CompetitorLine | CompetitorId | None" = None
    is_namesake = False

    def __init__(self, row: FileRow[CompetitorFields], secret: bytes) -> None:
        tags = row.fields.tags.split("|") if isinstance(row.fields.tags, str) else row.fields.tags
        self.name = row.fields.name.strip()
        self.tags = tuple([tag.strip() for tag in tags if tag.strip()])
        self.color = row.fields.color.strip()
        self.parent_text = str(row.fields.parent).strip()
        self._secret = secret
        super().__init__(row.number)

    @property
    def alike(self) -> tuple[object, ...]:
        return self.name, self.tags, self.color, self.parent_text

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
    return Competitors(taken(file.rows, lines_max, CompetitorFields))


class Competitors(FileKind[CompetitorLine]):
    what = "competitor"
    done = "registered"

    def __init__(self, rows: Items[FileRow[CompetitorFields]]) -> None:
        super().__init__(rows)
        self._secret = b""
        self._named: dict[str, list[CompetitorLine | CompetitorId]] = {}
        self._later: dict[str, list[CompetitorLine]] = {}

    def open(self, board: Board, secret: bytes) -> Steps[None]:
        self._secret = secret
        yield

    def line(self, row: FileRow[CompetitorFields]) -> Steps[CompetitorLine]:
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
        if line.parent_text and not line.is_done:
            line.parent = self._parent(line.parent_text, board)
            line.needs = line.parent if isinstance(line.parent, FileLine) else None
        self._named.setdefault(line.name, []).append(line)

    def _parent(self, text: str, board: Board) -> CompetitorLine | CompetitorId:
        """The competitor of this name, or, if there is none, of this id."""
        candidates = self._named.get(text) or self._later.get(text, [])
        if len(candidates) == 1:
            return candidates[0]
        if not candidates and _ID.fullmatch(text) and int(text) in board.competitors:
            return CompetitorId(int(text))
        why = "several competitors have this name; give the id" if candidates else "no competitor has this name or id"
        raise Unacceptable("The parent is not known.", [Fault("parent", f"{text!r}: {why}")])
