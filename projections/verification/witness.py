"""Outside digests: heads noted in a file elsewhere, out of reach of those who control the database.

A file of notes is NDJSON, a line for a tournament's head at some time, only ever appended to:

    {"tournament":7,"slug":"cup","sequence":41,"digest":"…64 hex…","recorded_at":"…","noted_at":"…"}

The chain of a log proves that it is intact up to its head. A note of an earlier head proves that the log had this
content at that time. A line that a crash cut off is skipped, and reported.
"""

import asyncio
import codecs
import os
import sqlite3
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from asyncpg import Connection, PostgresError
from msgspec import Struct

from engine.database.pool import open_database
from engine.domain.errors import Fault, TallybookError, Unacceptable
from engine.domain.terms import ID_MAX, Sequence, TournamentId
from engine.process.logs import Logger
from projections.verification import stored_log

UNREADABLE_MAX: Final = 20
"""Unreadable lines whose numbers are kept, or named in one refusal."""
NOTE_BYTES_MAX: Final = 4_096
"""One line of a file of notes; a longer one is no note."""
_DIGEST_CHARACTERS: Final = 64

_logger: Final = Logger()


class Note(Struct, frozen=True, kw_only=True):
    """A tournament's head, the time of its last event, and when this was noted. `digest` is hexadecimal."""

    tournament: TournamentId
    slug: str
    sequence: Sequence
    digest: str
    recorded_at: datetime
    noted_at: datetime

    def __post_init__(self) -> None:
        if len(self.digest) != _DIGEST_CHARACTERS or len(bytes.fromhex(self.digest)) * 2 != _DIGEST_CHARACTERS:
            raise ValueError("a digest has 32 bytes")
        if not (0 < self.tournament <= ID_MAX and 0 <= self.sequence <= ID_MAX):
            raise ValueError("there are no such numbers")


# ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────


async def current_notes(connection: Connection, tournament_id: TournamentId | None = None) -> list[Note]:
    """The heads of all tournaments, or of one, as they are now."""
    now = datetime.now(UTC)
    return [
        Note(
            tournament=tournament.tournament_id,
            slug=tournament.slug,
            sequence=tournament.sequence,
            digest=tournament.digest.hex(),
            recorded_at=tournament.recorded_at,
            noted_at=now,
        )
        for tournament in await stored_log.registered_tournaments(connection, tournament_id)
        if tournament.sequence is not None and tournament.digest is not None and tournament.recorded_at is not None
    ]


def add(path: Path, notes: Iterable[Note] = ()) -> None:
    """Appends the notes to a file of digests, as `append` does. Raises Unacceptable if it is another file, or cannot be
    written."""
    try:
        last_noted(path)
        append(path, notes)
    except OSError as error:
        raise Unacceptable(f"{path} cannot be written: {error.strerror}.") from error


def append(path: Path, notes: Iterable[Struct]) -> None:
    """Appends the notes, or others, whole lines, and returns when they are on disk. No notes make an empty file. Raises
    OSError."""
    lines = b"".join(_encode(note) + b"\n" for note in notes)
    is_new = not path.exists()
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        if lines and _is_torn(file):
            lines = b"\n" + lines
        while lines:
            lines = lines[os.write(file, lines) :]
        os.fsync(file)
    finally:
        os.close(file)
    if is_new:
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _is_torn(file: int) -> bool:
    """Whether the file ends within a line."""
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"


async def keep_noting(dsn: str, path: Path, every_seconds: float) -> None:
    """Notes the heads that have changed, every `every_seconds`, until it is cancelled. A failure becomes a log line and
    is tried again next time: a service must not stop because its witness cannot write."""
    last: dict[TournamentId, tuple[Sequence, str]] | None = None
    while True:
        try:
            if last is None:
                last = await asyncio.to_thread(last_noted, path)
            async with (
                open_database(dsn, name="tallybook digests", connections_max=1) as database,
                database.connection() as connection,
            ):
                notes = await current_notes(connection)
            fresh = [note for note in notes if last.get(note.tournament) != (note.sequence, note.digest)]
            await asyncio.to_thread(append, path, fresh)
            last |= {note.tournament: (note.sequence, note.digest) for note in fresh}
            if fresh:
                _logger.info("digests_noted", tournaments=len(fresh))
        except (OSError, TallybookError, PostgresError) as error:
            _failed(error)
        await asyncio.sleep(every_seconds)


def _failed(error: Exception) -> None:
    _logger.error("digests_failed", reason=str(error))


def last_noted(path: Path) -> dict[TournamentId, tuple[Sequence, str]]:
    """The last sequence and digest that a file has of each tournament; none if there is no file. Raises OSError, and
    Unacceptable if it is another file: a line of it is neither a note nor cut off."""
    if not path.exists():
        return {}
    last: dict[TournamentId, tuple[Sequence, str]] = {}
    wrong: list[Fault] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if (note := _read(line)) is not None:
                last[note.tournament] = (note.sequence, note.digest)
            elif line.strip() and not is_cut_off(line) and len(wrong) < UNREADABLE_MAX:
                wrong.append(Fault(f"line {number}", "it is not a noted digest"))
    if wrong:
        raise Unacceptable(f"{path} is not a file of digests; nothing was added.", wrong)
    return last


