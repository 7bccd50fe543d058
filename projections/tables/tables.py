"""The tables: the board of each tournament as rows, and the checkpoint up to which they are folded.

This file has the only SQL on the relational projection; most of it is made from the columns that `columns.py` declares.
Rows are not computed here: rows that an event touched are written as the fold left them, so the tables cannot disagree
with the board.
"""

import asyncio
from array import array
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing, nullcontext
from itertools import groupby, islice, repeat
from operator import itemgetter
from typing import Any, Final

from asyncpg import Connection, Record
from msgspec import Struct, field

from engine.database.distribution import TournamentQuery, is_distributed, keep_in_place
from engine.domain import events
from engine.domain.errors import LogUnreadable
from engine.domain.events import COLOR_DEFAULT, Event
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log.heads import Head
from engine.process.telemetry import LOADED_ROWS
from engine.process.time_slices import TimeSlice
from projections.board.board import FOLD_VERSION, Board, Unity, board_like, note_expiry, note_struck
from projections.board.publication import Publication
from projections.columns.enrolment import Enrolment, Totals
from projections.tables.columns import (
    COMPETITION,
    COMPETITOR,
    ENROLMENT,
    PARTICIPANT,
    PUBLICATION,
    RANKING,
    TABLES,
    TOTAL,
    UNITY,
    Table,
    packed_competition,
    packed_competitor,
    publication_of,
    ranking_of,
    unity_of,
)

ROWS_MAX: Final = 500
"""Rows that one statement writes, or that are read at a time. This bounds the time of the statement, and the time for
which encoding or decoding blocks the event loop."""
COMPETITIONS_AT_ONCE: Final = 100
"""Competitions that are read at a time. Each comes with all its participants, at most ten thousand."""

# ── Checkpoints ─────────────────────────────────────────────────────────────────────────────────────────

_CHECKPOINTS: Final = """
    SELECT tournament_id, sequence, digest, fold_version, snapshot_sequence
    FROM checkpoint
    WHERE tournament_id = ANY($1::bigint[])
"""
_CREATE_CHECKPOINTS: Final = """
    INSERT INTO checkpoint (tournament_id, sequence, digest, recorded_at, fold_version)
    SELECT l.tournament_id, 0, b.digest, now(), $3
    FROM unnest($1::bigint[], $2::bytea[]) AS b (tournament_id, digest)
    JOIN append_lock AS l ON l.tournament_id = b.tournament_id
    WHERE l.tournament_id = ANY($1::bigint[])
    ORDER BY l.tournament_id
    ON CONFLICT (tournament_id) DO NOTHING
"""
_CLAIM: Final = """
    SELECT
        tournament_id,
        sequence,
        digest,
        fold_version,
        snapshot_sequence,
        set_config('synchronous_commit', 'off', true)
    FROM checkpoint
    WHERE tournament_id = ANY($1::bigint[])
    ORDER BY tournament_id
    FOR UPDATE SKIP LOCKED
"""
_EXPIRING: Final = "SELECT DISTINCT tournament_id, expires_on FROM unity WHERE lasts IS NOT NULL"
_HOLD: Final = "UPDATE checkpoint SET sequence = sequence WHERE tournament_id = $1"
_FORGET: Final = """
    UPDATE competitor
    SET name = '#' || competitor_id, tags = '{}', color = $3, key = NULL, former = '{}', parent_id = NULL,
        updated_at = created_at, revised = 0, erased = 0
    WHERE tournament_id = $1 AND competitor_id = $2 AND erased IS NULL
"""
_ADVANCE: Final = """
    UPDATE checkpoint AS c
    SET sequence = a.sequence, digest = a.digest, recorded_at = now(), fold_version = $5,
        snapshot_sequence = a.snapshot_sequence
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[])
        AS a (tournament_id, sequence, digest, snapshot_sequence)
    WHERE c.tournament_id = a.tournament_id AND c.tournament_id = ANY($1::bigint[])
"""
# The registry is on each node, so a distributed database joins it where the row of each tournament is.
_LISTED: Final = """
    SELECT t.slug
    FROM publication AS p
    JOIN tournament AS t ON t.tournament_id = p.tournament_id
    WHERE p.listed AND p.published
    ORDER BY t.slug
    LIMIT $1
"""
_MOMENT: Final = "SELECT pg_current_snapshot()::text WHERE NOT EXISTS (SELECT FROM stopped)"
_SOMEWHERE: Final = """
    SELECT tournament_id
    FROM tournament
    WHERE tournament_id >= (SELECT (random() * max(tournament_id))::bigint FROM tournament)
    ORDER BY tournament_id
    LIMIT 1
"""
_REGISTERED: Final = """
    SELECT tournament_id
    FROM tournament
    WHERE tournament_id > $1
    ORDER BY tournament_id
    LIMIT $2
"""
# Finds each head by its index; the limit prevents PostgreSQL from joining all of them.
_BEHIND_OF_EACH: Final = """
    SELECT l.tournament_id
    FROM append_lock AS l
    CROSS JOIN LATERAL (
        SELECT last_sequence
        FROM block
        WHERE tournament_id = l.tournament_id
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS h
    LEFT JOIN checkpoint AS c ON c.tournament_id = l.tournament_id
    LEFT JOIN stopped AS s ON s.tournament_id = l.tournament_id
    WHERE l.tournament_id = ANY($1::bigint[])
        AND (c.sequence IS NULL OR c.fold_version < $2 OR (c.fold_version = $2 AND c.sequence < h.last_sequence))
        AND (s.stopped_at IS NULL OR s.stopped_at < now() - $3 * interval '1 second')
"""
# One walk over `append_lock` for all takes half to four fifths of the time of a question about each.
_BEHIND: Final = TournamentQuery(
    _BEHIND_OF_EACH.replace("ANY($1::bigint[])", "$1").replace("= l.tournament_id", "= $1"), each=_BEHIND_OF_EACH
)


