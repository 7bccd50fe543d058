"""Unities that count the best or the last result, over HTTP, in tables and in verification."""

import json
from itertools import product
from typing import Any

from projections.tables.worker import Worker
from tests.api.asking import refused
from tests.api.public_boards import Board, change
from tests.projections.verified import verified
from tests.service import Answer, Client, Season, Service, deltas

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


def sequence_of(answer: Answer) -> int:
    assert answer.status == 200, answer.body
    return int(answer.headers["Tallybook-Sequence"])


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
    reigns = (await client.get(f"{path}/leaders.json")).json["leaders"]["reigns"]
    assert [reign["competitors"] for reign in reigns] == [[ada], []]
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


async def test_a_result_that_was_redone_counts_when_another_is_undone(season: Season) -> None:
    client, (ada, *_) = season.client, season.ids
    path, unities = await make(season)
    best, other = [sequence_of(await give(client, path, (ada, unities["score"], given))) for given in (100, 50)]

    async def reverse(sequence: int) -> tuple[int, int | None]:
        answer = await client.put(f"{path}/reverse.json", {"sequence": sequence})
        return sequence_of(answer), table(answer)[0][2]

    undone, total = await reverse(best)
    assert total == 50
    _, total = await reverse(undone)
    assert total == 100
    _, total = await reverse(other)
    assert total == 100


async def test_a_result_of_somebody_unstruck_counts_when_another_is_undone(season: Season) -> None:
    client, (ada, *_) = season.client, season.ids
    path, unities = await make(season)
    competition = season.competition_id
    await give(client, path, (ada, unities["score"], 100), competition_id=competition)
    other = sequence_of(await give(client, path, (ada, unities["score"], 50)))
    for done in ("strike", "unstrike"):
        await client.put(f"competitions/{competition}/{done}.json", {"competitors": ada})
    assert table(await client.put(f"{path}/reverse.json", {"sequence": other}))[0] == (ada, 1, 100)


async def test_an_explanation_names_results_also_those_that_improved_nothing(season: Season) -> None:
    """By the log, and by the world's clock."""
    client, ada = season.client, season.ids[0]
    path, unities = await make(season)
    for name in "score", "laps", "weight":
        for result in 50, 40, 60:
            await give(client, path, (ada, unities[name], result))

    async def told(name: str, query: str) -> tuple[int | None, list[tuple[int | None, ...]]]:
        asked = f"{path}/explain.json?competitor={ada}&unity={unities[name]}{query}"
        shown = (await client.get(asked)).json["explanation"]
        steps = [step for step in shown["steps"] if step["cause"] == "points"]
        return shown["from"]["total"], [(step["delta"], step["result"], step["total"]) for step in steps]

    for query in "", "&on=2999-01-01":
        assert await told("score", query) == (None, [(None, 50, 50), (None, 40, 50), (None, 60, 60)])
        assert await told("laps", query) == (None, [(None, 50, 50), (None, 40, 40), (None, 60, 40)])
        assert await told("weight", query) == (None, [(None, 50, 50), (None, 40, 40), (None, 60, 60)])
        assert await told("points", query) == (0, [])


async def test_a_page_of_an_explanation_that_ends_before_the_unity_begins_has_no_total(season: Season) -> None:
    client, path, ada = season.client, season.path, season.ids[0]
    await client.put(f"{path}/add.json", {"participants_delta": deltas((ada, season.unity_id, 5))})
    added = await client.post(f"{path}/unities.json", {"name": "score", "counts": "best"})
    unity, sequence = added.json["unity"]["id"], int(added.headers["Tallybook-Sequence"])
    await give(client, path, (ada, unity, 7))

    async def told(query: str) -> dict[str, Any]:
        asked = f"{path}/explain.json?competitor={ada}&unity={unity}&{query}"
        return (await client.get(asked)).json["explanation"]

    for query in f"to={sequence - 1}", f"to={sequence}", f"from={sequence - 1}&limit=1":
        page = await told(query)
        assert [(page[end]["total"]) for end in ("from", "to")] == [None, None], query
    assert [(step["cause"], step["total"]) for step in (await told(""))["steps"]] == [("list", None), ("points", 7)]
    of_sums = (await client.get(f"{path}/explain.json?competitor={ada}&to=1")).json["explanation"]
    assert of_sums["to"]["total"] == 0


async def test_the_public_sees_results_as_who_has_a_token(season: Season, board: Board) -> None:
    client, (ada, bob, *_) = season.client, season.ids
    path, unities = await make(season)
    competition = season.competition_id
    await give(client, path, (ada, unities["score"], 7), (bob, unities["score"], 9), competition_id=competition)
    await give(client, path, (bob, unities["score"], 8))
    await client.put(f"competitions/{competition}/void.json")
    await change(client, published="true")
    for query in "", "&on=2999-01-01":
        asked = f"{path}/explain.json?competitor={ada}&unity={unities['score']}{query}"
        seen = (await board.get(asked)).json["explanation"]
        del seen["competitors"], seen["competitions"]  # their names
        shown = (await client.get(asked)).json["explanation"]
        for step in shown["steps"]:
            del step["actor"]
        assert seen == shown
    for name, query in product(("standings", "classification", "form", "leaders"), ("", f"?unity={unities['score']}")):
        if name != "classification" or not query:
            answers = [await one.get(f"{path}/{name}.json{query}") for one in (client, board)]
            assert [answer.status for answer in answers] == [200, 200], (name, query, answers[1].body)
    seen = (await board.get(f"{path}/history.json")).json["history"]["lines"]
    shown = (await client.get(f"{path}/history.json")).json["history"]
    for line in shown:
        del line["actor"]
    assert seen == shown


