"""Registers competitors from a file. The file is judged as a whole, registered in its order, and nobody twice.

CSV has a header whose first column is `name`; `tags` (separated by `|`), `color` and `parent` are optional. NDJSON has
the same names; `tags` is an array or has the same form. Standard input is NDJSON if it begins with a brace, else CSV. A
parent is the name or id of a competitor of the tournament or of an earlier line.

Each line is a request with an idempotency key, so an interrupted import resumes when the same command runs again.
The key is made from what the line says, and from how many lines before it say the same. It is not made from the bytes
of the file or the line's number: if it were, one corrected line, or other line ends from a spreadsheet, would make
another file and register everybody again, for ever, because a log forgets nobody. The price: a line of another file
that says exactly the same is taken for the same competitor. The command shows this by counting who was registered
already, and it can be corrected. Doubles could not.
"""

import asyncio
import hmac
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from api.cli.files import STDIN, read_text
from api.desk.desk import Desk
from api.desk.docket import Receipt
from api.desk.fingerprints import fingerprint
from api.imports.outcomes import IMPORT_REQUESTS_MAX, BrokenOff, Interrupted, as_if_recorded, chunks
from api.interface.cells import csv_rows
from engine.domain.commands import RegisterCompetitor
from engine.domain.errors import Fault, Refusal, TallybookError, Unacceptable, Unreadable
from engine.domain.events import CompetitorRegistered, Ignored
from engine.domain.judging import decide
from engine.domain.state import State
from engine.domain.terms import OPERATION_BYTES, OPERATOR, CompetitorId
from engine.log import reading, registry
from engine.log.appending import is_repeat
from projections.board.board import Board, Revisions, fold
from projections.live.tournament import LiveTournament

IMPORT_LINES_MAX: Final = 1_000_000
_ID: Final = re.compile(r"[0-9]{1,19}")


class ImportLine(Struct, frozen=True, forbid_unknown_fields=True):
    """One competitor of a file."""

    name: str
    tags: str | list[str] = ""
    color: str = ""
    parent: str | int = ""


class Imported(Struct, frozen=True, kw_only=True):
    """The outcome of an import: how many lines it `registered`, how many were `already_registered` by earlier ones, and
    the `ids` of all, in the order of the file."""

    registered: int
    already_registered: int
    ids: list[CompetitorId]


async def register_competitors(
    desk: Desk, live: LiveTournament, path: Path, *, stop: asyncio.Event, progress: Callable[[int, int], None]
) -> Imported:
    """Registers the competitors of the file, in its order, except those that an import registered before.

    Raises Unreadable or Unacceptable, naming the lines, before it registers anybody. Raises Interrupted once `stop` is
    set and the lines under way are settled. Raises BrokenOff after any other failure; of the lines under way then, some
    may be registered although earlier ones are not. Calls `progress` with how many lines of how many are done.
    """
    lines = read(path)
    async with desk.database.connection_for(live.tournament_id) as connection:
        asked = _asked(lines, await reading.secret_of(connection, live.tournament_id))
    await desk.live_pool.make_current(live)
    others_max = len(live.board.competitors)
    known = await _known(desk, live, asked, stop)
    async with desk.database.connection() as connection:
        ids = await registry.next_ids(connection, len(asked) - len(known))
    await desk.live_pool.make_current(live)  # now it shows everything that _known found
    commands = _judged(live, asked, known, ids, others_max)
    meanwhile = _RegisteredMeanwhile()
    for window in _windows(commands):
        if stop.is_set():
            raise Interrupted(_so_far(len(known), len(asked)))
        failure = await _register(desk, live, window, known, meanwhile)
        if failure is not None:
            raise BrokenOff(_so_far(len(known), len(asked)), failure)
        progress(len(known), len(asked))
    registered = len(commands) - meanwhile.replayed
    return Imported(
        registered=registered, already_registered=len(asked) - registered, ids=[known[one.key] for one in asked]
    )


def _so_far(done: int, total: int) -> str:
    return (
        f"{done} of the file's {total} competitors are registered. "
        "Run the same command again: it registers the others, and nobody twice."
    )


# ── What was registered before ──────────────────────────────────────────────────────────────────────────


class _Asked(Struct, frozen=True):
    """A line, its number in the file, and the fingerprint of its request; see `_fingerprint`."""

    number: int
    line: ImportLine
    fingerprint: bytes

    @property
    def key(self) -> str:
        return f"import-{self.fingerprint.hex()}"


def _asked(lines: Mapping[int, ImportLine], secret: bytes) -> list[_Asked]:
    asked: list[_Asked] = []
    alike: Counter[bytes] = Counter()
    for number, line in lines.items():
        said = _fingerprint(line, 1, secret)
        alike[said] += 1
        asked.append(_Asked(number, line, said if alike[said] == 1 else _fingerprint(line, alike[said], secret)))
    return asked


