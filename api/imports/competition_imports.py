"""Plays competitions from a file: adds each, with the points that it gives. The file is judged as a whole and played in
its order, and nothing is played twice.

A line is two requests, each with an idempotency key: the competition, and its points. So an interrupted import resumes
when the same command runs again, even between the two requests.

The key of a competition is made from its time, its participants, and the number of earlier lines with the same time and
participants. The key of its points also includes the ranking. The score and the points are not in the keys but in the
fingerprints of the requests. So a line whose score or points have changed since does not become another competition,
which would count double. It is refused, and the message says what to do instead.

Each import has a name, made from all its keys: resuming it keeps the name, and two concurrent imports of one file are
one import. Everything it adds can be taken back together (`undoing.py`). A key also has a *generation*, which is raised
for competitions and points taken back, so the corrected file counts. The latest generation says what a line is.
"""

import asyncio
from base64 import b32encode
from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence as Items
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from api.desk.desk import Desk
from api.desk.fingerprints import fingerprint
from api.imports.competition_files import Line, Played, Reader
from api.imports.outcomes import IMPORT_REQUESTS_MAX, BrokenOff, Interrupted, as_if_recorded, chunks
from engine.domain.commands import AddCompetition, AddPoints
from engine.domain.errors import Fault, KeyReused, Refusal, TallybookError, Unacceptable
from engine.domain.events import CompetitionAdded, Event, Ignored, PointsAdded
from engine.domain.judging import decide
from engine.domain.steps import Steps
from engine.domain.terms import ActorId, CompetitionId, RankingId
from engine.log import import_runs, reading, registry
from engine.log.import_runs import FINGERPRINT_BYTES
from engine.process.time_slices import in_time_slices
from projections.board.board import Board, Revisions, fold
from projections.live.tournament import LiveTournament

NAME_CHARACTERS: Final = 8
_COLUMNS: Final = {"result": "score", "participants_delta": "points", "competition_id": "competition"}
"""The file's names for fields of commands, if they differ."""


class ImportedCompetitions(Struct, frozen=True, kw_only=True):
    """The outcome of an import: how many lines it `imported`, how many were `already_imported` by others, and the `ids`
    of all competitions, in the order of the file. If two imports run at once, a line was imported by the one that made
    its last event. `name`: of this import, or of the one that did all of it before; None: several did."""

    name: str | None
    imported: int
    already_imported: int
    ids: list[CompetitionId]


async def play_competitions(
    desk: Desk,
    live: LiveTournament,
    ranking_id: RankingId,
    reader: Reader,
    lines: Items[Line],
    *,
    actor: ActorId,
    stop: asyncio.Event,
    progress: Callable[[int, int], None],
) -> ImportedCompetitions:
    """Adds the competitions of the lines and their points to the ranking, except what an import added before.

    Raises Unacceptable, naming the lines, before it adds anything. Raises Interrupted once `stop` is set and the lines
    under way are settled. Raises BrokenOff after any other failure. Calls `progress` with the number of lines done, and
    their total.
    """
    judged = await judge_competitions(desk, live, ranking_id, reader, lines)
    asked, name = judged.asked, judged.name
    waiting = [one for one in asked if not (one.is_added and one.is_scored)]
    done, imported = len(asked) - len(waiting), 0
    for chunk in chunks(waiting, IMPORT_REQUESTS_MAX):
        if stop.is_set():
            raise Interrupted(_so_far(done, len(asked)))
        try:
            imported += await _Playing(desk, live, ranking_id, actor, name).play(chunk)
        except TallybookError as failure:
            raise BrokenOff(_so_far(done, len(asked)), failure) from failure
        done += len(chunk)
        progress(done, len(asked))
    return ImportedCompetitions(
        name=name if imported else judged.earlier,
        imported=imported,
        already_imported=len(asked) - imported,
        ids=[one.competition_id for one in asked],
    )


