"""The points that took place in an interval of time, read from the log."""

from collections.abc import AsyncIterator
from datetime import datetime

from engine.domain.events import Points, Recorded, origin
from engine.domain.lines import declared_date
from engine.domain.terms import Sequence, TournamentId
from engine.log import heads, reading
from engine.process.time_slices import in_chunks
from projections.board.board import Board
from projections.board.expiring import dated_between
from projections.columns.packed import WALK_CHUNK_ITEMS


async def took_place_between(
    connected: reading.Connected,
    tournament_id: TournamentId,
    board: Board,
    after: datetime,
    until: datetime,
    upto: Sequence,
) -> AsyncIterator[list[Recorded]]:
    """Yields, chunk by chunk, events up to `upto` with all points that took place later than `after` and not later than
    `until`; each once: those of competitions with a date on `board` by that, the others by when they were recorded.
    Raises LogForked and LogUnreadable."""
    walk = in_chunks(board.competitions.walk(), WALK_CHUNK_ITEMS)
    dated = [one async for some in walk for one in dated_between(some, after, until)]
    async with connected() as connection:
        first = await heads.last_at(connection, tournament_id, after, upto)
        last = await heads.last_at(connection, tournament_id, until, upto)
    async for events in reading.chunks(connected, tournament_id, first, last):
        yield [one for one in events if _is_undated(board, one, first)]
    async for events in reading.all_changing(connected, tournament_id, (first, last), upto):
        yield [one for one in events if _is_undated(board, one, first)]
    async for events in reading.all_points_of_competitions(connected, tournament_id, dated, upto):
        yield events


def _is_undated(board: Board, recorded: Recorded, first: Sequence) -> bool:
    """Whether these are points without a declared date that took place after the event `first`."""
    event = recorded.event
    return (
        isinstance(event, Points)
        and declared_date(board, event.competition_id) is None
        and origin(recorded.sequence, event) > first
    )
