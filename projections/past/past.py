"""The past of a tournament, from its log: boards at any moment, pages of history, explanations.

An answer starts at the nearest snapshot that is not later than its subject, or at the beginning, and folds from there.
It reads the log in chunks, and holds a connection only while it reads one, so others wait no longer than one chunk
takes. Appended events never change, so all chunks show one history. Snapshots are safe to drop: a missing one costs
time, and an unreadable one is ignored with a line in the process's log.
"""

import asyncio
import time
from base64 import b64decode
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator
from collections.abc import Sequence as Items
from contextlib import aclosing, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final, assert_never

import structlog
from msgspec import Struct

from engine.database.pool import Database
from engine.domain.errors import (
    HistoryReplaced,
    LogForked,
    LogUnreadable,
    NotFound,
    QueueFull,
    TooMuchWork,
    TournamentStopped,
)
from engine.domain.events import Points, PointsAdded, PresentationChanged, Recorded, changed_by
from engine.domain.notation import Notation
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import heads, reading
from engine.log.heads import Head
from engine.log.reading import Mentioning
from engine.process.pace import QueuePace
from engine.process.time_slices import TimeSlices, in_time_slices
from projections.board.board import Board, erase, folding, give_sums, left_out
from projections.board.competition_sums import CompetitionSums, LeftOut, counting
from projections.board.expiring import dated_between
from projections.past.explanation import OVERTAKINGS_MAX, Explainer, Neighbours, Place, Step
from projections.past.history import EVERYTHING, AnyLine, Filter, Historian
from projections.past.leaders import PublishedLeaders, Reigns, TrueLeaders
from projections.past.losses import Losses
from projections.past.mentions import MENTIONS_MAX, Mention, Mentions, Sought, sought
from projections.past.passage import PASSAGE_EVENTS_MAX, Passage, passage, passage_begin
from projections.past.series import Series, SeriesPoint
from projections.past.timeline import Timeline, TimelineStep, series_by_date, steps_by_date
from projections.past.touching import Touch, touch
from projections.past.world_clock import WorldClock, add_deltas, add_special, drop_special, give_totals
from projections.tables import snapshots

PAST_REQUESTS_MAX: Final = 3
"""Requests about the past that one process works on at once. More would slow down all of them, and delay answers about
the present."""
PAST_WAIT_SECONDS_MAX: Final = 5.0
"""A request that is expected to wait longer than this, or has waited that long, is refused."""
SCANNED_EVENTS_MAX: Final = 20_000
"""Events that one page may scan. If a filter matches few of them, the page is short or empty, and the next one
continues."""
DATED_LINES_MAX: Final = 1_000_000
"""Lines of points by which the two clocks may differ in one answer."""
TIMELINE_EVENTS_MAX: Final = 20_000
TIMELINE_DELTAS_MAX: Final = 50_000
"""Events of a log, and deltas of a ranking in it, that may be put in order of time."""
LEADERS_EVENTS_MAX: Final = 1_000_000
"""Events of a log, and lines of points of a unity in it, that may be read for its leaders."""
SEARCHED_EVENTS_AT_ONCE: Final = 20_000
"""Events that one statement searches for the names of a competitor."""
LOOKED_BACK_EVENTS_MAX: Final = 5_000
"""Events that the search for the last competition scans."""
_LOOKED_BACK_AT_ONCE: Final = 500

_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_TIME: Final = datetime.min.replace(tzinfo=UTC)

_logger = structlog.get_logger()


class AtSequence(Struct, frozen=True):
    """The moment after this event."""

    sequence: Sequence


class AtTime(Struct, frozen=True):
    """The moment after the last event recorded up to that time."""

    moment: datetime


class AtVersion(Struct, frozen=True):
    """The moment after the event that brought the unity to this version."""

    unity_id: UnityId
    version: int


Moment = AtSequence | AtTime | AtVersion


class PastBoard(Struct, frozen=True):
    """A board, and the last event that it shows. `clock`: the board shows only the points that had taken place by its
    time; None: it shows all."""

    board: Board
    sequence: Sequence
    recorded_at: datetime
    clock: WorldClock | None = None

    @property
    def on(self) -> datetime | None:
        return None if self.clock is None else self.clock.on

    @property
    def expired_by(self) -> datetime:
        """The time up to which due points have expired."""
        return self.recorded_at if self.clock is None else self.clock.on


class Range(Struct, frozen=True, kw_only=True):
    """A span of a log: from `first` and `since`, up to `last` and `until`, all inclusive. None: no bound."""

    first: Sequence | None = None
    last: Sequence | None = None
    since: datetime | None = None
    until: datetime | None = None


class Span(Struct, frozen=True):
    """The events from sequence `first` up to `last`; none if `last` is smaller."""

    first: Sequence
    last: Sequence


class Cursor(Struct, frozen=True):
    """Where a page of history ends: after the first `lines` lines of the event `sequence`."""

    sequence: Sequence
    lines: int = 0


