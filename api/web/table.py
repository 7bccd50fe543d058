"""The table that a board shows: a ranking's classification or one of its unities, with movement and recent results.

The table shows one moment, and compares its lines with an earlier one. The page, the CSV and the JSON that keeps the
page live are made from the same `ShownTable`.
"""

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from api.interface.competition_names import short_text
from api.interface.declarations import RecallContext
from api.web.competitions import ShownCompetitions, competitions_around, competitions_shown, last_by_date
from api.web.search import is_searched, tagged, tags_offered
from api.web.table_lines import LinesAsked, filled, lines_found_now, lines_found_then, order_then
from api.web.words import ENGLISH, Words
from engine.domain.counting import now_of
from engine.domain.errors import NotFound, TooMuchWork
from engine.domain.events import Criterion
from engine.domain.notation import Notation
from engine.domain.steps import collected
from engine.domain.terms import CompetitionId, CompetitorId, Counts, RankingId, Sequence, UnityId
from engine.process.time_slices import in_time_slices
from projections.answers.classification import lines_then, shown_values
from projections.answers.expiring import CountingLines
from projections.answers.lookup import ranking_of, unity_of
from projections.answers.names import NamesById
from projections.answers.tables import moved
from projections.board.board import Board, Ranking
from projections.board.classification import Classified, compares_totals, in_force, value_notations
from projections.board.order import OrderedLines
from projections.board.recent_results import CompetitionSum, forms, looked_at
from projections.board.standing import Standing
from projections.board.sub_table import SubTable
from projections.live.tries import Tries
from projections.past import folds, moments, searches
from projections.past.losses import Losses
from projections.past.moments import AtSequence, PastBoard
from projections.past.searches import LastCompetition

BOARD_LINES: Final = 100
"""Lines of a page."""
OTHER_COLUMNS_MAX: Final = 12
"""Unities that have a column although they decide nothing. Each further one has only its own table."""
FORM_LAST: Final = 5
"""Recent results that a line shows."""
FORM_SUMS_SHOWN_MAX: Final = 50_000
"""Sums of competitions that are searched for the recent results of one table. With more, the table shows none."""

FORM_EVENTS_MAX: Final = 20_000
"""Events up to which a past table shows recent results: the log is read for them from its beginning."""

MOVED_BY_DATE_EVENTS_MAX: Final = 5_000
"""Events of a log up to which the current table is compared with the table before a date. The comparison is made after
each event, and many events may have been recorded since that date."""

PASSAGE_TOTALS_MAX: Final = 25_000
"""Totals of a ranking, competitors times unities, up to which passages are shown. For larger rankings, the service
makes the table of each moment."""

SERIES_EVENTS_MAX: Final = 200_000
"""Events of a log that a race is drawn from; the log is read from the beginning."""
SERIES_COMPETITORS_MAX: Final = 500
"""Competitors of a ranking up to which its race is drawn."""

DEFENDED: Final = timedelta(days=7)
"""The points that expire within this time are shown as points to defend."""
DEFENDED_EVENTS_MAX: Final = 20_000
"""Events that may be read for the points to defend: those recorded while these points took place, and those of
competitions dated then. With more of either, the table does not show these points."""

_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_TIME: Final = datetime.min.replace(tzinfo=UTC)


class TableAsked(LinesAsked, frozen=True, kw_only=True):
    """The requested table: of this ranking (None: the first one), after the event `at` (None: now), with what had taken
    place by `on` (None: all), compared with the table after `since` or by `since_on` (None: before the last
    competition; by its date, if the table is current or by `on`). `form`: whether recent results, and competitions
    around the moment, are wanted; `tags`: whether the tags to choose from are wanted; `words`: for columns, and for
    competitions without names."""

    ranking_id: RankingId | None = None
    at: Sequence | None = None
    on: datetime | None = None
    since: Sequence | None = None
    since_on: datetime | None = None
    limit: int = BOARD_LINES
    form: bool = True
    tags: bool = False
    words: Words = ENGLISH


