"""What a result, another scoring, or another list would lead to, before it is recorded: over HTTP."""

import json
from operator import itemgetter
from urllib.parse import urlencode

from tests.api.scored import OUTCOMES, League
from tests.service import Answer, listed


async def foreseen(league: League, path: str, **fields: object) -> Answer:
    return await league.client.get(f"{path}?{urlencode(fields)}")


def after(answer: Answer) -> dict[int, tuple[int | None, int | None]]:
    """Position and total in the main unity, afterwards."""
    (ranking,) = answer.json["rankings"]
    return {one["competitor_id"]: (one["position_after"], one["total_after"]) for one in ranking["unities"][0]["moves"]}


async def test_a_supposed_result_says_who_would_move_and_records_nothing(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    await league.play(b, c, "1:0")
    match = await league.play(a, b, "")
    supposed = await foreseen(league, f"competitions/{match}/preview.json", result="2:2")
    assert after(supposed) == {b: (1, 4), a: (2, 1), c: (3, 0)}
    assert await league.table() == {b: 3, a: 0, c: 0}
    await league.correct(match, result="2:2")
    assert await league.table() == {b: 4, a: 1, c: 0}
    removed = await foreseen(league, f"competitions/{match}/preview.json", result="")
    assert after(removed) == {b: (1, 3), a: (2, 0), c: (2, 0)}


async def test_a_supposed_result_that_gives_no_points_says_why_and_which_forms_count(league: League) -> None:
    a, b, _ = league.ids
    await league.score()
    match = await league.play(a, b, "2:1")
    for result in ("2;1", "gewonnen", "2:1 forfait"):
        (found,) = (await foreseen(league, f"competitions/{match}/preview.json", result=result)).json["unscored"]
        assert (found["competition_id"], found["ranking_id"]) == (match, league.ranking_id)
        assert "Forms that count: a score of two numbers, such as 2:1" in found["why"], result
    for fields in ({"result": "2:2"}, {"result": ""}, {"location": "Cork"}):
        answer = await foreseen(league, f"competitions/{match}/preview.json", **fields)
        assert "unscored" not in answer.json, fields
    (by_scale,) = (await foreseen(league, f"competitions/{match}/preview.json", scale="cup")).json["unscored"]
    assert by_scale["why"] == "No scoring of the ranking is called 'cup'."


async def test_another_scoring_says_who_would_move(league: League) -> None:
    a, b, c = league.ids
    await league.play(a, b, "2:1")
    scorings = [{"awards": [{"unity": league.points, "from": "outcome", "table": OUTCOMES}]}]
    preview = await foreseen(league, f"{league.path}/scoring/preview.json", scorings=json.dumps(scorings))
    assert after(preview) == {a: (1, 3), b: (2, 0), c: (2, 0)}
    assert await league.table() == {a: 0, b: 0, c: 0}


async def test_reopening_a_ranking_says_what_the_results_recorded_meanwhile_would_give(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    await league.client.put(f"{league.path}/close.json")
    await league.play(b, c, "1:0")
    assert after(await foreseen(league, f"{league.path}/reopen.json")) == {b: (1, 3), a: (2, 0), c: (2, 0)}


def places_after(answer: Answer) -> list[int | None]:
    """Positions in the classification, in the order of the ids."""
    (ranking,) = answer.json["rankings"]
    return [one["position_after"] for one in sorted(ranking["classification"], key=itemgetter("competitor_id"))]


async def places(league: League) -> list[int]:
    lines = (await league.client.get(f"{league.path}/classification.json")).json["classification"]["standings"]
    return [one["position"] for one in sorted(lines, key=itemgetter("competitor_id"))]


async def test_who_reached_the_total_first_is_foreseen_of_another_scoring_a_reopening_and_a_scale(
    league: League,
) -> None:
    a, b, c = league.ids
    await league.score()
    criteria = [{"unity": league.points}, {"unity": league.points, "first": True}]
    await league.client.put(f"{league.path}/classification.json", {"criteria": json.dumps(criteria)})
    await league.play(a, c, "1:0")
    second = await league.play(b, c, "1:0")
    award = {"unity": league.points, "from": "outcome", "table": OUTCOMES | {"win": 2}}
    scorings = json.dumps([{"awards": [award]}, {"name": "cup", "awards": [award]}])
    preview = await foreseen(league, f"{league.path}/scoring/preview.json", scorings=scorings)
    await league.client.put(f"{league.path}/scoring.json", {"scorings": scorings})
    assert places_after(preview) == await places(league) == [1, 2, 3]
    preview = await foreseen(league, f"competitions/{second}/preview.json", result="0:1", scale="cup")
    await league.correct(second, result="0:1", scale="cup")
    assert places_after(preview) == await places(league) == [1, 3, 2]
    await league.client.put(f"{league.path}/close.json")
    await league.play(c, b, "0:1")
    preview = await foreseen(league, f"{league.path}/reopen.json")
    await league.client.put(f"{league.path}/reopen.json")
    assert places_after(preview) == await places(league) == [1, 3, 2]


async def test_a_change_that_decides_only_a_tie_break_is_foreseen(league: League) -> None:
    a, b, c = league.ids
    await league.score()
    criteria = [{"unity": league.points}, {"unity": league.points, "tiebreak": "WON"}]
    await league.client.put(f"{league.path}/classification.json", {"criteria": json.dumps(criteria)})
    match = await league.play(a, c, "1:0")
    await league.play(b, c, "1:0")
    preview = await foreseen(league, f"competitions/{match}/preview.json", result="+:-")
    assert places_after(preview) == [2, 1, 3]
    await league.correct(match, result="+:-")
    assert await places(league) == [2, 1, 3]
    preview = await foreseen(league, f"competitions/{match}/preview.json", location="Cork")
    assert preview.json["rankings"] == []


async def test_another_list_of_competitors_says_who_would_move(league: League) -> None:
    a, b, c = league.ids
    await league.score({"unity": league.points, "from": "place", "table": [10, 6, 4], "among": "enrolled"})
    performances = json.dumps({str(a): "1", str(b): "2", str(c): "3"})
    await league.client.post(
        "competitions.json", {"group_id": 1, "participants": listed([a, b, c]), "result": performances}
    )
    assert await league.table() == {a: 10, b: 6, c: 4}
    preview = after(await foreseen(league, f"{league.path}/participants.json", remove=a))
    assert preview == {b: (1, 10), c: (2, 6), a: (None, None)}
    await league.client.put(f"{league.path}/participants.json", {"remove": a})
    assert await league.table() == {b: 10, c: 6}


async def test_a_list_without_scorings_says_who_would_move_as_well(league: League) -> None:
    a, b, c = league.ids
    await league.client.put(
        f"{league.path}/add.json",
        {
            "participants_delta": json.dumps(
                [{"competitor_id": a, "unities": [{"unity_id": league.points, "delta": 3}]}]
            )
        },
    )
    preview = after(await foreseen(league, f"{league.path}/participants.json", remove=a))
    assert preview == {b: (1, 0), c: (1, 0), a: (None, None)}
