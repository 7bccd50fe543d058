"""Boards as they once were: where an answer about the past starts to fold from.

The only SQL on snapshots. A snapshot is what the log gives up to its sequence, the end of a block. Without one, folding
starts at the beginning. The worker writes a snapshot when enough events have been folded to make it worth its size. So
all of them together grow as the log does, and an answer about the past costs as much as the size of the state.

A process also goes on from them if its tables were replaced by those of another version of the fold. The snapshots of
its own version stay until the version after that, so that it need not replay whole logs.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec
from asyncpg import Connection
from msgspec import Raw, Struct, field

from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log.log import Head
from engine.process.turns import Turns
from projections.board.board import FOLD_VERSION, Board, Competition, Competitor, Ranking, Unity

INTERVAL_EVENTS_MIN: Final = 10_000
INTERVAL_EVENTS_PER_ROW: Final = 20
"""A row of a snapshot takes some 20 to 100 bytes, so snapshots add a few bytes to each event of the log."""

_NEAREST: Final = """
    SELECT sequence, digest, board
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
_SAVE: Final = """
    INSERT INTO snapshot (tournament_id, fold_version, sequence, digest, board)
    SELECT s.tournament_id, $2, s.sequence, s.digest, s.board
    FROM unnest($1::bigint[], $3::bigint[], $4::bytea[], $5::bytea[]) AS s (tournament_id, sequence, digest, board)
    ON CONFLICT (tournament_id, fold_version, sequence) DO UPDATE
    SET digest = excluded.digest, board = excluded.board
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
        rows += len(ranking.participants) + sum(len(unity.totals) for unity in ranking.unities.values())
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
    try:
        board = Board()
        await (turns or Turns()).work(_decode(row["board"], board))
        return Snapshot(Head(row["sequence"], row["digest"]), board)
    except (msgspec.MsgspecError, ValueError) as error:
        raise SnapshotUndecodable(row["sequence"], error) from error


async def sequences(connection: Connection, tournament_id: TournamentId) -> list[Sequence]:
    """The sequences of the snapshots of this fold's version, ascending."""
    return [row["sequence"] for row in await connection.fetch(_SEQUENCES, tournament_id, FOLD_VERSION)]


async def count_others(connection: Connection, tournament_id: TournamentId) -> int:
    """How many snapshots there are of other versions of the fold."""
    count: int = await connection.fetchval(_COUNT_OTHERS, tournament_id, FOLD_VERSION)
    return count


async def save(connection: Connection, snapshots: Mapping[TournamentId, Snapshot]) -> None:
    """Writes one snapshot of each tournament."""
    if snapshots:
        await connection.execute(
            _SAVE,
            list(snapshots),
            FOLD_VERSION,
            [snapshot.head.sequence for snapshot in snapshots.values()],
            [snapshot.head.digest for snapshot in snapshots.values()],
            [_encode(snapshot.board) for snapshot in snapshots.values()],
        )


async def drop_others(
    connection: Connection, tournament_id: TournamentId, kept: Collection[Sequence], *, kept_version: int = FOLD_VERSION
) -> None:
    """Removes the snapshots of a tournament, except those of this fold's version at the sequences `kept`, and those of
    `kept_version`, if that is another."""
    other = -1 if kept_version == FOLD_VERSION else kept_version
    await connection.execute(_DROP_OTHERS, tournament_id, FOLD_VERSION, list(kept), other)


_encode: Final = msgspec.msgpack.Encoder().encode


class _Undecoded(Struct):
    """A board whose parts are as they are stored."""

    competitors: dict[CompetitorId, Raw] = field(default_factory=dict)
    competitions: dict[CompetitionId, Raw] = field(default_factory=dict)
    rankings: dict[RankingId, Raw] = field(default_factory=dict)


class _UndecodedRanking(Ranking, frozen=True, kw_only=True):
    unities: dict[UnityId, Raw]  # type: ignore[assignment] # as they are stored


def _decode(stored: bytes, board: Board) -> Iterator[None]:
    """Fills an empty board, step by step."""
    undecoded = _board(stored)
    yield
    for number, (competitor_id, competitor) in enumerate(undecoded.competitors.items(), start=1):
        board.competitors[competitor_id] = _competitor(competitor)
        if number % _STEP == 0:
            yield
    for number, (competition_id, competition) in enumerate(undecoded.competitions.items(), start=1):
        board.competitions[competition_id] = _competition(competition)
        if number % _STEP == 0:
            yield
    for ranking_id, stored_ranking in undecoded.rankings.items():
        ranking = _ranking(stored_ranking)
        yield
        unities = {}
        for unity_id, unity in ranking.unities.items():
            unities[unity_id] = _unity(unity)
            yield
        board.rankings[ranking_id] = Ranking(**(msgspec.structs.asdict(ranking) | {"unities": unities}))


_STEP: Final = 200
_board: Final = msgspec.msgpack.Decoder(_Undecoded).decode
_competitor: Final = msgspec.msgpack.Decoder(Competitor).decode
_competition: Final = msgspec.msgpack.Decoder(Competition).decode
_ranking: Final = msgspec.msgpack.Decoder(_UndecodedRanking).decode
_unity: Final = msgspec.msgpack.Decoder(Unity).decode
