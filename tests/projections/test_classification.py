"""A classification is what its rule says, in whatever order things happened."""

import csv
import gc
import json
from collections import defaultdict
from itertools import permutations
from pathlib import Path
from time import thread_time
from typing import Any, Final, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.errors import TooMuchWork
from engine.domain.events import Criterion, Delta, Event
from engine.domain.steps import finished
from engine.domain.terms import BEST_MAX, CompetitionId, CompetitorId, Sequence, Sort, UnityId
from projections.board.board import Board
from projections.board.classification import Classified, ClassifiedGroup, Counted, classified, in_force
from projections.board.competition_sums import CompetitionSums
from tests.histories import SummedBoard, copied, counted_of, fold_events, unhurried, with_sums
from tests.projections.classified import (
    COMPETITIONS,
    COMPETITORS,
    NOW,
    RANKING,
    STEP_SECONDS_MAX,
    UNITIES,
    Gains,
    board_of,
    classification,
    frozen,
    histories_with_ties,
    history_of,
    ranking_of,
    reversals,
)

FOOTBALL: Final = Path(__file__).parents[3] / "shared" / "data" / "football"
SEASONS: Final = sorted(path.name.removesuffix(".expected.csv") for path in FOOTBALL.glob("*.expected.csv"))

# ── A small world with many ties ────────────────────────────────────────────────────────────────────────


# ── The naive definition ────────────────────────────────────────────────────────────────────────────────


class Naive:
    """The rule, told again from the events alone: who is better of any two is looked up in nested lists of groups."""

    def __init__(self, history: list[Event]) -> None:
        self.sorts: dict[UnityId, Sort] = {}
        self.criteria: tuple[Criterion, ...] = ()
        self.list: tuple[CompetitorId, ...] = ()
        self.met: dict[CompetitionId, tuple[CompetitorId, ...]] = {}
        self.voided: set[CompetitionId] = set()
        self.given: list[tuple[UnityId, CompetitorId, CompetitionId | None, int]] = []
        self.reached: dict[tuple[UnityId, CompetitorId], int] = {}
        for event in history:
            match event:
                case events.RankingCreated():
                    self.list = event.participants
                    self.sorts[event.main_unity_id] = Sort.DESC
                    main = event.main_unity_id
                case events.UnityAdded():
                    self.sorts[event.unity_id] = event.sort
                case events.ClassificationDeclared():
                    self.criteria = event.criteria
                case events.CompetitionAdded():
                    self.met[event.competition_id] = event.participants
                case events.CompetitionVoided():
                    self.voided.add(event.competition_id)
                case events.CompetitionUnvoided():
                    self.voided.remove(event.competition_id)
                case events.PointsAdded():  # reversals are not looked at: what is voided is left out instead
                    self.given += [(d.unity_id, d.competitor_id, event.competition_id, d.amount) for d in event.deltas]
        for sequence, event in enumerate(history, start=1):
            if isinstance(event, events.PointsAdded) and event.competition_id not in self.voided:
                changes: dict[tuple[UnityId, CompetitorId], int] = defaultdict(int)
                for delta in event.deltas:
                    changes[delta.unity_id, delta.competitor_id] += delta.amount
                self.reached |= {named: sequence for named, change in changes.items() if change}
        self.criteria = self.criteria or (Criterion(unity_id=main),)
        self.values: dict[CompetitorId, dict[int, int]] = {c: {} for c in self.list}
        self.parted: dict[frozenset[CompetitorId], int] = {}

    def lines(self) -> list[tuple[CompetitorId, int, tuple[int | None, ...], int | None]]:
        groups = self.ordered(set(self.list), 0)
        found = []
        above: CompetitorId | None = None
        for n, group in enumerate(groups):
            position = 1 + sum(map(len, groups[:n]))
            for competitor in sorted(group, key=self.list.index):
                first = above is not None and competitor == min(group, key=self.list.index)
                by = self.parted[frozenset((above, competitor))] if first and above is not None else None
                values = tuple(self.values[competitor].get(k) for k in range(len(self.criteria)))
                found.append((competitor, position, values, by))
                above = competitor
        return found

    def ordered(self, group: set[CompetitorId], k: int) -> list[set[CompetitorId]]:
        """The groups that nothing parts, best first."""
        if len(group) == 1 or k == len(self.criteria):
            return [group]
        if self.criteria[k].among is None:
            parts = self.split(group, k, None)
            return [final for part in parts for final in self.ordered(part, k + 1)]
        block = [k]
        while block[-1] + 1 < len(self.criteria) and self.criteria[block[-1] + 1].among:
            block.append(block[-1] + 1)
        for competitor in group:
            for n in block:
                self.values[competitor].pop(n, None)
        parts = [group]
        for n in block:
            parts = [finer for part in parts for finer in (self.split(part, n, group) if len(part) > 1 else [part])]
        if parts == [group]:
            return self.ordered(group, block[-1] + 1)
        return [final for part in parts for final in self.ordered(part, k)]

    def split(self, part: set[CompetitorId], n: int, among: set[CompetitorId] | None) -> list[set[CompetitorId]]:
        values = {competitor: self.value(competitor, self.criteria[n], among) for competitor in part}
        for competitor, value in values.items():
            self.values[competitor][n] = value
        for one, other in permutations(part, 2):
            if values[one] != values[other]:
                self.parted.setdefault(frozenset((one, other)), n)
        best_first = self.sorts[self.criteria[n].unity_id] == Sort.DESC and not self.criteria[n].first
        return [
            {competitor for competitor in part if values[competitor] == value}
            for value in sorted(set(values.values()), reverse=best_first)
        ]

    def value(self, competitor: CompetitorId, criterion: Criterion, among: set[CompetitorId] | None) -> int:
        if criterion.first:
            return self.reached.get((criterion.unity_id, competitor), 0)
        free = 0
        sums: dict[CompetitionId, int] = defaultdict(int)
        for unity, who, competition, amount in self.given:
            if (unity, who) != (criterion.unity_id, competitor):
                continue
            if competition is None:
                free += amount if among is None else 0
            elif competition not in self.voided and (
                among is None or len([c for c in self.met[competition] if c in among]) >= 2
            ):
                sums[competition] += amount
        left = sorted(sums.values(), reverse=self.sorts[criterion.unity_id] == Sort.DESC)
        for start, dropped in reversed(criterion.drop):
            if len(sums) >= start:
                left = left[:-dropped]
                break
        return free + sum(left[: criterion.best])


