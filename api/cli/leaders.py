"""Who led from when to when, as commands show it."""

from collections.abc import Iterable
from datetime import timedelta

from api.cli import printing
from api.cli.lines import board_after, sequence_of, told
from api.cli.names import RankingText, UnityText
from api.cli.past import PastSequence, PastTime, Until
from api.cli.times import plain
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.direction import isolated
from api.interface.names import Names
from api.interface.resources.leaders import REIGNS_MAX, ClockName, LeadersQuestion, LeadersShape, answer_leaders
from engine.domain.terms import CompetitorId, UnityId
from projections.board.board import Board


async def leaders(
    slug: Slug,
    ranking: RankingText,
    /,
    *,
    unity: UnityText = None,
    clock: ClockName = "log",
    until: Until = None,
    at_sequence: PastSequence = None,
    at_time: PastTime = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    clock
        log: by what had been recorded, as it was published. world: by what had taken place.
    until
        Up to this day or time. Without it, up to the last points.
    at_sequence
        As known after the event with this sequence.
    at_time
        As known at this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        names = Names(live.board)
        ranking_id = names.ranking(ranking)
        question = LeadersQuestion(
            ranking_id=ranking_id,
            unity_id=names.unity_or_main(ranking_id, unity),
            clock=clock,
            until=until,
            at_sequence=sequence_of(at_sequence),
            at_time=at_time,
            limit=REIGNS_MAX,
        )
        shown = await told(desk, live, answer_leaders, question, LeadersShape)
        board = live.board if json else await board_after(desk, live, shown.sequence)
    if json:
        printing.json(shown)
        return
    _print(board, shown, f"{isolated(board.rankings[ranking_id].name)}: {_unity(board, question)}")


def _unity(board: Board, question: LeadersQuestion) -> str:
    return isolated(board.rankings[question.ranking_id].unities[question.unity_id or UnityId(0)].name)


def _print(board: Board, shown: LeadersShape, title: str) -> None:
    reigns = [[plain(one.since), _time(one.until), _names(board, one.competitors)] for one in shown.reigns]
    printing.table(["since", "until", "first"], reigns, title=title)
    if shown.lines > len(shown.reigns):
        printing.say(f"{shown.lines - len(shown.reigns):,} later ones are left out; choose a time with --until.")
    times = [
        [
            _name(board, one.competitor_id),
            _duration(one.seconds),
            one.weeks,
            one.competitions,
            one.runs,
            f"{plain(one.longest.since)} to {plain(one.longest.until)}",
        ]
        for one in shown.competitors
    ]
    printing.table(["competitor", "time at the top", "weeks", "competitions", "times", "longest"], times)
    if shown.differing:
        differences = [
            [plain(one.since), _time(one.until), _names(board, one.log), _names(board, one.world)]
            for one in shown.differences
        ]
        printing.table(["since", "until", "first as published", "first as it took place"], differences)


def _duration(seconds: int) -> str:
    """Days, hours and minutes, as far as there are any."""
    time = timedelta(seconds=seconds)
    hours, minutes = divmod(time.seconds // 60, 60)
    return f"{time.days:,} d {hours} h" if time.days else f"{hours} h {minutes} min"


def _time(answered: str | None) -> str:
    return "" if answered is None else plain(answered)


def _names(board: Board, competitor_ids: Iterable[int]) -> str:
    return ", ".join([isolated(_name(board, one)) for one in competitor_ids]) or "nobody"


def _name(board: Board, competitor_id: int) -> str:
    return board.competitors[CompetitorId(competitor_id)].name
