"""Commands about what counts: `void`, `unvoid`, `strike`, `unstrike`, `points undo`, and `what-if`."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli import printing
from api.cli.names import CompetitionText, CompetitorTexts, OneUnityText, RankingText
from api.cli.progress import progress
from api.cli.standings_text import print_comparison
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.desk.desk import Desk
from api.interface.names import Names
from api.interface.resources.voiding import ComparedRankingShape, compared, foreseen_comparisons
from engine.domain.commands import (
    Previewed,
    ReversePoints,
    StrikeCompetitors,
    UnstrikeCompetitors,
    UnvoidCompetition,
    VoidCompetition,
)
from engine.domain.events import Recorded
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence
from engine.log import heads, tails
from engine.process.time_slices import in_time_slices
from projections.answers.lookup import ranking_of, refuse_unknown
from projections.board.board import Board, fold_all, give_sums, left_out
from projections.board.classification import Counted, lacks_sums
from projections.board.competition_sums import CompetitionSums, counting
from projections.live.tournament import LiveTournament
from projections.past import folds
from projections.past.comparison import ClassifiedMove, Comparison, classified_move_steps, without
from projections.past.history import Filter
from projections.past.past import Past
from projections.past.world_clock import add_special, drop_special

DryRun = Annotated[bool, Parameter(negative="", help="Show what would change, and change nothing.")]
Texts = Annotated[list[str] | None, Parameter(negative="")]


async def void(
    slug: Slug, competition: CompetitionText, /, *, dry_run: DryRun = False, json: Json = False, where: Where = HERE
) -> None:
    await _change(VoidCompetition, slug, competition, dry_run, json=json, where=where)


async def unvoid(
    slug: Slug, competition: CompetitionText, /, *, dry_run: DryRun = False, json: Json = False, where: Where = HERE
) -> None:
    await _change(UnvoidCompetition, slug, competition, dry_run, json=json, where=where)


async def _change(
    kind: type[VoidCompetition | UnvoidCompetition],
    slug: str,
    competition: str,
    dry_run: bool,
    *,
    json: bool,
    where: Where,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        command = kind(competition_id=Names(live.board).competition(competition))
        await _submit(desk, live, command, dry_run, json=json)


async def strike(
    slug: Slug,
    competition: CompetitionText,
    /,
    *competitors: CompetitorTexts,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    await _change_struck(StrikeCompetitors, slug, competition, competitors, dry_run, json=json, where=where)


async def unstrike(
    slug: Slug,
    competition: CompetitionText,
    /,
    *competitors: CompetitorTexts,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    await _change_struck(UnstrikeCompetitors, slug, competition, competitors, dry_run, json=json, where=where)


async def _change_struck(
    kind: type[StrikeCompetitors | UnstrikeCompetitors],
    slug: str,
    competition: str,
    competitors: tuple[str, ...],
    dry_run: bool,
    *,
    json: bool,
    where: Where,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names = Names(live.board)
        named = tuple(names.competitors(competitors))
        command = kind(competition_id=names.competition(competition), competitors=named)
        await _submit(desk, live, command, dry_run, json=json)


async def undo(
    slug: Slug,
    ranking: RankingText,
    event: Annotated[int, Parameter(help="Number of the event, as history shows it.", validator=Number(gte=1))],
    /,
    *,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        command = ReversePoints(ranking_id=Names(live.board).ranking(ranking), sequence=Sequence(event))
        await _submit(desk, live, command, dry_run, json=json)


async def _submit(desk: Desk, live: LiveTournament, command: Previewed, dry_run: bool, *, json: bool) -> None:
    if dry_run:
        decided = await desk.preview(live, command)
        read = partial(folds.competition_sums, Past(desk.database), live.tournament_id)
        show_comparison(live.board, compared(live.board, await foreseen_comparisons(live, decided, read)), json=json)
        return
    receipt = await desk.submit(live, command, actor=OPERATOR)
    printing.recorded(receipt.sequence, as_json=json)


def show_comparison(board: Board, rankings: list[ComparedRankingShape], *, json: bool) -> None:
    if json:
        printing.json(rankings)
    else:
        print_comparison(board, rankings)


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
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names = Names(live.board)
        ranking_id = names.ranking(ranking)
        ranking_of(live.board, ranking_id)
        only = None if unity is None else names.unity(ranking_id, unity)
        competitions = {names.competition(text) for text in without_competition or ()}
        competitors = {names.competitor(text) for text in without_competitor or ()}
        for competition_id in competitions:
            refuse_unknown(live.board, ranking_id, Filter(competition_id=competition_id))
        for competitor_id in competitors:
            refuse_unknown(live.board, ranking_id, Filter(competitor_id=competitor_id))
        other, sums = await _replayed(desk, live, ranking_id, competitions, competitors)
        if lacks_sums(live.board.rankings[ranking_id]):
            past, head, without = (
                Past(desk.database),
                live.head.sequence,
                left_out(live.board, ranking_id, live.expired_by),
            )
            read = await folds.competition_sums(past, live.tournament_id, ranking_id, head, without)
            give_sums(live.board, ranking_id, read)
            give_sums(other, ranking_id, sums)
        before, after = live.board.rankings[ranking_id], other.rankings[ranking_id]
        classified_moves: list[ClassifiedMove] | None = None
        if before.criteria and only is None:
            counts = Counted(live.board, before), Counted(other, after)
            classified_moves = await in_time_slices(classified_move_steps(before, after, *counts))
        rankings = compared(live.board, {ranking_id: Comparison(before, after, classified_moves)}, only)
    show_comparison(live.board, rankings, json=json)


async def _replayed(
    desk: Desk,
    live: LiveTournament,
    ranking_id: RankingId,
    competitions: set[CompetitionId],
    competitors: set[CompetitorId],
) -> tuple[Board, CompetitionSums]:
    """The board of the log up to the live's head, and the ranking's sums of competitions, without these. Raises
    LogForked and LogUnreadable."""
    board, sums = Board(), CompetitionSums()
    live_without = left_out(live.board, ranking_id, live.expired_by)
    with progress("replaying", total=live.head.sequence) as advance:
        async for left, upto in _left(desk, live, competitions, competitors):
            fold_all(live.tournament_id, board, left)
            await in_time_slices(counting(sums, ranking_id, left, live_without))
            advance(upto)
    if board.rankings[ranking_id].special:  # of which reversals and expiries have other lines if something is left out
        drop_special(board, ranking_id)
        now = live.expired_by or datetime.max.replace(tzinfo=UTC)
        async for left, _ in _left(desk, live, competitions, competitors):
            await in_time_slices(add_special(board, ranking_id, left, now))
    return board, sums


async def _left(
    desk: Desk, live: LiveTournament, competitions: set[CompetitionId], competitors: set[CompetitorId]
) -> AsyncIterator[tuple[list[Recorded], Sequence]]:
    """The events of the log up to the live's head without these, chunk by chunk, each with the sequence it reaches."""
    head = heads.beginning(live.tournament_id)
    while head.sequence < live.head.sequence:
        async with desk.database.connection() as connection:
            tail = await tails.tail(connection, live.tournament_id, head)
        head = tail.head
        yield (
            [
                msgspec.structs.replace(recorded, event=event)
                for recorded in tail.events
                if recorded.sequence <= live.head.sequence
                and (event := without(recorded.event, competitions, competitors)) is not None
            ],
            head.sequence,
        )
