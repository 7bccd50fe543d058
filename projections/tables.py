"""The tables: the board of each tournament as rows, and the checkpoint that says how far they are.

The only SQL on the relational projection. Rows are never computed here: whatever an event touched is written as
the fold left it, so the tables cannot mean something else than the board.
"""

from collections.abc import Iterable
from datetime import UTC
from typing import Final, assert_never

from asyncpg import Connection
from msgspec import Struct, field

from engine import events
from engine.errors import LogUnreadable
from engine.events import Event, Result
from engine.log import Head
from engine.terms import CompetitionId, CompetitorId, RankingId, Sort, TournamentId, UnityId
from engine.tournament import SCORE_PARTICIPANTS_MAX
from projections.board import FOLD_VERSION, Board, Competition, Competitor, Ranking, Unity

# ── Checkpoints ─────────────────────────────────────────────────────────────────────────────────────────

_CHECKPOINT: Final = """
    SELECT sequence, digest, fold_version
    FROM checkpoint
    WHERE tournament_id = $1
"""
_CREATE_CHECKPOINT: Final = """
    INSERT INTO checkpoint (tournament_id, sequence, digest, recorded_at, fold_version)
    SELECT h.tournament_id, $2, $3, now(), $4
    FROM head AS h
    WHERE h.tournament_id = $1
    ON CONFLICT (tournament_id) DO NOTHING
"""
_CLAIM: Final = """
    SELECT sequence, digest, fold_version
    FROM checkpoint
    WHERE tournament_id = $1
    FOR UPDATE SKIP LOCKED
"""
_ADVANCE: Final = """
    UPDATE checkpoint
    SET sequence = $2, digest = $3, recorded_at = now(), fold_version = $4
    WHERE tournament_id = $1
"""
_BEHIND: Final = """
    SELECT h.tournament_id
    FROM head AS h
    LEFT JOIN checkpoint AS c ON c.tournament_id = h.tournament_id
    LEFT JOIN stopped AS s ON s.tournament_id = h.tournament_id
    WHERE (c.sequence IS NULL OR c.fold_version < $1 OR (c.fold_version = $1 AND c.sequence < h.sequence))
        AND (s.stopped_at IS NULL OR s.stopped_at < now() - $2 * interval '1 second')
    ORDER BY c.recorded_at NULLS FIRST
    LIMIT $3
"""


class Checkpoint(Struct, frozen=True):
    """How far a tournament's tables are, and which version of the fold made them."""

    head: Head
    fold_version: int


async def checkpoint(connection: Connection, tournament_id: TournamentId) -> Checkpoint | None:
    """How far the tables are; None: there are none yet."""
    row = await connection.fetchrow(_CHECKPOINT, tournament_id)
    return None if row is None else Checkpoint(Head(row["sequence"], row["digest"]), row["fold_version"])


async def create_checkpoint(connection: Connection, tournament_id: TournamentId, beginning: Head) -> None:
    """Creates the checkpoint of a tournament that has none. Not within a transaction: two would wait for each other."""
    await connection.execute(_CREATE_CHECKPOINT, tournament_id, beginning.sequence, beginning.digest, FOLD_VERSION)


async def claim(connection: Connection, tournament_id: TournamentId) -> Checkpoint | None:
    """Locks the checkpoint until the transaction ends; None: another worker has it."""
    row = await connection.fetchrow(_CLAIM, tournament_id)
    return None if row is None else Checkpoint(Head(row["sequence"], row["digest"]), row["fold_version"])


async def advance(connection: Connection, tournament_id: TournamentId, head: Head) -> None:
    """Says that the rows are now those of `head`; belongs into the transaction that wrote them."""
    await connection.execute(_ADVANCE, tournament_id, head.sequence, head.digest, FOLD_VERSION)


async def behind(connection: Connection, *, stopped_seconds: float, limit: int) -> list[TournamentId]:
    """Tournaments whose tables lack events or are of an older fold; not those of a newer one, which are not ours to
    touch, nor those that stopped less than `stopped_seconds` ago."""
    rows = await connection.fetch(_BEHIND, FOLD_VERSION, stopped_seconds, limit)
    return [row["tournament_id"] for row in rows]


# ── Stopped tournaments ─────────────────────────────────────────────────────────────────────────────────

_STOP: Final = """
    INSERT INTO stopped (tournament_id, sequence, reason)
    VALUES ($1, $2, $3)
    ON CONFLICT (tournament_id) DO UPDATE
    SET sequence = excluded.sequence, reason = excluded.reason, stopped_at = now()
"""
_RESUME: Final = "DELETE FROM stopped WHERE tournament_id = $1 AND sequence <= $2"
_STOPPED: Final = "SELECT count(*) FROM stopped"


