"""Unities that count the best or the last result, or a sum that nobody has without points, beside a model that is
written from the documentation alone: a line counts if its event is not undone, its competition not voided, and its
competitor not struck there."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as Items
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.events import Event, Recorded
from engine.domain.lines import rule_of
from engine.domain.options import UnityOptions, options_of_main_unity
from engine.domain.rejudging import impossible
from engine.domain.steps import finished
from engine.domain.terms import (
    ActorId,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Sequence,
    Sort,
    TournamentId,
    UnityId,
)
from engine.log import codec
from projections.answers.explainer import Explainer, Place
from projections.board.board import Board, Revisions, fold, what_counts
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.board.order import OrderedLines
from projections.board.parts import parts_of, take_part
from projections.board.results import Last
from projections.live.given_results import read_results
from projections.live.pool import LivePool
from projections.live.sums import read_sums
from projections.past.comparison import without
from projections.past.effects import Effects
from projections.past.history import DeltaLine, Historian
from projections.past.leaders import PublishedLeaders, TrueLeaders
from projections.past.timeline import Timeline
from projections.past.world_clock import WorldClock, add_special, drop_totals
from projections.tables.tables import Touched, touch
from tests.histories import OPENED, passage_of, result_histories, sums_of, unhurried
from tests.positions import standings
from tests.projections.classified import live_at

BEGIN: Final = datetime(2024, 3, 1, tzinfo=UTC)
TOURNAMENT: Final = TournamentId(1)

Key = tuple[RankingId, UnityId, CompetitorId]


def recorded_of(history: Iterable[Event]) -> list[Recorded]:
    return [
        Recorded(Sequence(n), BEGIN + timedelta(minutes=n), ActorId(0), None, event)
        for n, event in enumerate([OPENED, *history], start=1)
    ]


class Model:
    """All results of a log, and what of them counts."""

    def __init__(self) -> None:
        self.how: dict[UnityId, tuple[Counts, Sort]] = {}
        self.of_results: set[UnityId] = set()
        self.given: list[tuple[Sequence, int | None, Key, int]] = []
        self.undone: set[Sequence] = set()
        self.voided: set[int] = set()
        self.struck: set[tuple[int, int]] = set()

    def take(self, recorded: Recorded) -> None:
        match recorded.event:
            case events.RankingCreated() as e:
                self._declare(e.main_unity_id, options_of_main_unity(e), e.main_unity_sort)
            case events.UnityAdded() as e:
                self._declare(e.unity_id, e, e.sort)
            case events.PointsAdded() as e:
                assert self.of_results.isdisjoint(d.unity_id for d in e.deltas)
                for result in (*e.deltas, *e.results):
                    key = e.ranking_id, result.unity_id, result.competitor_id
                    self.given.append((recorded.sequence, e.competition_id, key, result.amount))
            case events.PointsReversed() as e if e.undone is not None:
                (self.undone.add if e.undone else self.undone.discard)(e.reverses)
            case events.CompetitionVoided() as e:
                self.voided.add(e.competition_id)
            case events.CompetitionUnvoided() as e:
                self.voided.discard(e.competition_id)
            case events.CompetitorsStruck() as e:
                self.struck |= {(e.competition_id, who) for who in e.competitors}
            case events.CompetitorsUnstruck() as e:
                self.struck -= {(e.competition_id, who) for who in e.competitors}

    def _declare(self, unity_id: UnityId, options: UnityOptions, sort: Sort) -> None:
        self.how[unity_id] = options.counts, sort
        if options.counts is not Counts.SUM or options.absent:
            self.of_results.add(unity_id)

    def counting(self, key: Key) -> list[tuple[Sequence, int | None, int]]:
        return [
            (sequence, competition, result)
            for sequence, competition, its, result in self.given
            if its == key
            and sequence not in self.undone
            and competition not in self.voided
            and (competition, key[2]) not in self.struck
        ]

    def reached(self, key: Key) -> int:
        """Since which event the total is what it is; 0: it never changed."""
        run = [(sequence, result) for sequence, _, result in self.counting(key)]
        if self.how[key[1]][0] is Counts.SUM:
            sums = Counter[Sequence]()
            for sequence, amount in run:
                sums[sequence] += amount
            if sums and key[1] in self.of_results:
                sums[min(sums)] = 1  # from no total to one
            return max([sequence for sequence, amount in sums.items() if amount], default=0)
        total = self.total(key)
        if self.how[key[1]][0] is Counts.LAST:
            run = list(dict(run).items())  # of an event, the last one: as with sums, what it ends with counts
            while any(result != total for _, result in run):
                run.pop(0)
        return min([sequence for sequence, result in run if result == total], default=0)

    def total(self, key: Key, shown: Any = lambda _sequence, _competition: True) -> int | None:
        counting = [result for sequence, competition, result in self.counting(key) if shown(sequence, competition)]
        counts, sort = self.how[key[1]]
        if not counting:
            return None
        if counts is Counts.LAST:
            return counting[-1]
        if counts is Counts.SUM:
            return sum(counting)
        return max(counting) if sort is Sort.DESC else min(counting)


def of_results(board: Board) -> list[Key]:
    """All lines in unities that count results."""
    return [
        (ranking_id, unity_id, competitor_id)
        for ranking_id, ranking in board.rankings.items()
        for unity_id in ranking.of_results
        for competitor_id in ranking.participants
    ]


def shown_on(board: Board, key: Key) -> int | None:
    unity = board.rankings[key[0]].unities[key[1]]
    return unity.notation.shown(unity.totals.get(key[2]))


def settled(history: list[Event], run: Items[Recorded], number: int) -> bool:
    """Whether no reversal of the same request follows this event: between them, nobody but `at` looks."""
    following = run[number + 1].event if number + 1 < len(run) else None
    return not isinstance(following, events.PointsReversed)


@unhurried
@given(result_histories())
def test_totals_are_those_of_the_results_that_count(history: list[Event]) -> None:
    board, model, run = Board(), Model(), recorded_of(history)
    for number, recorded in enumerate(run):
        before = {u: unity.version for r in board.rankings.values() for u, unity in r.unities.items()}
        assert impossible(board, recorded.sequence, recorded.event) is None
        kind, body = recorded.event.tag, codec.text_of(recorded.event)
        assert codec.decode(kind, body) == recorded.event
        fold(board, Revisions(), recorded)
        model.take(recorded)
        if isinstance(recorded.event, events.Points):
            named = {line.unity_id for line in events.changed_by(recorded.event)}
            for unity_id, unity in board.rankings[recorded.event.ranking_id].unities.items():
                assert unity.version == before[unity_id] + (unity_id in named)
        if settled(history, run, number):
            for key in of_results(board):
                assert shown_on(board, key) == model.total(key)


@unhurried
@given(result_histories(), st.data())
def test_it_is_known_since_when_totals_are_what_they_are(history: list[Event], data: st.DataObject) -> None:
    """Whether the sums were read at the end or before, then followed; where they could not be, they are not there."""
    run, model = recorded_of(history), Model()
    for recorded in run:
        model.take(recorded)
    moment = data.draw(st.integers(0, len(run)))
    for ranking_id in folded(run[:moment]).rankings:
        unities = frozenset(folded(run).rankings[ranking_id].unities)
        live = live_at(run[:moment])

        async def read(_: Sequence, counts: WhatCounts) -> CompetitionSums:
            return sums_of(run[:moment], msgspec.structs.replace(counts, first=unities))  # noqa: B023

        asyncio.run(read_sums(live, ranking_id, read))
        live.go_on(*run[moment:])
        again = sums_first(run, live.board, ranking_id, unities)
        for unity_id in unities:
            for competitor_id in live.board.rankings[ranking_id].participants:
                reached = again.reached(unity_id, competitor_id)
                assert reached == model.reached((ranking_id, unity_id, competitor_id))
        assert live.sums.get(ranking_id) in (None, again)


@unhurried
@given(result_histories(), st.data())
def test_results_that_a_live_follows_are_those_that_count(history: list[Event], data: st.DataObject) -> None:
    """They decide what a total falls back to. Events are folded while they are read."""
    run, model = recorded_of(history), Model()
    for recorded in run:
        model.take(recorded)
    live = live_at(run[: data.draw(st.integers(0, len(run)))])
    live.waiting.extend(run[live.head.sequence :])
    begun = list(live.board.rankings)
    asyncio.run(read_results(cast(LivePool, live), live, begun))
    live.go_on(*live.waiting)
    for ranking_id, unity_id, competitor_id in of_results(live.board):
        if ranking_id in begun:
            followed = live.results.get(ranking_id)
            assert followed is not None
            counting = [sequence for sequence, _, _ in model.counting((ranking_id, unity_id, competitor_id))]
            assert sorted(given.sequence for given in followed.of(unity_id, competitor_id)) == counting


def sums_first(run: list[Recorded], board: Board, ranking_id: RankingId, first: frozenset[UnityId]) -> CompetitionSums:
    return sums_of(run, msgspec.structs.replace(what_counts(board, ranking_id, None), first=first))


@unhurried
@given(result_histories())
def test_lines_without_a_total_share_the_last_position(history: list[Event]) -> None:
    board = folded(recorded_of(history))
    for ranking in board.rankings.values():
        for unity in ranking.unities.values():
            order = OrderedLines(ranking.participants, unity.totals, unity.sort)
            lines = order.standings(0, len(order))
            assert lines == standings(ranking.participants, unity.totals, unity.sort)
            with_total = [line for line in lines if unity.notation.shown(line.total) is not None]
            assert lines[: len(with_total)] == with_total
            assert {line.position for line in lines[len(with_total) :]} <= {len(with_total) + 1}
            totals = [unity.notation.shown(line.total) for line in with_total]
            assert totals == sorted(totals, key=lambda total: total or 0, reverse=unity.sort is Sort.DESC)


@unhurried
@given(result_histories())
def test_snapshots_and_rows_have_the_results(history: list[Event]) -> None:
    run, board = recorded_of(history), Board()
    touched = Touched(board)
    for recorded in run:
        touch(touched, recorded.event)
        fold(board, Revisions(), recorded)
    loaded = Board()
    for part in parts_of(board):
        for _ in take_part(part, loaded):
            pass
    assert loaded == board
    for ranking_id, unity_id, competitor_id in of_results(board):
        if board.rankings[ranking_id].unities[unity_id].totals.get(competitor_id):
            assert competitor_id in touched.totals[ranking_id][unity_id]


@unhurried
@given(result_histories(), st.data())
def test_the_past_tells_the_same_totals(history: list[Event], data: st.DataObject) -> None:
    run = recorded_of(history)
    board = folded(run)
    for ranking_id, ranking in board.rankings.items():
        historian = Historian(Board(), ranking_id)
        last: dict[tuple[UnityId, CompetitorId], int | None] = {}
        for recorded in run:
            for line in finished(historian.lines(recorded)):
                if isinstance(line, DeltaLine):
                    last[line.unity_id, line.competitor_id] = line.total
                    counted = ranking.unities[line.unity_id].counts is Counts.SUM
                    assert (line.delta is None) is not counted
        for (unity_id, competitor_id), total in last.items():
            unity = ranking.unities[unity_id]
            assert total == unity.notation.shown(unity.totals.get(competitor_id))
        going_back(run, board, ranking_id)
        if ranking.of_results and len(ranking.participants):
            unity_id = data.draw(st.sampled_from(sorted(ranking.of_results)))
            competitor_id = data.draw(st.sampled_from(list(ranking.participants)))
            explainer = Explainer(Board(), ranking_id, unity_id, competitor_id, ranking.unities[unity_id].notation)
            place = explainer.place
            for recorded in run:
                step = finished(explainer.step(recorded))
                if step is not None:
                    assert Place(step.position_before, step.total_before) == place
                    place = Place(step.position_after, step.total)
            assert place == explainer.place
            assert place.total == shown_on(board, (ranking_id, unity_id, competitor_id))


def going_back(run: list[Recorded], board: Board, ranking_id: RankingId) -> None:
    """A passage folds forwards to the totals of its end, and back to those of its beginning."""
    made = Board()
    rest = iter(run)
    while ranking_id not in made.rankings:
        recorded = next(rest)
        fold(made, Revisions(), recorded)
    found = passage_of(made, recorded.sequence, rest, ranking_id, len(run))
    ranking = found.board.rankings[ranking_id]
    totals = {(c, u): unity.totals.get(c) for u, unity in ranking.unities.items() for c in ranking.participants}
    begin, effects = dict(totals), Effects(ranking)
    steps = [[d for d in effects.of(one.event) if (d.competitor_id, d.unity_id) in totals] for one in found.points]  # type: ignore[arg-type]
    for deltas in steps:
        for delta in deltas:
            totals[delta.competitor_id, delta.unity_id] += delta.amount
    end = board.rankings[ranking_id].unities
    assert totals == {(c, u): end[u].totals.get(c) for c, u in totals}
    for deltas in reversed(steps):
        for delta in deltas:
            totals[delta.competitor_id, delta.unity_id] -= delta.amount
    assert totals == begin


@unhurried
@given(result_histories(), st.integers(0, 60))
def test_the_worlds_clock_shows_the_results_that_had_taken_place(history: list[Event], minutes: int) -> None:
    run, model = recorded_of(history), Model()
    board = folded(run)
    for recorded in run:
        model.take(recorded)
    on = BEGIN + timedelta(minutes=minutes)
    dates = {c: one.date for c, one in board.competitions.items() if one.date is not None}

    def shown(sequence: Sequence, competition: int | None) -> bool:
        date = dates.get(competition)  # type: ignore[call-overload]
        return (BEGIN + timedelta(minutes=sequence) if date is None else date) <= on

    clock = WorldClock(board, on, Sequence(min(minutes, len(run))))
    expected = {key: model.total(key, shown) for key in of_results(board)}
    timelines = {ranking_id: Timeline(board, ranking_id) for ranking_id in board.rankings}
    for ranking_id, timeline in timelines.items():
        for recorded in run:
            timeline.follow(recorded)  # type: ignore[arg-type]
        for (c, u), total in kept_by(timeline, on).items():
            if (ranking_id, u, c) in expected:
                assert board.rankings[ranking_id].unities[u].notation.shown(total) == expected[ranking_id, u, c]
        drop_totals(board, ranking_id, board.rankings[ranking_id].special)
        last = Last()
        for recorded in run:
            add_special(board.rankings[ranking_id], rule_of(board, ranking_id), last, recorded, on, clock)
    assert {key: shown_on(board, key) for key in expected} == expected


def kept_by(timeline: Timeline, on: datetime) -> dict[tuple[CompetitorId, UnityId], int]:
    totals: dict[tuple[CompetitorId, UnityId], int] = {}
    for step in finished(timeline.steps()):
        if step.at <= on:
            for named, delta in step.deltas.items():
                totals[named] = totals.get(named, 0) + delta
    return totals


@unhurried
@given(result_histories())
def test_both_clocks_end_with_the_leaders_of_now(history: list[Event]) -> None:
    """Nobody leads without a result."""
    run = recorded_of(history)
    for ranking_id, ranking in folded(run).rankings.items():
        for unity_id in ranking.of_results:
            unity = ranking.unities[unity_id]
            lines = standings(ranking.participants, unity.totals, unity.sort)
            first = tuple(sorted(line.competitor_id for line in lines if line.position == 1 and line.total))
            published = PublishedLeaders(TOURNAMENT, ranking_id, unity_id, None)
            finished(published.follow(run))
            finished(published.finish())
            true = TrueLeaders(folded(run), ranking_id, unity_id, None)
            for recorded in run:
                true.follow(recorded)
            finished(true.finish())
            for found in published.reigns, true.reigns:
                for reign in list(found)[-1:]:
                    assert reign.competitors == first


@unhurried
@given(result_histories(), st.data())
def test_what_if_counts_the_results_that_are_left(history: list[Event], data: st.DataObject) -> None:
    run, board = recorded_of(history), Board()
    all_of = folded(run)
    if not all_of.competitions:
        return
    left_out = {data.draw(st.sampled_from(list(all_of.competitions)))}
    left = [
        msgspec.structs.replace(one, event=event)
        for one in run
        if (event := without(one.event, left_out, ())) is not None
    ]
    model = Model()
    for recorded in left:
        fold(board, Revisions(), recorded)
        model.take(recorded)
    for ranking_id in board.rankings:
        drop_totals(board, ranking_id, board.rankings[ranking_id].special)
        last = Last()
        for recorded in left:
            add_special(board.rankings[ranking_id], rule_of(board, ranking_id), last, recorded, BEGIN)
    for key in of_results(board):
        assert shown_on(board, key) == model.total(key)


def folded(run: Iterable[Recorded]) -> Board:
    board = Board()
    for recorded in run:
        fold(board, Revisions(), recorded)
    return board


# ── Many results at once ────────────────────────────────────────────────────────────────────────────────

MANY: Final = 1_000
CALLS_MAX: Final = 13
"""Python functions that are entered to fold a result. Nobody else has a turn while a block of 10,000 is folded."""


def many_at_once() -> list[Recorded]:
    """A ranking in which all get a result in the same competition, twice; the first who reached it stands ahead."""
    ids = tuple(map(CompetitorId, range(1, MANY + 1)))
    ranking_id, best, race = RankingId(1), UnityId(11), CompetitionId(21)
    first = events.Criterion(unity_id=best, first=True)

    def given(result: int) -> Event:
        scored = tuple([events.Scored(one, best, result) for one in ids])
        return events.PointsAdded(ranking_id=ranking_id, competition_id=race, deltas=(), results=scored)

    return recorded_of(
        [
            *[events.CompetitorRegistered(competitor_id=one, name=f"{one}") for one in ids],
            events.RankingCreated(
                ranking_id=ranking_id,
                name="All",
                participants=ids,
                main_unity_id=best,
                main_unity_name="best",
                main_unity_counts=Counts.BEST,
            ),
            events.ClassificationDeclared(ranking_id=ranking_id, criteria=(first,)),
            events.CompetitionAdded(competition_id=race, group_id=1, participants=ids, started_at=BEGIN),
            given(5),
            given(7),
        ]
    )


def test_folding_many_results_enters_few_functions_for_each() -> None:
    *before, last = many_at_once()
    live, ranking_id = live_at(before), RankingId(1)
    asyncio.run(live.know_sums(ranking_id))
    asyncio.run(read_results(cast(LivePool, live), live, [ranking_id]))
    entered: Counter[str] = Counter()
    sys.setprofile(lambda _frame, what, _: entered.update([what]))
    try:
        live.go_on(last)
    finally:
        sys.setprofile(None)
    assert shown_on(live.board, (ranking_id, UnityId(11), CompetitorId(1))) == 7
    assert entered["call"] <= CALLS_MAX * MANY


def test_others_get_their_turn_while_results_are_put_in_order_of_time() -> None:
    run = many_at_once()
    timeline = Timeline(folded(run), RankingId(1))
    for recorded in run:
        timeline.follow(recorded)
    turns = 0
    for _ in timeline.steps():
        turns += 1
    assert turns >= 2 * MANY
