"""Unities that count the best or the last result, over HTTP, in tables and in verification."""

import json
from typing import Any

from projections.tables.worker import Worker
from tests.api.service import Answer, Client, Season, Service, deltas
from tests.projections.verified import verified

MOST = 2**53 - 1


async def make(season: Season, **fields: object) -> tuple[str, dict[str, Any]]:
    """A ranking whose main unity counts the best result, with `laps` (the lowest) and `weight` (the last)."""
    form = {"name": "Scores", "main_unity_name": "score", "participants": ",".join(map(str, season.ids))}
    made = (await season.client.post("rankings.json", form | {"main_unity_counts": "best"} | fields)).json["ranking"]
    path, unities = f"rankings/{made['id']}", {"score": made["unities"][0]["id"]}
    for name, sort, counts in (("laps", "ASC", "best"), ("weight", "DESC", "last"), ("points", "DESC", "sum")):
        answer = await season.client.post(f"{path}/unities.json", {"name": name, "sort": sort, "counts": counts})
        unities[name] = answer.json["unity"]["id"]
    return path, unities


async def give(client: Client, path: str, *lines: tuple[int, int, int], **fields: object) -> Answer:
    return await client.put(f"{path}/add.json", {"participants_delta": deltas(*lines)} | fields)


def table(answer: Answer, number: int = 0) -> list[tuple[int, int, int | None]]:
    lines = answer.json["ranking"]["unities"][number]["competitors_ranking"]
    return [(line["competitor_id"], line["position"], line["total"]) for line in lines]


async def test_results_are_taken_back_and_given_back(service: Service, season: Season) -> None:
    client, (ada, bob, *others) = season.client, season.ids
    path, unities = await make(season)
    score, laps, weight = unities["score"], unities["laps"], unities["weight"]
    listed = (await client.get(f"{path}.json?omit=competitors")).json["ranking"]["unities"]
    assert [unity.get("counts", "sum") for unity in listed] == ["best", "best", "last", "sum"]
    nobody = await client.get(f"{path}/standings.json")
    assert {(position, total) for _, position, total in table(nobody)} == {(1, None)}

    competition = season.competition_id
    await give(client, path, (ada, score, 1_240), (ada, laps, 61), (ada, weight, 80), competition_id=competition)
    second = await give(client, path, (ada, score, -5), (ada, laps, 59), (ada, weight, 82), (bob, score, -MOST))
    assert table(second) == [(ada, 1, 1_240), (bob, 2, -MOST), *[(one, 3, None) for one in others]]
    assert [unity["version"] for unity in second.json["ranking"]["unities"]] == [3, 3, 3, 1]
    sequence = int(second.headers["Tallybook-Sequence"])

    preview = (await client.get(f"competitions/{competition}/void.json")).json["rankings"][0]["unities"]
    assert [(u["moves"][0]["total_before"], u["moves"][0]["total_after"]) for u in preview[:3]] == [
        (1_240, -5),
        (59, 59),
        (82, 82),
    ]
    await client.put(f"competitions/{competition}/void.json")
    undone = await client.put(f"{path}/reverse.json", {"sequence": sequence})
    assert {total for _, _, total in table(undone)} == {None}
    await client.put(f"competitions/{competition}/unvoid.json")
    shown = await client.get(f"{path}/standings.json")
    assert [table(shown, n)[0] for n in range(3)] == [(ada, 1, 1_240), (ada, 1, 61), (ada, 1, 80)]
    await client.put(f"competitions/{competition}/strike.json", {"competitors": ada})
    redo = int(undone.headers["Tallybook-Sequence"])
    redone = await client.put(f"{path}/reverse.json", {"sequence": redo})
    assert [table(redone, n)[0] for n in range(3)] == [(ada, 1, -5), (ada, 1, 59), (ada, 1, 82)]
    at = await client.get(f"{path}/standings.json?at_sequence={sequence}")
    assert table(at) == table(second)

    window = await client.get(f"{path}/standings.json?unity={score}&competitors={others[0]}")
    assert table(window) == [(others[0], 3, None)]
    told = (await client.get(f"{path}/explain.json?competitor={ada}")).json["explanation"]
    assert told["to"]["total"] == -5
    assert [step["result"] for step in told["steps"]][:3] == [None, 1_240, -5]
    lines = (await client.get(f"{path}/history.json?competitor={ada}&unity={score}")).json["history"]
    assert [(line["delta"], line["result"], line["total"]) for line in lines][:2] == [
        (None, 1_240, 1_240),
        (None, -5, 1_240),
    ]
    classified = (await client.get(f"{path}/classification.json")).json["classification"]["standings"]
    assert [line["values"] for line in classified] == [[-5], [-MOST], *[[None]] * len(others)]
    criteria = json.dumps([{"unity": unities[name]} for name in ("laps", "score", "points")])
    assert (await client.put(f"{path}/classification.json", {"criteria": criteria})).status == 200
    await Worker(service.database).catch_up()
    assert not (await verified(service.database)).differences


async def test_what_does_not_fit_is_refused(season: Season) -> None:
    client, ada = season.client, season.ids[0]
    path, unities = await make(season)
    for form in ({"main_unity_counts": "most"},):
        fields = {"name": "x", "main_unity_name": "y", "participants": ada}
        assert (await client.post("rankings.json", fields | form)).status == 422
    assert (await give(client, path, (ada, unities["score"], MOST + 1))).status == 422
    assert (await give(client, path, (ada, unities["points"], 2**31))).status == 422
    assert (await client.put(f"{path}/unities/{unities['laps']}.json", {"sort": "DESC"})).status == 422
    criteria = json.dumps([{"unity": unities["score"], "best": 2}])
    assert (await client.put(f"{path}/classification.json", {"criteria": criteria})).status == 422