async def judge_competitions(
    desk: Desk, live: LiveTournament, ranking_id: RankingId, reader: Reader, lines: Items[Line]
) -> "Judged":
    """Finds what was imported before, and judges the rest. Adds nothing. Raises Unacceptable, naming the lines."""
    asked = await in_time_slices(_asked(ranking_id, reader, lines))
    earlier = await _find_imported(desk, live, ranking_id, asked)
    async with desk.database.connection() as connection:
        ids = iter(await registry.next_ids(connection, len(asked)))
    for one in asked:
        one.competition_id = one.competition_id or CompetitionId(next(ids))
    await in_time_slices(_judge(live, ranking_id, asked))
    keys = "\n".join([key for one in asked for key in (one.competition_key, one.points_key)])
    name = b32encode(sha256(keys.encode()).digest())[:NAME_CHARACTERS].decode().lower()
    return Judged(asked=asked, name=name, earlier=earlier.pop() if len(earlier) == 1 else None)


def _so_far(done: int, total: int) -> str:
    return (
        f"{done} of the file's {total} competitions are imported. "
        "Run the same command again: it imports the others, and nothing twice."
    )


# ── What was imported before ────────────────────────────────────────────────────────────────────────────


class AskedLine:
    """A line's content, the keys of its two requests, and its progress. `competition_id` 0: not drawn yet."""

    def __init__(self, played: Played, ranking_id: RankingId, occurrence: int) -> None:
        who = ",".join(map(str, played.participants))
        self._same = {"started_at": played.started_at.isoformat(), "participants": who, "occurrence": str(occurrence)}
        result = msgspec.json.encode(played.result).decode()
        self._rest = {"group": str(played.group_id), "location": played.location, "result": result}
        self._points = {"ranking": str(ranking_id)}
        self._deltas = ";".join(f"{d.competitor_id},{d.unity_id},{d.amount}" for d in played.deltas)
        self._generation = self._points_generation = 1
        self.played = played
        self.competition_id = CompetitionId(0)
        self.is_added, self.is_scored = False, not played.deltas
        self._set_keys()

    def move(self, generations: int, *, of_points: bool) -> None:
        """Moves the line by this many generations: of its points, or of its competition."""
        if of_points:
            self._points_generation += generations
        else:
            self._generation += generations
        self._set_keys()

    def note(self, event: Event) -> None:
        """Notes what the line's requests added."""
        if isinstance(event, CompetitionAdded):
            self.competition_id, self.is_added = event.competition_id, True
        else:
            self.is_scored = True

    def _set_keys(self) -> None:
        same = self._same | {"generation": str(self._generation)}
        of_points = same | self._points | {"points generation": str(self._points_generation)}
        self.competition_key = f"import-{fingerprint('IMPORT', 'competition', same).hex()}"
        self.competition_print = fingerprint("IMPORT", "competition", same | self._rest)
        self.points_key = f"import-{fingerprint('IMPORT', 'points', of_points).hex()}"
        self.points_print = fingerprint("IMPORT", "points", of_points | {"deltas": self._deltas})


class Judged(Struct, frozen=True, kw_only=True):
    """What importing a file would do. `asked`: its lines. `name`: of the import. `earlier`: of the one that imported
    all of it before, if there is one."""

    asked: list[AskedLine]
    name: str
    earlier: str | None


def _asked(ranking_id: RankingId, reader: Reader, lines: Items[Line]) -> Steps[list[AskedLine]]:
    """Raises Unacceptable with the faults of all lines."""
    yield from reader.read_names(lines)
    asked: list[AskedLine] = []
    faults: list[Fault] = []
    alike: Counter[object] = Counter()
    for line in lines:
        try:
            played = yield from reader.played(line)
        except Unacceptable as refusal:
            faults += _of_line(line.number, refusal)
        else:
            alike[played.started_at, played.participants] += 1
            asked.append(AskedLine(played, ranking_id, alike[played.started_at, played.participants]))
        yield
    _refuse_if_any(faults)
    return asked


