"""Nobody is in front for doing nothing: a competitor without points has no total, where the unity says so."""

import csv
import io
import json
from typing import Any

from projections.tables.worker import Worker
from tests.api.asking import refused
from tests.api.interface.resources.test_results import give, sequence_of
from tests.api.public_boards import Board, change
from tests.api.web.test_board import lines_of
from tests.projections.verified import verified
from tests.service import Answer, Season, Service

NONE = "\N{EN DASH}"
_STANDING = "SELECT position, total FROM standing WHERE unity_id = $1 ORDER BY position, enrolled"


async def make(season: Season, **fields: object) -> tuple[str, int]:
    """A regatta of low points."""
    form = {"name": "Regatta", "main_unity_name": "net", "main_unity_sort": "ASC", "main_unity_absent": "none"}
    form |= {"participants": ",".join(map(str, season.ids))} | fields
    made = await season.client.post("rankings.json", form)
    assert made.status == 200, made.body
    ranking = made.json["ranking"]
    return f"rankings/{ranking['id']}", ranking["unities"][0]["id"]


def table(answer: Answer) -> list[tuple[int, int, int | None]]:
    """Each line; one that is not placed says so."""
    assert answer.status == 200, answer.body
    lines = answer.json["ranking"]["unities"][0]["competitors_ranking"]
    assert [line.get("placed", True) for line in lines] == [line["total"] is not None for line in lines]
    return [(line["competitor_id"], line["position"], line["total"]) for line in lines]


async def test_a_competitor_without_points_stands_behind_all_others(
    service: Service, season: Season, board: Board
) -> None:
    client, (ada, bob, cid) = season.client, season.ids
    path, net = await make(season)
    nobody = await client.get(f"{path}/standings.json")
    assert table(nobody) == [(ada, 1, None), (bob, 1, None), (cid, 1, None)]
    race = season.competition_id
    first = await give(client, path, (bob, net, 3), (bob, net, 0), (cid, net, 0), competition_id=race)
    assert table(first) == [(cid, 1, 0), (bob, 2, 3), (ada, 3, None)]
    second = await give(client, path, (ada, net, -1), (cid, net, 4))
    assert table(second) == [(ada, 1, -1), (bob, 2, 3), (cid, 3, 4)]

    preview = (await client.get(f"competitions/{race}/void.json")).json["rankings"][0]["unities"][0]["moves"]
    assert [(one["competitor_id"], one["total_before"], one["total_after"]) for one in preview] == [
        (ada, -1, -1),
        (cid, 4, 4),
        (bob, 3, None),
    ]
    await client.put(f"competitions/{race}/void.json")
    assert table(await client.get(f"{path}/standings.json")) == [(ada, 1, -1), (cid, 2, 4), (bob, 3, None)]
    undone = await client.put(f"{path}/reverse.json", {"sequence": sequence_of(second)})
    assert table(undone) == [(ada, 1, None), (bob, 1, None), (cid, 1, None)]
    await client.put(f"competitions/{race}/unvoid.json")
    await client.put(f"competitions/{race}/strike.json", {"competitors": bob})
    assert table(await client.get(f"{path}/standings.json")) == [(cid, 1, 0), (ada, 2, None), (bob, 2, None)]
    then = await client.get(f"{path}/standings.json?at_sequence={sequence_of(first)}")
    assert table(then) == table(first)

    window = await client.get(f"{path}/standings.json?unity={net}&around={ada}&span=0")
    assert table(window) == [(ada, 2, None)]
    lines = (await client.get(f"{path}/history.json?competitor={bob}")).json["history"]
    assert [(line["delta"], line["result"], line["total"]) for line in lines] == [
        (3, None, 3),
        (0, None, 3),
        (-3, None, None),
        (3, None, 3),
        (-3, None, None),
    ]
    told = (await client.get(f"{path}/explain.json?competitor={ada}")).json["explanation"]
    assert [(step["delta"], step["total"]) for step in told["steps"] if step["delta"] is not None] == [
        (-1, -1),
        (1, None),
    ]
    mine = (await client.get(f"competitors/{ada}/standings.json")).json["rankings"]["ranking"]
    (unity,) = next(one for one in mine if one["name"] == "Regatta")["unities"]
    assert (unity["position"], unity["total"], unity["placed"]) == (2, None, False)
    reigns = (await client.get(f"{path}/leaders.json")).json["leaders"]["reigns"]
    assert [reign["competitors"] for reign in reigns] == [[cid], [ada], [], [cid]]

    await change(client, published="true")
    asked = path.removeprefix("rankings/")
    rows = [*csv.reader(io.StringIO((await board.get(f"table.csv?ranking={asked}")).body.decode()))]
    assert [(row[0], int(row[2]), row[4]) for row in rows[1:]] == [("1", cid, "0"), (NONE, ada, ""), (NONE, bob, "")]
    page = (await client.send("GET", f"/board/{board.slug}?ranking={asked}")).body.decode()
    assert [(line[0], line[-1][:1]) for line in lines_of(page)] == [(["1"], ["0"]), ([NONE], [NONE]), ([NONE], [NONE])]
    shown = (await board.get(f"table.json?ranking={asked}")).json["lines"]
    assert [line.get("placed", True) for line in shown] == [True, False, False]
    explained = (await board.get(f"competitors/{ada}?ranking={asked}")).body.decode()
    assert "Not placed in net" in explained
    passage = (await board.get(f"passage.json?ranking={asked}&at={sequence_of(undone)}")).json
    race_told = (await board.get(f"race.json?ranking={asked}")).json
    assert passage["unities"][0]["notation"]["results"] == "ASC"
    assert [race_told["positions"][n][-1] for n in range(3)].count(None) == 2

    await Worker(service.database).catch_up()
    async with service.database.connection() as connection:
        assert [tuple(row) for row in await connection.fetch(_STANDING, net)] == [(1, 0), (2, None), (2, None)]
    assert not (await verified(service.database)).differences


