"""Competitors from files: what a row says of one, and how it is known again.

The columns of CSV are `name`, the first one, and optionally `tags` (separated by `|`), `color` and `parent`. NDJSON has
the same names; there, `tags` may also be an array. A parent is the name or id of a competitor of the tournament or of
an earlier line. Ids that lines of this file have received are no reason to refuse a number that is a name: otherwise an
interrupted import could not continue.
"""

import hmac
from collections.abc import Sequence as Items
from hashlib import sha256
from typing import Final

from msgspec import Struct

from api.desk.fingerprints import fingerprint
from api.imports.kinds import CORRECT_OR_LEAVE_OUT, FileKind, FileLine, Print
from api.imports.rows import FileRow, FileRows, only, parted, taken
from api.interface.names import meant, typed
from engine.domain.commands import RegisterCompetitor
from engine.domain.errors import Fault, Unacceptable, Unreadable
from engine.domain.names import name_key
from engine.domain.steps import Steps
from engine.domain.terms import OPERATION_BYTES, CompetitorId
from projections.board.board import Board

IMPORT_COMPETITORS_MAX: Final = 1_000_000


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

    def __str__(self) -> str:
        return str(self.id) if self.is_done else f"on line {self.number}"

    @property
    def alike(self) -> tuple[str, tuple[str, ...], str, str]:
        """Whether accents are composed makes no difference."""
        return name_key(self.name), tuple(map(name_key, self.tags)), self.color, name_key(self.parent_text)

    def set_prints(self, occurrence: int) -> None:
        """They must never change, or every competitor would be registered again. They stay when the competitor is
        erased, so without the tournament's secret, nobody can find out by them whether a name is right."""
        name, tags, color, parent = self.alike
        form = {"name": name, "color": color, "parent": parent}
        form |= {"occurrence": str(occurrence), **{f"tag {n}": tag for n, tag in enumerate(tags)}}
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


def read_competitors(
    file: FileRows, lines_max: int = IMPORT_COMPETITORS_MAX, *, leave_out: bool = False
) -> "Competitors":
    """`leave_out`: the columns that mean nothing. Raises Unreadable, naming these, or every wrong line."""
    known = CompetitorFields.__struct_fields__
    own, others = parted(("name",) if file.columns is None else file.columns, known)
    if own[:1] != ["name"] or len(set(own)) < len(own):
        raise Unreadable("The first line must name the columns: name, then any of tags, color, parent.")
    if others and not leave_out:
        raise Unreadable(f"Competitors have no {', '.join(map(repr, others))}. {CORRECT_OR_LEAVE_OUT}")
    rows = only(known, file.rows) if leave_out else file.rows
    return Competitors(taken(rows, lines_max, CompetitorFields), others)


class Competitors(FileKind[CompetitorLine]):
    what = "competitor"
    done = "registered"

    def __init__(self, rows: Items[FileRow[CompetitorFields]], left_out: Items[str] = ()) -> None:
        super().__init__(rows)
        self.left_out = left_out
        self._secret = b""
        self._others_max = 0
        self._of_file: dict[int, CompetitorLine] = {}
        self._named: dict[str, list[CompetitorLine | CompetitorId]] = {}
        self._later: dict[str, list[CompetitorLine]] = {}

    def open(self, board: Board, secret: bytes) -> Steps[None]:
        self._secret = secret
        yield

    def line(self, row: FileRow[CompetitorFields]) -> Steps[CompetitorLine]:
        yield
        return CompetitorLine(row, self._secret)

    def count(self, board: Board) -> int:
        return len(board.competitors)

    def look(self, board: Board, lines: Items[CompetitorLine], others_max: int) -> Steps[None]:
        """A competitor that a later line registered in an earlier import is meant as a parent only if no other one has
        the name. That happens if lines have changed places since."""
        self._others_max = others_max
        self._of_file = {line.id: line for line in lines if line.is_done}
        wanted = {name for line in lines for name in (name_key(line.name), typed(line.parent_text).name)}
        for competitor_id, competitor in board.competitors.run(1, len(board.competitors)):
            if (name := name_key(competitor.name)) in wanted:
                if (line := self._of_file.get(competitor_id)) is not None:
                    self._later.setdefault(name, []).append(line)
                elif competitor.number <= others_max:
                    self._named.setdefault(name, []).append(competitor_id)
            yield
        for line in lines:
            line.is_namesake = name_key(line.name) in self._named or name_key(line.name) in self._later

    def resolve(self, line: CompetitorLine, board: Board) -> None:
        if line.parent_text and not line.is_done:
            line.parent = self._parent(line.parent_text, board)
            line.needs = line.parent if isinstance(line.parent, FileLine) else None
        self._named.setdefault(name_key(line.name), []).append(line)

    def _parent(self, text: str, board: Board) -> CompetitorLine | CompetitorId:
        said = typed(text)
        named = self._named.get(said.name or "") or self._later.get(said.name or "", [])
        own = None if said.id is None else board.competitors.get(CompetitorId(said.id))
        if own is not None and (own.number > self._others_max or (named and said.id in self._of_file)):
            own = None
        try:
            found = meant("competitor", said, None if own is None else own.name, named)
        except Unacceptable as refusal:
            found, why = None, refusal.message
        else:
            why = "no competitor has this name or id"
        if found is None:
            raise Unacceptable("The parent is not known.", [Fault("parent", f"{text!r}: {why}")])
        return found if isinstance(found, CompetitorLine) else CompetitorId(found)
