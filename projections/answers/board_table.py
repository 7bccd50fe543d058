"""The table that a board shows: a ranking's classification or one of its unities, with movement and recent results.

The table shows one moment, and compares its lines with an earlier one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import date, datetime, timedelta
from itertools import islice, starmap, takewhile
from string import ascii_lowercase
from typing import Any, Final, Literal

from msgspec import UNSET, Struct, structs

from engine.domain.awards import ResultOutcome
from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion
from engine.domain.lines import rule_of
from engine.domain.names import search_key
from engine.domain.notation import NONE, Notation
from engine.domain.presentation import in_zone
from engine.domain.scoring import outcomes_by_amount
from engine.domain.steps import Steps, collected
from engine.domain.table_zones import TableZone, zone_at, zones_of
from engine.domain.terms import FIRST_TIME, CompetitionId, CompetitorId, Counts, RankingId, Sequence, Sort, UnityId
from engine.log.heads import Head
from engine.process.time_slices import all_of, in_chunks, in_time_slices
from projections.answers.around import COMPETITIONS_LOOKED_AT_MAX, Around, ShownCompetitions
from projections.answers.boards import BoardAt, PastBoardAt, board_at
from projections.answers.classification import shown_values, unplaced_among
from projections.answers.expiring import read_of_lines
from projections.answers.form import forms_of
from projections.answers.lookup import unity_of
from projections.answers.names import NamesById
from projections.answers.passages import has_timeline, is_folded
from projections.answers.races import is_raced
from projections.answers.searching import FOUND_MAX, is_named, is_searched, searched, tags_offered
from projections.answers.tables import Positions, positions_at, selection_of, tagged_ids
from projections.answers.view import Question, View
from projections.board.board import Board, Competition, Ranking
from projections.board.classification import Classified, compares_totals, in_force, value_notations
from projections.board.classified_lines import ClassifiedLines
from projections.board.competition_sums import Deduction
from projections.board.recent_results import CompetitionSum, Forms, looked_at
from projections.board.selection import Selection
from projections.board.standing import Standing
from projections.board.sub_table import SubTable, TableLines, WholeLines
from projections.columns.packed import WALK_CHUNK_ITEMS
from projections.past import folds, searches
from projections.past.losses import Losses
from projections.past.moments import AtSequence

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
each event, and many events may have been recorded since that date. In a longer log, it is compared with the table
before the first points of the last round were recorded, which is sought among COMPETITIONS_LOOKED_AT_MAX."""
FOOTNOTES_MAX: Final = 10
"""Deductions among its lines up to which a table has footnotes. With more, it has none."""
GAINED_TOGETHER_MAX: Final = 50
"""Competitions of the last round up to which a table shows what they gave together. With more, it shows what the last
of them gave."""
DEFENDED: Final = timedelta(days=7)
"""The points that expire within this time are shown as points to defend."""
DEFENDED_EVENTS_MAX: Final = 20_000
"""Events that may be read for the points to defend: those recorded while these points took place, and those of
competitions dated then. With more of either, the table does not show these points."""

_COUNTED: Final[Mapping[ResultOutcome | None, str]] = {"win": "won", "draw": "drawn", "loss": "lost"}
_MICROSECOND: Final = timedelta(microseconds=1)


class Named(Struct, frozen=True):
    """A ranking or a unity that can be chosen."""

    id: int
    name: str


class TableColumn(Struct, frozen=True, kw_only=True):
    """A column of values. `unity`: the name of theirs; `criterion`: which of its values it shows; None: its totals.
    `divisor`: the name of the unity by whose totals these are divided.
    `decides`: lines are ordered by it, or by one before it. `defended`: the points to defend. `notation`: how values
    are written."""

    unity: str
    divisor: str | None = None
    criterion: Criterion | None = None
    decides: bool = False
    defended: bool = False
    notation: Notation


class RecentResult(Struct, frozen=True, gc=False):
    """What a competitor got in a competition. `counted`: the name of the unity that counts results like it, such as
    won; None: there is none."""

    sum: int
    counted: str | None


