"""Snapshots: stored boards from which answers about the past start to fold.

This file has the only SQL on snapshots. A snapshot is the fold of the log up to its sequence, the end of a block.
Without one, folding starts at the beginning. The worker writes a snapshot when enough events have been folded to make
it worth its size. So the total size of snapshots grows in proportion to the log, and the cost of an answer about the
past in proportion to the state.

A process also uses snapshots if another version of the fold has replaced its tables. Snapshots of a version stay until
the version after the next, so that processes of that version need not replay whole logs.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec
from asyncpg import Connection
from msgspec import Struct

from engine.domain.terms import CompetitorId, Sequence, TournamentId
from engine.log.heads import Head
from engine.process.time_slices import TimeSlice, TimeSlices
from projections.board.board import FOLD_VERSION, Board, board_like
from projections.board.board import erase as erase_on
from projections.board.parts import parts_of, take_part

INTERVAL_EVENTS_MIN: Final = 10_000
INTERVAL_EVENTS_PER_ROW: Final = 20
"""A row of a snapshot takes some 20 to 100 bytes, so snapshots add a few bytes to each event of the log."""

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


_VERSIONS: Final = """
    SELECT tournament_id, sequence, fold_version
    FROM snapshot
    WHERE tournament_id = ANY($1::bigint[])
    ORDER BY tournament_id, sequence
"""


class Snapshot(Struct, frozen=True):
    """A board and its head."""

    head: Head
    board: Board


class SnapshotUndecodable(ValueError):
    """The bytes stored at `sequence` are not a board."""

    def __init__(self, sequence: Sequence, error: Exception) -> None:
        super().__init__(f"the snapshot at {sequence} cannot be read: {error}")
        self.sequence = sequence


def interval_events(board: Board) -> int:
    """The number of events after which the next snapshot of such a board is worth its size."""
    rows = len(board.competitors) + len(board.competitions)
    for ranking in board.rankings.values():
        rows += len(ranking.participants) + sum([len(unity.totals.column) for unity in ranking.unities.values()])
    return max(INTERVAL_EVENTS_MIN, rows * INTERVAL_EVENTS_PER_ROW)


def is_due(head: Head, board: Board, last: Sequence) -> bool:
    """Whether a snapshot of `board` is due; `last`: the sequence of the previous one. For nearly all tournaments, one
    comparison shows that none is due."""
    behind = head.sequence - last
    return behind >= INTERVAL_EVENTS_MIN and behind >= interval_events(board)


async def nearest(
    connection: Connection,
    tournament_id: TournamentId,
    upto: Sequence,
    time_slices: TimeSlices | None = None,
    *,
    like: Board | None = None,
) -> Snapshot | None:
    """The last snapshot of this fold's version that is not beyond `upto`; None: there is none. Raises
    SnapshotUndecodable.

    With `time_slices`, decoding shares the time slices of other long work. Items equal to those of `like` share their
    memory.
    """
    row = await connection.fetchrow(_NEAREST, tournament_id, FOLD_VERSION, upto)
    if row is None:
        return None
    at, board, part = row["sequence"], Board() if like is None else board_like(like), row["board"]
    try:
        for number in range(1, row["parts"] + 2):
            await (time_slices or TimeSlices()).work(take_part(part, board))
            if number <= row["parts"]:
                part = await connection.fetchval(_PART, tournament_id, FOLD_VERSION, at, number)
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError) as error:
        raise SnapshotUndecodable(at, error) from error
    return Snapshot(Head(at, row["digest"]), board)


async def sequences(connection: Connection, tournament_id: TournamentId) -> list[Sequence]:
    """The sequences of the snapshots of this fold's version, ascending."""
    return [row["sequence"] for row in await connection.fetch(_SEQUENCES, tournament_id, FOLD_VERSION)]


async def versions(
    connection: Connection, tournament_ids: Collection[TournamentId]
) -> dict[TournamentId, list[tuple[Sequence, int]]]:
    """The sequences of the snapshots of each of the tournaments, ascending, with the versions of their folds."""
    found: dict[TournamentId, list[tuple[Sequence, int]]] = {}
    for tournament_id, sequence, version in await connection.fetch(_VERSIONS, list(tournament_ids)):
        found.setdefault(tournament_id, []).append((sequence, version))
    return found


async def save(connection: Connection, snapshots: Mapping[TournamentId, Snapshot]) -> None:
    """Writes one snapshot of each tournament, within a transaction; the parts of a large one in time slices."""
    time_slice = TimeSlice()
    for tournament_id, snapshot in snapshots.items():
        of = tournament_id, FOLD_VERSION, snapshot.head.sequence
        await connection.execute(_REMOVE, *of)
        for number, part in enumerate(parts_of(snapshot.board)):
            if number == 0:
                await connection.execute(_SAVE, *of, snapshot.head.digest, part)
            else:
                await connection.execute(_ADD_PART, *of, number, part)
            if time_slice.over:
                await time_slice.give_way()


async def erase(connection: Connection, tournament_id: TournamentId, competitor_ids: Collection[CompetitorId]) -> None:
    """Erases these competitors in all snapshots of a tournament, within a transaction. Removes unreadable snapshots and
    those of other versions."""
    await drop_others(connection, tournament_id, kept := await sequences(connection, tournament_id))
    for sequence in kept:
        try:
            snapshot = await nearest(connection, tournament_id, sequence)
        except SnapshotUndecodable:
            snapshot = None
        if snapshot is None:
            await connection.execute(_REMOVE, tournament_id, FOLD_VERSION, sequence)
            continue
        erase_on(snapshot.board, competitor_ids)
        await save(connection, {tournament_id: snapshot})


async def drop_others(
    connection: Connection, tournament_id: TournamentId, kept: Collection[Sequence], *, kept_version: int = FOLD_VERSION
) -> None:
    """Removes the snapshots of a tournament, except those of this fold's version at the sequences `kept`, and those of
    `kept_version`, if that is another."""
    other = -1 if kept_version == FOLD_VERSION else kept_version
    await connection.execute(_DROP_OTHERS, tournament_id, FOLD_VERSION, list(kept), other)
