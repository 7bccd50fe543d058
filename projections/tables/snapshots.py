"""Boards as they once were: where an answer about the past starts to fold from.

The only SQL on snapshots. A snapshot is what the log gives up to its sequence, the end of a block. Without one, folding
starts at the beginning. The worker writes a snapshot when enough events have been folded to make it worth its size. So
all of them together grow as the log does, and an answer about the past costs as much as the size of the state.

A board is written and read in parts of about PART_BYTES, because that of a million competitors takes some 100 MB.

A process also goes on from them if its tables were replaced by those of another version of the fold. The snapshots of
its own version stay until the version after that, so that it need not replay whole logs.
"""

import sys
from array import array
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar, assert_never

import msgspec
from asyncpg import Connection
from msgspec import Raw, Struct

from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.log.log import Head
from engine.process.turns import Turn, Turns
from projections.board.board import FOLD_VERSION, Board, Competition, Competitor, Ranking, Unity
from projections.board.enrolment import Enrolment, Totals
from projections.board.packed import Packed

INTERVAL_EVENTS_MIN: Final = 10_000
INTERVAL_EVENTS_PER_ROW: Final = 20
"""A row of a snapshot takes some 20 to 100 bytes, so snapshots add a few bytes to each event of the log."""

PART_BYTES: Final = 1024 * 1024
"""Bytes of a part of a board, and at most as many more as one run of items takes."""

_NEAREST: Final = """
    SELECT sequence, digest, board, parts
    FROM snapshot
    WHERE tournament_id = $1 AND fold_version = $2 AND sequence <= $3
    ORDER BY sequence DESC
    LIMIT 1
"""
_SEQUENCES: Final = """
    SELECT sequence
    FROM snapshot
    WHERE tournament_id = $1 AND fold_version = $2
    ORDER BY sequence
"""
_PART: Final = """
    SELECT part
    FROM snapshot_part
    WHERE tournament_id = $1 AND fold_version = $2 AND sequence = $3 AND number = $4
"""
_REMOVE: Final = "DELETE FROM snapshot WHERE tournament_id = $1 AND fold_version = $2 AND sequence = $3"
_SAVE: Final = """
    INSERT INTO snapshot (tournament_id, fold_version, sequence, digest, board)
    VALUES ($1, $2, $3, $4, $5)
"""
_ADD_PART: Final = """
    WITH counted AS (
        UPDATE snapshot
        SET parts = $4
        WHERE tournament_id = $1 AND fold_version = $2 AND sequence = $3
    )
    INSERT INTO snapshot_part (tournament_id, fold_version, sequence, number, part)
    VALUES ($1, $2, $3, $4, $5)
"""
_DROP_OTHERS: Final = """
    DELETE FROM snapshot
    WHERE tournament_id = $1 AND NOT (fold_version = $2 AND sequence = ANY($3::bigint[])) AND fold_version <> $4
"""


_COUNT_OTHERS: Final = "SELECT count(*) FROM snapshot WHERE tournament_id = $1 AND fold_version <> $2"


class Snapshot(Struct, frozen=True):
    """A board, and the head that it stands at."""

    head: Head
    board: Board


class SnapshotUndecodable(ValueError):
    """What is stored at `sequence` is no board."""

    def __init__(self, sequence: Sequence, error: Exception) -> None:
        super().__init__(f"the snapshot at {sequence} cannot be read: {error}")
        self.sequence = sequence


def interval_events(board: Board) -> int:
    """After how many events since the last snapshot the next one of such a board is worth its size."""
    rows = len(board.competitors) + len(board.competitions)
    for ranking in board.rankings.values():
        rows += len(ranking.participants) + sum([len(unity.totals.column) for unity in ranking.unities.values()])
    return max(INTERVAL_EVENTS_MIN, rows * INTERVAL_EVENTS_PER_ROW)


def is_due(head: Head, board: Board, last: Sequence) -> bool:
    """Whether it is time for a snapshot of `board`; `last` is the sequence of the one before. For nearly all
    tournaments one comparison shows that it is not."""
    behind = head.sequence - last
    return behind >= INTERVAL_EVENTS_MIN and behind >= interval_events(board)


