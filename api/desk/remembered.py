"""Data that a process remembers from the database, and that is not a fold of a log: drawn ids, slugs, refusals.

Digests tie a fold to its log. Nothing ties this data: a restored database gives the same ids out again, to other
tournaments. So the data is forgotten at the end of each epoch of the database (`engine/database/pool.py`), at the cost
of a few queries. Each use is also checked against something that is tied to the log.
"""

import asyncio
from collections import deque
from typing import Final

from engine.database.pool import Database
from engine.domain.errors import DatabaseUnavailable
from engine.domain.terms import TournamentId
from engine.log import registry

IDS_RESERVED: Final = 32
"""Ids that a process draws at a time. Unused ones are dropped."""
SLUGS_MAX: Final = 100_000
DRAW_SECONDS_MAX: Final = 15.0
"""Seconds until ids are drawn, including the wait for a query already under way."""
REFUSALS_MAX: Final = 10_000
"""Tournaments whose refusals a process knows. Beyond them it forgets all of them."""


class Ids:
    """Draws ids that nothing else in the service has or will have, as long as the database stays the same. An id that
    already exists is refused when the command that carries it is judged, and again by the log."""

    def __init__(self, database: Database, *, reserved: int = IDS_RESERVED) -> None:
        self._database = database
        self._reserved = reserved
        self._epoch = -1
        self._ids: deque[int] = deque()
        self._drawing = asyncio.Lock()

    async def draw(self, count: int) -> list[int]:
        """The next ids, ascending. Raises DatabaseUnavailable."""
        if not self._has(count):  # no queue if there are enough: waking a queue takes a round of the loop for each
            try:
                async with asyncio.timeout(DRAW_SECONDS_MAX):
                    await self._reserve(count)
            except TimeoutError as error:
                raise DatabaseUnavailable from error
        return [self._ids.popleft() for _ in range(count)]

    async def _reserve(self, count: int) -> None:
        while not self._has(count):
            async with self._drawing:
                if not self._has(count):
                    async with self._database.connection() as connection:
                        self._epoch = self._database.epoch.number
                        self._ids = deque(await registry.next_ids(connection, max(count, self._reserved)))

    def _has(self, count: int) -> bool:
        return self._epoch == self._database.epoch.number and len(self._ids) >= count

    def forget(self) -> None:
        """Drops all ids: one turned out to be taken, so the others may be, too."""
        self._ids.clear()


class Slugs:
    """Which tournament a slug means. Check the answer against the slug of the live."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._epoch = -1
        self._ids: dict[str, TournamentId] = {}

    def known(self, slug: str) -> TournamentId | None:
        """As `tournament_id`, if it is known without a query. None: unknown."""
        return self._ids.get(slug) if self._epoch == self._database.epoch.number else None

    async def tournament_id(self, slug: str) -> TournamentId | None:
        """The tournament of this slug; None: there is none. Raises DatabaseUnavailable."""
        known = self.known(slug)
        if known is not None:
            return known
        if not (slug.isascii() and slug.isprintable()):  # all slugs are, and a query cannot contain U+0000
            return None
        async with self._database.connection() as connection:
            if self._epoch != self._database.epoch.number:
                self._epoch = self._database.epoch.number
                self._ids.clear()
            tournament_id = await registry.tournament_named(connection, slug)
        if tournament_id is not None and len(self._ids) < SLUGS_MAX:
            self._ids[slug] = tournament_id
        return tournament_id

    def forget(self, slug: str) -> None:
        """Drops the slug: it turned out to mean another tournament, or none."""
        self._ids.pop(slug, None)


class Refusals:
    """How many refusals of keyed requests each tournament had when this process last looked: never more than it has.

    A request carries the number that was known when it was taken (`Stamp`). The log does not record the request if its
    key has been refused since then, because the client was answered that it was not applied. So a count that is too low
    is safe: at worst, a request is not recorded although it came after the refusal, and may be sent again.
    """

    Stamp = tuple[int, int]

    def __init__(self, database: Database) -> None:
        self._database = database
        self._epoch = -1
        self._counts: dict[TournamentId, int] = {}

    def stamp(self, tournament_id: TournamentId) -> Stamp:
        """The present count, for a request that has just come in."""
        self._renew()
        return self._epoch, self._counts.get(tournament_id, 0)

    def known_at(self, stamp: Stamp) -> int:
        """The count when the request of this stamp came in; 0 if that was in another epoch."""
        epoch, count = stamp
        return count if epoch == self._database.epoch.number else 0

    def learn(self, tournament_id: TournamentId, count: int, *, epoch: int) -> None:
        """Records that the tournament has had `count` refusals, as the database reported in this epoch."""
        self._renew()
        if epoch != self._epoch:
            return
        if len(self._counts) >= REFUSALS_MAX:
            self._counts.clear()
        self._counts[tournament_id] = max(count, self._counts.get(tournament_id, 0))

    def _renew(self) -> None:
        if self._epoch != self._database.epoch.number:
            self._epoch = self._database.epoch.number
            self._counts.clear()
