"""Fixtures by the circle method: fair for every number of teams, and recorded as a file is."""

from collections import Counter
from datetime import timedelta
from itertools import combinations, groupby, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.imports.fixtures import FIXTURE_TEAMS_MAX, FixturePlan, rounds
from engine.domain.errors import Unacceptable
from engine.domain.terms import CompetitorId
from tests.api.cli.conftest import Tallybook
from tests.api.imports.league import open_league
from tests.running import said

TEAMS = st.integers(2, 60)


@given(TEAMS, st.booleans())
def test_every_pair_meets_once_or_once_at_each_ground(teams: int, twice: bool) -> None:
    met = Counter(pair for pairs in rounds(teams, twice=twice) for pair in pairs)
    assert set(met.values()) == {1}
    both = {(a, b) for a in range(teams) for b in range(teams) if a != b}
    if twice:
        assert met.keys() == both
    else:
        assert {frozenset(pair) for pair in met} == {frozenset(pair) for pair in combinations(range(teams), 2)}
        assert len(met) == teams * (teams - 1) // 2


@given(TEAMS, st.booleans())
def test_in_a_round_each_team_has_one_match_and_one_of_an_odd_number_has_none(teams: int, twice: bool) -> None:
    found = rounds(teams, twice=twice)
    assert len(found) == (teams + teams % 2 - 1) * (1 + twice)
    without = Counter[int]()
    for pairs in found:
        playing = [team for pair in pairs for team in pair]
        assert len(playing) == len(set(playing)) == teams - teams % 2
        without.update({*range(teams)} - {*playing})
    assert without == (Counter(dict.fromkeys(range(teams), 1 + twice)) if teams % 2 else Counter())


@given(TEAMS, st.booleans())
def test_home_and_away_are_balanced_and_never_three_times_running(teams: int, twice: bool) -> None:
    venues: dict[int, list[bool]] = {team: [] for team in range(teams)}
    for pairs in rounds(teams, twice=twice):
        for home, away in pairs:
            venues[home].append(True)
            venues[away].append(False)
    homes = [sum(one) for one in venues.values()]
    assert max(homes) - min(homes) <= (0 if twice or teams % 2 else 1)
    longest = max(len([*run]) for one in venues.values() for _, run in groupby(one))
    assert longest <= 2
    breaks = sum(a == b for one in venues.values() for a, b in pairwise(one))
    if not twice:
        assert breaks == (0 if teams % 2 else teams - 2)  # no schedule has fewer


def test_rounds_keep_their_time_of_day_and_matches_take_turns_at_the_places() -> None:
    places = ("Pitch 1", "Pitch 2")
    plan = FixturePlan(day="2015-03-21", clock="15:00", every="7d", places=places, lasts="40min", twice=True)
    found = plan.of([CompetitorId(one) for one in range(1, 7)])
    assert [f"{one.begins:%m-%d %H:%M}" for one in found.fixtures[::3]][:3] == [
        "03-21 15:00",
        "03-28 15:00",
        "04-04 15:00",
    ]
    assert [one.location for one in found.fixtures[:4]] == ["Pitch 1", "Pitch 2", "Pitch 1", "Pitch 1"]
    text = plan.csv(found, str).splitlines()
    assert text[:2] == ["date,participants,score,group,round,location", "2015-03-21 15:00,1|6,,,1,Pitch 1"]
    of_one_day = FixturePlan(day="2015-03-21", clock="23:50", every="20min").of([CompetitorId(1), CompetitorId(2)])
    assert f"{of_one_day.fixtures[-1].begins:%d %H:%M}" == "21 23:50"
    odd = FixturePlan(day="2015-03-21").of([CompetitorId(one) for one in (7, 8, 9)])
    assert sorted(odd.byes.values()) == [7, 8, 9]
    assert {one.round: {one.home, one.away} for one in odd.fixtures} == {
        n: {7, 8, 9} - {who} for n, who in odd.byes.items()
    }


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        (FixturePlan(day="21.3.2015"), "day"),
        (FixturePlan(day="2015-03-21", clock="3 pm"), "time"),
        (FixturePlan(day="2015-03-21", every="weekly"), "every"),
        (FixturePlan(day="2015-03-21", every="0h"), "every"),
        (FixturePlan(day="2015-03-21", clock="15:00", lasts="long"), "lasts"),
        (FixturePlan(day="2015-03-21", lasts="20min"), "time"),
        (FixturePlan(day="2015-03-21", clock="15:00", places=("A", "B", "A")), "places"),
        (FixturePlan(day="2015-03-21", every="1h", places=("A",), lasts="21min"), "every"),
    ],
)
def test_what_a_plan_lacks_is_named(plan: FixturePlan, field: str) -> None:
    with pytest.raises(Unacceptable) as refused:
        plan.of([CompetitorId(one) for one in range(1, 7)])
    assert [one.field for one in refused.value.faults] == [field]


