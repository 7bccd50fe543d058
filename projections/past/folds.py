"""Folds a log into what one answer is about: sums by competition, a passage, a timeline, a series, losses, leaders."""

from collections.abc import Sequence as Items
from datetime import datetime
from functools import partial
from typing import Final

from engine.domain.errors import TooMuchWork
from engine.domain.events import Points
from engine.domain.terms import CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import heads, reading
from engine.process.time_slices import in_chunks, in_time_slices
from projections.board.board import Board, folding, what_counts
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.board.expiring import dated_between
from projections.columns.packed import WALK_CHUNK_ITEMS
from projections.past import moments
from projections.past.leaders import PublishedLeaders, TrueLeaders
from projections.past.losses import Losses
from projections.past.moments import DATED_LINES_MAX
from projections.past.passage import PASSAGE_EVENTS_MAX, Passage, cut, passage, passage_begin
from projections.past.past import Past, refuse_beyond
from projections.past.series import Series, SeriesPoint
from projections.past.timeline import Timeline, TimelineStep, folded_steps
from projections.past.world_clock import WorldClock, drop_totals

TIMELINE_EVENTS_MAX: Final = 20_000
TIMELINE_DELTAS_MAX: Final = 50_000
"""Events of a log, and deltas of a ranking in it, that may be put in order of time."""
LEADERS_EVENTS_MAX: Final = 1_000_000
"""Events of a log, and lines of points of a unity in it, that may be read for its leaders."""


async def competition_sums(
    past: Past, tournament_id: TournamentId, sequence: Sequence, counts: WhatCounts
) -> CompetitionSums:
    """The sums of a ranking that the lines up to this event make which count. Reads the log up to the event."""
    sums = CompetitionSums(counts.first)
    async with past.admitted():
        async for events in past.chunks_read_ahead(tournament_id, Sequence(0), sequence):
            await past.time_slices.each(lambda one: sums.take(one, counts), events)
    return sums


async def sums_then(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    board: Board,
    sequence: Sequence,
    clock: WorldClock | None = None,
) -> CompetitionSums:
    """As `folded_sums_then`, for a request that is not admitted yet."""
    async with past.admitted():
        return await folded_sums_then(past, tournament_id, ranking_id, board, sequence, clock)


async def folded_sums_then(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    board: Board,
    sequence: Sequence,
    clock: WorldClock | None = None,
) -> CompetitionSums:
    """The sums that competitors of a ranking got in each competition up to this event, by `clock`; `board`: the board
    after it. Reads the log up to the event. If points expire with the request that the event belongs to, but after the
    event, only what had expired before the request is left out."""
    settled, now = sequence, None if clock is None else clock.on
    if now is None and board.rankings[ranking_id].expires:
        async with past.database.connection_for(tournament_id) as connection:
            begin = await reading.expiring_request(connection, tournament_id, sequence, ranking_id)
            settled = sequence if begin is None else Sequence(begin - 1)
            now = await reading.last_judged_at(connection, tournament_id, settled)
        if settled < sequence:
            board = await past.board_at(tournament_id, settled)
    counts = what_counts(board, ranking_id, now)
    sums = CompetitionSums(counts.first)
    async for events in past.chunks_read_ahead(tournament_id, Sequence(0), settled):
        counted = events if clock is None else clock.shown(events)
        await past.time_slices.each(lambda one: sums.take(one, counts), counted)
    async for events in past.chunks_read_ahead(tournament_id, settled, sequence):
        points = [
            (one.sequence, one.recorded_at, one.event)
            for one in events
            if isinstance(one.event, Points) and one.event.ranking_id == ranking_id
        ]
        await past.time_slices.each(lambda one: sums.count(*one), points)
    return sums


