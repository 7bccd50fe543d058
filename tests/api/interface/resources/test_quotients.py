"""Goal averages and points per game: criteria that divide totals, by every door."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from api.interface.kinds import KindName, kinds
from tests.api.asking import refused
from tests.api.interface.resources.test_results import give, sequence_of
from tests.api.public_boards import Board, change
from tests.service import Client, Season, create_ranking, register

INFINITE = 2**53 - 1


@pytest.fixture
async def league(season: Season) -> dict[str, int]:
    """A ranking with goals for and against, and games; ids by name, and that of the ranking."""
    form = {"name": "League of 1888", "main_unity_name": "goals for", "participants": ",".join(map(str, season.ids))}
    made = (await season.client.post("rankings.json", form)).json["ranking"]
    ids = {"ranking": made["id"], "for": made["unities"][0]["id"]}
    for name, sort in ("against", "ASC"), ("games", "DESC"):
        answer = await season.client.post(f"rankings/{ids['ranking']}/unities.json", {"name": name, "sort": sort})
        ids[name] = answer.json["unity"]["id"]
    return ids


async def declare(client: Client, league: dict[str, int], *criteria: dict[str, Any]) -> Any:
    path = f"rankings/{league['ranking']}/classification.json"
    return await client.put(path, {"criteria": json.dumps(criteria)})


async def lines(client: Client | Board, league: dict[str, int], query: str = "") -> list[tuple[Any, ...]]:
    answer = await client.get(f"rankings/{league['ranking']}/classification.json{query}")
    assert answer.status == 200, answer.body
    shown = answer.json["classification"]["standings"]
    return [
        (one["competitor_id"], one["position"], one["values"][0], one.get("placed", True), one["decided_by"])
        for one in shown
    ]


async def test_a_goal_average_is_compared_exactly_at_every_moment(
    season: Season, league: dict[str, int], board: Board
) -> None:
    client, (ada, bob, cid), path = season.client, season.ids, f"rankings/{league['ranking']}"
    pair = [league["for"], league["against"]]
    declared = await declare(client, league, {"ratio": pair}, {"unity": league["for"]})
    assert declared.json["classification"]["criteria"] == [{"ratio": pair}, {"unity": league["for"]}]
    nobody = [(one, 1, None, False, None) for one in (ada, bob, cid)]
    assert await lines(client, league) == nobody
    first = await give(client, path, (ada, league["for"], 2_000_001), (ada, league["against"], 2_000_000))
    await give(client, path, (bob, league["for"], 2_000_000), (bob, league["against"], 1_999_999))
    assert await lines(client, league) == [
        (bob, 1, 1_000, True, None),
        (ada, 2, 1_000, True, 0),  # the same in thousandths
        (cid, 3, None, False, 0),
    ]
    last = await give(client, path, (cid, league["for"], 1), competition_id=season.competition_id)
    expected = [(cid, 1, INFINITE, True, None), (bob, 2, 1_000, True, 0), (ada, 3, 1_000, True, 0)]
    assert await lines(client, league) == expected
    assert (await lines(client, league, f"?at_sequence={sequence_of(first)}"))[0][:3] == (ada, 1, 1_000)
    assert await lines(client, league, "?on=2999-01-01") == expected
    preview = (await client.get(f"{path}/reverse.json?sequence={sequence_of(last)}")).json["rankings"][0]
    assert [(one["competitor_id"], one["position_after"]) for one in preview["classification"]] == [
        (bob, 1),
        (ada, 2),
        (cid, 3),
    ]
    await change(client, published="true")
    assert await lines(board, league) == expected
    table = (await board.get(f"table.json?ranking={league['ranking']}")).json
    assert (table["columns"][0]["name"], table["columns"][0]["notation"]) == (
        "goals for / against",
        {"decimals": 3, "results": "DESC", "quotient": True},
    )
    page = await client.send("GET", f"/board/{board.slug}?ranking={league['ranking']}")
    assert "∞" in page.body.decode()
    explained = (await client.get(f"{path}/explain.json?competitor={bob}")).json["explanation"]
    assert [line["values"][0] for line in explained["classification"]["standings"]] == [INFINITE, 1_000, 1_000]


async def test_points_per_game_need_a_game(season: Season, league: dict[str, int]) -> None:
    client, (ada, bob, cid), path = season.client, season.ids, f"rankings/{league['ranking']}"
    await declare(client, league, {"per": [league["for"], league["games"]]})
    await give(client, path, (ada, league["for"], 7), (ada, league["games"], 4))
    await give(client, path, (bob, league["for"], 4), (bob, league["games"], 2), (cid, league["for"], 9))
    assert [line[:4] for line in await lines(client, league)] == [
        (bob, 1, 2_000, True),
        (ada, 2, 1_750, True),
        (cid, 3, None, False),
    ]


async def _like(kind: KindName, client: Client, ids: Iterable[int]) -> tuple[str, dict[str, int]]:
    """Creates a ranking of this kind, without its scorings; its path, and its unities by name."""
    main, *others = [unity.name for unity in kinds()[kind].unities]
    made = await create_ranking(client, ids, main_unity_name=main)
    path, unities = f"rankings/{made['id']}", {main: made["unities"][0]["id"]}
    for name in others:
        unities[name] = (await client.post(f"{path}/unities.json", {"name": name})).json["unity"]["id"]
    criteria = [
        {key: [unities[one] for one in of] if isinstance(of, list) else unities[of] for key, of in criterion.items()}
        for criterion in kinds()[kind].criteria
    ]
    answer = await client.put(f"{path}/classification.json", {"criteria": json.dumps(criteria)})
    assert answer.status == 200, answer.body
    return path, unities


async def test_a_league_that_ends_early_is_decided_by_points_per_game(client: Client) -> None:
    """The top of League One of 2019/20, as the EFL decided it when the last matches could not be played: Wycombe came
    third, ahead of three teams with more points."""
    teams = {  # won, drawn and lost, and the goal difference
        "Coventry": (18, 13, 3, 18),
        "Rotherham": (18, 8, 9, 23),
        "Wycombe": (17, 8, 9, 5),
        "Oxford": (17, 9, 9, 24),
        "Portsmouth": (17, 9, 9, 17),
        "Fleetwood": (16, 12, 7, 13),
        "Peterborough": (17, 8, 10, 28),
        "Sunderland": (16, 11, 9, 16),
    }
    ids = dict(zip(teams, await register(client, *teams), strict=True))
    path, unities = await _like("football-per-game", client, ids.values())
    for team, (won, drawn, lost, difference) in teams.items():
        totals = {"points": 3 * won + drawn, "played": won + drawn + lost, "goal difference": difference}
        await give(client, path, *((ids[team], unities[name], n) for name, n in totals.items()))
    table = await lines(client, {"ranking": int(path.partition("/")[2])})
    assert [(one, place, per_game) for one, place, per_game, *_ in table] == [
        (ids[team], place, per_game)
        for place, (team, per_game) in enumerate(
            zip(teams, (1_971, 1_771, 1_735, 1_714, 1_714, 1_714, 1_686, 1_639), strict=True), start=1
        )
    ]


async def test_a_quotient_that_cannot_be_is_refused(season: Season, league: dict[str, int]) -> None:
    client, goals, against = season.client, league["for"], league["against"]
    for criterion, field in (
        ({"ratio": [goals, 999]}, "criteria[0].ratio"),
        ({"per": [goals, goals]}, "criteria[0].per"),
        ({"ratio": [999, against]}, "criteria[0].unity"),
        ({"per": [goals, against], "best": 2}, "criteria[0].per"),
    ):
        refused(await declare(client, league, criterion), 422, field)
    for wrong in ({"ratio": [goals, against], "unity": goals}, {}, {"ratio": [goals]}):
        assert (await declare(client, league, wrong)).status in (400, 422)
