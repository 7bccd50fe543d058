"""The progress and the findings of a verification, kept in a file, so that an interrupted verification can continue.

The file is an SQLite database and belongs to one run. A run begins if the file has none, and ends when every tournament
is done. The file helps the verifier and proves nothing: keep it where the database's owner cannot write.
"""

import secrets
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from engine.domain.errors import Unacceptable
from engine.domain.terms import CompetitionId, CompetitorId, Sequence, TournamentId, UnityId
from engine.log.digest import genesis
from projections.board.board import FOLD_VERSION, Board
from projections.board.parts import parts_of, take_part
from projections.verification.stored_log import SetAside

TOURNAMENT_DIFFERENCES_MAX: Final = 1_000
"""Differences that are kept for one tournament. Further ones are only counted."""

# ── What is known of a tournament ───────────────────────────────────────────────────────────────────────


class Difference(Struct, frozen=True, kw_only=True):
    """One violation of a check. `tournament`: its slug, or "" for none. `sequence` None: it concerns no particular
    event."""

    tournament: str
    sequence: Sequence | None
    field: str
    message: str

    def __str__(self) -> str:
        where = self.tournament or "the database"
        at = "" if self.sequence is None else f" at sequence {self.sequence}"
        return f"{where}{at}: {self.field}: {self.message}"


Sums = dict[UnityId, dict[CompetitorId, int]]


class CausedSum(Struct, array_like=True):
    """The points that one competition caused: the number of events that gave them, and the sum of their hashes."""

    count: int = 0
    sum: int = 0


class Progress(Struct, kw_only=True):
    """One tournament, verified up to `sequence`, the end of a block.

    `board` and `sums` are what its events give up to there. `caused_sums` are the points that each competition caused,
    by hashes that nobody can foresee without `salt`. Once it is `done`, `board` is None, and `sums` and `caused_sums`
    are empty. `foldable` tells whether every event could be folded, `keys` counts the idempotency keys of events, and
    `caused` the events that are in the index of what competitions caused. `tables_at` is the sequence at which the
    tables were compared; None: they were not yet. `snapshots` and `notes` count those that were compared. `differences`
    holds the first TOURNAMENT_DIFFERENCES_MAX of `differences_count`; `unchecked` says what could not be looked at, and
    why. `structure_kept` tells whether its blocks say what was structural. `ignored` are the events that were not
    folded because they are set aside; `set_aside` describes them once it is done. `erased` has the competitors that
    events erased; `lacking`, of each competitor without personal fields where there should be some, the first event.
    """

    tournament_id: TournamentId
    slug: str
    sequence: Sequence = Sequence(0)
    digest: bytes
    recorded_us: int | None = None
    structure_sequence: Sequence = Sequence(0)
    structure_kept: bool = False
    salt: int = field(default_factory=lambda: secrets.randbits(60))
    caused_sums: dict[CompetitionId, CausedSum] = field(default_factory=dict)
    ignored: list[Sequence] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    board: Board | None = field(default_factory=Board)
    sums: Sums = field(default_factory=dict)
    foldable: bool = True
    events: int = 0
    blocks: int = 0
    keys: int = 0
    caused: int = 0
    tables_at: Sequence | None = None
    snapshots: int = 0
    notes: int = 0
    differences: list[Difference] = field(default_factory=list)
    differences_count: int = 0
    erased: list[CompetitorId] = field(default_factory=list)
    lacking: dict[CompetitorId, Sequence] = field(default_factory=dict)
    unchecked: list[str] = field(default_factory=list)
    done: bool = False


def beginning(tournament_id: TournamentId, slug: str) -> Progress:
    """The progress before anything is verified."""
    return Progress(tournament_id=tournament_id, slug=slug, digest=genesis(tournament_id))


# ── The file ────────────────────────────────────────────────────────────────────────────────────────────