@unhurried
@given(history=histories_with_ties)
@example(
    history_of(
        (Criterion(unity_id=UnityId(21), first=True),),
        [()] * 10,
        [(COMPETITIONS[0], (Delta(COMPETITORS[0], UnityId(21), 1),))],
        {COMPETITIONS[0]},
        set(),
    )
)
def test_a_classification_is_as_its_rule_says(history: list[Event]) -> None:
    board = board_of(history)
    lines = [(line.competitor_id, line.position, line.values, line.decided_by) for line in classification(board)]
    assert lines == Naive(history).lines()
    assert classification(with_sums(copied(board), history)) == classification(board)


matches = st.lists(
    st.tuples(st.permutations(COMPETITORS[:5]).map(lambda order: order[:2]), st.sampled_from([(3, 0), (1, 1), (0, 3)])),
    max_size=12,
)


@unhurried
@given(played=matches, block=st.sampled_from([1, 2, 3]))
def test_groups_that_split_are_looked_at_again(
    played: list[tuple[list[CompetitorId], tuple[int, int]]], block: int
) -> None:
    """A league of five: points, points among the tied, and what else is in the block."""
    main, fouls, goals = UNITIES
    criteria = (
        Criterion(unity_id=main),
        *(Criterion(unity_id=u, among="tied") for u in (main, goals, fouls)[:block]),
        Criterion(unity_id=goals),
    )
    meetings = [tuple(pair) for pair, _ in played[: len(COMPETITIONS)]]
    given_points: Gains = [
        (
            competition_id,
            tuple(Delta(c, u, n) for c, n in zip(pair, points, strict=True) for u in (main, goals)),
        )
        for competition_id, (pair, points) in zip(COMPETITIONS, played, strict=False)
    ]
    padded = meetings + [()] * (len(COMPETITIONS) - len(meetings))
    history = history_of(criteria, padded, given_points, set())
    lines = [
        (line.competitor_id, line.position, line.values, line.decided_by) for line in classification(board_of(history))
    ]
    assert lines == Naive(history).lines()


