"""Many at once: competitors and competitions by `items`, and points for several rankings. All of it, or nothing."""

import json
from typing import Any, Final

import asyncpg
import pytest

from api.interface.resources import competitors
from engine.domain.terms import ITEMS_MAX
from tests.api.asking import Log, keyed, refused
from tests.bounds import Bounds
from tests.service import Client, Season, create_ranking, deltas, listed, rankings_deltas, totals

MINIMAL: Final = {"Prefer": "return=minimal"}
JSON: Final = {"Content-Type": "application/json"}
_BLOCKS: Final = "SELECT count(*) FROM block"


def items(*said: object) -> dict[str, str]:
    return {"items": json.dumps(said)}


# ── Competitors and competitions ────────────────────────────────────────────────────────────────────────


async def test_competitors_are_registered_in_order_in_one_commit(
    season: Season,
    owner: asyncpg.Connection,
    log: Log,
) -> None:
    client, (ada, _, _) = season.client, season.ids
    events, blocks = await log.length(), await owner.fetchval(_BLOCKS)
    answer = await client.post(
        "competitors.json",
        items(
            {"name": "Dan", "tags": ["u18", "north"]},
            {"name": " Eve ", "parent": ada, "color": "ff0000"},
            {"name": "Dan", "tags": "u18, x"},
        ),
    )
    assert answer.status == 200
    assert (answer.json["message"], answer.json.keys()) == ("added", {"status", "message", "competitors"})
    made = answer.json["competitors"]["competitor"]
    assert [(one["name"], [tag["name"] for tag in one["tags"]]) for one in made] == [
        ("Dan", ["u18", "north"]),
        ("Eve", []),
        ("Dan", ["u18", "x"]),
    ]
    assert (made[1]["level"], made[1]["color"]) == (1, "ff0000")
    assert (await client.get("competitors.json")).json["competitors"]["competitor"][-3:] == made
    assert await log.length() == events + 3 == int(answer.headers["Tallybook-Sequence"])
    assert await owner.fetchval(_BLOCKS) == blocks + 1


async def test_competitions_are_added_in_order_with_all_their_fields(season: Season) -> None:
    client, (ada, ben, pair) = season.client, season.ids
    said = [
        {"group_id": 7, "participants": [ada, ben], "result": "2:0", "winner": ada},
        {"group_id": "8", "participants": listed([pair, ada, ben]), "result": {str(ada): "9.8"}, "location": "Hall 2"},
        {"group_id": 9, f"result[{ada}]": "1", "participants": [ada, ben, pair], "started_at": "2024-02-29 12:00:00"},
    ]
    answer = await client.post("competitions.json", items(*said))
    assert answer.status == 200, answer.body
    made = answer.json["competitions"]["competition"]
    assert (await client.get("competitions.json")).json["competitions"]["competition"][-3:] == made
    assert [one["result"] for one in made] == ["2:0", {str(ada): "9.8"}, {str(ada): "1"}]
    assert [[p["competitor_id"] for p in one["participants"]] for one in made] == [
        [ada, ben],
        [pair, ada, ben],
        [ada, ben, pair],
    ]
    minimal = await client.post("competitions.json", items(*said), MINIMAL)
    newest = (await client.get("competitions.json")).json["competitions"]["competition"][-3:]
    assert minimal.json == {"status": 200, "message": "added", "ids": [one["id"] for one in newest]}
    assert minimal.headers["Preference-Applied"] == "return=minimal"


@pytest.mark.parametrize("kind", ["competitors", "competitions"])
async def test_a_repeat_names_the_same_ids_and_makes_nothing(
    season: Season,
    peers_client: Client,
    log: Log,
    kind: str,
) -> None:
    """Of a form, and of JSON that says the same; by the process that made them and by another; and the next request."""
    said = [{"name": f"c{n}"} if kind == "competitors" else {"group_id": n} for n in range(40)]
    text = json.dumps(said)
    before = await log.length()
    first = await season.client.post(f"{kind}.json", {"items": text}, keyed("k") | MINIMAL)
    assert len(set(first.json["ids"])) == 40
    assert int(first.headers["Tallybook-Sequence"]) == before + 40
    body = f'{{"items": {text}}}'.encode()
    for client in (season.client, peers_client):
        again = await client.post(f"{kind}.json", body, JSON | keyed("k") | MINIMAL)
        assert (again.json, again.headers["Idempotency-Replayed"]) == (first.json, "true")
        assert again.headers["Tallybook-Sequence"] == first.headers["Tallybook-Sequence"]
        whole = await client.post(f"{kind}.json", {"items": text}, keyed("k"))
        assert [one["id"] for one in whole.json[kind][kind[:-1]]] == first.json["ids"]
        other = await client.post(f"{kind}.json", {"items": json.dumps(said[1:])}, keyed("k"))
        refused(other, 422, "Idempotency-Key")
    assert await log.length() == before + 40
    more = await season.client.post(f"{kind}.json", {"items": text}, keyed("other") | MINIMAL)
    assert not {*more.json["ids"]} & {*first.json["ids"]}


