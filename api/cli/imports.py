"""Competitors from a file: judged as a whole, registered in its order, and nobody twice.

CSV with a header whose first column is `name`; `tags` (separated by `|`), `color` and `parent` are optional. NDJSON
with the same names, `tags` as an array or in the same form. A parent is a competitor's name or id, of the tournament
or of an earlier line.

Each line is a request with an idempotency key, so that an import that was cut off, by whatever, goes on when the same
command is given again. The key is made from what the line says, and from how many lines before it say the same; not
from the bytes of the file, nor from the line's number. For then a file of which one line was corrected, or which a
spreadsheet has saved with other line ends, would be another file, and everybody in it be registered again, for ever:
a log forgets nobody. The price: a line of another file that says just the same is taken for the same competitor. That
is told, by how many were registered already, and can be put right; doubles could not be.
"""

import asyncio
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from api.desk.desk import Desk
from api.desk.docket import Receipt
from api.http.forms import fingerprint
from engine.domain.commands import RegisterCompetitor
from engine.domain.errors import Fault, Refusal, TallybookError, Unacceptable, Unreadable
from engine.domain.events import CompetitorRegistered, Event, Ignored, Recorded
from engine.domain.judging import State, decide
from engine.domain.terms import OPERATOR, CompetitorId, Sequence
from engine.log import log
from projections.board.board import Board, Revisions, fold
from projections.live.live import Live

LINES_MAX: Final = 100_000
IMPORT_REQUESTS_MAX: Final = 500
"""Lines registered at the same time."""
_ID: Final = re.compile(r"[0-9]{1,19}")


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One competitor of a file."""

    name: str
    tags: str | list[str] = ""
    color: str = ""
    parent: str | int = ""


class Imported(Struct, frozen=True, kw_only=True):
    """What became of a file: how many of its lines this import `registered`, and how many were `already_registered`
    by earlier ones; and the `ids` of all of them, in the order of the file."""

    registered: int
    already_registered: int
    ids: list[CompetitorId]


async def register_competitors(
    desk: Desk, live: Live, path: Path, *, stop: asyncio.Event, progress: Callable[[int, int], None]
) -> Imported:
    """Registers every competitor of the file, in its order, who is not registered by it yet.

    Raises Unreadable or Unacceptable, naming the lines, before anybody is registered; Interrupted once `stop` is set
    and what was on its way is settled; BrokenOff where something else came between: of what was on its way then, some
    may be registered before others that precede them. `progress` is told how many of how many are done.
    """
    asked = _asked(read(path))
    known = await _known(desk, live, asked, stop)
    async with desk.database.connection() as connection:
        ids = await log.next_ids(connection, len(asked) - len(known))
    await desk.lives.current(live)  # now it shows all that was found
    commands = _judged(live, asked, known, ids)
    became = _Became()
    for window in _windows(commands):
        if stop.is_set():
            raise Interrupted(len(known), len(asked))
        failure = await _register(desk, live, window, known, became)
        if failure is not None:
            raise BrokenOff(len(known), len(asked), failure)
        progress(len(known), len(asked))
    registered = len(commands) - became.replayed
    return Imported(
        registered=registered, already_registered=len(asked) - registered, ids=[known[one.key] for one in asked]
    )


class Interrupted(TallybookError):
    """Some competitors of the file are registered, the others were not sent."""

    code = "interrupted"

    def __init__(self, done: int, total: int) -> None:
        super().__init__(f"Interrupted: {done} of the file's {total} competitors are registered. {_GO_ON}")


class BrokenOff(TallybookError):
    """Some competitors of the file are registered; others are not, or nobody knows."""

    code = "broken_off"

    def __init__(self, done: int, total: int, failure: TallybookError) -> None:
        super().__init__(
            f"Broken off ({failure.code}): at least {done} of the file's {total} competitors are registered. {_GO_ON}"
        )


_GO_ON: Final = "The same command again registers the others, and nobody twice."


# ── What was registered before ──────────────────────────────────────────────────────────────────────────


class _Asked(Struct, frozen=True):
    """A line, where it stands, and its request's fingerprint; see `_fingerprint`."""

    number: int
    line: Line
    fingerprint: bytes

    @property
    def key(self) -> str:
        return f"import-{self.fingerprint.hex()}"


