"""Tournaments that leave a database as an archive, and enter another one as they were.

A tournament enters in one transaction of the owner. Its blocks are inserted with every stored field, and PostgreSQL
recomputes each digest. Then the whole log is verified in that transaction, as `tallybook verify` does it, which folds
every event. Only then does the registry get it, so nobody sees it before.

Everything in a tournament keeps its id. Other tournaments may have the same ids: every key of the schema begins with
the tournament. Ids drawn afterwards come after those of the archive, up to IDS_FOLLOWED_MAX. A process that drew ids
earlier may use one that the archive contains; it is refused (`IdTaken`), and draws others.
"""

from array import array
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Final

import asyncpg
from asyncpg import Connection
from msgspec import Struct

from engine.database.pool import Database
from engine.domain.errors import Conflict, LogDisproved, NotFound, Unacceptable
from engine.domain.events import Event, Naming
from engine.domain.terms import Sequence, TournamentId
from engine.log import archive, codec, digest
from engine.log.archive import ArchivedBlock, Manifest, UsedKey
from engine.log.codec import BlockContent, Parts
from projections.verification import stored_log
from projections.verification.findings import Difference
from projections.verification.one_tournament import verification
from projections.verification.progress import beginning
from projections.verification.source import TournamentSource
from projections.verification.stored_log import RegisteredTournament, StoredBlock

IDS_FOLLOWED_MAX: Final = 2**40
"""Ids that are drawn after an import continue from the highest of the archive up to this one. So no archive makes all
later ids long, or uses up those that programs which read numbers as doubles read exactly."""
AHEAD_SECONDS_MAX: Final = 86_400
"""How far the last time of an archive may be ahead of the clock of the database. What is appended after it is never
recorded at an earlier time."""
NAMED_MAX: Final = 20
"""Differences that one refusal names."""

_BLOCKS: Final = (
    "SELECT last_sequence, append_id, answers FROM block WHERE tournament_id = $1 AND last_sequence = ANY($2)"
)
_KEYS: Final = """
    SELECT idempotency_key, fingerprint, sequence
    FROM idempotency
    WHERE tournament_id = $1 AND idempotency_key = ANY($2::text[])
    ORDER BY sequence
"""
_PATH: Final = "SET LOCAL search_path = tallybook"
_IMPORT: Final = "SELECT import_block($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
_IS_HERE: Final = """
    SELECT
        EXISTS (SELECT FROM tournament WHERE tournament_id = $1) AS id_is_taken,
        EXISTS (SELECT FROM tournament WHERE slug = $2) AS slug_is_taken,
        EXISTS (SELECT FROM deleted_tournament WHERE slug = $2 AND tournament_id <> $1) AS slug_was_taken
"""
# Other creations and imports of tournaments wait meanwhile; appends do not.
_LOCK: Final = "LOCK TABLE tournament IN SHARE ROW EXCLUSIVE MODE"
_REGISTER: Final = "INSERT INTO tournament (tournament_id, slug, name) VALUES ($1, $2, $3)"
_ALLOW_APPENDS: Final = "INSERT INTO append_lock (tournament_id) VALUES ($1)"
_AHEAD_SECONDS: Final = """
    SELECT extract(epoch FROM recorded_at - clock_timestamp())::float8
    FROM block
    WHERE tournament_id = $1 AND last_sequence = $2
"""
# Of a new sequence, the last value has not been drawn yet.
_MOVE_IDS: Final = "SELECT setval('resource_id', $1) FROM resource_id WHERE last_value - (NOT is_called)::int < $1"


# ── Leaving ─────────────────────────────────────────────────────────────────────────────────────────────