def _of_line(number: int, refusal: Refusal) -> list[Fault]:
    return [Fault(f"line {number}, {_COLUMNS.get(one.field, one.field)}", one.message) for one in refusal.faults]


def _refuse_if_any(faults: Items[Fault]) -> None:
    if faults:
        raise Unacceptable("Nothing was imported now; correct these lines.", faults)


async def _find_imported(desk: Desk, live: LiveTournament, ranking_id: RankingId, asked: Items[AskedLine]) -> set[str]:
    """Notes in each line what earlier imports added, and returns their names. What was taken back since counts as
    missing. Raises Unacceptable for lines that have changed since."""
    names: set[str] = set()
    faults: list[Fault] = []
    competitions = await _find_latest(desk, live, ranking_id, asked, of_points=False)
    points = await _find_latest(desk, live, ranking_id, asked, of_points=True)
    for one in asked:
        for used, its_print in ((competitions.get(one), one.competition_print), (points.get(one), one.points_print)):
            if used is None:
                continue
            if (fault := _fault(used, its_print)) is not None:
                faults.append(Fault(f"line {one.played.number}", fault))
            else:
                one.note(used.recorded.event)
                names.add(import_runs.name_in(used.fingerprint))
    _refuse_if_any(faults)
    return names


async def _find_latest(
    desk: Desk, live: LiveTournament, ranking_id: RankingId, asked: Items[AskedLine], *, of_points: bool
) -> dict[AskedLine, reading.KeyedEvent]:
    """Moves each line to the latest generation that was requested, and returns what was recorded for it. If that was
    taken back, moves the line to the next generation. An earlier one does not matter, even if it was restored since."""
    latest: dict[AskedLine, reading.KeyedEvent] = {}
    passed: dict[AskedLine, reading.KeyedEvent] = {}
    """Made by an import that was undone: the line is one generation further."""
    pending = asked
    while pending:
        further: list[AskedLine] = []
        for chunk in chunks(pending, reading.IDEMPOTENCY_KEYS_MAX):
            keys = [one.points_key if of_points else one.competition_key for one in chunk]
            async with desk.database.connection() as connection:
                found = await reading.keyed(connection, live.tournament_id, keys)
                by = {import_runs.name_in(used.fingerprint) for used in found.values()}
                undone = await import_runs.undone_among(connection, live.tournament_id, by)
            for one, key in zip(chunk, keys, strict=True):
                used = found.get(key)
                if used is not None and import_runs.name_in(used.fingerprint) in undone:
                    passed[one] = used
                    one.move(1, of_points=of_points)
                    further.append(one)
                elif used is not None:
                    passed.pop(one, None)
                    latest[one] = used
        pending = further
    await desk.live_pool.make_current(live)  # now it shows everything that was found
    for one, used in passed.items():
        if not _is_taken_back(live.board, ranking_id, used):
            one.move(-1, of_points=of_points)
            latest[one] = used
    return latest


def _is_taken_back(board: Board, ranking_id: RankingId, used: reading.KeyedEvent) -> bool:
    """Whether what the request added no longer counts."""
    match used.recorded.event:
        case CompetitionAdded(competition_id=competition_id):
            return board.competitions[competition_id].voided_at is not None
        case PointsAdded():
            return used.recorded.sequence in board.rankings[ranking_id].undone
    return False


def _fault(used: reading.KeyedEvent, its_print: bytes) -> str | None:
    """Why the line with this fingerprint is not the one that was imported; None: it is."""
    sequence, said = used.recorded.sequence, used.fingerprint[:FINGERPRINT_BYTES]
    match used.recorded.event:
        case Ignored():
            return f"it was imported as event {sequence}, which the operator has set aside"
        case CompetitionAdded(competition_id=competition_id) if said != its_print:
            return (
                f"it was imported as competition {competition_id}, with another score, group or location; undo that "
                "import first, or correct that competition and leave this line out"
            )
        case PointsAdded(competition_id=competition_id) if said != its_print:
            return (
                f"competition {competition_id} was imported with other points (event {sequence}); undo that import "
                "first, or correct them with `tallybook points add` and leave this line out"
            )
        case _ if said != its_print:
            return f"its key {used.recorded.idempotency_key} was used for another request"
    return None


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────────