async def stop(connection: Connection, cause: LogUnreadable) -> None:
    """Notes for all processes, and for the operator, why a tournament stopped."""
    reason = cause.reason.replace("\0", "\\0")  # it may cite the event, and a column cannot hold this one
    await connection.execute(_STOP, cause.tournament_id, cause.sequence, reason)


async def resume(connection: Connection, tournament_id: TournamentId, head: Head) -> None:
    """Takes the note away if it is of an event up to `head`: that can be folded again."""
    await connection.execute(_RESUME, tournament_id, head.sequence)


async def stopped_count(connection: Connection) -> int:
    """How many tournaments are stopped."""
    count: int = await connection.fetchval(_STOPPED)
    return count


# ── Reading a board ─────────────────────────────────────────────────────────────────────────────────────

_COMPETITORS: Final = """
    SELECT competitor_id, number, name, tags, color, parent_id, created_at, updated_at
    FROM competitor
    WHERE tournament_id = $1
    ORDER BY number
"""
_COMPETITIONS: Final = """
    SELECT competition_id, number, group_id, started_at, location, result, winner_id, created_at, updated_at
    FROM competition
    WHERE tournament_id = $1
    ORDER BY number
"""
_PARTICIPANTS: Final = """
    SELECT competition_id, competitor_id, result
    FROM participant
    WHERE tournament_id = $1
    ORDER BY competition_id, number
"""
_RANKINGS: Final = """
    SELECT ranking_id, number, name, description, closed_at
    FROM ranking
    WHERE tournament_id = $1
    ORDER BY number
"""
_ENROLMENTS: Final = """
    SELECT ranking_id, competitor_id
    FROM enrolment
    WHERE tournament_id = $1
    ORDER BY ranking_id, number
"""
_UNITIES: Final = """
    SELECT unity_id, ranking_id, number, name, sort, version
    FROM unity
    WHERE tournament_id = $1
    ORDER BY ranking_id, number
"""
_TOTALS: Final = """
    SELECT unity_id, competitor_id, total
    FROM total
    WHERE tournament_id = $1
"""


async def load_board(connection: Connection, tournament_id: TournamentId) -> Board:
    """The board that the rows make up. Whoever calls sees to it that they are of one moment and this version."""
    return Board(
        competitors=await _load_competitors(connection, tournament_id),
        competitions=await _load_competitions(connection, tournament_id),
        rankings=await _load_rankings(connection, tournament_id),
    )