class Named(Struct, frozen=True):
    """A ranking or a unity that can be chosen."""

    id: int
    name: str


class ValueColumn(Struct, frozen=True):
    """A column of values. `decides`: lines are ordered by it, or by one before it. `notation`: how it is written."""

    name: str
    decides: bool
    notation: Notation


class TableLine(Struct, frozen=True, kw_only=True, gc=False):
    """A line. `values`: one for each column; None: the value is more than a total, and was not needed. `moved`: places
    gained, or lost if negative; None: the competitor had no points then, was not in the table, or nothing is compared.
    `form`: their recent results, the newest last. `gained`: what they got from the competition that gave points last;
    None: nothing."""

    position: int
    competitor_id: int
    name: str
    color: str
    tags: tuple[str, ...]
    values: list[int | None]
    moved: int | None
    form: list[CompetitionSum]
    gained: int | None


TableState = Literal["live", "frozen", "final"]
"""Live: the table changes with the next points. Frozen: the public does not see what came after it. Final: its ranking
is closed."""


class DatedCompetition(Struct, frozen=True):
    """The name that people know a competition by, and its declared time."""

    name: str
    date: datetime


class ShownTable(Struct, frozen=True, kw_only=True):
    """Some lines of a table, as of the event `sequence`; `end`: the last event. `rankings`, `unities`: what can be
    chosen instead. `unity_id` None: the classification. `sole`: the unity whose totals alone decide the classification;
    None: there is none. `state`: that of the current table. `since`: the event as of which the earlier table is
    compared; None: nobody had points before the last competition. `since_on`: the earlier table has only what had taken
    place by then; None: everything. `count`: lines in total. `races`: whether there is a race to draw; `folds`: whether
    browsers can add up the points. `is_searched`: whether competitors can be searched; `tags`: those to choose from, if
    requested. `on`: the table has only what had taken place by then; None: everything. `last`: the last competition
    that gave points, if its date is declared. `form_notation`: that of recent results, and of what a competition
    gave."""

    ranking_id: int
    unity_id: int | None
    end: int
    rankings: list[Named]
    unities: list[Named]
    sole: int | None
    columns: list[ValueColumn]
    sequence: int
    recorded_at: datetime
    state: TableState
    since: int | None
    since_on: datetime | None
    count: int
    offset: int
    races: bool
    folds: bool
    is_searched: bool
    tags: list[str]
    competitions: ShownCompetitions
    on: datetime | None
    last: DatedCompetition | None
    form_notation: Notation
    lines: list[TableLine]