async def passage_at(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, at: Sequence, head: Sequence
) -> Passage:
    """The passage of a ranking's history that shows the event `at`. Raises NotFound if the event is beyond
    `head`."""
    refuse_beyond(head, at)
    after = passage_begin(at)
    async with past.admitted():
        board = await past.board_at(tournament_id, after)
        upto = Sequence(min(after + PASSAGE_EVENTS_MAX, head))
        run = [e async for events in past.chunks(tournament_id, after, upto) for e in events]
        earlier, its = cut(run, ranking_id, at)
        await past.time_slices.work(folding(tournament_id, board, earlier))
        return passage(board, earlier[-1].sequence if earlier else after, its, ranking_id)


async def timeline(
    past: Past,
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
    async with past.admitted():
        async for events in past.chunks_read_ahead(tournament_id, Sequence(0), upto):
            await past.time_slices.each(timeline.follow, events)
            if timeline.deltas > TIMELINE_DELTAS_MAX:
                raise TooMuchWork("deltas", TIMELINE_DELTAS_MAX)
        return await in_time_slices(timeline.steps())


async def series(
    past: Past,
    tournament_id: TournamentId,
    ranking_id: RankingId,
    unity_id: UnityId,
    head: Sequence,
    only: Items[CompetitorId],
) -> list[SeriesPoint]:
    """The series of a unity by the log's clock, for these competitors. Reads the log from the beginning."""
    board, series = Board(), Series(ranking_id, unity_id, only)
    async with past.admitted():
        async for events in past.chunks_read_ahead(tournament_id, Sequence(0), head):
            folded = folding(tournament_id, board, events)
            await past.time_slices.each(lambda one: series.follow(board, one), folded)
    return series.points


async def series_by_date(
    past: Past,
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
    board = (await moments.at(past, tournament_id, ranking_id, None, head)).board
    try:
        steps = await timeline(past, tournament_id, board, ranking_id, head)
    except TooMuchWork:
        return None
    if not any(step.is_dated for step in steps):
        return None
    drop_totals(board, ranking_id, board.rankings[ranking_id].unities)
    series = Series(ranking_id, unity_id, only)
    folded = folded_steps(board, ranking_id, steps)
    await past.time_slices.each(lambda one: series.follow(board, one), folded)
    return series.points


async def follow_losses(
    past: Past,
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
    walk = in_chunks(board.competitions.walk(), WALK_CHUNK_ITEMS)
    by_date = [one async for some in walk for one in dated_between(some, after, until)]
    async with past.admitted():
        async with past.database.connection_for(tournament_id) as connection:
            first = await heads.last_at(connection, tournament_id, after, upto)
            last = await heads.last_at(connection, tournament_id, until, upto)
        if last - first > events_max:
            raise TooMuchWork("events", events_max)
        async for events in past.chunks_read_ahead(tournament_id, first, last):
            await past.time_slices.each(lambda one: losses.follow(one, dated=False), events)
        count, connected = 0, partial(past.database.connection_for, tournament_id)
        async for events in reading.all_changing(connected, tournament_id, (first, last), upto):
            await past.time_slices.each(lambda one: losses.follow(one, dated=False), events)
        async for events in reading.all_points_of_competitions(connected, tournament_id, by_date, upto):
            count += len(events)
            if count > events_max:
                raise TooMuchWork("events", events_max)
            await past.time_slices.each(lambda one: losses.follow(one, dated=True), events)


async def leaders(
    past: Past, tournament_id: TournamentId, sequence: Sequence, published: PublishedLeaders, true: TrueLeaders
) -> None:
    """Has both follow the log up to the event `sequence`. Raises TooMuchWork."""
    if sequence > LEADERS_EVENTS_MAX:
        raise TooMuchWork("events", LEADERS_EVENTS_MAX)
    async with past.admitted():
        async for events in past.chunks_read_ahead(tournament_id, Sequence(0), sequence):
            await past.time_slices.work(published.follow(events))
            await past.time_slices.each(true.follow, events)
            if true.lines > LEADERS_EVENTS_MAX:
                raise TooMuchWork("lines of points", LEADERS_EVENTS_MAX)
        await past.time_slices.work(published.finish())
        await past.time_slices.work(true.finish())
