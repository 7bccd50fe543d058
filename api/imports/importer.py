"""The importer: adds what the lines of a file say to a tournament, and nothing twice.

    rows ──► asked: lines with keys ──► known ──► judged ──► submitted ──► so far

A reader (`rows.py`) makes rows of bytes. A *kind* of file says what its rows mean: how a line is known again, and which
commands it becomes. Everything else is the same for all kinds. The file is judged as a whole, in its order, before
anything is recorded. Then its lines are submitted in that order, many at a time.

A line is one or more requests, each with an idempotency key. So an interrupted import resumes when the same file is
imported again, even between two requests of a line. Keys are made from what lines say, and from the number of earlier
lines that say the same. They are not made from the bytes of the file or the line's number: if they were, one corrected
line, or other line ends from a spreadsheet, would make another file, and import everything again. The price: a line of
another file that says exactly the same counts as imported already. The count of these shows it, and it can be
corrected; doubles could not.

If what a kind adds can be taken back, its imports have names, made from all that the lines say: resuming an import
keeps the name, and two concurrent imports of one file are one import (`undoing.py`). Each key then has a *generation*,
which is raised for what was taken back, so the corrected file counts. The latest generation says what a line is.
"""

import asyncio
from base64 import b32encode
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from api.desk.case import Receipt
from api.desk.desk import Desk
from api.imports.kinds import CORRECTION, FileKind, FileLine
from api.interface.sports import sport_of
from engine.domain.commands import UnvoidCompetition
from engine.domain.errors import Fault, KeyReused, Refusal, TallybookError, Unacceptable
from engine.domain.events import Event, Recorded
from engine.domain.judging import decide
from engine.domain.rescoring import may_rescore
from engine.domain.steps import Steps
from engine.domain.terms import FIRST_TIME, OPERATOR, ActorId, Sequence
from engine.log import import_runs, reading, registry
from engine.log.appending import is_repeat
from engine.log.import_runs import FINGERPRINT_BYTES
from engine.log.reading import KeyedEvent
from engine.process.time_slices import in_time_slices
from projections.board.board import Board, Revisions, fold
from projections.live.tournament import LiveTournament

IMPORT_REQUESTS_MAX: Final = 500
"""Requests of an import that are under way at the same time."""
NAME_CHARACTERS: Final = 8
_T = TypeVar("_T")
_Line = TypeVar("_Line", bound=FileLine)


class Interrupted(TallybookError):
    """Some lines of the file are done, as `so_far` says. The others were not sent."""

    code = "interrupted"

    def __init__(self, so_far: str) -> None:
        super().__init__(f"Interrupted: {so_far}")


class BrokenOff(TallybookError):
    """Some lines of the file are done, as `so_far` says. The others are not, or their outcome is unknown."""

    code = "broken_off"

    def __init__(self, so_far: str, failure: TallybookError) -> None:
        super().__init__(f"The import failed ({failure.code}): at least {so_far}")
        self.failure = failure


class Imported(Struct, frozen=True, kw_only=True):
    """The outcome of an import: how many lines it `made`, how many `corrected` what there was, how many were there
    `already`, and the `ids` of all, in the order of the file. If two imports run at once, a line was made by the one
    that recorded its last event. `name`: of this import, or of the one that did all of it before; None: several did, or
    such imports have no names, or it only corrected."""

    name: str | None
    made: int
    corrected: int
    already: int
    ids: list[int]


async def import_lines(
    desk: Desk,
    live: LiveTournament,
    kind: FileKind[_Line],
    *,
    actor: ActorId,
    stop: asyncio.Event,
    progress: Callable[[int, int], None],
    sure: bool = False,
) -> Imported:
    """Adds what the lines say, except what an import added before. Raises as both methods of `Importer`, and
    Unacceptable if there are questions, unless it is `sure`."""
    importer = Importer(desk, live, kind, stop)
    await importer.judge()
    if importer.questions and not sure:
        raise Unacceptable("Nothing was imported. If these lines are right, add --yes.", importer.questions)
    return await importer.submit(actor, progress)