class Checkpoint(Struct, frozen=True):
    """The head of a tournament's tables, the version of the fold that made them, and the sequence of the last
    snapshot."""

    head: Head
    fold_version: int
    snapshot_sequence: Sequence


async def checkpoint(connection: Connection, tournament_id: TournamentId) -> Checkpoint | None:
    """The checkpoint of the tables; None: there are none yet."""
    return (await checkpoints(connection, [tournament_id])).get(tournament_id)


async def expiring(connection: Connection) -> dict[TournamentId, ExpiresOn]:
    """The tournaments in which points expire, as far as the tables know, each with the finest of its boundaries."""
    found: dict[TournamentId, ExpiresOn] = {}
    for row in await connection.fetch(_EXPIRING):
        on = ExpiresOn(row["expires_on"])
        found[row["tournament_id"]] = min(on, found.get(row["tournament_id"], on), key=lambda one: one.length)
    return found


async def checkpoints(
    connection: Connection, tournament_ids: Collection[TournamentId]
) -> dict[TournamentId, Checkpoint]:
    """The checkpoint of each of the tournaments, except those without tables."""
    rows = await connection.fetch(_CHECKPOINTS, list(tournament_ids))
    return {row["tournament_id"]: _checkpoint(row) for row in rows}


async def create_checkpoints(connection: Connection, beginnings: Mapping[TournamentId, Head]) -> None:
    """Creates the missing checkpoints of tournaments. Not within a transaction, because others would wait for it."""
    if not beginnings:
        return
    digests = [beginning.digest for beginning in beginnings.values()]
    await connection.execute(_CREATE_CHECKPOINTS, list(beginnings), digests, FOLD_VERSION)


async def claim(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Checkpoint]:
    """Locks those checkpoints that are not already locked, until the transaction ends.

    Also turns off waiting for the transaction's commit, here because that saves a round trip. This is safe: rows and
    checkpoint are one commit, so a crash of the server loses both, and the events are folded again.
    """
    await keep_in_place(connection, tournament_ids)
    rows = await connection.fetch(_CLAIM, tournament_ids)
    return {row["tournament_id"]: _checkpoint(row) for row in rows}


async def forget(connection: Connection, tournament_id: TournamentId, competitor_id: CompetitorId) -> None:
    """Erases the competitor in the rows, as the log has done, within a transaction. For a tournament that no worker
    folds further. Waits for a worker that is folding it."""
    await connection.execute(_HOLD, tournament_id)
    await connection.execute(_FORGET, tournament_id, competitor_id, COLOR_DEFAULT)


def _checkpoint(row: Record) -> Checkpoint:
    return Checkpoint(Head(row["sequence"], row["digest"]), row["fold_version"], row["snapshot_sequence"])


