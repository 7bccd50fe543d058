"""Imports that are undone, corrected and imported again, with competitions voided, competitors struck and points undone
in between, in any order: what counts is what a naive model says."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct, field

from api.desk.desk import Desk
from api.imports import undoing
from api.imports.competitions import read_competitions
from api.imports.importer import BrokenOff, Imported, import_lines
from api.imports.rows import read_csv
from api.imports.undoing import plan_undoing, undo_import
from engine.domain import commands, events
from engine.domain.commands import Command
from engine.domain.errors import Refusal
from engine.domain.events import Delta
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from engine.log import import_runs, reading
from engine.process.time_slices import in_time_slices
from projections.live.tournament import LiveTournament
from tests.api.imports.importing import Leaving
from tests.bounds import Bounds
from tests.desks import recorded, submit, turns_at_calls
from tests.projections.test_tables import on_the_database
from tests.projections.test_verification import verified
from tests.tournaments import open_new_tournament

RANKINGS: Final = tuple(map(RankingId, (100_010, 100_020)))
PLAYERS: Final = tuple(map(CompetitorId, (100_001, 100_002)))
NEVER: Final = 10_000
OTHERS: Final = ""
"""In place of the import's name: somebody added these points by hand."""

# ── What is asked ───────────────────────────────────────────────────────────────────────────────────────


class Import(Struct, frozen=True):
    """`scores`: of the days on which the two players meet; None: they have not played yet. `cut`: how many requests are
    sent before the database goes away; then it is imported again."""

    ranking_id: RankingId
    scores: dict[int, int | None]
    cut: int = NEVER


class UndoImport(Struct, frozen=True):
    """`which` of the imports so far, modulo their number; `cut` as for Import."""

    which: int
    cut: int = NEVER


class Add(Struct, frozen=True):
    """Points by hand."""

    ranking_id: RankingId
    which: int


class Record(Struct, frozen=True):
    """A result by hand."""

    which: int
    score: int


class Void(Struct, frozen=True):
    which: int


class Strike(Struct, frozen=True):
    which: int
    competitor_id: CompetitorId


class Reverse(Struct, frozen=True):
    which: int


Ask = Import | UndoImport | Add | Record | Void | Strike | Reverse
some = st.integers(0, 5)
cuts = st.sampled_from([NEVER, NEVER, 0, 1, 2, 3])
rankings = st.sampled_from(RANKINGS)
asks = st.lists(
    st.builds(Import, rankings, st.dictionaries(st.integers(1, 3), st.none() | st.integers(0, 1), min_size=1), cuts)
    | st.builds(UndoImport, some, cuts)
    | st.builds(Add, rankings, some)
    | st.builds(Record, some, st.integers(0, 1))
    | st.builds(Void, some)
    | st.builds(Strike, some, st.sampled_from(PLAYERS))
    | st.builds(Reverse, some),
    min_size=3,
    max_size=16,
)

# ── The naive model ─────────────────────────────────────────────────────────────────────────────────────


class Points(Struct):
    """`by`: the import that gave them."""

    ranking_id: RankingId
    amounts: dict[CompetitorId, int]
    by: str
    undone: bool = False


class Match(Struct):
    """`score`: of the line that added it. `results`: those that imports recorded later, and who did."""

    score: int | None
    by: str
    result: int | None
    results: list[tuple[int, str]] = field(default_factory=list)
    voided: bool = False
    struck: set[CompetitorId] = field(default_factory=set)
    points: list[Points] = field(default_factory=list)


class Missing(Struct):
    """What a line adds: the match, unless it is there, its result, if that is a fixture, and points."""

    day: int
    match: Match | None
    result: bool
    points: bool


