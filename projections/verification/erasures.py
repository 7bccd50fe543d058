"""Erasures, as a list that is kept outside of the database and applied to one that does not know them: after a restore,
or the import of an older archive.

A list is NDJSON, a line for each competitor that was erased, without a word of what was erased:

    {"tournament":7,"slug":"cup","competitor":12,"registered_at":"…","erased_at":"…"}

A restored database may give an id to somebody else. So a line means the competitor with this id that was registered at
this very time.

Nothing here needs a board: a tournament that has stopped forgets, too.
"""

import codecs
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO, Final

import msgspec
from asyncpg import Connection
from msgspec import Meta, Struct

from engine.database.pool import Database
from engine.domain.errors import Conflict, Fault, NotFound, OutcomeUnknown, Unacceptable
from engine.domain.events import CompetitorErased, CompetitorRegistered
from engine.domain.terms import ID_MAX, OPERATOR, CompetitorId, Sequence, TournamentId, slug_fault
from engine.log import appending, codec, heads, reading, registry
from engine.log.appending import Appended, Block, Request, UnconfirmedCommit
from projections.tables import snapshots, tables
from projections.verification.witness import is_cut_off

READ_EVENTS_AT_ONCE: Final = 100_000
"""Events that one statement reads. All of a large log would exceed the time that a statement has."""
ERASE_ATTEMPTS_MAX: Final = 10
"""How often an erasure is appended again because others appended meanwhile."""
LINE_BYTES_MAX: Final = 4_096
"""A longer line is no erasure."""
FAULTS_SHOWN_MAX: Final = 20
"""Unreadable lines that one refusal names."""

_REGISTERED: Final = """
    SELECT b.recorded_at
    FROM personal AS p
    CROSS JOIN LATERAL (
        SELECT recorded_at
        FROM block
        WHERE tournament_id = $1 AND last_sequence >= p.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE p.tournament_id = $1 AND p.competitor_id = $2
    ORDER BY p.sequence
    LIMIT 1
"""
# Reads all these lines: those that were erased are in no index.
_FORGOTTEN: Final = """
    SELECT b.recorded_at, l.line
    FROM block AS b
    CROSS JOIN LATERAL string_to_table(b.text, chr(10)) WITH ORDINALITY AS l (line, n)
    WHERE b.tournament_id = $1 AND b.last_sequence > $2 AND b.last_sequence <= $3 AND b.personal
        AND starts_with(l.line, '["CompetitorRegistered",')
        AND NOT EXISTS (
            SELECT FROM personal WHERE tournament_id = $1 AND sequence = b.first_sequence + l.n - 1
        )
    ORDER BY b.last_sequence, l.n
"""


_Moment = Annotated[datetime, Meta(tz=True)]


class Erasure(Struct, frozen=True, kw_only=True):
    """A line of a list."""

    tournament: Annotated[TournamentId, Meta(ge=1, le=ID_MAX)]
    slug: str
    competitor: Annotated[CompetitorId, Meta(ge=1, le=ID_MAX)]
    registered_at: _Moment
    erased_at: _Moment

    def __post_init__(self) -> None:
        if (fault := slug_fault(self.slug)) is not None:
            raise ValueError(f"the slug {fault}")


class Unread(Struct, frozen=True):
    """A line that is no erasure, and why. `cut_off`: it begins as one, as if a crash had cut it off."""

    reason: str
    cut_off: bool = False


class LineOutcome(StrEnum):
    """What applying a line did."""

    ERASED = "erased"
    ALREADY = "already erased"
    UNKNOWN_TOURNAMENT = "unknown tournament"
    UNKNOWN_COMPETITOR = "unknown competitor"
    UNREADABLE = "unreadable"


class AppliedLine(Struct, frozen=True, kw_only=True):
    """What became of the line with this number. One that cannot be read has the `reason`, and names nobody."""

    line: int
    outcome: LineOutcome
    tournament: TournamentId | None = None
    slug: str | None = None
    competitor: CompetitorId | None = None
    reason: str | None = None


# ── Keeping ─────────────────────────────────────────────────────────────────────────────────────────────


async def erasures(database: Database) -> AsyncIterator[Erasure]:
    """Every competitor that was erased, tournament by tournament."""
    async with database.connection() as connection:
        entries = await registry.tournaments(connection)
    for entry in entries:
        async with database.connection_for(entry.tournament_id) as connection:
            erased = await reading.erased_since(connection, entry.tournament_id, Sequence(0))
            if not erased:
                continue
            head = (await heads.current(connection, [entry.tournament_id]))[entry.tournament_id]
            for after in range(0, head.sequence, READ_EVENTS_AT_ONCE):
                upto = after + READ_EVENTS_AT_ONCE
                for row in await connection.fetch(_FORGOTTEN, entry.tournament_id, after, upto):
                    event = codec.entry_of(row["line"]).event
                    if isinstance(event, CompetitorRegistered) and event.competitor_id in erased:
                        yield Erasure(
                            tournament=entry.tournament_id,
                            slug=entry.slug,
                            competitor=event.competitor_id,
                            registered_at=row["recorded_at"],
                            erased_at=erased[event.competitor_id],
                        )


