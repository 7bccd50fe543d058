"""Commands about what counts: `void`, `unvoid`, and `what-if`."""

from typing import Annotated

import msgspec
from cyclopts import Parameter

from api.cli import printing
from api.cli.names import CompetitionText, Names, OneUnityText, RankingText
from api.cli.progress import progress
from api.cli.standings_text import print_comparison
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.desk.desk import Desk
from api.interface.lookup import ranking_of, refuse_unknown
from api.interface.voiding import ComparedRankingShape, compared
from engine.domain.commands import UnvoidCompetition, VoidCompetition
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId
from engine.log import log
from projections.board.board import Board, fold_all
from projections.live.tournament import LiveTournament
from projections.past.comparison import foreseen, without
from projections.past.history import Filter

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
        if dry_run:
            decided = await desk.preview(live, command)
            _show(compared(live.board, foreseen(live.board, decided)), json=json)
            return
        receipt = await desk.submit(live, command, actor=OPERATOR)
    printing.recorded(receipt.sequence, as_json=json)


def _show(rankings: list[ComparedRankingShape], *, json: bool) -> None:
    if json:
        printing.json(rankings)
    else:
        print_comparison(rankings)


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
        other = await _replayed(desk, live, competitions, competitors)
        rankings = compared(live.board, {ranking_id: other.rankings[ranking_id]}, only)
    _show(rankings, json=json)


async def _replayed(
    desk: Desk, live: LiveTournament, competitions: set[CompetitionId], competitors: set[CompetitorId]
) -> Board:
    """The board of the log up to the live's head, without these. Raises LogForked and LogUnreadable."""
    board, head = Board(), log.beginning(live.tournament_id)
    with progress("replaying", total=live.head.sequence) as advance:
        while head.sequence < live.head.sequence:
            async with desk.database.connection() as connection:
                tail = await log.tail(connection, live.tournament_id, head)
            left = [
                msgspec.structs.replace(recorded, event=event)
                for recorded in tail.events
                if recorded.sequence <= live.head.sequence
                and (event := without(recorded.event, competitions, competitors)) is not None
            ]
            fold_all(live.tournament_id, board, left)
            head = tail.head
            advance(head.sequence)
    return board