async def nearest(
    connection: Connection, tournament_id: TournamentId, upto: Sequence, turns: Turns | None = None
) -> Snapshot | None:
    """The last snapshot of this fold's version that is not beyond `upto`; None: there is none. Raises
    SnapshotUndecodable.

    With `turns`, its decoding shares them with other long work.
    """
    row = await connection.fetchrow(_NEAREST, tournament_id, FOLD_VERSION, upto)
    if row is None:
        return None
    at, board, part = row["sequence"], Board(), row["board"]
    try:
        for number in range(1, row["parts"] + 2):
            await (turns or Turns()).work(_take(part, board))
            if number <= row["parts"]:
                part = await connection.fetchval(_PART, tournament_id, FOLD_VERSION, at, number)
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError) as error:
        raise SnapshotUndecodable(at, error) from error
    return Snapshot(Head(at, row["digest"]), board)


async def sequences(connection: Connection, tournament_id: TournamentId) -> list[Sequence]:
    """The sequences of the snapshots of this fold's version, ascending."""
    return [row["sequence"] for row in await connection.fetch(_SEQUENCES, tournament_id, FOLD_VERSION)]


async def count_others(connection: Connection, tournament_id: TournamentId) -> int:
    """How many snapshots there are of other versions of the fold."""
    count: int = await connection.fetchval(_COUNT_OTHERS, tournament_id, FOLD_VERSION)
    return count


async def save(connection: Connection, snapshots: Mapping[TournamentId, Snapshot]) -> None:
    """Writes one snapshot of each tournament, within a transaction; the parts of a large one in turns."""
    turn = Turn()
    for tournament_id, snapshot in snapshots.items():
        of = tournament_id, FOLD_VERSION, snapshot.head.sequence
        await connection.execute(_REMOVE, *of)
        for number, part in enumerate(_parts(snapshot.board)):
            if number == 0:
                await connection.execute(_SAVE, *of, snapshot.head.digest, part)
            else:
                await connection.execute(_ADD_PART, *of, number, part)
            if turn.over:
                await turn.give_way()


async def drop_others(
    connection: Connection, tournament_id: TournamentId, kept: Collection[Sequence], *, kept_version: int = FOLD_VERSION
) -> None:
    """Removes the snapshots of a tournament, except those of this fold's version at the sequences `kept`, and those of
    `kept_version`, if that is another."""
    other = -1 if kept_version == FOLD_VERSION else kept_version
    await connection.execute(_DROP_OTHERS, tournament_id, FOLD_VERSION, list(kept), other)


# ── Boards as bytes ─────────────────────────────────────────────────────────────────────────────────────
# A part is a list of runs. Those of a ranking follow each other: it, its places, then each unity with its column.


class _Competitors(Struct, tag="competitors", array_like=True):
    """A run of competitors, packed as in memory; likewise of competitions."""

    ids: list[CompetitorId]
    packed: list[Raw]


class _Competitions(Struct, tag="competitions", array_like=True):
    ids: list[CompetitionId]
    packed: list[Raw]


class _Ranking(Struct, tag="ranking", array_like=True):
    ranking_id: RankingId
    number: int
    name: str
    description: str | None
    closed_at: datetime | None
    updated_at: datetime
    revised: Sequence


class _Places(Struct, tag="places", array_like=True):
    """A run of the places of the last ranking, as 64-bit numbers, the lowest byte first."""

    places: bytes


class _Unity(Struct, tag="unity", array_like=True):
    unity_id: UnityId
    number: int
    name: str
    sort: Sort
    version: int


class _Totals(Struct, tag="totals", array_like=True):
    """A run of the sums of the last unity, as places are, or as text where one needs more than 64 bits."""

    totals: bytes | list[str]


_Run = _Competitors | _Competitions | _Ranking | _Places | _Unity | _Totals
_RUN_ITEMS: Final = 500
_RUN_NUMBERS: Final = 32_768

_encode: Final = msgspec.msgpack.Encoder().encode
_undecoded: Final = msgspec.msgpack.Decoder(list[Raw]).decode
_run: Final = msgspec.msgpack.Decoder(_Run).decode
_competitor: Final = msgspec.msgpack.Decoder(Competitor).decode
_competition: Final = msgspec.msgpack.Decoder(Competition).decode


