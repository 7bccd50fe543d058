"""Competitors from a file: read whole, judged whole, and only then registered.

CSV with a header whose first column is `name`; `tags` (separated by `|`), `color` and `parent` are optional. NDJSON
with the same names, `tags` as an array or in the same form. A parent is a competitor's name or id, of the tournament
or of an earlier line.
"""

import asyncio
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from api.desk import Desk
from engine.commands import RegisterCompetitor
from engine.errors import Fault, Refusal, Unacceptable, Unreadable
from engine.terms import OPERATOR, CompetitorId
from engine.tournament import Tournament, decide, evolve
from projections.live import Live

LINES_MAX: Final = 100_000
UNDER_WAY_MAX: Final = 500
"""Lines registered at the same time."""


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One competitor of a file."""

    name: str
    tags: str | list[str] = ""
    color: str = ""
    parent: str | int = ""


async def register_competitors(desk: Desk, live: Live, path: Path, *, progress: Callable[[int, int], None]) -> int:
    """Registers every competitor of the file, in its order, and returns how many there were.

    Raises Unreadable or Unacceptable, naming the lines, before anything is registered. `progress` is told how many
    of how many are done.
    """
    lines = read(path)
    first_id = [CompetitorId(await desk.new_id()) for _ in lines]
    await desk.lives.current(live)
    registrations = _judged(live, lines, first_id)
    done = 0
    for window in _windows(registrations):
        await asyncio.gather(*(desk.submit(live, command, actor=OPERATOR) for command in window))
        done += len(window)
        progress(done, len(registrations))
    return done


def read(path: Path) -> list[Line]:
    """The lines of a CSV or NDJSON file, by its suffix. Raises Unreadable."""
    readers = {".csv": _read_csv, ".ndjson": _read_ndjson}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise Unreadable("The file must be .csv or .ndjson.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise Unreadable(f"The file is not UTF-8 (at byte {error.start}).") from error
    lines = reader(text)
    if len(lines) > LINES_MAX:
        raise Unreadable(f"The file has {len(lines)} lines; import at most {LINES_MAX} at a time.")
    return lines


def _read_csv(text: str) -> list[Line]:
    rows = csv.DictReader(text.splitlines(), strict=True)
    columns = rows.fieldnames or []
    unknown = [column for column in columns if column not in Line.__struct_fields__]
    if not columns or columns[0] != "name" or unknown:
        raise Unreadable("The first line must name the columns: name, then any of tags, color, parent.")
    try:
        return [_line(row, number) for number, row in enumerate(rows, start=2)]
    except csv.Error as error:
        raise Unreadable(f"The file is not CSV: {error}.") from error


def _read_ndjson(text: str) -> list[Line]:
    lines = []
    for number, row in enumerate(text.splitlines(), start=1):
        if row.strip():
            try:
                lines.append(_line(msgspec.json.decode(row), number))
            except (msgspec.DecodeError, RecursionError) as error:
                raise Unreadable(f"Line {number} is not JSON: {error}.") from error
    return lines


def _line(row: object, number: int) -> Line:
    try:
        return msgspec.convert(row, Line)
    except msgspec.ValidationError as error:
        raise Unreadable(f"Line {number} cannot be read: {error}.") from error


def _judged(live: Live, lines: list[Line], ids: list[CompetitorId]) -> list[RegisterCompetitor]:
    """What the lines ask for, judged one after the other as if those before were registered."""
    state = Tournament(competitors=dict(live.tournament.competitors))
    named: dict[str, list[CompetitorId]] = {}
    for competitor_id, competitor in live.board.competitors.items():
        named.setdefault(competitor.name, []).append(competitor_id)
    commands: list[RegisterCompetitor] = []
    faults: list[Fault] = []
    for number, (line, competitor_id) in enumerate(zip(lines, ids, strict=True), start=1):
        try:
            command = _command(line, competitor_id, named, state)
            for event in decide(state, command):
                evolve(state, event)
        except Refusal as refusal:
            faults += [Fault(f"competitor {number}, {fault.field}", fault.message) for fault in refusal.faults]
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
    if not candidates and text.isascii() and text.isdecimal() and int(text[:19]) in state.competitors:
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
