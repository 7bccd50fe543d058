"""Searches a log: for the last competition, for competitions that took place, for one competitor."""

from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator
from functools import partial
from typing import Final

from msgspec import Struct

from engine.domain.events import Points, Recorded, origin
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId
from engine.log import reading
from engine.log.reading import Mentioning
from engine.process.time_slices import all_of
from projections.board.board import Board, what_counts
from projections.past.mentions import MENTIONS_MAX, Mention, Mentions, Sought, sought
from projections.past.moments import Span
from projections.past.past import Past
from projections.past.touching import Touch, touch
from projections.past.world_clock import WorldClock

SEARCHED_EVENTS_AT_ONCE: Final = 20_000
"""Events that one statement searches for the names of a competitor."""
LOOKED_BACK_EVENTS_MAX: Final = 5_000
"""Events that the search for the last competition scans."""
_LOOKED_BACK_AT_ONCE: Final = 500


class LastCompetition(Struct, frozen=True):
    """The last competition that gave points in a ranking. `first`: the event of the first of these points."""

    competition_id: CompetitionId
    first: Sequence


async def last_competition(
    past: Past, tournament_id: TournamentId, ranking_id: RankingId, upto: Sequence, board: Board
) -> LastCompetition | None:
    """The last competition that gave points in the ranking, which count on `board` or have expired. None: none did up
    to the event `upto`, or in the last LOOKED_BACK_EVENTS_MAX events."""
    gave = _Gave(board, [ranking_id])
    async with past.admitted():
        last = await _last_cause(past, tournament_id, upto, gave)
        if last is None:
            return None
        connected, first = partial(past.database.connection_for, tournament_id), upto
        async for events in reading.all_points_of_competitions(connected, tournament_id, [last], upto):
            first = min([first, *[_place(recorded) for recorded in events if gave.cause(recorded) == last]])
    return LastCompetition(last, first)


async def before_request(past: Past, tournament_id: TournamentId, sequence: Sequence) -> Sequence:
    """The event before the request to which the event `sequence` belongs."""
    async with past.admitted(), past.database.connection_for(tournament_id) as connection:
        return Sequence(await reading.begin_of_request(connection, tournament_id, sequence) - 1)


async def taken_place(
    past: Past,
    tournament_id: TournamentId,
    board: Board,
    upto: Sequence,
    clock: WorldClock | None,
    ranking_ids: Collection[RankingId],
    competition_ids: Iterable[CompetitionId],
) -> set[CompetitionId]:
    """The competitions that gave points in one of these rankings, up to the event `upto`, on the board and by its
    clock."""
    found: set[CompetitionId | None] = set()
    gave = _Gave(board, ranking_ids)
    pending = deque([(one, Sequence(0)) for one in competition_ids])
    async with past.admitted():
        while pending:
            async with past.database.connection_for(tournament_id) as connection:
                events = await reading.points_of_competitions(connection, tournament_id, pending, upto)
            shown = events if clock is None else clock.shown(events)
            found.update(map(gave.cause, shown))
            pending = deque([one for one in pending if one[0] not in found])
    return {one for one in found if one is not None}


async def touches(
    past: Past, live_board: Board, tournament_id: TournamentId, competitor_id: CompetitorId, span: Span
) -> AsyncGenerator[tuple[Sequence, list[Touch]], None]:
    """Yields the events of `span` that touch a competitor, chunk by chunk, each chunk with the sequence reached.
    `live_board` shows at least the events of `span`."""

    def takes_part(competition_id: CompetitionId) -> bool:
        return competitor_id in live_board.competitions[competition_id].participants

    async with past.admitted():
        async for events in past.chunks_read_ahead(tournament_id, Sequence(span.first - 1), span.last):
            found = await all_of(touch(one, competitor_id, takes_part) for one in events)
            yield events[-1].sequence, [one for one in found if one is not None]


async def mentions(past: Past, tournament_id: TournamentId, competitor_id: CompetitorId, head: Sequence) -> Mentions:
    """The places where people wrote a name that the competitor has or had, up to the event `head`. Scans the
    log."""
    listed: list[Mention] = []
    count, after = 0, Sequence(0)
    async with past.admitted():
        async with past.database.connection_for(tournament_id) as connection:
            wanted = sought(await reading.names_of(connection, tournament_id, competitor_id))
        while wanted is not None and after < head:
            last = min(head, Sequence(after + SEARCHED_EVENTS_AT_ONCE))
            async with past.database.connection_for(tournament_id) as connection:
                events = await reading.mentioning(
                    connection, tournament_id, after, last, wanted.in_bodies, wanted.in_texts
                )
            found: list[Mention] = []
            await past.time_slices.work(_add_mentions(wanted, events, found))
            listed += found[: MENTIONS_MAX - len(listed)]
            count += len(found)
            after = events[-1].sequence if events else last
    return Mentions(listed, count - len(listed))


async def _last_cause(past: Past, tournament_id: TournamentId, upto: Sequence, gave: "_Gave") -> CompetitionId | None:
    """The competition of the last points; None: none in the last LOOKED_BACK_EVENTS_MAX events."""
    begin, place, last = Sequence(max(upto - LOOKED_BACK_EVENTS_MAX, 0)), Sequence(0), None
    while upto > begin and place <= upto:  # corrections have places before these events
        after = Sequence(max(upto - _LOOKED_BACK_AT_ONCE, begin))
        async for events in past.chunks(tournament_id, after, upto):
            for recorded in events:
                cause = gave.cause(recorded)
                if cause is not None and (its := _place(recorded)) >= place:
                    place, last = its, cause
        upto = after
    return last


def _place(recorded: Recorded) -> Sequence:
    """That of the points of an event in the order in which they took place."""
    assert isinstance(recorded.event, Points)
    return origin(recorded.sequence, recorded.event)


class _Gave:
    """Tells which events gave points in some rankings that count, or did until they expired, as the board was when this
    object was created."""

    def __init__(self, board: Board, ranking_ids: Iterable[RankingId]) -> None:
        self._rules = {one: what_counts(board, one, None).rule for one in ranking_ids}

    def cause(self, recorded: Recorded) -> CompetitionId | None:
        """The competition for which the event gave points in the rankings; None: it gave none."""
        event = recorded.event
        if isinstance(event, Points) and (rule := self._rules.get(event.ranking_id)) is not None:
            return None if next(rule.of(recorded), None) is None else event.competition_id
        return None


def _add_mentions(wanted: Sought, events: Iterable[Mentioning], found: list[Mention]) -> Iterator[None]:
    """Adds the mentions in the events to `found`, step by step."""
    for one in wanted.mentions(events):
        if one is not None:
            found.append(one)
        yield
