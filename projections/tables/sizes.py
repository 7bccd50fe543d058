"""Estimates the memory of boards, and keeps boards on a shelf up to a bound in bytes.

Pure. Measured on CPython 3.11 with ordinary names.
"""

from collections import OrderedDict
from typing import Final

from engine.domain.terms import Sequence, TournamentId
from engine.log.heads import Head
from projections.board.board import Board

MEMORY_BYTES: Final = 512 * 1024 * 1024
"""Bytes of tournaments that a process keeps in memory, estimated, unless its operator chooses otherwise."""
MEASURED_EVERY_EVENTS: Final = 256
"""The number of events after which the size of a board in use is estimated again, because that takes about 1 µs per
unity."""
_BYTES: Final = 4_000
_RANKING_BYTES: Final = 1_400
_UNDONE_BYTES: Final = 170
_REPLACED_BYTES: Final = 300
_UNITY_BYTES: Final = 500


def board_bytes(board: Board) -> int:
    """The estimated bytes of `board` in memory. It visits every unity."""
    size = _BYTES + board.competitors.size_bytes + board.competitions.size_bytes
    for ranking in board.rankings.values():
        size += _RANKING_BYTES + ranking.participants.size_bytes + _UNDONE_BYTES * len(ranking.undone)
        size += _REPLACED_BYTES * sum(map(len, ranking.replaced.values()))
        for unity in ranking.unities.values():
            size += _UNITY_BYTES + unity.totals.size_bytes
    return size


class Shelf:
    """Boards with their heads: the last ones stored, up to `bytes_max` bytes.

    The last one stays, however large it is. Otherwise a tournament larger than the shelf would be read from its tables
    for each of its batches.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._measured: dict[TournamentId, tuple[Sequence, int]] = {}  # at which event, and the size then
        self._boards: OrderedDict[TournamentId, tuple[Head, Board, int]] = OrderedDict()

    def __contains__(self, tournament_id: TournamentId) -> bool:
        return tournament_id in self._boards

    def put(self, tournament_id: TournamentId, head: Head, board: Board) -> None:
        """Keeps `board`, and replaces one of the same tournament. Drops the oldest others if there is no room."""
        self.take(tournament_id)
        measured = self._measured.get(tournament_id)
        if measured is None or not 0 <= head.sequence - measured[0] < MEASURED_EVERY_EVENTS:
            measured = self._measured[tournament_id] = head.sequence, board_bytes(board)
        size = measured[1]
        self._boards[tournament_id] = head, board, size
        self.bytes += size
        while self.bytes > self._bytes_max and len(self._boards) > 1:
            self.drop(next(iter(self._boards)))

    def drop(self, tournament_id: TournamentId) -> bool:
        """Removes a board. Returns whether it was there."""
        self._measured.pop(tournament_id, None)
        return self.take(tournament_id) is not None

    def take(self, tournament_id: TournamentId) -> tuple[Head, Board] | None:
        """Removes a board that will be put back, and returns it with its head; None: it is not on the shelf."""
        if tournament_id not in self._boards:
            return None
        head, board, size = self._boards.pop(tournament_id)
        self.bytes -= size
        return head, board
