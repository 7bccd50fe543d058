"""The data for the script of a board: lines of a table, passages of history that the script folds, and a race.

Totals and ids are strings of digits, because a JavaScript number cannot hold all of them exactly.
"""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Raw, Struct

from api.interface.competition_names import short_text
from api.interface.declarations import RecallContext
from api.interface.rendering import encode
from api.web.competitions import ShownCompetitions
from api.web.page import number_text, signed_text
from api.web.table import (
    PASSAGE_TOTALS_MAX,
    SERIES_COMPETITORS_MAX,
    SERIES_EVENTS_MAX,
    DatedCompetition,
    ShownTable,
    TableState,
    ValueColumn,
    is_folded,
    is_raced,
    ranking_in,
)
from api.web.words import Words
from engine.domain.errors import Unacceptable
from engine.domain.events import Points
from engine.domain.notation import Notation
from engine.domain.steps import Steps, collected
from engine.domain.terms import RESULT_MAX, CompetitorId, RankingId, Sequence, UnityId
from engine.domain.times import instant
from engine.process.time_slices import TimeSlice, in_time_slices
from projections.answers.lookup import unity_of
from projections.answers.names import NamesById
from projections.board.board import Board, Ranking
from projections.board.classification import by_totals_alone, in_force
from projections.past import folds, moments
from projections.past.effects import Effects
from projections.past.passage import Passage
from projections.past.timeline import TimelineStep

_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
RACERS_MAX: Final = 40
"""Competitors that one race shows: the first ones at its end."""


class LineOfTable(Struct, frozen=True, kw_only=True, gc=False):
    """A TableLine, with `form` and `gained` formatted for people."""

    position: int
    competitor_id: str
    name: str
    color: str
    values: list[str | None]
    moved: int | None
    form: list[str]
    gained: str | None


class TableShape(Struct, frozen=True, kw_only=True):
    """A ShownTable; `lines` are LineOfTable."""

    columns: list[ValueColumn]
    sequence: int
    end: int
    recorded_at: datetime
    state: TableState
    since: int | None
    since_on: datetime | None
    count: int
    offset: int
    competitions: ShownCompetitions
    on: datetime | None
    last: DatedCompetition | None
    lines: list[Raw]


class UnityOfPassage(Struct, frozen=True):
    """`totals` are in the order of the passage's competitors: an array of texts."""

    id: str
    name: str
    sort: str
    notation: Notation
    totals: Raw


class CompetitorOfPassage(Struct, frozen=True, array_like=True, gc=False):
    id: str
    name: str
    color: str


class StepOfPassage(Struct, frozen=True, array_like=True, gc=False):
    """An event that gave points. `clock`: when its competition began, or, without one, when it was recorded; `clock`
    and `recorded_at` are in seconds since 1970. `deltas`: the numbers of a competitor and a unity in the passage, and
    the delta; competitors outside the table are left out. A delta of marks is a text if scripts would round it."""

    sequence: int
    recorded_at: int
    clock: int
    deltas: list[tuple[int, int, int | str]]


class PassageShape(Struct, frozen=True, kw_only=True):
    """The history after the event `first` up to `last`. `criteria`: numbers of the unities by which the classification
    is ordered; null: more than totals decide. `steps` are StepOfPassage. Totals and steps are encoded as they are made,
    in time slices, because encoding them all at once would delay other requests."""

    first: int
    last: int
    competitors: list[CompetitorOfPassage]
    unities: list[UnityOfPassage]
    criteria: list[int] | None
    steps: list[Raw]


class TimelineShape(PassageShape, frozen=True, kw_only=True):
    """Everything that took place in a ranking, as a passage: its steps are numbered from 1, in order of time.
    `moments`: for each step, the value of `at` that shows it, and what took place, in words. `end`: the last event of
    the log."""

    end: int
    moments: list[tuple[str, str]]


class RaceShape(Struct, frozen=True, kw_only=True):
    """A unity through time, with one column for each moment: `sequences`, as in StepOfPassage, and `clocks`, in
    milliseconds since 1970, as scripts count time. `by_date`: the moments are steps of the timeline. `positions` and
    `totals` have a row for each competitor, null while they were not in the ranking. Totals are numbers, because they
    are only drawn."""

    unity_id: str
    name: str
    notation: Notation
    competitors: list[CompetitorOfPassage]
    sequences: list[int]
    clocks: list[int]
    by_date: bool
    positions: list[list[int | None]]
    totals: list[list[int | None]]


