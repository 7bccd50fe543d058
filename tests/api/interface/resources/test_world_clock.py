"""The world's clock over HTTP: what had taken place by a day, and how it stands next to what was recorded by then."""

from typing import Any

import pytest

from tests.api.asking import refused
from tests.api.leagues import give, play
from tests.bounds import Bounds
from tests.service import Season, deltas


class Table:
    """Asks for the season's points in words: competitors by name, with position, total and movement."""

    def __init__(self, season: Season) -> None:
        self.season = season

    async def get(self, name: str, *query: str) -> Any:
        answer = await self.season.client.get(f"{self.season.path}/{name}.json?{'&'.join(query)}")
        assert answer.status == 200, answer.body
        return next(value for key, value in answer.json.items() if key not in ("status", "message"))

    async def totals(self, *query: str) -> list[int]:
        """Of Ada, Ben and the pair."""
        lines = (await self.get("standings", *query))["unities"][0]["competitors_ranking"]
        total = {line["competitor_id"]: line["total"] for line in lines}
        return [total[one] for one in self.season.ids]


@pytest.fixture
def table(season: Season) -> Table:
    return Table(season)


async def test_a_season_typed_in_afterwards_has_a_past(table: Table) -> None:
    season, (ada, ben, pair) = table.season, table.season.ids
    second = await play(season, (ada, 3), (ben, 1), started_at="2024-03-10 15:00:00")
    first = await play(season, (ben, 2), started_at="2024-03-09 15:00:00")
    undated = await play(season, (pair, 9))
    published = (await table.get("standings"))["sequence"]
    assert await table.totals() == await table.totals("on=2999-01-01") == [3, 3, 9]
    for on, totals in {
        "2024-03-08": [0, 0, 0],
        "2024-03-09": [0, 2, 0],
        "2024-03-10%2014:59:59": [0, 2, 0],
        "2024-03-10T16:00:00%2B01:00": [3, 3, 0],  # 15:00:00 in UTC
    }.items():
        assert await table.totals(f"on={on}") == await table.totals(f"on={on}", "top=9") == totals

    await season.client.put(f"competitions/{first}/void.json")
    await season.client.put(f"competitions/{undated}.json", {"started_at": "2024-03-09 15:00:00"})
    assert await table.totals("on=2024-03-09") == [0, 0, 9]  # as if it had never counted
    assert await table.totals("on=2024-03-09", f"at_sequence={published}") == [0, 2, 0]  # as published
    await season.client.put(f"competitions/{second}.json", {"started_at": ""})
    assert await table.totals("on=2024-12-31") == [0, 0, 9]
    await season.client.put(f"{season.path}/participants.json", {"remove": pair})
    lines = (await table.get("standings", "on=2024-03-09", "top=9"))["unities"][0]["competitors_ranking"]
    assert [(line["competitor_id"], line["position"]) for line in lines] == [(ada, 1), (ben, 1)]  # the list of now


async def test_it_goes_through_all_that_takes_a_moment(table: Table) -> None:
    season, (ada, ben, pair) = table.season, table.season.ids
    matches = []
    for day, line in ((1, (ada, 1)), (2, (ada, 2)), (3, (ben, 4))):
        matches.append(await play(season, line, started_at=f"2024-03-0{day} 15:00:00"))
    criteria = f'[{{"unity":{season.unity_id},"best":1}}]'
    await season.client.put(f"{season.path}/classification.json", {"criteria": criteria})
    shown = await table.get("classification", "on=2024-03-02", "since_on=2024-02-29")
    assert [(line["competitor_id"], line["values"], line["moved"]) for line in shown["standings"]] == [
        (ada, [2], 0),
        (ben, [0], -1),
        (pair, [0], -1),
    ]
    shown = await table.get("form", "on=2024-03-02", "top=1")
    assert shown["on"] == "2024-03-02T23:59:59.999999Z"
    (her,) = shown["form"]
    assert [one["competition_id"] for one in her["competitions"]] == matches[:2]
    for query in ("", "&top=3", "&tag=doubles"):
        asked = f"{season.path}/standings.json?since_on=2024-03-02{query}"
        tags = [(await season.client.get(f"{asked}&on={on}")).headers["ETag"] for on in ("2024-03-02", "2024-03-03")]
        assert len(set(tags)) == 2
    shown = await table.get("standings", "since_on=2024-03-02", "top=2")
    moved = [(line["competitor_id"], line["moved"]) for line in shown["unities"][0]["competitors_ranking"]]
    assert moved == [(ben, 1), (ada, -1)]
    await give(season, "", (pair, 9))
    assert (await table.totals("on=2024-03-03"))[2] == 0


