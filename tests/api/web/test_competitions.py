"""The competitions on a board, and what its table is compared with: all by the same sentence, that a competition gave
points in the ranking."""

import csv
import io
import json
from typing import Any

import pytest
from msgspec.structs import replace

from api.web.competitions import ShownCompetitionShape, ShownCompetitionsShape, competitions_part
from api.web.words import ENGLISH
from tests.api.public_boards import Board, change
from tests.api.web.test_console import words
from tests.bounds import Bounds
from tests.service import Client, create_ranking, deltas, listed, register


class Cup:
    """A published tournament with ten competitors in one ranking. `unity`: its points."""

    def __init__(self, client: Client, shown: Board, ids: list[int], ranking: Any) -> None:
        self.client, self.ids = client, ids
        self.ranking, self.unity = ranking["id"], ranking["unities"][0]["id"]
        self.board = shown

    async def add(self, date: str | None, *participants: int, **more: object) -> int:
        form = {"group_id": 1, "participants": listed(participants)} | ({"started_at": date} if date else {}) | more
        answer = await self.client.post("competitions.json", form)
        assert answer.status == 200, answer.body
        number: int = answer.json["competition"]["id"]
        return number

    async def give(self, competition: int, who: int, points: int) -> None:
        form = {"participants_delta": deltas((who, self.unity, points)), "competition_id": competition}
        answer = await self.client.put(f"rankings/{self.ranking}/add.json", form)
        assert answer.status == 200, answer.body

    async def strike(self, competition: int, who: int) -> None:
        assert (await self.client.put(f"competitions/{competition}/strike.json", {"competitors": who})).status == 200

    async def table(self, query: str = "") -> Any:
        return (await self.board.get(f"table.json?ranking={self.ranking}{query}")).json

    async def moved_in_csv(self, query: str) -> dict[str, str]:
        """Of the first two lines."""
        answer = await self.board.get(f"table.csv?ranking={self.ranking}{query}")
        return {row["competitor"]: row["moved"] for row in [*csv.DictReader(io.StringIO(answer.body.decode()))][:2]}

    async def shown(self, query: str = "") -> tuple[int | None, list[int], list[int]]:
        """The latest competition, the results, and the fixtures."""
        competitions = (await self.table(query))["competitions"]
        latest = competitions["latest"] and int(competitions["latest"]["id"])
        results, fixtures = [[int(one["id"]) for one in competitions[part]] for part in ("results", "fixtures")]
        return latest, results, fixtures


@pytest.fixture
def options() -> dict[str, str]:
    """Of the unity."""
    return {}


@pytest.fixture
async def cup(client: Client, board: Board, options: dict[str, str]) -> Cup:
    ids = await register(client, *[f"Number {number}" for number in range(1, 11)])
    ranking = await create_ranking(client, ids, **options)
    await change(client, published="true")
    return Cup(client, board, ids, ranking)


@pytest.mark.parametrize("options", [{"main_unity_lasts": "P1D", "main_unity_expires_on": "day"}])
async def test_a_competition_whose_points_have_expired_is_a_result_and_no_fixture(cup: Cup) -> None:
    first, second = cup.ids[:2]
    old = await cup.add("2001-01-01 12:00:00", first, second)
    await cup.give(old, first, 3)
    coming = await cup.add(None, first, second)
    for query in "", "&on=2001-01-01", "&on=2001-03-01":
        assert await cup.shown(query) == (old, [old], [coming])


async def test_a_competition_whose_points_are_all_struck_is_not_the_latest_and_compared_with_nothing(cup: Cup) -> None:
    first, second = cup.ids[:2]
    january, february = [await cup.add(f"2001-0{month}-01 12:00:00", first, second) for month in (1, 2)]
    for competition, who in (january, first), (february, second):
        await cup.give(competition, who, 3)
    assert (await cup.table())["since_on"] == "2001-02-01T11:59:59.999999Z"
    await cup.strike(february, second)
    assert await cup.shown() == (january, [january], [february])
    assert (await cup.table())["since_on"] is None