async def race_shape(
    context: RecallContext, ranking_id: RankingId | None = None, unity_id: UnityId | None = None
) -> RaceShape:
    """The race of a unity up to now; empty if nobody has points. Raises NotFound and Unacceptable."""
    live, board = context.live, context.live.board
    ranking_id = ranking_in(context, board, ranking_id)
    unity_id = unity_of(board, ranking_id, unity_id)
    ranking = board.rankings[ranking_id]
    if not is_raced(ranking, live.head.sequence):
        raise Unacceptable(
            f"A race is drawn of at most {SERIES_COMPETITORS_MAX} competitors and {SERIES_EVENTS_MAX:,} events."
        )
    order = await live.orders.of(ranking_id, unity_id)
    first, end = [one.competitor_id for one in order.standings(0, RACERS_MAX)], live.head.sequence
    by_date = await folds.series_by_date(context.past, live.tournament_id, ranking_id, unity_id, end, first)
    points = by_date or []
    if by_date is None:
        async for reached, series in folds.series(context.past, live.tournament_id, ranking_id, unity_id, end, first):
            points = series.points if reached == end else []
    ids = list(points[-1].lines) if points else []
    positions: list[list[int | None]] = []
    totals: list[list[int | None]] = []
    time_slice, notation = TimeSlice(), ranking.unities[unity_id].notation
    for one in ids:
        lines = [point.lines.get(one) for point in points]
        positions.append([None if line is None else line.position for line in lines])
        totals.append([None if line is None else notation.shown(line.total) for line in lines])
        if time_slice.over:
            await time_slice.give_way()
    return RaceShape(
        unity_id=str(unity_id),
        name=ranking.unities[unity_id].name,
        notation=ranking.unities[unity_id].notation,
        competitors=[CompetitorOfPassage(str(i), board.competitors[i].name, board.competitors[i].color) for i in ids],
        sequences=[point.sequence for point in points],
        clocks=[(point.at - _BEGINNING) // timedelta(milliseconds=1) for point in points],
        by_date=by_date is not None,
        positions=positions,
        totals=totals,
    )


async def passage_shape(context: RecallContext, ranking_id: RankingId, at: Sequence) -> PassageShape:
    """The passage that shows the event `at`. Raises NotFound and Unacceptable."""
    live = context.live
    context.refuse_hidden(ranking_id)
    found = await folds.passage_at(context.past, live.tournament_id, ranking_id, at, live.head.sequence)
    ranking = found.board.rankings.get(ranking_id)
    if ranking is None:
        return PassageShape(first=found.first, last=found.last, competitors=[], unities=[], criteria=[], steps=[])
    if not is_folded(ranking):
        raise Unacceptable(f"Passages are shown for at most {PASSAGE_TOTALS_MAX:,} totals: competitors times unities.")
    return await in_time_slices(told(found, ranking))


def told(found: Passage, ranking: Ranking) -> Steps[PassageShape]:
    """The passage of this ranking."""
    ids = ranking.participants.listed()
    return PassageShape(
        first=found.first,
        last=found.last,
        competitors=(yield from collected(_competitors(found.board, ids))),
        unities=(yield from collected(_unities(ranking, ids))),
        criteria=_criteria(ranking),
        steps=(yield from collected(_steps(found, ranking, ids))),
    )


def _competitors(board: Board, ids: Items[CompetitorId]) -> Iterator[CompetitorOfPassage]:
    for one in ids:
        yield CompetitorOfPassage(str(one), board.competitors[one].name, board.competitors[one].color)


def _unities(ranking: Ranking, ids: Items[CompetitorId], *, empty: bool = False) -> Iterator[UnityOfPassage]:
    """The unities with the totals of these competitors, or, if `empty`, with totals of 0."""
    for unity_id, unity in ranking.unities.items():
        totals = _encoded(["0" if empty else str(unity.totals.get(one, 0)) for one in ids])
        yield UnityOfPassage(str(unity_id), unity.name, unity.sort.value, unity.notation, totals)


async def timeline_shape(context: RecallContext, words: Words, ranking_id: RankingId | None = None) -> TimelineShape:
    """What took place in a ranking, up to now. Raises NotFound and TooMuchWork."""
    live = context.live
    ranking_id = ranking_in(context, live.board, ranking_id)
    then = await moments.at(context.past, live.tournament_id, ranking_id, None, live.head.sequence)
    board, ranking = then.board, then.board.rankings[ranking_id]
    steps = await folds.timeline(context.past, live.tournament_id, board, ranking_id, then.sequence)
    ids = ranking.participants.listed() if is_folded(ranking) else []
    return TimelineShape(
        first=0,
        last=len(steps),
        competitors=await in_time_slices(collected(_competitors(board, ids))),
        unities=await in_time_slices(collected(_unities(ranking, ids, empty=True))),
        criteria=_criteria(ranking) if is_folded(ranking) else None,
        steps=await in_time_slices(collected(_steps_in_time(steps, ranking, ids))),
        end=then.sequence,
        moments=await in_time_slices(collected(_moments(words, board, steps))),
    )


def _steps_in_time(steps: Items[TimelineStep], ranking: Ranking, ids: Items[CompetitorId]) -> Iterator[Raw]:
    competitors = {one: number for number, one in enumerate(ids)}
    unities = {one: number for number, one in enumerate(ranking.unities)}
    for number, step in enumerate(steps, start=1):
        deltas = [
            (competitors[c], unities[u], _exact(d)) for (c, u), d in step.deltas.items() if d and c in competitors
        ]
        at, clock = int(step.recorded_at.timestamp()), int(step.at.timestamp())
        yield _encoded(StepOfPassage(number, at, clock, deltas))


def _moments(words: Words, board: Board, steps: Items[TimelineStep]) -> Iterator[tuple[str, str]]:
    for step in steps:
        yield instant(step.at).replace(".000000", ""), _what(words, board, step)


def _what(words: Words, board: Board, step: TimelineStep) -> str:
    """What took place, in words: a competition and the number of others, or that there was none."""
    found = [board.competitions[one] for one in step.competitions if one in board.competitions]
    if not found:
        return words("no_competition")
    more = words("and_more", number=len(found) - 1) if len(found) > 1 else ""
    return short_text(NamesById(board), found[0], words("competition_of")) + more


def _criteria(ranking: Ranking) -> list[int] | None:
    criteria, unities = in_force(ranking), list(ranking.unities)
    if not by_totals_alone(criteria):
        return None
    return [unities.index(one.unity_id) for one in criteria]


def _exact(delta: int) -> int | str:
    return delta if -RESULT_MAX <= delta <= RESULT_MAX else str(delta)


def _encoded(value: object) -> Raw:
    return Raw(encode(value))


def _steps(found: Passage, ranking: Ranking, ids: Items[CompetitorId]) -> Iterator[Raw]:
    competitors = {one: number for number, one in enumerate(ids)}
    unities: dict[UnityId, int] = {one: number for number, one in enumerate(ranking.unities)}
    effects = Effects(ranking)
    for recorded in found.points:
        event = recorded.event
        assert isinstance(event, Points)
        deltas = [
            (competitors[one.competitor_id], unities[one.unity_id], _exact(one.amount))
            for one in effects.of(event)
            if one.competitor_id in competitors
        ]
        at, clock = int(recorded.recorded_at.timestamp()), int(found.clock(recorded).timestamp())
        yield _encoded(StepOfPassage(recorded.sequence, at, clock, deltas))


async def table_shape(table: ShownTable) -> TableShape:
    return TableShape(
        columns=table.columns,
        sequence=table.sequence,
        end=table.end,
        recorded_at=table.recorded_at,
        state=table.state,
        since=table.since,
        since_on=table.since_on,
        count=table.count,
        offset=table.offset,
        competitions=table.competitions,
        on=table.on,
        last=table.last,
        lines=await in_time_slices(collected(_lines(table))),
    )


def _lines(table: ShownTable) -> Iterator[Raw]:
    for line in table.lines:
        shape = LineOfTable(
            position=line.position,
            competitor_id=str(line.competitor_id),
            name=line.name,
            color=line.color,
            values=[None if value is None else str(value) for value in line.values],
            moved=line.moved,
            form=[number_text(one.sum, table.form_notation) for one in line.form],
            gained=None if line.gained is None else signed_text(line.gained, table.form_notation),
        )
        yield _encoded(shape)