def _asked(lines: Mapping[int, Line]) -> list[_Asked]:
    asked: list[_Asked] = []
    alike: Counter[bytes] = Counter()
    for number, line in lines.items():
        said = _fingerprint(line, 1)
        alike[said] += 1
        asked.append(_Asked(number, line, said if alike[said] == 1 else _fingerprint(line, alike[said])))
    return asked


def _fingerprint(line: Line, occurrence: int) -> bytes:
    """What tells a line from others, and from the `occurrence` - 1 lines before it that say the same.

    32 bytes, for ever the same, or what was registered once would be registered again.
    """
    form = {"name": line.name.strip(), "color": line.color, "parent": _parent_text(line), "occurrence": str(occurrence)}
    form |= {f"tag {n}": tag for n, tag in enumerate(_tags(line))}
    return fingerprint("IMPORT", "competitor", form)


async def _known(desk: Desk, live: Live, asked: Items[_Asked], stop: asyncio.Event) -> dict[str, CompetitorId]:
    """Who was registered for each key by an earlier import, of this file or of others.

    Raises Unacceptable where a key was used for something else, and Interrupted.
    """
    known: dict[str, CompetitorId] = {}
    faults: list[Fault] = []
    for start in range(0, len(asked), log.IDEMPOTENCY_KEYS_MAX):
        if stop.is_set():
            raise Interrupted(len(known), len(asked))
        portion = asked[start : start + log.IDEMPOTENCY_KEYS_MAX]
        async with desk.database.connection() as connection:
            found = await log.keyed(connection, live.tournament_id, [one.key for one in portion])
        for one in portion:
            used = found.get(one.key)
            if used is None:
                continue
            if used.fingerprint == one.fingerprint and isinstance(used.recorded.event, CompetitorRegistered):
                known[one.key] = used.recorded.event.competitor_id
            elif isinstance(used.recorded.event, Ignored):
                reason = f"it was registered as event {used.recorded.sequence}, which the operator has set aside"
                faults.append(Fault(f"line {one.number}", reason))
            else:
                faults.append(Fault(f"line {one.number}", f"its key {one.key} was used for another request"))
    if faults:
        raise _refused(faults, len(known), len(asked))
    return known


def _refused(faults: Items[Fault], done: int, total: int) -> Unacceptable:
    if not done:
        return Unacceptable(f"Nothing was imported; {_CORRECT}", faults)
    return Unacceptable(
        f"{done} of the file's {total} competitors were registered before, and nobody was now; {_CORRECT}", faults
    )


_CORRECT: Final = "correct these lines."


# ── Registering ─────────────────────────────────────────────────────────────────────────────────────────


class _Became:
    """Whom another import, at the same time, has registered for lines of ours: with its ids, not with those drawn."""

    def __init__(self) -> None:
        self.replayed = 0
        self._ids: dict[CompetitorId, CompetitorId] = {}

    def __call__(self, command: RegisterCompetitor) -> RegisterCompetitor:
        """`command`, below the parent that there is."""
        if command.parent_id is None or command.parent_id not in self._ids:
            return command
        return msgspec.structs.replace(command, parent_id=self._ids[command.parent_id])

    def settled(self, command: RegisterCompetitor, receipt: Receipt) -> CompetitorId:
        """The id of whom the command is about."""
        assert isinstance(receipt.event, CompetitorRegistered)  # the fingerprint is of nothing else
        if receipt.replayed:
            self.replayed += 1
            self._ids[command.competitor_id] = receipt.event.competitor_id
        return receipt.event.competitor_id


_Command = tuple[_Asked, RegisterCompetitor]


async def _register(
    desk: Desk, live: Live, window: Items[_Command], known: dict[str, CompetitorId], became: _Became
) -> TallybookError | None:
    """Registers those of a window, notes them in `known`, and returns the first failure."""
    submitted = (
        desk.submit(live, became(command), actor=OPERATOR, idempotency_key=one.key, fingerprint=one.fingerprint)
        for one, command in window
    )
    first: TallybookError | None = None
    for (one, command), outcome in zip(window, await asyncio.gather(*submitted, return_exceptions=True), strict=True):
        match outcome:
            case Receipt():
                known[one.key] = became.settled(command, outcome)
            case TallybookError():
                first = first or outcome
            case _:
                raise outcome
    return first