def _fingerprint(line: ImportLine, occurrence: int, secret: bytes) -> bytes:
    """32 bytes that tell a line from others, and from the `occurrence` - 1 lines before it that say the same.

    They must never change, or every competitor would be registered again. They stay when the competitor is erased,
    so without `secret`, that of the tournament, nobody can find out by them whether a name is right.
    """
    form = {"name": line.name.strip(), "color": line.color, "parent": _parent_text(line), "occurrence": str(occurrence)}
    form |= {f"tag {n}": tag for n, tag in enumerate(_tags(line))}
    said = fingerprint("IMPORT", "competitor", form)
    return said[:OPERATION_BYTES] + hmac.digest(secret, said, sha256)[OPERATION_BYTES:]


async def _known(
    desk: Desk, live: LiveTournament, asked: Items[_Asked], stop: asyncio.Event
) -> dict[str, CompetitorId]:
    """The competitors that earlier imports, of this file or of others, registered, by key.

    Raises Unacceptable if a key was used for something else, and Interrupted.
    """
    known: dict[str, CompetitorId] = {}
    faults: list[Fault] = []
    for chunk in chunks(asked, reading.IDEMPOTENCY_KEYS_MAX):
        if stop.is_set():
            raise Interrupted(_so_far(len(known), len(asked)))
        async with desk.database.connection() as connection:
            found = await reading.keyed(connection, live.tournament_id, [one.key for one in chunk])
        for one in chunk:
            used = found.get(one.key)
            if used is None:
                continue
            if is_repeat(one.fingerprint, used.fingerprint) and isinstance(used.recorded.event, CompetitorRegistered):
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
        f"Nobody was registered now; {done} of the file's {total} competitors were before; {_CORRECT}", faults
    )


_CORRECT: Final = "correct these lines."


# ── Registering ─────────────────────────────────────────────────────────────────────────────────────────


class _RegisteredMeanwhile:
    """The competitors that another import registered for our lines meanwhile: under its ids, not under ours."""

    def __init__(self) -> None:
        self.replayed = 0
        self._ids: dict[CompetitorId, CompetitorId] = {}

    def with_parent(self, command: RegisterCompetitor) -> RegisterCompetitor:
        """`command`, with the id under which its parent was registered."""
        if command.parent_id is None or command.parent_id not in self._ids:
            return command
        return msgspec.structs.replace(command, parent_id=self._ids[command.parent_id])

    def settled(self, command: RegisterCompetitor, receipt: Receipt) -> CompetitorId:
        """The id of the competitor that the command registered."""
        assert isinstance(receipt.event, CompetitorRegistered)  # no other request has this fingerprint
        if receipt.replayed:
            self.replayed += 1
            self._ids[command.competitor_id] = receipt.event.competitor_id
        return receipt.event.competitor_id


_Command = tuple[_Asked, RegisterCompetitor]


async def _register(
    desk: Desk,
    live: LiveTournament,
    window: Items[_Command],
    known: dict[str, CompetitorId],
    meanwhile: _RegisteredMeanwhile,
) -> TallybookError | None:
    """Registers the competitors of a window, notes them in `known`, and returns the first failure."""
    submitted = (
        desk.submit(
            live, meanwhile.with_parent(command), actor=OPERATOR, idempotency_key=one.key, fingerprint=one.fingerprint
        )
        for one, command in window
    )
    first: TallybookError | None = None
    for (one, command), outcome in zip(window, await asyncio.gather(*submitted, return_exceptions=True), strict=True):
        match outcome:
            case Receipt():
                known[one.key] = meanwhile.settled(command, outcome)
            case TallybookError():
                first = first or outcome
            case _:
                raise outcome
    return first


def _windows(commands: Iterable[_Command]) -> Iterator[list[_Command]]:
    """Splits commands into runs in which none needs another: a parent is registered in an earlier window."""
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


def read(path: Path) -> dict[int, ImportLine]:
    """The competitors of a CSV or NDJSON file, by line number. The suffix says which it is; of standard input, the
    first character. Raises Unreadable, naming every wrong line.
    """
    readers = {".csv": _read_csv, ".ndjson": _read_ndjson}
    if path != STDIN and path.suffix.lower() not in readers:
        raise Unreadable("The file must be .csv or .ndjson, or - for standard input.")
    text = read_text(path)
    form = path.suffix.lower() if path != STDIN else ".ndjson" if text.lstrip().startswith("{") else ".csv"
    reader = readers[form]
    lines: dict[int, ImportLine] = {}
    faults: list[Fault] = []
    for number, row in reader(text):
        try:
            lines[number] = _line(row)
        except msgspec.MsgspecError as error:
            faults.append(Fault(f"line {number}", str(error)))
    if len(lines) + len(faults) > IMPORT_LINES_MAX:
        raise Unreadable(
            f"The file has {len(lines) + len(faults)} competitors; import at most {IMPORT_LINES_MAX} at a time."
        )
    if faults:
        raise Unreadable("Nothing was imported; correct these lines.", faults)
    return lines