async def exported(
    database: Database, tournament_id: TournamentId, *, progress: Callable[[int, int], None]
) -> AsyncIterator[str]:
    """The lines of the tournament's archive, from one snapshot; calls `progress` with the events done and the total.

    Raises NotFound, and LogDisproved if the stored events do not make the stored digests.
    """
    async with database.connection() as connection, stored_log.one_moment(connection):
        registered = await stored_log.registered_tournaments(connection, tournament_id)
        if not registered:
            raise NotFound(f"There is no tournament {tournament_id}.")
        (tournament,) = registered
        if tournament.sequence is None or tournament.digest is None:
            raise LogDisproved(
                f"The log of {tournament.slug} is empty; `tallybook verify {tournament.slug}` says more."
            )
        writer = archive.Writer()
        yield writer.line(
            Manifest(
                tournament_id=tournament_id,
                slug=tournament.slug,
                name=tournament.name,
                sequence=tournament.sequence,
                digest=tournament.digest.hex(),
            )
        )
        sequence, chained = Sequence(0), digest.genesis(tournament_id)
        while blocks := await stored_log.blocks(connection, tournament_id, sequence):
            for block, archived in zip(blocks, await _archived(connection, tournament_id, blocks), strict=True):
                chained = digest.chain(chained, archived.text.encode())
                if chained != block.digest or block.first_sequence != sequence + 1:
                    raise LogDisproved(
                        f"The events from {block.first_sequence} to {block.last_sequence} of {tournament.slug} do not "
                        f"match their digest; `tallybook verify {tournament.slug}` says more."
                    )
                sequence = block.last_sequence
                yield writer.line(archived)
            progress(sequence, tournament.sequence)


async def _archived(
    connection: Connection, tournament_id: TournamentId, blocks: list[StoredBlock]
) -> list[ArchivedBlock]:
    lasts = [block.last_sequence for block in blocks]
    rest = {row[0]: (row[1], row[2]) for row in await connection.fetch(_BLOCKS, tournament_id, lasts)}
    archived = []
    for block in blocks:
        content, personals = block.content(), block.personal_fields()
        keys = [] if content is None else sorted({sent.key for sent in content.sent if sent.key is not None})
        sequences = range(block.first_sequence, block.last_sequence + 1)
        texts = [personals[Sequence(n)].text if n in personals else None for n in sequences]
        used = await connection.fetch(_KEYS, tournament_id, keys) if keys else []
        append_id, answers = rest[block.last_sequence]
        archived.append(
            ArchivedBlock(
                last_sequence=block.last_sequence,
                digest=block.digest.hex(),
                append_id=append_id,
                answers=answers,
                structure_sequence=block.structure_sequence,
                created=block.created,
                rules=block.rules,
                keys=[UsedKey(key, fingerprint.hex(), sequence) for key, fingerprint, sequence in used],
                personals=texts if personals else None,
                text=(block.text or b"").decode(),
            )
        )
    return archived


# ── Entering ────────────────────────────────────────────────────────────────────────────────────────────


class Entered(Struct, frozen=True, kw_only=True):
    """A tournament that has entered the database, and the last event of its log."""

    id: TournamentId
    slug: str
    name: str
    sequence: Sequence
    digest: str


async def enter(owner: Connection, lines: Iterable[bytes], *, progress: Callable[[int, int], None]) -> Entered:
    """Puts the tournament of an archive into the database. All of it is there when this returns, or nothing is.

    `owner` is a connection with the rights of the schema's owner. Calls `progress` with the events inserted, and their
    total. Raises Unreadable and LogDisproved as `archive.read`; LogDisproved if verification finds a difference;
    Conflict if the tournament or its slug is here; Unacceptable if its last time lies in the future.
    """
    parts = archive.read(lines)
    manifest = next(parts)
    assert isinstance(manifest, Manifest)
    try:
        async with owner.transaction():
            await owner.execute(_PATH)
            await _refuse_if_here(owner, manifest)
            followed = 0
            ends = array("q")
            for block in parts:
                assert isinstance(block, ArchivedBlock)
                ends.append(block.last_sequence)
                events = await _insert(owner, manifest.tournament_id, block, line=len(ends) + 1)
                followed = max([followed, *(one for one in _created(events) if one <= IDS_FOLLOWED_MAX)])
                progress(block.last_sequence, manifest.sequence)
            await _refuse_future(owner, manifest)
            await _verify(owner, manifest, ends)
            await owner.execute(_LOCK)
            await _refuse_if_here(owner, manifest)
            await owner.execute(_REGISTER, manifest.tournament_id, manifest.slug, manifest.name)
            await owner.execute(_ALLOW_APPENDS, manifest.tournament_id)
            await owner.execute(_MOVE_IDS, followed)
    except asyncpg.UniqueViolationError as error:
        raise Conflict(f"Tournament {manifest.tournament_id} is already in this database.") from error
    except asyncpg.CheckViolationError as error:
        raise LogDisproved(f"The archive was refused: {error}.") from error
    return Entered(
        id=manifest.tournament_id,
        slug=manifest.slug,
        name=manifest.name,
        sequence=manifest.sequence,
        digest=manifest.digest,
    )


