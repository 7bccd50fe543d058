"""Hints from those who append to those who keep the tables: "this tournament has something new".

Hints only: nothing is lost when one is, because workers poll as well. They are sent after the commit and on another
connection, because a NOTIFY inside the appending transaction takes a lock of the whole cluster at commit.
"""

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from asyncpg import PostgresError

from engine.database import Database
from engine.errors import DatabaseUnavailable
from engine.terms import TournamentId

CHANNEL: Final = "tallybook"
INTERVAL_SECONDS: Final = 0.05
TOURNAMENTS_MAX: Final = 300
"""Named in one hint; PostgreSQL takes 8,000 bytes. With more, the hint is empty: look for yourselves."""

_ID: Final = re.compile(r"[1-9][0-9]{0,17}")
_NOTIFY: Final = "SELECT pg_notify($1, $2)"


class Waker:
    """Gathers the tournaments appended to and sends hints; `run` does it until it is cancelled."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._appended_to: set[TournamentId] = set()
        self._something = asyncio.Event()

    def appended(self, tournament_id: TournamentId) -> None:
        self._appended_to.add(tournament_id)
        self._something.set()

    async def run(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            tournament_ids, self._appended_to = self._appended_to, set()
            # Where that fails, for whatever reason, a hint is lost; the workers' poll finds what it was about.
            with suppress(DatabaseUnavailable, PostgresError):
                async with self._database.connection() as connection:
                    await connection.execute(_NOTIFY, CHANNEL, _hint(tournament_ids))
            await asyncio.sleep(INTERVAL_SECONDS)


def hinted(payload: str) -> set[TournamentId]:
    """The tournaments that a hint names; none: look for yourself."""
    return {TournamentId(int(number)) for number in payload.split(",") if _ID.fullmatch(number)}


def _hint(tournament_ids: Iterable[TournamentId]) -> str:
    named = [str(tournament_id) for tournament_id in tournament_ids]
    return ",".join(named) if len(named) <= TOURNAMENTS_MAX else ""
