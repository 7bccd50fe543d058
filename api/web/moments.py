"""The data for the script of a board: lines of a table, passages of history that the script folds, and a race.

Totals and ids are strings of digits, because a JavaScript number cannot hold all of them exactly.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import UNSET, Raw, Struct, UnsetType

from api.interface.competition_names import short_text
from api.interface.rendering import encode
from api.interface.sports import column_of, in_order
from api.web.competitions import ShownCompetitionsShape, competitions_shape
from api.web.page import number_text, signed_text
from api.web.table import column_name, column_short, deducted_text, last_name, outcome_letter, unity_name, unity_short
from api.web.words import Words
from engine.domain.notation import Notation
from engine.domain.steps import Steps, collected
from engine.domain.terms import RESULT_MAX, CompetitorId
from engine.domain.times import instant
from engine.process.time_slices import in_time_slices
from projections.answers.board_table import BoardTable, Footnote, TableState
from projections.answers.names import NamesById
from projections.answers.passages import PassageStep, ShownPassage
from projections.answers.races import Race

_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ValueColumn(Struct, frozen=True):
    """A column of values. `short`: its name in a table. `place`: among the columns of a page. `decides`: lines are
    ordered by it, or by one before it. `notation`: how it is written."""

    name: str
    short: str
    place: int
    decides: bool
    notation: Notation


class DatedCompetition(Struct, frozen=True):
    """The name that people know a competition by, and when it took place."""

    name: str
    date: datetime | None


class LineOfTable(Struct, frozen=True, kw_only=True, gc=False):
    """A line, with `form` and `gained` formatted for people. `placed`: false, or absent, as in StandingLine.
    `zone`: the number of its zone on the page; absent: it is in none."""

    position: int
    competitor_id: str
    name: str
    color: str
    values: list[str | None]
    moved: int | None
    form: list[str]
    gained: str | None
    placed: bool | UnsetType = UNSET
    zone: int | UnsetType = UNSET


class FootnoteShape(Struct, frozen=True, kw_only=True):
    """A Footnote. `column`: its number. `amount`: what was deducted, in words."""

    mark: str
    column: int
    competitor_id: str
    amount: str
    reason: str


class TableShape(Struct, frozen=True, kw_only=True):
    """A BoardTable; `lines` are LineOfTable. `footnotes` absent: there are none."""

    columns: list[ValueColumn]
    sequence: int
    end: int
    recorded_at: datetime
    state: TableState
    since: int | None
    since_on: datetime | None
    count: int
    offset: int
    competitions: ShownCompetitionsShape
    on: datetime | None
    last: DatedCompetition | None
    lines: list[Raw]
    footnotes: list[FootnoteShape] | UnsetType = UNSET


class UnityOfPassage(Struct, frozen=True, kw_only=True):
    """`short`, `place`: as in ValueColumn; null: that of the order in which it decides. `totals` are in the order of
    the passage's competitors: an array of texts."""

    id: str
    name: str
    short: str
    place: int | None
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