async def table_of(context: RecallContext, asked: TableAsked) -> ShownTable:
    """The requested table. At the head, names, recent results and values that decide nothing may be some events newer
    than the rest. Raises NotFound if the ranking, unity or moment does not exist, and TooMuchWork."""
    live = context.live
    board, sequence = await board_at(context, asked.at)
    ranking_id = ranking_in(context, board, asked.ranking_id)
    if asked.on is not None:
        moment = None if asked.at is None else AtSequence(asked.at)
        then = await moments.at(context.past, live.tournament_id, ranking_id, moment, live.head.sequence, asked.on)
        board, sequence, recorded_at = then.board, then.sequence, then.recorded_at
        found = await lines_found_then(context, then, ranking_id, asked)
    elif board is live.board:
        head, found = await lines_found_now(context, ranking_id, asked)
        board, sequence = live.board, head.sequence
        recorded_at = await context.recorded_at(head)
        then = PastBoard(board, sequence, recorded_at)
    else:
        recorded_at = await moments.recorded_at(context.past, live.tournament_id, sequence)
        then = PastBoard(board, sequence, recorded_at)
        found = await lines_found_then(context, then, ranking_id, asked)
    lines = found.lines
    ids = [line.competitor_id for line in lines]
    form: Mapping[CompetitorId, list[CompetitionSum]] = {}
    if asked.form or asked.on is not None:
        await _give_sums(context, then, ranking_id)
    if asked.form:
        form = await _forms(board, ranking_id, asked.unity_id, ids)
    last = await _last_competition(context, then, ranking_id)
    date = await _last_date(context, then, ranking_id, asked, last)
    earlier = await _earlier(context, then, ranking_id, asked, last, date)
    positions: Mapping[CompetitorId, int | None] = {}
    if earlier is not None:
        before = last if (asked.since, asked.since_on) == (None, None) else None
        ranked = [
            one
            for one in ids
            if _had_points(earlier, ranking_id, one) or _played_before(board, before, date, form.get(one, ()))
        ]
        positions = await _positions(context, earlier, ranking_id, asked, ranked)
    ranking = board.rankings[ranking_id]
    others: list[Mapping[CompetitorId, int]] = [ranking.unities[one].totals for one in _others(ranking, asked.unity_id)]
    columns = _columns(asked.words, ranking, asked.unity_id)
    first = in_force(ranking)[0].unity_id if asked.unity_id is None else asked.unity_id
    if board is live.board and (defended := await _defended(context, ranking_id, first, ids)) is not None:
        columns.append(ValueColumn(asked.words("to_defend"), False, ranking.unities[first].notation))
        others.append(defended)
    gained: Mapping[CompetitorId, int | None] = {}
    if asked.form and last is not None and (sums := ranking.competition_sums) is not None:
        unity_id = unity_of(board, ranking_id, asked.unity_id)
        if unity_id not in ranking.of_results:
            gained = {one: sums.sum(unity_id, one, last.competition_id) for one in ids}
    return ShownTable(
        ranking_id=ranking_id,
        unity_id=asked.unity_id,
        end=live.head.sequence,
        rankings=[Named(i, board.rankings[i].name) for i in rankings_in(context, board)],
        unities=[Named(i, one.name) for i, one in ranking.unities.items()],
        sole=_sole(ranking),
        columns=columns,
        sequence=sequence,
        recorded_at=recorded_at,
        state="frozen" if context.is_frozen else "live" if ranking.closed_at is None else "final",
        since=None if earlier is None else earlier.sequence,
        since_on=None if earlier is None else earlier.on,
        count=found.count,
        offset=found.offset,
        races=is_raced(ranking, live.head.sequence) and _has_points(ranking),
        folds=is_folded(ranking) and asked.tag is None and asked.find is None,
        is_searched=is_searched(ranking),
        tags=await in_time_slices(tags_offered(board, ranking)) if asked.tags and is_searched(ranking) else [],
        on=asked.on,
        last=None if last is None else _dated(asked.words, board, last.competition_id),
        competitions=await _competitions(context, then, ranking_id, asked, last),
        form_notation=ranking.unities[unity_of(board, ranking_id, asked.unity_id)].notation,
        lines=await in_time_slices(collected(_shown(board, columns, lines, positions, form, others, gained))),
    )


async def board_at(context: RecallContext, at: Sequence | None) -> tuple[Board, Sequence]:
    """The board after the event `at` (None: now), and that event. At the head, it is the live board. Raises NotFound if
    there is no such event."""
    live, head = context.live, context.live.head.sequence
    if at in (None, head):
        return live.board, head
    return await moments.board_after(context.past, live.tournament_id, at, head), at


def ranking_in(context: RecallContext, board: Board, ranking_id: RankingId | None) -> RankingId:
    """The ranking; None: the first one. Raises NotFound, also for a hidden one."""
    if ranking_id is not None:
        ranking_of(board, ranking_id)
        context.refuse_hidden(ranking_id)
        return ranking_id
    for first in rankings_in(context, board):
        return first
    raise NotFound("This tournament has no ranking yet.")


def rankings_in(context: RecallContext, board: Board) -> list[RankingId]:
    """The rankings that can be seen, in their order."""
    return [ranking_id for ranking_id in board.rankings if ranking_id not in context.hidden]


