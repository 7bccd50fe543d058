"""What results give, in the console: declared, corrected, and listed where it is nothing."""

import json
import re

from api.web.console.change_page import LOOK
from tests.api.scored import League
from tests.api.visitor import Visitor, form_of
from tests.api.web.test_console import at, words
from tests.service import Season, deltas, listed


async def test_a_scoring_is_declared_like_a_kind_after_a_preview_of_its_effects(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    await league.play(a, b, "2:1")
    form = at(season, f"/rankings/{league.ranking_id}/scoring")
    options = [one for one in (await visitor.page(form)).split("<option") if ">Football<" in one]
    value = options[0].split('value="')[1].split('"')[0].replace("&quot;", '"')
    assert json.loads(value)[0]["awards"][0]["unity"] == league.points
    look = await visitor.fill(form, {"like": value})
    assert "0 → 3" in words(look.body.decode())
    assert await league.table() == {a: 0, b: 0, c: 0}
    filled, action = form_of(look.body.decode())
    assert (await visitor.post(action, filled)).status == 303
    assert await league.table() == {a: 3, b: 0, c: 0}
    assert "3 for win, 1 for draw, 0 for loss" in words(await visitor.page(form))


async def test_a_corrected_result_shows_who_moves_and_a_new_one_is_recorded_at_once(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    await league.score()
    match = await league.play(a, b, "")
    form = at(season, f"/competitions/{match}/record")
    assert (await visitor.fill(form, {"result": "2:1"})).status == 303
    assert await league.table() == {a: 3, b: 0, c: 0}
    look = await visitor.fill(form, {"result": "1:2"})
    said = words(look.body.decode())
    assert "3 → 0" in said
    assert "1 → 2" in said
    assert LOOK not in said
    assert await league.table() == {a: 3, b: 0, c: 0}
    filled, action = form_of(look.body.decode())
    assert (await visitor.post(action, filled)).status == 303
    assert await league.table() == {b: 3, a: 0, c: 0}
    had = words(await visitor.page(form)).partition("Earlier and current results")[2]
    had = re.sub(r"\d\d:\d\d UTC", "", had)  # 02:10 has a 2:1
    assert had.index("1:2") < had.index("2:1") < had.index("none")


async def test_earlier_performances_of_a_race_say_what_changed(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = map(str, league.ids)
    sent = {"group_id": 1, "participants": listed(league.ids), "result": json.dumps({a: "1", b: "2", c: "DNC"})}
    race = (await league.client.post("competitions.json", sent)).json["competition"]["id"]
    await league.correct(race, result=json.dumps({a: "1", b: "2", c: "3"}))
    shown = words(await visitor.page(at(season, f"/competitions/{race}/record")))
    had = shown.partition("Earlier and current results")[2]
    assert had.index("Celtic DNC → 3") < had.index("Ajax 1, Bari 2, Celtic DNC")


async def test_a_result_that_gives_no_points_says_so_before_it_is_recorded_and_in_the_list(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, _ = league.ids
    await league.score()
    match = await league.play(a, b, "2:1")
    look = await visitor.fill(at(season, f"/competitions/{match}/record"), {"result": "gewonnen"})
    told = "No points in League : 'gewonnen'"
    assert told in words(look.body.decode())
    assert told not in words(await visitor.page(at(season, "/competitions")))
    assert (await visitor.post(*reversed(form_of(look.body.decode())))).status == 303
    listed = words(await visitor.page(at(season, "/competitions")))
    assert (told in listed, "Forms that count: a score" in listed) == (True, True)


async def test_the_history_offers_to_undo_points_but_not_those_that_follow_a_result(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, _ = league.ids
    await league.score()
    await league.play(a, b, "2:1")
    await season.client.put(f"{league.path}/add.json", {"participants_delta": deltas((b, league.points, 2))})
    page = await visitor.page(at(season, f"/rankings/{league.ranking_id}/history"))
    (undo,) = re.findall(r'href="([^"]*/undo/[0-9]+)"', page)
    assert (await visitor.fill(undo, {})).status == 303
    assert await league.table() == {a: 3, b: 0, league.ids[2]: 0}
    await season.client.put("publication.json", {"published": "true"})
    public = await visitor.get(f"/board/{season.client.tournament}/{league.path}/history.json")
    assert public.json["history"].keys() == {"competitors", "competitions", "lines", "next"}


async def test_reopening_and_another_list_show_who_moves(visitor: Visitor, season: Season, league: League) -> None:
    a, b, c = league.ids
    await league.score({"unity": league.points, "from": "place", "table": [10, 6], "among": "enrolled"})
    await league.play(a, b, "1|2")
    look = await visitor.fill(at(season, f"/rankings/{league.ranking_id}/participants"), {"remove": a})
    assert "6 → 10" in words(look.body.decode())
    await season.client.put(f"{league.path}/close.json")
    await league.play(c, b, "1|2")
    assert "0 → 10" in words(await visitor.page(at(season, f"/rankings/{league.ranking_id}/reopen")))


async def test_the_page_of_a_ranking_lists_the_results_that_give_nothing(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, _ = league.ids
    page = at(season, f"/rankings/{league.ranking_id}")
    await league.score()
    assert "give nothing" not in words(await visitor.page(page))
    match = await league.play(a, b, "abandoned")
    shown = await visitor.page(page)
    assert "abandoned" in words(shown)
    assert "Forms that count" in words(shown)
    assert f"/competitions/{match}/record" in shown


async def test_the_result_of_a_match_to_come_is_asked_about_and_a_second_yes_records_it(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, _ = league.ids
    match = await league.play(a, b, "", started_at="2100-05-02 13:00:00")
    form = at(season, f"/competitions/{match}/record")
    asked = await visitor.fill(form, {"result": "2:1"})
    assert "is still to come. Has it been played?" in words(asked.body.decode())
    assert (await league.client.get(f"competitions/{match}.json")).json["competition"]["result"] is None
    filled, action = form_of(asked.body.decode())
    assert (await visitor.post(action, filled)).status == 303
    assert (await league.client.get(f"competitions/{match}.json")).json["competition"]["result"] == "2:1"
    assert (await visitor.fill(form, {"location": "Cork"})).status == 303


async def test_a_match_of_the_same_two_on_the_same_days_is_asked_about_and_a_second_yes_adds_it(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    await league.score()
    await league.play(b, a, "", started_at="2026-05-02 13:00:00", round=3)
    voided = await league.play(b, c, "", started_at="2026-05-02 13:00:00", round=3)
    await league.client.put(f"competitions/{voided}/void.json")
    page = at(season, "/competitions/new")
    same = {"home": f"id:{a}", "away": f"id:{b}", "started_at": "2026-05-03T15:00", "group_id": "1", "round": "3"}
    asked = await visitor.fill(page, same)
    assert "There is a competition of the same two on 2026-05-02 13:00. Is this another one?" in words(
        asked.body.decode()
    )
    count = len((await league.client.get("competitions.json")).json["competitions"]["competition"])
    filled, action = form_of(asked.body.decode())
    for other in {"started_at": "2026-05-09T15:00"}, {"round": "4"}, {"group_id": "2"}, {"away": f"id:{c}"}:
        assert (await visitor.fill(page, same | other)).status == 303, other
    assert (await visitor.post(action, filled)).status == 303
    added = (await league.client.get("competitions.json")).json["competitions"]["competition"][count:]
    assert [one["started_at"] for one in added][-1] == "2026-05-03 15:00:00"
    assert len(added) == 5


async def test_what_has_many_participants_is_called_as_the_sport_calls_it(visitor: Visitor, season: Season) -> None:
    race = f"/competitions/{season.competition_id}"
    pages = "/competitions", f"{race}/record", f"{race}/change", f"{race}/void", f"{season.path}/add"
    for page in pages:
        assert "Competition of 3" in words(await visitor.page(at(season, f"/{page.removeprefix('/')}"))), page
    made = await visitor.fill(at(season, "/rankings/like"), {"like": "formula-one", "name": "Drivers"})
    assert made.status == 303
    for page in pages:
        shown = words(await visitor.page(at(season, f"/{page.removeprefix('/')}")))
        assert ("Race of 3" in shown, "Competition of 3" in shown) == (True, False), page
