"""The public view of tournaments: each is a live at its public end.

Without a freeze, this is the common live. A frozen tournament is folded once up to its public end, and kept as a
separate live, into which no more events are folded. So both answer every question in the same way. Later events do not
exist in the separate live, and nothing has to be left out by hand.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Final, TypeVar
from weakref import ref

from msgspec import Struct

from api.desk.desk import Desk
from api.desk.remembered import Slugs
from api.http.outgoing import Outgoing
from api.interface.declarations import RecallContext
from api.interface.resources.tournaments import pin_named
from engine.domain.errors import NO_TOURNAMENT, DatabaseUnavailable, NotFound, Overtaken, Refusal, TournamentStopped
from engine.domain.terms import Sequence, TournamentId
from engine.process.background import SharedTasks
from projections.answers.view import live_at
from projections.live.pool import in_time
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries
from projections.past import moments
from projections.past.past import Past
from projections.tables.tables import listed_slugs

LISTED_MAX: Final = 100
"""Boards that the first page of the service links to."""
FROZEN_BYTES_MAX: Final = 256 * 1024 * 1024
"""Estimated bytes of the frozen tournaments that one process keeps. The last one used stays, even beyond this limit."""

_T = TypeVar("_T")


class _Frozen(Struct, frozen=True):
    """`live`: at the public end of the log that the common live `of` showed, after `erased` erasures of competitors."""

    of: Callable[[], LiveTournament | None]
    live: LiveTournament
    erased: int


class PublicViews:
    """The public view of all tournaments, for one process. Public questions about the past have separate slots, so they
    cannot occupy those of other clients."""

    def __init__(self, desk: Desk, slugs: Slugs, outgoing: Outgoing) -> None:
        self._live_pool = desk.live_pool
        self._database = desk.database
        self._slugs = slugs
        self._outgoing = outgoing
        self._past = Past(desk.database, outgoing.time_slices)
        self._frozen: OrderedDict[TournamentId, _Frozen] = OrderedDict()  # least recently used first
        self._making = SharedTasks[tuple[TournamentId, Sequence, int, int], LiveTournament]()

    async def answer(self, slug: str, render: Callable[[RecallContext], Awaitable[_T]]) -> _T:
        """The result of `render` for the tournament as the public sees it now: as if its log ended at the head of the
        live in its context. `render` may be called more than once. Its result must not depend on anything that is read
        later.

        Raises the same NotFound if there is no such tournament, if it is not published and if it has stopped;
        HistoryReplaced, DatabaseUnavailable, QueueFull, and what `render` raises.
        """
        read_at, tries, is_last = monotonic(), Tries(), False
        async with self._pinned(slug, read_at) as live:
            while True:
                await self._live_pool.make_current(live, read_at=read_at)
                publication, head = live.board.publication, live.head
                end = publication.public_end(head.sequence)
                if end is None:
                    raise NotFound(NO_TOURNAMENT)
                seen = live
                if publication.frozen_at is not None or is_last:
                    seen = await self._frozen_at(live, end)
                else:
                    self._frozen.pop(live.tournament_id, None)
                context = RecallContext(
                    seen,
                    self._past,
                    self._outgoing.time_slices,
                    begin=self._outgoing.begun,
                    log_head=head,
                    hidden=publication.hidden,
                    is_frozen=publication.frozen_at is not None,
                )
                try:
                    answered = await render(context)
                except Overtaken:
                    if seen is not live:
                        raise
                except Refusal:
                    if seen is not live or live.board.publication == publication:
                        raise
                else:
                    if context.log_is_read:
                        await moments.refuse_replaced(self._past, live.tournament_id, head)
                    # The live has advanced meanwhile. If it folded a freeze, the answer may show later events.
                    if seen is not live or live.board.publication == publication:
                        return answered
                is_last = tries.over()

    @asynccontextmanager
    async def published(self, slug: str) -> AsyncIterator[tuple[LiveTournament, Sequence]]:
        """The common live, made current, and the public end of its log. Raises as `answer`."""
        read_at = monotonic()
        async with self._pinned(slug, read_at) as live:
            await self._live_pool.make_current(live, read_at=read_at)
            end = live.board.publication.public_end(live.head.sequence)
            if end is None:
                raise NotFound(NO_TOURNAMENT)
            yield live, end

    async def listed(self) -> list[tuple[str, str]]:
        """Slug and name of the published tournaments that their organisers list, sorted by name. At most LISTED_MAX are
        considered, and those that cannot be shown now are left out. A newly listed tournament appears once the tables
        show it; one that is no longer listed disappears at once."""
        slugs: list[str] = []
        with suppress(DatabaseUnavailable):
            async with self._database.connection() as connection:
                slugs = await listed_slugs(connection, LISTED_MAX)
        found = []
        for slug in slugs:
            with suppress(Refusal):
                async with self.published(slug) as (live, end):
                    if live.board.publication.presentation.listed:
                        found.append((slug, await moments.name(self._past, live.tournament_id, end)))
        return sorted(found, key=lambda one: one[1].casefold())

    @asynccontextmanager
    async def _pinned(self, slug: str, read_at: float) -> AsyncIterator[LiveTournament]:
        try:
            async with in_time(read_at):
                found = await self._tournament_id(slug)
                live = await pin_named(self._live_pool, self._slugs, slug, found, self._tournament_id)
            try:
                yield live
            finally:
                self._live_pool.unpin(live)
        except TournamentStopped:
            raise NotFound(NO_TOURNAMENT) from None

    async def _tournament_id(self, slug: str) -> TournamentId:
        tournament_id = await self._slugs.tournament_id(slug)
        if tournament_id is None:
            raise NotFound(NO_TOURNAMENT)
        return tournament_id

    async def _frozen_at(self, live: LiveTournament, end: Sequence) -> LiveTournament:
        """The tournament of `live` after the event `end`. Made once for all requests. Raises as `Past.board_after`."""
        kept = self._frozen.get(live.tournament_id)
        erased = live.revisions.erased
        if kept is not None and (kept.of(), kept.live.head.sequence, kept.erased) == (live, end, erased):
            self._frozen.move_to_end(live.tournament_id)
            return kept.live
        key = live.tournament_id, end, id(live), erased
        return await asyncio.shield(self._making.begun(key, lambda: self._make(live, end)))

    async def _make(self, live: LiveTournament, end: Sequence) -> LiveTournament:
        tournament_id, head, erased = live.tournament_id, live.head, live.revisions.erased
        frozen = await live_at(self._past, live, end)
        await moments.refuse_replaced(self._past, tournament_id, head)
        self._frozen[tournament_id] = _Frozen(ref(live), frozen, erased)
        self._frozen.move_to_end(tournament_id)
        while len(self._frozen) > 1 and self._size_bytes() > FROZEN_BYTES_MAX:
            self._frozen.popitem(last=False)
        return frozen

    def _size_bytes(self) -> int:
        return sum([kept.live.size_bytes() for kept in self._frozen.values()])
