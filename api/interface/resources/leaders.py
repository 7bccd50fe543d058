"""The leaders of a unity and their reigns, by the log's clock and by the world's."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from api.http.times import instant, instant_or_none
from api.http.zones import zone_of
from api.interface.declarations import Operation, Recall, RecallContext
from api.interface.fields import FROM_0, FROM_1, ID, TIME_END, Field, number_up_to, one_of
from api.interface.lookup import unity_of
from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from engine.domain.errors import Fault, Unreadable
from engine.domain.terms import CompetitorId, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.past import folds, moments
from projections.past.leaders import ClockDifference, Reign, TimeAtTop, differences, times_at_top
from projections.past.moments import AtSequence, AtTime, Moment

REIGNS_DEFAULT: Final = 100
REIGNS_MAX: Final = 1_000
"""Reigns of one page."""
TOLD_MAX: Final = 100
"""Competitors whose time at the top is listed, and spans in which the clocks differ."""

ClockName = Literal["log", "world"]


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class ReignShape(Struct):
    """These competitors shared the first place from `since` until just before `until`; null: to the end. No
    competitors: nobody led."""

    since: Instant
    until: Instant | None
    competitors: list[int]


class RunShape(Struct):
    since: Instant
    until: Instant


class TimeAtTopShape(Struct, kw_only=True):
    """A competitor's time at the top, `shared_seconds` of it with others. `days`, `weeks`: the number of days, and of
    Sundays, at whose end they led, in the tournament's zone. `competitions`: the number of competitions after which
    they led. `runs`: how often they reached the top."""

    competitor_id: int
    seconds: int
    shared_seconds: int
    days: int
    weeks: int
    competitions: int
    runs: int
    longest: RunShape


class ClockDifferenceShape(Struct):
    """The leaders by each clock, while they differ."""

    since: Instant
    until: Instant | None
    log: list[int]
    world: list[int]


class LeadersShape(Struct, kw_only=True):
    """The leaders by the requested clock, up to the time `until`; null: there are no points. `lines`: the total number
    of reigns. `competitors`: those that led longest, of `led`. `differences`: the last ones, of `differing`."""

    unity_id: int
    clock: str
    sequence: int
    recorded_at: Instant
    until: Instant | None
    lines: int
    reigns: list[ReignShape]
    led: int
    competitors: list[TimeAtTopShape]
    differing: int
    differences: list[ClockDifferenceShape]


# ── Answering ───────────────────────────────────────────────────────────────────────────────────────────


class LeadersQuestion(Struct, frozen=True, kw_only=True):
    """A page of the reigns as known now or at a moment. `until`: only reigns up to this time, at which the last one
    ends; None: up to the last points. Raises Unreadable if it names two moments."""

    ranking_id: RankingId
    unity_id: UnityId | None = None
    clock: ClockName = "log"
    at_sequence: Sequence | None = None
    at_time: datetime | None = None
    until: datetime | None = None
    offset: int = 0
    limit: int = REIGNS_DEFAULT

    def __post_init__(self) -> None:
        if self.at_sequence is not None and self.at_time is not None:
            faults = [Fault(name, "is one moment too many") for name in ("at_sequence", "at_time")]
            raise Unreadable("The query names more than one moment; send at_sequence or at_time.", faults)

    @property
    def moment(self) -> Moment | None:
        """None: now."""
        if self.at_sequence is not None:
            return AtSequence(self.at_sequence)
        return None if self.at_time is None else AtTime(self.at_time)


async def answer_leaders(context: RecallContext, answer: Answer, question: LeadersQuestion) -> TaggedBody:
    """Raises as `leaders_of`."""
    return tagged_body(answer.body(encode(await leaders_of(context, question))))


async def leaders_of(context: RecallContext, question: LeadersQuestion, *, last: bool = False) -> LeadersShape:
    """The requested page; if `last`, with the last reigns instead of those from the offset. Raises NotFound if there
    was no such moment or unity, and TooMuchWork."""
    live, ranking_id = context.live, question.ranking_id
    then = await moments.at(context.past, live.tournament_id, ranking_id, question.moment, live.head.sequence)
    unity_id = unity_of(then.board, ranking_id, question.unity_id)
    by_log, by_world = await folds.leaders(context.past, live.tournament_id, then, ranking_id, unity_id, question.until)
    reigns = by_log if question.clock == "log" else by_world
    end, zone = question.until or reigns.last, zone_of(live.board.publication.presentation.zone)
    led, longest = await in_time_slices(times_at_top(reigns, end or _NEVER, TOLD_MAX, zone))
    differing = await in_time_slices(differences(by_log, by_world))
    offset = max(len(reigns) - question.limit, 0) if last else question.offset
    return LeadersShape(
        unity_id=unity_id,
        clock=question.clock,
        sequence=then.sequence,
        recorded_at=instant(then.recorded_at),
        until=instant_or_none(end),
        lines=len(reigns),
        reigns=[_reign(one) for one in reigns.run(offset, offset + question.limit)],
        led=led,
        competitors=[_time_at_top(one) for one in longest],
        differing=len(differing),
        differences=[_difference(one) for one in differing[-TOLD_MAX:]],
    )


_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def _reign(reign: Reign) -> ReignShape:
    return ReignShape(instant(reign.since), instant_or_none(reign.until), _ids(reign.leaders))


def _time_at_top(one: TimeAtTop) -> TimeAtTopShape:
    since, until = one.longest
    return TimeAtTopShape(
        competitor_id=one.competitor_id,
        seconds=int(one.time.total_seconds()),
        shared_seconds=int(one.shared.total_seconds()),
        days=one.days,
        weeks=one.weeks,
        competitions=one.competitions,
        runs=one.runs,
        longest=RunShape(instant(since), instant(until)),
    )


def _difference(one: ClockDifference) -> ClockDifferenceShape:
    return ClockDifferenceShape(instant(one.since), instant_or_none(one.until), _ids(one.by_log), _ids(one.by_world))


def _ids(competitor_ids: Iterable[CompetitorId]) -> list[int]:
    return list(competitor_ids)


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/leaders.json",
        "Show who led a ranking from when to when, and how long each competitor did",
        operation_id="showLeaders",
        question=LeadersQuestion,
        answer=Answer("leaders", LeadersShape),
        render=answer_leaders,
        fields=(
            Field("unity", ID, "in what; absent: in the main unity", argument="unity_id"),
            Field(
                "clock",
                one_of("log", "world"),
                "log: by what had been recorded, as published; world: by what had taken place",
            ),
            Field("at_sequence", FROM_1, "as known after this event"),
            Field("at_time", TIME_END, "as known after all events of this time"),
            Field("until", TIME_END, "up to this day or time; absent: up to the last points"),
            Field("offset", FROM_0, "the number of reigns to skip"),
            Field("limit", number_up_to(1, REIGNS_MAX, REIGNS_DEFAULT), "reigns"),
        ),
    ),
)
