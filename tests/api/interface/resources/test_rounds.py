"""Rounds, scales and other participants of competitions, over HTTP."""

import pytest

from tests.service import Season, listed

GIVEN = {"scale": "double", "round": 3, "round_name": "Final"}


async def test_a_competition_shows_its_scale_and_round_where_it_has_them_and_else_its_documented_fields(
    season: Season,
) -> None:
    plain = (await season.client.post("competitions.json", {"group_id": 1})).json["competition"]
    shown = (await season.client.post("competitions.json", {"group_id": 1, **GIVEN})).json["competition"]
    assert {name: shown.get(name) for name in GIVEN} == GIVEN
    assert [*shown] == [*plain, *GIVEN]
    path = f"competitions/{shown['id']}.json"
    emptied = (await season.client.put(path, dict.fromkeys(GIVEN, ""))).json["competition"]
    assert [*emptied] == [*plain]
    again = (await season.client.put(path, {"round": 0, "group_id": -4})).json["competition"]
    assert (again["round"], again["group_id"]) == (0, -4)


async def test_others_take_part_at_once_in_every_answer(season: Season) -> None:
    ada, ben, pair = season.ids
    added = {"group_id": 1, "participants": listed([ada, ben]), "result": "2:1", "winner": ada}
    match = (await season.client.post("competitions.json", added)).json["competition"]["id"]
    path = f"competitions/{match}.json"
    refused = await season.client.put(path, {"participants": listed([pair, ben])})
    assert refused.status == 422
    assert refused.json["errors"] == [{"field": "winner", "message": f"competitor {ada} is not a participant"}]
    changed = await season.client.put(path, {"participants": listed([pair, ben]), "winner": pair})
    assert [one["competitor_id"] for one in changed.json["competition"]["participants"]] == [pair, ben]
    for competitor, is_found in ((ada, False), (pair, True)):
        found = (await season.client.get(f"competitions.json?competitor={competitor}")).json["competitions"]
        assert (match in [one["id"] for one in found["competition"]]) == is_found


async def test_a_wrong_group_round_or_scale_is_refused(season: Season, subtests: pytest.Subtests) -> None:
    for form in [{"group_id": ""}, {"round": "final"}, {"round": "1.5"}, {"scale": " "}]:
        with subtests.test(str(form)):
            answer = await season.client.put(f"competitions/{season.competition_id}.json", form)
            assert (answer.status, [one["field"] for one in answer.json["errors"]]) == (422, [*form])
