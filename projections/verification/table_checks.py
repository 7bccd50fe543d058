"""Checks that a board read from the tables cannot make: rows that belong to nothing, places in lists, columns that do
not apply. Also reads the view of standings.

Like `tables.py`, this is SQL on the relational projection, but it only reads.
"""

from collections.abc import AsyncGenerator
from collections.abc import Sequence as Items
from contextlib import aclosing
from typing import Any, Final

from asyncpg import Connection
from msgspec import Struct

from engine.database.distribution import is_distributed
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitorId, RankingId, TournamentId, UnityId
from projections.tables import tables
from projections.tables.columns import TABLES
from projections.verification import stored_log

_STRAYS: Final = """
    SELECT 'participant', competition_id, 'belongs to no competition'
    FROM participant AS p
    WHERE tournament_id = $1 AND NOT EXISTS (
        SELECT FROM competition AS c WHERE c.tournament_id = $1 AND c.competition_id = p.competition_id
    )
    UNION ALL
    SELECT 'participant', competition_id, 'has not the numbers 1, 2, 3 …'
    FROM participant
    WHERE tournament_id = $1
    GROUP BY competition_id
    HAVING min(number) <> 1 OR max(number) <> count(*)
    UNION ALL
    SELECT 'participant', competition_id, 'has results of participants as well as a score'
    FROM participant
    WHERE tournament_id = $1
    GROUP BY competition_id
    HAVING count(*) <= $2 AND count(result) > 0
    UNION ALL
    SELECT 'competition', competition_id, 'has a score as well as results of participants'
    FROM competition AS c
    WHERE tournament_id = $1 AND result IS NOT NULL AND (
        SELECT count(*) FROM participant AS p WHERE p.tournament_id = $1 AND p.competition_id = c.competition_id
    ) > $2
    UNION ALL
    SELECT 'enrolment', ranking_id, 'belongs to no ranking'
    FROM enrolment AS e
    WHERE tournament_id = $1 AND NOT EXISTS (
        SELECT FROM ranking AS r WHERE r.tournament_id = $1 AND r.ranking_id = e.ranking_id
    )
    UNION ALL
    SELECT 'enrolment', ranking_id, 'has a number twice, or one below 1'
    FROM enrolment
    WHERE tournament_id = $1
    GROUP BY ranking_id
    HAVING min(number) < 1 OR count(DISTINCT number) <> count(*)
    UNION ALL
    SELECT 'unity', unity_id, 'belongs to no ranking'
    FROM unity AS u
    WHERE tournament_id = $1 AND NOT EXISTS (
        SELECT FROM ranking AS r WHERE r.tournament_id = $1 AND r.ranking_id = u.ranking_id
    )
    UNION ALL
    SELECT 'total', unity_id, 'belongs to no unity'
    FROM total AS t
    WHERE tournament_id = $1 AND NOT EXISTS (
        SELECT FROM unity AS u WHERE u.tournament_id = $1 AND u.unity_id = t.unity_id
    )
    LIMIT $3
"""
_INCOMPLETE: Final = """
    SELECT ranking_id
    FROM ranking AS r
    WHERE tournament_id = $1 AND NOT (
        EXISTS (SELECT FROM enrolment AS e WHERE e.tournament_id = $1 AND e.ranking_id = r.ranking_id)
        AND EXISTS (SELECT FROM unity AS u WHERE u.tournament_id = $1 AND u.ranking_id = r.ranking_id)
    )
    LIMIT 1
"""
_STANDING: Final = """
    SELECT
        ranking_id, unity_id, position, competitor_id, total, version, enrolled, tournament, ranking, unity, competitor
    FROM standing
    WHERE tournament_id = $1
    ORDER BY ranking_id, unity_id, position, enrolled
"""
_OF_TOURNAMENTS: Final = (
    *("append_lock", "block", "topic", "personal", "idempotency", "refusal", "checkpoint"),
    *(table.name for table in TABLES),
)
"""The tables of the log, and those made from it."""
# No table may have a row with an id between, below or above the registered ones: one look into each gap of each index.
_UNREGISTERED: Final = """
    WITH gap AS MATERIALIZED (
        SELECT lag(id, 1, -9223372036854775808) OVER (ORDER BY id) AS low, id AS high
        FROM (SELECT tournament_id FROM tournament UNION ALL SELECT 9223372036854775807) AS registered (id)
    )
    SELECT found.rows, min(found.tournament_id)
    FROM gap
    CROSS JOIN LATERAL (
        LOOKS
    ) AS found (rows, n, tournament_id)
    WHERE found.tournament_id IS NOT NULL
    GROUP BY found.rows
    ORDER BY min(found.n)
""".replace(
    "LOOKS",
    "\n        UNION ALL\n        ".join(
        f"SELECT '{table}', {n}, min(tournament_id) FROM {table} WHERE tournament_id > low AND tournament_id < high"  # noqa: S608 # names that are written down
        for n, table in enumerate(_OF_TOURNAMENTS)
    ),
)
# On a distributed database, a look reads a whole table, wherever its rows are.
_UNREGISTERED_ANYWHERE: Final = tuple(
    f"""
    SELECT '{table}', min(tournament_id)
    FROM {table} AS o
    WHERE NOT EXISTS (SELECT FROM tournament AS t WHERE t.tournament_id = o.tournament_id)
    HAVING count(*) > 0
"""  # noqa: S608 # names that are written down
    for table in _OF_TOURNAMENTS
)
_ALL_STRAYS: Final = stored_log.for_each(_STRAYS)
_ALL_INCOMPLETE: Final = stored_log.for_each(_INCOMPLETE)
_ALL_STANDING: Final = stored_log.for_each(_STANDING) + "    LIMIT $2\n"
STRAYS_MAX: Final = 100
CHECK_SECONDS_MAX: Final = 3_600.0
"""The time limit of one statement of a check, which may scan millions of rows."""


