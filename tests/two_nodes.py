"""Two nodes on one PostgreSQL, for what holds wherever tournaments are on several nodes.

Each node is a proxy to the same database. The tournaments with even ids are said to be on the first, the others on the
second. The process's address is that of the first; `or_second`: of the first, or else of the second.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from asyncpg import Connection
from msgspec import Struct

from engine.database import nodes as nodes_module
from engine.database import pool as pool_module
from engine.database.distribution import Node
from engine.database.pool import Database, open_database
from engine.domain.terms import TournamentId
from tests.proxy import Proxy, proxy

ONE_IS_ENOUGH = "two nodes are imitated on one PostgreSQL; tests/assurance/faults/test_distributed.py has real ones"


class TwoNodes(Struct, frozen=True):
    """A database that the service takes for a distributed one, and the proxies that stand for its nodes."""

    database: Database
    proxies: tuple[Proxy, Proxy]


def side(tournament_id: TournamentId) -> int:
    """Which of the two nodes the tournament is said to be on: 0 or 1."""
    return tournament_id % 2


@asynccontextmanager
async def two_nodes(dsn: str, *, or_second: bool = False) -> AsyncIterator[TwoNodes]:
    async with proxy(dsn) as first, proxy(dsn) as second:
        both = first.dsn.replace("&port=5432", f",{quote(second.socket_directory)}&port=5432,5432")
        found = [Node(str(Path(one.socket_directory)), 5432) for one in (first, second)]

        async def placed(_connection: Connection, ids: Collection[TournamentId]) -> dict[TournamentId, Node]:
            return {one: found[side(one)] for one in ids}

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(nodes_module, "nodes_of", placed)
            patched.setattr(pool_module, "is_distributed", lambda _connection: True)
            async with open_database(both if or_second else first.dsn, name="test") as database:
                yield TwoNodes(database, (first, second))