class LastCompetition(Struct, frozen=True):
    """The last competition that gave points in a ranking. `before`: the event before the first of these points."""

    competition_id: CompetitionId
    before: Sequence


class HistoryPage(Struct, frozen=True):
    """A page of history. `next` None: it is the last page."""

    lines: list[AnyLine]
    next: Cursor | None


class DatedPlace(Struct, frozen=True):
    """The place of a competitor after an event. Sequence 0: before the first event, so there is no time."""

    sequence: Sequence
    recorded_at: datetime | None
    place: Place


class Explanation(Struct, frozen=True):
    """The steps that led a competitor from `start` to `end`. `neighbours`: her neighbours in the classification
    afterwards; None: no classification was declared. `next`: the sequence to continue from; None: this is the last
    page. `on`: the steps are in order of time, up to this time; None: they are in the order of the log."""

    start: DatedPlace
    end: DatedPlace
    steps: list[Step]
    neighbours: Neighbours | None
    next: Sequence | None
    on: datetime | None = None


class Past:
    """The past of all tournaments, for one process.

    Its methods raise TournamentStopped, HistoryReplaced, DatabaseUnavailable and, under too many requests, QueueFull.
    """

    def __init__(self, database: Database, time_slices: TimeSlices | None = None) -> None:
        self._database = database
        self._time_slices = time_slices or TimeSlices()
        self._slots = asyncio.Semaphore(PAST_REQUESTS_MAX)
        self._waiting = 0
        self._pace = QueuePace()

    # ── Moments ─────────────────────────────────────────────────────────────────────────────────────────

    async def at(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        moment: Moment | None,
        head: Sequence,
        on: datetime | None = None,
    ) -> PastBoard:
        """The board at `moment`; None: at `head`. With `on`, the ranking has only the points that had taken place by
        that time. Raises NotFound if the log up to `head` does not contain the moment, or if the ranking did not exist
        at it; and TooMuchWork."""
        async with self._admitted():
            match moment:
                case None:
                    past_board = await self._at_sequence(tournament_id, head, head)
                case AtSequence():
                    past_board = await self._at_sequence(tournament_id, moment.sequence, head)
                case AtTime():
                    async with self._database.connection_for(tournament_id) as connection:
                        last = await heads.last_at(connection, tournament_id, moment.moment, head)
                    if last == 0:
                        raise NotFound("At that time this tournament had not been opened yet; ask for a later time.")
                    past_board = await self._at_sequence(tournament_id, last, head)
                case AtVersion():
                    past_board = await self._at_version(tournament_id, ranking_id, moment, head)
                case _:
                    assert_never(moment)
            if ranking_id not in past_board.board.rankings:
                raise NotFound(f"At sequence {past_board.sequence} this tournament had no ranking {ranking_id} yet.")
            return past_board if on is None else await self._on(tournament_id, ranking_id, past_board, on)

    async def refuse_replaced(self, tournament_id: TournamentId, head: Head) -> None:
        """Raises HistoryReplaced unless the log still has a block that ends in `head`. If it has, all chunks that were
        read since `head` was current show one history."""
        async with self._database.connection_for(tournament_id) as connection:
            if not await heads.has(connection, tournament_id, head):
                raise HistoryReplaced

    async def recorded_at(self, tournament_id: TournamentId, sequence: Sequence) -> datetime:
        """When an existing event was recorded."""
        with _faults():
            async with self._database.connection_for(tournament_id) as connection:
                return (await reading.event_at(connection, tournament_id, sequence)).recorded_at

    async def name(self, tournament_id: TournamentId, sequence: Sequence) -> str:
        """The name of a tournament after this event."""
        with _faults():
            async with self._database.connection_for(tournament_id) as connection:
                return await reading.name_at(connection, tournament_id, sequence)

    async def logo(self, tournament_id: TournamentId, sequence: Sequence) -> bytes:
        """The PNG that the event of this sequence gave as a logo."""
        with _faults():
            async with self._database.connection_for(tournament_id) as connection:
                event = (await reading.event_at(connection, tournament_id, sequence)).event
        assert isinstance(event, PresentationChanged)
        assert isinstance(event.logo, str)
        return b64decode(event.logo)

    async def span(self, tournament_id: TournamentId, head: Sequence, bounds: Range) -> Span:
        """The events up to `head` that lie within `bounds`."""
        first, last = bounds.first or Sequence(1), min(bounds.last or head, head)
        with _faults():
            async with self._database.connection_for(tournament_id) as connection:
                if bounds.since is not None and bounds.since > _FIRST_TIME:
                    earlier = await heads.last_at(connection, tournament_id, bounds.since - _MICROSECOND, head)
                    first = max(first, Sequence(earlier + 1))
                if bounds.until is not None:
                    last = min(last, await heads.last_at(connection, tournament_id, bounds.until, head))
        return Span(first, last)

    async def last_competition(
        self, tournament_id: TournamentId, ranking_id: RankingId, upto: Sequence, board: Board
    ) -> LastCompetition | None:
        """The last competition that gave points in the ranking, if on `board` it is not voided and the points are not
        undone. None: none did up to the event `upto`, or in the last LOOKED_BACK_EVENTS_MAX events."""
        voided, undone = frozenset(board.voided), frozenset(board.rankings[ranking_id].undone)
        last: CompetitionId | None = None
        first: Sequence | None = None
        begin = Sequence(max(upto - LOOKED_BACK_EVENTS_MAX, 0))
        async with self._admitted():
            while upto > begin:
                after = Sequence(max(upto - _LOOKED_BACK_AT_ONCE, begin))
                found = [e async for events in self._chunks(tournament_id, after, upto) for e in events]
                earliest = first
                for recorded in reversed(found):
                    event = recorded.event
                    if not isinstance(event, PointsAdded) or event.ranking_id != ranking_id:
                        continue
                    if recorded.sequence in undone:
                        continue
                    if last is None and event.competition_id not in voided:
                        last = event.competition_id
                    if last is not None and event.competition_id == last:
                        first = recorded.sequence
                if first is not None and first == earliest:
                    break
                upto = after
        return None if last is None or first is None else LastCompetition(last, Sequence(first - 1))

    async def taken_place(
        self,
        tournament_id: TournamentId,
        then: PastBoard,
        ranking_ids: Collection[RankingId],
        competition_ids: Iterable[CompetitionId],
    ) -> set[CompetitionId]:
        """The competitions that gave points in one of these rankings, on the board and by its clock."""
        found: set[CompetitionId] = set()
        pending = deque([(one, Sequence(0)) for one in competition_ids])
        async with self._admitted():
            while pending:
                async with self._database.connection_for(tournament_id) as connection:
                    events = await reading.points_of_competitions(connection, tournament_id, pending, then.sequence)
                shown = events if then.clock is None else then.clock.shown(events)
                found.update(_causes(then.board, ranking_ids, shown))
                pending = deque([one for one in pending if one[0] not in found])
        return found

    async def board_after(self, tournament_id: TournamentId, sequence: Sequence, head: Sequence) -> Board:
        """The board after this event. Raises NotFound if the event is beyond `head`."""
        _refuse_beyond(head, sequence)
        async with self._admitted():
            return await self._board_at(tournament_id, sequence)

    async def competition_sums(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        sequence: Sequence,
        without: LeftOut,
        clock: WorldClock | None = None,
    ) -> CompetitionSums:
        """The sums that competitors of a ranking got in each competition up to this event, by `clock`, `without` the
        points to leave out. Reads the log up to the event."""
        async with self._admitted():
            return await self._competition_sums(tournament_id, ranking_id, sequence, without, clock)

    async def _competition_sums(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        sequence: Sequence,
        without: LeftOut,
        clock: WorldClock | None = None,
    ) -> CompetitionSums:
        sums = CompetitionSums()
        async for events in self._chunks_read_ahead(tournament_id, Sequence(0), sequence):
            counted = events if clock is None else clock.shown(events)
            await self._time_slices.work(counting(sums, ranking_id, counted, without))
        return sums

    # ── The world's clock ───────────────────────────────────────────────────────────────────────────────

    async def _on(self, tournament_id: TournamentId, ranking_id: RankingId, then: PastBoard, on: datetime) -> PastBoard:
        """The same board, with only the points that had taken place by `on`. Takes ownership of the board. Raises
        TooMuchWork."""
        board, upto = then.board, then.sequence
        async with self._database.connection_for(tournament_id) as connection:
            last = await heads.last_at(connection, tournament_id, on, upto)
        clock = WorldClock(board, on, last)
        if last < upto:
            earlier = await self._board_at(tournament_id, last)
            await self._time_slices.work(give_totals(board, earlier, ranking_id))
        lines = 0
        async with aclosing(self._differing(tournament_id, clock, upto)) as chunks:
            async for sign, events in chunks:
                lines += sum([len(one.event.deltas) for one in events if isinstance(one.event, Points)])
                if lines > DATED_LINES_MAX:
                    raise TooMuchWork("lines of points", DATED_LINES_MAX)
                await self._time_slices.work(add_deltas(board, ranking_id, events, sign))
        if board.rankings[ranking_id].special:
            await self._add_special(tournament_id, ranking_id, clock, upto)
        return PastBoard(board, upto, then.recorded_at, clock)

    async def _add_special(
        self, tournament_id: TournamentId, ranking_id: RankingId, clock: WorldClock, upto: Sequence
    ) -> None:
        """Replaces the totals of unities that count results, or whose points expire, by those of the clock. Reads the
        log. Raises TooMuchWork."""
        if upto > DATED_LINES_MAX:
            raise TooMuchWork("events", DATED_LINES_MAX)
        drop_special(clock.board, ranking_id)
        async for events in self._chunks_read_ahead(tournament_id, Sequence(0), upto):
            await self._time_slices.work(add_special(clock.board, ranking_id, events, clock.on, clock))

    async def _differing(
        self, tournament_id: TournamentId, clock: WorldClock, upto: Sequence
    ) -> AsyncGenerator[tuple[int, list[Recorded]], None]:
        """The points up to the event `upto` on which the clocks differ, chunk by chunk: with 1, those that the world's
        clock shows although they were recorded later; with -1, those that it does not show although they were recorded
        by then."""
        by_then, later = await in_time_slices(clock.dated())
        first = Sequence(0)
        for sign, competition_ids, after, last in ((-1, later, first, clock.last), (1, by_then, clock.last, upto)):
            pending = deque([(one, after) for one in competition_ids] if after < last else [])
            while pending:
                async with self._database.connection_for(tournament_id) as connection:
                    events = await reading.points_of_competitions(connection, tournament_id, pending, last)
                yield sign, events
        after = clock.last
        while after < upto:
            async with self._database.connection_for(tournament_id) as connection:
                events = await reading.reversals(connection, tournament_id, after, upto)
            yield 1, clock.undated(events)
            after = events[-1].sequence if events else upto

    async def _at_sequence(self, tournament_id: TournamentId, sequence: Sequence, head: Sequence) -> PastBoard:
        _refuse_beyond(head, sequence)
        board = await self._board_at(tournament_id, sequence)
        return PastBoard(board, sequence, await self.recorded_at(tournament_id, sequence))

    async def _at_version(
        self, tournament_id: TournamentId, ranking_id: RankingId, wanted: AtVersion, head: Sequence
    ) -> PastBoard:
        board, after = await self._before_version(tournament_id, ranking_id, wanted, head)
        async for events in self._chunks(tournament_id, after, head):
            last: list[Recorded] = []
            await self._time_slices.work(_until_version(tournament_id, board, ranking_id, wanted, events, last))
            if _version(board, ranking_id, wanted.unity_id) >= wanted.version:
                return PastBoard(board, last[0].sequence, last[0].recorded_at)
        reached = _version(board, ranking_id, wanted.unity_id)
        raise NotFound(f"Unity {wanted.unity_id} has reached version {reached}; ask for one from 1 up to that.")

    async def _before_version(
        self, tournament_id: TournamentId, ranking_id: RankingId, wanted: AtVersion, head: Sequence
    ) -> tuple[Board, Sequence]:
        """The board and sequence of the last snapshot in which the unity had not yet reached the version, or of the
        beginning. Versions never fall, so a binary search finds it."""
        async with self._database.connection_for(tournament_id) as connection:
            kept = [sequence for sequence in await snapshots.sequences(connection, tournament_id) if sequence <= head]
        board, at = Board(), Sequence(0)
        low, high = 0, len(kept)
        while low < high:
            middle = (low + high) // 2
            earlier, sequence = await self._nearest(tournament_id, kept[middle])
            if _version(earlier, ranking_id, wanted.unity_id) < wanted.version:
                board, at, low = earlier, sequence, middle + 1
            else:
                high = middle
        return board, at

    async def _board_at(self, tournament_id: TournamentId, upto: Sequence) -> Board:
        """The board after the event `upto`; 0: the empty one."""
        board, after = await self._nearest(tournament_id, upto)
        async for events in self._chunks_read_ahead(tournament_id, after, upto):
            await self._time_slices.work(folding(tournament_id, board, events))
        return board

    async def _nearest(self, tournament_id: TournamentId, upto: Sequence) -> tuple[Board, Sequence]:
        """The board and sequence of the last readable snapshot that is not after `upto`, or of the beginning."""
        while upto > 0:
            async with self._database.connection_for(tournament_id) as connection:
                try:
                    snapshot = await snapshots.nearest(connection, tournament_id, upto, self._time_slices)
                    if snapshot is None:
                        break
                    if await heads.has(connection, tournament_id, snapshot.head):
                        for erased in await reading.erased_since(connection, tournament_id, snapshot.head.sequence):
                            if erased in snapshot.board.competitors:
                                erase(snapshot.board, erased)
                        return snapshot.board, snapshot.head.sequence
                    sequence, reason = snapshot.head.sequence, "the log has no such block"
                except snapshots.SnapshotUndecodable as error:
                    sequence, reason = error.sequence, str(error)
            _logger.warning("snapshot_ignored", tournament_id=tournament_id, sequence=sequence, reason=reason)
            upto = Sequence(sequence - 1)
        return Board(), Sequence(0)

    async def _chunks(
        self, tournament_id: TournamentId, after: Sequence, upto: Sequence
    ) -> AsyncIterator[list[Recorded]]:
        """The events after `after` up to `upto`, chunk by chunk."""
        while after < upto:
            events = await self._chunk(tournament_id, after, upto)
            yield events
            after = events[-1].sequence

    async def _chunks_read_ahead(
        self, tournament_id: TournamentId, after: Sequence, upto: Sequence
    ) -> AsyncIterator[list[Recorded]]:
        """As `_chunks`, for callers that need all chunks: the database reads the next chunk while one is folded."""
        if after >= upto:
            return
        following = asyncio.create_task(self._chunk(tournament_id, after, upto))
        try:
            while True:
                events = await following
                after = events[-1].sequence
                if after >= upto:
                    break
                following = asyncio.create_task(self._chunk(tournament_id, after, upto))
                yield events
            yield events
        finally:
            following.cancel()
            await asyncio.wait([following])
            if not following.cancelled():
                following.exception()  # Retrieved, because a cancelled caller does not want it.

    async def _chunk(self, tournament_id: TournamentId, after: Sequence, upto: Sequence) -> list[Recorded]:
        async with self._database.connection_for(tournament_id) as connection:
            return await reading.chunk_of(connection, tournament_id, after, upto)

    async def passage(
        self, tournament_id: TournamentId, ranking_id: RankingId, at: Sequence, head: Sequence
    ) -> Passage:
        """The passage of a ranking's history that shows the event `at`. Raises NotFound if the event is beyond
        `head`."""
        _refuse_beyond(head, at)
        after = passage_begin(at)
        async with self._admitted():
            board = await self._board_at(tournament_id, after)
            upto = Sequence(min(after + PASSAGE_EVENTS_MAX, head))
            run = [e async for events in self._chunks(tournament_id, after, upto) for e in events]
            return await in_time_slices(passage(board, after, run, ranking_id, at))

    async def timeline(
        self,
        tournament_id: TournamentId,
        board: Board,
        ranking_id: RankingId,
        upto: Sequence,
        until: datetime | None = None,
    ) -> list[TimelineStep]:
        """The points of a ranking in order of time. `board`: the board after the event `upto`; nothing may be folded
        into it meanwhile. `until`: the time up to which points expire; None: when `upto` was recorded. Raises
        TooMuchWork."""
        if upto > TIMELINE_EVENTS_MAX:
            raise TooMuchWork("events", TIMELINE_EVENTS_MAX)
        timeline = Timeline(board, ranking_id, until)
        async with self._admitted():
            async for events in self._chunks_read_ahead(tournament_id, Sequence(0), upto):
                await self._time_slices.work(timeline.follow(events))
                if timeline.deltas > TIMELINE_DELTAS_MAX:
                    raise TooMuchWork("deltas", TIMELINE_DELTAS_MAX)
        return timeline.steps

    async def follow_losses(
        self,
        tournament_id: TournamentId,
        board: Board,
        losses: Losses,
        upto: Sequence,
        events_max: int = DATED_LINES_MAX,
    ) -> None:
        """Passes the events up to `upto` that the losses of a unity depend on to `losses`. Raises TooMuchWork if more
        than `events_max` events were recorded in the interval in which the expiring points took place, or if more give
        points of competitions."""
        after, until = losses.took_place
        by_date = await in_time_slices(dated_between(board, after, until))
        async with self._admitted():
            async with self._database.connection_for(tournament_id) as connection:
                first = await heads.last_at(connection, tournament_id, after, upto)
                last = await heads.last_at(connection, tournament_id, until, upto)
            if last - first > events_max:
                raise TooMuchWork("events", events_max)
            async for events in self._chunks_read_ahead(tournament_id, first, last):
                await self._time_slices.work(losses.follow(events, dated=False))
            pending, count = deque((one, Sequence(0)) for one in by_date), 0
            while pending:
                async with self._database.connection_for(tournament_id) as connection:
                    events = await reading.points_of_competitions(connection, tournament_id, pending, upto)
                count += len(events)
                if count > events_max:
                    raise TooMuchWork("events", events_max)
                await self._time_slices.work(losses.follow(events, dated=True))

    async def leaders(
        self,
        tournament_id: TournamentId,
        then: PastBoard,
        ranking_id: RankingId,
        unity_id: UnityId,
        until: datetime | None = None,
    ) -> tuple[Reigns, Reigns]:
        """The leaders of a unity up to the time `until`, by the log's clock and by the world's. Takes ownership of the
        board. Reads the log up to the event that the board shows. Raises TooMuchWork."""
        if then.sequence > LEADERS_EVENTS_MAX:
            raise TooMuchWork("events", LEADERS_EVENTS_MAX)
        published = PublishedLeaders(tournament_id, ranking_id, unity_id, until)
        true = TrueLeaders(then.board, ranking_id, unity_id, until, then.recorded_at)
        async with self._admitted():
            async for events in self._chunks_read_ahead(tournament_id, Sequence(0), then.sequence):
                await self._time_slices.work(published.follow(events))
                await self._time_slices.work(true.follow(events))
                if true.lines > LEADERS_EVENTS_MAX:
                    raise TooMuchWork("lines of points", LEADERS_EVENTS_MAX)
            await self._time_slices.work(published.finish())
            await self._time_slices.work(true.finish())
        return published.reigns, true.reigns

    # ── History ─────────────────────────────────────────────────────────────────────────────────────────

    async def page(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        span: Span,
        *,
        asked: Filter = EVERYTHING,
        after: Cursor | None = None,
        limit: int,
    ) -> HistoryPage:
        """The lines of `span` from the cursor `after` on that `asked` selects: at most `limit`, from at most
        SCANNED_EVENTS_MAX events."""
        begin = Cursor(span.first) if after is None or after.sequence < span.first else after
        last = min(span.last, Sequence(begin.sequence + SCANNED_EVENTS_MAX - 1))
        lines: list[AnyLine] = []
        given = begin.lines
        found = self._lines_by_event(tournament_id, ranking_id, Span(begin.sequence, last), self._chunks)
        async with self._admitted(), aclosing(found):
            async for lines_by_event in found:
                for sequence, event_lines in lines_by_event:
                    for n, line in enumerate(event_lines[given:], start=given + 1):
                        if asked.takes(line):
                            lines.append(line)
                            if len(lines) == limit:
                                end = Cursor(sequence, n) if n < len(event_lines) else Cursor(Sequence(sequence + 1))
                                return HistoryPage(lines, end if end.sequence <= span.last else None)
                    given = 0
        return HistoryPage(lines, Cursor(Sequence(last + 1)) if last < span.last else None)

    async def lines(
        self, tournament_id: TournamentId, ranking_id: RankingId, span: Span, asked: Filter = EVERYTHING
    ) -> AsyncIterator[tuple[Sequence, list[AnyLine]]]:
        """Yields all lines of `span` that `asked` selects, chunk by chunk, each chunk with the sequence reached."""
        found = self._lines_by_event(tournament_id, ranking_id, span, self._chunks_read_ahead)
        async with self._admitted(), aclosing(found):
            async for lines_by_event in found:
                yield (
                    lines_by_event[-1][0],
                    [line for _, event_lines in lines_by_event for line in event_lines if asked.takes(line)],
                )

    async def _lines_by_event(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        span: Span,
        chunks: Callable[[TournamentId, Sequence, Sequence], AsyncIterator[list[Recorded]]],
    ) -> AsyncGenerator[list[tuple[Sequence, Items[AnyLine]]], None]:
        """The lines of each event of `span`, chunk by chunk."""
        if span.last < span.first:
            return
        board = await self._board_at(tournament_id, Sequence(span.first - 1))
        historian = Historian(board, ranking_id)
        async for events in chunks(tournament_id, Sequence(span.first - 1), span.last):
            lines: list[tuple[Sequence, Items[AnyLine]]] = []
            await self._time_slices.work(_add_lines(tournament_id, historian, events, lines))
            yield lines

    # ── Of one competitor ───────────────────────────────────────────────────────────────────────────────

    async def touches(
        self, live_board: Board, tournament_id: TournamentId, competitor_id: CompetitorId, span: Span
    ) -> AsyncGenerator[tuple[Sequence, list[Touch]], None]:
        """Yields the events of `span` that touch a competitor, chunk by chunk, each chunk with the sequence reached.
        `live_board` shows at least the events of `span`."""

        def takes_part(competition_id: CompetitionId) -> bool:
            return competitor_id in live_board.competitions[competition_id].participants

        async with self._admitted():
            async for events in self._chunks_read_ahead(tournament_id, Sequence(span.first - 1), span.last):
                found: list[Touch] = []
                await self._time_slices.work(_add_touches(events, competitor_id, takes_part, found))
                yield events[-1].sequence, found

    async def mentions(self, tournament_id: TournamentId, competitor_id: CompetitorId, head: Sequence) -> Mentions:
        """The places where people wrote a name that the competitor has or had, up to the event `head`. Scans the
        log."""
        listed: list[Mention] = []
        count, after = 0, Sequence(0)
        async with self._admitted():
            async with self._database.connection_for(tournament_id) as connection:
                wanted = sought(await reading.names_of(connection, tournament_id, competitor_id))
            while wanted is not None and after < head:
                last = min(head, Sequence(after + SEARCHED_EVENTS_AT_ONCE))
                async with self._database.connection_for(tournament_id) as connection:
                    events = await reading.mentioning(
                        connection, tournament_id, after, last, wanted.in_bodies, wanted.in_texts
                    )
                found: list[Mention] = []
                await self._time_slices.work(_add_mentions(wanted, events, found))
                listed += found[: MENTIONS_MAX - len(listed)]
                count += len(found)
                after = events[-1].sequence if events else last
        return Mentions(listed, count - len(listed))

    # ── Explanations ────────────────────────────────────────────────────────────────────────────────────

    async def explanation(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        unity_id: UnityId,
        competitor_id: CompetitorId,
        *,
        notation: Notation,
        start: Sequence,
        end: Sequence,
        head: Sequence,
        limit: int | None = None,
        latest: bool = False,
    ) -> Explanation:
        """How a competitor came from her place after the event `start` to her place after the event `end`, in a unity
        with this notation. The unity need not exist yet. With a `limit`: at most that many steps, from at most
        SCANNED_EVENTS_MAX events, and none after the step that reaches OVERTAKINGS_MAX. If `latest`, the page has the
        last steps and ends at `end`, and `next` is the event up to which earlier steps are found.

        Raises NotFound if `end` is beyond `head`."""
        _refuse_beyond(head, max(start, end))
        last, most = end, None if latest else limit
        if latest:
            start = max(start, Sequence(end - SCANNED_EVENTS_MAX))
        elif limit is not None:
            last = min(end, Sequence(start + SCANNED_EVENTS_MAX))
        async with self._admitted():
            board = await self._board_at(tournament_id, start)
            explainer = Explainer(board, ranking_id, unity_id, competitor_id, notation)
            since = None if start == 0 else await self.recorded_at(tournament_id, start)
            await self._time_slices.work(explainer.prepared())
            begin = reached = DatedPlace(start, since, explainer.place)
            steps: list[Step] = []
            async for events in self._chunks(tournament_id, start, last):
                seen: list[Recorded] = []
                await self._time_slices.work(_add_steps(tournament_id, explainer, events, most, steps, seen))
                reached = DatedPlace(seen[-1].sequence, seen[-1].recorded_at, explainer.place)
                if latest and (dropped := _dropped(steps, limit)) is not None:
                    begin = DatedPlace(dropped.recorded.sequence, dropped.recorded.recorded_at, dropped.after)
                if _is_full(steps, most):
                    break
            if explainer.lacks_sums:
                without = left_out(explainer.board, ranking_id, reached.recorded_at)
                sums = await self._competition_sums(tournament_id, ranking_id, reached.sequence, without)
                give_sums(explainer.board, ranking_id, sums)
            neighbours: list[Neighbours | None] = []
            await self._time_slices.work(_add_neighbours(explainer, neighbours))
        following = reached.sequence if reached.sequence < end else None
        return Explanation(begin, reached, steps, neighbours[0], (begin.sequence or None) if latest else following)

    async def explanation_by_date(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        unity_id: UnityId,
        competitor_id: CompetitorId,
        *,
        on: datetime,
        upto: Sequence,
        head: Sequence,
        limit: int | None = None,
    ) -> Explanation:
        """How a competitor came to her place by the points that had taken place by `on`, as known after the event
        `upto`: the last steps in order of time. Raises NotFound as `explanation`, and TooMuchWork."""
        then = await self.at(tournament_id, ranking_id, AtSequence(upto), head)
        timeline = await self.timeline(tournament_id, then.board, ranking_id, upto, on)
        steps = [step for step in timeline if step.at <= on]
        place, told = await in_time_slices(steps_by_date(then.board, ranking_id, unity_id, competitor_id, steps))
        nothing = then.board.rankings[ranking_id].unities[unity_id].notation.shown(0)
        begin, end = DatedPlace(Sequence(0), None, Place(None, nothing)), DatedPlace(upto, then.recorded_at, place)
        return Explanation(begin, end, told[-limit:] if limit else told, None, None, on)

    # ── Series ──────────────────────────────────────────────────────────────────────────────────────────

    async def series(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        unity_id: UnityId,
        head: Sequence,
        only: Items[CompetitorId] | None = None,
    ) -> AsyncIterator[tuple[Sequence, Series]]:
        """Follows a unity from the beginning of the log: all lines, or those of `only` some competitors. After each
        chunk, yields the sequence reached and the series so far, always the same object."""
        board, series = Board(), Series(ranking_id, unity_id, only)
        async with self._admitted():
            async for events in self._chunks_read_ahead(tournament_id, Sequence(0), head):
                await self._time_slices.work(_followed(tournament_id, board, series, events))
                yield events[-1].sequence, series

    async def series_by_date(
        self,
        tournament_id: TournamentId,
        ranking_id: RankingId,
        unity_id: UnityId,
        head: Sequence,
        only: Items[CompetitorId],
    ) -> list[SeriesPoint] | None:
        """The series of a unity by the world's clock, for these competitors. None: nothing in the ranking has a date,
        or there is too much to put in order."""
        if head > TIMELINE_EVENTS_MAX:
            return None
        board = (await self.at(tournament_id, ranking_id, None, head)).board
        try:
            steps = await self.timeline(tournament_id, board, ranking_id, head)
        except TooMuchWork:
            return None
        if not any(step.is_dated for step in steps):
            return None
        return await in_time_slices(series_by_date(board, ranking_id, unity_id, steps, only))

    # ── Admission ───────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[None]:
        """Enters when one of PAST_REQUESTS_MAX slots is free. Raises QueueFull if that takes longer than
        PAST_WAIT_SECONDS_MAX, or is expected to at the pace of the last requests. Translates errors inside as `_faults`
        does."""
        expected = self._waiting * self._pace.seconds_each
        if expected > PAST_WAIT_SECONDS_MAX:
            raise QueueFull(expected)
        self._waiting += 1
        try:
            async with asyncio.timeout(PAST_WAIT_SECONDS_MAX):
                await self._slots.acquire()
        except TimeoutError:
            raise QueueFull(max(expected, PAST_WAIT_SECONDS_MAX)) from None
        finally:
            self._waiting -= 1
        began_at = time.monotonic()
        try:
            with _faults():
                yield
        finally:
            self._slots.release()
            self._pace.took(time.monotonic() - began_at, PAST_REQUESTS_MAX)