class Naive(Struct):
    """What was added, and what became of it."""

    days: dict[int, list[Match]] = field(default_factory=dict)
    undone: set[str] = field(default_factory=set)
    names: list[str] = field(default_factory=list)

    @property
    def matches(self) -> list[Match]:
        return [match for day in sorted(self.days) for match in self.days[day]]

    def missing(self, ask: Import) -> list[Missing] | None:
        """What is still to be imported. None: the file must be refused."""
        found: list[Missing] = []
        for day, score in ask.scores.items():
            match = next(iter(self.days.get(day, [])[-1:]), None)
            if match is None or (match.voided and match.by in self.undone):
                found.append(Missing(day, None, result=False, points=score is not None))
                continue
            said = self.said(match)
            its = [one for one in match.points if one.ranking_id == ask.ranking_id and one.by]
            is_given = bool(its) and not (its[-1].undone and its[-1].by in self.undone)
            if (said is not None and said != score) or (is_given and its[-1].amounts != _amounts(score)):
                return None
            result, points = said != score, score is not None and not is_given
            if (result and match.result is not None) or (points and (match.voided or match.struck)):
                return None
            if result or points:
                found.append(Missing(day, match, result=result, points=points))
        return found

    def said(self, match: Match) -> int | None:
        """The score that imports gave the match, unless that was taken back."""
        if match.score is None and match.results:
            score, by = match.results[-1]
            return None if by in self.undone and match.result != score else score
        return match.score

    def take_import(self, ask: Import, missing: list[Missing], name: str) -> None:
        for one in missing:
            match, score = one.match, ask.scores[one.day]
            if match is None:
                match = Match(score, name, score)
                self.days.setdefault(one.day, []).append(match)
            if one.result and score is not None:
                match.result = score
                match.results.append((score, name))
            if one.points:
                match.points.append(Points(ask.ranking_id, _amounts(score), name))
        if missing and name not in self.names:
            self.names.append(name)

    def take_undoing(self, name: str) -> None:
        own = [match for match in self.matches if match.by == name and not match.voided]
        voided = [match for match in own if all(one.by == name or one.undone for one in match.points)]
        points = [(match, one) for match in self.matches for one in match.points if one.by == name and not one.undone]
        reversed_ = [one for match, one in points if not match.voided and match not in voided]
        for match in self.matches:
            if not match.voided and any(by == name and score == match.result for score, by in match.results):
                match.result = None
        for match in voided:
            match.voided = True
        for one in reversed_:
            one.undone = True
        self.undone.add(name)

    def totals(self) -> dict[RankingId, dict[CompetitorId, int]]:
        found = {ranking_id: Counter[CompetitorId]() for ranking_id in RANKINGS}
        for match in self.matches:
            for one in match.points:
                for competitor_id, amount in one.amounts.items():
                    if not (one.undone or match.voided or competitor_id in match.struck):
                        found[one.ranking_id][competitor_id] += amount
        return {ranking_id: {one: totals[one] for one in PLAYERS} for ranking_id, totals in found.items()}


def _amounts(score: int | None) -> dict[CompetitorId, int]:
    if score is None:
        return {}
    return {PLAYERS[0]: 3, PLAYERS[1]: 0} if score else dict.fromkeys(PLAYERS, 1)


# ── The service ─────────────────────────────────────────────────────────────────────────────────────────


def _nobody(_done: int, _of: int) -> None: ...


def score_and_points(score: int | None) -> str:
    return "," if score is None else f"{score}:0,{'|'.join(map(str, _amounts(score).values()))}"


async def import_file(desk: Any, live: LiveTournament, ask: Import) -> Imported:
    """Each day is a round, so that matches of the same two on the next day are others."""
    both = "|".join(map(str, PLAYERS))
    rows = [f"2024-03-{day:02},{day},{both},{score_and_points(score)}" for day, score in ask.scores.items()]
    file = read_csv("\n".join(["date,round,participants,score,points", *rows]).encode())
    kind = read_competitions(file, ask.ranking_id)
    return await import_lines(desk, live, kind, actor=OPERATOR, stop=asyncio.Event(), progress=_nobody)


async def undo(desk: Any, live: LiveTournament, name: str) -> None:
    planned = await plan_undoing(desk, live, name)
    await undo_import(desk, live, planned, actor=OPERATOR, stop=asyncio.Event(), progress=_nobody)