REFUSED: Final[list[tuple[str, Any, list[str]]]] = [
    ("competitors", [], ["items"]),
    ("competitors", {"name": "Dan"}, ["items"]),
    ("competitors", "Dan", ["items"]),
    ("competitors", [{"name": "Dan"}, 5, {"name": "Eve"}, []], ["items[1]", "items[3]"]),
    ("competitors", [{"name": "Dan"}, {"name": ""}, {}], ["items[1].name", "items[2].name"]),
    ("competitors", [{"name": "Dan"}, {"name": "\n", "color": "red"}], ["items[1].name", "items[1].color"]),
    ("competitors", [{"name": "Dan", "nickname": "D"}], ["items[0].nickname"]),
    ("competitors", [{"name": "Dan"}, {"name": 5}], ["items[1].name"]),
    ("competitors", [{"name": "Dan", "parent": 2**62}], ["items[0].parent"]),
    ("competitors", [{"name": "Dan", "items": [{"name": "Eve"}]}], ["items[0].items"]),
    ("competitions", [{"group_id": 1}, {"group_id": "x"}], ["items[1].group_id"]),
    ("competitions", [{"group_id": 1, "participants": [2**62]}], ["items[0].participants"]),
    ("competitions", [{"group_id": 1, "winner": 1}, {"group_id": 1}], ["items[0].winner"]),
]


async def test_one_fault_refuses_all_and_is_named_by_its_place(
    season: Season, log: Log, subtests: pytest.Subtests
) -> None:
    for kind, said, fields in REFUSED:
        with subtests.test(kind):
            before = await log.length()
            refused(await season.client.post(f"{kind}.json", {"items": json.dumps(said)}), 422, *fields)
            if not isinstance(said, str | dict):
                body = json.dumps({"items": said}).encode()
                refused(await season.client.post(f"{kind}.json", body, JSON), 422, *fields)
            assert await log.length() == before


async def test_items_come_alone_are_json_and_hold_no_key_twice(season: Season, log: Log) -> None:
    before = await log.length()
    post = season.client.post
    refused(await post("competitors.json", items({"name": "Dan"}) | {"name": "Eve"}), 422, "name")
    refused(await post("competitors.json", items({"name": "Dan"}) | {"nickname": "D"}), 422, "nickname")
    refused(await post("competitors.json", {"items": '[{"name":"Dan","name":"Eve"}]'}), 422, "items[0].name")
    refused(await post("competitors.json", {"items": '[{"name":"Dan"}'}), 400, "items")
    refused(await post("competitors.json", {"items": "[" * 100_000}), 400, "items")
    assert await log.length() == before
    assert (await post("competitors.json", {"items": "", "name": "Dan"})).json["competitor"]["name"] == "Dan"


async def test_a_request_makes_a_thousand_and_no_more(season: Season, log: Log) -> None:
    before = await log.length()
    said = [{"name": f"c{number}"} for number in range(ITEMS_MAX + 1)]
    (fault,) = refused(await season.client.post("competitors.json", items(*said)), 422, "items")
    assert fault == f"must contain at most {ITEMS_MAX} items"
    assert await log.length() == before
    answer = await season.client.post("competitors.json", items(*said[:-1]), MINIMAL)
    assert len(answer.json["ids"]) == ITEMS_MAX
    assert answer.json["ids"] == sorted(answer.json["ids"])
    assert await log.length() == before + ITEMS_MAX


async def test_a_long_answer_to_items_is_what_a_short_one_is(season: Season, bounds: Bounds) -> None:
    said = {
        "competitors": items(*({"name": f"c{n}"} for n in range(20))),
        "competitions": items(*({"group_id": n, "participants": season.ids} for n in range(20))),
    }
    short = {kind: await season.client.post(f"{kind}.json", form, keyed(kind)) for kind, form in said.items()}
    bounds(LONG_BYTES=100)
    for lines_max in (competitors.LINES_AT_ONCE_MAX, -1):
        bounds(LINES_AT_ONCE_MAX=lines_max)
        for kind, form in said.items():
            long = await season.client.post(f"{kind}.json", form, keyed(kind))
            assert (long.status, long.json) == (200, short[kind].json)
            assert "Content-Length" not in long.headers


# ── Points of several rankings ──────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def cup(season: Season) -> Any:
    """Another ranking of the season."""
    return await create_ranking(season.client, season.ids[1:], name="Cup", main_unity_name="goals")


