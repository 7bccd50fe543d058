"""Finds the node of a distributed database that has a tournament, for statements sent directly to it.

A statement for several tournaments on one node, sent to that node, is executed and committed there, as by a separate
PostgreSQL. Sent to any other node, it would be committed in two phases.

Correctness does not depend on the remembered nodes, because any node answers any statement. If a tournament has moved,
its old node has a little more work until the tournament is looked up again.
"""

import time
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Final

import asyncpg
from asyncpg import Connection

from engine.database.distribution import Node, nodes_of
from engine.domain.errors import DatabaseUnavailable
from engine.domain.terms import TournamentId
from engine.process.logs import Logger

REMEMBERED_SECONDS: Final = 10.0
"""How long a known place of a tournament is trusted."""

_logger: Final = Logger()


class Nodes:
    """The nodes of tournaments known to one process."""

    def __init__(self, connection: Callable[[], AbstractAsyncContextManager[Connection]]) -> None:
        """`connection`: a connection for looking nodes up. Its errors are DatabaseUnavailable."""
        self._connection = connection
        self._found: dict[TournamentId, Node] = {}
        self._found_until = 0.0

    async def of(self, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Node]:
        """The node of each tournament, except those whose node is unknown. If the look-up fails, the last known one."""
        now = time.monotonic()
        if now >= self._found_until:
            self._found_until = now + REMEMBERED_SECONDS
            self._found = await self._look_up(tournament_ids) or self._found
        found = self._found
        if unknown := [one for one in tournament_ids if one not in found]:
            found |= await self._look_up(unknown)
        return {one: found[one] for one in tournament_ids if one in found}

    async def _look_up(self, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Node]:
        try:
            async with self._connection() as connection:
                return await nodes_of(connection, tournament_ids)
        except (DatabaseUnavailable, asyncpg.PostgresError) as error:
            _logger.warning("nodes_unknown", error=repr(error))
            return {}
