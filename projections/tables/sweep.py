"""The sweep: checks all tournaments in turn, a chunk at a time, to find those whose tables are behind.

A worker follows hints, which name the tournaments that were appended to; the sweep finds those that no hint named. The
work of one look does not grow with the number of tournaments: it checks LOOK_TOURNAMENTS_MAX of them, and up to that
many stopped ones, all found by indexes. Only the length of a round grows: ceil(tournaments / LOOK_TOURNAMENTS_MAX)
looks.

GUARANTEES. A worker begins a hurried round, without a pause between its looks, when it starts, when it listens for
hints again after its connection was lost, and when a hint says that there were too many tournaments to name. After
WORKER_POLL_SECONDS it looks again at tournaments that it could not fold or that another worker had claimed, up to
KNOWN_MAX of them. So the sweep has to find only two kinds: tournaments whose process was killed before it sent its
hint, and tournaments that were appended to without a hint. It finds them within one round, which takes one second for
1,000 tournaments and 100 seconds for 100,000. Several workers begin in different places, so it usually takes less.

Each node of a distributed database has its own sweep, which asks only this node about its tournaments, one by one. So a
look checks a tenth of the number, and a round takes ten times as long.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from asyncpg import Connection

from engine.domain.terms import TournamentId
from projections.tables import tables

LOOK_TOURNAMENTS_MAX: Final = 1_000
"""The number of tournaments, and of stopped ones, that one look checks."""
LOOKS_FOR_EACH_NODE: Final = 10
"""The number of looks of a node's sweep that check the same number of tournaments as one look of a plain database."""
STOPPED_RETRY_SECONDS: Final = 10.0

Mine = Callable[[list[TournamentId]], Awaitable[list[TournamentId]]]
"""Filters tournaments to those that a sweep is responsible for."""

_FIRST: Final = TournamentId(0)


class Sweep:
    """One worker's sweep. `hurried`: look again immediately, because this round may find tournaments that no hint
    named."""

    def __init__(self, after: TournamentId = _FIRST, mine: Mine | None = None) -> None:
        """Begins hurried, after the tournament `after`; 0: at the first one. `mine`: the tournaments of one node; None:
        all."""
        self._mine = mine
        self.hurried = True
        self._after = after
        self._stopped_after = _FIRST
        self._idle_at: str | None = None
        # About this round: the tournament after which it began, whether it has still to look for the first time, what
        # had been committed then, how often it came by the last tournament, and whether it found one that is behind.
        self._began_after = after
        self._beginning = True
        self._moment: str | None = None
        self._wrapped = 0
        self._found = False

    @classmethod
    async def anywhere(cls, connection: Connection, mine: Mine | None = None) -> "Sweep":
        """A sweep that begins at a random tournament, so that several workers do not look at the same ones in step."""
        return cls(await tables.somewhere(connection), mine)

    def hurry(self) -> None:
        """Begins a hurried round where it is."""
        self.hurried = True
        self._idle_at = None
        self._begin()

    async def look(self, connection: Connection, *, goes_around: bool = False) -> list[TournamentId]:
        """The tournaments of the next chunk that are behind. Checks none if a whole round found nothing and nothing has
        been committed since it began. `goes_around`: the connection leads to a node other than that of the tournaments,
        so that it does not show commits there."""
        moment = None if goes_around else await tables.moment(connection)
        if moment is not None and moment == self._idle_at:
            return []
        if self._beginning:
            self._beginning, self._moment = False, moment
        chunk = await self._chunk(connection)
        if moment is None:  # some are stopped
            chunk += await self._stopped_chunk(connection)
        if self._mine is not None:
            chunk = await self._mine(chunk)
        behind = await tables.behind(connection, chunk, stopped_seconds=STOPPED_RETRY_SECONDS)
        self._found = self._found or bool(behind)
        if self._wrapped > 1 or (self._wrapped == 1 and self._after >= self._began_after):
            self.hurried = False
            self._idle_at = None if self._found else self._moment
            self._begin()
        return behind

    def _begin(self) -> None:
        """Begins a round here. It ends with the look that comes by here again."""
        self._began_after = self._after
        self._beginning = True
        self._moment = None
        self._wrapped = 0
        self._found = False

    async def _chunk(self, connection: Connection) -> list[TournamentId]:
        """The next tournaments; after the last ones come the first ones."""
        size = LOOK_TOURNAMENTS_MAX if self._mine is None else max(1, LOOK_TOURNAMENTS_MAX // LOOKS_FOR_EACH_NODE)
        chunk = await tables.registered(connection, self._after, size)
        if len(chunk) < size:
            self._wrapped += 1
            chunk += await tables.registered(connection, _FIRST, size - len(chunk))
        self._after = chunk[-1] if chunk else _FIRST
        return list(dict.fromkeys(chunk))

    async def _stopped_chunk(self, connection: Connection) -> list[TournamentId]:
        chunk = await tables.stopped(connection, self._stopped_after, LOOK_TOURNAMENTS_MAX)
        self._stopped_after = chunk[-1] if len(chunk) == LOOK_TOURNAMENTS_MAX else _FIRST
        return chunk