async def test_the_last_date_is_that_of_a_competition_in_which_only_the_ninth_participant_got_points(cup: Cup) -> None:
    march = await cup.add("2001-03-01 12:00:00", *cup.ids[:9])
    january = await cup.add("2001-01-01 12:00:00", *cup.ids[:9])
    for competition, who in (january, cup.ids[0]), (march, cup.ids[8]), (january, cup.ids[1]):
        await cup.give(competition, who, 3)
    assert await cup.shown() == (march, [march, january], [])
    assert (await cup.table())["since_on"] == "2001-03-01T11:59:59.999999Z"
    assert (await cup.table())["competitions"]["late"] is None  # January had points before March


async def test_a_competition_without_a_date_took_place_when_its_points_were_recorded(cup: Cup) -> None:
    """A fixture without a date shows none. Compared is the table before the last one, with what was entered since for
    an earlier date."""
    first, second, third = cup.ids[:3]
    march, undated, coming = (
        await cup.add("2001-03-01 00:00:00", first, second),
        await cup.add(None),
        await cup.add(None, first),
    )
    await cup.give(march, first, 3)
    await cup.give(undated, second, 5)
    january = await cup.add("2001-01-01 00:00:00", first, third)
    await cup.give(january, third, 4)
    assert await cup.shown() == (undated, [undated, march, january], [coming])
    table = await cup.table()
    shown = table["competitions"]
    assert (shown["late"]["id"], shown["results"][2]["entered_late"] is not None) == (str(january), True)
    assert (shown["results"][1]["entered_late"], shown["fixtures"][0]["took_place"]) == (None, None)
    assert {line["name"]: line["moved"] for line in table["lines"][:3]} == {
        "Number 2": 2,
        "Number 3": -1,
        "Number 1": -1,
    }
    assert (await cup.shown("&on=2001-12-31"))[0] == march


async def test_two_in_a_race_are_shown_with_a_performance_each(cup: Cup, board: Board) -> None:
    first, second = cup.ids[:2]
    race = await cup.add("2001-03-01 12:00:00", first, second, result="10.1|9.8", winner=second)
    await cup.give(race, second, 3)
    shown = (await cup.table())["competitions"]["latest"]
    assert shown["result"] is None
    assert [(side["name"], side["performance"], side["won"]) for side in shown["sides"]] == [
        ("Number 1", "10.1", False),
        ("Number 2", "9.8", True),
    ]
    page = words((await cup.client.send("GET", f"/board/{board.slug}?ranking={cup.ranking}")).body.decode())
    assert "Latest Number 1 10.1, Number 2 9.8" in page.replace(" ,", ",")
    explained = words((await board.get(f"competitors/{second}?ranking={cup.ranking}")).body.decode())
    assert "Number 1 10.1, Number 2 9.8" in explained


async def test_in_a_long_log_the_latest_is_sought_among_those_entered_last(cup: Cup, bounds: Bounds) -> None:
    """Compared is the table before its first points were recorded."""
    march, february, january = [await cup.add(f"2001-0{month}-01 12:00:00", *cup.ids[:2]) for month in (3, 2, 1)]
    for competition in march, february, january:
        await cup.give(competition, cup.ids[0], 3)
    assert (await cup.shown())[0] == march
    bounds(MOVED_BY_DATE_EVENTS_MAX=1)
    assert (await cup.shown("&limit=9"))[0] == march
    bounds(COMPETITIONS_LOOKED_AT_MAX=2)
    table = await cup.table("&limit=8")
    assert int(table["competitions"]["latest"]["id"]) == february
    assert (table["since"] + 2, table["since_on"]) == (table["sequence"], None)


