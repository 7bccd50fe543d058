"""Followers: one per tournament and process reads new events for all its listeners; a second one serves the public view
(`public_frames.py`).

    committed ──► live ──► follower: reads it from the log, once ──► ring ──► current listeners, one after the other
                                                                      └─────► listeners that are behind, a little
                                                     log ─────────────────► listeners that are further behind

A follower reads from the log the events that its live has folded, up to the end of its log (`frames.py`). So no event
is sent before it is durable, or if this process cannot fold it, and all listeners read the same source: the log.
Listeners that have everything (*current* ones) receive the next events in *rounds*; any other reads at its own pace
until it has everything (`listeners.py`).

No writer waits for a listener. A write wakes a round, which begins after it was answered. Rounds share the time slices
of long answers, and there is a pause after each, which grows with the work. Meanwhile events gather, so that a listener
gets many in one chunk.

Each node of a distributed database has its own rounds, so a lost node delays only its own listeners.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from itertools import islice
from typing import Final, Literal, Protocol

from asyncpg import PostgresError
from msgspec import Struct

from api.access.sessions import Opener, good_openers
from api.stream.frames import Frame, Reached, StreamedLog, StreamFormat, Wanted, chunk, joined
from engine.database.pool import Database
from engine.domain.errors import (
    DatabaseUnavailable,
    HistoryReplaced,
    ListenersFull,
    LogForked,
    NotFound,
    ShuttingDown,
    TournamentStopped,
)
from engine.domain.events import Recorded
from engine.domain.terms import CompetitorId, RankingId, Sequence, TournamentId
from engine.log import reading, undecoded
from engine.log.heads import Head
from engine.process.background import background
from engine.process.telemetry import LISTENERS, LISTENERS_BEHIND
from engine.process.time_slices import TimeSlices
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.tables.defects import DefectPart

LISTENERS_SHARE: Final = 0.9
"""The share of a process's connections that may be streams. The others are for requests."""
LISTENERS_OF_TOURNAMENT_MAX: Final = 10_000
"""Listeners of one tournament in one process."""
VISITORS_SHARE: Final = 0.8
"""The share of a process's streams for visitors. The others are reserved for clients with a token."""
LISTENERS_OF_VISITOR_MAX: Final = 100
"""Streams of one visitor in one process."""
RING_EVENTS_MAX: Final = 2_000
RING_BYTES_MAX: Final = 1_048_576
"""Events of one tournament, and their bytes, that a process keeps for listeners that are a little behind."""
RINGS_BYTES_MAX: Final = 67_108_864
"""Bytes of the rings of all tournaments in a process."""
LOG_READERS_MAX: Final = 2
"""Connections of a process that read logs of one node for listeners at the same time."""
READ_EVENTS_MAX: Final = 250
READ_BYTES_MAX: Final = 32_768
"""Events, and bytes of their bodies, that a listener which is behind reads at once."""
READ_AT_ONCE_MAX: Final = 50
"""Tournaments whose new events are read at once in a round."""
NEWS_SECONDS: Final = 0.1
"""Time between two looks at the log for events that other processes have appended."""
LOOKED_AT_ONCE_MAX: Final = 500
"""Tournaments of one such look; the others follow."""
ROUND_SECONDS_MIN: Final = 0.05
"""Pause after a round."""
PAUSE_FOR_WORK: Final = 9.0
"""Pause after a round, as a multiple of the time that its work took, if that is longer."""
SILENT_SECONDS: Final = 15.0
"""A listener gets a keep-alive after this time without an event."""
SWEEP_SECONDS: Final = 1.0
"""Time between two checks of all listeners."""
TOKENS_SECONDS: Final = 0.5
"""Time between two checks of the tokens that opened the streams. A token may have been looked up KEPT_SECONDS_MAX
before its stream began (`api/access/auth.py`), so a revocation takes effect within less than 5 seconds in total."""
UNCONFIRMED_SECONDS_MAX: Final = 3.5
"""The streams end if their tokens could not be checked for this time."""


class Visitor(Struct, frozen=True):
    """The opener of a stream without a token: a client's address."""

    address: str


