"""Commands about what counts: `void`, `unvoid`, and `what-if`."""

from typing import Annotated

import msgspec
from cyclopts import Parameter

from api.cli import printing
from api.cli.progress import progress
from api.cli.standings_text import print_comparison
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.desk.desk import Desk
from api.interface.lookup import ranking_of, refuse_unknown, unity_named
from api.interface.voiding import ComparedRankingShape, compared
from engine.domain.commands import UnvoidCompetition, VoidCompetition
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId
from engine.log import log
from projections.board.board import Board, fold_all
from projections.live.tournament import LiveTournament
from projections.past.comparison import foreseen, without
from projections.past.history import Filter

DryRun = Annotated[bool, Parameter(negative="", help="Show what would change, and change nothing.")]
IdList = Annotated[list[int] | None, Parameter(negative="")]


async def void(
    slug: Slug, competition_id: int, /, *, dry_run: DryRun = False, json: Json = False, where: Where = HERE
) -> None:
    async with desk_at(where) as desk:
        await _change(desk, slug, VoidCompetition(competition_id=CompetitionId(competition_id)), dry_run, json=json)


async def unvoid(
    slug: Slug, competition_id: int, /, *, dry_run: DryRun = False, json: Json = False, where: Where = HERE
) -> None:
    async with desk_at(where) as desk:
        await _change(desk, slug, UnvoidCompetition(competition_id=CompetitionId(competition_id)), dry_run, json=json)


async def _change(
    desk: Desk, slug: str, command: VoidCompetition | UnvoidCompetition, dry_run: bool, *, json: bool
) -> None:
    async with tournament_at(desk, slug) as live:
        if dry_run:
            decided = await desk.preview(live, command)
            _show(compared(live.board, foreseen(live.board, decided)), json=json)
            return
        receipt = await desk.submit(live, command, actor=OPERATOR)
    if json:
        printing.json({"sequence": receipt.sequence})
    else:
        printing.say(f"recorded as event {receipt.sequence}")


def _show(rankings: list[ComparedRankingShape], *, json: bool) -> None:
    if json:
        printing.json(rankings)
    else:
        print_comparison(rankings)


async def what_if(
    slug: Slug,
    ranking_id: int,
    /,
    *,
    without_competition: IdList = None,
    without_competitor: IdList = None,
    unity: str | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    without_competition
        Id of a competition to leave out, with its points and their reversals; may be given several times.
    without_competitor
        Id of a competitor to leave out, with all their points; may be given several times.
    unity
        Only the unity with this name.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        ranking = RankingId(ranking_id)
        ranking_of(live.board, ranking)
        only = None if unity is None else unity_named(live.board, ranking, unity)
        competitions = {CompetitionId(competition_id) for competition_id in without_competition or ()}
        competitors = {CompetitorId(competitor_id) for competitor_id in without_competitor or ()}
        for competition_id in competitions:
            refuse_unknown(live.board, ranking, Filter(competition_id=competition_id))
        for competitor_id in competitors:
            refuse_unknown(live.board, ranking, Filter(competitor_id=competitor_id))
        other = await _replayed(desk, live, competitions, competitors)
        rankings = compared(live.board, {ranking: other.rankings[ranking]}, only)
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