_Id = TypeVar("_Id", bound=int)
_Item = TypeVar("_Item", bound=Struct)


def _parts(board: Board) -> Iterator[bytes]:
    """A board as parts, at least one."""
    gathered, gathered_bytes = [], 0
    for run in _runs(board):
        encoded = _encode(run)
        gathered.append(Raw(encoded))
        gathered_bytes += len(encoded)
        if gathered_bytes >= PART_BYTES:
            yield _encode(gathered)
            gathered, gathered_bytes = [], 0
    yield _encode(gathered)


def _runs(board: Board) -> Iterator[_Run]:
    for competitor_ids in _runs_of_ids(board.competitors):
        yield _Competitors(competitor_ids, [Raw(board.competitors.packed[c]) for c in competitor_ids])
    for competition_ids in _runs_of_ids(board.competitions):
        yield _Competitions(competition_ids, [Raw(board.competitions.packed[c]) for c in competition_ids])
    for ranking_id, ranking in board.rankings.items():
        yield _Ranking(
            ranking_id,
            ranking.number,
            ranking.name,
            ranking.description,
            ranking.closed_at,
            ranking.updated_at,
            ranking.revised,
        )
        places = ranking.participants.places
        for start in range(0, len(places), _RUN_NUMBERS):
            yield _Places(_as_bytes(places[start : start + _RUN_NUMBERS]))
        for unity_id, unity in ranking.unities.items():
            yield _Unity(unity_id, unity.number, unity.name, unity.sort, unity.version)
            column = unity.totals.column
            for start in range(0, len(column), _RUN_NUMBERS):
                numbers = column[start : start + _RUN_NUMBERS]
                yield _Totals(_as_bytes(numbers) if isinstance(numbers, array) else list(map(str, numbers)))


def _runs_of_ids(items: Packed[_Id, _Item]) -> Iterator[list[_Id]]:
    for first in range(1, len(items) + 1, _RUN_ITEMS):
        yield items.ids(first, first + _RUN_ITEMS - 1)


def _take(part: bytes, board: Board) -> Iterator[None]:
    """Adds a part to a board that has the parts before it, step by step."""
    for raw in _undecoded(part):
        run = _run(raw)
        match run:
            case _Competitors():
                for competitor_id, packed in zip(run.ids, run.packed, strict=True):
                    _competitor(packed)  # raises an error if it is none
                    board.competitors.put(competitor_id, bytes(packed))
            case _Competitions():
                for competition_id, packed in zip(run.ids, run.packed, strict=True):
                    _competition(packed)
                    board.competitions.put(competition_id, bytes(packed))
            case _Ranking():
                board.rankings[run.ranking_id] = Ranking(
                    number=run.number,
                    name=run.name,
                    description=run.description,
                    closed_at=run.closed_at,
                    participants=Enrolment(),
                    unities={},
                    updated_at=run.updated_at,
                    revised=run.revised,
                )
            case _Places():
                _last(board.rankings).participants.append_places(_as_numbers(run.places))
            case _Unity():
                ranking = _last(board.rankings)
                ranking.unities[run.unity_id] = Unity(
                    number=run.number,
                    name=run.name,
                    sort=run.sort,
                    version=run.version,
                    totals=Totals(ranking.participants),
                )
            case _Totals():
                numbers = _as_numbers(run.totals) if isinstance(run.totals, bytes) else list(map(int, run.totals))
                _last(_last(board.rankings).unities).totals.append_column(numbers)
            case _:
                assert_never(run)
        yield


_T = TypeVar("_T")


def _last(items: dict[Any, _T]) -> _T:
    """The item that was added last. Raises LookupError."""
    return items[next(reversed(items), None)]


def _as_bytes(numbers: "array[int]") -> bytes:
    return (numbers if sys.byteorder == "little" else _swapped(numbers)).tobytes()


def _as_numbers(stored: bytes) -> "array[int]":
    numbers = array("q", stored)
    return numbers if sys.byteorder == "little" else _swapped(numbers)


def _swapped(numbers: "array[int]") -> "array[int]":
    swapped = numbers[:]
    swapped.byteswap()
    return swapped