OpenedBy = Opener | Visitor
StreamEnd = Literal[
    "client_gone",
    "unread",
    "token_ended",
    "token_unconfirmed",
    "unpublished",
    "reset",
    "log_replaced",
    "stopped",
    "defect",
    "deleted",
    "database_unavailable",
    "shutting_down",
]
"""Why a stream ends."""


class Listening(Protocol):
    """A client of a stream (`listeners.py`). `position`: the last event up to which it has everything it wants.
    `opener`: of its stream. Its methods raise nothing, because a failure ends its stream alone."""

    position: Reached
    opener: OpenedBy

    def take(self, pieces: "Pieces") -> bool | None:
        """Sends the events. Returns False or None if it did not: it is behind, and reads at its own pace, or it has
        ended."""

    def read_on(self) -> None:
        """Lets it read what it lacks at its own pace."""

    def give_sign_of_life(self, silent_since: float) -> None:
        """Sends something if nothing has been sent since then, in the loop's time."""

    def start_over(self, head: Head) -> None:
        """Tells the client to forget everything and begin again, with a log that ends at `head`, and ends its
        stream."""

    def forget(self, competitor_id: CompetitorId, *, is_held: bool) -> None:
        """Stops sending anything that was read before a competitor was erased. Reports the erasure if the log is held
        before its event."""

    def say_caught_up(self, *, is_held: bool) -> None:
        """Reports the end of the log, and whether it is held there."""

    def end(self, why: StreamEnd) -> None:
        """Ends its stream."""