def is_raced(ranking: Ranking, end: Sequence) -> bool:
    """Whether the race of a ranking can be drawn, in a log that ends with this event."""
    return len(ranking.participants) <= SERIES_COMPETITORS_MAX and end <= SERIES_EVENTS_MAX


def is_folded(ranking: Ranking) -> bool:
    """Whether browsers add up the totals of a ranking."""
    return len(ranking.participants) * len(ranking.unities) <= PASSAGE_TOTALS_MAX


def _columns(words: Words, ranking: Ranking, unity_id: UnityId | None) -> list[ValueColumn]:
    """The columns of values, those that decide first. A unity may be in several criteria."""
    if unity_id is None:
        criteria = in_force(ranking)
        texts = [_criterion(words, ranking, one) for one in criteria]
        named = list(zip(texts, value_notations(ranking, criteria), strict=True))
    else:
        named = [(ranking.unities[unity_id].name, ranking.unities[unity_id].notation)]
    others = [ranking.unities[one] for one in _others(ranking, unity_id)]
    return [
        *[ValueColumn(name, True, notation) for name, notation in named],
        *[ValueColumn(unity.name, False, unity.notation) for unity in others],
    ]


def _criterion(words: Words, ranking: Ranking, criterion: Criterion) -> str:
    """The name of the unity, and which of its values decides."""
    text = ranking.unities[criterion.unity_id].name
    if criterion.first:
        return words("reached_first", unity=text)
    if criterion.among:
        text = words("among_tied", unity=text)
    return text if criterion.best is None else words("best_of", unity=text, number=criterion.best)


def _sole(ranking: Ranking) -> UnityId | None:
    """The unity whose totals alone decide the classification."""
    first, *more = in_force(ranking)
    return None if more or not compares_totals(first) else first.unity_id


async def _defended(
    context: RecallContext, ranking_id: RankingId, unity_id: UnityId, competitor_ids: Items[CompetitorId]
) -> Mapping[CompetitorId, int] | None:
    """The points that competitors lose within DEFENDED. None: the unity's points do not expire, it counts results, or
    too much would have to be read."""
    live, tries = context.live, Tries()
    while True:
        board = live.board
        ranking, expired_by = board.rankings[ranking_id], live.expired_by
        unity = ranking.unities[unity_id]
        if unity.expiry is None or unity.counts is not Counts.SUM or expired_by is None:
            return None
        now, until = now_of(ranking, expired_by), now_of(ranking, expired_by + DEFENDED)
        totals = {one: unity.totals.get(one) for one in competitor_ids}
        losses = Losses(board, ranking_id, unity_id, now=now, until=until, totals=totals)
        with CountingLines(live, ranking_id) as lines:
            try:
                upto = live.head.sequence
                await folds.follow_losses(context.past, live.tournament_id, board, losses, upto, DEFENDED_EVENTS_MAX)
            except TooMuchWork:
                return None
        if not lines.have_changed:
            return {one: totals[one] - left for one, left in losses.totals.items()}
        tries.again()


def _others(ranking: Ranking, unity_id: UnityId | None) -> list[UnityId]:
    """The unities whose totals decide nothing in the table, and are shown in it."""
    plain = {one.unity_id for one in in_force(ranking) if compares_totals(one)}
    deciding = plain if unity_id is None else {unity_id}
    return [one for one in ranking.unities if one not in deciding][:OTHER_COLUMNS_MAX]


# ── Lines ───────────────────────────────────────────────────────────────────────────────────────────────


