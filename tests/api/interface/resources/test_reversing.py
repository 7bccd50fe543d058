"""Points that are undone and redone, and competitors who are struck and unstruck, over HTTP."""

import json
from typing import Any

from api.access.auth import Scope
from tests.service import Answer, Client, Season, Service, create_ranking, deltas, make_token, rankings_deltas


async def add(season: Season, client: Client | None = None, amount: int = 3, **fields: object) -> int:
    """Gives the first competitor points, and returns the event's sequence."""
    form = {"participants_delta": deltas((season.ids[0], season.unity_id, amount))} | fields
    return sequence_of(await (client or season.client).put(f"{season.path}/add.json", form))


def sequence_of(answer: Answer) -> int:
    assert answer.status == 200, answer.body
    return int(answer.headers["Tallybook-Sequence"])


async def reverse(season: Season, sequence: int, client: Client | None = None, **headers: str) -> Answer:
    path = f"{season.path}/reverse.json"
    return await (client or season.client).put(
        path, {"sequence": sequence}, {k.replace("_", "-"): v for k, v in headers.items()}
    )


def total(answer: Answer) -> Any:
    (main,) = [unity for unity in answer.json["ranking"]["unities"] if unity["general"]]
    return main["competitors_ranking"][0]["total"]


async def test_points_are_undone_once_and_redone_by_naming_what_undid_them(
    season: Season, peers_client: Client
) -> None:
    added = await add(season)
    preview = await season.client.get(f"{season.path}/reverse.json?sequence={added}")
    moves = preview.json["rankings"][0]["unities"][0]["moves"]
    assert [(one["total_before"], one["total_after"]) for one in moves if one["competitor_id"] == season.ids[0]] == [
        (3, 0)
    ]
    first = await reverse(season, added, Idempotency_Key="k")
    again = await reverse(season, added, peers_client, Idempotency_Key="k")
    assert (total(first), again.body) == (0, first.body)
    undone = sequence_of(first)
    refused = await reverse(season, added, peers_client)
    assert (refused.status, refused.json["message"]) == (
        409,
        f"Event {added} is already undone. To redo it, name the event that undid it: {undone}.",
    )
    redone = await reverse(season, undone, peers_client)
    assert total(redone) == 3
    assert (await reverse(season, undone)).status == (await reverse(season, sequence_of(redone))).status == 409
    lines = (await season.client.get(f"{season.path}/history.json")).json["history"]
    assert [(line["reverses"], line["reversal"], line["delta"]) for line in lines] == [
        (None, None, 3),
        (added, "undo", -3),
        (added, "redo", 3),
    ]


async def test_what_is_no_event_of_points_of_the_ranking_is_refused_by_its_field(season: Season) -> None:
    added = await add(season)
    other = await create_ranking(season.client, season.ids, name="Cup")
    for path, sequence, message in (
        (season.path, 1, "event 1 neither adds points nor undoes any"),
        (season.path, 10_000, "event 10000 neither adds points nor undoes any"),
        (f"rankings/{other['id']}", added, f"event {added} is about ranking {season.ranking_id}"),
    ):
        for answer in (
            await season.client.put(f"{path}/reverse.json", {"sequence": sequence}),
            await season.client.get(f"{path}/reverse.json?sequence={sequence}"),
        ):
            assert answer.status == 422
            assert answer.json["errors"] == [{"field": "sequence", "message": message}]


async def test_a_token_of_scope_write_reverses_only_what_it_did_itself(service: Service, season: Season) -> None:
    writers = [
        service.client(season.client.tournament, await make_token(service.database, Scope.WRITE)) for _ in range(2)
    ]
    added = await add(season, writers[0])
    for answer in (
        await reverse(season, added, writers[1]),
        await writers[1].get(f"{season.path}/reverse.json?sequence={added}"),
    ):
        assert (answer.status, answer.json["message"]) == (
            403,
            f"Event {added} came from another sender; reversing it needs a token of scope admin.",
        )
    undone = sequence_of(await reverse(season, added, writers[0]))
    assert (await reverse(season, undone, writers[1])).status == 403
    redone = sequence_of(await reverse(season, undone))
    assert redone > undone
    assert sequence_of(await reverse(season, added, writers[0])) > redone