class _Node:
    """The followers of the tournaments on one node of the database; a plain database has one node. `news`: followers
    whose live has folded an event."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.readers = asyncio.Semaphore(LOG_READERS_MAX)
        self.followers: set[Follower] = set()
        self.news: set[Follower] = set()
        self.something = asyncio.Event()

    def wake(self, follower: "Follower") -> None:
        self.news.add(follower)
        self.something.set()


class Follower:
    """Reads one log, `streamed`, for all its listeners. `position`: the last event read, and the digest of its block.
    `current`: the listeners that receive new events in rounds. `erased`: how often it has dropped what it had read,
    because it may have named somebody who was erased."""

    def __init__(
        self, live: LiveTournament, streams: "Streams", node: _Node, streamed: StreamedLog, position: Head
    ) -> None:
        self.live = live
        self.node = node
        self.streamed = streamed
        self.position: Head = position
        self.erased = 0
        self.listeners: set[Listening] = set()
        self.current: dict[Listening, None] = {}
        self._streams = streams
        self._ring: deque[Frame] = deque()  # of consecutive events, up to `position`
        self._ring_bytes = 0
        self._hidden = streamed.hidden(live.board.publication)
        self._was_held = self.is_held
        live.followers.append(self._follow)
        node.followers.add(self)
        node.wake(self)  # its log may have grown since `position`

    @property
    def end(self) -> Sequence | None:
        """The last event that it may hand out; None: no further ones."""
        return self.streamed.end(self.live.board.publication, self.live.head.sequence)

    @property
    def is_held(self) -> bool:
        """Whether its log ends because of a freeze."""
        return self.streamed.is_held(self.live.board.publication)

    def telling_if_held(self) -> Iterator[None]:
        """If a freeze has begun or ended, reports the end of the log to each current listener, one in each step."""
        is_held = self.is_held
        if is_held == self._was_held:
            return
        self._was_held = is_held
        for listener in list(self.current):
            if listener in self.current:
                listener.say_caught_up(is_held=is_held)
            yield

    def close(self) -> None:
        """Stops following."""
        self.live.followers.remove(self._follow)
        self.node.followers.discard(self)
        self.node.news.discard(self)
        self._empty()

    def _follow(self, recorded: Recorded) -> None:
        if (erased := recorded.event.erases) is not None:
            self._empty()  # the ring may have the name; the log no longer has it
            self.erased += 1
            for listener in list(self.listeners):
                listener.forget(erased, is_held=self.is_held)
        hidden = self.streamed.hidden(self.live.board.publication)
        if hidden != self._hidden:
            self._start_over(hidden)
        self.node.wake(self)

    def _start_over(self, hidden: frozenset[RankingId]) -> None:
        """Starts all listeners over: frames already sent may name a ranking that is now hidden, or lack one that no
        longer is."""
        self._hidden = hidden
        self._empty()
        for listener in list(self.listeners):
            listener.start_over(Head(self.end or Sequence(0), b""))

    def _empty(self) -> None:
        self._streams.ring_bytes -= self._ring_bytes
        self._ring_bytes = 0
        self._ring.clear()

    def end_all(self, why: StreamEnd) -> None:
        """Ends all its streams."""
        for listener in list(self.listeners):
            listener.end(why)

    async def erased_beyond(self, position: Sequence) -> list[CompetitorId]:
        """The competitors whose erasures the log has beyond `position`. Raises DatabaseUnavailable."""
        async with self.node.readers, self.node.database.connection() as connection:
            return list(await reading.erased_since(connection, self.live.tournament_id, position))

    async def next_frames(self, after: Head, upto: Sequence) -> list[Frame]:
        """A chunk of the events that follow `after`, for a listener that is behind: from the ring if they are there,
        otherwise from the log. There must be some up to `upto`, which the live has folded.

        Raises LogForked if the log no longer has `after` or what the live has folded, and DatabaseUnavailable.
        """
        if self.live.dropped:
            raise LogForked(self.live.tournament_id, after.sequence)
        if self._ring and self._ring[0].stored.sequence <= after.sequence < self.position.sequence:
            return self._from_ring(after)
        async with self.node.readers, self.node.database.connection() as connection:
            events = await undecoded.stored(
                connection,
                self.live.tournament_id,
                undecoded.EventSpan(after, upto, self.live.head),
                events_max=READ_EVENTS_MAX,
                bytes_max=READ_BYTES_MAX,
            )
        return self._framed(events)

    def _framed(self, events: Items[undecoded.Stored]) -> list[Frame]:
        return [Frame(stored, self.streamed, self._hidden) for stored in events]

    def _from_ring(self, after: Head) -> list[Frame]:
        start = after.sequence + 1 - self._ring[0].stored.sequence
        if self._ring[start - 1].stored.digest != after.digest:
            raise LogForked(self.live.tournament_id, after.sequence)
        frames: list[Frame] = []
        size = 0
        for frame in islice(self._ring, start, start + READ_EVENTS_MAX):
            size += len(frame.stored.body)
            if frames and size > READ_BYTES_MAX:
                break
            frames.append(frame)
        return frames

    def take(self, events: list[undecoded.Stored]) -> "Pieces":
        """Takes the events that follow `position`, read from the log, and returns those to be handed out."""
        pieces = Pieces(self.position, self._framed(events))
        self._keep(pieces.frames)
        self.position = pieces.last
        return pieces

    def handing_out(self, pieces: "Pieces") -> Iterator[None]:
        """Hands the events to each of the current listeners, one in each step, until somebody is erased: then the
        others read them again."""
        erased = self.erased
        for listener in list(self.current):
            if self.erased != erased:  # they may have the name
                for behind in [one for one in self.current if one.position.sequence < pieces.last.sequence]:
                    del self.current[behind]
                    behind.read_on()
                return
            if listener in self.current and not listener.take(pieces):  # it may have ended meanwhile
                self.current.pop(listener, None)
            yield

    def fail(self, error: Exception) -> None:
        """Ends all its streams, because of an error of its tournament."""
        self._streams.live_pool.alarm_defect(self.live.tournament_id, DefectPart.STREAMING, error)
        self.end_all("defect")

    def _keep(self, frames: Items[Frame]) -> None:
        for frame in frames:
            self._ring.append(frame)
            self._count(frame.size_bytes)
        while self._ring and (
            len(self._ring) > RING_EVENTS_MAX
            or self._ring_bytes > RING_BYTES_MAX
            or self._streams.ring_bytes > RINGS_BYTES_MAX
        ):
            self._count(-self._ring.popleft().size_bytes)

    def _count(self, size_bytes: int) -> None:
        self._ring_bytes += size_bytes
        self._streams.ring_bytes += size_bytes


class Pieces:
    """The events that follow `before`, as the chunks that different listeners get, each made once. `last`: the last of
    them."""

    def __init__(self, before: Head, frames: Items[Frame]) -> None:
        self.before = before
        self.last = frames[-1].reached
        self.frames = frames
        self._made: dict[tuple[Sequence, StreamFormat, Wanted, bool], bytes] = {}

    def follow(self, position: Head) -> bool:
        """Whether the events continue the history that leads to this position, which must be within them."""
        passed = position.sequence - self.before.sequence
        digest = self.frames[passed - 1].stored.digest if passed else self.before.digest
        return position.sequence == 0 or digest == position.digest

    def after(self, position: Sequence, form: StreamFormat, wanted: Wanted, *, is_chunked: bool) -> bytes:
        """The chunk for the listener at this position; empty: its filter accepts nothing."""
        key = (position, form, wanted, is_chunked)
        made = self._made.get(key)
        if made is None:
            made = joined(self.frames[position - self.before.sequence :], form, wanted)
            made = self._made[key] = chunk(made) if is_chunked and made else made
        return made


class _Work:
    """Measures the time of steps, without other work between them."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, steps: Iterator[None]) -> Iterator[None]:
        while True:
            began_at = time.perf_counter()
            try:
                next(steps)
            except StopIteration:
                return
            self.seconds += time.perf_counter() - began_at
            yield