def test_a_smaller_group_begins_the_block_again_among_its_members() -> None:
    """Four are level. Among the four, D is last and A, B, C are level on everything of the block; among these three
    alone, without what they got against D, they part."""
    a, b, c, d = COMPETITORS[:4]
    main, _, goals = UNITIES
    results = {  # competition: participants and points
        31: ((a, b), (3, 0)),
        32: ((b, c), (3, 0)),
        33: ((a, c), (3, 0)),
        34: ((b, d), (3, 0)),
        35: ((c, d), (3, 0)),
        36: ((c, d), (3, 0)),
    }
    meetings = [results[n][0] if n in results else () for n in COMPETITIONS]
    given_points: Gains = [
        (CompetitionId(n), tuple(Delta(who, main, p) for who, p in zip(*result, strict=True)))
        for n, result in results.items()
    ]
    given_points.append((None, (Delta(d, main, 6),)))
    criteria = (Criterion(unity_id=main), Criterion(unity_id=main, among="tied"), Criterion(unity_id=goals))
    lines = {
        line.competitor_id: line
        for line in classification(board_of(history_of(criteria, meetings, given_points, set())))
    }
    shown = {who: (lines[who].position, lines[who].values, lines[who].decided_by) for who in (a, b, c, d)}
    assert shown == {
        a: (1, (6, 6, None), None),
        b: (2, (6, 3, None), 1),
        c: (3, (6, 0, None), 1),
        d: (4, (6, 0, None), 1),  # of the run among four
    }


def test_what_is_tied_all_along_shares_a_position_and_looks_at_no_more_than_allowed() -> None:
    main = next(iter(UNITIES))
    history = history_of((Criterion(unity_id=main, best=1),), [()] * len(COMPETITIONS), [], set())
    board = board_of(history)
    lines = classification(board)
    assert [(line.competitor_id, line.position, line.decided_by) for line in lines] == [
        (c, 1, None) for c in COMPETITORS
    ]
    ranking = board.rankings[RANKING]
    for sums_max, enough in ((len(COMPETITORS), True), (len(COMPETITORS) - 1, False)):
        steps = classified(counted_of(board, RANKING), in_force(ranking), ranking.participants, sums_max=sums_max)
        if enough:
            assert list(finished(steps)) == lines
        else:
            with pytest.raises(TooMuchWork):
                finished(steps)


@given(best=st.integers(1, 4), amounts=st.lists(st.integers(-3, 3), max_size=6))
@example(best=2, amounts=[-3, 0, -1])
def test_of_a_competitor_the_best_competitions_count_by_the_sort(best: int, amounts: list[int]) -> None:
    who = COMPETITORS[0]
    given_points: Gains = [(None, (Delta(who, u, 100),)) for u in UNITIES]
    given_points += [
        (c, tuple(Delta(who, u, amount) for u in UNITIES)) for c, amount in zip(COMPETITIONS, amounts, strict=False)
    ]
    for unity_id, sort in UNITIES.items():
        history = history_of((Criterion(unity_id=unity_id, best=best),), [()] * len(COMPETITIONS), given_points, set())
        (line,) = [line for line in classification(board_of(history)) if line.competitor_id == who]
        assert line.values == (100 + sum(sorted(amounts, reverse=sort is Sort.DESC)[:best]),)


# ── Steps ───────────────────────────────────────────────────────────────────────────────────────────────

ITS_COMPETITIONS: Final = 20_000
CROWD: Final = 50_000


def longest_step(board: SummedBoard, *criteria: Criterion) -> tuple[list[Classified], float]:
    """The lines, and the seconds of processor time that the longest step to them took, in the best of three tries."""
    ranking, found = board.rankings[RANKING], []
    with frozen():
        for _ in range(3):
            steps = classified(counted_of(board, RANKING), criteria, ranking.participants)
            longest = 0.0
            while True:
                began_at = thread_time()
                try:
                    next(steps)
                except StopIteration as end:
                    group: ClassifiedGroup = end.value
                    break
                finally:
                    longest = max(longest, thread_time() - began_at)
            found.append(longest)
    return list(group), min(found)