async def test_a_request_over_several_rankings_is_undone_whole_or_not_at_all(season: Season) -> None:
    cup = await create_ranking(season.client, season.ids, name="Cup")
    unity_id = cup["unities"][0]["id"]
    lines = {
        season.ranking_id: deltas((season.ids[0], season.unity_id, 3)),
        cup["id"]: deltas((season.ids[0], unity_id, 5)),
    }
    last = sequence_of(await season.client.put("points.json", {"rankings_delta": rankings_deltas(lines)}))
    await season.client.put(f"rankings/{cup['id']}/close.json")
    refused = await reverse(season, last - 1)
    assert (refused.status, cup["name"] in refused.json["message"]) == (409, True)
    await season.client.put(f"rankings/{cup['id']}/reopen.json")
    undone = await season.client.put(f"rankings/{cup['id']}/reverse.json", {"sequence": last})
    assert undone.json["ranking"]["id"] == cup["id"]
    for ranking_id in (season.ranking_id, cup["id"]):
        shown = (await season.client.get(f"rankings/{ranking_id}/standings.json")).json["ranking"]
        assert {line["total"] for unity in shown["unities"] for line in unity["competitors_ranking"]} == {0}
    assert total(await reverse(season, sequence_of(undone))) == 3  # the last event of a request stands for all


async def test_an_undone_result_is_none_of_the_recent_and_of_the_best(season: Season) -> None:
    ada = season.ids[0]
    criteria = [{"unity": season.unity_id, "best": 1}]
    await season.client.put(f"{season.path}/classification.json", {"criteria": json.dumps(criteria)})

    async def shown() -> tuple[object, object]:
        form = (await season.client.get(f"{season.path}/form.json?competitors={ada}")).json["form"]
        table = (await season.client.get(f"{season.path}/classification.json?competitors={ada}")).json["classification"]
        return (
            [(one["competition_id"], one["sum"]) for one in form["form"][0]["competitions"]],
            table["standings"][0]["values"],
        )

    match = season.competition_id
    wrong = await add(season, amount=-7, competition_id=match)
    assert await shown() == ([(match, -7)], [-7])
    preview = (await season.client.get(f"{season.path}/reverse.json?sequence={wrong}")).json["rankings"][0]
    assert {one["position_after"] for one in preview["classification"]} == {1}
    undone = sequence_of(await reverse(season, wrong))
    assert await shown() == ([], [0])
    await season.client.put(f"competitions/{match}/void.json")
    await season.client.put(f"competitions/{match}/unvoid.json")
    assert await shown() == ([], [0])
    assert (await reverse(season, undone)).status == 200
    assert await shown() == ([(match, -7)], [-7])


async def test_a_struck_competitor_has_no_result_there_and_gets_none(season: Season) -> None:
    ada, ben, _ = season.ids
    match = f"competitions/{season.competition_id}"
    criteria = [{"unity": season.unity_id, "best": 1}]
    await season.client.put(f"{season.path}/classification.json", {"criteria": json.dumps(criteria)})
    form = {
        "participants_delta": deltas((ada, season.unity_id, 3), (ben, season.unity_id, 1)),
        "competition_id": season.competition_id,
    }
    await season.client.put(f"{season.path}/add.json", form)

    async def shown() -> tuple[object, object]:
        recent = (await season.client.get(f"{season.path}/form.json?competitors={ada},{ben}")).json["form"]
        table = (await season.client.get(f"{season.path}/classification.json?top=1")).json["classification"]
        sums = {one["competitor_id"]: [it["sum"] for it in one["competitions"]] for one in recent["form"]}
        return sums, (table["standings"][0]["competitor_id"], table["standings"][0]["values"])

    before = {ada: [3], ben: [1]}, (ada, [3])
    assert await shown() == before
    preview = (await season.client.get(f"{match}/strike.json?competitors={ada}")).json["rankings"][0]
    moved = {one["competitor_id"]: one["position_after"] for one in preview["classification"]}
    assert (moved[ben], moved[ada]) == (1, 2)
    struck = await season.client.put(f"{match}/strike.json", {"competitors": ada})
    assert struck.json["competition"]["struck"] == [ada]
    assert await shown() == ({ada: [], ben: [1]}, (ben, [1]))
    refused = await season.client.put(f"{season.path}/add.json", form)
    assert (refused.status, refused.json["errors"]) == (
        422,
        [
            {
                "field": "competition_id",
                "message": f"competitor {ada} is struck from competition {season.competition_id}",
            }
        ],
    )
    await season.client.put(f"{match}/void.json")
    await season.client.put(f"{match}/unstrike.json", {"competitors": ada})
    await season.client.put(f"{match}/unvoid.json")
    assert await shown() == before
