"""Who led from when to when, as commands show it."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from api.cli import printing
from api.cli.lines import sequence_of
from api.cli.names import RankingText, UnityText
from api.cli.past import PastSequence, PastTime, Until
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.interface.direction import isolated
from api.interface.names import Names
from api.interface.shapes import shaped
from engine.domain.terms import CompetitorId
from engine.domain.times import timestamp
from projections.answers.leaders import REIGNS_MAX, ClockName, Leaders, LeadersQuestion
from projections.answers.names import NamesById
from projections.answers.view import ask


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
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
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
        found = await ask(view, question)
        if json:
            printing.json(shaped(found))
            return
        known = await view.names_after(found.sequence)
    unity = known.unities(ranking_id)[found.unity_id]
    _print(known, found, f"{isolated(known.ranking(ranking_id))}: {isolated(unity)}")


def _print(known: NamesById, found: Leaders, title: str) -> None:
    reigns = [[timestamp(one.since), _time(one.until), _names(known, one.competitors)] for one in found.reigns]
    printing.table(["since", "until", "first"], reigns, title=title)
    if found.lines > len(found.reigns):
        printing.say(f"{found.lines - len(found.reigns):,} later ones are left out; choose a time with --until.")
    times = [
        [
            known.competitor(one.competitor_id).name,
            _duration(one.seconds),
            one.weeks,
            one.competitions,
            one.runs,
            f"{timestamp(one.longest.since)} to {timestamp(one.longest.until)}",
        ]
        for one in found.times
    ]
    printing.table(["competitor", "time at the top", "weeks", "competitions", "times", "longest"], times)
    if found.differing:
        differences = [
            [timestamp(one.since), _time(one.until), _names(known, one.log), _names(known, one.world)]
            for one in found.differences
        ]
        printing.table(["since", "until", "first as published", "first as it took place"], differences)


def _duration(seconds: int) -> str:
    """Days, hours and minutes, as far as there are any."""
    time = timedelta(seconds=seconds)
    hours, minutes = divmod(time.seconds // 60, 60)
    return f"{time.days:,} d {hours} h" if time.days else f"{hours} h {minutes} min"


def _time(moment: datetime | None) -> str:
    return "" if moment is None else timestamp(moment)


def _names(known: NamesById, competitor_ids: Iterable[CompetitorId]) -> str:
    return ", ".join([isolated(known.competitor(one).name) for one in competitor_ids]) or "nobody"