def test_competitors_of_thousands_of_competitions_are_read_in_small_steps() -> None:
    """They meet again and again, and get 1, 2, 3, 1, 2, 3 … points each."""
    unity_id, pair = UnityId(21), tuple(COMPETITORS[:2])
    board = ranking_of(pair, unity_id)
    given = [1 + n % 3 for n in range(ITS_COMPETITIONS)]
    for competition_id, amount in enumerate(given, start=1_001):
        named = CompetitionId(competition_id)
        deltas = tuple([Delta(competitor_id, unity_id, amount) for competitor_id in pair])
        fold_events(
            board,
            events.CompetitionAdded(competition_id=named, group_id=1, participants=pair),
            events.PointsAdded(ranking_id=RANKING, deltas=deltas, competition_id=named),
        )
    for best, among, value in (
        (BEST_MAX, None, 3 * BEST_MAX),
        (None, "tied", sum(given)),
        (BEST_MAX, "tied", 3 * BEST_MAX),
    ):
        lines, seconds = longest_step(board, Criterion(unity_id=unity_id, best=best, among=among))
        assert lines == [Classified(competitor_id, 1, (value,), None) for competitor_id in pair]
        assert seconds < STEP_SECONDS_MAX, (best, among)


def test_what_is_kept_of_a_classification_is_no_work_for_the_garbage_collector() -> None:
    """It looks through all that is in memory in one go, and everybody waits for that."""
    unity_id, crowd = UnityId(21), tuple(map(CompetitorId, range(1, 1_001)))
    board = ranking_of(crowd, unity_id)
    criteria = (Criterion(unity_id=unity_id, best=5, among="tied"),)
    gc.collect()
    before = len(gc.get_objects())
    sums = CompetitionSums()
    for number, competitor_id in enumerate(crowd):
        for competition_id in map(CompetitionId, (5_000, 5_001)):
            deltas = (Delta(competitor_id, unity_id, number),)
            given = events.PointsAdded(ranking_id=RANKING, deltas=deltas, competition_id=competition_id)
            sums.count(Sequence(1), NOW, given)
    group = finished(classified(Counted(board, board.rankings[RANKING], sums), criteria, crowd))
    gc.collect()
    assert len(gc.get_objects()) - before < 100
    assert len(group) == len(crowd)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("among", [None, "tied"])
def test_thousands_who_part_at_once_part_in_small_steps(among: Literal["tied"] | None) -> None:
    """All of one race, each with another number of points."""
    unity_id, crowd = UnityId(21), tuple(map(CompetitorId, range(1, CROWD + 1)))
    board, named = ranking_of(crowd, unity_id), CompetitionId(CROWD + 1)
    deltas = tuple([Delta(competitor_id, unity_id, competitor_id) for competitor_id in crowd])
    fold_events(
        board,
        events.CompetitionAdded(competition_id=named, group_id=1, participants=crowd),
        events.PointsAdded(ranking_id=RANKING, deltas=deltas, competition_id=named),
    )
    criterion = Criterion(unity_id=unity_id, best=5, among=among)
    lines, seconds = longest_step(board, criterion, criterion)
    assert [line.competitor_id for line in lines] == list(reversed(crowd))
    assert seconds < STEP_SECONDS_MAX


# ── Races ───────────────────────────────────────────────────────────────────────────────────────────────

POINTS_BY_PLACE: Final = (2, 1, 1)
"""Second and third get the same, so that many are level on points."""
RACES: Final = [CompetitionId(n) for n in range(1_001, 1_009)]
RaceEvent = tuple[CompetitionId, tuple[CompetitorId, ...]]
"""The next race of this number, and who came in, the first first; nobody: it is voided, or counts again."""

seasons: Final = st.lists(
    st.tuples(
        st.sampled_from(RACES),
        st.just(()) | st.permutations(COMPETITORS[:5]).map(lambda order: tuple(order[: len(POINTS_BY_PLACE)])),
    ),
    max_size=20,
)