async def advance(
    connection: Connection, heads: Mapping[TournamentId, Head], snapshot_sequences: Mapping[TournamentId, Sequence]
) -> None:
    """Records that the rows are now those of `heads`, and the sequence of the last snapshot of each; part of the
    transaction that wrote them. Tournaments stopped by an event up to there continue."""
    sequences = [head.sequence for head in heads.values()]
    digests = [head.digest for head in heads.values()]
    snapshot_at = [snapshot_sequences[tournament_id] for tournament_id in heads]
    await connection.execute(_ADVANCE, list(heads), sequences, digests, snapshot_at, FOLD_VERSION)
    for tournament_id in await stops(connection, heads):
        await connection.execute(_RESUME, tournament_id, heads[tournament_id].sequence)


async def moment(connection: Connection) -> str | None:
    """A text that stands for everything committed until now: while it stays the same, all readable data does, too.

    In a distributed database, it is the text of the connection's node. None while a tournament is stopped, because then
    there is work even if nothing changes.
    """
    snapshot: str | None = await connection.fetchval(_MOMENT)
    return snapshot


async def somewhere(connection: Connection) -> TournamentId:
    """Any tournament; 0 where there is none."""
    return TournamentId(await connection.fetchval(_SOMEWHERE) or 0)


async def registered(connection: Connection, after: TournamentId, limit: int) -> list[TournamentId]:
    """The next tournaments after an id, ascending; fewer than `limit` where there are no more."""
    return [row["tournament_id"] for row in await connection.fetch(_REGISTERED, after, limit)]


async def behind(
    connection: Connection, tournament_ids: Collection[TournamentId], *, stopped_seconds: float
) -> list[TournamentId]:
    """The tournaments whose tables lack events or are of an older fold. Leaves out tables of a newer fold, which this
    version must not change, and tournaments that stopped less than `stopped_seconds` ago."""
    asked = dict.fromkeys(tournament_ids, ())
    return [row["tournament_id"] for row in await _BEHIND.fetch(connection, asked, FOLD_VERSION, stopped_seconds)]


# ── Stopped tournaments ─────────────────────────────────────────────────────────────────────────────────

_STOP: Final = """
    INSERT INTO stopped (tournament_id, sequence, reason, stopped_at)
    VALUES ($1, $2, $3, now())
    ON CONFLICT (tournament_id) DO UPDATE
    SET sequence = excluded.sequence, reason = excluded.reason, stopped_at = excluded.stopped_at
"""
_CAN_RESUME: Final = "SELECT EXISTS (SELECT FROM stopped WHERE tournament_id = $1 AND sequence <= $2)"
_RESUME: Final = "DELETE FROM stopped WHERE tournament_id = $1 AND sequence <= $2"
_STOPPED: Final = "SELECT count(*) FROM stopped"
_STOPPED_AFTER: Final = """
    SELECT tournament_id
    FROM stopped
    WHERE tournament_id > $1
    ORDER BY tournament_id
    LIMIT $2
"""
_STOPPED_LAST: Final = """
    SELECT tournament_id, sequence
    FROM stopped
    ORDER BY stopped_at DESC, tournament_id
    LIMIT $1
"""
_STOPS: Final = """
    SELECT tournament_id, sequence, reason
    FROM stopped
    WHERE tournament_id = ANY($1::bigint[])
"""


class Stop(Struct, frozen=True):
    """Why a tournament has stopped: the event, and the reason."""

    sequence: Sequence
    reason: str


async def stop(connection: Connection, cause: LogUnreadable) -> None:
    """Notes why a tournament stopped, for all processes and the operator."""
    reason = cause.reason.replace("\0", "\\0")  # it may cite the event, and a column cannot hold this one
    reason = reason.encode("utf-8", "backslashreplace").decode()  # nor halves of surrogate pairs
    await connection.execute(_STOP, cause.tournament_id, cause.sequence, reason)


async def resume(connection: Connection, tournament_id: TournamentId, head: Head) -> None:
    """Removes the note of an event up to `head`, which can be folded again. Without such a note it only reads."""
    if await connection.fetchval(_CAN_RESUME, tournament_id, head.sequence):
        await connection.execute(_RESUME, tournament_id, head.sequence)


async def stopped_count(connection: Connection) -> int:
    """How many tournaments are stopped."""
    count: int = await connection.fetchval(_STOPPED)
    return count