async def test_leaders_are_shown_by_either_clock(table: Table) -> None:
    season, (ada, ben, pair) = table.season, table.season.ids
    empty = await table.get("leaders")
    assert (empty["until"], empty["reigns"], empty["times"], empty["differences"]) == (None, [], [], [])
    first = await play(season, (ada, 3), started_at="2024-03-01 15:00:00")
    await play(season, (ben, 3), started_at="2024-03-08 15:00:00")
    published = (await table.get("standings"))["sequence"]
    await season.client.put(f"competitions/{first}/void.json")

    world = await table.get("leaders", "clock=world")
    assert [(one["since"][:13], one["until"], one["competitors"]) for one in world["reigns"]] == [
        ("2024-03-08T15", None, [ben])
    ]
    assert world["until"] == "2024-03-08T15:00:00.000000Z"
    assert (world["lines"], world["led"], world["differing"]) == (1, 1, 2)
    known_then = await table.get("leaders", "clock=world", f"at_sequence={published}", "until=2024-03-10")
    assert [(one["since"][:10], (one["until"] or "")[:10], one["competitors"]) for one in known_then["reigns"]] == [
        ("2024-03-01", "2024-03-08", [ada]),
        ("2024-03-08", "", [ada, ben]),
    ]
    (hers, his) = known_then["times"]
    assert (hers["competitor_id"], his["competitor_id"]) == (ada, ben)
    assert (hers["days"], hers["weeks"], hers["competitions"], hers["runs"]) == (10, 2, 2, 1)
    assert (hers["seconds"], hers["shared_seconds"]) == (9 * 86400 + 9 * 3600, 2 * 86400 + 9 * 3600)
    assert (his["days"], his["weeks"], his["competitions"], his["runs"]) == (3, 1, 1, 1)
    assert [one["until"][:10] for one in (hers["longest"], his["longest"])] == ["2024-03-11"] * 2
    log = await table.get("leaders")
    assert [one["competitors"] for one in log["reigns"]] == [[ada], [ada, ben], [ben]]
    differing = [(one["log"], one["world"]) for one in log["differences"]]
    assert differing == [([ada], [ben]), ([ada, ben], [ben])]
    (page,) = (await table.get("leaders", "offset=1", "limit=1"))["reigns"]
    assert page == log["reigns"][1]
    wins = await season.client.post(f"{season.path}/unities.json", {"name": "wins"})
    assert (await table.get("leaders", f"unity={wins.json['unity']['id']}"))["reigns"] == []
    await season.client.put(f"{season.path}/participants.json", {"remove": ben})
    assert [one["competitors"] for one in (await table.get("leaders"))["reigns"]] == [
        [ada],
        [ada, ben],
        [ben],
        [ada, pair],
    ]


async def test_a_place_is_explained_by_date(table: Table) -> None:
    season, (ada, ben, _) = table.season, table.season.ids
    second = await play(season, (ada, 3), started_at="2024-03-10 15:00:00")
    first = await play(season, (ben, 2), started_at="2024-03-09 15:00:00")
    path = f"{season.path}/explain.json?competitor={ada}"
    told = (await season.client.get(f"{path}&on=2024-03-10")).json["explanation"]
    assert (told["on"], told["next"], told["to"]["total"], told["to"]["position"]) == (
        "2024-03-10T23:59:59.999999Z",
        None,
        3,
        1,
    )
    assert [(one["took_place"][:10], one["competition_id"], one["delta"]) for one in told["steps"]] == [
        ("2024-03-09", first, None),  # of others
        ("2024-03-10", second, 3),
    ]
    assert told["steps"][0]["sequence"] > told["steps"][1]["sequence"]  # as they were recorded
    assert all(one["recorded_at"] > one["took_place"] for one in told["steps"])
    await season.client.put(f"competitions/{first}/void.json")
    told = (await season.client.get(f"{path}&on=2024-03-09")).json["explanation"]
    assert (told["steps"], told["to"]["total"]) == ([], 0)
    known = (await season.client.get(f"{path}&on=2024-03-10&limit=1&to={told['to']['sequence'] - 2}")).json
    assert [one["competition_id"] for one in known["explanation"]["steps"]] == [second]
    refused(await season.client.get(f"{path}&on=2024-03-09&from=1"), 400, "from")


async def test_a_competitor_struck_from_all_that_gave_points_never_led(table: Table) -> None:
    season = table.season
    form = {"participants_delta": deltas((season.ids[0], season.unity_id, 3)), "competition_id": season.competition_id}
    await season.client.put(f"{season.path}/add.json", form)
    leaders = f"{season.path}/leaders.json?clock=world"
    assert (await season.client.get(leaders)).json["leaders"]["reigns"][0]["competitors"] == [season.ids[0]]
    await season.client.put(f"competitions/{season.competition_id}/strike.json", {"competitors": season.ids[0]})
    assert (await season.client.get(leaders)).json["leaders"]["reigns"] == []


async def test_leaders_are_refused_where_there_is_too_much_to_read(table: Table, bounds: Bounds) -> None:
    season = table.season
    await give(season, "", (season.ids[0], 3))
    bounds(LEADERS_EVENTS_MAX=2)
    refused(await season.client.get(f"{season.path}/leaders.json"), 503)
    for query, *named in (
        ("clock=moon", "clock"),
        ("at_sequence=1&at_time=2024-03-01", "at_sequence", "at_time"),
        ("limit=0", "limit"),
    ):
        refused(await season.client.get(f"{season.path}/leaders.json?{query}"), 400, *named)


async def test_a_day_that_is_none_is_refused_by_name(table: Table) -> None:
    for name in ("standings", "classification", "form"):
        for on in ("banana", "2024-02-30", "412"):
            refused(await table.season.client.get(f"{table.season.path}/{name}.json?on={on}"), 400, "on")
    path = f"{table.season.path}/standings.json?since=1&since_on=2024-03-01"
    refused(await table.season.client.get(path), 400, "since", "since_on")


async def test_long_answers_are_as_short_ones(table: Table, bounds: Bounds) -> None:
    season, (ada, ben, _) = table.season, table.season.ids
    await play(season, (ada, 3), started_at="2024-03-01 15:00:00")
    await play(season, (ben, 4), started_at="2024-03-02 15:00:00")
    asked = [
        [],
        ["since_on=2024-03-01"],
        ["on=2024-03-01"],
        ["on=2024-03-02"],
        ["on=2024-03-02", "since_on=2024-03-01"],
    ]
    short = [await table.get("standings", *query) for query in asked]
    bounds(SHORT_LINES_MAX=0)
    await give(season, "", (ada, 0))
    for query, before in zip(asked, short, strict=True):
        long = await table.get("standings", *query)
        assert [one["competitors_ranking"] for one in long["unities"]] == [
            one["competitors_ranking"] for one in before["unities"]
        ]