async def test_what_does_not_fit_is_refused(season: Season) -> None:
    client, ada = season.client, season.ids[0]
    path, unities = await make(season)
    for form in ({"main_unity_counts": "most"},):
        fields = {"name": "x", "main_unity_name": "y", "participants": ada}
        assert (await client.post("rankings.json", fields | form)).status == 422
    (fault,) = refused(await give(client, path, (ada, unities["score"], MOST + 1)), 422, "participants_delta")
    assert fault.endswith(f"within ±2147483647; a result, within ±{MOST}")
    assert (await give(client, path, (ada, unities["points"], 2**31))).status == 422
    assert (await client.put(f"{path}/unities/{unities['laps']}.json", {"sort": "DESC"})).status == 422
    criteria = json.dumps([{"unity": unities["score"], "best": 2}])
    assert (await client.put(f"{path}/classification.json", {"criteria": criteria})).status == 422


async def test_a_total_is_not_reached_by_a_result_of_a_voided_competition(season: Season) -> None:
    client, (ada, bob, *_) = season.client, season.ids
    path, unities = await make(season)
    score = unities["score"]
    await give(client, path, (ada, score, 20), competition_id=season.competition_id)
    at = {who: sequence_of(await give(client, path, (who, score, 20))) for who in (bob, ada)}
    await client.put(f"competitions/{season.competition_id}/void.json")
    criteria = json.dumps([{"unity": score}, {"unity": score, "first": True}])
    await client.put(f"{path}/classification.json", {"criteria": criteria})
    shown = (await client.get(f"{path}/classification.json")).json["classification"]["standings"]
    assert [line["values"] for line in shown[:2]] == [[20, at[bob]], [20, at[ada]]]


async def test_the_first_to_reach_a_total_stands_ahead(service: Service, season: Season) -> None:
    """Of results, by the one that the total stands on; of sums, by the last change that counts: what is undone leaves
    no trace."""
    client, (ada, bob, cid) = season.client, season.ids
    path, unities = await make(season)
    score, points = unities["score"], unities["points"]
    at: dict[tuple[int, str], int] = {}
    for who, result, gained in (ada, 10, 10), (bob, 20, 20), (cid, 20, 20), (ada, 20, 10), (bob, 20, 20):
        for name, amount in ("score", result), ("points", gained):
            given = sequence_of(await give(client, path, (who, unities[name], amount)))
            if (who, name) not in at or who == ada:
                at[who, name] = given
    assert (await client.put(f"{path}/reverse.json", {"sequence": given})).status == 200

    async def by(unity_id: int, query: str = "") -> list[tuple[int, int, list[int | None]]]:
        criteria = json.dumps([{"unity": unity_id}, {"unity": unity_id, "first": True}])
        await client.put(f"{path}/classification.json", {"criteria": criteria})
        return await lines(query)

    async def lines(query: str = "") -> list[tuple[int, int, list[int | None]]]:
        shown = (await client.get(f"{path}/classification.json{query}")).json["classification"]["standings"]
        return [(line["competitor_id"], line["position"], line["values"]) for line in shown]

    whole = [(bob, 1, [20, at[bob, "score"]]), (cid, 2, [20, at[cid, "score"]]), (ada, 3, [20, at[ada, "score"]])]
    assert await by(score) == whole
    assert await lines(f"?around={cid}&span=0") == whole[1:2]
    assert await lines("?on=2999-01-01") == whole
    assert await by(points) == [
        (bob, 1, [20, at[bob, "points"]]),
        (cid, 2, [20, at[cid, "points"]]),
        (ada, 3, [20, at[ada, "points"]]),
    ]
    declared = sequence_of(await give(client, path, (cid, points, 5))) - 1
    now = sequence_of(await give(client, path, (cid, points, -5)))
    assert (await lines())[-1] == (cid, 3, [20, now])
    assert (await lines(f"?at_sequence={declared}"))[1] == (cid, 2, [20, at[cid, "points"]])

    await by(score)
    first = (await client.get(f"{path}/history.json?competitor={bob}&unity={score}&limit=1")).json["history"][0]
    preview = await client.get(f"{path}/reverse.json?sequence={first['sequence']}")
    moves = preview.json["rankings"][0]["classification"]
    assert {move["competitor_id"]: move["position_after"] for move in moves} == {cid: 1, ada: 2, bob: 3}
    await client.put(f"{path}/reverse.json", {"sequence": first["sequence"]})
    assert [line[0] for line in await lines()] == [cid, ada, bob]
    await Worker(service.database).catch_up()
    assert not (await verified(service.database)).differences
    refused = await client.put(
        f"{path}/classification.json", {"criteria": json.dumps([{"unity": points, "first": True, "best": 2}])}
    )
    assert (refused.status, "criteria[0].first" in refused.body.decode()) == (422, True)