async def last_stopped(connection: Connection, limit: int) -> list[tuple[TournamentId, Sequence]]:
    """The tournaments that stopped last, at most `limit`, each with the event at which it did."""
    return [(row["tournament_id"], row["sequence"]) for row in await connection.fetch(_STOPPED_LAST, limit)]


async def stopped(connection: Connection, after: TournamentId, limit: int) -> list[TournamentId]:
    """The next stopped tournaments after an id, ascending; fewer than `limit` where there are no more."""
    return [row["tournament_id"] for row in await connection.fetch(_STOPPED_AFTER, after, limit)]


async def stops(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Stop]:
    """Those tournaments that have stopped."""
    rows = await connection.fetch(_STOPS, list(tournament_ids))
    return {row["tournament_id"]: Stop(row["sequence"], row["reason"]) for row in rows}


# ── Reading a board ─────────────────────────────────────────────────────────────────────────────────────


_TOTALS_OF: Final = """
    SELECT
        c.sequence,
        ARRAY(
            SELECT coalesce(t.total, 0)
            FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS n (unity_id, competitor_id, number)
            LEFT JOIN total AS t
                ON t.tournament_id = $1 AND t.unity_id = n.unity_id AND t.competitor_id = n.competitor_id
            ORDER BY n.number
        )
    FROM checkpoint AS c
    WHERE c.tournament_id = $1
"""


async def totals(
    connection: Connection, tournament_id: TournamentId, named: Collection[tuple[UnityId, CompetitorId]]
) -> tuple[Sequence, dict[tuple[UnityId, CompetitorId], int]]:
    """The checkpoint of a tournament, and the totals that the tables show there, each by its unity and competitor. The
    tournament has one."""
    keys = list(named)
    sequence, found = await connection.fetchrow(
        _TOTALS_OF, tournament_id, [unity_id for unity_id, _ in keys], [competitor_id for _, competitor_id in keys]
    )
    return sequence, dict(zip(keys, found, strict=True))


async def load_board(connection: Connection, tournament_id: TournamentId, *, like: Board | None = None) -> Board:
    """The board made from the rows. The caller must read in one snapshot, and rows of this version. Items equal to
    those of `like` share their memory."""
    board = Board() if like is None else board_like(like)
    await _load(connection, {tournament_id: board})
    return board


async def load_boards(connection: Connection, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Board]:
    """As `load_board` for several tournaments; a board is empty if there are no rows."""
    boards = {tournament_id: Board() for tournament_id in tournament_ids}
    if boards:
        await _load(connection, boards)
    return boards


async def _load(connection: Connection, boards: Mapping[TournamentId, Board]) -> None:
    async with nullcontext() if connection.is_in_transaction() else connection.transaction():  # a cursor wants one
        await _load_publications(connection, boards)
        await _load_competitors(connection, boards)
        await _load_competitions(connection, boards)
        await _load_rankings(connection, boards)


async def in_chunks(
    connection: Connection,
    statement: str,
    *arguments: object,
    rows_max: int | None = None,
    seconds_max: float | None = None,
) -> AsyncGenerator[list[Record], None]:
    """The rows of a statement in chunks, within a transaction: other work runs between them, and PostgreSQL computes
    the next chunk meanwhile. Use it `aclosing`.

    `rows_max`: rows of a chunk, instead of ROWS_MAX; `seconds_max`: the time for each chunk, instead of that of any
    statement.
    """
    at_once = rows_max or ROWS_MAX
    cursor = await connection.cursor(statement, *arguments, timeout=seconds_max)
    reading = asyncio.create_task(cursor.fetch(at_once, timeout=seconds_max))
    try:
        while len(rows := await reading) == at_once:
            reading = asyncio.create_task(cursor.fetch(at_once, timeout=seconds_max))
            await asyncio.sleep(0)  # it sends its query
            yield rows
        if rows:
            yield rows
    finally:
        await asyncio.wait([reading])  # cancelling what PostgreSQL is at would end the transaction


async def _chunks(
    connection: Connection, table: Table, boards: Mapping[TournamentId, Board], *, rows_max: int | None = None
) -> AsyncGenerator[list[Record], None]:
    """The rows of a table for the tournaments."""
    async with aclosing(in_chunks(connection, table.select, list(boards), rows_max=rows_max)) as chunks:
        async for rows in chunks:
            LOADED_ROWS.inc(len(rows))
            yield rows


