"""Who led from when to when, as commands show it."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from api.cli import printing
from api.cli.arguments import THE_RANKING, option
from api.cli.asking import asking
from api.cli.lines import UNITY_OR_MAIN, PastSequence, PastTime
from api.cli.times import Until
from api.interface.direction import isolated
from engine.domain.terms import CompetitorId
from engine.domain.times import timestamp
from projections.answers.leaders import REIGNS_MAX, ClockName, Leaders, LeadersQuestion
from projections.answers.names import NamesById
from projections.answers.view import View


async def _print(view: View, question: LeadersQuestion, found: Leaders) -> None:
    known = await view.names_after(found.sequence)
    unity = known.unity(question.ranking_id, found.unity_id).name
    title = f"{isolated(known.ranking(question.ranking_id))}: {isolated(unity)}"
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
        printing.table(["since", "until", "first as published", "first by date"], differences)


def _duration(seconds: int) -> str:
    """Days, hours and minutes, as far as there are any."""
    time = timedelta(seconds=seconds)
    hours, minutes = divmod(time.seconds // 60, 60)
    return f"{time.days:,} d {hours} h" if time.days else f"{hours} h {minutes} min"


def _time(moment: datetime | None) -> str:
    return "" if moment is None else timestamp(moment)


def _names(known: NamesById, competitor_ids: Iterable[CompetitorId]) -> str:
    return ", ".join([isolated(known.competitor(one).name) for one in competitor_ids]) or "nobody"


leaders = asking(
    LeadersQuestion,
    THE_RANKING,
    UNITY_OR_MAIN,
    option(
        "clock",
        kind=ClockName,
        default="log",
        about="log: by what had been recorded, as it was published. world: by what had taken place.",
    ),
    option("until", kind=Until, about="Up to this day or time. Without it, up to the last points."),
    option("at_sequence", kind=PastSequence, about="As known after the event with this sequence."),
    option(
        "at_time",
        kind=PastTime,
        about="As known at this time: yyyy-mm-dd HH:ii:ss, in UTC unless an offset follows.",
    ),
    fixed={"limit": REIGNS_MAX},
    prints=_print,
)