def asked(kind: FileKind[_Line], board: Board, secret: bytes) -> Steps[tuple[list[_Line], list[Fault]]]:
    """The lines of a file, with their prints, and what is wrong with others. Raises a Refusal of the file as a
    whole."""
    yield from kind.open(board, secret)
    lines: list[_Line] = []
    faults: list[Fault] = []
    alike: Counter[Hashable] = Counter()
    for row in kind.rows:
        try:
            line = yield from kind.line(row)
        except Unacceptable as refusal:
            faults += _of_line(kind, row.number, refusal)
        else:
            alike[same := line.alike] += 1
            line.set_prints(alike[same])
            lines.append(line)
        yield
    return lines, faults


class Judgement(Struct, frozen=True):
    """The board as it would be after all lines, what is wrong with these, and what is asked about them before they are
    recorded."""

    board: Board
    faults: list[Fault]
    questions: list[Fault]


def judged(kind: FileKind[_Line], before: Board, lines: Items[_Line], others_max: int) -> Steps[Judgement]:
    """Each line that is not done is judged as if those before it were. A line that needs a refused one has no fault of
    its own."""
    board = replace(before, competitors=before.competitors.copy(), competitions=before.competitions.copy())
    yield from kind.look(board, lines, others_max)
    now, sport = datetime.now(UTC), sport_of(before.rankings.values())
    faults: list[Fault] = []
    questions: list[Fault] = []
    refused: set[FileLine] = set()
    revisions = Revisions()
    for line in lines:
        try:
            kind.resolve(line, board)
            if line.needs in refused:
                refused.add(line)
            for step in () if line in refused else line.left:
                command = line.command(step)
                if isinstance(command, UnvoidCompetition):
                    continue  # it is judged when it is sent, by the points that the desk looks up
                for event in decide(board, command):
                    if step == 0 and event.creates and kind.named_later:  # points are those of the live board
                        fold(board, revisions, _as_if_recorded(event))
        except Unacceptable as refusal:
            faults += _of_line(kind, line.number, refusal)
            refused.add(line)
        else:
            for one in kind.doubts(line, before, now):
                questions += [_at(kind, line.number, Fault(one.field, sport(one.message)))]
        yield
    return Judgement(board, faults, questions)


def _of_line(kind: FileKind[_Line], number: int, refusal: Refusal) -> list[Fault]:
    found = [_at(kind, number, one) for one in refusal.faults]
    return found or [Fault(f"line {number}", refusal.message)]


def _at(kind: FileKind[_Line], number: int, of: Fault) -> Fault:
    """With the line and its column."""
    return Fault(f"line {number}, {kind.columns.get(of.field, of.field)}", of.message)