@unhurried
@given(season=seasons, best=st.none() | st.integers(1, 4))
def test_races_by_points_wins_second_and_third_places_are_as_a_naive_recount_after_every_event(
    season: list[RaceEvent], best: int | None
) -> None:
    """Formula-like: points, or those of the best races, then countback. Races are voided and count again in between."""
    points, *places = [UnityId(n) for n in range(31, 32 + len(POINTS_BY_PLACE))]
    criteria = Criterion(unity_id=points, best=best), *(Criterion(unity_id=place) for place in places)
    board = ranking_of(COMPETITORS[:5], points)
    fold_events(
        board,
        *(events.UnityAdded(ranking_id=RANKING, unity_id=u, name=f"{u}") for u in places),
        events.ClassificationDeclared(ranking_id=RANKING, criteria=criteria),
    )
    run: dict[CompetitionId, tuple[CompetitorId, ...]] = {}
    given_points: dict[CompetitionId, list[events.PointsAdded]] = defaultdict(list)
    voided = set[CompetitionId]()
    for race, order in season:
        if order and race not in run:
            run[race] = order
            deltas = [
                Delta(who, unity_id, amount)
                for place, who in enumerate(order)
                for unity_id, amount in ((points, POINTS_BY_PLACE[place]), (places[place], 1))
            ]
            given_points[race] = [events.PointsAdded(ranking_id=RANKING, deltas=tuple(deltas), competition_id=race)]
            fold_events(board, events.CompetitionAdded(competition_id=race, group_id=1, participants=order))
            fold_events(board, *given_points[race])
        elif not order and race in run:
            counts_again = race in voided
            voided ^= {race}
            kind = events.CompetitionUnvoided if counts_again else events.CompetitionVoided
            sign = 1 if counts_again else -1
            fold_events(board, kind(competition_id=race), *reversals(given_points[race], race, sign))
        counted = [its for race, its in run.items() if race not in voided]
        keys = {}
        for who in COMPETITORS[:5]:
            came_in = [its.index(who) for its in counted if who in its]
            won = sorted([POINTS_BY_PLACE[place] for place in came_in], reverse=True)
            keys[who] = (sum(won[:best]), *(came_in.count(place) for place in range(len(places))))
        expected = [
            (who, 1 + sum(other > keys[who] for other in keys.values()))
            for who in sorted(keys, key=lambda who: [-n for n in keys[who]])
        ]
        assert [(line.competitor_id, line.position) for line in classification(board)] == expected


# ── Football ────────────────────────────────────────────────────────────────────────────────────────────

POINTS, DIFFERENCE, GOALS = UnityId(21), UnityId(22), UnityId(23)
BY_GOALS: Final = (Criterion(unity_id=POINTS), Criterion(unity_id=DIFFERENCE), Criterion(unity_id=GOALS))
SERIE_A: Final = (
    Criterion(unity_id=POINTS),
    Criterion(unity_id=POINTS, among="tied"),
    Criterion(unity_id=DIFFERENCE, among="tied"),
    Criterion(unity_id=DIFFERENCE),
    Criterion(unity_id=GOALS),
)


class League:
    """A season, played match by match into a board."""

    def __init__(self, season: str, criteria: tuple[Criterion, ...]) -> None:
        self.matches = json.loads((FOOTBALL / f"{season}.json").read_text())["matches"]
        self.matches.sort(key=lambda match: (match["date"], match["time"]))
        self.deductions = json.loads((FOOTBALL / "deductions.json").read_text()).get(season, [])
        self.teams = sorted({match["team1"] for match in self.matches})
        self.ids = {team: CompetitorId(n) for n, team in enumerate(self.teams, start=101)}
        board = Board()
        fold_events(
            board,
            *(events.CompetitorRegistered(competitor_id=c, name=team) for team, c in self.ids.items()),
            events.RankingCreated(
                ranking_id=RANKING,
                name="League",
                participants=tuple(self.ids.values()),
                main_unity_id=POINTS,
                main_unity_name="points",
            ),
            events.UnityAdded(ranking_id=RANKING, unity_id=DIFFERENCE, name="goal difference"),
            events.UnityAdded(ranking_id=RANKING, unity_id=GOALS, name="goals"),
            events.ClassificationDeclared(ranking_id=RANKING, criteria=criteria),
        )
        self.board = with_sums(board, ())

    def play(self, number: int) -> None:
        match = self.matches[number]
        home, away = (self.ids[match[side]] for side in ("team1", "team2"))
        goals, conceded = match["score"]["ft"]
        competition_id = CompetitionId(1_001 + number)
        deltas = []
        for who, scored, taken in (home, goals, conceded), (away, conceded, goals):
            points = 3 if scored > taken else 1 if scored == taken else 0
            deltas += [Delta(who, POINTS, points), Delta(who, DIFFERENCE, scored - taken), Delta(who, GOALS, scored)]
        fold_events(
            self.board,
            events.CompetitionAdded(competition_id=competition_id, group_id=1, participants=(home, away)),
            events.PointsAdded(ranking_id=RANKING, deltas=tuple(deltas), competition_id=competition_id),
        )

    def deduct(self) -> None:
        for deduction in self.deductions:
            delta = Delta(self.ids[deduction["team"]], POINTS, deduction["points"])
            fold_events(self.board, events.PointsAdded(ranking_id=RANKING, deltas=(delta,)))

    def table(self) -> list[tuple[str, int]]:
        names = {competitor_id: team for team, competitor_id in self.ids.items()}
        return [(names[line.competitor_id], line.position) for line in classification(self.board)]


