"""Deletion of a tournament: by the owner of the schema alone, after an export, with a permanent record.

It works on any log, also on one that is broken: it reads no event. One transaction removes everything that belongs to
the tournament. `deleted_tournament` keeps its id, slug and name, where its log ended, and when it was deleted. So its
slug is never another tournament's, and a verification tells a deleted tournament from one that is gone.

The same tournament can be imported again. Then it is a normal tournament, and the note stays.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import has_shards
from engine.domain.errors import Conflict, NotFound
from engine.domain.terms import Sequence, TournamentId
from engine.log import archive
from engine.log.archive import Manifest

_PATH: Final = "SET LOCAL search_path = tallybook"
_SAY_SO: Final = "SET LOCAL tallybook.deleting = 'on'"
# So that the triggers of shards see it too.
_ON_ALL_NODES: Final = (
    "SET LOCAL citus.propagate_set_commands = 'local'",
    "SET LOCAL citus.multi_shard_modify_mode = 'sequential'",
)
_NAMED: Final = "SELECT tournament_id, name FROM tournament WHERE slug = $1"
# Not SELECT FOR UPDATE, under which Citus could move the shard to another node.
_HOLD: Final = "UPDATE append_lock SET refusals = refusals WHERE tournament_id = $1"
_LAST_BLOCK: Final = """
    SELECT last_sequence, digest
    FROM block
    WHERE tournament_id = $1
    ORDER BY last_sequence DESC
    LIMIT 1
"""
_WEBHOOKS: Final = "SELECT count(*) FROM webhook WHERE tournament_id = $1"
_TOKENS: Final = "SELECT count(*) FROM token WHERE tournament_ids = ARRAY[$1::bigint] AND revoked_at IS NULL"
_NOTE: Final = """
    INSERT INTO deleted_tournament (tournament_id, deleted_at, slug, name, sequence, digest, exported)
    VALUES ($1, now(), $2, $3, $4, $5, $6)
    RETURNING deleted_at
"""
# A worker may hold the checkpoint: once it is deleted, nothing more is written to the tables.
_OF_THE_SERVICE: Final = (
    "DELETE FROM checkpoint WHERE tournament_id = $1",
    "DELETE FROM stopped WHERE tournament_id = $1",
    "DELETE FROM defect WHERE tournament_id = $1",
    "DELETE FROM competitor WHERE tournament_id = $1",
    "DELETE FROM competition WHERE tournament_id = $1",
    "DELETE FROM participant WHERE tournament_id = $1",
    "DELETE FROM ranking WHERE tournament_id = $1",
    "DELETE FROM enrolment WHERE tournament_id = $1",
    "DELETE FROM unity WHERE tournament_id = $1",
    "DELETE FROM total WHERE tournament_id = $1",
    "DELETE FROM snapshot WHERE tournament_id = $1",
    "DELETE FROM snapshot_part WHERE tournament_id = $1",
    "DELETE FROM publication WHERE tournament_id = $1",
    "DELETE FROM ticket WHERE tournament_id = $1",
    "DELETE FROM webhook WHERE tournament_id = $1",
    "DELETE FROM verified WHERE tournament_id = $1",
    "DELETE FROM quota WHERE tournament_id = $1",
)
_OF_THE_LOG: Final = (
    "DELETE FROM block WHERE tournament_id = $1",
    "DELETE FROM topic WHERE tournament_id = $1",
    "DELETE FROM personal WHERE tournament_id = $1",
    "DELETE FROM idempotency WHERE tournament_id = $1",
    "DELETE FROM refusal WHERE tournament_id = $1",
    "DELETE FROM append_lock WHERE tournament_id = $1",
    "DELETE FROM tournament WHERE tournament_id = $1",
)
# Rows of tokens stay, because events of other tournaments may name them.
_REVOKE: Final = """
    UPDATE token
    SET revoked_at = now()
    WHERE tournament_ids = ARRAY[$1::bigint] AND revoked_at IS NULL
"""
_DELETED: Final = """
    SELECT DISTINCT ON (tournament_id) tournament_id, slug, name, sequence, digest, exported, deleted_at
    FROM deleted_tournament
    WHERE tournament_id = ANY($1::bigint[])
    ORDER BY tournament_id, deleted_at DESC