def _judge(live: LiveTournament, ranking_id: RankingId, asked: Items[AskedLine]) -> Steps[None]:
    """Judges each line that is not done as if those before it were. Raises Unacceptable with the faults of all."""
    board = replace(live.board, competitions=live.board.competitions.copy())
    revisions = Revisions()
    faults: list[Fault] = []
    for one in asked:
        try:
            if not one.is_added:
                for event in decide(board, _competition(one)):
                    fold(board, revisions, as_if_recorded(event))
            if not one.is_scored:
                decide(board, _points(one, ranking_id))
        except Unacceptable as refusal:
            faults += _of_line(one.played.number, refusal) or [Fault(f"line {one.played.number}", refusal.message)]
        yield
    _refuse_if_any(faults)


def _competition(one: AskedLine) -> AddCompetition:
    played = one.played
    return AddCompetition(
        competition_id=one.competition_id,
        group_id=played.group_id,
        started_at=played.started_at,
        location=played.location or None,
        participants=played.participants,
        result=played.result,
        winner_id=played.winner_id,
    )


def _points(one: AskedLine, ranking_id: RankingId) -> AddPoints:
    return AddPoints(ranking_id=ranking_id, deltas=one.played.deltas, competition_id=one.competition_id)


# ── Playing ─────────────────────────────────────────────────────────────────────────────────────────────


class _Playing:
    """Plays lines for an actor, as an import of this name."""

    def __init__(self, desk: Desk, live: LiveTournament, ranking_id: RankingId, actor: ActorId, name: str) -> None:
        self._desk = desk
        self._live = live
        self._ranking_id = ranking_id
        self._actor = actor
        self._name = name

    async def play(self, chunk: Items[AskedLine]) -> int:
        """Adds the competitions of some lines, then their points. Returns the number of lines that no other import has
        finished. Raises the first failure when all are settled."""
        new = [one for one in chunk if not one.is_added]
        added = await self._submit([(_competition(one), one.competition_key, one.competition_print) for one in new])
        finished = 0
        for one, done in zip(new, added, strict=True):
            one.note(done.event)  # another id, if another import was faster
            finished += one.is_scored and done.by_us
        unscored = [one for one in chunk if not one.is_scored]
        scored = await self._submit(
            [(_points(one, self._ranking_id), one.points_key, one.points_print) for one in unscored]
        )
        return finished + sum([done.by_us for done in scored])

    async def _submit(self, requests: Items[tuple[AddCompetition | AddPoints, str, bytes]]) -> "list[_Done]":
        """Raises the first failure when all are settled."""
        outcomes = await asyncio.gather(
            *(
                self._desk.submit(
                    self._live,
                    command,
                    actor=self._actor,
                    idempotency_key=key,
                    fingerprint=import_runs.fingerprint_of(its_print, self._name),
                )
                for command, key, its_print in requests
            ),
            return_exceptions=True,
        )
        done: list[_Done] = []
        for (_, key, its_print), outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, KeyReused):
                done.append(await self._by_another(key, its_print, outcome))
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                done.append(_Done(outcome.event, not outcome.replayed))
        return done

    async def _by_another(self, key: str, its_print: bytes, refusal: KeyReused) -> "_Done":
        """What an import of another file has done with the same line meanwhile. Raises the refusal if its line
        differs."""
        async with self._desk.database.connection() as connection:
            used = (await reading.keyed(connection, self._live.tournament_id, [key]))[key]
        if _fault(used, its_print) is not None:
            raise refusal
        return _Done(used.recorded.event, by_us=False)


class _Done(Struct, frozen=True):
    event: Event
    by_us: bool