def race_shape(race: Race) -> RaceShape:
    return RaceShape(
        unity_id=str(race.unity_id),
        name=race.name,
        notation=race.notation,
        competitors=[*_competitors(race.names, [line.competitor_id for line in race.lines])],
        sequences=[one.sequence for one in race.moments],
        clocks=[(one.at - _BEGINNING) // timedelta(milliseconds=1) for one in race.moments],
        by_date=race.by_date,
        positions=[line.positions for line in race.lines],
        totals=[line.totals for line in race.lines],
    )


def passage_shape(words: Words, passage: ShownPassage) -> Steps[PassageShape]:
    return PassageShape(**(yield from _passage(words, passage)))


def timeline_shape(words: Words, passage: ShownPassage) -> Steps[TimelineShape]:
    fields = yield from _passage(words, passage)
    return TimelineShape(**fields, end=passage.end, moments=(yield from collected(_moments(words, passage))))


def _passage(words: Words, passage: ShownPassage) -> Steps[dict[str, Any]]:
    """The fields of its shape."""
    unities = [one.unity_id for one in passage.unities]
    names = [one.name for one in passage.unities]
    order = in_order(names) if all(column_of(one, words.language) for one in names) else None
    return {
        "first": passage.first,
        "last": passage.last,
        "competitors": (yield from collected(_competitors(passage.names, passage.competitor_ids))),
        "unities": (yield from collected(_unities(words, passage, order))),
        "criteria": None if passage.criteria is None else [unities.index(one) for one in passage.criteria],
        "steps": (yield from collected(_steps(passage))),
    }


def _competitors(names: NamesById, ids: Iterable[CompetitorId]) -> Iterator[CompetitorOfPassage]:
    for one in ids:
        competitor = names.competitor(one)
        yield CompetitorOfPassage(str(one), competitor.name, competitor.color)


def _unities(words: Words, passage: ShownPassage, order: list[int] | None) -> Iterator[UnityOfPassage]:
    for number, unity in enumerate(passage.unities):
        yield UnityOfPassage(
            id=str(unity.unity_id),
            name=unity_name(words, unity.name),
            short=unity_short(words, unity.name),
            place=None if order is None else order.index(number),
            sort=unity.sort.value,
            notation=unity.notation,
            totals=_encoded([str(total) for total in unity.totals]),
        )


def _steps(passage: ShownPassage) -> Iterator[Raw]:
    competitors = {one: number for number, one in enumerate(passage.competitor_ids)}
    unities = {one.unity_id: number for number, one in enumerate(passage.unities)}
    for step in passage.steps:
        deltas = [
            (competitors[one.competitor_id], unities[one.unity_id], _exact(one.amount))
            for one in step.deltas
            if one.competitor_id in competitors
        ]
        at, clock = int(step.recorded_at.timestamp()), int(step.took_place.timestamp())
        yield _encoded(StepOfPassage(step.sequence, at, clock, deltas))


def _moments(words: Words, passage: ShownPassage) -> Iterator[tuple[str, str]]:
    for step in passage.steps:
        yield instant(step.took_place).replace(".000000", ""), _what(words, passage, step)


def _what(words: Words, passage: ShownPassage, step: PassageStep) -> str:
    """What took place, in words: a competition and the number of others, or that there was none."""
    found = step.competitions
    if not found:
        return words("no_competition")
    more = words("and_more", number=len(found) - 1) if len(found) > 1 else ""
    return short_text(passage.names, found[0], words("competition_of")) + more


def _exact(delta: int) -> int | str:
    return delta if -RESULT_MAX <= delta <= RESULT_MAX else str(delta)


def _encoded(value: object) -> Raw:
    return Raw(encode(value))


async def table_shape(words: Words, table: BoardTable) -> TableShape:
    last = table.last
    return TableShape(
        columns=_columns(words, table),
        sequence=table.sequence,
        end=table.end,
        recorded_at=table.recorded_at,
        state=table.state,
        since=table.since,
        since_on=table.since_on,
        count=table.count,
        offset=table.offset,
        competitions=competitions_shape(words, table),
        on=table.on,
        last=None if last is None else DatedCompetition(last_name(words, table), last.at),
        lines=await in_time_slices(collected(_lines(words, table))),
        footnotes=[_footnote(words, table, one) for one in table.footnotes] or UNSET,
    )


def _footnote(words: Words, table: BoardTable, footnote: Footnote) -> FootnoteShape:
    return FootnoteShape(
        mark=footnote.mark,
        column=footnote.column,
        competitor_id=str(footnote.deduction.competitor_id),
        amount=deducted_text(words, table, footnote),
        reason=footnote.deduction.reason,
    )


def _columns(words: Words, table: BoardTable) -> list[ValueColumn]:
    order = in_order(one.unity for one in table.columns)
    return [
        ValueColumn(column_name(words, one), column_short(words, one), order.index(number), one.decides, one.notation)
        for number, one in enumerate(table.columns)
    ]


def _lines(words: Words, table: BoardTable) -> Iterator[Raw]:
    for line in table.lines:
        shape = LineOfTable(
            position=line.position,
            competitor_id=str(line.competitor_id),
            name=line.name,
            color=line.color,
            values=[None if value is None else str(value) for value in line.values],
            moved=line.moved,
            form=[outcome_letter(words, one) or number_text(one.sum, table.form_notation) for one in line.form],
            gained=None if line.gained is None else signed_text(line.gained, table.form_notation),
            placed=UNSET if line.placed else False,
            zone=UNSET if line.zone is None else line.zone,
        )
        yield _encoded(shape)
