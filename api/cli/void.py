"""Commands about what counts: `void`, `unvoid`, `strike`, `unstrike`, `points undo`, and `what-if`."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli.names import OneUnityText, RankingText
from api.cli.previews import show_comparison
from api.cli.progress import progress
from api.cli.verbs import THE_COMPETITION, THE_COMPETITORS, THE_RANKING, positional, verb
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.desk.desk import Desk
from api.interface.names import Names
from engine.domain.commands import (
    ReversePoints,
    StrikeCompetitors,
    UnstrikeCompetitors,
    UnvoidCompetition,
    VoidCompetition,
)
from engine.domain.events import Recorded
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence
from engine.log import heads, tails
from engine.process.time_slices import in_time_slices
from projections.answers.foreseen import compared
from projections.answers.lookup import ranking_of, refuse_unknown
from projections.answers.view import View
from projections.board.board import Board, fold_all, give_sums, left_out
from projections.board.classification import Counted, lacks_sums
from projections.board.competition_sums import CompetitionSums, counting
from projections.past import folds
from projections.past.comparison import ClassifiedMove, Comparison, classified_move_steps, without
from projections.past.history import Filter
from projections.past.past import Past
from projections.past.world_clock import add_special, drop_special

Texts = Annotated[list[str] | None, Parameter(negative="")]
_EventNumber = Annotated[int, Parameter(help="Number of the event, as history shows it.", validator=Number(gte=1))]

void = verb(VoidCompetition, THE_COMPETITION)
unvoid = verb(UnvoidCompetition, THE_COMPETITION)
strike = verb(StrikeCompetitors, THE_COMPETITION, THE_COMPETITORS)
unstrike = verb(UnstrikeCompetitors, THE_COMPETITION, THE_COMPETITORS)
undo = verb(ReversePoints, THE_RANKING, positional("event", _EventNumber, "sequence"))


async def what_if(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    without_competition: Texts = None,
    without_competitor: Texts = None,
    unity: OneUnityText = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    without_competition
        Id or name of a competition to leave out, with its points and their reversals; may be given several times.
    without_competitor
        Id or name of a competitor to leave out, with all their points; may be given several times.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        ranking_id = names.ranking(ranking)
        ranking_of(view.live.board, ranking_id)
        only = None if unity is None else names.unity(ranking_id, unity)
        competitions = {names.competition(text) for text in without_competition or ()}
        competitors = {names.competitor(text) for text in without_competitor or ()}
        for competition_id in competitions:
            refuse_unknown(view.live.board, ranking_id, Filter(competition_id=competition_id))
        for competitor_id in competitors:
            refuse_unknown(view.live.board, ranking_id, Filter(competitor_id=competitor_id))
        other, sums = await _replayed(desk, view, ranking_id, competitions, competitors)
        if lacks_sums(view.live.board.rankings[ranking_id]):
            past, head, without = (
                Past(desk.database),
                view.live.head.sequence,
                left_out(view.live.board, ranking_id, view.live.expired_by),
            )
            read = await folds.competition_sums(past, view.live.tournament_id, ranking_id, head, without)
            give_sums(view.live.board, ranking_id, read)
            give_sums(other, ranking_id, sums)
        before, after = view.live.board.rankings[ranking_id], other.rankings[ranking_id]
        classified_moves: list[ClassifiedMove] | None = None
        if before.criteria and only is None:
            counts = Counted(view.live.board, before), Counted(other, after)
            classified_moves = await in_time_slices(classified_move_steps(before, after, *counts))
        rankings = compared(view.live.board, {ranking_id: Comparison(before, after, classified_moves)}, only)
    show_comparison(view, rankings, json=json)


async def _replayed(
    desk: Desk,
    view: View,
    ranking_id: RankingId,
    competitions: set[CompetitionId],
    competitors: set[CompetitorId],
) -> tuple[Board, CompetitionSums]:
    """The board of the log up to the live's head, and the ranking's sums of competitions, without these. Raises
    LogForked and LogUnreadable."""
    board, sums = Board(), CompetitionSums()
    live_without = left_out(view.live.board, ranking_id, view.live.expired_by)
    with progress("replaying", total=view.live.head.sequence) as advance:
        async for left, upto in _left(desk, view, competitions, competitors):
            fold_all(view.live.tournament_id, board, left)
            await in_time_slices(counting(sums, ranking_id, left, live_without))
            advance(upto)
    if board.rankings[ranking_id].special:  # of which reversals and expiries have other lines if something is left out
        drop_special(board, ranking_id)
        now = view.live.expired_by or datetime.max.replace(tzinfo=UTC)
        async for left, _ in _left(desk, view, competitions, competitors):
            await in_time_slices(add_special(board, ranking_id, left, now))
    return board, sums


async def _left(
    desk: Desk, view: View, competitions: set[CompetitionId], competitors: set[CompetitorId]
) -> AsyncIterator[tuple[list[Recorded], Sequence]]:
    """The events of the log up to the live's head without these, chunk by chunk, each with the sequence it reaches."""
    head = heads.beginning(view.live.tournament_id)
    while head.sequence < view.live.head.sequence:
        async with desk.database.connection() as connection:
            tail = await tails.tail(connection, view.live.tournament_id, head)
        head = tail.head
        yield (
            [
                msgspec.structs.replace(recorded, event=event)
                for recorded in tail.events
                if recorded.sequence <= view.live.head.sequence
                and (event := without(recorded.event, competitions, competitors)) is not None
            ],
            head.sequence,
        )
