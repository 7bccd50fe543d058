"""Which node of a distributed database has a tournament, for what is sent straight to it.

A statement for several tournaments of one node, sent to that node, is executed and committed there, as by a PostgreSQL
of its own. Sent anywhere else it would be committed in two phases.

Nothing depends on what is remembered here: any node answers any statement. A tournament that has moved costs its old
node a little more until it is looked up again.
"""

import time
from collections.abc import Collection
from typing import Final

import asyncpg
import structlog

from engine.database.distribution import Node, nodes_of
from engine.database.pool import Database
from engine.domain.errors import DatabaseUnavailable
from engine.domain.terms import TournamentId

REMEMBERED_SECONDS: Final = 10.0
"""How long tournaments are taken to be where they were found."""
AVOIDED_SECONDS: Final = 10.0
"""How long nothing is sent straight to a node that could not be connected to."""

_logger = structlog.get_logger()


class Nodes:
    """The nodes of a distributed database, as one process knows them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: dict[TournamentId, Node] = {}
        self._found_until = 0.0
        self._avoided_until: dict[Node, float] = {}

    async def of(self, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Node]:
        """The node of each of these tournaments, but of those whose node is not known, or avoided."""
        now = time.monotonic()
        if now >= self._found_until:
            self._found.clear()
            self._found_until = now + REMEMBERED_SECONDS
        if unknown := [one for one in tournament_ids if one not in self._found]:
            self._found |= await self._look_up(unknown)
        found = {one: self._found[one] for one in tournament_ids if one in self._found}
        return {one: node for one, node in found.items() if self._avoided_until.get(node, now) <= now}

    def avoid(self, node: Node, error: Exception) -> None:
        """Leaves a node alone for a while, because it could not be connected to."""
        self._avoided_until[node] = time.monotonic() + AVOIDED_SECONDS
        _logger.warning("node_avoided", host=node.host, port=node.port, error=repr(error))

    async def _look_up(self, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Node]:
        try:
            async with self._database.connection() as connection:
                return await nodes_of(connection, tournament_ids)
        except (DatabaseUnavailable, asyncpg.PostgresError) as error:
            _logger.warning("nodes_unknown", error=repr(error))
            return {}