class Played:
    """A tournament, and the model of it. Matches and points of the model are those of the log, in the same order."""

    def __init__(self, desk: Desk, live: LiveTournament) -> None:
        self.desk = desk
        self.live = live
        self.naive = Naive()

    async def begin(self) -> None:
        for one in PLAYERS:
            await self.submit(commands.RegisterCompetitor(competitor_id=one, name=f"C{one}"))
        for ranking_id in RANKINGS:
            await self.submit(
                commands.CreateRanking(
                    ranking_id=ranking_id,
                    main_unity_id=UnityId(ranking_id + 1),
                    name=f"R{ranking_id}",
                    main_unity_name="points",
                    participants=PLAYERS,
                )
            )

    async def submit(self, command: Command) -> None:
        await submit(self.desk, self.live.tournament_id, command)

    async def ids(self) -> dict[CompetitionId, list[Sequence]]:
        """The competitions in the order of their days and of the log, each with its events of points."""
        days: dict[CompetitionId, tuple[Any, int]] = {}
        points: dict[CompetitionId, list[Sequence]] = {}
        for number, event in enumerate(await recorded(self.desk.database, self.live.tournament_id), start=1):
            if isinstance(event, events.CompetitionAdded):
                days[event.competition_id] = event.started_at, number
                points[event.competition_id] = []
            elif isinstance(event, events.PointsAdded) and event.competition_id is not None:
                points[event.competition_id].append(Sequence(number))
        return {one: points[one] for one in sorted(days, key=lambda one: days[one])}

    async def take(self, ask: Ask) -> None:
        naive, ids = self.naive, await self.ids()
        matches = naive.matches
        assert len(ids) == len(matches)
        match ask:
            case Import():
                await self.take_import(ask)
            case UndoImport() if naive.names:
                name = naive.names[ask.which % len(naive.names)]
                with suppress(BrokenOff):
                    await undo(Leaving(self.desk, ask.cut), self.live, name)
                await undo(self.desk, self.live, name)
                naive.take_undoing(name)
            case Add() if matches:
                competition_id, one = self.chosen(list(ids), ask.which), self.chosen(matches, ask.which)
                amounts = {PLAYERS[0]: 7}
                if not (one.voided or PLAYERS[0] in one.struck):
                    one.points.append(Points(ask.ranking_id, amounts, OTHERS))
                deltas = tuple([Delta(c, UnityId(ask.ranking_id + 1), amount) for c, amount in amounts.items()])
                with suppress(Refusal):
                    await self.submit(
                        commands.AddPoints(ranking_id=ask.ranking_id, deltas=deltas, competition_id=competition_id)
                    )
            case Record() if matches:
                competition_id, one = self.chosen(list(ids), ask.which), self.chosen(matches, ask.which)
                await self.submit(commands.ChangeCompetition(competition_id=competition_id, result=f"{ask.score}:0"))
                one.result = ask.score
            case Void() if matches:
                competition_id, one = self.chosen(list(ids), ask.which), self.chosen(matches, ask.which)
                kind: Any = commands.UnvoidCompetition if one.voided else commands.VoidCompetition
                await self.submit(kind(competition_id=competition_id))
                one.voided = not one.voided
            case Strike() if matches:
                competition_id, one = self.chosen(list(ids), ask.which), self.chosen(matches, ask.which)
                struck = ask.competitor_id in one.struck
                kind = commands.UnstrikeCompetitors if struck else commands.StrikeCompetitors
                await self.submit(kind(competition_id=competition_id, competitors=(ask.competitor_id,)))
                one.struck ^= {ask.competitor_id}
            case Reverse() if any(ids.values()):
                sequence = self.chosen([s for of in ids.values() for s in of], ask.which)
                points = self.chosen([one for of in matches for one in of.points], ask.which)
                named = self.live.board.rankings[points.ranking_id].undone.get(sequence, sequence)
                assert (named != sequence) is points.undone
                await self.submit(commands.ReversePoints(ranking_id=points.ranking_id, sequence=named))
                points.undone = not points.undone

    async def take_import(self, ask: Import) -> None:
        missing = self.naive.missing(ask)
        before = self.live.head.sequence
        try:
            with suppress(BrokenOff):
                await import_file(Leaving(self.desk, ask.cut), self.live, ask)
            outcome = await import_file(self.desk, self.live, ask)
        except Refusal:
            assert missing is None
            assert self.live.head.sequence == before
            return
        assert missing is not None
        assert outcome.made <= len(missing)
        if missing:  # if it was cut off, what was still missing was added under the same name
            self.naive.take_import(ask, missing, await self.last_name())

    async def last_name(self) -> str:
        async with self.desk.database.connection() as connection:
            return (await import_runs.runs(connection, self.live.tournament_id))[-1].name

    @staticmethod
    def chosen(those: list[Any], which: int) -> Any:
        return those[which % len(those)]

    async def assert_same(self) -> None:
        results = [self.live.board.competitions[one].result for one in await self.ids()]
        assert results == [None if one.result is None else f"{one.result}:0" for one in self.naive.matches]
        for ranking_id, totals in self.naive.totals().items():
            unity = self.live.board.rankings[ranking_id].unities[UnityId(ranking_id + 1)]
            assert {one: unity.totals.get(one, 0) for one in PLAYERS} == totals


