"""Plays competitions from a file: adds each, with the points that it gives. The file is judged as a whole and played in
its order, and nothing is played twice.

A line is two requests, each with an idempotency key: the competition, and its points. So an import that was cut off
goes on when the same command runs again, even between the two.

The key of a competition is made from when it was and who took part, and from how many lines before it say the same; the
key of its points also from the ranking. The score and the points are not in the keys but in the fingerprints of the
requests. So a line whose score or points have changed since is no other competition, which would count double, but is
refused, with what to do instead.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from api.cli.competition_files import Line, Played, Reader
from api.cli.imports import IMPORT_REQUESTS_MAX, BrokenOff, Interrupted, as_if_recorded
from api.desk.desk import Desk
from api.desk.docket import Receipt
from api.http.forms import fingerprint
from engine.domain.commands import AddCompetition, AddPoints
from engine.domain.errors import Fault, Refusal, TallybookError, Unacceptable
from engine.domain.events import CompetitionAdded, Ignored, PointsAdded
from engine.domain.judging import decide
from engine.domain.terms import OPERATOR, CompetitionId, RankingId
from engine.log import reading, registry
from projections.board.board import Board, Revisions, fold
from projections.live.tournament import LiveTournament

_COLUMNS: Final = {"result": "score", "participants_delta": "points", "competition_id": "competition"}
"""What the file calls the fields of commands, where that differs."""


class ImportedCompetitions(Struct, frozen=True, kw_only=True):
    """The outcome of an import: how many lines it `imported`, how many were `already_imported` by others, and the `ids`
    of all competitions, in the order of the file. Of two imports at once, that one has imported a line which made the
    last of its events."""

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
    stop: asyncio.Event,
    progress: Callable[[int, int], None],
) -> ImportedCompetitions:
    """Adds the competitions of the lines and their points to the ranking, except what an import added before.

    Raises Unacceptable, naming the lines, before it adds anything. Raises Interrupted once `stop` is set and the lines
    under way are settled. Raises BrokenOff after any other failure. Calls `progress` with how many lines of how many
    are done.
    """
    asked = _asked(ranking_id, reader, lines)
    known = await _known(desk, live, asked)
    await desk.live_pool.make_current(live)  # now it shows everything that _known found
    async with desk.database.connection() as connection:
        ids = iter(await registry.next_ids(connection, len(asked)))
    for one in asked:
        one.competition_id = known.get(one.competition_key) or CompetitionId(next(ids))
        one.is_added = one.competition_key in known
        one.is_scored = one.points_key in known or not one.played.deltas
    _judge(live, ranking_id, asked)
    waiting = [one for one in asked if not (one.is_added and one.is_scored)]
    done, imported = len(asked) - len(waiting), 0
    for chunk in _chunks(waiting, IMPORT_REQUESTS_MAX):
        if stop.is_set():
            raise Interrupted(_so_far(done, len(asked)))
        try:
            imported += await _play(desk, live, ranking_id, chunk)
        except TallybookError as failure:
            raise BrokenOff(_so_far(done, len(asked)), failure) from failure
        done += len(chunk)
        progress(done, len(asked))
    return ImportedCompetitions(
        imported=imported, already_imported=len(asked) - imported, ids=[one.competition_id for one in asked]
    )


def _so_far(done: int, total: int) -> str:
    return (
        f"{done} of the file's {total} competitions are imported. "
        "Run the same command again: it imports the others, and nothing twice."
    )


# ── What was imported before ────────────────────────────────────────────────────────────────────────────


class _Asked:
    """What a line asks for, the keys of its two requests, and how far it is."""

    def __init__(self, played: Played, ranking_id: RankingId, occurrence: int) -> None:
        who = ",".join(map(str, played.participants))
        same = {"started_at": played.started_at.isoformat(), "participants": who, "occurrence": str(occurrence)}
        result = msgspec.json.encode(played.result).decode()
        rest = {"group": str(played.group_id), "location": played.location, "result": result}
        points = {"ranking": str(ranking_id)}
        deltas = ";".join(f"{d.competitor_id},{d.unity_id},{d.amount}" for d in played.deltas)
        self.played = played
        self.competition_key = f"import-{fingerprint('IMPORT', 'competition', same).hex()}"
        self.competition_print = fingerprint("IMPORT", "competition", same | rest)
        self.points_key = f"import-{fingerprint('IMPORT', 'points', same | points).hex()}"
        self.points_print = fingerprint("IMPORT", "points", same | points | {"deltas": deltas})
        self.competition_id = CompetitionId(0)
        self.is_added = self.is_scored = False


def _asked(ranking_id: RankingId, reader: Reader, lines: Items[Line]) -> list[_Asked]:
    """Raises Unacceptable with the faults of all lines."""
    asked: list[_Asked] = []
    faults: list[Fault] = []
    alike: Counter[object] = Counter()
    for line in lines:
        try:
            played = reader.played(line)
        except Unacceptable as refusal:
            faults += _of_line(line.number, refusal)
        else:
            alike[played.started_at, played.participants] += 1
            asked.append(_Asked(played, ranking_id, alike[played.started_at, played.participants]))
    _refuse_if_any(faults)
    return asked


def _of_line(number: int, refusal: Refusal) -> list[Fault]:
    return [Fault(f"line {number}, {_COLUMNS.get(one.field, one.field)}", one.message) for one in refusal.faults]


def _refuse_if_any(faults: Items[Fault]) -> None:
    if faults:
        raise Unacceptable("Nothing was imported now; correct these lines.", faults)


async def _known(desk: Desk, live: LiveTournament, asked: Items[_Asked]) -> dict[str, CompetitionId]:
    """The competitions that earlier imports added, by the keys of both requests. Raises Unacceptable for lines that
    said something else then."""
    known: dict[str, CompetitionId] = {}
    faults: list[Fault] = []
    for chunk in _chunks(asked, reading.IDEMPOTENCY_KEYS_MAX // 2):
        keys = [key for one in chunk for key in (one.competition_key, one.points_key)]
        async with desk.database.connection() as connection:
            found = await reading.keyed(connection, live.tournament_id, keys)
        for one in chunk:
            for key, its_print in ((one.competition_key, one.competition_print), (one.points_key, one.points_print)):
                used = found.get(key)
                if used is None:
                    continue
                fault = _fault(used, its_print)
                if fault is not None:
                    faults.append(Fault(f"line {one.played.number}", fault))
                elif isinstance(used.recorded.event, CompetitionAdded | PointsAdded):
                    known[key] = used.recorded.event.competition_id or CompetitionId(0)
    _refuse_if_any(faults)
    return known


def _fault(used: reading.KeyedEvent, its_print: bytes) -> str | None:
    """What keeps the line that has this fingerprint from being the one that was imported."""
    sequence = used.recorded.sequence
    match used.recorded.event:
        case Ignored():
            return f"it was imported as event {sequence}, which the operator has set aside"
        case CompetitionAdded(competition_id=competition_id) if used.fingerprint != its_print:
            return (
                f"it was imported as competition {competition_id}, with another score, group or location; correct that "
                "one, and leave this line out"
            )
        case PointsAdded(competition_id=competition_id) if used.fingerprint != its_print:
            return (
                f"competition {competition_id} was imported with other points (event {sequence}); correct them with "
                "`tallybook points add`, and leave this line out"
            )
        case _ if used.fingerprint != its_print:
            return f"its key {used.recorded.idempotency_key} was used for another request"
    return None


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────────


def _judge(live: LiveTournament, ranking_id: RankingId, asked: Items[_Asked]) -> None:
    """Judges each line that is not done as if those before it were. Raises Unacceptable with the faults of all."""
    board = Board(
        competitors=live.board.competitors, competitions=live.board.competitions.copy(), rankings=live.board.rankings
    )
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
    _refuse_if_any(faults)


def _competition(one: _Asked) -> AddCompetition:
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


def _points(one: _Asked, ranking_id: RankingId) -> AddPoints:
    return AddPoints(ranking_id=ranking_id, deltas=one.played.deltas, competition_id=one.competition_id)


# ── Playing ─────────────────────────────────────────────────────────────────────────────────────────────


async def _play(desk: Desk, live: LiveTournament, ranking_id: RankingId, chunk: Items[_Asked]) -> int:
    """Adds the competitions of some lines, then their points. Returns how many of the lines nobody else has finished.
    Raises the first failure when all are settled."""
    new = [one for one in chunk if not one.is_added]
    added = await asyncio.gather(
        *(
            desk.submit(
                live,
                _competition(one),
                actor=OPERATOR,
                idempotency_key=one.competition_key,
                fingerprint=one.competition_print,
            )
            for one in new
        ),
        return_exceptions=True,
    )
    finished = 0
    for one, receipt in zip(new, _receipts(added), strict=True):
        assert isinstance(receipt.event, CompetitionAdded)  # no other request has this fingerprint
        one.competition_id = receipt.event.competition_id  # another id, if another import was faster
        finished += one.is_scored and not receipt.replayed
    scored = await asyncio.gather(
        *(
            desk.submit(
                live,
                _points(one, ranking_id),
                actor=OPERATOR,
                idempotency_key=one.points_key,
                fingerprint=one.points_print,
            )
            for one in chunk
            if not one.is_scored
        ),
        return_exceptions=True,
    )
    return finished + sum(not receipt.replayed for receipt in _receipts(scored))


def _receipts(outcomes: Items[Receipt | BaseException]) -> list[Receipt]:
    """Raises the first failure."""
    receipts: list[Receipt] = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        receipts.append(outcome)
    return receipts


_T = TypeVar("_T")


def _chunks(items: Items[_T], most: int) -> Iterator[Items[_T]]:
    for start in range(0, len(items), most):
        yield items[start : start + most]
