"""Logs that are not as the service would have written them: events that cannot be folded, tails that were lost."""

from typing import Final
from uuid import uuid4

import asyncpg

from engine.domain.events import Delta, PointsAdded
from engine.domain.terms import OPERATOR, Sequence, TournamentId
from engine.log import codec
from tests.desks import Arena
from tests.tampering import line_changed, tamper, unguarded

POISONS: Final = {
    "unknown tag": ("Nonsense", "{}"),
    "not JSON": ("PointsAdded", '{"ranking_id":'),
    "unknown field": ("RankingClosed", '{"ranking_id":%(ranking)d,"why":"done"}'),
    "field of an odd name": ("RankingClosed", '{"ranking_id":%(ranking)d,"\\u0000":1}'),
    "missing field": ("RankingClosed", "{}"),
    "delta too big": (
        "PointsAdded",
        '{"ranking_id":%(ranking)d,"deltas":[[%(competitor)d,%(unity)d,2147483648]]}',
    ),
    "unknown ranking": ("RankingClosed", '{"ranking_id":999999}'),
    "unknown unity": ("PointsAdded", '{"ranking_id":%(ranking)d,"deltas":[[%(competitor)d,999999,1]]}'),
}
"""Tag and body of events that this code cannot fold, by what is wrong with them."""


async def poison(owner: asyncpg.Connection, arena: Arena, name: str) -> Sequence:
    """Appends one of POISONS, chained as if all were well; answers its sequence."""
    kind, body = POISONS[name]
    ids = {"ranking": arena.ranking_id, "unity": arena.unity_id, "competitor": arena.competitors[0]}
    return await append_text(owner, arena.tournament_id, kind, body % ids)


async def append_text(
    owner: asyncpg.Connection, tournament_id: TournamentId, kind: str, body: str, *, structural: bool = False
) -> Sequence:
    """Appends whatever it is given; answers its sequence."""
    judged_at = await owner.fetchval("SELECT sequence FROM head WHERE tournament_id = $1", tournament_id)
    sequence: Sequence = await owner.fetchval(
        """
        SELECT last_sequence
        FROM append_block(
            $1, $2, true, $3, NULL, $4, false, true, NULL, 0, 0, NULL, NULL, NULL, $5, $6, NULL, NULL
        )
        """,
        tournament_id,
        uuid4(),  # Citus may call the function twice
        judged_at,
        structural,
        codec.line_with(kind, OPERATOR, None, body),
        topics_of(kind, body),
    )
    return sequence


def topics_of(kind: str, body: str) -> list[str] | None:
    """The topics of an event, as the service enters them."""
    try:
        topics = codec.topics_of(codec.decode(kind, body))
    except codec.Undecodable:
        return None
    return [" ".join(map(str, topics))] if topics else None


async def repair(owner: asyncpg.Connection, arena: Arena, sequence: Sequence, amount: int) -> None:
    """Makes an event one that adds points. (The chain does not verify any more; nobody asks it here.)"""
    points = PointsAdded(ranking_id=arena.ranking_id, deltas=(Delta(arena.competitors[0], arena.unity_id, amount),))
    await tamper(owner, line_changed(sequence, "$2"), arena.tournament_id, codec.line_of(points, OPERATOR))


_CUT: Final = (
    "DELETE FROM topic WHERE tournament_id = $1 AND sequence > $2",
    "DELETE FROM personal WHERE tournament_id = $1 AND sequence > $2",
    "DELETE FROM block WHERE tournament_id = $1 AND last_sequence > $2",
    "DELETE FROM idempotency WHERE tournament_id = $1 AND sequence > $2",
)


async def cut_tail(owner: asyncpg.Connection, tournament_id: TournamentId, last: Sequence) -> None:
    """Takes away what the log holds beyond `last`, which must end a block: as if a standby had been behind."""
    async with unguarded(owner):
        for statement in _CUT:
            await owner.execute(statement, tournament_id, last)