def _until_version(
    tournament_id: TournamentId,
    board: Board,
    ranking_id: RankingId,
    wanted: AtVersion,
    events: Iterable[Recorded],
    last: list[Recorded],
) -> Iterator[None]:
    """Folds events step by step until the unity has the version, and sets `last` to the last event."""
    for recorded in folding(tournament_id, board, events):
        last[:] = [recorded]
        if _version(board, ranking_id, wanted.unity_id) >= wanted.version:
            return
        yield


def _followed(tournament_id: TournamentId, board: Board, series: Series, events: Iterable[Recorded]) -> Iterator[None]:
    """Folds events step by step into the board and the series."""
    for recorded in folding(tournament_id, board, events):
        series.follow(board, recorded)
        yield


def _causes(board: Board, ranking_ids: Collection[RankingId], events: Iterable[Recorded]) -> Iterator[CompetitionId]:
    """The competitions for which these events gave points in the rankings. The points must not be undone, nor their
    competitors all struck."""
    for recorded in events:
        event = recorded.event
        if (
            isinstance(event, PointsAdded)
            and event.competition_id is not None
            and event.ranking_id in ranking_ids
            and recorded.sequence not in board.rankings[event.ranking_id].undone
        ):
            struck = board.struck.get(event.competition_id, ())
            if any(line.competitor_id not in struck for line in changed_by(event)):
                yield event.competition_id