def _shown(
    board: Board,
    columns: Items[ValueColumn],
    lines: Items[Classified],
    positions: Mapping[CompetitorId, int | None],
    form: Mapping[CompetitorId, list[CompetitionSum]],
    others: Items[Mapping[CompetitorId, int]],
    gained: Mapping[CompetitorId, int | None],
) -> Iterator[TableLine]:
    for line in lines:
        competitor = board.competitors[line.competitor_id]
        kept = [*line.values, *[totals.get(line.competitor_id) for totals in others]]
        yield TableLine(
            position=line.position,
            competitor_id=line.competitor_id,
            name=competitor.name,
            color=competitor.color,
            tags=competitor.tags,
            values=shown_values([column.notation for column in columns], kept),
            moved=moved(line.position, positions.get(line.competitor_id)),
            form=[*form.get(line.competitor_id, ())],
            gained=gained.get(line.competitor_id),
        )


# ── Movement and form ───────────────────────────────────────────────────────────────────────────────────


async def _last_competition(context: RecallContext, then: PastBoard, ranking_id: RankingId) -> LastCompetition | None:
    """The last competition that gave points: by its date if the world's clock is requested, otherwise by the log. None:
    there is none, or too much would have to be read."""
    tournament_id, board = context.live.tournament_id, then.board
    if then.clock is None:
        return await searches.last_competition(context.past, tournament_id, ranking_id, then.sequence, board)
    sums = board.rankings[ranking_id].competition_sums
    last = None if sums is None else await in_time_slices(last_by_date(board, sums))
    return None if last is None else LastCompetition(last, Sequence(0))


def _dated(words: Words, board: Board, competition_id: CompetitionId) -> DatedCompetition | None:
    competition = board.competitions.get(competition_id)
    if competition is None or competition.date is None:
        return None
    return DatedCompetition(short_text(NamesById(board), competition, words("competition_of")), competition.date)


async def _last_date(
    context: RecallContext, then: PastBoard, ranking_id: RankingId, asked: TableAsked, last: LastCompetition | None
) -> datetime | None:
    """The last date of a competition that gave points: lines are compared with the table before it. None: they are
    compared by the log, because a moment of it is requested, it is long, or the `last` competition has no date."""
    board = then.board
    found = None if last is None else board.competitions.get(last.competition_id)
    if found is None or found.date is None:
        return None
    if then.clock is not None:
        return found.date
    if {asked.at, asked.since, asked.since_on} != {None} or then.sequence > MOVED_BY_DATE_EVENTS_MAX:
        return None
    await _give_sums(context, then, ranking_id)
    sums = board.rankings[ranking_id].competition_sums
    latest = None if sums is None else await in_time_slices(last_by_date(board, sums))
    return None if latest is None else board.competitions[latest].date


async def _earlier(
    context: RecallContext,
    then: PastBoard,
    ranking_id: RankingId,
    asked: TableAsked,
    last: LastCompetition | None,
    date: datetime | None,
) -> PastBoard | None:
    """The board that lines are compared with. None: there is none, or nobody had points in the ranking before the last
    competition."""
    past, tournament_id, head = context.past, context.live.tournament_id, context.live.head.sequence
    if asked.since is not None:
        return await moments.at(past, tournament_id, ranking_id, AtSequence(asked.since), head)
    if asked.since_on is not None:
        return await moments.at(past, tournament_id, ranking_id, AtSequence(then.sequence), head, asked.since_on)
    if last is None:
        return None
    earlier = None
    if date is not None:
        before = max(date, _FIRST_TIME + _MICROSECOND) - _MICROSECOND
        try:
            earlier = await moments.at(past, tournament_id, ranking_id, AtSequence(then.sequence), head, before)
        except TooMuchWork:
            if then.clock is not None:
                raise
    if earlier is None:
        earlier = await moments.at(past, tournament_id, ranking_id, AtSequence(last.before), then.sequence)
    return earlier if _has_points(earlier.board.rankings[ranking_id]) else None


def _has_points(ranking: Ranking) -> bool:
    return any(any(one.totals.column) for one in ranking.unities.values())


def _had_points(then: PastBoard, ranking_id: RankingId, competitor_id: CompetitorId) -> bool:
    return any(one.totals.get(competitor_id) for one in then.board.rankings[ranking_id].unities.values())


