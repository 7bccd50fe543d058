"""Tie-breaks at every door: declared, shown and explained over HTTP, on pages and on the command line."""

import json
from typing import Any, Final

import pytest

from tests.api.cli.conftest import Tallybook
from tests.api.leagues import lines, shown
from tests.api.visitor import Visitor, form_of
from tests.api.web.test_console import at, words
from tests.service import Season, create_ranking, listed

_AWARD: Final = {"from": "outcome", "table": {"win": 10, "draw": 5, "loss": 0, "bye": 10}}


class Open:
    """Ada, Ben and Pair after two rounds, with a bye in each: Ada beat Ben, then drew with Pair."""

    def __init__(self, season: Season, ranking_id: int, unity_id: int) -> None:
        self.client, self.path = season.client, f"rankings/{ranking_id}"
        self.ranking_id, self.unity_id = ranking_id, unity_id
        self.ada, self.ben, self.pair = season.ids

    async def play(self, number: int, result: str, *participants: int) -> None:
        form = {"group_id": 1, "participants": listed(participants), "result": result, "round": number}
        assert (await self.client.post("competitions.json", form)).status == 200

    async def put(self, what: str, **fields: Any) -> Any:
        form = {name: json.dumps(value) for name, value in fields.items()}
        return await self.client.put(f"{self.path}/{what}.json", form)


@pytest.fixture
async def played(season: Season) -> Open:
    ranking = await create_ranking(season.client, season.ids, name="Open", main_unity_decimals="1")
    its = Open(season, ranking["id"], ranking["unities"][0]["id"])
    scored = await its.put("scoring", scorings=[{"awards": [{**_AWARD, "unity": its.unity_id}]}])
    assert scored.status == 200, scored.body
    for game in (
        (1, "1:0", its.ada, its.ben),
        (1, "bye", its.pair),
        (2, "½:½", its.pair, its.ada),
        (2, "bye", its.ben),
    ):
        await its.play(*game)
    return its


def of(played: Open, **criterion: Any) -> dict[str, Any]:
    return {"unity": played.unity_id, **criterion}


async def test_a_declared_tie_break_orders_and_is_explained_over_http(played: Open) -> None:
    criteria = [of(played), of(played, tiebreak="BH", cut=1), of(played, tiebreak="WON")]
    answer = await played.put("classification", criteria=criteria)
    dated = [{**one, "edition": "2026-03"} if "tiebreak" in one else one for one in criteria]
    assert answer.json["classification"] == {"criteria": dated}
    table = await shown(played.client, played.path)
    assert table["criteria"] == dated
    assert lines(table) == [
        (played.ada, 1, [15, 15, 1], None),
        (played.pair, 2, [15, 15, 0], 2),
        (played.ben, 3, [10, None, None], 0),
    ]
    explained = await played.client.get(f"{played.path}/explain.json?competitor={played.pair}")
    buchholz, won = explained.json["explanation"]["classification"]["tiebreaks"]
    bye = {"round": 1, "kind": "bye", "opponent_id": None, "dummy": True, "score": 10, "left_out": "cut"}
    game = {"round": 2, "kind": "played", "opponent_id": played.ada, "dummy": False, "score": 15, "left_out": None}
    parts = [{**part, "amount": part["score"], "games": 1, "points": None} for part in (bye, game)]
    assert buchholz == {"criterion": 1, "value": 15, "divisor": 1, "parts": parts}
    assert won == {"criterion": 2, "value": 0, "divisor": 1, "parts": []}


async def test_an_option_that_no_tie_break_has_is_refused_at_its_place(played: Open) -> None:
    answer = await played.put("classification", criteria=[of(played, tiebreak="WIN", cut=1)])
    assert answer.status == 422
    assert [fault["field"] for fault in answer.json["errors"]] == ["criteria[0].cut"]


async def test_the_console_takes_names_of_tie_breaks_and_shows_what_they_are_made_of(
    visitor: Visitor, season: Season, played: Open
) -> None:
    ranking = at(season, f"/rankings/{played.ranking_id}")
    form = {"criteria[0].unity": played.unity_id, "criteria[1].unity": played.unity_id, "criteria[1].tiebreak": "BX"}
    refused = await visitor.fill(f"{ranking}/classification", form)
    assert 'id="fault-1-tiebreak"' in refused.body.decode()
    refused = await visitor.fill(f"{ranking}/classification", form | {"criteria[1].tiebreak": "WIN/C1"})
    assert 'id="fault-1-tiebreak"' in refused.body.decode()
    form |= {"criteria[1].tiebreak": "bh/c1", "criteria[1].edition": "2024-08"}
    assert (await visitor.fill(f"{ranking}/classification", form)).status == 303
    declared, _ = form_of(await visitor.page(f"{ranking}/classification"))
    assert (declared["criteria[1].tiebreak"], declared["criteria[1].edition"]) == ("BH/C1", "2024-08")
    table = words(await visitor.page(ranking))
    assert "Pts BH/C1" in table
    assert "Ben 1.0 1.5" in table  # also where it was not needed
    explained = words(await visitor.page(f"{ranking}/competitors/{played.pair}"))
    assert "Round Opponent BH/C1 1 bye 1.5 2 Ada 1.5 Value 1.5" in explained


async def test_the_command_line_takes_and_tells_them(tallybook: Tallybook, played: Open) -> None:
    its = played.client.tournament, str(played.ranking_id)
    said = await tallybook(
        "classification", "declare", *its, "points", "points:BH/C1", "points:KS/L-1:2024-08", "points:DE"
    )
    assert said.err == f"ranking {its[1]} is classified by points; BH/C1; KS/L-1; DE\n"
    assert "BH/C1" in await tallybook.done("classification", "show", *its)
    explained = await tallybook.done("explain", *its, str(played.pair))
    assert "BH/C1: 1.5 = " in explained
    refused = await tallybook.refused("classification", "declare", *its, "points:BH/C1:SB")
    assert refused == ["The criterion 'points:BH/C1:SB' says the same thing twice."]
    refused = await tallybook.refused("classification", "declare", *its, "points:BH:2023-09")
    assert "2023-09" in refused[0]