def _add_lines(
    tournament_id: TournamentId,
    historian: Historian,
    events: Iterable[Recorded],
    lines: list[tuple[Sequence, Items[AnyLine]]],
) -> Iterator[None]:
    """Adds the lines of each event to `lines`, step by step. Raises LogUnreadable."""
    for recorded in events:
        try:
            lines.append((recorded.sequence, (yield from historian.lines_in_time_slices(recorded))))
        except LookupError as error:
            raise LogUnreadable.unfoldable(tournament_id, recorded.sequence, error) from error
        yield


def _add_touches(
    events: Iterable[Recorded],
    competitor_id: CompetitorId,
    takes_part: Callable[[CompetitionId], bool],
    found: list[Touch],
) -> Iterator[None]:
    """Adds the events that touch a competitor to `found`, step by step."""
    for recorded in events:
        told = touch(recorded, competitor_id, takes_part)
        if told is not None:
            found.append(told)
        yield


def _add_mentions(wanted: Sought, events: Iterable[Mentioning], found: list[Mention]) -> Iterator[None]:
    """Adds the mentions in the events to `found`, step by step."""
    for one in wanted.mentions(events):
        if one is not None:
            found.append(one)
        yield


def _add_steps(
    tournament_id: TournamentId,
    explainer: Explainer,
    events: Iterable[Recorded],
    limit: int | None,
    steps: list[Step],
    seen: list[Recorded],
) -> Iterator[None]:
    """Adds steps to `steps` until they fill a page, and the scanned events to `seen`. Raises LogUnreadable."""
    for recorded in events:
        try:
            step = yield from explainer.step_in_time_slices(recorded)
        except LookupError as error:
            raise LogUnreadable.unfoldable(tournament_id, recorded.sequence, error) from error
        seen.append(recorded)
        if step is not None:
            steps.append(step)
            if _is_full(steps, limit):
                return
        yield