def _played_before(
    board: Board, last: LastCompetition | None, date: datetime | None, form: Iterable[CompetitionSum]
) -> bool:
    """Whether the competitor took part before the last competition, or before its date, even without getting points."""
    if last is None:
        return False
    if date is None:
        return any(one.competition_id != last.competition_id for one in form)
    return any(board.competitions[one.competition_id].started_at < date for one in form)


async def _positions(
    context: RecallContext,
    then: PastBoard,
    ranking_id: RankingId,
    asked: TableAsked,
    ids: Items[CompetitorId],
) -> Mapping[CompetitorId, int | None]:
    """The positions of these competitors in the same table then, among those who had the tag then."""
    ranking, unity_id = then.board.rankings[ranking_id], asked.unity_id
    group = None if asked.tag is None else await in_time_slices(tagged(then.board, ranking, asked.tag))
    if unity_id is None:
        lines = await in_time_slices(
            (await lines_then(context, then, ranking_id)).among(ids if group is None else group)
        )
        if group is None:
            return {line.competitor_id: line.position for line in lines}
        classified: SubTable[Classified] = SubTable()
        classified.append(lines)
        return {one: classified.position(one) for one in ids}
    if unity_id not in ranking.unities:
        return {}
    order = await order_then(then.board, ranking_id, unity_id)
    if group is None:
        return await in_time_slices(_positions_in(order, ids))
    ordered: SubTable[Standing] = SubTable()
    await in_time_slices(filled(ordered, order, group))
    return {one: ordered.position(one) for one in ids}


def _positions_in(
    order: OrderedLines, ids: Items[CompetitorId]
) -> Generator[None, None, dict[CompetitorId, int | None]]:
    positions = {}
    for competitor_id in ids:
        positions[competitor_id] = order.position(order.line(competitor_id))
        yield
    return positions


async def _competitions(
    context: RecallContext, then: PastBoard, ranking_id: RankingId, asked: TableAsked, last: LastCompetition | None
) -> ShownCompetitions:
    """The competitions around the moment, with their points in the unity shown; for a classification, in the main
    unity. Empty if the log would have to be read for them."""
    board, ranking = then.board, then.board.rankings[ranking_id]
    sums = ranking.competition_sums
    if not asked.form or sums is None:
        return ShownCompetitions()
    around = await in_time_slices(competitions_around(board, ranking, sums, context.hidden, asked.on))
    others = [one for one in rankings_in(context, board) if one != ranking_id]
    taken_place: Collection[CompetitionId] = ()
    if others and around.begun:
        taken_place = await searches.taken_place(context.past, context.live.tournament_id, then, others, around.begun)
    unity_id, latest = unity_of(board, ranking_id, asked.unity_id), None if last is None else last.competition_id
    return await in_time_slices(
        competitions_shown(board, ranking, sums, unity_id, latest, around, taken_place, asked.on)
    )


async def _give_sums(context: RecallContext, then: PastBoard, ranking_id: RankingId) -> None:
    """Gives the board the sums in which recent results are looked up, unless it is a past board after many events."""
    live, board = context.live, then.board
    if board is live.board:
        await live.followed_sums.follow(ranking_id, context.read_sums)
    elif board.rankings[ranking_id].competition_sums is None and then.sequence <= FORM_EVENTS_MAX:
        await context.give_sums_then(ranking_id, then)


async def _forms(
    board: Board, ranking_id: RankingId, unity_id: UnityId | None, ids: Items[CompetitorId]
) -> Mapping[CompetitorId, list[CompetitionSum]]:
    """The recent results in the unity shown; for a classification, in the main unity."""
    unity_id, sums = unity_of(board, ranking_id, unity_id), board.rankings[ranking_id].competition_sums
    if sums is None or looked_at(sums, unity_id, ids) > FORM_SUMS_SHOWN_MAX:
        return {}
    return await in_time_slices(forms(board, sums, unity_id, ids, FORM_LAST))