async def _rows(
    connection: Connection, table: Table, boards: Mapping[TournamentId, Board]
) -> AsyncGenerator[Record, None]:
    """The rows of `_chunks`, one by one."""
    async with aclosing(_chunks(connection, table, boards)) as chunks:
        async for rows in chunks:
            for row in rows:
                yield row


async def listed_slugs(connection: Connection, limit: int) -> list[str]:
    """The slugs of the published tournaments that are listed, as the tables have them: the first ones, `limit` at
    most."""
    return [row["slug"] for row in await connection.fetch(_LISTED, limit)]


async def _load_publications(connection: Connection, boards: Mapping[TournamentId, Board]) -> None:
    async with aclosing(_rows(connection, PUBLICATION, boards)) as rows:
        async for row in rows:
            boards[row["tournament_id"]].publication = publication_of(row)


async def _load_competitors(connection: Connection, boards: Mapping[TournamentId, Board]) -> None:
    async with aclosing(_chunks(connection, COMPETITOR, boards)) as chunks:
        async for rows in chunks:
            for row in rows:
                boards[row[0]].competitors.put(row[1], packed_competitor(row), row["key"])


async def _load_competitions(connection: Connection, boards: Mapping[TournamentId, Board]) -> None:
    time_slice = TimeSlice()
    async with aclosing(_chunks(connection, COMPETITION, boards, rows_max=COMPETITIONS_AT_ONCE)) as chunks:
        async for rows in chunks:
            for row in rows:
                board, competition_id = boards[row[0]], row[1]
                board.competitions.put(competition_id, packed_competition(row), row["key"])
                if row["voided_at"] is not None:
                    board.voided.add(competition_id)
                note_struck(board, competition_id, row["struck"] or ())
                if time_slice.over:
                    await time_slice.give_way()


async def _load_rankings(connection: Connection, boards: Mapping[TournamentId, Board]) -> None:
    enrolments = await _load_enrolments(connection, boards)
    unities: dict[tuple[TournamentId, RankingId], dict[UnityId, Unity]] = {}
    unity_by_id: dict[tuple[TournamentId, UnityId], Unity] = {}
    async with aclosing(_rows(connection, UNITY, boards)) as rows:
        async for row in rows:
            key, unity_id = (row["tournament_id"], row["ranking_id"]), row["unity_id"]
            unity = unity_of(row, Totals(enrolments.setdefault(key, Enrolment())))
            unities.setdefault(key, {})[unity_id] = unity_by_id[row["tournament_id"], unity_id] = unity
    async with aclosing(_chunks(connection, TOTAL, boards)) as chunks:
        async for rows_of_totals in chunks:
            for key_of_unity, of_rows in groupby(rows_of_totals, itemgetter(0, 1)):
                if (of_unity := unity_by_id.get(key_of_unity)) is not None:
                    of_unity.totals.make_room()
                    for _, _, competitor_id, total in of_rows:
                        of_unity.totals.add(competitor_id, total)
    async with aclosing(_rows(connection, RANKING, boards)) as rows:
        async for row in rows:
            key = row["tournament_id"], row["ranking_id"]
            board, ranking_id = boards[row["tournament_id"]], row["ranking_id"]
            board.rankings[ranking_id] = ranking = ranking_of(row, enrolments[key], unities[key])
            for unity_id in ranking.special:
                note_expiry(board, ranking_id, unity_id)


async def _load_enrolments(
    connection: Connection, boards: Mapping[TournamentId, Board]
) -> dict[tuple[TournamentId, RankingId], Enrolment]:
    enrolments: dict[tuple[TournamentId, RankingId], Enrolment] = {}
    async with aclosing(_chunks(connection, ENROLMENT, boards)) as chunks:
        async for rows in chunks:
            for key, of_ranking in groupby(rows, itemgetter(0, 1)):
                enrolment = enrolments.setdefault(key, Enrolment())
                first, places = len(enrolment.places), array("q")
                for _, _, competitor_id, number, has_left in of_ranking:
                    places.extend(repeat(0, number - 1 - first - len(places)))
                    places.append(-competitor_id if has_left else competitor_id)
                enrolment.append_places(places)
    return enrolments


# ── Writing what events touched ─────────────────────────────────────────────────────────────────────────


