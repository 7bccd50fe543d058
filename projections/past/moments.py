"""Boards of the past: after an event, at a time, or at a version of a unity, on both clocks."""

from base64 import b64decode
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from datetime import datetime, timedelta
from functools import partial
from itertools import starmap
from typing import Final, assert_never

from msgspec import Struct

from engine.domain.errors import HistoryReplaced, NotFound, TooMuchWork
from engine.domain.events import Points, Recorded
from engine.domain.lines import rule_of
from engine.domain.terms import FIRST_TIME, CompetitionId, RankingId, Sequence, TournamentId, UnityId
from engine.log import heads, reading
from engine.log.heads import Head
from engine.process.time_slices import in_chunks
from projections.board.board import Board, folding
from projections.board.results import Last
from projections.columns.packed import WALK_CHUNK_ITEMS
from projections.past.past import Past, faults, refuse_beyond
from projections.past.world_clock import WorldClock, add_deltas, add_special, drop_totals
from projections.tables import snapshots

DATED_LINES_MAX: Final = 1_000_000
"""Lines of points by which the two clocks may differ in one answer."""

_MICROSECOND: Final = timedelta(microseconds=1)


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


async def at(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    moment: Moment | None,
    head: Sequence,
    on: datetime | None = None,
) -> PastBoard:
    """The board at `moment`; None: at `head`. With `on`, the ranking has only the points that had taken place by
    that time. Raises NotFound if the log up to `head` does not contain the moment, or if the ranking did not exist
    at it; and TooMuchWork."""
    async with past.admitted():
        match moment:
            case None:
                past_board = await _at_sequence(past, tournament_id, head, head)
            case AtSequence():
                past_board = await _at_sequence(past, tournament_id, moment.sequence, head)
            case AtTime():
                async with past.database.connection_for(tournament_id) as connection:
                    last = await heads.last_at(connection, tournament_id, moment.moment, head)
                if last == 0:
                    raise NotFound("At that time this tournament did not exist yet; ask for a later time.")
                past_board = await _at_sequence(past, tournament_id, last, head)
            case AtVersion():
                past_board = await _at_version(past, tournament_id, ranking_id, moment, head)
            case _:
                assert_never(moment)
        if ranking_id not in past_board.board.rankings:
            raise NotFound(f"At sequence {past_board.sequence} this tournament had no ranking {ranking_id} yet.")
        return past_board if on is None else await _on(past, tournament_id, ranking_id, past_board, on)


async def refuse_replaced(past: Past, tournament_id: TournamentId, head: Head) -> None:
    """Raises HistoryReplaced unless the log still has a block that ends in `head`. If it has, all chunks that were
    read since `head` was current show one history."""
    async with past.database.connection_for(tournament_id) as connection:
        if not await heads.has(connection, tournament_id, head):
            raise HistoryReplaced


async def recorded_at(past: Past, tournament_id: TournamentId, sequence: Sequence) -> datetime:
    """When an existing event was recorded."""
    with faults():
        async with past.database.connection_for(tournament_id) as connection:
            return (await reading.event_at(connection, tournament_id, sequence)).recorded_at


async def name(past: Past, tournament_id: TournamentId, sequence: Sequence) -> str:
    """The name of a tournament after this event."""
    with faults():
        async with past.database.connection_for(tournament_id) as connection:
            return await reading.name_at(connection, tournament_id, sequence)


async def logo(past: Past, tournament_id: TournamentId, sequence: Sequence) -> bytes:
    """The PNG that the event of this sequence gave as a logo."""
    with faults():
        async with past.database.connection_for(tournament_id) as connection:
            event = (await reading.event_at(connection, tournament_id, sequence)).event
    encoded = getattr(event, "logo", None)
    assert isinstance(encoded, str)
    return b64decode(encoded)


async def span(past: Past, tournament_id: TournamentId, head: Sequence, bounds: Range) -> Span:
    """The events up to `head` that lie within `bounds`."""
    first, last = bounds.first or Sequence(1), min(bounds.last or head, head)
    with faults():
        async with past.database.connection_for(tournament_id) as connection:
            if bounds.since is not None and bounds.since > FIRST_TIME:
                earlier = await heads.last_at(connection, tournament_id, bounds.since - _MICROSECOND, head)
                first = max(first, Sequence(earlier + 1))
            if bounds.until is not None:
                last = min(last, await heads.last_at(connection, tournament_id, bounds.until, head))
    return Span(first, last)


async def board_after(past: Past, tournament_id: TournamentId, sequence: Sequence, head: Sequence) -> Board:
    """The board after this event. Raises NotFound if the event is beyond `head`."""
    refuse_beyond(head, sequence)
    async with past.admitted():
        return await past.board_at(tournament_id, sequence)


