"""Competitors from a file: read whole, judged whole, and only then registered.

CSV with a header whose first column is `name`; `tags` (separated by `|`), `color` and `parent` are optional. NDJSON
with the same names, `tags` as an array or in the same form. A parent is a competitor's name or id, of the tournament
or of an earlier line.
"""

import asyncio
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from api.desk import Desk
from engine import log
from engine.commands import RegisterCompetitor
from engine.errors import Fault, Refusal, TallybookError, Unacceptable, Unreadable
from engine.terms import OPERATOR, CompetitorId
from engine.tournament import Tournament, decide, evolve
from projections.live import Live

LINES_MAX: Final = 100_000
UNDER_WAY_MAX: Final = 500
"""Lines registered at the same time."""
_ID: Final = re.compile(r"[0-9]{1,19}")


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One competitor of a file."""

    name: str
    tags: str | list[str] = ""
    color: str = ""
    parent: str | int = ""


async def register_competitors(desk: Desk, live: Live, path: Path, *, progress: Callable[[int, int], None]) -> int:
    """Registers every competitor of the file, in its order, and returns how many there were.

    Raises Unreadable or Unacceptable, naming the lines, before anything is registered, and BrokenOff where something
    came between. `progress` is told how many of how many are done.
    """
    lines = read(path)
    async with desk.database.connection() as connection:
        ids = await log.next_ids(connection, len(lines))
    await desk.lives.current(live)
    registrations = _judged(live, lines, ids)
    done = 0
    for window in _windows(registrations):
        submitted = (desk.submit(live, command, actor=OPERATOR) for command in window)
        outcomes = await asyncio.gather(*submitted, return_exceptions=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        done += len(window) - len(failures)
        if failures:
            raise BrokenOff(done, len(registrations)) from failures[0]
        progress(done, len(registrations))
    return done


class BrokenOff(TallybookError):
    """Some competitors of the file are registered, others are not."""

    code = "broken_off"

    def __init__(self, done: int, total: int) -> None:
        super().__init__(
            f"At least {done} of {total} competitors are registered, then the database failed; "
            "list them, and import the missing ones."
        )


def read(path: Path) -> dict[int, Line]:
    """The competitors of a CSV or NDJSON file (its suffix tells), by the number of the line.

    Raises Unreadable, naming every line that is wrong.
    """
    readers = {".csv": _read_csv, ".ndjson": _read_ndjson}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise Unreadable("The file must be .csv or .ndjson.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"The file is not UTF-8 (at byte {error.start}).") from error
    lines: dict[int, Line] = {}
    faults: list[Fault] = []
    for number, row in reader(text):
        try:
            lines[number] = _line(row)
        except msgspec.MsgspecError as error:
            faults.append(Fault(f"line {number}", str(error)))
    if len(lines) + len(faults) > LINES_MAX:
        raise Unreadable(f"The file has {len(lines) + len(faults)} competitors; import at most {LINES_MAX} at a time.")
    if faults:
        raise Unreadable("Nothing was imported; correct these lines.", faults)
    return lines


_Row = bytes | dict[str, str] | None
"""A JSON text; or a CSV row by column, None if it has not as many fields as there are columns."""


def _read_csv(text: str) -> Iterator[tuple[int, _Row]]:
    # The csv module takes lines as the file has them: a quoted field may hold line ends of its own, and
    # str.splitlines would break it, and any other, at characters that end no line.
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = next(rows, [])
        if columns[:1] != ["name"] or len(set(columns)) < len(columns) or {*columns} - {*Line.__struct_fields__}:
            raise Unreadable("The first line must name the columns: name, then any of tags, color, parent.")
        for row in rows:
            if row:
                yield rows.line_num, dict(zip(columns, row, strict=True)) if len(row) == len(columns) else None
    except csv.Error as error:
        raise Unreadable(f"The file is not CSV: {error} (line {rows.line_num}).") from error


def _read_ndjson(text: str) -> Iterator[tuple[int, _Row]]:
    for number, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            yield number, row.encode()


def _line(row: _Row) -> Line:
    """Raises msgspec.MsgspecError."""
    if row is None:
        raise msgspec.ValidationError("it does not have as many fields as the first line has columns")
    try:
        return msgspec.json.decode(row, type=Line) if isinstance(row, bytes) else msgspec.convert(row, Line)
    except RecursionError as error:
        raise msgspec.DecodeError("it is nested too deeply") from error


def _judged(live: Live, lines: Mapping[int, Line], ids: Items[int]) -> list[RegisterCompetitor]:
    """What the lines ask for, judged one after the other as if those before were registered."""
    state = Tournament(competitors=dict(live.tournament.competitors))
    named: dict[str, list[CompetitorId]] = {}
    for competitor_id, competitor in live.board.competitors.items():
        named.setdefault(competitor.name, []).append(competitor_id)
    commands: list[RegisterCompetitor] = []
    faults: list[Fault] = []
    for (number, line), competitor_id in zip(lines.items(), map(CompetitorId, ids), strict=True):
        try:
            command = _command(line, competitor_id, named, state)
            for event in decide(state, command):
                evolve(state, event)
        except Refusal as refusal:
            faults += [Fault(f"line {number}, {fault.field}", fault.message) for fault in refusal.faults]
        else:
            commands.append(command)
            named.setdefault(command.name.strip(), []).append(competitor_id)
    if faults:
        raise Unacceptable("Nothing was imported; correct these lines.", faults)
    return commands


def _command(
    line: Line, competitor_id: CompetitorId, named: dict[str, list[CompetitorId]], state: Tournament
) -> RegisterCompetitor:
    tags = line.tags.split("|") if isinstance(line.tags, str) else line.tags
    return RegisterCompetitor(
        competitor_id=competitor_id,
        name=line.name,
        tags=tuple(tag.strip() for tag in tags if tag.strip()),
        color=line.color or None,
        parent_id=_parent(str(line.parent).strip(), named, state),
    )


def _parent(text: str, named: dict[str, list[CompetitorId]], state: Tournament) -> CompetitorId | None:
    """The competitor of this name, or, if there is none, of this id."""
    if not text:
        return None
    candidates = named.get(text, [])
    if len(candidates) == 1:
        return candidates[0]
    if not candidates and _ID.fullmatch(text) and int(text) in state.competitors:
        return CompetitorId(int(text))
    found = "several competitors have this name; give the id" if candidates else "no competitor has this name or id"
    raise Unacceptable("The parent is not known.", [Fault("parent", f"{text!r}: {found}")])


def _windows(commands: list[RegisterCompetitor]) -> Iterator[list[RegisterCompetitor]]:
    """Runs of commands that do not need one another: a parent is registered in an earlier window."""
    window: list[RegisterCompetitor] = []
    within: set[CompetitorId] = set()
    for command in commands:
        if len(window) == UNDER_WAY_MAX or command.parent_id in within:
            yield window
            window, within = [], set()
        window.append(command)
        within.add(command.competitor_id)
    if window:
        yield window