# It names the version of Python: in all processes of one version the hashes in `caused_sums` are the same.
_FORMAT: Final = f"tallybook verification 6, fold {FOLD_VERSION}, {sys.implementation.cache_tag}"
_CREATE: Final = """
    CREATE TABLE IF NOT EXISTS run (format TEXT NOT NULL, arguments TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS progress (
        tournament_id INTEGER PRIMARY KEY,
        done          INTEGER NOT NULL,
        progress      BLOB NOT NULL
    );
    CREATE TABLE IF NOT EXISTS board (tournament_id INTEGER PRIMARY KEY, parts BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS verified (tournament_id INTEGER PRIMARY KEY, verified_at REAL NOT NULL)
"""
_RUN: Final = "SELECT format, arguments FROM run"
_BEGIN: Final = "INSERT INTO run (format, arguments) VALUES (?, ?)"
_END: Final = "DELETE FROM run"
_CLEAR: Final = "DELETE FROM progress; DELETE FROM board"
_KEEP: Final = "INSERT OR REPLACE INTO progress (tournament_id, done, progress) VALUES (?, ?, ?)"
_KEEP_BOARD: Final = "INSERT OR REPLACE INTO board (tournament_id, parts) VALUES (?, ?)"
_KEPT_BOARD: Final = "SELECT parts FROM board WHERE tournament_id = ?"
_FORGET_BOARD: Final = "DELETE FROM board WHERE tournament_id = ?"
_KEPT: Final = "SELECT progress FROM progress WHERE tournament_id = ?"
_FORGET: Final = "DELETE FROM progress WHERE tournament_id = ?"
_VERIFIED: Final = "INSERT OR REPLACE INTO verified (tournament_id, verified_at) VALUES (?, ?)"
_VERIFIED_AT: Final = "SELECT tournament_id, verified_at FROM verified"


class ProgressFile:
    """The state of every tournament of a run. Without a path, nothing outlives the process, and only finished
    tournaments are kept."""

    def __init__(self, path: Path | None, arguments: str) -> None:
        """Raises Unacceptable if the file is not a progress file, or belongs to a run with other arguments, another
        fold or another Python."""
        self.path = path
        self.resumed = False
        try:
            self._file = sqlite3.connect("" if path is None else path, isolation_level=None)
            try:
                self._begin(arguments)
            except (sqlite3.Error, Unacceptable):
                self._file.close()
                raise
        except sqlite3.Error as error:
            raise Unacceptable(f"{path} cannot be used as the state of a verification: {error}.") from error

    def _begin(self, arguments: str) -> None:
        self._file.executescript(_CREATE)
        run = self._file.execute(_RUN).fetchone()
        if run is None:
            self._file.executescript(_CLEAR)
            self._file.execute(_BEGIN, (_FORMAT, arguments))
        elif run != (_FORMAT, arguments):
            raise Unacceptable(f"{self.path} belongs to a verification with other arguments ({run[1]}); delete it.")
        else:
            self.resumed = True

    def of(self, tournament_id: TournamentId) -> Progress | None:
        row = self._file.execute(_KEPT, (tournament_id,)).fetchone()
        if row is None:
            return None
        progress = _decode(row[0])
        board = self._file.execute(_KEPT_BOARD, (tournament_id,)).fetchone()
        if board is not None:
            progress.board = Board()
            for part in _decode_parts(board[0]):
                for _ in take_part(part, progress.board):
                    pass
        return progress

    def keep(self, progress: Progress) -> None:
        """Keeps `progress`. If there is a file, it is on disk on return."""
        if self.path is None and not progress.done:
            return
        tournament_id, board = progress.tournament_id, progress.board
        self._file.execute("BEGIN")
        without_board = msgspec.structs.replace(progress, board=None)
        self._file.execute(_KEEP, (tournament_id, progress.done, _encode(without_board)))
        self._file.execute(_FORGET_BOARD, (tournament_id,))
        if board is not None:
            self._file.execute(_KEEP_BOARD, (tournament_id, _encode(list(parts_of(board)))))
        self._file.execute("COMMIT")

    def keep_verified(self, tournament_id: TournamentId) -> None:
        """Notes that a tournament was verified just now, and forgets its progress."""
        self._file.execute("BEGIN")
        self._file.execute(_VERIFIED, (tournament_id, time.time()))
        self._file.execute(_FORGET, (tournament_id,))
        self._file.execute(_FORGET_BOARD, (tournament_id,))
        self._file.execute("COMMIT")

    def verified_at(self) -> dict[TournamentId, float]:
        """When each tournament was verified last, in seconds since 1970."""
        with closing(self._file.execute(_VERIFIED_AT)) as rows:
            return dict(rows)

    def end(self) -> None:
        """Ends the run: the next one starts from the beginning."""
        self._file.execute(_END)

    def close(self) -> None:
        self._file.close()


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Progress).decode
_decode_parts: Final = msgspec.msgpack.Decoder(list[bytes]).decode
