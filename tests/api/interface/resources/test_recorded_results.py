"""One request records a match with its result: a new one, or the one with its key."""

import asyncio
import json
from typing import Any

import asyncpg

from engine.database.pool import Database
from tests.api.scored import League
from tests.projections.verified import verified
from tests.service import Answer, Client, Season, listed


async def record(league: League, query: str = "", **fields: object) -> Answer:
    return await league.client.put(f"results.json{query}", {"group_id": 1} | fields)


def shown(answer: Answer) -> dict[int, int]:
    lines: list[dict[str, Any]] = answer.json["ranking"]["unities"][0]["competitors_ranking"]
    return {line["competitor_id"]: line["total"] for line in lines}


async def test_a_new_match_and_its_correction_by_key_answer_with_the_table(league: League, database: Database) -> None:
    a, b, c = league.ids
    await league.score()
    query = f"?ranking={league.ranking_id}"
    new = await record(league, query, participants=listed([a, b]), result="2:1", key="M7")
    assert (new.status, shown(new)) == (200, {a: 3, b: 0, c: 0})
    match = new.json["competition"]["id"]
    corrected = await record(league, query, participants=listed([a, b]), result="1:2", key="M7", location="Cork")
    assert (corrected.json["competition"]["id"], shown(corrected)) == (match, {b: 3, a: 0, c: 0})
    assert corrected.json["competition"]["location"] == "Cork"
    events = (await league.client.get(f"competitions/{match}/results.json")).json["competition"]["results"]
    assert [one["result"] for one in events] == ["2:1", "1:2"]
    bare = await record(league, participants=listed([b, c]), result="1:0")
    assert "ranking" not in bare.json
    assert await league.table() == {b: 6, a: 0, c: 0}
    minimal = await league.client.put(f"results.json{query}", {"key": "M7", "result": ""}, {"Prefer": "return=minimal"})
    assert (minimal.json["id"], shown(minimal)) == (match, {b: 3, a: 0, c: 0})
    assert not (await verified(database)).differences


async def test_what_a_known_match_cannot_have_and_a_new_one_lacks_is_refused(season: Season, league: League) -> None:
    a, b, _ = league.ids
    lacking = await league.client.put("results.json", {"key": "M8", "result": "1:0"})
    assert (lacking.status, [one["field"] for one in lacking.json["errors"]]) == (422, ["group_id"])
    await record(league, participants=listed([a, b]), result="2:1", key="M7")
    wrong = await record(league, result="2:1", key="M7", winner=season.ids[0])
    assert [one["field"] for one in wrong.json["errors"]] == ["winner"]
    nowhere = await record(league, "?ranking=999", key="M9", participants=listed([a, b]), result="1:0")
    assert (nowhere.status, nowhere.json["errors"][0]["field"]) == (422, "ranking")
    assert (await league.client.get("competitions.json")).json["competitions"]["competition"][-1].get("key") == "M7"
    assert (await league.client.put("results.json?rank=1", {"group_id": 1})).status == 400


async def test_two_that_record_the_same_key_at_once_make_one_match(league: League, peers_client: Client) -> None:
    a, b, c = league.ids
    await league.score()
    fields = {"group_id": 1, "participants": listed([a, b]), "key": "M7"}
    answers = await asyncio.gather(
        *[one.put("results.json", fields | {"result": "2:1"}) for one in (league.client, peers_client) * 3]
    )
    assert {answer.status for answer in answers} == {200}
    assert len({answer.json["competition"]["id"] for answer in answers}) == 1
    assert await league.table() == {a: 3, b: 0, c: 0}


async def record_all(league: League, items: list[dict[str, object]], **headers: str) -> Answer:
    return await league.client.put("results.json", {"items": json.dumps(items)}, headers)