async def test_what_competitions_of_the_same_day_gave_is_shown_together(cup: Cup) -> None:
    """Of the same day in Tokyo, where it begins at 15:00 UTC."""
    assert (await cup.client.put("presentation.json", {"zone": "Asia/Tokyo"})).status == 200
    days = ("01-31 14:59", "01-31 15:00", "02-01 14:59")
    january, *same = [await cup.add(f"2001-{day}:00", *cup.ids[:2]) for day in days]
    for points, (competition, who) in enumerate([(january, 0), (same[0], 1), (same[1], 2), (same[1], 1)], start=1):
        await cup.give(competition, cup.ids[who], points)
    lines = (await cup.table())["lines"]
    assert {line["name"]: line["gained"] for line in lines if line["gained"]} == {"Number 2": "+6", "Number 3": "+3"}
    assert (await cup.shown())[0] == same[1]
    assert (await cup.table())["since_on"] == "2001-01-31T14:59:59.999999Z"


@pytest.mark.parametrize("third", [{"round": 3}, {"round_name": "Final"}])
async def test_movement_is_since_the_last_round_whatever_the_dates_of_its_competitions(
    cup: Cup, bounds: Bounds, third: dict[str, object]
) -> None:
    first, second = cup.ids[:2]
    plan = [("01", 2, {"round": 2}), ("02", 1, {"round": 2}), ("03", 4, third), ("05", 2, third), ("04", 1, third)]
    for number, (day, points, its) in enumerate(plan):
        who = first if number < 2 else second
        match = await cup.add(f"2001-01-{day} 12:00:00", first, second, **its)
        await cup.give(match, who, points)
    before = {"Number 1": -1, "Number 2": 1}  # who had no points, and was in the list
    for query in "", "&on=2001-12-31":
        table = await cup.table(query)
        assert {line["name"]: line["moved"] for line in table["lines"][:2]} == before
        assert {line["name"]: line["gained"] for line in table["lines"] if line["gained"]} == {"Number 2": "+7"}
        assert table["since_on"] == "2001-01-03T11:59:59.999999Z"
        assert table["competitions"]["latest"]["took_place"] == "2001-01-05T12:00:00Z"
    assert (await cup.table("&on=2001-01-02"))["since_on"] is None  # the first round
    end = (await cup.table())["sequence"]
    log = await cup.table(f"&at={end}")
    assert (log["since"], log["since_on"]) == (end - 5, None)  # the points of the last three, and two competitions
    assert {line["name"]: line["moved"] for line in log["lines"][:2]} == before
    for query in "", "&on=2001-12-31", f"&at={end - 1}":
        assert await cup.moved_in_csv(query) == {"Number 1": "-1", "Number 2": "1"}
    bounds(MOVED_BY_DATE_EVENTS_MAX=1)
    assert (await cup.table("&limit=9"))["since"] == end - 5


async def test_a_postponed_match_is_compared_alone_and_one_brought_forward_is_not_waited_for(cup: Cup) -> None:
    """A round reaches back to the last competition of another round."""
    first, second = cup.ids[:2]
    plan = [("01", 1), ("02", 3), ("03", 2), ("04", 3), ("05", 3), ("06", 1)]
    for day, in_round in plan:
        await cup.give(await cup.add(f"2001-01-{day} 12:00:00", first, second, round=in_round), first, 1)
    for on, since in (("06", "06"), ("05", "04"), ("03", "03"), ("02", "02")):
        assert (await cup.table(f"&on=2001-01-{on}"))["since_on"] == f"2001-01-{since}T11:59:59.999999Z"


async def test_results_and_fixtures_say_their_round(cup: Cup) -> None:
    first, second = cup.ids[:2]
    await cup.give(await cup.add("2001-01-01 12:00:00", first, second, round=12), first, 3)
    for more in ({"round": 13, "round_name": "Semi-final"}, {}):
        await cup.add("2001-01-08 12:00:00", first, second, **more)
    shown = (await cup.table())["competitions"]
    told = [(one["round"], one["round_name"]) for one in (shown["latest"], *shown["results"], *shown["fixtures"])]
    assert told == [("12", ""), ("12", ""), ("13", "Semi-final"), (None, "")]
    plain = ShownCompetitionShape(
        id="1", took_place=None, entered_late=None, location="", result=None, sides=[], others=0
    )
    for in_round, said in (
        ({"round": "12"}, "Round 12"),
        ({"round": "12", "round_name": "<Final>"}, "<bdi>&lt;Final&gt;</bdi>"),
        ({}, ""),
    ):
        shown = ShownCompetitionsShape(latest=None, late=None, results=[replace(plain, **in_round)], fixtures=[])
        assert f'<span class="where">{said}</span>' in competitions_part(ENGLISH, shown, str)


