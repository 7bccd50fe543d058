"""One tournament in memory, at one head: commands are judged against it, and answers are rendered from it.

A live is a cache of the log: a replay would give all that it holds. Any task that has the next events folds them,
strictly in the order of sequences. The live keeps the digest of its head. So it detects a log that does not continue
from there, after a restore or a failover, instead of mixing two histories.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakSet, ref

import msgspec
from asyncpg import Connection

from engine.domain.errors import NO_TOURNAMENT, LogForked, LogUnreadable, NotFound
from engine.domain.events import (
    Points,
    Recorded,
)
from engine.domain.terms import Sequence, TournamentId
from engine.log import appending, heads, reading, registry, tails
from engine.log.appending import Appended, Block, Unseen
from engine.log.heads import Head
from engine.log.tails import Tail
from engine.process.logs import Logger
from engine.process.time_slices import TimeSlice
from projections.board.board import FOLD_VERSION, Board, Revisions, fold, fold_all, update_of_results, update_of_sums
from projections.board.competition_sums import CompetitionSums
from projections.board.results import Results
from projections.live.cache import RenderCache
from projections.live.classifications import Classifications
from projections.live.held import HeldBoard
from projections.live.kept import Kept, KeptOfRankings
from projections.live.nested_sets import NestedSets
from projections.live.orders import Orders
from projections.live.selections import Selections
from projections.tables import snapshots, tables
from projections.tables.sizes import MEASURED_EVERY_EVENTS, board_bytes
from projections.tables.snapshots import Snapshot

BEHIND_EVENTS_MAX: Final = 20_000
"""A live that lacks more events than this is loaded from the tables, if they are that far ahead. Folding this many
takes some tenths of a second."""

BLOCKS_AT_ONCE_MAX: Final = 100
BYTES_AT_ONCE_MAX: Final = 128 * 1024
"""Blocks, and bytes of them, that a live in use reads and folds without a pause, which takes some milliseconds. A
larger block is not divided either, because readers must not see a state within a block: 20,000 deltas take less than 10
ms."""
_ANY_SEQUENCE: Final = Sequence(2**63 - 1)
BYTES_LOADED_AT_ONCE: Final = 512 * 1024
"""Bytes of blocks that the loading of a tournament reads at once. The driver decodes them without a pause, which takes
some milliseconds, and up to 18 for 4 MiB."""
FOLDED_AT_ONCE: Final = 100
"""Events that the loading of a tournament folds before it checks the end of its time slice."""

_logger: Final = Logger()


class MadeOfBoard(Protocol):
    """Data derived from a board and kept current. `size_bytes`: its size in memory, estimated."""

    @property
    def size_bytes(self) -> int: ...
    def note(self, recorded: Recorded) -> None:
        """Notes what the event will change. Call it before the event is folded into the board."""

    def clear(self) -> None:
        """Drops the data. Call it when the board is replaced."""


_M = TypeVar("_M", bound=MadeOfBoard)
_K = TypeVar("_K", bound=Kept[Any] | KeptOfRankings[Any])


OnExpiring = Callable[["LiveTournament"], None]


def _ignore(_: "LiveTournament") -> None:
    pass


class LiveTournament:
    """One tournament in memory. `slug`: the registry's slug when the live was loaded; None: the registry had no such
    tournament. `pins`: the number of reasons to keep it in memory. `dropped`: it is no longer valid; load another.
    `followers` are called with every event that it folds. `results`, `sums`: those of rankings that needed them.
    `deleted`: the next event deletes the tournament, and is not folded.
    `recorded_at`: when the event at the head was recorded; None: unknown, because nothing was folded since the live was
    loaded from tables, and no points expire. `expires`: whether points expire; `on_expiring` is called whenever the
    next boundary may come sooner."""

    def __init__(
        self,
        tournament_id: TournamentId,
        head: Head,
        board: Board,
        *,
        slug: str | None = None,
        on_expiring: OnExpiring = _ignore,
    ) -> None:
        self.tournament_id = tournament_id
        self.slug = slug
        self.head = head
        self.recorded_at: datetime | None = None
        self.board = board
        self.revisions = Revisions()
        self.cache = RenderCache()
        self.nested_sets = NestedSets(self)
        self.pins = 0
        self.dropped = False
        self.deleted = False
        self.catching_up = asyncio.Lock()
        self.followers: list[Callable[[Recorded], None]] = []
        self.results: KeptOfRankings[Results] = KeptOfRankings(self, update_of_results)
        self.sums: KeptOfRankings[CompetitionSums] = KeptOfRankings(self, update_of_sums)
        self.expires = bool(board.expiries)
        self._on_expiring = on_expiring
        self._checked: tuple[Sequence, datetime] | None = None  # nothing was due then, at this head
        # While the head is this one, which is not judged: what was due until then has expired.
        self._expired_at: tuple[Sequence, datetime | None] = Sequence(0), None
        self.loaded_at = time.monotonic()
        self._size_again_at = 0
        self._one_moment = True  # everything up to the head was read in one snapshot
        self._board_bytes = 0
        self._made: list[MadeOfBoard] = []  # in use, so kept current
        self._kept: list[MadeOfBoard | Kept[Any] | KeptOfRankings[Any]] = []  # these, and what was read from the log
        self._held: WeakSet[HeldBoard] = WeakSet()
        self._held_last: Callable[[], HeldBoard | None] = _nobody

    def fold(self, events: Iterable[Recorded], head: Head) -> None:
        """Folds those `events` that are beyond the live, and moves it to `head` if that is beyond it.

        They must follow the live without a gap. Raises LogUnreadable, NotFound if one deletes the tournament, and
        LogForked if an event that it has folded was set aside; the live must then be dropped.
        """
        sequence = self.head.sequence
        for recorded in events:
            if recorded.sequence <= sequence:
                continue
            sequence = recorded.sequence
            try:
                event = recorded.event
                for made in self._made:
                    made.note(recorded)
                if not isinstance(event, Points):
                    self._note(recorded)
                fold(self.board, self.revisions, recorded)
                for follow in self.followers:
                    follow(recorded)
            except Exception as error:  # a defect stops this tournament only
                if self.deleted:
                    raise
                raise LogUnreadable.unfoldable(self.tournament_id, sequence, error) from error
            self.recorded_at = recorded.recorded_at
        if self.revisions.set_aside:
            self._look_at_set_aside()
        if head.sequence > self.head.sequence:
            self.head = head
            if head.sequence >= self._size_again_at:
                self.cache.resized = True

    # Each of these is made at its first use; until then, no event is noted for it. They read the board from
    # here each time, because `catch_up_by_tables` replaces it.

    @cached_property
    def orders(self) -> Orders:
        return self._begun(Orders(self))

    @cached_property
    def classifications(self) -> Classifications:
        return self._begun(Classifications(self, self.orders, self.sums))

    @cached_property
    def selections(self) -> Selections:
        return self._begun(Selections(self))

    def _begun(self, made: _M) -> _M:
        self._made.append(made)
        self._kept.append(made)
        return made

    def keep(self, kept: _K) -> _K:
        """Keeps it current until `let_go`, and returns it."""
        self._kept.append(kept)
        self.followers.append(kept.follow)
        return kept

    def let_go(self, kept: Kept[Any]) -> None:
        """Stops keeping it current. Idempotent."""
        if kept in self._kept:
            self._kept.remove(kept)
            self.followers.remove(kept.follow)

    @property
    def _needs_every_event(self) -> bool:
        """Whether there are followers that cannot read what was not folded."""
        return len(self.followers) > len(self._kept) - len(self._made)

    def _note(self, recorded: Recorded) -> None:
        """Passes an event without points to the derived data that each live has."""
        event = recorded.event
        if event.deletes:
            self.deleted = True
            raise NotFound(NO_TOURNAMENT)
        if not event.judged:
            head, until = self._expired_at
            self._expired_at = recorded.sequence, until if head == recorded.sequence - 1 else self.recorded_at
        self.nested_sets.note(event)
        if event.erases is not None:
            self.cache.clear()
        elif (competitor_id := getattr(event, "competitor_id", None)) is not None:
            self.cache.small.drop(competitor_id)
        elif (made := event.made_unity) is not None and made.options.lasts is not None:
            self._begin_to_expire()
        for held in self._held:
            held.note(event)

    @property
    def expired_until(self) -> datetime:
        """The time up to which all due points have expired, if points expire."""
        head, until = self._expired_at
        if head != self.head.sequence:
            until = self.recorded_at
        assert until is not None
        if self._checked is not None and self._checked[0] == self.head.sequence:
            return max(until, self._checked[1])
        return until

    async def know_time(self, connection: Connection) -> None:
        """Reads when the event at the head was recorded, and until when due points have expired, if points expire."""
        if not self.board.expiries:
            return
        if self.recorded_at is None:
            around = await heads.block_around(connection, self.tournament_id, self.head.sequence)
            assert around is not None
            self.recorded_at = around[1]
        until = await reading.last_judged_at(connection, self.tournament_id, self.head.sequence)
        self._expired_at = self.head.sequence, until

    @property
    def boundaries(self) -> tuple[datetime, datetime]:
        """The last boundary at which points expired, and the next one."""
        finest = min([expiry for _, expiry in self.board.expiries.values()], key=lambda expiry: expiry.on.length)
        last = finest.boundary(self.expired_until)
        return last, last + finest.on.length

    @property
    def expired_by(self) -> datetime | None:
        """The last boundary at which points expired; None: none do."""
        return self.boundaries[0] if self.expires else None

    def nothing_due(self, moment: datetime) -> None:
        """Notes that all points due by that time have expired."""
        self._checked = self.head.sequence, moment

    def _begin_to_expire(self) -> None:
        self.expires = True
        self._on_expiring(self)

    def forget_checked(self) -> None:
        """Forgets what `nothing_due` noted."""
        self._checked = None
        self._on_expiring(self)

    def hold(self) -> HeldBoard:
        """The board in its present state, unaffected by later events. Takes long if `nested_sets` is not `ready`."""
        held = self._held_last()
        if held is None or held.changed:
            held = HeldBoard(self.board, self.nested_sets.hold(), self.revisions.parents)
            self._held.add(held)
            self._held_last = ref(held)
        return held

    def _look_at_set_aside(self) -> None:
        """Raises LogForked if an event that this live has folded was set aside, because the log has another meaning
        now. This happens if another version of Tallybook could not fold the event."""
        named = self.revisions.set_aside - self.revisions.ignored
        self.revisions.set_aside.clear()
        if named and not self._one_moment:
            raise LogForked(self.tournament_id, self.head.sequence)

    def fold_appended(self, block: Block, appended: Appended) -> bool:
        """Folds a block that this process has just appended, after the events of other processes that the append
        returned. Returns False if that does not suffice, because there are more events between or after them, or
        because the block contained only repeats. Then catch up instead.

        Raises LogForked if the block does not follow the live's digest, and the errors of `fold_unseen`.
        """
        if appended.unseen is not None:
            self.fold_unseen(block, appended.unseen)
        if appended.first_sequence is None or appended.last_sequence is None or appended.digest is None:
            return False
        if appended.last_sequence <= self.head.sequence:
            # A catch-up has folded it already. If the head is another one, a shorter log has replaced the one that was
            # read; the caller catches up, and finds out.
            return Head(appended.last_sequence, appended.digest) == self.head
        if appended.first_sequence != self.head.sequence + 1 or appended.previous_digest is None:
            return False
        if appended.previous_digest != self.head.digest:
            raise LogForked(self.tournament_id, self.head.sequence)
        self.fold(appending.recorded_events(block, appended), Head(appended.last_sequence, appended.digest))
        return True

    def fold_unseen(self, block: Block, unseen: Unseen) -> bool:
        """Folds the events that were appended since `block` was judged. Returns False if the live does not stand at the
        end of the block afterwards.

        Raises LogForked if the chain of digests does not hold, LogUnreadable, and the errors of `fold`.
        """
        if block.judged_digest is None or self.head != Head(block.judged_at, block.judged_digest):
            return self.head.digest == unseen.digest  # already read, or to be read
        tail = tails.unseen_tail(self.tournament_id, self.head, unseen)
        if tail is None:
            return False
        self.fold(tail.events, tail.head)
        return True

    async def catch_up(self, connection: Connection, to: Sequence) -> None:
        """Folds from the log until the live stands at `to` or beyond, by way of a head that the log has.

        Appends may be folded meanwhile; no event is folded twice. They may belong to a lost history, so this checks
        afterwards that the log has the new head. Hold `catching_up`, so that only one task does this at a time. Raises
        LogForked and LogUnreadable; the live must then be dropped.
        """
        while True:
            at = self.head
            tail = await tails.tail(
                connection,
                self.tournament_id,
                at,
                blocks_max=BLOCKS_AT_ONCE_MAX,
                bytes_max=BYTES_AT_ONCE_MAX,
            )
            if not tail.events and at.sequence < to:
                raise LogForked(self.tournament_id, at.sequence)
            self.fold(tail.events, tail.head)
            if at.sequence >= to or (self.head == tail.head and tail.head.sequence >= to):
                return

    async def catch_up_by_tables(self, connection: Connection, to: Sequence) -> None:
        """Continues from the tables if they are more than BEHIND_EVENTS_MAX ahead, because folding would take longer.

        Does nothing while a follower needs every event. Raises LogForked if the log does not have the live's head; the
        live must then be dropped.
        """
        began_at = self.head
        if to - began_at.sequence <= BEHIND_EVENTS_MAX or self._needs_every_event:
            return
        checkpoint = await tables.checkpoint(connection, self.tournament_id)
        if checkpoint is None or checkpoint.head.sequence <= began_at.sequence + BEHIND_EVENTS_MAX:
            return
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if not await heads.has(connection, self.tournament_id, began_at):
                raise LogForked(self.tournament_id, began_at.sequence)
            loaded = await _nearest_start(connection, self.tournament_id)
            await loaded.know_time(connection)
        if loaded.head.sequence <= self.head.sequence + BEHIND_EVENTS_MAX or self._needs_every_event:
            return
        # Only this process's appends, with the events they returned, can have been folded meanwhile, each after the one
        # before.
        self.head, self.recorded_at, self.board = loaded.head, loaded.recorded_at, loaded.board
        self._expired_at = loaded._expired_at
        self.cache.resized = True
        self.nested_sets.clear()
        for kept in self._kept:
            kept.clear()
        if self.board.expiries:
            self._begin_to_expire()
        self._held_last = _nobody
        then = self.revisions  # raises all counts: answers rendered from the old board become invalid
        self.revisions = msgspec.structs.replace(
            then,
            competitors=then.competitors + 1,
            competitors_changed=then.competitors_changed + 1,
            erased=then.erased + 1,
            competitions=then.competitions + 1,
            rankings=then.rankings + 1,
            parents=then.parents + 1,
        )

    @property
    def resized(self) -> bool:
        """Whether `size_bytes` may have changed since it was last asked for."""
        return self.cache.resized or bool(self._kept) or not self.nested_sets.flat

    def size_bytes(self) -> int:
        """Bytes in memory, estimated. The board is measured again after MEASURED_EVERY_EVENTS events."""
        if self.head.sequence >= self._size_again_at:
            self._size_again_at = self.head.sequence + MEASURED_EVERY_EVENTS
            self._board_bytes = board_bytes(self.board)
        self.cache.resized = False
        size_bytes = self._board_bytes + self.cache.size_bytes + self.nested_sets.size_bytes
        for kept in self._kept:
            size_bytes += kept.size_bytes
        return size_bytes


async def load(
    connection: Connection, tournament_id: TournamentId, on_expiring: OnExpiring = _ignore
) -> LiveTournament:
    """Returns the tournament as the log has it. Its `on_expiring` is not called before.

    Starts from the tables at their checkpoint. If another version of the fold made them, or an event up to there has
    been set aside since, it starts from the last snapshot of this version, or else from the beginning of the log. All
    reads are in one repeatable-read transaction, and events are folded in time slices.

    Raises LogForked if the tables stand at a block that the log does not have, and LogUnreadable.
    """
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        live = await _nearest_start(connection, tournament_id, on_expiring)
        to_head = tails.tails_to_head(connection, tournament_id, live.head, bytes_max=BYTES_LOADED_AT_ONCE)
        async with aclosing(to_head) as read:
            async for tail in read:
                await _fold_in_time_slices(live, tail)
        live._one_moment = False  # it has reached the log's head: later events come from a later snapshot
        live.expires = bool(live.board.expiries)
        await live.know_time(connection)
        return live


async def _fold_in_time_slices(live: LiveTournament, tail: Tail) -> None:
    """Folds a tail into a live that is not shared yet and has no derived data, only its board."""
    time_slice = TimeSlice()
    for n in range(0, len(tail.events), FOLDED_AT_ONCE):
        fold_all(live.tournament_id, live.board, tail.events[n : n + FOLDED_AT_ONCE], live.revisions)
        if time_slice.over:
            await time_slice.give_way()
    live.revisions.set_aside.clear()
    live.recorded_at, live.head = tail.events[-1].recorded_at, tail.head


async def _nearest_start(
    connection: Connection, tournament_id: TournamentId, on_expiring: OnExpiring = _ignore
) -> LiveTournament:
    """The tournament from its tables, from the last snapshot, or at the beginning of its log."""
    slug = await registry.slug_of(connection, tournament_id)
    starting = partial(LiveTournament, tournament_id, slug=slug, on_expiring=on_expiring)
    checkpoint = await tables.checkpoint(connection, tournament_id)
    if (
        checkpoint is not None
        and checkpoint.fold_version == FOLD_VERSION
        and not await reading.set_aside_since(connection, tournament_id, checkpoint.head.sequence)
    ):
        return starting(checkpoint.head, await tables.load_board(connection, tournament_id))
    if checkpoint is not None and (kept := await _last_snapshot(connection, tournament_id)) is not None:
        return starting(kept.head, kept.board)
    return starting(heads.beginning(tournament_id), Board())


async def _last_snapshot(connection: Connection, tournament_id: TournamentId) -> Snapshot | None:
    """The last usable snapshot of this version of the fold."""
    try:
        kept = await snapshots.nearest(connection, tournament_id, _ANY_SEQUENCE)
    except snapshots.SnapshotUndecodable as error:
        _logger.warning("snapshot_ignored", tournament_id=tournament_id, sequence=error.sequence, reason=str(error))
        return None
    if kept is None or not await heads.has(connection, tournament_id, kept.head):
        return None
    return None if await reading.set_aside_since(connection, tournament_id, kept.head.sequence) else kept


def _nobody() -> None:
    return None