class Importer(Generic[_Line]):
    """An import of a file: `judge` it, then `submit` it. Once `stop` is set, it raises Interrupted as soon as the
    requests under way are settled. `questions`: what is to be asked before it is submitted, by line."""

    def __init__(self, desk: Desk, live: LiveTournament, kind: FileKind[_Line], stop: asyncio.Event) -> None:
        self.kind: Final = kind
        self.lines: list[_Line] = []
        self.questions: Items[Fault] = ()
        self._desk, self._live, self._stop = desk, live, stop
        self._done = self._made = self._corrected = 0  # lines: in all, and by this import
        self._recorded = 0  # requests by this import
        self._name = ""
        self._earlier: set[str] = set()  # the names of the imports that made the lines that are done

    async def judge(self) -> None:
        """Finds what was imported before, and judges the rest. Records nothing. Raises Unacceptable, naming the lines,
        or another Refusal of the file as a whole."""
        desk, live = self._desk, self._live
        async with desk.database.connection_for(live.tournament_id) as connection:
            secret = await reading.secret_of(connection, live.tournament_id)
        await desk.live_pool.make_current(live)
        others_max = self.kind.count(live.board)
        self.lines, faults = await in_time_slices(asked(self.kind, live.board, secret))
        self._refuse_if_any(faults)
        await self._find_known()
        new = [line for line in self.lines if not line.id]
        async with desk.database.connection() as connection:
            for line, its_id in zip(new, await registry.next_ids(connection, len(new)), strict=True):
                line.id = its_id
        await desk.live_pool.make_current(live)  # now it shows everything that was found
        await in_time_slices(self._judge(others_max))

    @property
    def waiting(self) -> list[_Line]:
        """The lines that are not done."""
        return [line for line in self.lines if not line.is_done]

    async def submit(self, actor: ActorId, progress: Callable[[int, int], None]) -> Imported:
        """Submits the lines that are not done. Calls `progress` with the number of lines done, and their total. Raises
        a refusal if nothing was recorded before it; after any other failure BrokenOff: of the lines under way then,
        some may be done although earlier ones are not."""
        for window in self._windows():
            self._heed_stop()
            try:
                for step in range(self.kind.steps):
                    sent = [line for line in window if step in line.left]
                    await self._submit(sent, step, actor)
            except TallybookError as failure:
                if isinstance(failure, Refusal) and not self._recorded:
                    raise
                raise BrokenOff(self._so_far(), failure) from failure
            progress(self._done, len(self.lines))
        earlier = self._earlier.pop() if len(self._earlier) == 1 else None
        return Imported(
            name=self._name if self._made and self.kind.named else earlier,
            made=self._made,
            corrected=self._corrected,
            already=len(self.lines) - self._made - self._corrected,
            ids=[line.id for line in self.lines],
        )

    # ── So far ──────────────────────────────────────────────────────────────────────────────────────────

    def _heed_stop(self) -> None:
        if self._stop.is_set():
            raise Interrupted(self._so_far())

    def _so_far(self) -> str:
        return f"{self._counted('are')} {self.kind.done}. Import it again: that adds only the rest."

    def _counted(self, verb: str) -> str:
        return f"{self._done} of the file's {len(self.lines)} {self.kind.what}s {verb}"

    def _refuse_if_any(self, faults: Items[Fault]) -> None:
        if faults:
            before = f" now; {self._counted('were')} {self.kind.done} before" if self._done else ""
            raise Unacceptable(f"Nothing was imported{before}; correct these lines.", faults)

    def _note(self, line: _Line, step: int, event: Event) -> None:
        """Notes what a request of the line has recorded: under another id, if another import was faster."""
        if step == 0:
            line.id = getattr(event, event.creates[0])
        line.left.remove(step)
        self._done += line.is_done

    # ── Known ───────────────────────────────────────────────────────────────────────────────────────────

    async def _find_known(self) -> None:
        """Notes in each line what earlier imports recorded. What was taken back since counts as missing. Raises
        Unacceptable for lines that have changed since."""
        faults: list[Fault] = []
        latest = [await self._find_latest(step) for step in range(self.kind.steps)]
        said = b"".join([its_print.fingerprint for line in self.lines for its_print in line.prints])
        self._name = b32encode(sha256(said).digest())[:NAME_CHARACTERS].decode().lower()
        for line in self.lines:
            for step, found in enumerate(latest):
                used = found.get(line)
                if used is None:
                    continue  # another import may have recorded it since: it is sent again, which changes nothing
                if (fault := self._fault(line, step, used)) is not None:
                    faults.append(Fault(f"line {line.number}", fault))
                    break  # the rest may differ for the same reason
                self._note(line, step, used.recorded.event)
                self._earlier |= {import_runs.name_in(used.fingerprint)} - {""}
        self._refuse_if_any(faults)

    async def _find_latest(self, step: int) -> dict[_Line, KeyedEvent]:
        """Moves the request of each line to the latest generation that was sent, and returns what was recorded for it.
        If that was taken back, moves it to the next generation. An earlier one does not matter, even if it was restored
        since."""
        latest: dict[_Line, KeyedEvent] = {}
        passed: dict[_Line, KeyedEvent] = {}
        """Made by an import that was undone: the line is one generation further."""
        pending: Items[_Line] = [line for line in self.lines if step < len(line.prints)]
        while pending:
            further: list[_Line] = []
            for chunk in chunks(pending, reading.IDEMPOTENCY_KEYS_MAX):
                self._heed_stop()
                found, undone = await self._used([line.prints[step].key for line in chunk])
                for line in chunk:
                    used = found.get(line.prints[step].key)
                    if used is not None and import_runs.name_in(used.fingerprint) in undone:
                        passed[line] = used
                        line.move(step, 1)
                        further.append(line)
                    elif used is not None:
                        passed.pop(line, None)
                        latest[line] = used
            pending = further
        if passed:
            await self._desk.live_pool.make_current(self._live)  # now it shows everything that was found
        for line, used in passed.items():
            if not self.kind.is_taken_back(self._live.board, used.recorded):
                line.move(step, -1)
                latest[line] = used
        return latest

    async def _used(self, keys: Items[str]) -> tuple[Mapping[str, KeyedEvent], Iterable[str]]:
        """What was recorded under the keys, and those of the imports that recorded it that were undone."""
        async with self._desk.database.connection() as connection:
            found = await reading.keyed(connection, self._live.tournament_id, keys)
            by = {import_runs.name_in(used.fingerprint) for used in found.values()} - {""}
            undone = await import_runs.undone_among(connection, self._live.tournament_id, by) if by else ()
        return found, undone

    def _fault(self, line: _Line, step: int, used: KeyedEvent) -> str | None:
        """Why a request of the line is not the one that was recorded; None: it is."""
        if used.recorded.is_ignored:
            return f"it was {self.kind.done} as event {used.recorded.sequence}, which the operator has set aside"
        if step == 0:
            line.continue_after(used.recorded.event)
        its_print = line.prints[step]
        if is_repeat(its_print.fingerprint, used.fingerprint[:FINGERPRINT_BYTES]):
            return None
        return self.kind.changed(used.recorded) or f"its key {its_print.key} was used for another request"

    # ── Judged ──────────────────────────────────────────────────────────────────────────────────────────

    def _judge(self, others_max: int) -> Steps[None]:
        """Lines that are done are not judged again: what they made may have changed since. Raises Unacceptable with the
        faults of all."""
        judgement = yield from judged(self.kind, self._live.board, self.lines, others_max)
        self._done = sum(line.is_done for line in self.lines)  # some have turned out to correct something
        self._refuse_if_any(judgement.faults)
        self.questions = judgement.questions

    # ── Submitted ───────────────────────────────────────────────────────────────────────────────────────

    async def _submit(self, lines: Items[_Line], step: int, actor: ActorId) -> None:
        """Submits a request of each of the lines. Raises the first failure, when all are settled."""
        failures: list[TallybookError] = []
        correcting = {line for line in lines if line.only_corrects}
        requests = [self._request(line, step, actor) for line in lines]
        for line, outcome in zip(lines, await asyncio.gather(*requests, return_exceptions=True), strict=True):
            try:
                event, by_us = await self._settled(line, step, outcome)
            except TallybookError as failure:
                failures.append(failure)
            else:
                self._note(line, step, event)
                self._recorded += by_us
                self._corrected += by_us and line in correcting
                self._made += by_us and line.is_done and line not in correcting
        if failures:
            raise failures[0]

    def _windows(self) -> Iterator[list[_Line]]:
        """Splits the lines that are not done into runs in which none needs another. A line that changes what results
        give is a run of its own: what it needs is looked up first, so others would overtake it."""
        window: dict[_Line, None] = {}
        ends = False
        for line in self.waiting:
            is_alone = any(may_rescore(self._live.board, line.command(step)) for step in line.left)
            if window and (ends or is_alone or len(window) == IMPORT_REQUESTS_MAX or line.needs in window):
                yield list(window)
                window = {}
            window[line] = None
            ends = is_alone
        if window:
            yield list(window)

    def _request(self, line: _Line, step: int, actor: ActorId) -> Awaitable[Receipt]:
        key, said = line.prints[step].key, line.prints[step].fingerprint
        if self.kind.named and (step != CORRECTION or line.correction is None):
            said = import_runs.fingerprint_of(said, self._name)
        return self._desk.submit(self._live, line.command(step), actor=actor, idempotency_key=key, fingerprint=said)

    async def _settled(self, line: _Line, step: int, outcome: Receipt | BaseException) -> tuple[Event, bool]:
        """What was recorded for a request, and whether by this import. Another one, of another file, may have recorded
        the same line meanwhile. Raises what the request failed with."""
        if isinstance(outcome, Receipt):
            return outcome.event, not outcome.replayed
        if isinstance(outcome, KeyReused):
            found, _ = await self._used([line.prints[step].key])
            (used,) = found.values()
            if self._fault(line, step, used) is None:
                return used.recorded.event, False
        raise outcome


def chunks(items: Items[_T], most: int) -> Iterator[Items[_T]]:
    """The items, `most` at once."""
    for start in range(0, len(items), most):
        yield items[start : start + most]


def _as_if_recorded(event: Event) -> Recorded:
    """For a board that is never shown: decisions depend on no sequence and no time."""
    return Recorded(Sequence(0), FIRST_TIME, OPERATOR, None, event)