class TableLine(Struct, frozen=True, kw_only=True, gc=False):
    """A line. `values`: one for each column; None: the value is more than a total, and was not needed. `moved`: places
    gained, or lost if negative; None: the competitor joined the table since, had no place then, or nothing is compared.
    `form`: their recent results, newest last. `gained`: what they got from the competitions that took place last;
    None: nothing. `placed`: whether they have a value of the first column.
    `zone`: the number of the zone of the table that the line is in; None: it is in none."""

    position: int
    competitor_id: CompetitorId
    name: str
    color: str
    tags: tuple[str, ...]
    values: list[int | None]
    moved: int | None
    form: list[RecentResult]
    gained: int | None
    placed: bool
    zone: int | None

    @property
    def place(self) -> str:
        """The position as people see it."""
        return str(self.position) if self.placed else NONE


class Footnote(Struct, frozen=True):
    """A deduction from a total of the number `column`, with the `mark` that stands there."""

    mark: str
    column: int
    deduction: Deduction


class TookPlace(Struct, frozen=True):
    """A competition, and when it took place: its date or, without one, when its first points were recorded."""

    competition: Competition
    at: datetime


TableState = Literal["live", "frozen", "final"]
"""Live: the table changes with the next points. Frozen: the public does not see what came after it. Final: its ranking
is closed."""


class BoardTable(Struct, frozen=True, kw_only=True):
    """Some lines of a table, as of the event `sequence`; `end`: the last event. `rankings`, `unities`: what can be
    chosen instead. `unity_id` None: the classification. `sole`: the unity whose totals alone decide the classification;
    None: there is none. `state`: that of the current table. `since`: the event as of which the earlier table is
    compared; None: nobody had points before the last competition. `since_on`: the earlier table has only what had taken
    place by then; None: everything. `count`: lines in total. `races`: whether there is a race to draw; `folds`: whether
    browsers can add up the points; `has_timeline`: whether these can be put in order of time. `is_searched`: whether
    competitors can be searched; `tags`: those to choose from, if requested. `on`: the table has only what had taken
    place by then; None: everything. `last`: the last competition that gave points, on the clock that the table shows;
    None: there is none, or nothing says when it took place. `form_notation`: that of recent results, and of what a
    competition gave. `zones`: those of the lines. `footnotes`: in the order of the lines. `names`: those of all
    competitors."""

    ranking_id: RankingId
    unity_id: UnityId | None
    end: Sequence
    rankings: list[Named]
    unities: list[Named]
    sole: UnityId | None
    columns: list[TableColumn]
    sequence: Sequence
    recorded_at: datetime
    state: TableState
    since: Sequence | None
    since_on: datetime | None
    count: int
    offset: int
    races: bool
    folds: bool
    has_timeline: bool
    is_searched: bool
    tags: list[str]
    competitions: ShownCompetitions
    on: datetime | None
    last: TookPlace | None
    form_notation: Notation
    lines: list[TableLine]
    zones: list[TableZone]
    footnotes: list[Footnote]
    names: NamesById


class _Last(Struct, frozen=True, kw_only=True):
    """The competition that gave points last, on the clock that the table shows. `together`: this one, and those of its
    round before it, back to the last one of another round; without a round, those of its day if competitions are dated.
    `took_place` None: nothing says when; `began`: when the first of those together did. `first`: the event of their
    first points. `entered`: the competition that gave its first points last; None: it is not known."""

    competition_id: CompetitionId
    together: Items[CompetitionId]
    took_place: datetime | None
    began: datetime | None = None
    first: Sequence
    entered: CompetitionId | None = None


class _Lines(Struct, frozen=True):
    """The requested lines, out of `count`, with `offset` before them."""

    lines: list[Classified]
    offset: int
    count: int


