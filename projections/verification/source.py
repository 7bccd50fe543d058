"""The data that a verification reads of a tournament: on demand, or beforehand for many small ones.

Even a small tournament needs some twenty queries. A batch of small ones shares them. A tournament that has anything out
of the ordinary (snapshots, events that were set aside or are out of range, more than a batch may hold) is read
separately. So is each of the batch if something in it cannot be read: then the error occurs again, at the tournament
that has it.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping
from collections.abc import Sequence as Items
from contextlib import aclosing
from typing import Any, Final

import asyncpg
from asyncpg import Connection
from msgspec import Struct

from engine.database.pool import DATABASE_TROUBLE
from engine.domain.terms import RankingId, Sequence, TournamentId
from projections.board.board import FOLD_VERSION, Board
from projections.tables import snapshots, tables
from projections.tables.tables import Checkpoint
from projections.verification import stored_log, table_checks
from projections.verification.stored_log import OutOfRange, RegisteredTournament, SetAside, StoredBlock
from projections.verification.table_checks import StandingRow

TOGETHER_MAX: Final = 100
SMALL_EVENTS_MAX: Final = 1_000
"""A tournament with more events is read separately."""
SMALL_BYTES_MAX: Final = 64 * 1024
"""So is one with more bytes of blocks. A batch has up to TOGETHER_MAX times as many."""
TOGETHER_ROWS_MAX: Final = 50_000
"""Lines of standings, and idempotency keys, that are read for a batch; if there are more, each tournament is read
separately."""


class TournamentSource:
    """Reads one tournament on demand, over a connection within `stored_log.one_moment`."""

    def __init__(self, connection: Connection, tournament_id: TournamentId) -> None:
        self.connection = connection
        self.tournament_id = tournament_id

    async def blocks(self, after: Sequence) -> list[StoredBlock]:
        return await stored_log.blocks(self.connection, self.tournament_id, after)

    async def key_sequences(self, keys: Items[str]) -> Mapping[str, Sequence]:
        return await stored_log.key_sequences(self.connection, self.tournament_id, keys)

    async def key_count(self) -> int:
        return await stored_log.key_count(self.connection, self.tournament_id)

    async def caused_count(self, last: Sequence) -> int:
        return await stored_log.caused_count(self.connection, self.tournament_id, last)

    async def out_of_range(self, last: Sequence) -> OutOfRange:
        return await stored_log.out_of_range(self.connection, self.tournament_id, last)

    async def set_asides(self) -> list[SetAside]:
        return await stored_log.set_asides(self.connection, self.tournament_id)

    async def ignored(self) -> set[Sequence]:
        return await stored_log.ignored(self.connection, self.tournament_id)

    async def snapshot_sequences(self) -> list[Sequence]:
        return await snapshots.sequences(self.connection, self.tournament_id)

    async def count_other_snapshots(self) -> int:
        return await snapshots.count_others(self.connection, self.tournament_id)

    async def checkpoint(self) -> Checkpoint | None:
        return await tables.checkpoint(self.connection, self.tournament_id)

    async def strays(self) -> list[tuple[str, int, str]]:
        return await table_checks.strays(self.connection, self.tournament_id)

    async def incomplete(self) -> RankingId | None:
        return await table_checks.incomplete(self.connection, self.tournament_id)

    async def board(self, like: Board) -> Board:
        return await tables.load_board(self.connection, self.tournament_id, like=like)

    async def standing_rows(self) -> AsyncGenerator[list[StandingRow], None]:
        async with (
            self.connection.transaction(),  # a savepoint: an error does not end the moment
            aclosing(table_checks.standing_rows(self.connection, self.tournament_id)) as chunks,
        ):
            async for rows in chunks:
                yield rows


class _Found(Struct):
    """What was read of one tournament. Its tables have nothing wrong in themselves; `board` None: they are of another
    fold, and not compared."""

    blocks: list[StoredBlock]
    keys: Mapping[str, Sequence]
    caused: int
    checkpoint: Checkpoint | None
    board: Board | None
    standing: list[StandingRow]


class PrefetchedSource(TournamentSource):
    """Answers from the data read before."""

    def __init__(self, connection: Connection, tournament_id: TournamentId, found: _Found) -> None:
        super().__init__(connection, tournament_id)
        self._found = found

    async def blocks(self, after: Sequence) -> list[StoredBlock]:
        return self._found.blocks if after == 0 else []

    async def key_sequences(self, keys: Items[str]) -> Mapping[str, Sequence]:
        return self._found.keys

    async def key_count(self) -> int:
        return len(self._found.keys)

    async def caused_count(self, last: Sequence) -> int:
        return self._found.caused

    async def out_of_range(self, last: Sequence) -> OutOfRange:
        return OutOfRange(None, None, None)

    async def set_asides(self) -> list[SetAside]:
        return []

    async def ignored(self) -> set[Sequence]:
        return set()

    async def snapshot_sequences(self) -> list[Sequence]:
        return []

    async def count_other_snapshots(self) -> int:
        return 0

    async def checkpoint(self) -> Checkpoint | None:
        return self._found.checkpoint

    async def strays(self) -> list[tuple[str, int, str]]:
        return []

    async def incomplete(self) -> RankingId | None:
        return None

    async def board(self, like: Board) -> Board:
        assert self._found.board is not None
        return self._found.board

    async def standing_rows(self) -> AsyncGenerator[list[StandingRow], None]:
        yield self._found.standing


def is_small(tournament: RegisteredTournament) -> bool:
    """Whether it may be read together with others."""
    return tournament.sequence is not None and tournament.sequence <= SMALL_EVENTS_MAX


async def prefetched(
    connection: Connection, tournaments: Iterable[RegisteredTournament]
) -> dict[TournamentId, PrefetchedSource]:
    """The sources of those of a batch that could be read together."""
    lasts = {one.tournament_id: one.sequence for one in tournaments}
    try:
        async with connection.transaction():  # a savepoint: an error does not end the moment
            found = await _found(connection, lasts)
    except DATABASE_TROUBLE:
        raise
    except (asyncpg.PostgresError, ValueError, TypeError, OverflowError, LookupError):
        return {}
    return {t: PrefetchedSource(connection, t, of) for t, of in found.items()}


async def _found(connection: Connection, lasts: Mapping[TournamentId, Sequence | None]) -> dict[TournamentId, _Found]:
    plain = await stored_log.plain(connection, list(lasts), SMALL_BYTES_MAX)
    faulty = await table_checks.faulty(connection, plain)
    ids = [tournament_id for tournament_id in plain if tournament_id not in faulty]
    keys = await stored_log.all_keys(connection, ids, TOGETHER_ROWS_MAX + 1)
    standing = await table_checks.all_standing_rows(connection, ids, TOGETHER_ROWS_MAX + 1)
    if max(_count(keys), _count(standing)) > TOGETHER_ROWS_MAX:
        return {}
    blocks = await stored_log.all_blocks(connection, ids)
    caused = await stored_log.all_caused_counts(connection, ids)
    checkpoints = await tables.checkpoints(connection, ids)
    others = {t for t, checkpoint in checkpoints.items() if checkpoint.fold_version != FOLD_VERSION}
    boards = await tables.load_boards(connection, [t for t in ids if t not in others])
    return {
        t: _Found(
            blocks=blocks[t],
            keys=dict(keys.get(t, ())),
            caused=caused.get(t, 0),
            checkpoint=checkpoints.get(t),
            board=boards.get(t),
            standing=standing.get(t, []),
        )
        for t in ids
        if t in blocks and blocks[t][-1].last_sequence == lasts[t]
    }


def _count(by_tournament: Mapping[TournamentId, Items[Any]]) -> int:
    return sum(map(len, by_tournament.values()))
