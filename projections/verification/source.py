"""The data that a verification reads of tournaments: of one, or of many small ones together.

Even a small tournament needs some twenty queries. A batch of small ones shares them. If something in the batch cannot
be read, or there is too much of it, each tournament is read separately. So an error occurs at the tournament that has
it.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from collections.abc import Sequence as Items
from contextlib import aclosing
from typing import Any, Final, TypeVar

import asyncpg
from asyncpg import Connection

from engine.database.pool import DATABASE_TROUBLE
from engine.domain.terms import Sequence, TournamentId
from projections.board.board import Board
from projections.tables import snapshots, tables
from projections.verification import setting_aside, stored_log, table_checks
from projections.verification.stored_log import RegisteredTournament, StoredBlock
from projections.verification.table_checks import StandingRow

TOGETHER_MAX: Final = 100
SMALL_EVENTS_MAX: Final = 1_000
"""A tournament with more events is read separately."""
SMALL_BYTES_MAX: Final = 64 * 1024
"""Bytes of blocks that are read of each tournament of a batch; the blocks after these are read separately."""
TOGETHER_ROWS_MAX: Final = 50_000
"""Lines of standings, or idempotency keys, that are read for a batch; if there are more, each tournament is read
separately."""

_T = TypeVar("_T")
_Reading = Callable[[Connection, Items[TournamentId]], Awaitable[Mapping[TournamentId, _T]]]
"""Reads something of tournaments; those that have none are left out."""


class _TooMuch(Exception):
    """More than a batch may hold."""


class TournamentSource:
    """Reads a batch of tournaments over a connection within `stored_log.one_moment`."""

    def __init__(self, connection: Connection, tournament_ids: Iterable[TournamentId]) -> None:
        self.connection = connection
        self._tournament_ids = list(tournament_ids)
        self._found: dict[_Reading[Any], Mapping[TournamentId, Any]] | None = None

    async def of(self, tournament_id: TournamentId, read: _Reading[_T]) -> _T | None:
        """What `read` finds of a tournament of the batch."""
        found = await self._together(read)
        if found is None:
            found = await read(self.connection, [tournament_id])
        return found.get(tournament_id)

    async def _together(self, read: _Reading[_T]) -> Mapping[TournamentId, _T] | None:
        """What `read` found of the whole batch. None: each tournament is to be read separately."""
        if len(self._tournament_ids) == 1:
            return None
        if self._found is None:
            try:
                async with self.connection.transaction():  # a savepoint: an error does not end the moment
                    self._found = {one: await one(self.connection, self._tournament_ids) for one in _TOGETHER}
            except DATABASE_TROUBLE:
                raise
            except (asyncpg.PostgresError, ValueError, TypeError, OverflowError, LookupError, _TooMuch):
                self._found = {}
        return self._found.get(read)

    async def blocks(self, tournament_id: TournamentId, after: Sequence) -> list[StoredBlock]:
        """The next blocks of a tournament, as `stored_log.blocks`."""
        found = None if after > 0 else await self._together(_first_blocks)
        if found is None:
            return await stored_log.blocks(self.connection, tournament_id, after)
        return found.get(tournament_id, [])

    async def key_sequences(self, tournament_id: TournamentId, keys: Items[str]) -> Mapping[str, Sequence]:
        """The sequences that are remembered for these keys, and perhaps for others."""
        found = await self._together(_all_keys)
        if found is None:
            return await stored_log.key_sequences(self.connection, tournament_id, keys)
        return found.get(tournament_id, {})

    async def board(self, tournament_id: TournamentId, like: Board) -> Board:
        """The board of the tables. One that is read separately shares items with `like`."""
        found = await self._together(tables.load_boards)
        if found is None:
            return await tables.load_board(self.connection, tournament_id, like=like)
        return found[tournament_id]

    async def standing_rows(self, tournament_id: TournamentId) -> AsyncGenerator[list[StandingRow], None]:
        """The lines of the view of standings, in chunks. Use it `aclosing`."""
        found = await self._together(_all_standing_rows)
        if found is not None:
            yield found.get(tournament_id, [])
            return
        async with (
            self.connection.transaction(),  # as in `_together`
            aclosing(table_checks.standing_rows(self.connection, tournament_id)) as chunks,
        ):
            async for rows in chunks:
                yield rows


def is_small(tournament: RegisteredTournament) -> bool:
    """Whether it may be read together with others."""
    return tournament.sequence is not None and tournament.sequence <= SMALL_EVENTS_MAX


async def _first_blocks(
    connection: Connection, tournament_ids: Items[TournamentId]
) -> dict[TournamentId, list[StoredBlock]]:
    return await stored_log.blocks_of(connection, tournament_ids, Sequence(0), SMALL_BYTES_MAX)


async def _all_keys(
    connection: Connection, tournament_ids: Items[TournamentId]
) -> dict[TournamentId, dict[str, Sequence]]:
    return _few(await stored_log.all_keys(connection, tournament_ids, TOGETHER_ROWS_MAX + 1))


async def _all_standing_rows(
    connection: Connection, tournament_ids: Items[TournamentId]
) -> dict[TournamentId, list[StandingRow]]:
    return _few(await table_checks.all_standing_rows(connection, tournament_ids, TOGETHER_ROWS_MAX + 1))


_Rows = TypeVar("_Rows", bound=Collection[Any])


def _few(found: dict[TournamentId, _Rows]) -> dict[TournamentId, _Rows]:
    """The same, unless there is more of it than a batch may hold."""
    if sum(map(len, found.values())) > TOGETHER_ROWS_MAX:
        raise _TooMuch
    return found


_TOGETHER: Final[tuple[_Reading[Any], ...]] = (
    *(setting_aside.set_asides, stored_log.before_the_beginning, stored_log.counts, snapshots.versions),
    *(tables.checkpoints, table_checks.strays, table_checks.incomplete, _all_keys, _all_standing_rows),
    *(_first_blocks, tables.load_boards),
)
"""What is read for a batch. What may be too much for it comes before what takes long."""
