"""Competitors from files: what a row says of one, and how it is known again.

The columns of CSV are `name`, the first one, and optionally `tags` (separated by `|`), `color`, `parent` and `key`.
NDJSON has the same names; there, `tags` may also be an array. A parent is the name, id or key of a competitor of the
tournament or of an earlier line. Ids that lines of this file have received are no reason to refuse a number that is a
name: otherwise an interrupted import could not continue.

A line with a key is found by that alone, and corrects the competitor that has the key: what differs and is not empty.
If none has it, but one competitor without a key has its name, that one gets the key.
"""

import hmac
from collections.abc import Sequence as Items
from hashlib import sha256
from typing import Final

from msgspec import Struct

from api.desk.fingerprints import fingerprint
from api.imports.kinds import CORRECT_OR_LEAVE_OUT, FileKind, FileLine, Print, changes_of
from api.imports.rows import FileRow, FileRows, only, parted, taken
from api.interface.names import IDS_LISTED_MAX, meant, typed
from engine.domain.commands import ChangeCompetitor, RegisterCompetitor
from engine.domain.errors import Fault, Unacceptable, Unreadable
from engine.domain.faults import unacceptable
from engine.domain.names import name_key
from engine.domain.steps import Steps
from engine.domain.terms import OPERATION_BYTES, CompetitorId
from projections.board.board import Board, Competitor

IMPORT_COMPETITORS_MAX: Final = 1_000_000


class CompetitorFields(Struct, frozen=True, forbid_unknown_fields=True):
    """What a row says."""

    name: str
    tags: str | list[str] = ""
    color: str = ""
    parent: str | int = ""
    key: str | int = ""


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
        self.key = name_key(str(row.fields.key)) or None
        self.occurrence = 1
        self._secret = secret
        super().__init__(row.number)

    def __str__(self) -> str:
        return str(self.id) if self.is_done else f"on line {self.number}"

    @property
    def alike(self) -> tuple[object, ...]:
        """Whether accents are composed makes no difference."""
        if self.key is not None:
            return (self.key,)
        return name_key(self.name), tuple(map(name_key, self.tags)), self.color, name_key(self.parent_text)

    def set_prints(self, occurrence: int) -> None:
        """They must never change, or every competitor would be registered again. They stay when the competitor is
        erased, so without the tournament's secret, nobody can find out by them whether a name is right."""
        self.occurrence = occurrence
        form = {"name": name_key(self.name), "color": self.color, "parent": name_key(self.parent_text)}
        form |= {"occurrence": str(occurrence), **{f"tag {n}": name_key(tag) for n, tag in enumerate(self.tags)}}
        said = self._said(form if self.key is None else {"key": self.key})
        self.prints = (Print(said, said),)

    def _said(self, form: dict[str, str]) -> bytes:
        said = fingerprint("IMPORT", "competitor", form)
        return said[:OPERATION_BYTES] + hmac.digest(self._secret, said, sha256)[OPERATION_BYTES:]

    @property
    def parent_id(self) -> CompetitorId | None:
        return CompetitorId(self.parent.id) if isinstance(self.parent, CompetitorLine) else self.parent

    def find(self, competitor_id: CompetitorId, found: Competitor) -> None:
        """Takes the competitor for that of the line, and corrects it."""
        self.id = competitor_id
        if self.left:
            self.left.remove(0)
        said = {"name": self.name, "tags": self.tags, "color": self.color, "parent_id": self.parent_id, "key": self.key}
        changes = changes_of(said, found)
        if changes and found.erased is None:
            command = ChangeCompetitor(competitor_id=competitor_id, **changes)
            self.correct(
                command, self._said({"key": str(self.key), "changes": repr(changes), "of": str(found.revised)})
            )

    def command(self, step: int) -> RegisterCompetitor | ChangeCompetitor:
        if isinstance(self.correction, ChangeCompetitor):
            return self.correction
        return RegisterCompetitor(
            competitor_id=CompetitorId(self.id),
            name=self.name,
            tags=self.tags,
            color=self.color or None,
            parent_id=self.parent_id,
            key=self.key,
        )


def read_competitors(
    file: FileRows, lines_max: int = IMPORT_COMPETITORS_MAX, *, leave_out: bool = False
) -> "Competitors":
    """`leave_out`: the columns that mean nothing. Raises Unreadable, naming these, or every wrong line."""
    known = CompetitorFields.__struct_fields__
    own, others = parted(("name",) if file.columns is None else file.columns, known)
    if own[:1] != ["name"] or len(set(own)) < len(own):
        raise Unreadable("The first line must name the columns: name, then any of tags, color, parent, key.")
    if others and not leave_out:
        raise Unreadable(f"Competitors have no {', '.join(map(repr, others))}. {CORRECT_OR_LEAVE_OUT}")
    rows = only(known, file.rows) if leave_out else file.rows
    return Competitors(taken(rows, lines_max, CompetitorFields), others)


class Competitors(FileKind[CompetitorLine]):
    what = "competitor"
    done = "registered"
    steps = 2

    def __init__(self, rows: Items[FileRow[CompetitorFields]], left_out: Items[str] = ()) -> None:
        super().__init__(rows)
        self.left_out = left_out
        self._secret = b""
        self._others_max = 0
        self._of_file: dict[int, CompetitorLine] = {}
        self._named: dict[str, list[CompetitorLine | CompetitorId]] = {}
        self._later: dict[str, list[CompetitorLine]] = {}
        self._former: dict[str, list[CompetitorLine | CompetitorId]] = {}
        self._keyed: dict[str, CompetitorLine] = {}

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
            for former in wanted.intersection(map(name_key, competitor.former)):
                self._former.setdefault(str(former), []).append(competitor_id)
            yield
        for line in lines:
            line.is_namesake = name_key(line.name) in self._named or name_key(line.name) in self._later

    def resolve(self, line: CompetitorLine, board: Board) -> None:
        if line.key is not None and line.occurrence > 1:
            raise unacceptable([Fault("key", "an earlier line has this key")])
        if line.parent_text and (line.key is not None or not line.is_done):
            line.parent = self._parent(line.parent_text, board)
            line.needs = line.parent if isinstance(line.parent, FileLine) else None
        if line.key is not None:
            self._keyed[line.key] = line
            if (found := self._found(line, board)) is not None:
                line.find(found, board.competitors[found])
        self._named.setdefault(name_key(line.name), []).append(line)

    def _found(self, line: CompetitorLine, board: Board) -> CompetitorId | None:
        """The competitor of a line with a key: the one that has it; or the one that the line has registered; or the one
        without a key that has its name. Raises Unacceptable if several have."""
        found = board.competitors.by_key(str(line.key))
        if found is not None or line.is_done:
            return found or CompetitorId(line.id)
        named = [one for one in self._named.get(name_key(line.name), ()) if not isinstance(one, CompetitorLine)]
        named = [one for one in named if board.competitors[one].key is None]
        if len(named) > 1:
            why = f"{len(named)} competitors have this name and no key; give one of them this key: "
            raise unacceptable([Fault("name", why + ", ".join(map(str, named[:IDS_LISTED_MAX])))])
        return named[0] if named else None

    def _parent(self, text: str, board: Board) -> CompetitorLine | CompetitorId:
        said = typed(text)
        if said.key is not None:
            keyed = self._keyed.get(said.key) or board.competitors.by_key(said.key)
            if keyed is None:
                raise unacceptable([Fault("parent", f"{text!r}: no competitor has this key")])
            return keyed
        name = said.name or ""
        named = self._named.get(name) or self._later.get(name) or self._former.get(name, [])
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
