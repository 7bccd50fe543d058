"""Hints from processes that append to workers: "this tournament has new events".

Losing a hint is safe, because workers also search on their own (`sweep.py`). Hints are sent after the commit on another
connection, because a NOTIFY inside the appending transaction takes a cluster-wide lock at commit.

On a distributed database, hints go to the node of the tournament. Its workers listen there, whatever the address of
their process.
"""

import asyncio
import re
from collections.abc import Iterable
from typing import Final

from asyncpg import PostgresError

from engine.database.pool import Database
from engine.domain.errors import DatabaseUnavailable
from engine.domain.terms import TournamentId
from engine.process.background import background

CHANNEL: Final = "tallybook"
INTERVAL_SECONDS: Final = 0.05
TOURNAMENTS_MAX: Final = 300
"""Tournaments that one hint names; PostgreSQL takes 8,000 bytes."""
HINTS_MAX: Final = 10
"""Hints that are sent at once. If more are needed, one empty hint is sent, which tells workers to search."""

_ID: Final = re.compile(r"[1-9][0-9]{0,17}")
# It does not wait for its commit to be on disk, because a hint may be lost.
_NOTIFY: Final = """
    SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, hint)
    FROM unnest($2::text[]) AS hint
"""


class Waker:
    """Gathers the tournaments that were appended to, and sends hints. `run` works until it is cancelled."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._appended_to: set[TournamentId] = set()
        self._something = asyncio.Event()
        self._telling: dict[Database, set[TournamentId]] = {}

    def appended(self, tournament_id: TournamentId) -> None:
        if not self._appended_to:
            self._something.set()
        self._appended_to.add(tournament_id)

    async def run(self) -> None:
        async with background() as tasks:
            while True:
                await self._something.wait()
                self._something.clear()
                tournament_ids, self._appended_to = self._appended_to, set()
                if self._database.is_distributed:
                    nodes = await self._database.by_nodes(tournament_ids)
                    for node in set(nodes.values()):
                        named = {one for one in tournament_ids if nodes[one] is node}
                        if node in self._telling:  # takes long: the next hint names them, too
                            self._telling[node] |= named
                        else:
                            self._telling[node] = named
                            tasks.create_task(self._tell_node(node))
                else:
                    await self._tell(self._database, tournament_ids)
                await asyncio.sleep(INTERVAL_SECONDS)

    async def _tell_node(self, node: Database) -> None:
        while named := self._telling[node]:
            self._telling[node] = set()
            await self._tell(node, named)
        del self._telling[node]

    async def _tell(self, database: Database, tournament_ids: set[TournamentId]) -> None:
        try:
            async with database.connection() as connection:
                await connection.execute(_NOTIFY, CHANNEL, _hints(tournament_ids))
        except (DatabaseUnavailable, PostgresError):
            self._appended_to |= tournament_ids  # sent again; a repeated hint is harmless
            self._something.set()


def hinted(payload: str) -> set[TournamentId]:
    """The tournaments that a hint names. None: the worker must search."""
    return {TournamentId(int(number)) for number in payload.split(",") if _ID.fullmatch(number)}


def _hints(tournament_ids: Iterable[TournamentId]) -> list[str]:
    named = [str(tournament_id) for tournament_id in tournament_ids]
    if len(named) > HINTS_MAX * TOURNAMENTS_MAX:
        return [""]
    return [",".join(named[n : n + TOURNAMENTS_MAX]) for n in range(0, len(named), TOURNAMENTS_MAX)]