def _add_neighbours(explainer: Explainer, found: list[Neighbours | None]) -> Iterator[None]:
    """Adds what `explainer.neighbours` returns to `found`, step by step."""
    found.append((yield from explainer.neighbours()))


def _dropped(steps: list[Step], limit: int | None) -> Step | None:
    """Drops the first steps that exceed a page, and returns the last one dropped; None: none was."""
    dropped = None
    while len(steps) > 1 and limit is not None and (len(steps) > limit or _overtakings(steps) > OVERTAKINGS_MAX):
        dropped = steps.pop(0)
    return dropped


def _overtakings(steps: list[Step]) -> int:
    return sum([len(step.overtakings) for step in steps])


def _is_full(steps: list[Step], limit: int | None) -> bool:
    """Whether the steps fill a page."""
    if limit is None:
        return False
    return len(steps) == limit or _overtakings(steps) >= OVERTAKINGS_MAX


def _refuse_beyond(head: Sequence, sequence: Sequence) -> None:
    if sequence > head:
        raise NotFound(f"The log of this tournament ends at sequence {head}; ask for one up to that.")


def _version(board: Board, ranking_id: RankingId, unity_id: UnityId) -> int:
    """The version of a unity; 0: it does not exist yet."""
    ranking = board.rankings.get(ranking_id)
    unity = None if ranking is None else ranking.unities.get(unity_id)
    return 0 if unity is None else unity.version


@contextmanager
def _faults() -> Iterator[None]:
    """Translates faults of a log into errors for clients. It raises no alarm: the live and the worker do."""
    try:
        yield
    except LogForked as fork:
        raise HistoryReplaced from fork
    except LogUnreadable as cause:
        raise TournamentStopped from cause