_Row = bytes | dict[str, str] | None
"""A JSON text, or a CSV row by column. None: a CSV row with more or fewer fields than columns."""


def _read_csv(text: str) -> Iterator[tuple[int, _Row]]:
    rows = csv_rows(text)
    _, first = next(rows, (1, []))
    columns = [column.strip() for column in first]
    if columns[:1] != ["name"] or len(set(columns)) < len(columns) or {*columns} - {*ImportLine.__struct_fields__}:
        raise Unreadable("The first line must name the columns: name, then any of tags, color, parent.")
    for number, row in rows:
        yield number, dict(zip(columns, row, strict=True)) if len(row) == len(columns) else None


def _read_ndjson(text: str) -> Iterator[tuple[int, _Row]]:
    for number, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            yield number, row.encode()


def _line(row: _Row) -> ImportLine:
    """Raises msgspec.MsgspecError."""
    if row is None:
        raise msgspec.ValidationError("it has more or fewer fields than the first line has columns")
    if not isinstance(row, bytes):
        return msgspec.convert(row, ImportLine)
    try:
        line = msgspec.json.decode(row, type=ImportLine)
    except RecursionError as error:
        raise msgspec.DecodeError("it is nested too deeply") from error
    names = [name for name, _ in json.loads(row, object_pairs_hook=list)]  # msgspec takes the last of two equal keys
    for name, count in Counter(names).items():
        if count > 1:
            raise msgspec.ValidationError(f"it has the field {name!r} more than once")
    return line


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────────


def _judged(
    live: LiveTournament,
    asked: Items[_Asked],
    known: Mapping[str, CompetitorId],
    ids: Iterable[int],
    others_max: int,
) -> list[_Command]:
    """The commands of the lines that are not `known`, each judged as if those before it were registered. `others_max`
    as for _Names.

    Lines that are registered already are not judged again: the competitor may have been renamed since, or several
    competitors may have the parent's name by now.
    """
    board, revisions = Board(competitors=live.board.competitors.copy()), Revisions()
    names = _Names(live, known.values(), others_max)
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
                fold(board, revisions, as_if_recorded(event))
        except Refusal as refusal:
            faults += [Fault(f"line {one.number}, {fault.field}", fault.message) for fault in refusal.faults]
        else:
            commands.append((one, command))
            names.add(command.name.strip(), command.competitor_id)
    if faults:
        raise _refused(faults, len(known), len(asked))
    return commands


class _Names:
    """Finds the competitors of the tournament, or of earlier lines, that a line means by a name.

    A competitor that a later line registered in an earlier import is meant only if no other one has the name. That
    happens if lines have changed places since.

    `others_max`: only this many competitors of the tournament, the first ones, are known to be others than those of the
    file where they are not `of_file`. Another import of the file may have registered the rest.
    """

    def __init__(self, live: LiveTournament, of_file: Iterable[CompetitorId], others_max: int) -> None:
        self._named: dict[str, list[CompetitorId]] = {}
        self._later: dict[str, list[CompetitorId]] = {}
        registered = frozenset(of_file)
        for competitor_id, competitor in live.board.competitors.items():
            if competitor_id in registered:
                self._later.setdefault(competitor.name, []).append(competitor_id)
            elif competitor.number <= others_max:
                self._named.setdefault(competitor.name, []).append(competitor_id)

    def add(self, name: str, competitor_id: CompetitorId) -> None:
        self._named.setdefault(name, []).append(competitor_id)

    def of(self, name: str) -> list[CompetitorId]:
        return self._named.get(name) or self._later.get(name, [])


def _command(line: ImportLine, competitor_id: CompetitorId, names: _Names, state: State) -> RegisterCompetitor:
    return RegisterCompetitor(
        competitor_id=competitor_id,
        name=line.name,
        tags=_tags(line),
        color=line.color or None,
        parent_id=_parent(_parent_text(line), names, state),
    )


def _tags(line: ImportLine) -> tuple[str, ...]:
    tags = line.tags.split("|") if isinstance(line.tags, str) else line.tags
    return tuple(tag.strip() for tag in tags if tag.strip())


def _parent_text(line: ImportLine) -> str:
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