# A competition that was taken back, imported with another score, and then counted again by hand: the day has two.
@settings(on_the_database, max_examples=10)
@given(asks)
@example(
    [
        Import(RANKINGS[1], {1: 0}),
        UndoImport(0),
        Import(RANKINGS[1], {1: 1}),
        Void(0),
        Import(RANKINGS[1], {1: 0}),
        Import(RANKINGS[1], {1: 1}),
    ]
)
# All that an import added was voided by hand, or undone by hand, before the import was undone.
@example([Import(RANKINGS[0], {1: 0}), Void(0), UndoImport(0), Import(RANKINGS[0], {1: 1})])
@example([Import(RANKINGS[0], {1: 0}), Reverse(0), Void(0), UndoImport(0), Import(RANKINGS[0], {1: 1})])
@example([Import(RANKINGS[0], {1: 0}), Add(RANKINGS[0], 0), Reverse(0), UndoImport(0), Import(RANKINGS[0], {1: 0})])
@example([Import(RANKINGS[0], {1: 0}), Import(RANKINGS[1], {1: 0}), Void(0), UndoImport(1), UndoImport(0)])
# The score of a fixture came later, for another ranking, and was taken back, by hand or by its undoing.
@example([Import(RANKINGS[0], {1: None}), Import(RANKINGS[1], {1: 1}), UndoImport(1), Import(RANKINGS[0], {1: 0})])
@example([Import(RANKINGS[0], {1: None}), Record(0, 1), Import(RANKINGS[0], {1: 1})])
@example([Import(RANKINGS[0], {1: None}), Import(RANKINGS[0], {1: 1}), Record(0, 0), UndoImport(1), UndoImport(0)])
@example([Import(RANKINGS[0], {1: None, 2: 1}), Import(RANKINGS[0], {1: 1, 2: 1}, 1), Import(RANKINGS[0], {1: None})])
# Somebody was struck in the competition before another ranking was to get its points.
@example([Import(RANKINGS[1], {1: 1}), Strike(0, PLAYERS[0]), Import(RANKINGS[0], {1: 1})])
async def test_what_counts_after_imports_that_were_undone_is_what_a_naive_model_says(
    desk: Desk, asked: list[Ask]
) -> None:
    tournament_id = await open_new_tournament(desk.database, actor=OPERATOR)
    async with desk.live_pool.pinned(tournament_id) as live:
        played = Played(desk, live)
        await played.begin()
        for ask in asked:
            await played.take(ask)
            await played.assert_same()
    assert (await verified(desk.database)).differences == []


@asynccontextmanager
async def imported(desk: Desk) -> AsyncIterator[tuple[Played, str]]:
    """A tournament with an import of ten competitions, and its name."""
    tournament_id = await open_new_tournament(desk.database, actor=OPERATOR)
    async with desk.live_pool.pinned(tournament_id) as live:
        played = Played(desk, live)
        await played.begin()
        await played.take(Import(RANKINGS[0], dict.fromkeys(range(1, 11), 1)))
        (name,) = played.naive.names
        yield played, name


@pytest.mark.parametrize("judging", ["holds_others", "decide"])
async def test_others_get_their_turns_while_an_undoing_is_planned(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, judging: str
) -> None:
    async with imported(desk) as (played, name), turns_at_calls(monkeypatch, undoing, judging) as turns:
        assert len((await plan_undoing(desk, played.live, name)).voided) == 10
    assert len(turns) == 10
    assert all(later > earlier for earlier, later in pairwise(turns))


@pytest.mark.parametrize("times", [1, 10])
async def test_an_undoing_is_planned_again_if_others_give_points_meanwhile(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """However often that happens, it is planned."""
    async with imported(desk) as (played, name):
        plans, given = list[Any](), list[CompetitionId]()

        async def interrupted(steps: Any) -> Any:
            next(steps)
            if len(plans) < times:
                competition_id = [*await played.ids()][len(plans)]
                await played.take(Add(RANKINGS[0], len(plans)))
                given.append(competition_id)
            plans.append(await in_time_slices(steps))
            return plans[-1]

        with monkeypatch.context() as patched:
            patched.setattr(undoing, "in_time_slices", interrupted)
            planned = await plan_undoing(desk, played.live, name)
        assert len(plans) == min(times + 1, undoing.DIVIDED_ATTEMPTS_MAX)
        assert planned.kept == tuple(given)
        await played.take(UndoImport(0))
        await played.assert_same()


@pytest.mark.parametrize("divided", [True, False])
async def test_points_that_others_give_while_the_log_is_read_are_in_the_plan(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, bounds: Bounds, divided: bool
) -> None:
    bounds(DIVIDED_ATTEMPTS_MAX=int(divided))
    async with imported(desk) as (played, name):
        read = reading.all_points_of_competitions

        async def read_before(*arguments: Any) -> Any:
            async for found in read(*arguments):
                await played.take(Add(RANKINGS[0], 3))
                yield found

        with monkeypatch.context() as patched:
            patched.setattr(reading, "all_points_of_competitions", read_before)
            planned = await plan_undoing(desk, played.live, name)
        assert planned.kept == ([*await played.ids()][3],)
        assert len(planned.voided) == 9


async def test_points_for_others_do_not_lead_to_another_plan(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async with imported(desk) as (played, name):
        plans = list[Any]()

        async def interrupted(steps: Any) -> Any:
            next(steps)
            deltas = (Delta(PLAYERS[0], UnityId(RANKINGS[0] + 1), 1),)
            await played.submit(commands.AddPoints(ranking_id=RANKINGS[0], deltas=deltas))
            plans.append(await in_time_slices(steps))
            return plans[-1]

        monkeypatch.setattr(undoing, "in_time_slices", interrupted)
        assert [await plan_undoing(desk, played.live, name)] == plans