class Streams:
    """The streams of a process. `run` must run meanwhile. `ring_bytes`: the size of all rings."""

    def __init__(self, live_pool: LivePool, database: Database, time_slices: TimeSlices, *, listeners_max: int) -> None:
        self.database = database
        self.time_slices = time_slices
        self.ring_bytes = 0
        self.count = 0
        self.live_pool = live_pool
        self._listeners_max = listeners_max
        self._visitors: Counter[Visitor] = Counter()  # and how many streams each has
        self._followers: dict[tuple[TournamentId, StreamedLog], Follower] = {}
        self._nodes: dict[Database, _Node] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._closed = False

    # ── In and out ──────────────────────────────────────────────────────────────────────────────────────

    def refuse_more(self, tournament_id: TournamentId, streamed: StreamedLog, opener: OpenedBy) -> None:
        """Raises ListenersFull if there is no room for another listener of this opener, and ShuttingDown."""
        if self._closed:
            raise ShuttingDown
        follower = self._followers.get((tournament_id, streamed))
        of_tournament = 0 if follower is None else len(follower.listeners)
        if self.count >= self._listeners_max or of_tournament >= LISTENERS_OF_TOURNAMENT_MAX:
            raise ListenersFull
        if isinstance(opener, Visitor) and (
            self._visitors.total() >= self._listeners_max * VISITORS_SHARE
            or self._visitors[opener] >= LISTENERS_OF_VISITOR_MAX
        ):
            raise ListenersFull

    async def enter(self, live: LiveTournament, listener: Listening, streamed: StreamedLog, end: Head) -> Follower:
        """Counts a listener, and returns the follower of its tournament and log. `end`: a recent end of that log. The
        live stays in memory until the listener leaves. Raises HistoryReplaced if it is no longer the one in memory,
        ShuttingDown, and as `LivePool.pin`."""
        node = await self._node_of(live.tournament_id)
        pinned = await self.live_pool.pin(live.tournament_id)
        if pinned is not live:
            self.live_pool.unpin(pinned)
            raise HistoryReplaced
        if self._closed:  # since `refuse_more`
            self.live_pool.unpin(pinned)
            raise ShuttingDown
        followed = live.tournament_id, streamed
        follower = self._followers.get(followed)
        if follower is None or follower.live is not live:
            if follower is not None:
                follower.end_all("log_replaced")
            follower = self._followers[followed] = Follower(live, self, node, streamed, end)
        follower.listeners.add(listener)
        if isinstance(listener.opener, Visitor):
            self._visitors[listener.opener] += 1
        self.count += 1
        LISTENERS.set(self.count)
        return follower

    def leave(self, follower: Follower, listener: Listening) -> None:
        follower.listeners.remove(listener)
        follower.current.pop(listener, None)
        self.count -= 1
        LISTENERS.set(self.count)
        if isinstance(listener.opener, Visitor):
            self._visitors[listener.opener] -= 1
            if not self._visitors[listener.opener]:
                del self._visitors[listener.opener]
        if not follower.listeners:
            follower.close()
            followed = follower.live.tournament_id, follower.streamed
            if self._followers.get(followed) is follower:
                del self._followers[followed]
        self.live_pool.unpin(follower.live)

    async def _node_of(self, tournament_id: TournamentId) -> _Node:
        database = await self.database.by_node(tournament_id)
        node = self._nodes.get(database)
        if node is None:
            node = self._nodes[database] = _Node(database)
            self._begin(node)
        return node

    # ── In the background ─────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Hands out events, and checks the listeners, until it is cancelled. Then it ends all streams."""
        try:
            async with background() as self._tasks:
                for node in self._nodes.values():
                    self._begin(node)
                self._tasks.create_task(self._sweep())
                try:
                    await self._confirm()
                finally:
                    self._closed = True  # from here on, the group takes no tasks
        finally:
            for follower in list(self._followers.values()):
                follower.end_all("shutting_down")

    def _begin(self, node: _Node) -> None:
        """Starts handing out the events of a node, once `run` runs."""
        if self._tasks is not None and not self._closed:
            self._tasks.create_task(self._look(node))
            self._tasks.create_task(self._hand_out(node))

    async def _hand_out(self, node: _Node) -> None:
        while True:
            await node.something.wait()
            node.something.clear()
            news = list(node.news)
            node.news.clear()
            work = _Work()
            for streamed in {follower.streamed for follower in news}:  # so each tournament is in a round once
                alike = [follower for follower in news if follower.streamed is streamed]
                for start in range(0, len(alike), READ_AT_ONCE_MAX):
                    await self._round(node, alike[start : start + READ_AT_ONCE_MAX], work)
            await asyncio.sleep(max(ROUND_SECONDS_MIN, work.seconds * PAUSE_FOR_WORK))

    async def _round(self, node: _Node, followers: list[Follower], work: _Work) -> None:
        """Reads a chunk of the new events of each tournament, and hands it to the current listeners."""
        spans: dict[TournamentId, undecoded.EventSpan] = {}
        erased_before = {follower: follower.erased for follower in followers}
        for follower in followers:
            try:
                end = follower.end
            except Exception as error:  # noqa: BLE001 - a defect of this tournament alone
                follower.fail(error)
                continue
            if end is None:
                follower.end_all("unpublished")
            elif follower.position.sequence < end:
                spans[follower.live.tournament_id] = undecoded.EventSpan(follower.position, end, follower.live.head)
        for follower in followers:
            await self.time_slices.work(work.timed(follower.telling_if_held()))
        if not spans:
            return
        events_max, bytes_max = reading.CHUNK_EVENTS_MAX // len(spans), reading.CHUNK_BYTES_MAX // len(spans)
        try:
            async with node.database.connection() as connection:
                found = await undecoded.stored_of(connection, spans, events_max=events_max, bytes_max=bytes_max)
        except DatabaseUnavailable:
            for follower in followers:
                node.wake(follower)
            return
        except Exception as error:  # noqa: BLE001 - it concerns one of them
            if len(followers) == 1:
                followers[0].fail(error)
                return
            for follower in followers:
                await self._round(node, [follower], work)
            return
        await self.time_slices.work(work.timed(self._handing_out(erased_before, spans, found)))

    def _handing_out(
        self,
        erased_before: Mapping[Follower, int],
        spans: Mapping[TournamentId, undecoded.EventSpan],
        found: Mapping[TournamentId, list[undecoded.Stored]],
    ) -> Iterator[None]:
        """Hands out the events found for each tournament, to one listener in each step. `erased_before`: each
        follower's count of erasures before it read."""
        for follower, before in erased_before.items():
            tournament_id = follower.live.tournament_id
            if tournament_id not in spans or not follower.listeners:
                continue  # or it was closed meanwhile
            if follower.erased != before:
                follower.node.wake(follower)  # what was read may have the name
                continue
            if tournament_id not in found or follower.live.dropped:
                follower.end_all("log_replaced")
                continue
            try:
                pieces = follower.take(found[tournament_id])
                if follower.position.sequence < spans[tournament_id].upto:
                    follower.node.wake(follower)
                yield from follower.handing_out(pieces)
            except Exception as error:  # noqa: BLE001 - a defect of this tournament alone
                follower.fail(error)

    async def _look(self, node: _Node) -> None:
        """Folds events of other processes into each live of a node. Without requests, nothing else would."""
        while True:
            await asyncio.sleep(NEWS_SECONDS)
            followers = list(node.followers)
            for start in range(0, len(followers), LOOKED_AT_ONCE_MAX):
                await asyncio.gather(*map(self._make_current, followers[start : start + LOOKED_AT_ONCE_MAX]))

    async def _make_current(self, follower: Follower) -> None:
        try:
            if not follower.live.dropped:
                await self.live_pool.make_current(follower.live)
        except TournamentStopped:
            follower.end_all("stopped")
        except HistoryReplaced:
            follower.end_all("log_replaced")
        except NotFound:
            follower.end_all("deleted")
        except (DatabaseUnavailable, PostgresError, ShuttingDown):
            return
        except Exception as error:  # noqa: BLE001 - a defect of this tournament alone
            follower.fail(error)
        if follower.live.dropped:
            follower.end_all("deleted" if follower.live.deleted else "log_replaced")

    async def _sweep(self) -> None:
        """Sends keep-alives, and measures how far the slowest listener is behind."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            behind = [0]
            await self.time_slices.work(self._swept(loop.time() - SILENT_SECONDS, behind))
            LISTENERS_BEHIND.set(behind[0])

    def _swept(self, silent_since: float, behind: list[int]) -> Iterator[None]:
        for follower in list(self._followers.values()):
            try:
                for listener in list(follower.listeners):
                    listener.give_sign_of_life(silent_since)
                    behind[0] = max(behind[0], (follower.end or 0) - listener.position.sequence)
                    yield
            except Exception as error:  # noqa: BLE001 - a defect of this tournament alone
                follower.fail(error)

    async def _confirm(self) -> None:
        """Ends the streams whose token or session has ended, and all streams if that could not be checked for too
        long."""
        clock = asyncio.get_running_loop().time
        confirmed_at = clock()
        while True:
            await asyncio.sleep(TOKENS_SECONDS)
            began_at, asked = clock(), self._openers()
            looking = asyncio.create_task(self._good_among(asked))
            try:
                # A check that takes long is left running: a silent database would hold up its cancellation, too.
                while not (await asyncio.wait([looking], timeout=TOKENS_SECONDS))[0]:
                    if clock() - confirmed_at > UNCONFIRMED_SECONDS_MAX:
                        self._end(self._openers(), "token_unconfirmed")
            finally:
                looking.cancel()
            good = looking.result()
            if good is not None:
                self._end(asked - good, "token_ended")
                confirmed_at = began_at
            elif clock() - confirmed_at > UNCONFIRMED_SECONDS_MAX:
                self._end(self._openers(), "token_unconfirmed")

    async def _good_among(self, openers: set[OpenedBy]) -> set[OpenedBy] | None:
        """Those that have not ended; None: the database does not answer. Visitors have no token or session that could
        end: their streams end with the publication, which this process notices while the database answers."""
        if not openers:
            return openers
        visitors = {one for one in openers if isinstance(one, Visitor)}
        try:
            async with self.database.connection() as connection:
                return visitors | await good_openers(connection, [one for one in openers if isinstance(one, Opener)])
        except DatabaseUnavailable:
            return None

    def _openers(self) -> set[OpenedBy]:
        return {listener.opener for follower in self._followers.values() for listener in follower.listeners}

    def _end(self, openers: set[OpenedBy], why: StreamEnd) -> None:
        """Ends the streams of these openers."""
        for follower in list(self._followers.values()):
            for listener in list(follower.listeners):
                if listener.opener in openers:
                    listener.end(why)