async def strays(connection: Connection, tournament_ids: Items[TournamentId]) -> dict[TournamentId, list[Any]]:
    """Up to STRAYS_MAX rows of each of the tournaments that a board read from the tables does not show: table, id, and
    what is wrong with it."""
    bounds = SCORE_PARTICIPANTS_MAX, STRAYS_MAX
    return await stored_log.rows_of(connection, _STRAYS, _ALL_STRAYS, tournament_ids, *bounds)


async def incomplete(connection: Connection, tournament_ids: Items[TournamentId]) -> dict[TournamentId, RankingId]:
    """A ranking that has no list or no unity, of each tournament with one: no board can be read."""
    found = await stored_log.rows_of(connection, _INCOMPLETE, _ALL_INCOMPLETE, tournament_ids)
    return {tournament_id: rows[0][0] for tournament_id, rows in found.items()}


class StandingRow(Struct, frozen=True):
    """A line of the view `standing`, in its order there: by ranking, unity and position."""

    ranking_id: RankingId
    unity_id: UnityId
    position: int
    competitor_id: CompetitorId
    total: int | None
    version: int
    enrolled: int
    tournament: str
    ranking: str
    unity: str
    competitor: str


async def standing_rows(connection: Connection, tournament_id: TournamentId) -> AsyncGenerator[list[StandingRow], None]:
    """The lines of the view `standing` for a tournament, in chunks, within a transaction."""
    read = tables.in_chunks(connection, _STANDING, tournament_id, seconds_max=CHECK_SECONDS_MAX)
    async with aclosing(read) as chunks:
        async for rows in chunks:
            yield [StandingRow(*row) for row in rows]


async def all_standing_rows(
    connection: Connection, tournament_ids: Items[TournamentId], limit: int
) -> dict[TournamentId, list[StandingRow]]:
    """The first `limit` lines of the view `standing` for the tournaments."""
    found: dict[TournamentId, list[StandingRow]] = {}
    for tournament_id, *row in await connection.fetch(_ALL_STANDING, tournament_ids, limit, timeout=CHECK_SECONDS_MAX):
        found.setdefault(tournament_id, []).append(StandingRow(*row))
    return found


async def unregistered(connection: Connection) -> list[tuple[str, TournamentId]]:
    """Tables that have rows of an unregistered tournament, each with the first such tournament."""
    statements = _UNREGISTERED_ANYWHERE if is_distributed(connection) else (_UNREGISTERED,)
    return [
        tuple(row) for statement in statements for row in await connection.fetch(statement, timeout=CHECK_SECONDS_MAX)
    ]