@given(
    teams=st.integers(2, 20),
    places=st.integers(0, 10),
    lasts=st.integers(0, 60),
    every=st.sampled_from(["7d", "2h", "45min"]),
)
def test_no_place_and_no_team_has_two_matches_at_a_time_unless_the_plan_is_refused(
    teams: int, places: int, lasts: int, every: str
) -> None:
    named = tuple([f"Pitch {one}" for one in range(places)])
    plan = FixturePlan(day="2015-03-21", clock="15:00", every=every, places=named, lasts=f"{lasts}min")
    try:
        found = plan.of([CompetitorId(one) for one in range(1, teams + 1)]).fixtures
    except Unacceptable:
        found = []
        assert lasts * -(-(teams // 2) // (places or 10)) > 45 or (not lasts and 0 < places < teams // 2)
    for of in (lambda one: (one.location,), lambda one: (one.home, one.away)):
        taken = sorted((str(busy), one.begins) for one in found for busy in of(one) if busy)
        for (busy, earlier), (other, later) in pairwise(taken):
            assert busy != other or later - earlier >= timedelta(minutes=max(lasts, 1))


def test_a_plan_for_too_many_or_too_few_teams_or_beyond_all_years_is_refused() -> None:
    for count in (1, FIXTURE_TEAMS_MAX + 1):
        with pytest.raises(Unacceptable, match="Fixtures are for 2 to 200 teams"):
            FixturePlan(day="2015-03-21").of([CompetitorId(one) for one in range(count)])
    for plan in (
        FixturePlan(day="9999-12-30"),
        FixturePlan(day="9999-12-31", clock="23:50", places=("A",), lasts="1h"),
    ):
        with pytest.raises(Unacceptable, match="after the year 9999"):
            plan.of([CompetitorId(one) for one in range(4)])


async def test_fixtures_are_recorded_once_and_a_later_file_fills_them(tallybook: Tallybook, tmp_path: Path) -> None:
    slug = await open_league(tallybook)
    await tallybook.done("tournament", "present", slug, "--zone", "Europe/Madrid")
    plan = (
        "fixtures",
        slug,
        "Table",
        "2015-03-21",
        "--time",
        "16:00",
        "--place",
        "North",
        "--place",
        "South",
        "--twice",
    )
    shown = await tallybook(*plan, "--dry-run", "--json")
    assert shown.code == 0, shown.err
    assert await tallybook.json("competition", "list", slug) == []
    made = said(*plan, "--database-url", tallybook.dsn)
    assert "12 competitions imported" in made.err + made.out
    again = said(*plan, "--database-url", tallybook.dsn)
    assert "nothing to do" in again.err + again.out
    listed = await tallybook.json("competition", "list", slug)
    assert [(one["round"], one["started_at"], one["location"]) for one in listed][:3] == [
        (1, "2015-03-21T15:00:00.000000Z", "North"),
        (1, "2015-03-21T15:00:00.000000Z", "South"),
        (2, "2015-03-28T15:00:00.000000Z", "North"),
    ]
    assert {one["result"] for one in listed} == {None}
    file = tmp_path / "played.csv"
    file.write_text(
        "date,participants,score,round,location\n2015-03-21 16:00,Ajax|Dynamo,2:1,1,North\n", encoding="utf-8"
    )
    filled = said("competition", "import", slug, "Table", str(file), "--database-url", tallybook.dsn)
    assert filled.code == 0, filled.err
    after = await tallybook.json("competition", "list", slug)
    assert (len(after), after[0]["result"]) == (12, "2:1")
