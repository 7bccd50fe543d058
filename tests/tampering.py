"""What somebody can do who rules over the database: anything to any row, past the triggers, and mend the chain.

`stage` is a tournament in which there is something of everything that can be tampered with.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg
from msgspec import Struct

from engine.database.pool import Database
from engine.domain.events import CompetitionAdded, CompetitorRegistered, Delta, Event, PointsAdded, UnityAdded
from engine.domain.terms import CompetitionId, CompetitorId, Sequence, Sort, TournamentId, UnityId
from engine.log import digest, heads, registry, tails
from engine.log.heads import Head
from projections.board.board import Board, Revisions, fold
from projections.tables import snapshots
from projections.tables.snapshots import Snapshot
from projections.tables.worker import Worker
from tests.desks import Arena, open_arena, record


@asynccontextmanager
async def unguarded(owner: asyncpg.Connection) -> AsyncIterator[asyncpg.Connection]:
    """The owner's connection in a transaction, with no trigger in its way, on no node."""
    async with owner.transaction():
        await owner.execute("SET LOCAL citus.propagate_set_commands = 'local'")  # without Citus, it means nothing
        await owner.execute("SET LOCAL session_replication_role = replica")
        yield owner


async def tamper(owner: asyncpg.Connection, statement: str, *arguments: object) -> None:
    """One change, which must have changed something."""
    async with unguarded(owner):
        status = await owner.execute(statement, *arguments)
    assert not status.endswith(" 0"), f"nothing was changed by {statement}"


def line_changed(sequence: int | str, change: str) -> str:
    """SQL that makes the line of an event of tournament $1 what the expression `change` makes of `line`. `sequence` may
    be a subquery."""
    return f"""
        UPDATE block AS b
        SET text = (
            SELECT string_agg(
                CASE WHEN b.first_sequence + n - 1 = {sequence} THEN {change} ELSE line END, chr(10) ORDER BY n
            )
            FROM string_to_table(b.text, chr(10)) WITH ORDINALITY AS l (line, n)
        )
        WHERE tournament_id = $1 AND {sequence} BETWEEN first_sequence AND last_sequence
    """


def line_removed(sequence: int | str) -> str:
    """SQL that takes the line of an event of tournament $1 out of its block, which has others. `sequence` may be a
    subquery."""
    return f"""
        UPDATE block AS b
        SET text = (
            SELECT string_agg(line, chr(10) ORDER BY n)
            FROM string_to_table(b.text, chr(10)) WITH ORDINALITY AS l (line, n)
            WHERE b.first_sequence + n - 1 <> {sequence}
        )
        WHERE tournament_id = $1 AND {sequence} BETWEEN first_sequence AND last_sequence
    """


def moved(column: str, by: str) -> str:
    """SQL of a time that is so much later, in words that do not depend on the session: Citus takes no others."""
    return f"(({column} AT TIME ZONE 'UTC') + interval '{by}') AT TIME ZONE 'UTC'"


# ── A stage ─────────────────────────────────────────────────────────────────────────────────────────────


class Stage(Struct, frozen=True):
    """Blocks end at 1, 4, 5, 6, 9, 10, 11, 12; 7 to 9 are one with two requests, of which the second has a key; the
    snapshot is of 10, the tables are at the head, 12."""

    arena: Arena
    slug: str
    second_unity: UnityId
    competition: CompetitionId
    relay: CompetitionId
    third: CompetitorId

    @property
    def tournament_id(self) -> TournamentId:
        return self.arena.tournament_id


LAST: Final = 12
SNAPSHOT: Final = 10


async def stage(database: Database) -> Stage:
    arena = await open_arena(database)
    tournament_id, (ann, bob) = arena.tournament_id, arena.competitors
    async with database.connection() as connection:
        ids = await registry.next_ids(connection, 4)
        match, relay = CompetitionId(ids[0]), CompetitionId(ids[1])
        second, third = UnityId(ids[2]), CompetitorId(ids[3])

        async def recorded(*events: Event, key: str | None = None) -> None:
            await record(connection, tournament_id, *events, key=key)

        def points(competitor_id: CompetitorId, amount: int, unity_id: UnityId = arena.unity_id) -> PointsAdded:
            return PointsAdded(ranking_id=arena.ranking_id, deltas=(Delta(competitor_id, unity_id, amount),))

        await recorded(UnityAdded(ranking_id=arena.ranking_id, unity_id=second, name="Faults", sort=Sort.ASC))
        await recorded(
            CompetitionAdded(competition_id=match, group_id=1, location="Hall", participants=(ann, bob), result="2-1")
        )
        await recorded(points(ann, 3), points(bob, 1), points(ann, 2, second), key="match-1")
        await recorded(CompetitorRegistered(competitor_id=third, name="Cy", tags=("junior",)))
        results = {ann: "9.8", bob: "9.9", third: "10.1"}
        await recorded(
            CompetitionAdded(competition_id=relay, group_id=2, participants=(ann, bob, third), result=results)
        )
        await recorded(points(bob, 4))
        await keep_snapshot(connection, tournament_id, Sequence(SNAPSHOT))
        slug = await connection.fetchval("SELECT slug FROM tournament WHERE tournament_id = $1", tournament_id)
    await Worker(database).catch_up()
    return Stage(arena, slug, second, match, relay, third)


async def keep_snapshot(connection: asyncpg.Connection, tournament_id: TournamentId, at: Sequence) -> None:
    """Writes the snapshot of what the log gives up to `at`, the end of a block."""
    board, revisions, head = Board(), Revisions(), heads.beginning(tournament_id)
    while head.sequence < at:
        tail = await tails.tail(connection, tournament_id, head, blocks_max=1)
        for recorded in tail.events:
            fold(board, revisions, recorded)
        head = tail.head
    assert head.sequence == at
    await snapshots.save(connection, {tournament_id: Snapshot(head, board)})


# ── The chain ───────────────────────────────────────────────────────────────────────────────────────────

_BLOCKS: Final = """
    SELECT first_sequence, last_sequence, recorded_at, text, (
        SELECT coalesce(sum(octet_length(p.text)), 0)::bigint
        FROM personal AS p
        WHERE p.tournament_id = $1 AND p.sequence BETWEEN b.first_sequence AND b.last_sequence
    )
    FROM block AS b
    WHERE tournament_id = $1
    ORDER BY last_sequence
"""
_REPLACE: Final = "UPDATE block SET digest = $3, log_bytes = $4 WHERE tournament_id = $1 AND last_sequence = $2"


async def rechain(owner: asyncpg.Connection, tournament_id: TournamentId) -> Head:
    """Makes every digest and length that of the text which is there now: what a thorough forger does."""
    known, last, size = digest.genesis(tournament_id), Sequence(0), 0
    async with unguarded(owner):
        for first, last, recorded_at, text, personal in await owner.fetch(_BLOCKS, tournament_id):
            known = digest.chain(known, digest.block_text(first, recorded_at, text))
            size += len(text.encode()) + personal
            await owner.execute(_REPLACE, tournament_id, last, known, size)
    return Head(last, known)


async def forget_what_was_made(owner: asyncpg.Connection, tournament_id: TournamentId) -> None:
    """Removes tables, checkpoint and snapshots: a worker will make them again from the forged log."""
    for table in (
        *("checkpoint", "snapshot", "publication", "competitor", "competition", "participant"),
        *("ranking", "enrolment", "unity", "total"),
    ):
        await owner.execute(f"DELETE FROM {table} WHERE tournament_id = $1", tournament_id)