class BoardTableQuestion(Question[BoardTable], frozen=True, kw_only=True):
    """The table of this ranking (None: the first one), after the event `at` (None: now), with what had taken place by
    `on` (None: all), compared with the table after `since` or by `since_on` (None: before the last round). After
    an event, the last one is that of the log; otherwise that of the world's clock, if any with a date gave points.

    The lines: in this unity (None: of the classification), at most `limit` from `offset` on. `tag`: only competitors
    with it, with positions among them. `find`: only competitors whose name contains it. `line`: the page with the line
    of this competitor, instead of `offset`. `form`: whether recent results, and competitions around the moment, are
    wanted; `tags`: whether the tags to choose from are wanted.

    At the head, names, recent results and values that decide nothing may be some events newer than the rest. Raises
    NotFound if the ranking, unity or moment does not exist, Unacceptable and TooMuchWork.
    """

    ranking_id: RankingId | None = None
    at: Sequence | None = None
    on: datetime | None = None
    since: Sequence | None = None
    since_on: datetime | None = None
    unity_id: UnityId | None = None
    offset: int = 0
    limit: int = BOARD_LINES
    tag: str | None = None
    find: str | None = None
    line: CompetitorId | None = None
    form: bool = True
    tags: bool = False

    async def answered(self, view: View) -> BoardTable:
        moment = None if self.at in (None, view.live.head.sequence) else AtSequence(self.at)
        ranking_id = view.ranking_in(await view.board_after(self.at), self.ranking_id)
        return await _Table(view, await board_at(view, ranking_id, moment, self.on), ranking_id, self).made()