async def _load_competitors(connection: Connection, tournament_id: TournamentId) -> dict[CompetitorId, Competitor]:
    return {
        row["competitor_id"]: Competitor(
            number=row["number"],
            name=row["name"],
            tags=tuple(row["tags"]),
            color=row["color"],
            parent_id=row["parent_id"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )
        for row in await connection.fetch(_COMPETITORS, tournament_id)
    }


async def _load_competitions(connection: Connection, tournament_id: TournamentId) -> dict[CompetitionId, Competition]:
    participants: dict[CompetitionId, list[tuple[CompetitorId, str | None]]] = {}
    for competition_id, competitor_id, result in await connection.fetch(_PARTICIPANTS, tournament_id):
        participants.setdefault(competition_id, []).append((competitor_id, result))
    return {
        row["competition_id"]: Competition(
            number=row["number"],
            group_id=row["group_id"],
            # The driver writes the first moment of year 1 as -infinity, and reads that back without a time zone.
            started_at=row["started_at"].replace(tzinfo=UTC),
            location=row["location"],
            participants=tuple(competitor_id for competitor_id, _ in participants.get(row["competition_id"], ())),
            result=_result(row["result"], participants.get(row["competition_id"], [])),
            winner_id=row["winner_id"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )
        for row in await connection.fetch(_COMPETITIONS, tournament_id)
    }


def _result(score: str | None, participants: list[tuple[CompetitorId, str | None]]) -> Result | None:
    if len(participants) <= SCORE_PARTICIPANTS_MAX:
        return score
    return {competitor_id: result for competitor_id, result in participants if result is not None} or None


async def _load_rankings(connection: Connection, tournament_id: TournamentId) -> dict[RankingId, Ranking]:
    enrolled: dict[RankingId, list[CompetitorId]] = {}
    for ranking_id, competitor_id in await connection.fetch(_ENROLMENTS, tournament_id):
        enrolled.setdefault(ranking_id, []).append(competitor_id)
    totals: dict[UnityId, dict[CompetitorId, int]] = {}
    for unity_id, competitor_id, total in await connection.fetch(_TOTALS, tournament_id):
        totals.setdefault(unity_id, {})[competitor_id] = total
    unities: dict[RankingId, dict[UnityId, Unity]] = {}
    for row in await connection.fetch(_UNITIES, tournament_id):
        unities.setdefault(row["ranking_id"], {})[row["unity_id"]] = Unity(
            number=row["number"],
            name=row["name"],
            sort=Sort(row["sort"]),
            version=row["version"],
            totals=totals.get(row["unity_id"], {}),
        )
    return {
        row["ranking_id"]: Ranking(
            number=row["number"],
            name=row["name"],
            description=row["description"],
            closed_at=row["closed_at"],
            participants=tuple(enrolled[row["ranking_id"]]),
            unities=unities[row["ranking_id"]],
        )
        for row in await connection.fetch(_RANKINGS, tournament_id)
    }


# ── Writing what events touched ─────────────────────────────────────────────────────────────────────────


class Touched(Struct):
    """Which rows a run of events may have changed. `lists`: rankings whose enrolments are to be written anew."""

    competitors: set[CompetitorId] = field(default_factory=set)
    competitions: set[CompetitionId] = field(default_factory=set)
    rankings: set[RankingId] = field(default_factory=set)
    lists: set[RankingId] = field(default_factory=set)
    unities: set[tuple[RankingId, UnityId]] = field(default_factory=set)
    totals: set[tuple[RankingId, UnityId, CompetitorId]] = field(default_factory=set)


def touch(touched: Touched, board: Board, event: Event) -> None:
    """Adds to `touched` the rows that `event` may have changed; `board` has it folded."""
    match event:
        case events.PointsAdded():
            for delta in event.deltas:
                touched.unities.add((event.ranking_id, delta.unity_id))
                touched.totals.add((event.ranking_id, delta.unity_id, delta.competitor_id))
        case events.TournamentOpened():
            pass
        case events.CompetitorRegistered() | events.CompetitorChanged():
            touched.competitors.add(event.competitor_id)
        case events.CompetitionAdded() | events.CompetitionChanged():
            touched.competitions.add(event.competition_id)
        case events.RankingCreated() | events.RankingModified():
            touched.rankings.add(event.ranking_id)
            touched.lists.add(event.ranking_id)
            touched.unities.update((event.ranking_id, u) for u in board.rankings[event.ranking_id].unities)
        case events.UnityAdded():
            touched.unities.add((event.ranking_id, event.unity_id))
        case events.RankingClosed() | events.RankingReopened():
            touched.rankings.add(event.ranking_id)
        case _:
            assert_never(event)


_SAVE_COMPETITOR: Final = """
    INSERT INTO competitor (
        tournament_id, competitor_id, number, name, tags, color, parent_id, created_at, updated_at
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (tournament_id, competitor_id) DO UPDATE
    SET name = excluded.name, tags = excluded.tags, color = excluded.color, parent_id = excluded.parent_id,
        updated_at = excluded.updated_at
"""
_SAVE_COMPETITION: Final = """
    INSERT INTO competition (
        tournament_id, competition_id, number, group_id, started_at, location, result, winner_id,
        created_at, updated_at
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (tournament_id, competition_id) DO UPDATE
    SET started_at = excluded.started_at, location = excluded.location, result = excluded.result,
        winner_id = excluded.winner_id, updated_at = excluded.updated_at
"""
_SAVE_PARTICIPANT: Final = """
    INSERT INTO participant (tournament_id, competition_id, number, competitor_id, result)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tournament_id, competition_id, number) DO UPDATE
    SET result = excluded.result
"""
_SAVE_RANKING: Final = """
    INSERT INTO ranking (tournament_id, ranking_id, number, name, description, closed_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tournament_id, ranking_id) DO UPDATE
    SET name = excluded.name, description = excluded.description, closed_at = excluded.closed_at
"""
_CLEAR_LIST: Final = "DELETE FROM enrolment WHERE tournament_id = $1 AND ranking_id = $2"
_SAVE_LIST: Final = """
    INSERT INTO enrolment (tournament_id, ranking_id, number, competitor_id)
    SELECT $1, $2, listed.number, listed.competitor_id
    FROM unnest($3::bigint[]) WITH ORDINALITY AS listed (competitor_id, number)
"""
_SAVE_UNITIES: Final = """
    INSERT INTO unity (tournament_id, unity_id, ranking_id, number, name, sort, version)
    SELECT $1, u.unity_id, u.ranking_id, u.number, u.name, u.sort, u.version
    FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::bigint[])
        AS u (unity_id, ranking_id, number, name, sort, version)
    ON CONFLICT (tournament_id, unity_id) DO UPDATE
    SET name = excluded.name, sort = excluded.sort, version = excluded.version
"""
_SAVE_TOTALS: Final = """
    INSERT INTO total (tournament_id, unity_id, competitor_id, total)
    SELECT $1, s.unity_id, s.competitor_id, s.total
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS s (unity_id, competitor_id, total)
    ON CONFLICT (tournament_id, unity_id, competitor_id) DO UPDATE
    SET total = excluded.total
"""


async def save(connection: Connection, tournament_id: TournamentId, board: Board, touched: Touched) -> None:
    """Writes the touched rows as `board` has them."""
    if touched.competitors:
        await connection.executemany(
            _SAVE_COMPETITOR, [_competitor_row(tournament_id, c, board) for c in touched.competitors]
        )
    if touched.competitions:
        await _save_competitions(connection, tournament_id, board, touched.competitions)
    if touched.rankings:
        await connection.executemany(
            _SAVE_RANKING, [_ranking_row(tournament_id, r, board.rankings[r]) for r in touched.rankings]
        )
    for ranking_id in touched.lists:
        await connection.execute(_CLEAR_LIST, tournament_id, ranking_id)
        await connection.execute(_SAVE_LIST, tournament_id, ranking_id, list(board.rankings[ranking_id].participants))
    if touched.unities:
        await _save_unities(connection, tournament_id, board, touched.unities)
    if touched.totals:
        await _save_totals(connection, tournament_id, board, touched.totals)


async def _save_competitions(
    connection: Connection, tournament_id: TournamentId, board: Board, touched: Iterable[CompetitionId]
) -> None:
    competitions = [(competition_id, board.competitions[competition_id]) for competition_id in touched]
    await connection.executemany(
        _SAVE_COMPETITION,
        [
            (
                tournament_id,
                competition_id,
                competition.number,
                competition.group_id,
                competition.started_at,
                competition.location,
                competition.result if isinstance(competition.result, str) else None,
                competition.winner_id,
                competition.created_at,
                competition.updated_at,
            )
            for competition_id, competition in competitions
        ],
    )
    participants = [
        (tournament_id, competition_id, number, competitor_id, _performance(competition, competitor_id))
        for competition_id, competition in competitions
        for number, competitor_id in enumerate(competition.participants, start=1)
    ]
    await connection.executemany(_SAVE_PARTICIPANT, participants)


def _performance(competition: Competition, competitor_id: CompetitorId) -> str | None:
    return competition.result.get(competitor_id) if isinstance(competition.result, dict) else None


def _competitor_row(tournament_id: TournamentId, competitor_id: CompetitorId, board: Board) -> tuple[object, ...]:
    competitor = board.competitors[competitor_id]
    return (
        tournament_id,
        competitor_id,
        competitor.number,
        competitor.name,
        list(competitor.tags),
        competitor.color,
        competitor.parent_id,
        competitor.created_at,
        competitor.updated_at,
    )


def _ranking_row(tournament_id: TournamentId, ranking_id: RankingId, ranking: Ranking) -> tuple[object, ...]:
    return tournament_id, ranking_id, ranking.number, ranking.name, ranking.description, ranking.closed_at


async def _save_unities(
    connection: Connection, tournament_id: TournamentId, board: Board, touched: Iterable[tuple[RankingId, UnityId]]
) -> None:
    rows = [(u, r, board.rankings[r].unities[u]) for r, u in touched]
    await connection.execute(
        _SAVE_UNITIES,
        tournament_id,
        [unity_id for unity_id, _, _ in rows],
        [ranking_id for _, ranking_id, _ in rows],
        [unity.number for _, _, unity in rows],
        [unity.name for _, _, unity in rows],
        [unity.sort.value for _, _, unity in rows],
        [unity.version for _, _, unity in rows],
    )


async def _save_totals(
    connection: Connection,
    tournament_id: TournamentId,
    board: Board,
    touched: Iterable[tuple[RankingId, UnityId, CompetitorId]],
) -> None:
    rows = [(u, c, board.rankings[r].unities[u].totals[c]) for r, u, c in touched]
    await connection.execute(
        _SAVE_TOTALS,
        tournament_id,
        [unity_id for unity_id, _, _ in rows],
        [competitor_id for _, competitor_id, _ in rows],
        [total for _, _, total in rows],
    )


# ── Starting over ───────────────────────────────────────────────────────────────────────────────────────

_CLEAR: Final = (
    "DELETE FROM competitor WHERE tournament_id = $1",
    "DELETE FROM competition WHERE tournament_id = $1",
    "DELETE FROM participant WHERE tournament_id = $1",
    "DELETE FROM ranking WHERE tournament_id = $1",
    "DELETE FROM enrolment WHERE tournament_id = $1",
    "DELETE FROM unity WHERE tournament_id = $1",
    "DELETE FROM total WHERE tournament_id = $1",
)


async def clear(connection: Connection, tournament_id: TournamentId) -> None:
    """Removes a tournament's rows, to fold them anew; its checkpoint stays where it is."""
    for statement in _CLEAR:
        await connection.execute(statement, tournament_id)