async def test_points_of_several_rankings_are_one_commit(
    season: Season,
    cup: Any,
    owner: asyncpg.Connection,
    log: Log,
) -> None:
    client, (ada, ben, _) = season.client, season.ids
    goals = cup["unities"][0]["id"]
    events, blocks = await log.length(), await owner.fetchval(_BLOCKS)
    form = {
        "rankings_delta": rankings_deltas(
            {
                season.ranking_id: deltas((ada, season.unity_id, 3), (ben, season.unity_id, "-1")),
                cup["id"]: deltas((ben, goals, 2), (ben, goals, 2)),
            }
        ),
        "competition_id": season.competition_id,
        "reason": "abandoned at half-time",
    }
    answer = await client.put("points.json", form, keyed("k"))
    assert answer.json == {
        "status": 200,
        "message": "ok",
        "rankings": {
            "ranking": [
                {
                    "id": season.ranking_id,
                    "name": "Season",
                    "unities": [{"id": season.unity_id, "name": "points", "version": 2}],
                },
                {"id": cup["id"], "name": "Cup", "unities": [{"id": goals, "name": "goals", "version": 2}]},
            ]
        },
    }
    assert await log.length() == events + 2 == int(answer.headers["Tallybook-Sequence"])
    assert await owner.fetchval(_BLOCKS) == blocks + 1
    again = await client.put("points.json", form, keyed("k"))
    assert (again.body, again.headers["Idempotency-Replayed"]) == (answer.body, "true")
    assert again.headers["Tallybook-Sequence"] == answer.headers["Tallybook-Sequence"]
    assert await log.length() == events + 2
    shown = await client.get(f"rankings/{cup['id']}/standings.json")
    assert totals(shown, "goals")[ben] == 4
    history = (await client.get(f"rankings/{cup['id']}/history.json")).json["history"]
    assert [(line["competition_id"], line["reason"]) for line in history] == [
        (season.competition_id, "abandoned at half-time")
    ] * 2
    await client.put(f"competitions/{season.competition_id}/void.json")
    assert totals(await client.get(f"{season.path}/standings.json"))[ada] == 0
    assert totals(await client.get(f"rankings/{cup['id']}/standings.json"), "goals")[ben] == 0


async def test_one_fault_among_rankings_refuses_all(season: Season, cup: Any, log: Log) -> None:
    client, (ada, ben, _) = season.client, season.ids
    goals = cup["unities"][0]["id"]
    good = {"competitor_id": ben, "unities": [{"unity_id": goals, "delta": "1"}]}
    before = await log.length()

    async def faults(*rankings: object, **more: object) -> list[str]:
        form = {"rankings_delta": json.dumps(rankings)} | more
        answer = await client.put("points.json", form)
        as_json = await client.put("points.json", json.dumps({"rankings_delta": rankings} | more).encode(), JSON)
        assert (answer.status, as_json.body) == (422, answer.body)
        return [fault["field"] for fault in answer.json["errors"]]

    its = {"ranking_id": cup["id"], "participants_delta": [good]}
    stranger = {"ranking_id": cup["id"], "participants_delta": [good | {"competitor_id": ada}]}
    assert await faults(its, {"ranking_id": 2**62, "participants_delta": [good]}) == ["rankings_delta[1].ranking_id"]
    assert await faults(stranger) == ["rankings_delta[0].participants_delta"]
    assert await faults(its, its) == ["rankings_delta"]
    assert await faults(its, competition_id=2**62) == ["competition_id"]
    assert await faults(its, reason="x" * 256) == ["reason"]
    assert await faults(its | {"participants_delta": []}) == ["rankings_delta[0].participants_delta"]
    assert await faults(its | {"participants_delta": [good | {"unities": []}]}) == ["rankings_delta"]
    assert await faults(its | {"other": 1}) == ["rankings_delta"]
    assert await faults() == ["rankings_delta"]
    twice = json.dumps([its]).replace('"delta": "1"', '"delta": "1", "delta": "2"')
    refused(await client.put("points.json", {"rankings_delta": twice}), 422, "rankings_delta")
    refused(await client.put("points.json", {"rankings_delta": "[{"}), 400, "rankings_delta")
    closed = {"ranking_id": season.closed_ranking_id, "participants_delta": [good]}
    answer = await client.put("points.json", {"rankings_delta": json.dumps([its, closed])})
    refused(answer, 409)
    assert "reopen them first: 'Of Ben alone'." in answer.json["message"]
    assert await log.length() == before


async def test_a_delta_that_is_none_is_named_with_its_ranking(season: Season) -> None:
    form = {"rankings_delta": rankings_deltas({season.ranking_id: deltas((season.ids[0], season.unity_id, "+-5"))})}
    (fault,) = refused(await season.client.put("points.json", form), 422, "rankings_delta")
    assert fault == (
        f"delta '+-5' of competitor {season.ids[0]} must be a whole number within ±2147483647, "
        f"in ranking {season.ranking_id}"
    )


async def test_points_of_rankings_take_no_condition(season: Season) -> None:
    form = {"rankings_delta": rankings_deltas({season.ranking_id: deltas((season.ids[0], season.unity_id, 1))})}
    refused(await season.client.put("points.json", form, {"If-Match": "*"}), 400, "If-Match")
