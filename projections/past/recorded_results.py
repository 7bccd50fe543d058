"""The results that competitions had, from the first to the last, read from the log."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from engine.domain.events import Recorded, Result, ResultAndWinner
from engine.domain.terms import CompetitionId, CompetitorId, Sender, Sequence, TournamentId
from engine.log import heads, reading
from projections.board.board import Board
from projections.past.past import Past

_TICK = timedelta(microseconds=1)


class RecordedResult(Struct, frozen=True, kw_only=True):
    """A result and a winner that a competition had from the event `sequence` on; null: none."""

    sequence: Sequence
    recorded_at: datetime
    actor: Sender
    result: Result | None
    winner_id: CompetitorId | None


async def recorded_results(
    past: Past,
    tournament_id: TournamentId,
    board: Board,
    competition_ids: Iterable[CompetitionId],
    upto: Sequence,
    *,
    only_corrected: bool = False,
) -> dict[CompetitionId, list[RecordedResult]]:
    """Those of each of these competitions up to an event; `board`: shows that event. `only_corrected`: of those that
    were changed after they were added. Raises LogUnreadable."""
    connected = partial(past.database.connection_for, tournament_id)
    found: dict[CompetitionId, list[RecordedResult]] = {}
    changes = await reading.changes_of_competitions(connected, tournament_id, competition_ids, upto)
    for competition_id, changed in changes.items():
        if only_corrected and not changed:
            continue
        results = [await _added(past, tournament_id, board, competition_id, upto)]
        for one in changed:
            before = results[-1].result, results[-1].winner_id
            if (now := one.event.result_after(before)) != before:
                results.append(_result(one, now))
        found[competition_id] = results
    return found


async def _added(
    past: Past, tournament_id: TournamentId, board: Board, competition_id: CompetitionId, upto: Sequence
) -> RecordedResult:
    """The result with which it was added."""
    created_at = board.competitions[competition_id].created_at
    async with past.database.connection_for(tournament_id) as connection:
        after = await heads.last_at(connection, tournament_id, created_at - _TICK, upto)
    async for events in past.chunks(tournament_id, after, upto):
        for one in events:
            if one.event.made_competition == competition_id:
                return _result(one, one.event.result_after((None, None)))
    raise AssertionError(competition_id)


def _result(recorded: Recorded, now: ResultAndWinner) -> RecordedResult:
    result, winner_id = now
    return RecordedResult(
        sequence=recorded.sequence,
        recorded_at=recorded.recorded_at,
        actor=recorded.actor,
        result=result or None,
        winner_id=winner_id,
    )