async def test_rounds_without_dates_are_compared_by_when_their_points_were_recorded(cup: Cup) -> None:
    first, second, third = cup.ids[:3]
    for number, (who, in_round) in enumerate([(first, 1), (second, 2), (third, 2)], start=1):
        await cup.give(await cup.add(None, first, second, third, round=in_round), who, number)
    table = await cup.table()
    assert table["since"] == table["sequence"] - 3
    assert {line["name"]: line["gained"] for line in table["lines"] if line["gained"]} == {
        "Number 2": "+2",
        "Number 3": "+3",
    }


async def test_points_for_a_competitor_who_takes_no_part_make_a_result(cup: Cup) -> None:
    first, second, other = cup.ids[:3]
    competition = await cup.add("2001-01-01 12:00:00", first, second)
    await cup.give(competition, other, 3)
    assert await cup.shown() == await cup.shown("&on=2001-01-02") == (competition, [competition], [])


async def test_a_competition_without_participants_shows_those_who_got_points(cup: Cup) -> None:
    competition = await cup.add("2001-01-01 12:00:00")
    assert await cup.shown() == (None, [], [])
    for points, who in enumerate(cup.ids[:4], start=1):
        await cup.give(competition, who, points)
    (result,) = (await cup.table())["competitions"]["results"]
    assert [(side["name"], side["gained"]) for side in result["sides"]] == [
        (f"Number {number}", f"+{number}") for number in (4, 3, 2)
    ]
    assert result["others"] == 1


@pytest.mark.parametrize("options", [{"main_unity_sort": "ASC"}])
async def test_a_race_names_the_best_first_where_lower_is_better_and_one_alone_with_bye_or_performance(
    cup: Cup,
) -> None:
    scorings = [{"awards": [{"unity": cup.unity, "from": "place", "statuses": {"DNF": "entries+1"}}]}]
    await cup.client.put(f"rankings/{cup.ranking}/scoring.json", {"scorings": json.dumps(scorings)})
    places = dict(zip(cup.ids[:5], ("4", "DNF", "1", "3", "2"), strict=True))
    await cup.add("2001-03-01 12:00:00", *places, result=json.dumps(places))
    for points, result in enumerate(("bye", "9.58")):
        alone = await cup.add(f"2001-03-0{2 + points} 12:00:00", cup.ids[5], result=result)
        await cup.give(alone, cup.ids[5], points)
    results = (await cup.table())["competitions"]["results"]
    told = [[(one["name"], one["performance"], one["gained"]) for one in shown["sides"]] for shown in results]
    assert told == [
        [("Number 6", "9.58", "+1")],
        [("Number 6", "bye", "0")],
        [("Number 3", "1", "+1"), ("Number 5", "2", "+2"), ("Number 4", "3", "+3")],
    ]
    assert "Number 6 9.58" in words((await cup.board.get(f"tv?ranking={cup.ranking}")).body.decode())


async def test_without_dates_the_table_is_compared_with_that_before_the_request_of_the_last_competition(
    cup: Cup,
) -> None:
    """Nobody had points before the first."""
    awards = [{"unity": cup.unity, "from": "outcome", "table": {"win": 3, "draw": 1, "loss": 0}}]
    scoring = {"scorings": json.dumps([{"awards": awards}])}
    assert (await cup.client.put(f"rankings/{cup.ranking}/scoring.json", scoring)).status == 200
    results = [{"group_id": 1, "participants": cup.ids[at : at + 2], "result": "2:1"} for at in (0, 2)]
    for moved in None, 0:
        assert (await cup.client.put("results.json", {"items": json.dumps(results)})).status == 200
        assert [line["moved"] for line in (await cup.table())["lines"][:2]] == [moved, moved]