async def test_a_classification_by_the_best_has_no_value_of_nothing(season: Season) -> None:
    client, (ada, bob, cid) = season.client, season.ids
    path, net = await make(season)
    for points in 5, 2:
        race = await client.post("competitions.json", {"group_id": 1, "participants": f"{ada},{bob}"})
        number = race.json["competition"]["id"]
        await give(client, path, (ada, net, points), (bob, net, 4), competition_id=number)
    criteria: list[dict[str, Any]] = [{"unity": net, "best": 1}, {"unity": net}]
    answer = await client.put(f"{path}/classification.json", {"criteria": json.dumps(criteria)})
    assert answer.status == 200, answer.body

    async def lines() -> list[tuple[int, int, list[int | None], bool]]:
        shown = (await client.get(f"{path}/classification.json")).json["classification"]["standings"]
        return [(one["competitor_id"], one["position"], one["values"], one.get("placed", True)) for one in shown]

    assert await lines() == [(ada, 1, [2, None], True), (bob, 2, [4, None], True), (cid, 3, [None, None], False)]
    await client.put(f"competitions/{number}/void.json")
    assert await lines() == [(bob, 1, [4, None], True), (ada, 2, [5, None], True), (cid, 3, [None, None], False)]
    await client.put(f"{path}/participants.json", {"remove": f"{ada},{bob}"})
    assert await lines() == [(cid, 1, [None, None], False)]


async def test_corrected_results_leave_no_total_of_nothing(service: Service, season: Season) -> None:
    """Two awards give one sum: the strokes, and the place."""
    client, (ada, bob, cid) = season.client, season.ids
    path, net = await make(season)
    strokes = {"unity": net, "from": "performance", "statuses": {"WD": None}}
    scoring = {"order": "low", "awards": [strokes, {"unity": net, "from": "place", "statuses": {"WD": None}}]}
    answer = await client.put(f"{path}/scoring.json", {"scorings": json.dumps([scoring])})
    assert answer.status == 200, answer.body
    form = {"group_id": 1, "participants": f"{ada},{bob}", "result": "71|68", "started_at": "2024-03-09 12:00:00"}
    played = await client.post("competitions.json", form)
    round_id, begun = played.json["competition"]["id"], sequence_of(played)

    async def shown(query: str = "") -> dict[int, int | None]:
        return {one: total for one, _, total in table(await client.get(f"{path}/standings.json{query}"))}

    async def after(verb: str, **fields: object) -> dict[int, int | None]:
        where = f"competitions/{round_id}" + (f"/{verb}" if verb else "")
        assert (await client.put(f"{where}.json", fields)).status == 200
        return await shown()

    nobody: dict[int, int | None] = {ada: None, bob: None, cid: None}
    whole = {bob: 69, ada: 73, cid: None}
    assert await shown() == whole
    assert await after("", result="71|WD") == {ada: 72, bob: None, cid: None}
    assert await shown("?on=2024-03-08") == nobody
    assert await shown("?on=2024-03-10") == {ada: 72, bob: None, cid: None}
    assert await shown(f"?at_sequence={begun}") == whole
    assert await after("void") == nobody
    assert await after("", result="70|69") == nobody
    assert await after("unvoid") == {bob: 70, ada: 72, cid: None}
    assert await after("strike", competitors=bob) == {ada: 72, bob: None, cid: None}
    assert await after("unstrike", competitors=bob) == {bob: 70, ada: 72, cid: None}
    assert await after("", result="71|68") == whole
    assert await after("", result="") == nobody
    await Worker(service.database).catch_up()
    assert not (await verified(service.database)).differences


async def test_what_does_not_fit_an_absent_total_is_refused(season: Season) -> None:
    client, ada = season.client, season.ids[0]
    form = {"name": "x", "main_unity_name": "y", "participants": ada, "main_unity_absent": "none"}
    (fault,) = refused(
        await client.post("rankings.json", form | {"main_unity_counts": "best"}), 422, "main_unity_absent"
    )
    assert fault == "must not be sent with main_unity_counts best: without a result, there is no total anyway"
    assert (await client.post("rankings.json", form | {"main_unity_absent": "0"})).status == 422
    path, net = await make(season)
    (fault,) = refused(await client.put(f"{path}/unities/{net}.json", {"sort": "DESC"}), 422, "sort")
    assert fault == "cannot be changed in a unity that has no totals for absent competitors"
    assert (await give(client, path, (ada, net, 2**31))).status == 422