async def test_results_of_a_round_are_one_block_with_all_their_points(
    league: League, database: Database, owner: asyncpg.Connection
) -> None:
    a, b, c = league.ids
    await league.score()
    fixture, played = await league.play(a, b, ""), await league.play(b, c, "1:0")
    blocks = await owner.fetchval("SELECT count(*) FROM block")
    new = {"group_id": 1, "key": "M7", "participants": [c, a], "result": "0:2"}
    items = [{"competition": fixture, "result": "2:2"}, {"competition": played, "result": "1:1"}, new]
    answers = [await record_all(league, items, **{"Idempotency-Key": "round-1"}) for _ in range(2)]
    assert [answer.status for answer in answers] == [200, 200], answers[0].body
    assert answers[0].body == answers[1].body
    listed = answers[0].json["competitions"]["competition"]
    assert [one["result"] for one in listed] == ["2:2", "1:1", "0:2"]
    assert [one["id"] for one in listed[:2]] == [fixture, played]
    assert await owner.fetchval("SELECT count(*) FROM block") == blocks + 1
    assert await league.table() == {a: 4, b: 2, c: 1}
    minimal = await record_all(league, [{"key": "M7", "result": "2:0"}], Prefer="return=minimal")
    assert minimal.json["ids"] == [listed[2]["id"]]
    assert await league.table() == {a: 1, b: 2, c: 4}
    assert not (await verified(database)).differences


async def test_a_recorded_result_that_gives_no_points_says_why_next_to_the_table(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    query = f"?ranking={league.ranking_id}"
    unread = await record(league, query, participants=listed([a, b]), result="2;1", key="M7")
    (found,) = unread.json["unscored"]
    assert (found["ranking_id"], "Forms that count" in found["why"]) == (league.ranking_id, True)
    assert shown(unread) == {a: 0, b: 0, c: 0}
    corrected = await record(league, query, result="2:1", key="M7")
    assert ("unscored" in corrected.json, shown(corrected)) == (False, {a: 3, b: 0, c: 0})
    new = {"group_id": 1, "participants": [b, c], "result": "gewonnen"}
    several = await record_all(league, [{"key": "M7", "result": "1:0"}, new])
    assert len(several.json["unscored"]) == 1
    posted = {"group_id": 1, "participants": listed([a, b]), "result": "2;1"}
    assert (await league.client.post("competitions.json", posted)).json.keys() == {"status", "message", "competition"}


async def test_one_wrong_result_of_a_round_is_named_by_its_place_and_nothing_is_recorded(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    fixture = await league.play(a, b, "")
    right = {"competition": fixture, "result": "2:1"}
    for wrong, field in (
        ({"competition": 999, "result": "1:0"}, "items[1].competition"),
        ({"competition": fixture, "result": "2:2"}, "items"),
        ({"group_id": 1, "participants": [b, c], "result": "1:0", "winner": a}, "items[1].winner"),
        ({"key": "M8", "result": "1:0"}, "items[1].group_id"),
    ):
        refused = await record_all(league, [right, wrong])
        assert (refused.status, [one["field"] for one in refused.json["errors"]]) == (422, [field]), refused.body
    assert await league.table() == {a: 0, b: 0, c: 0}


async def test_rounds_that_two_processes_record_at_once_give_what_one_after_the_other_would(
    league: League, peers_client: Client, database: Database
) -> None:
    a, b, c = league.ids
    await league.score()
    one, other = await league.play(a, b, "1:0"), await league.play(b, c, "1:0")
    both = [
        [{"competition": one, "result": "0:1"}, {"competition": other, "result": result}] for result in ("2:2", "0:3")
    ]
    answers = await asyncio.gather(
        *[
            client.put("results.json", {"items": json.dumps(items)})
            for client in (league.client, peers_client)
            for items in both * 2
        ]
    )
    assert {answer.status for answer in answers} == {200}
    assert await league.table() in ({b: 4, c: 1, a: 0}, {b: 3, c: 3, a: 0})
    assert not (await verified(database)).differences