def kept_in(path: Path) -> set[Erasure]:
    """The erasures that a list has; none if there is no file. Raises OSError, and Unacceptable if the file is no such
    list: a line of it is neither an erasure nor cut off."""
    lines = listed(path) if path.exists() else []
    wrong = [(number, line) for number, line in lines if isinstance(line, Unread) and not line.cut_off]
    if wrong:
        raise Unacceptable(f"{path} is not a list of erasures; nothing was added.", faults_of(wrong))
    return {line for _, line in lines if isinstance(line, Erasure)}


def faults_of(unread: Iterable[tuple[int, Unread]]) -> list[Fault]:
    """The first of these lines, with the reasons."""
    return [Fault(f"line {number}", line.reason) for number, line in [*unread][:FAULTS_SHOWN_MAX]]


def listed(path: Path) -> list[tuple[int, Erasure | Unread]]:
    """The lines of a list, by their numbers. Raises OSError."""
    with path.open("rb") as file:
        return [(number, _read(line)) for number, line in enumerate(_lines(file), start=1) if line.strip()]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Each line; of one that is too long, the beginning."""
    mark = codecs.BOM_UTF8
    while line := file.readline(LINE_BYTES_MAX + len(mark) + 1):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(LINE_BYTES_MAX)
        yield line.removeprefix(mark)
        mark = b""


def _read(line: bytes) -> Erasure | Unread:
    if len(line) > LINE_BYTES_MAX:
        return Unread(f"it has more than {LINE_BYTES_MAX:,} bytes")
    try:
        line.decode()  # from msgspec 0.23 on, its error does not tell wrong bytes from a line that is cut off
        return _decode(line)
    except RecursionError:
        return Unread("it is nested too deeply")
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        return Unread(str(error))
    except msgspec.DecodeError as error:
        return Unread(str(error), cut_off=is_cut_off(line))


_decode: Final = msgspec.json.Decoder(Erasure).decode


# ── Applying ────────────────────────────────────────────────────────────────────────────────────────────


async def applied(
    database: Database, lines: Iterable[tuple[int, Erasure | Unread]], *, dry_run: bool = False
) -> AsyncIterator[AppliedLine]:
    """Erases the competitors of a list that are not erased yet, one after the other, and says what became of each line.
    With `dry_run`, it says what would. Raises as `erase_in_log`."""
    for number, line in lines:
        if isinstance(line, Unread):
            yield AppliedLine(line=number, outcome=LineOutcome.UNREADABLE, reason=line.reason)
            continue
        outcome = await _applied(database, line, dry_run=dry_run)
        yield AppliedLine(
            line=number,
            outcome=outcome,
            tournament=line.tournament,
            slug=line.slug,
            competitor=line.competitor,
        )


async def _applied(database: Database, line: Erasure, *, dry_run: bool) -> LineOutcome:
    async with database.connection_for(line.tournament) as connection:
        if await registry.slug_of(connection, line.tournament) is None:
            return LineOutcome.UNKNOWN_TOURNAMENT
        registered_at = await connection.fetchval(_REGISTERED, line.tournament, line.competitor)
        if registered_at is None:
            erased = await reading.erased_since(connection, line.tournament, Sequence(0))
            return LineOutcome.ALREADY if line.competitor in erased else LineOutcome.UNKNOWN_COMPETITOR
    if registered_at != line.registered_at:
        return LineOutcome.UNKNOWN_COMPETITOR
    if not dry_run:
        await erase_in_log(database, line.tournament, line.competitor)
    return LineOutcome.ERASED


async def erase_in_log(database: Database, tournament_id: TournamentId, competitor_id: CompetitorId) -> Sequence:
    """Erases a competitor in log, tables and snapshots, whether its tournament can be folded or not. Returns the
    sequence of the event.

    Raises NotFound if there is nobody with this id to be erased, Conflict if others append all the time,
    OutcomeUnknown if the commit was not confirmed, and DatabaseUnavailable.
    """
    async with database.connection_for(tournament_id) as connection:
        sequence = await _append(connection, tournament_id, competitor_id)
        async with connection.transaction():
            await tables.forget(connection, tournament_id, competitor_id)
            await snapshots.erase(connection, tournament_id, [competitor_id])
    return sequence


async def _append(connection: Connection, tournament_id: TournamentId, competitor_id: CompetitorId) -> Sequence:
    for _ in range(ERASE_ATTEMPTS_MAX):
        head = (await heads.current(connection, [tournament_id]))[tournament_id]
        if await connection.fetchval(_REGISTERED, tournament_id, competitor_id) is None:
            raise NotFound(f"There is no competitor {competitor_id} to erase.")
        block = Block(
            tournament_id=tournament_id,
            judged_at=head.sequence,
            judged_digest=head.digest,
            requests=(Request(events=(CompetitorErased(competitor_id=competitor_id),), actor=OPERATOR),),
        )
        try:
            (outcome,) = await appending.append(connection, [block], wait=True)
        except UnconfirmedCommit as error:
            raise OutcomeUnknown from error
        if isinstance(outcome, Appended):
            assert outcome.last_sequence is not None
            return outcome.last_sequence
    raise Conflict("Others kept appending to this tournament; try again.")