def is_cut_off(line: bytes) -> bool:
    """Whether the line begins as one of a tournament, and a crash may have cut it off."""
    text = line.rstrip()
    try:
        msgspec.json.decode(text)
    except RecursionError:
        return False
    except ValueError:
        return text[: len(_BEGIN)] == _BEGIN[: len(text)]
    return False


_BEGIN: Final = b'{"tournament":'


_encode: Final = msgspec.json.Encoder().encode

# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────

_CREATE: Final = """
    CREATE TABLE note (
        tournament INTEGER NOT NULL,
        sequence   INTEGER NOT NULL,
        digest     BLOB NOT NULL,
        slug       TEXT NOT NULL,
        PRIMARY KEY (tournament, sequence, digest)
    ) WITHOUT ROWID
"""
_INSERT: Final = "INSERT OR IGNORE INTO note (tournament, sequence, digest, slug) VALUES (?, ?, ?, ?)"
_OF: Final = "SELECT sequence, digest FROM note WHERE tournament = ? AND sequence > ? ORDER BY sequence LIMIT ?"
_LAST: Final = "SELECT tournament, slug, max(sequence) FROM note GROUP BY tournament ORDER BY tournament"
_PAGE: Final = 1_000
_CHUNK: Final = 10_000


class NotedDigests(Struct, frozen=True):
    """Every digest that was noted for a sequence. More than one: the log was not the same each time."""

    sequence: Sequence
    digests: tuple[bytes, ...]


class Witness:
    """A file of notes, by tournament. They are kept in a temporary file, so that any number takes little memory.

    `lines` counts the lines read so far, `unreadable` those of them that are no notes; `unreadable_lines` has the
    numbers of the first of these. `torn`: the last line has no end.
    """

    def __init__(self, path: Path) -> None:
        self.lines = 0
        self.unreadable = 0
        self.unreadable_lines: list[int] = []
        self.torn = False
        self._path = path
        self._read_bytes = 0
        self._notes = sqlite3.connect("", isolation_level=None)
        self._notes.execute(_CREATE)

    def read(self) -> None:
        """Reads the lines appended since the last call. Raises OSError.

        Call it before a snapshot of the database is taken, not after. Otherwise a note could be newer than the
        snapshot, and look as if the log's tail had been cut off.
        """
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            chunk: list[tuple[int, int, bytes, str]] = []
            for line in _whole_lines(file):
                self._read_bytes += len(line)
                self.lines += 1
                note = _read(line)
                if note is not None:
                    chunk.append((note.tournament, note.sequence, bytes.fromhex(note.digest), note.slug))
                elif line.strip():
                    self._pass_over()
                if len(chunk) >= _CHUNK:
                    self._keep(chunk)
            self._keep(chunk)
            self.torn = os.fstat(file.fileno()).st_size > self._read_bytes

    def _pass_over(self) -> None:
        self.unreadable += 1
        if len(self.unreadable_lines) < UNREADABLE_MAX:
            self.unreadable_lines.append(self.lines)

    def _keep(self, chunk: list[tuple[int, int, bytes, str]]) -> None:
        self._notes.execute("BEGIN")
        self._notes.executemany(_INSERT, chunk)
        self._notes.execute("COMMIT")
        chunk.clear()

    def digests_of(self, tournament_id: TournamentId, after: Sequence) -> Iterator[NotedDigests]:
        """The notes of a tournament beyond `after`, in the order of sequences."""
        while True:
            rows: Items[tuple[int, bytes]] = self._notes.execute(_OF, (tournament_id, after, _PAGE)).fetchall()
            whole = len(rows) < _PAGE
            digests: dict[int, list[bytes]] = {}
            for sequence, digest in rows:
                digests.setdefault(sequence, []).append(digest)
            if not whole and len(digests) > 1:
                digests.popitem()  # the next page has all of it
            for sequence, of_sequence in digests.items():
                yield NotedDigests(Sequence(sequence), tuple(of_sequence))
                after = Sequence(sequence)
            if whole:
                return

    def tournaments(self) -> Iterator[tuple[TournamentId, str, Sequence]]:
        """Each noted tournament, its slug, and its last noted sequence."""
        with closing(self._notes.execute(_LAST)) as rows:
            for tournament_id, slug, sequence in rows:
                yield TournamentId(tournament_id), slug, Sequence(sequence)

    def close(self) -> None:
        self._notes.close()


def _whole_lines(file: Iterable[bytes]) -> Iterator[bytes]:
    for line in file:
        if not line.endswith(b"\n"):
            return
        yield line


def _read(line: bytes) -> Note | None:
    """The note on a line; None: it is no note."""
    try:
        return _decode(line.removeprefix(codecs.BOM_UTF8)) if len(line) <= NOTE_BYTES_MAX else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


_decode: Final = msgspec.json.Decoder(Note).decode