def expected_of(season: str) -> dict[str, dict[str, int]]:
    """Totals by unity and team."""
    totals: dict[str, dict[str, int]] = defaultdict(dict)
    with (FOOTBALL / f"{season}.expected.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            totals[line["unity"]][line["team"]] = int(line["total"])
    return totals


@pytest.mark.skipif(not SEASONS, reason="the seasons' data is not beside the project")
@pytest.mark.parametrize("season", SEASONS or ["no season"])
def test_a_season_by_points_difference_and_goals_ends_in_the_official_order(season: str) -> None:
    league = League(season, BY_GOALS)
    for number in range(len(league.matches)):
        league.play(number)
    league.deduct()
    official = expected_of(season)
    keys = {
        team: (official["points"][team], official["goal difference"][team], official["goals for"][team])
        for team in league.teams
    }
    assert league.table() == [
        (team, 1 + sum(other > keys[team] for other in keys.values()))
        for team in sorted(league.teams, key=lambda team: tuple(-n for n in keys[team]))
    ]


@pytest.mark.skipif("2018-19_it.1" not in SEASONS, reason="the seasons' data is not beside the project")
def test_serie_a_is_after_every_day_what_its_rules_say() -> None:
    """Level on points: points and goal difference in the matches of those who are level, looked at again for those who
    stay level; then goal difference and goals of all matches."""
    league = League("2018-19_it.1", SERIE_A)
    league.deduct()
    for number, match in enumerate(league.matches):
        league.play(number)
        if number + 1 == len(league.matches) or league.matches[number + 1]["date"] != match["date"]:
            played = league.matches[: number + 1]
            assert league.table() == serie_a(league.teams, played, league.deductions), match["date"]


def serie_a(teams: list[str], played: list[dict[str, Any]], deductions: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Who stands where, counted from the scores alone."""

    def counted(team: str, within: set[str]) -> tuple[int, int, int]:
        points = difference = goals = 0
        for match in played:
            for side, other in ((0, 1), (1, 0)):
                us, them = match[f"team{side + 1}"], match[f"team{other + 1}"]
                if us == team and {us, them} <= within:
                    scored, taken = match["score"]["ft"][side], match["score"]["ft"][other]
                    points += 3 * (scored > taken) + (scored == taken)
                    difference += scored - taken
                    goals += scored
        return points, difference, goals

    everybody = set(teams)
    totals = {team: counted(team, everybody) for team in teams}
    deducted = {team: sum(d["points"] for d in deductions if d["team"] == team) for team in teams}

    def head_to_head(level: set[str]) -> list[set[str]]:
        among = {team: counted(team, level)[:2] for team in level}
        parts = [{t for t in level if among[t] == key} for key in sorted(set(among.values()), reverse=True)]
        if len(parts) > 1:
            return [final for part in parts for final in (head_to_head(part) if len(part) > 1 else [part])]
        return [
            {t for t in level if totals[t][1:] == key} for key in sorted({totals[t][1:] for t in level}, reverse=True)
        ]

    groups = []
    for points in sorted({totals[t][0] + deducted[t] for t in teams}, reverse=True):
        level = {t for t in teams if totals[t][0] + deducted[t] == points}
        groups += head_to_head(level) if len(level) > 1 else [level]
    return [(team, 1 + sum(map(len, groups[:n]))) for n, group in enumerate(groups) for team in sorted(group)]