class _Table:
    """The table of a ranking on the board `at`, while it is made."""

    def __init__(self, view: View, at: BoardAt, ranking_id: RankingId, asked: BoardTableQuestion) -> None:
        self._view, self._at, self._asked = view, at, asked
        self._ranking_id = ranking_id

    @property
    def _board(self) -> Board:
        return self._at.board

    @property
    def _ranking(self) -> Ranking:
        return self._board.rankings[self._ranking_id]

    @property
    def _unity_id(self) -> UnityId:
        """The unity shown; of a classification, the main one."""
        return unity_of(self._board, self._ranking_id, self._asked.unity_id)

    async def made(self) -> BoardTable:
        asked, at = self._asked, self._at
        head, found = await self._lines()
        sequence, recorded_at = head.sequence, await at.recorded_at(head)
        competitor_ids = [line.competitor_id for line in found.lines]
        if asked.form or not self._is_by_log:
            await self._know_sums(sequence)
        form = await self._forms(competitor_ids) if asked.form else {}
        last = await self._last(sequence)
        earlier = await self._earlier(sequence, last)
        positions = await self._positions(earlier, last, competitor_ids)
        defended = await self._defended(competitor_ids)
        competitions = await self._competitions(sequence, last)
        gained = await self._gained(last, competitor_ids)
        ranking, unity = self._ranking, self._ranking.unities[self._unity_id]
        columns = self._columns(ranking, is_defended=defended is not None)
        others: list[Mapping[CompetitorId, int]] = [ranking.unities[one].totals for one in self._others(ranking)]
        others += [] if defended is None else [defended]
        zones = self._zones(ranking)
        in_zones = [zone_at(zones, found.offset + number, found.count) for number in range(1, len(found.lines) + 1)]
        lines = self._shown(columns, zip(found.lines, in_zones, strict=True), others, positions, form, gained)
        return BoardTable(
            ranking_id=self._ranking_id,
            unity_id=asked.unity_id,
            end=self._view.live.head.sequence,
            rankings=[Named(one, self._board.rankings[one].name) for one in self._view.rankings_in(self._board)],
            unities=[Named(one, unity.name) for one, unity in ranking.unities.items()],
            sole=_sole(ranking),
            columns=columns,
            sequence=sequence,
            recorded_at=recorded_at,
            state="frozen" if self._view.is_frozen else "live" if ranking.closed_at is None else "final",
            since=None if earlier is None else earlier.head.sequence,
            since_on=None if earlier is None else earlier.on,
            count=found.count,
            offset=found.offset,
            races=is_raced(ranking, self._view.live.head.sequence) and _has_points(ranking),
            folds=is_folded(ranking) and asked.tag is None and asked.find is None,
            has_timeline=has_timeline(self._view.live.head.sequence),
            is_searched=is_searched(ranking),
            tags=await self._tags(ranking),
            on=asked.on,
            last=self._taken_place(last),
            competitions=competitions,
            form_notation=unity.notation.of_points if unity.counts is Counts.SUM else unity.notation,
            lines=await all_of(lines),
            zones=zones,
            footnotes=self._footnotes(ranking, columns, competitor_ids),
            names=NamesById(self._board),
        )

    def _taken_place(self, last: _Last | None) -> TookPlace | None:
        if last is None or last.took_place is None:
            return None
        return TookPlace(self._board.competitions[last.competition_id], last.took_place)

    async def _tags(self, ranking: Ranking) -> list[str]:
        """Those by which lines can be chosen; none unless the question asks for them."""
        if not self._asked.tags or not is_searched(ranking):
            return []
        counts: Counter[str] = Counter()
        await all_of(counts.update(one.tags) for _, one in searched(self._board, ranking))
        return tags_offered(counts)

    # ── Lines ───────────────────────────────────────────────────────────────────────────────────────────────

    async def _lines(self) -> tuple[Head, _Lines]:
        """The requested lines, and the head as of which they were read."""
        asked, at = self._asked, self._at
        selection = await selection_of(at, asked.tag)
        names = None if asked.find is None else await self._named(asked.find)
        async with at.lines(self._ranking_id, None if asked.unity_id is None else self._unity_id) as lines:
            head = at.head
            return head, await in_time_slices(self._found(lines, selection, names))

    async def _named(self, text: str) -> list[CompetitorId]:
        """The first competitors that a search for this text finds."""
        found, key = list[CompetitorId](), search_key(text)
        async for some in in_chunks(searched(self._board, self._ranking), WALK_CHUNK_ITEMS):
            found += [competitor_id for competitor_id, one in some if is_named(one, key)]
        return found[:FOUND_MAX]

    def _found(
        self, lines: WholeLines[Any], selection: Selection | None, names: list[CompetitorId] | None
    ) -> Steps[_Lines]:
        asked = self._asked
        if selection is not None:
            offset, some, count = yield from self._tagged(lines, selection, names)
        elif names is not None:
            all_named = yield from lines.among(names)
            offset, count = asked.offset, len(all_named)
            some = all_named[offset : offset + asked.limit]
        else:
            (offset, some), count = (yield from self._page(lines)), len(lines)
        if isinstance(lines, ClassifiedLines):
            return _Lines((yield from lines.completed(some)), offset, count)
        return _Lines((yield from collected(map(_of_unity, some))), offset, count)

    def _tagged(
        self, lines: WholeLines[Any], selection: Selection, names: list[CompetitorId] | None
    ) -> Steps[tuple[int, list[Any], int]]:
        """The lines of a sub-table: the number of those before them, they, and the total number."""
        asked, table = self._asked, SubTable[Any]((yield from lines.among(tagged_ids(selection))))
        if names is None:
            (offset, some), count = (yield from self._page(table)), len(table)
        else:
            places = [place for one in names if (place := table.place(one)) is not None]
            offset, count, some = asked.offset, len(places), list[Any]()
            for place in sorted(places)[offset : offset + asked.limit]:
                some += yield from table.run(place, place + 1)
        return offset, [structs.replace(one.whole, position=one.position) for one in some], count

    def _page(self, lines: TableLines[Any]) -> Steps[tuple[int, list[Any]]]:
        """The page with the line that is asked for, or at the requested offset: the offset, and the lines."""
        asked = self._asked
        page = None if asked.line is None else (yield from lines.page(asked.line, asked.limit))
        return page or (asked.offset, (yield from lines.run(asked.offset, asked.offset + asked.limit)))

    def _shown(
        self,
        columns: Items[TableColumn],
        lines: Iterable[tuple[Classified, int | None]],
        others: Items[Mapping[CompetitorId, int]],
        positions: Positions,
        form: Mapping[CompetitorId, list[RecentResult]],
        gained: Mapping[CompetitorId, int | None],
    ) -> Iterator[TableLine]:
        notations = [column.notation for column in columns]
        for line, zone in lines:
            one, is_placed = line.competitor_id, unplaced_among(notations, line.values) is UNSET
            competitor, then = self._board.competitors[one], positions.get(one)
            yield TableLine(
                position=line.position,
                competitor_id=one,
                name=competitor.name,
                color=competitor.color,
                tags=competitor.tags,
                values=shown_values(notations, [*line.values, *[totals.get(one) for totals in others]]),
                moved=None if then is None else then - line.position,
                form=[*form.get(one, ())],
                gained=gained.get(one),
                placed=is_placed,
                zone=zone if is_placed else None,
            )

    # ── Columns ─────────────────────────────────────────────────────────────────────────────────────────

    def _columns(self, ranking: Ranking, *, is_defended: bool) -> list[TableColumn]:
        """The columns of values, those that decide first. A unity may be in several criteria."""
        unities = ranking.unities
        if self._asked.unity_id is None:
            criteria = in_force(ranking)
            first = criteria[0].unity_id
            columns = [
                TableColumn(
                    unity=unities[one.unity_id].name,
                    divisor=None if one.divisor is None else unities[one.divisor].name,
                    criterion=one,
                    decides=True,
                    notation=notation,
                )
                for one, notation in zip(criteria, value_notations(ranking, criteria), strict=True)
            ]
        else:
            first = self._asked.unity_id
            columns = [TableColumn(unity=unities[first].name, decides=True, notation=unities[first].notation)]
        others = [unities[one] for one in self._others(ranking)]
        columns += [TableColumn(unity=one.name, notation=one.notation) for one in others]
        if is_defended:
            columns.append(
                TableColumn(unity=unities[first].name, defended=True, notation=unities[first].notation.of_points)
            )
        return columns

    def _others(self, ranking: Ranking) -> list[UnityId]:
        """The unities whose totals decide nothing in the table, and are shown in it."""
        deciding = {one.unity_id for one in in_force(ranking) if compares_totals(one)}
        if self._asked.unity_id is not None:
            deciding = {self._asked.unity_id}
        return [one for one in ranking.unities if one not in deciding][:OTHER_COLUMNS_MAX]

    async def _defended(self, competitor_ids: Items[CompetitorId]) -> Mapping[CompetitorId, int] | None:
        """The points that competitors lose within DEFENDED. None: the table is a past one, the unity's points do not
        expire, it counts results, or too much would have to be read."""
        live, ranking_id = self._view.live, self._ranking_id
        ranking = live.board.rankings[ranking_id]
        unity_id = self._asked.unity_id or in_force(ranking)[0].unity_id
        unity = ranking.unities[unity_id]
        if not self._at.is_present or unity.expiry is None or unity.counts is not Counts.SUM:
            return None

        async def read() -> Mapping[CompetitorId, int]:
            board, expired_by = live.board, live.boundaries[0]
            rule, unity = rule_of(board, ranking_id), board.rankings[ranking_id].unities[unity_id]
            now, until = rule.by(expired_by), rule.by(expired_by + DEFENDED)
            totals = {one: unity.totals.get(one) for one in competitor_ids}
            losses = Losses(board, ranking_id, unity_id, now=now, until=until, totals=totals)
            asked = live.tournament_id, board, losses, live.head.sequence, DEFENDED_EVENTS_MAX
            await folds.follow_losses(self._view.past, *asked)
            return {one: unity.notation.change(left, totals[one]) for one, left in losses.totals.items()}

        try:
            return await read_of_lines(live, ranking_id, read)
        except TooMuchWork:
            return None

    # ── Form ────────────────────────────────────────────────────────────────────────────────────────────

    async def _know_sums(self, sequence: Sequence) -> None:
        """Looks up the sums that recent results are made of, unless the board is a past one after many events."""
        if self._at.is_present or sequence <= FORM_EVENTS_MAX:
            await self._at.know_sums(self._ranking_id)

    async def _forms(self, competitor_ids: Items[CompetitorId]) -> Mapping[CompetitorId, list[RecentResult]]:
        """The recent results in the unity shown."""
        unity_id, sums = self._unity_id, self._at.sums(self._ranking_id)
        if sums is None or looked_at(sums, unity_id, competitor_ids) > FORM_SUMS_SHOWN_MAX:
            return {}
        forms = await forms_of(Forms(self._board, sums, unity_id, competitor_ids, FORM_LAST), competitor_ids)
        outcomes = outcomes_by_amount(self._ranking.scorings, unity_id)
        counting = [] if outcomes else self._counting()

        def result(competitor_id: CompetitorId, one: CompetitionSum) -> RecentResult:
            counted = [name for it, name in counting if sums.sum(it, competitor_id, one.competition_id)]
            return RecentResult(one.sum, next(iter(counted), None) if counting else _COUNTED.get(outcomes.get(one.sum)))

        results = await all_of([result(its, one) for one in found] for its, found in forms.items())
        return dict(zip(forms, results, strict=True))

    def _counting(self) -> list[tuple[UnityId, str]]:
        """The unities that count results of one outcome, with their names; none where such results have halves."""
        ranking = self._ranking
        counting = {
            award.unity_id
            for scoring in ranking.scorings
            for award in scoring.awards
            if award.value == "outcome" and len(award.outcomes) == 1
        }
        halves = ranking.unities[self._unity_id].notation.decimals > 0
        return [] if halves else [(one, unity.name) for one, unity in ranking.unities.items() if one in counting]

    async def _gained(
        self, last: _Last | None, competitor_ids: Items[CompetitorId]
    ) -> Mapping[CompetitorId, int | None]:
        sums, unity_id = self._at.sums(self._ranking_id), self._unity_id
        is_sum = self._ranking.unities[unity_id].counts is Counts.SUM
        if not self._asked.form or last is None or sums is None or not is_sum:
            return {}
        together = last.together if len(last.together) <= GAINED_TOGETHER_MAX else [last.competition_id]

        def gained(one: CompetitorId) -> int | None:
            given = [amount for its in together if (amount := sums.sum(unity_id, one, its)) is not None]
            return sum(given) if given else None

        return dict(zip(competitor_ids, await all_of(map(gained, competitor_ids)), strict=True))

    def _zones(self, ranking: Ranking) -> list[TableZone]:
        """Those that are declared; none in a table of only some competitors, or in another order."""
        asked = self._asked
        is_whole = asked.tag is None and asked.find is None and asked.unity_id in (None, _sole(ranking))
        return zones_of(ranking.zones) if is_whole else []

    def _footnotes(
        self, ranking: Ranking, columns: Items[TableColumn], competitor_ids: Items[CompetitorId]
    ) -> list[Footnote]:
        """The deductions from totals that are shown. None where recent results are not looked up."""
        sums = self._at.sums(self._ranking_id)
        if not self._asked.form or sums is None or not sums.deductions:
            return []
        numbers = {column.unity: number for number, column in reversed([*enumerate(columns)]) if not column.defended}
        places = {one: place for place, one in enumerate(competitor_ids)}
        found = [
            (numbers[unity.name], one)
            for one in sorted(sums.deductions, key=lambda one: places.get(one.competitor_id, 0))
            if one.competitor_id in places
            and (unity := ranking.unities[one.unity_id]).name in numbers
            and unity.sort is Sort.DESC
        ]
        marks = zip(ascii_lowercase, found, strict=False)
        return [Footnote(mark, *one) for mark, one in marks] if len(found) <= FOOTNOTES_MAX else []

    # ── Movement ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _is_by_log(self) -> bool:
        """Whether the table shows the log's clock, because an event is named."""
        return self._asked.at is not None and self._asked.on is None

    async def _last(self, sequence: Sequence) -> _Last | None:
        """The competition that gave points last. None: there is none, or too much would have to be read."""
        last = None if self._is_by_log else await self._last_by_date(sequence)
        if last is not None or self._asked.on is not None:
            return last
        asked = self._view.live.tournament_id, self._ranking_id, sequence, self._board
        found = await searches.last_competition(self._view.past, *asked)
        if found is None:
            return None
        one, competition = found.competition_id, self._board.competitions.get(found.competition_id)
        date, in_round = (None, None) if competition is None else (competition.date, competition.in_round)
        together, first = list[CompetitionId](), found.first
        if in_round is not None:
            await self._know_sums(sequence)  # of a table without recent results, nobody has yet
            if (sums := self._at.sums(self._ranking_id)) is not None:
                last_given = [*islice(reversed(sums.given), COMPETITIONS_LOOKED_AT_MAX)]
                newest_first = [[given] for given in last_given if given not in self._board.voided]
                together = await in_time_slices(self._of_round(in_round, newest_first))
                first = min([first, *[sums.given[given].sequence for given in together]])
        return _Last(competition_id=one, together=together or [one], took_place=date, first=first)

    async def _last_by_date(self, sequence: Sequence) -> _Last | None:
        """The one that took place last. None: there is none, it is not known, or a current table has no dates."""
        sums, board = self._at.sums(self._ranking_id), self._board
        if sums is None:
            return None
        has_dates, by_time, entered = self._asked.on is not None, dict[datetime, list[CompetitionId]](), None
        most = len(sums.given) if self._is_compared_by_date(sequence) else COMPETITIONS_LOOKED_AT_MAX
        given = [*islice(reversed(sums.given), most)][::-1]  # in the order of their first points
        async for some in in_chunks(board.competitions.held(given), WALK_CHUNK_ITEMS):
            for one, competition in some:
                if competition.voided_at is not None:
                    continue
                by_time.setdefault(sums.took_place(one, competition.date), []).append(one)
                has_dates, entered = has_dates or competition.date is not None, one
        if not by_time or not has_dates:
            return None
        newest_first = sorted(by_time, reverse=True)
        took_place, last = newest_first[0], by_time[newest_first[0]][-1]
        if (in_round := board.competitions[last].in_round) is not None:
            together = await in_time_slices(self._of_round(in_round, [by_time[at] for at in newest_first]))
        else:
            its_day = takewhile(lambda at: self._day(at) == self._day(took_place), newest_first)
            together = [one for at in its_day for one in by_time[at]]
        return _Last(
            competition_id=last,
            together=together,
            took_place=took_place,
            began=sums.took_place(together[-1], board.competitions[together[-1]].date),
            first=min([sums.given[one].sequence for one in together]),
            entered=entered,
        )

    def _day(self, moment: datetime) -> date:
        """The day of the tournament."""
        return in_zone(moment, self._view.zone).date()

    def _of_round(
        self, in_round: int | str, newest_first: Iterable[Items[CompetitionId]]
    ) -> Steps[list[CompetitionId]]:
        """The competitions of a round, newest first, up to the first moment without any."""
        found = list[CompetitionId]()
        for of_moment in newest_first:
            number = len(found)
            for one in of_moment:
                competition = self._board.competitions.get(one)  # None: its event was set aside
                if competition is not None and competition.in_round == in_round:
                    found.append(one)
                yield
            if len(found) == number:
                break
        return found

    async def _earlier(self, sequence: Sequence, last: _Last | None) -> PastBoardAt | None:
        """The board that lines are compared with. None: there is none, or nobody had points in the ranking before the
        last competition."""
        asked = self._asked
        if asked.since is not None:
            return await self._before(asked.since)
        if asked.since_on is not None:
            return await self._before(sequence, asked.since_on)
        if last is None:
            return None
        earlier = None
        if last.began is not None and self._is_compared_by_date(sequence):
            try:
                earlier = await self._before(sequence, max(last.began, FIRST_TIME + _MICROSECOND) - _MICROSECOND)
            except TooMuchWork:
                if asked.on is not None:
                    raise
        if earlier is None:
            earlier = await self._before(await self._before_request(last.first))
        return earlier if _has_points(earlier.board.rankings[self._ranking_id]) else None

    def _is_compared_by_date(self, sequence: Sequence) -> bool:
        return self._asked.on is not None or (not self._is_by_log and sequence <= MOVED_BY_DATE_EVENTS_MAX)

    async def _before(self, sequence: Sequence, on: datetime | None = None) -> PastBoardAt:
        return PastBoardAt(self._view, await self._view.at(self._ranking_id, AtSequence(sequence), on))

    async def _before_request(self, sequence: Sequence) -> Sequence:
        """The event before the request to which this one belongs: within one, totals need not be those of its lines."""
        return await searches.before_request(self._view.past, self._view.live.tournament_id, sequence)

    async def _positions(
        self, earlier: PastBoardAt | None, last: _Last | None, competitor_ids: Items[CompetitorId]
    ) -> Positions:
        """The positions in the same table then, of those who had a place in it."""
        if earlier is None:
            return {}
        is_chosen = (self._asked.since, self._asked.since_on) != (None, None)
        ranking = earlier.board.rankings[self._ranking_id]
        first = ranking.unities.get(self._asked.unity_id or in_force(ranking)[0].unity_id)
        if first is not None and first.counts_results:
            competitor_ids = [one for one in competitor_ids if first.notation.shown(first.totals.get(one)) is not None]
        elif last is not None and earlier.on is not None and not is_chosen:
            competitor_ids = await self._listed_before(last, ranking, competitor_ids)
        return await positions_at(earlier, self._ranking_id, self._asked.unity_id, self._asked.tag, competitor_ids)

    async def _listed_before(
        self, last: _Last, earlier: Ranking, competitor_ids: Items[CompetitorId]
    ) -> Items[CompetitorId]:
        """Those who had points then, or were in the list when the last round began: a table by dates has the list of
        now."""
        unities = earlier.unities.values()
        without = {one for one in competitor_ids if not any(unity.totals.get(one) for unity in unities)}
        if not without:
            return competitor_ids
        before = await self._view.board_after(await self._before_request(last.first))
        listed = before.rankings[self._ranking_id].participants
        return [one for one in competitor_ids if one not in without or one in listed]

    # ── Competitions ────────────────────────────────────────────────────────────────────────────────────

    async def _competitions(self, sequence: Sequence, last: _Last | None) -> ShownCompetitions:
        """The competitions around the moment, with their points in the unity shown. Empty if the log would have to be
        read for them."""
        view, board, ranking = self._view, self._board, self._ranking
        sums = self._at.sums(self._ranking_id)
        if not self._asked.form or sums is None:
            return ShownCompetitions()
        around, number = Around(board, ranking, sums, view.hidden, self._asked.on), len(board.competitions)
        looked_at = board.competitions.run(number - COMPETITIONS_LOOKED_AT_MAX + 1, number)
        await all_of(starmap(around.look_at, looked_at))
        others = [one for one in view.rankings_in(board) if one != self._ranking_id]
        taken_place: Collection[CompetitionId] = ()
        if others and around.begun:
            asked = view.live.tournament_id, board, sequence, self._at.clock, others, around.begun
            taken_place = await searches.taken_place(view.past, *asked)
        latest, entered = (None, None) if last is None else (last.competition_id, last.entered)
        results, fixtures = around.results, around.fixtures(taken_place)
        named = dict.fromkeys(one for one in (*results, *fixtures, latest, entered) if one is not None)
        ids = [one for one in named if one in board.competitions]
        shown = dict(zip(ids, await all_of(around.shown(one, self._unity_id) for one in ids), strict=True))
        late = None if entered is None else shown.get(entered)
        return ShownCompetitions(
            latest=None if latest is None else shown.get(latest),
            late=None if late is None or late.entered_late is None else late,
            results=[shown[one] for one in results],
            fixtures=[shown[one] for one in fixtures],
        )


def _of_unity(line: Standing) -> Classified:
    """The line of a unity, as that of a classification by this unity alone."""
    return Classified(line.competitor_id, line.position, (line.total,), None)


def _sole(ranking: Ranking) -> UnityId | None:
    """The unity whose totals alone decide the classification."""
    first, *more = in_force(ranking)
    return None if more or not compares_totals(first) else first.unity_id


def _has_points(ranking: Ranking) -> bool:
    return any(any(one.totals.column) for one in ranking.unities.values())