class Touched(Struct):
    """A tournament's board, and the rows of it that a run of events may have changed. `set_aside`: the sequences that
    the events set aside. `erased`: the competitors that they erase. `relisted`: the competitions that may have fewer
    participants."""

    board: Board
    publication: bool = False
    competitors: set[CompetitorId] = field(default_factory=set)
    competitions: set[CompetitionId] = field(default_factory=set)
    relisted: set[CompetitionId] = field(default_factory=set)
    rankings: set[RankingId] = field(default_factory=set)
    enrolments: dict[RankingId, "TouchedEnrolments"] = field(default_factory=dict)
    unities: set[tuple[RankingId, UnityId]] = field(default_factory=set)
    totals: dict[RankingId, dict[UnityId, set[CompetitorId]]] = field(default_factory=dict)
    set_aside: set[Sequence] = field(default_factory=set)
    erased: set[CompetitorId] = field(default_factory=set)


class TouchedEnrolments(Struct):
    """The rows of one ranking that may have changed. If its places are of another `generation` by now, all have."""

    generation: int | None
    competitors: set[CompetitorId] = field(default_factory=set)


def touch(touched: Touched, event: Event) -> None:
    """Adds the rows that `event` may change to `touched`. Call it before the event is folded into the board."""
    for what in event.touches:
        _TOUCHED[what](touched, event)
    match event:
        case events.PointsAdded() | events.PointsReversed() | events.PointsExpired():
            row = touched.board.rankings[event.ranking_id].participants.row
            totals = touched.totals.setdefault(event.ranking_id, {})
            for delta in events.changed_by(event):
                competitors = totals.get(delta.unity_id)
                if competitors is None:
                    competitors = totals[delta.unity_id] = set()
                    touched.unities.add((event.ranking_id, delta.unity_id))
                if delta.competitor_id not in competitors:
                    competitors.add(delta.competitor_id)
                    if row(delta.competitor_id) is None:  # only after an event was set aside
                        _touch_list(touched, event.ranking_id, delta.competitor_id)
            if isinstance(event, events.PointsReversed) and (event.undone is not None or event.replaced):
                touched.rankings.add(event.ranking_id)
        case events.CompetitionChanged() if event.relists is not None:
            touched.relisted.add(event.relists)
        case events.EventSetAside():
            touched.set_aside.add(event.sequence)
        case events.RankingCreated():
            touched.enrolments[event.ranking_id] = TouchedEnrolments(None)
            touched.unities.add((event.ranking_id, event.main_unity_id))
        case events.RankingModified():
            _touch_list(touched, event.ranking_id, *touched.board.rankings[event.ranking_id].participants)
            _touch_list(touched, event.ranking_id, *event.participants)
        case events.ParticipantsChanged():
            _touch_list(touched, event.ranking_id, *event.added, *event.removed)


def _touch_competitor(touched: Touched, event: Any) -> None:
    touched.competitors.add(event.competitor_id)
    if event.erases is not None:
        touched.erased.add(event.erases)


def _touch_publication(touched: Touched, _: Event) -> None:
    touched.publication = True


_TOUCHED: Final[dict[events.Touchable, Callable[[Touched, Any], None]]] = {
    "competitor": _touch_competitor,
    "competition": lambda touched, event: touched.competitions.add(event.competition_id),
    "ranking": lambda touched, event: touched.rankings.add(event.ranking_id),
    "unity": lambda touched, event: touched.unities.add((event.ranking_id, event.unity_id)),
    "publication": _touch_publication,
    "order": lambda touched, _: touched.rankings.update(touched.board.rankings),
}


def _touch_list(touched: Touched, ranking_id: RankingId, *competitor_ids: CompetitorId) -> None:
    ranking = touched.board.rankings[ranking_id]
    touched.rankings.add(ranking_id)
    touched.unities.update((ranking_id, unity_id) for unity_id in ranking.unities)
    of_ranking = touched.enrolments.setdefault(ranking_id, TouchedEnrolments(ranking.participants.generation))
    of_ranking.competitors.update(competitor_ids)


def everything(board: Board) -> Touched:
    """All rows that `board` is written as."""
    return Touched(
        board,
        publication=board.publication != Publication(),
        competitors=set(board.competitors),
        competitions=set(board.competitions),
        rankings=set(board.rankings),
        enrolments={ranking_id: TouchedEnrolments(None) for ranking_id in board.rankings},
        unities={(r, u) for r, ranking in board.rankings.items() for u in ranking.unities},
        totals={r: {u: set(unity.totals) for u, unity in of.unities.items()} for r, of in board.rankings.items()},
    )