"""


class Doomed(Struct, frozen=True, kw_only=True):
    """A tournament that is to be deleted, and what goes with it: events, webhooks, tokens that are for it alone."""

    id: TournamentId
    slug: str
    name: str
    sequence: Sequence
    digest: str
    webhooks: int
    tokens: int


class DeletedTournament(Struct, frozen=True):
    """The record of a deleted tournament: its registration, and where its log ended."""

    tournament_id: TournamentId
    slug: str
    name: str
    sequence: Sequence
    digest: bytes
    exported: bool
    deleted_at: datetime


async def delete_tournament(
    owner: Connection, slug: str, lines: Iterable[bytes] | None, *, dry_run: bool = False
) -> Doomed:
    """Deletes the tournament of this slug, if `lines` are a whole archive of just its log, or None; returns what was
    there. With `dry_run`, it only looks.

    `owner` is a connection with the rights of the schema's owner. Raises NotFound; Conflict if the archive is of
    another tournament or of another moment; Unreadable and LogDisproved as `archive.read`.
    """
    manifest = None if lines is None else _manifest_of(lines)
    async with owner.transaction():
        await owner.execute(_PATH)
        doomed = await _doomed(owner, slug)
        if manifest is not None:
            _refuse_unlike(manifest, doomed)
        if dry_run:
            return doomed
        for statement in _ON_ALL_NODES if await has_shards(owner) else ():
            await owner.execute(statement)
        await owner.execute(_SAY_SO)
        digest = bytes.fromhex(doomed.digest)
        noted = doomed.id, doomed.slug, doomed.name, doomed.sequence, digest, manifest is not None
        await owner.fetchval(_NOTE, *noted)
        for statement in (*_OF_THE_SERVICE, *_OF_THE_LOG, _REVOKE):
            await owner.execute(statement, doomed.id)
    async with owner.transaction():  # unfinished writes of processes that do not know yet
        await owner.execute(_PATH)
        for statement in _OF_THE_SERVICE:
            await owner.execute(statement, doomed.id)
    return doomed


def _manifest_of(lines: Iterable[bytes]) -> Manifest:
    """Reads the archive to its end, which proves it whole."""
    manifest, *_ = (part for part in archive.read(lines) if isinstance(part, Manifest))
    return manifest


async def _doomed(owner: Connection, slug: str) -> Doomed:
    """The tournament, to which nobody appends until the transaction ends. Raises NotFound."""
    found = await owner.fetchrow(_NAMED, slug)
    if found is None:
        raise NotFound(f"There is no tournament {slug!r}; `tallybook tournament list` shows them.")
    tournament_id, name = found
    await owner.execute(_HOLD, tournament_id)
    last = await owner.fetchrow(_LAST_BLOCK, tournament_id)
    return Doomed(
        id=tournament_id,
        slug=slug,
        name=name,
        sequence=last[0] if last else Sequence(0),
        digest=last[1].hex() if last else "",
        webhooks=await owner.fetchval(_WEBHOOKS, tournament_id),
        tokens=await owner.fetchval(_TOKENS, tournament_id),
    )


def _refuse_unlike(manifest: Manifest, doomed: Doomed) -> None:
    if manifest.tournament_id != doomed.id:
        raise Conflict(f"The archive is of tournament {manifest.tournament_id}, and {doomed.slug} is {doomed.id}.")
    if (manifest.sequence, manifest.digest) != (doomed.sequence, doomed.digest):
        raise Conflict(
            f"The archive ends at event {manifest.sequence}, the log at {doomed.sequence} with another digest; "
            f"export it again: `tallybook tournament export {doomed.slug}`."
        )


async def deleted_among(
    connection: Connection, tournament_ids: Collection[TournamentId]
) -> dict[TournamentId, DeletedTournament]:
    """The records of those tournaments that were deleted, of the last deletion each."""
    rows = await connection.fetch(_DELETED, list(tournament_ids))
    return {row["tournament_id"]: DeletedTournament(*row) for row in rows}
