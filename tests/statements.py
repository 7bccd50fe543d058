"""Which statements a connection pool sends, seen from the driver."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from engine.database.pool import Database


@contextmanager
def sent(database: Database) -> Iterator[list[str]]:
    """The text of each statement that the pool's connections send, those made meanwhile included, as it is sent."""
    texts: list[str] = []

    def note(query: Any) -> None:
        texts.append(query.query)

    pool: Any = database._pool
    init, logged = pool._init, [holder._con for holder in pool._holders if holder._con is not None]

    async def noted(connection: asyncpg.Connection) -> None:
        await init(connection)
        connection.add_query_logger(note)
        logged.append(connection)

    for connection in logged:
        connection.add_query_logger(note)
    pool._init = noted
    try:
        yield texts
    finally:
        pool._init = init
        for connection in logged:
            if not connection.is_closed():
                connection.remove_query_logger(note)