async def _on(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, then: PastBoard, on: datetime
) -> PastBoard:
    """The same board, with only the points that had taken place by `on`. Takes ownership of the board. Raises
    TooMuchWork."""
    board, upto = then.board, then.sequence
    async with past.database.connection_for(tournament_id) as connection:
        last = await heads.last_at(connection, tournament_id, on, upto)
    clock = WorldClock(board, on, last)
    if last < upto:
        earlier = await past.board_at(tournament_id, last)
        drop_totals(board, ranking_id, board.rankings[ranking_id].unities)
        if (ranking := earlier.rankings.get(ranking_id)) is not None:
            for unity_id, unity in ranking.unities.items():
                totals = board.rankings[ranking_id].unities[unity_id].totals
                await past.time_slices.work(starmap(totals.add, unity.totals.items()))
    lines = 0
    async with aclosing(_differing(past, tournament_id, clock, upto)) as chunks:
        async for sign, events in chunks:
            lines += sum([len(one.event.deltas) for one in events if isinstance(one.event, Points)])
            if lines > DATED_LINES_MAX:
                raise TooMuchWork("lines of points", DATED_LINES_MAX)
            await past.time_slices.each(partial(add_deltas, board, ranking_id, sign), events)
    if board.rankings[ranking_id].special:
        await _add_special(past, tournament_id, ranking_id, clock, upto)
    return PastBoard(board, upto, then.recorded_at, clock)


async def _add_special(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, clock: WorldClock, upto: Sequence
) -> None:
    """Replaces the totals of unities that count results, or whose points expire, by those of the clock. Reads the
    log. Raises TooMuchWork."""
    if upto > DATED_LINES_MAX:
        raise TooMuchWork("events", DATED_LINES_MAX)
    drop_totals(clock.board, ranking_id, clock.board.rankings[ranking_id].special)
    ranking, rule, last = clock.board.rankings[ranking_id], rule_of(clock.board, ranking_id), Last()
    async for events in past.chunks_read_ahead(tournament_id, Sequence(0), upto):
        await past.time_slices.each(lambda one: add_special(ranking, rule, last, one, clock.on, clock), events)


async def _differing(
    past: Past, tournament_id: TournamentId, clock: WorldClock, upto: Sequence
) -> AsyncGenerator[tuple[int, list[Recorded]], None]:
    """The points up to the event `upto` on which the clocks differ, chunk by chunk: with 1, those that the world's
    clock shows although they were recorded later; with -1, those that it does not show although they were recorded
    by then."""
    by_then, later = list[CompetitionId](), list[CompetitionId]()
    async for some in in_chunks(clock.board.competitions.walk(), WALK_CHUNK_ITEMS):
        for competition_id, one in some:
            if one.date is not None:
                (by_then if one.date <= clock.on else later).append(competition_id)
    first, connected = Sequence(0), partial(past.database.connection_for, tournament_id)
    for sign, competition_ids, after, last in ((-1, later, first, clock.last), (1, by_then, clock.last, upto)):
        ids = competition_ids if after < last else []
        async for events in reading.all_points_of_competitions(connected, tournament_id, ids, last, after):
            yield sign, events
    async for events in reading.all_changing(connected, tournament_id, (first, clock.last), upto):
        yield 1, clock.undated(events)


async def _at_sequence(past: Past, tournament_id: TournamentId, sequence: Sequence, head: Sequence) -> PastBoard:
    refuse_beyond(head, sequence)
    board = await past.board_at(tournament_id, sequence)
    return PastBoard(board, sequence, await recorded_at(past, tournament_id, sequence))


async def _at_version(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, wanted: AtVersion, head: Sequence
) -> PastBoard:
    board, after = await _before_version(past, tournament_id, ranking_id, wanted, head)
    async for events in past.chunks(tournament_id, after, head):
        folded: list[Recorded] = []
        until = _until_version(folding(tournament_id, board, events), board, ranking_id, wanted)
        await past.time_slices.each(folded.append, until)
        if _version(board, ranking_id, wanted.unity_id) >= wanted.version:
            return PastBoard(board, folded[-1].sequence, folded[-1].recorded_at)
    reached = _version(board, ranking_id, wanted.unity_id)
    raise NotFound(f"Unity {wanted.unity_id} has reached version {reached}; ask for one from 1 to {reached}.")


async def _before_version(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, wanted: AtVersion, head: Sequence
) -> tuple[Board, Sequence]:
    """The board and sequence of the last snapshot in which the unity had not yet reached the version, or of the
    beginning. Versions never fall, so a binary search finds it."""
    async with past.database.connection_for(tournament_id) as connection:
        kept = [sequence for sequence in await snapshots.sequences(connection, tournament_id) if sequence <= head]
    board, at = Board(), Sequence(0)
    low, high = 0, len(kept)
    while low < high:
        middle = (low + high) // 2
        earlier, sequence = await past.nearest(tournament_id, kept[middle])
        if _version(earlier, ranking_id, wanted.unity_id) < wanted.version:
            board, at, low = earlier, sequence, middle + 1
        else:
            high = middle
    return board, at


def _until_version(
    folded: Iterable[Recorded], board: Board, ranking_id: RankingId, wanted: AtVersion
) -> Iterator[Recorded]:
    """The events that the board folds, up to the one that brings the unity to the version."""
    for recorded in folded:
        yield recorded
        if _version(board, ranking_id, wanted.unity_id) >= wanted.version:
            return


def _version(board: Board, ranking_id: RankingId, unity_id: UnityId) -> int:
    """The version of a unity; 0: it does not exist yet."""
    ranking = board.rankings.get(ranking_id)
    unity = None if ranking is None else ranking.unities.get(unity_id)
    return 0 if unity is None else unity.version