def _windows(commands: Iterable[_Command]) -> Iterator[list[_Command]]:
    """Runs of commands that do not need one another: a parent is registered in an earlier window."""
    window: list[_Command] = []
    within: set[CompetitorId] = set()
    for one, command in commands:
        if len(window) == IMPORT_REQUESTS_MAX or command.parent_id in within:
            yield window
            window, within = [], set()
        window.append((one, command))
        within.add(command.competitor_id)
    if window:
        yield window


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────


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


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────────


def _judged(live: Live, asked: Items[_Asked], known: Mapping[str, CompetitorId], ids: Iterable[int]) -> list[_Command]:
    """What those lines ask for that are not known, judged one after the other as if those before were registered.

    What is registered already is not judged again: it may have been renamed since, or its parent's name be that of
    several by now.
    """
    board, revisions = Board(competitors=dict(live.board.competitors)), Revisions()
    names = _Names(live, known.values())
    new_ids = map(CompetitorId, ids)
    commands: list[_Command] = []
    faults: list[Fault] = []
    for one in asked:
        if one.key in known:
            names.add(one.line.name.strip(), known[one.key])
            continue
        try:
            command = _command(one.line, next(new_ids), names, board)
            for event in decide(board, command):
                fold(board, revisions, _as_if_recorded(event))
        except Refusal as refusal:
            faults += [Fault(f"line {one.number}, {fault.field}", fault.message) for fault in refusal.faults]
        else:
            commands.append((one, command))
            names.add(command.name.strip(), command.competitor_id)
    if faults:
        raise _refused(faults, len(known), len(asked))
    return commands


def _as_if_recorded(event: Event) -> Recorded:
    """For a board that commands are judged by and that nobody is shown: decisions look at no sequence and no time."""
    return Recorded(Sequence(0), datetime.min.replace(tzinfo=UTC), OPERATOR, None, event)


class _Names:
    """Whom a line means by a name: of the tournament, or of an earlier line.

    Who was registered by a later line, and is there already, is meant only where it is nobody else, as when lines have
    changed places since.
    """

    def __init__(self, live: Live, of_file: Iterable[CompetitorId]) -> None:
        self._named: dict[str, list[CompetitorId]] = {}
        self._later: dict[str, list[CompetitorId]] = {}
        registered = frozenset(of_file)
        for competitor_id, competitor in live.board.competitors.items():
            names = self._later if competitor_id in registered else self._named
            names.setdefault(competitor.name, []).append(competitor_id)

    def add(self, name: str, competitor_id: CompetitorId) -> None:
        self._named.setdefault(name, []).append(competitor_id)

    def of(self, name: str) -> list[CompetitorId]:
        return self._named.get(name) or self._later.get(name, [])


def _command(line: Line, competitor_id: CompetitorId, names: _Names, state: State) -> RegisterCompetitor:
    return RegisterCompetitor(
        competitor_id=competitor_id,
        name=line.name,
        tags=_tags(line),
        color=line.color or None,
        parent_id=_parent(_parent_text(line), names, state),
    )


def _tags(line: Line) -> tuple[str, ...]:
    tags = line.tags.split("|") if isinstance(line.tags, str) else line.tags
    return tuple(tag.strip() for tag in tags if tag.strip())


def _parent_text(line: Line) -> str:
    return str(line.parent).strip()


def _parent(text: str, names: _Names, state: State) -> CompetitorId | None:
    """The competitor of this name, or, if there is none, of this id."""
    if not text:
        return None
    candidates = names.of(text)
    if len(candidates) == 1:
        return candidates[0]
    if not candidates and _ID.fullmatch(text) and int(text) in state.competitors:
        return CompetitorId(int(text))
    found = "several competitors have this name; give the id" if candidates else "no competitor has this name or id"
    raise Unacceptable("The parent is not known.", [Fault("parent", f"{text!r}: {found}")])
