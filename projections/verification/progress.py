"""The progress of a verification, kept in a file, so that an interrupted verification can continue.

The file is an SQLite database and belongs to one run. A run begins if the file has none, and ends when every tournament
is done. The file helps the verifier and proves nothing: keep it where the database's owner cannot write.
"""

import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from engine.domain.errors import Unacceptable
from engine.domain.terms import TournamentId
from engine.log.digest import genesis
from projections.board.board import FOLD_VERSION, Board
from projections.board.parts import parts_of, take_part
from projections.verification.block_checks import Blocks, PersonalFields
from projections.verification.derived_checks import Compared
from projections.verification.findings import Account
from projections.verification.fold_checks import FoldState
from projections.verification.setting_aside import SetAside

# ── What is known of a tournament ───────────────────────────────────────────────────────────────────────


class Progress(Struct, kw_only=True):
    """One tournament, verified up to the end of `blocks`. Each part is explained, and kept current, by its type.

    `board` and `folded` are what its events give up to there; once all is verified, `board` is None. `set_aside`
    describes the events that were set aside, once all is verified.
    """

    tournament_id: TournamentId
    slug: str
    blocks: Blocks
    board: Board | None = field(default_factory=Board)
    folded: FoldState = field(default_factory=FoldState)
    names: PersonalFields = field(default_factory=PersonalFields)
    compared: Compared = field(default_factory=Compared)
    account: Account = field(default_factory=Account)
    set_aside: list[SetAside] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether all is verified."""
        return self.board is None


def beginning(tournament_id: TournamentId, slug: str) -> Progress:
    """The progress before anything is verified."""
    return Progress(tournament_id=tournament_id, slug=slug, blocks=Blocks(digest=genesis(tournament_id)))


# ── The file ────────────────────────────────────────────────────────────────────────────────────────────

# It names the version of Python: in all processes of one version the hashes in `caused_sums` are the same.
_FORMAT: Final = f"tallybook verification 7, fold {FOLD_VERSION}, {sys.implementation.cache_tag}"
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
        progress = _decode(row[0])  # without its board
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