async def _refuse_if_here(owner: Connection, manifest: Manifest) -> None:
    here = await owner.fetchrow(_IS_HERE, manifest.tournament_id, manifest.slug)
    if here["id_is_taken"]:
        raise Conflict(f"Tournament {manifest.tournament_id} is already in this database.")
    if here["slug_is_taken"]:
        raise Conflict(f"Another tournament of this database has the slug {manifest.slug!r}, which cannot change.")
    if here["slug_was_taken"]:
        raise Conflict(
            f"The slug {manifest.slug!r} was that of another tournament of this database, which was deleted."
        )


async def _insert(
    owner: Connection, tournament_id: TournamentId, block: ArchivedBlock, *, line: int
) -> list[Event | None]:
    """Inserts a block, and returns its events. Raises LogDisproved if PostgreSQL cannot hold it."""
    content = block.content()
    events = _events(content)
    try:
        await owner.execute(
            _IMPORT,
            tournament_id,
            content.first_sequence,
            digest.moment(content.recorded_us),
            bytes.fromhex(block.digest),
            block.append_id,
            block.answers,
            block.structure_sequence,
            block.created,
            block.text.partition("\n")[2],
            [None if event is None else " ".join(map(str, codec.topics_of(event))) or None for event in events],
            block.personals,
            [event.competitor_id if isinstance(event, Naming) else 0 for event in events],
            [used.key for used in block.keys],
            [bytes.fromhex(used.fingerprint) for used in block.keys],
            [used.sequence for used in block.keys],
            block.rules,
        )
    except (asyncpg.DataError, asyncpg.ProgramLimitExceededError) as error:
        raise LogDisproved(f"Line {line} of the archive was refused: {error}.") from error
    except asyncpg.UniqueViolationError as error:
        if error.table_name != "idempotency":
            raise
        raise LogDisproved(f"Line {line} of the archive has an idempotency key that was used before.") from error
    return events


def _events(content: BlockContent) -> list[Event | None]:
    """The events; None instead of one that cannot be decoded: verification names it, unless it was set aside."""
    return list(map(_event, content.parts))


def _event(parts: Parts) -> Event | None:
    try:
        return codec.decode(parts.kind, parts.body)
    except codec.Undecodable:
        return None


def _created(events: Iterable[Event | None]) -> Iterator[int]:
    """The ids of what the events create."""
    return (getattr(event, name) for event in events if event is not None for name in event.creates)


async def _refuse_future(owner: Connection, manifest: Manifest) -> None:
    ahead_seconds = await owner.fetchval(_AHEAD_SECONDS, manifest.tournament_id, manifest.sequence)
    if ahead_seconds > AHEAD_SECONDS_MAX:
        raise Unacceptable(
            f"The last event of the archive was recorded {ahead_seconds / 86_400:,.0f} days ahead of the clock of the "
            "database. Anything added to the tournament would be recorded no earlier."
        )


async def _verify(owner: Connection, manifest: Manifest, ends: "array[int]") -> None:
    """Raises LogDisproved, naming what differs, and in which line. `ends`: the last sequence of each block."""
    tournament = RegisteredTournament(
        tournament_id=manifest.tournament_id,
        slug=manifest.slug,
        name=manifest.name,
        locked=True,
        sequence=manifest.sequence,
        digest=bytes.fromhex(manifest.digest),
        recorded_at=None,
        refusals=0,
        last_refusal=None,
    )
    progress = beginning(manifest.tournament_id, manifest.slug)
    async with aclosing(
        verification(TournamentSource(owner, [manifest.tournament_id]), tournament, progress)
    ) as all_found:
        async for _ in all_found:
            pass  # the progress keeps it
    if progress.account.count:
        named = "; ".join([_placed(difference, ends) for difference in progress.account.differences[:NAMED_MAX]])
        left = progress.account.count - NAMED_MAX
        more = f"; and {left} more" if left > 0 else ""
        raise LogDisproved(f"The archive was refused, because verification found: {named}{more}.")


def _placed(difference: Difference, ends: "array[int]") -> str:
    """The difference, with the line of the archive that it is in."""
    if difference.sequence is None:
        return str(difference)
    return f"line {bisect_left(ends, difference.sequence) + 2}, {difference}"