_UNLIST: Final = "DELETE FROM participant WHERE tournament_id = $1 AND competition_id = ANY($2::bigint[])"


async def save(connection: Connection, touched: Mapping[TournamentId, Touched]) -> None:
    """Writes the touched rows of each tournament as its board has them."""
    if is_distributed(connection) and len(touched) > 1:
        for tournament_id, on in touched.items():
            await save(connection, {tournament_id: on})
        return
    of = [(tournament_id, on, on.board) for tournament_id, on in touched.items()]
    publications = ((t, board.publication) for t, on, board in of if on.publication)
    await _write(connection, PUBLICATION, publications)
    competitors = ((t, c, board.competitors[c]) for t, on, board in of for c in on.competitors)
    await _write(connection, COMPETITOR, competitors)
    competitions = ((t, c, board.competitions[c]) for t, on, board in of for c in on.competitions)
    await _write(connection, COMPETITION, competitions)
    for tournament_id, on, _ in of:
        if on.relisted:
            await connection.execute(_UNLIST, tournament_id, on.relisted)
    participants = (row for t, on, board in of for c in on.competitions for row in _participants(t, c, board))
    await _write(connection, PARTICIPANT, participants)
    rankings = ((t, r, board.rankings[r]) for t, on, board in of for r in on.rankings)
    await _write(connection, RANKING, rankings)
    enrolments = (row for t, on, board in of for r in on.enrolments for row in _enrolments(t, r, board, on))
    await _write(connection, ENROLMENT, enrolments)
    unities = ((t, u, r, board.rankings[r].unities[u]) for t, on, board in of for r, u in on.unities)
    await _write(connection, UNITY, unities)
    totals = (row for t, on, board in of for r in on.totals for row in _totals(t, r, board, on))
    await _write(connection, TOTAL, totals)


_Row = tuple[object, ...]


async def _write(connection: Connection, table: Table, rows: Iterator[_Row]) -> None:
    """Writes all `rows` of a table, ROWS_MAX at a time; on a distributed database, all must be of one tournament."""
    while chunk := list(islice(rows, ROWS_MAX)):
        arrays = table.arrays(chunk)
        if is_distributed(connection):
            await connection.execute(table.insert_of_one, chunk[0][0], *arrays[1:])
        else:
            await connection.execute(table.insert, *arrays)


def _participants(tournament_id: TournamentId, competition_id: CompetitionId, board: Board) -> Iterator[_Row]:
    competition = board.competitions[competition_id]
    results = competition.result if isinstance(competition.result, dict) else {}
    for number, competitor_id in enumerate(competition.participants, start=1):
        yield tournament_id, competition_id, number, competitor_id, results.get(competitor_id)


def _enrolments(tournament_id: TournamentId, ranking_id: RankingId, board: Board, touched: Touched) -> Iterator[_Row]:
    """No competitor that was ever in a list is removed from it, so no row is ever removed."""
    enrolment, of_ranking = board.rankings[ranking_id].participants, touched.enrolments[ranking_id]
    places = enrolment.places
    if of_ranking.generation == enrolment.generation:
        rows = (enrolment.row(competitor_id) for competitor_id in of_ranking.competitors)
    else:
        rows = (place for place, competitor_id in enumerate(places) if competitor_id)
    for place in rows:
        if place is not None:
            yield tournament_id, ranking_id, abs(places[place]), place + 1, places[place] < 0


def _totals(tournament_id: TournamentId, ranking_id: RankingId, board: Board, touched: Touched) -> Iterator[_Row]:
    unities = board.rankings[ranking_id].unities
    for unity_id, competitor_ids in touched.totals[ranking_id].items():
        totals = unities[unity_id].totals
        for competitor_id in competitor_ids:
            yield tournament_id, unity_id, competitor_id, totals[competitor_id]


# ── Starting over ───────────────────────────────────────────────────────────────────────────────────────

_TAKE_TIME: Final = "SELECT set_config('idle_in_transaction_session_timeout', '10min', true)"


async def clear(connection: Connection, tournament_ids: Collection[TournamentId]) -> None:
    """Removes the rows of tournaments that will be folded again, but not their checkpoints."""
    for table in TABLES if tournament_ids else ():
        await connection.execute(table.delete, tournament_ids)


async def take_time(connection: Connection) -> None:
    """Allows long idle times between two statements of the transaction, because comparing two large boards takes
    long."""
    await connection.execute(_TAKE_TIME)
