"""Defects that one tournament met: counted, logged with their traceback, and noted where operators look.

A defect is an exception without an answer of its own, while the log of a tournament is judged, folded, read or passed
on. Its effect is limited to that tournament: code that works for many catches it where the work for each begins, and
reports it here. An exception while a request is answered concerns that request alone (`api/http/front.py`). This file
has the only SQL on the table `defect`.
"""

from enum import StrEnum
from typing import Final

import asyncpg
from asyncpg import Connection
from msgspec import Struct

from engine.database.pool import DATABASE_TROUBLE, Database
from engine.domain.errors import TallybookError
from engine.domain.terms import TournamentId
from engine.process.logs import Logger
from engine.process.telemetry import DEFECTS, by_kind

SHOWN_SECONDS: Final = 600.0
"""How long a defect is shown after its last occurrence."""
REASON_CHARACTERS_MAX: Final = 500

_NOTE: Final = """
    INSERT INTO defect (tournament_id, part, reason, met_at)
    VALUES ($1, $2, $3, now())
    ON CONFLICT (tournament_id, part) DO UPDATE
    SET reason = excluded.reason, met_at = excluded.met_at
"""
_RECENT: Final = """
    SELECT tournament_id, part, reason
    FROM defect
    WHERE met_at > now() - $1 * interval '1 second'
    ORDER BY met_at DESC, tournament_id, part
    LIMIT $2
"""

_FORGET: Final = "DELETE FROM defect WHERE tournament_id = $1"

_logger: Final = Logger()


class DefectPart(StrEnum):
    """The part of the work for a tournament in which a defect occurred."""

    JUDGING = "judging"
    READING = "reading"
    STREAMING = "streaming"
    DELIVERING = "delivering"
    TABLES = "tables"
    VERIFYING = "verifying"


_DEFECTS: Final = by_kind(DEFECTS, DefectPart)


class Defect(Struct, frozen=True):
    """The last defect in one part of the work for a tournament."""

    tournament_id: TournamentId
    part: DefectPart
    reason: str


def is_defect(error: BaseException) -> bool:
    """Whether an exception is a defect: not a refusal or failure of this program, nor an error of the database or a
    client."""
    return isinstance(error, Exception) and not isinstance(
        error, (TallybookError, asyncpg.PostgresError, *DATABASE_TROUBLE)
    )


def alarm(tournament_id: TournamentId, part: DefectPart, error: Exception) -> None:
    """Counts and logs a defect."""
    _DEFECTS[part].inc()
    _logger.error("tournament_defect", tournament_id=tournament_id, part=part, error=_named(error), exc_info=error)


async def note(database: Database, tournament_id: TournamentId, part: DefectPart, error: Exception) -> None:
    """Notes a defect for operators. If the database does not accept the note, only the log has it."""
    try:
        async with database.connection() as connection:
            await note_over(connection, tournament_id, part, error)
    except (TallybookError, asyncpg.PostgresError) as trouble:
        _logger.warning("defect_not_noted", tournament_id=tournament_id, error=repr(trouble))


async def note_over(connection: Connection, tournament_id: TournamentId, part: DefectPart, error: Exception) -> None:
    """As `note`, over this connection. Raises its errors."""
    await connection.execute(_NOTE, tournament_id, part.value, _named(error))


async def forget(connection: Connection, tournament_id: TournamentId) -> None:
    """Removes the notes about a tournament, because they may cite an erased name."""
    await connection.execute(_FORGET, tournament_id)


async def recent(connection: Connection, limit: int) -> list[Defect]:
    """The defects of the last SHOWN_SECONDS, the latest first."""
    return [
        Defect(row["tournament_id"], DefectPart(row["part"]), row["reason"])
        for row in await connection.fetch(_RECENT, SHOWN_SECONDS, limit)
    ]


def _named(error: Exception) -> str:
    """The error as text that a column can hold, because the error may cite anything."""
    text = repr(error)[:REASON_CHARACTERS_MAX].replace("\0", "\\0")
    return text.encode("utf-8", "backslashreplace").decode()
