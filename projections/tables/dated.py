"""The points that took place in an interval of time, read from the log."""

from collections.abc import AsyncIterator
from datetime import datetime

from engine.domain.events import Points, Recorded
from engine.domain.lines import declared_date
from engine.domain.terms import Sequence, TournamentId
from engine.log import heads, reading
from engine.log.codec import Topic
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
        yield [one for one in events if _is_undated(board, one) and _since(one) is None]
    if any(ranking.scorings or ranking.replaced for ranking in board.rankings.values()):
        corrections = reading.all_with_topic(connected, tournament_id, Topic.SCORED, first, upto)
        async for events in corrections:  # which took place with what they correct
            yield [
                one
                for one in events
                if _is_undated(board, one) and (since := _since(one)) is not None and after < since <= until
            ]
    async for events in reading.all_points_of_competitions(connected, tournament_id, dated, upto):
        yield events


def _is_undated(board: Board, recorded: Recorded) -> bool:
    event = recorded.event
    return isinstance(event, Points) and declared_date(board, event.competition_id) is None


def _since(recorded: Recorded) -> datetime | None:
    return getattr(recorded.event, "since", None)
