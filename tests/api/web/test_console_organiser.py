"""The console, as somebody sees it who runs a league and knows nothing of logs."""

import re
from html import unescape
from typing import Final

from tests.api.visitor import CONSOLE, Visitor, form_of
from tests.api.web.test_console import MATCH, at, words
from tests.service import Season, deltas

RED: Final = re.compile(r'<button class="chief danger">([^<]*)<')


async def test_only_what_cannot_be_taken_back_is_red(visitor: Visitor, season: Season) -> None:
    below = f"/competitions/{season.competition_id}"
    can_be = (
        f"{below}/void",
        f"{below}/strike",
        f"/rankings/{season.ranking_id}/close",
        "/name",
        "/publication/publish",
    )
    for page in can_be:
        assert RED.findall(await visitor.page(at(season, page))) == [], page
    assert RED.findall(await visitor.page(f"{CONSOLE}/tokens/new")) == []
    assert RED.findall(await visitor.page(at(season, f"/competitors/{season.ids[2]}/erase"))) == ["Erase"]


async def test_a_team_that_took_part_in_nothing_is_removed_and_one_that_did_is_not(
    visitor: Visitor, season: Season
) -> None:
    ada, ben, _ = season.ids
    await season.client.put(f"{season.path}/add.json", {"participants_delta": deltas((ben, season.unity_id, 3))})
    teams = at(season, "/competitors")
    for one, why in ((ada, "3 competitions, so it cannot be removed; withdraw it instead."), (ben, "Ben")):
        refused = await visitor.get(f"{teams}/{one}/remove")
        assert refused.status == 409
        assert why in words(refused.body.decode())
    added = await season.client.post("competitors.json", {"name": "Mistake"})
    wrong = added.json["competitor"]["id"]
    await season.client.put(f"{season.path}/participants.json", {"add": wrong})
    assert "Mistake" in await visitor.page(teams)
    answer = await visitor.fill(f"{teams}/{wrong}/remove", {}, times=2)
    assert answer.status == 303
    assert "Mistake" not in await visitor.page(teams)
    assert f"#{wrong}" not in await visitor.page(teams)
    assert f"#{wrong}" not in await visitor.page(at(season, f"/rankings/{season.ranking_id}"))
    assert f"#{wrong}" not in await visitor.page(at(season, "/rankings/new"))


async def test_a_team_withdraws_after_a_look_at_what_that_leads_to(visitor: Visitor, season: Season) -> None:
    await visitor.fill(at(season, "/rankings/like"), {"like": "football", "name": "League"})
    await visitor.fill(at(season, "/competitors/names"), {"names": "Dorf"})
    (league,) = (await season.client.get("rankings.json")).json["rankings"]["ranking"][-1:]
    ada, _, pair = season.ids
    table = f"rankings/{league['id']}"
    added = await season.client.get("competitors.json")
    (dorf,) = (one["id"] for one in added.json["competitors"]["competitor"] if one["name"] == "Dorf")
    await season.client.put(f"{table}/participants.json", {"add": dorf})
    played = {"group_id": 1, "participants": f"{ada},{dorf}", "result": "2:0", "winner": ada}
    match = (await season.client.post("competitions.json", played)).json["competition"]["id"]
    fixture = {"group_id": 1, "participants": f"{pair},{dorf}"}
    later = (await season.client.post("competitions.json", fixture)).json["competition"]["id"]
    race = {"group_id": 1, "participants": f"{ada},{dorf},{pair}"}
    raced = (await season.client.post("competitions.json", race)).json["competition"]["id"]

    async def voided() -> set[int]:
        listed = (await season.client.get("competitions.json")).json["competitions"]["competition"]
        return {one["id"] for one in listed if one["voided_at"]} & {match, later}

    removing = await visitor.get(at(season, f"/competitors/{dorf}/remove"))
    assert "Dorf is in 3 matches, so it cannot be removed; withdraw it instead." in words(removing.body.decode())
    withdrawing = at(season, f"/competitors/{dorf}/withdraw")
    assert f'href="{withdrawing}"' in removing.body.decode()

    look = await visitor.fill(withdrawing, {"keeps_results": "true"})
    assert "1 match would count for nobody." in words(look.body.decode())
    assert "would leave" not in words(look.body.decode())
    assert await voided() == set()
    form, action = form_of(look.body.decode())
    other = await visitor.post(action, form | {"keeps_results": "false"})
    assert other.status == 200
    said = words(other.body.decode())
    assert "2 matches would count for nobody." in said
    assert "1 match would count for the others only." in said
    assert "It would leave League." in said.replace("\u2068", "").replace("\u2069", "")
    assert "Moves in" in other.body.decode()
    assert await voided() == set()
    assert (await visitor.post(action, form)).status == 303
    assert await voided() == {later}
    again = await visitor.post(withdrawing, form_of(other.body.decode())[0])
    assert again.status == 303
    assert await voided() == {match, later}
    struck = (await season.client.get(f"competitions/{raced}.json")).json["competition"]["struck"]
    assert struck == [dorf]
    here = (await season.client.get(f"{table}.json")).json["ranking"]["competitors"]
    assert dorf not in [one["id"] for one in here]
    head = await season.client.get("tournament.json")
    assert (await visitor.post(withdrawing, form_of(other.body.decode())[0])).status == 303
    assert (await season.client.get("tournament.json")).json == head.json


async def test_matches_that_do_not_count_are_listed_only_when_asked_for(visitor: Visitor, season: Season) -> None:
    matches, void = at(season, "/competitions"), at(season, f"/competitions/{season.competition_id}/void")
    link = f"/competitions/{season.competition_id}/"
    assert link in await visitor.page(matches)
    await visitor.fill(void, {})
    page = await visitor.page(matches)
    assert link not in page
    (others,) = re.findall(r'href="([^"]*\?voided=1)"', page)
    assert link in await visitor.page(others)


async def test_going_back_from_the_look_at_a_pasted_file_keeps_it(visitor: Visitor, season: Season) -> None:
    for below in (f"/rankings/{season.ranking_id}/import", "/competitors/import"):
        text = MATCH if "rankings" in below else "name\nZoe\n"
        look = await visitor.fill(at(season, below), {"csv": text})
        back, _, _ = look.body.decode().rpartition("<form")
        form, action = form_of(back)
        assert form["step"] == "back"
        again = await visitor.post(action, form)
        assert again.status == 200
        assert form_of(again.body.decode())[0]["csv"].strip() == text.strip()


async def test_the_history_has_what_a_match_gave_and_lost_in_one_place(visitor: Visitor, season: Season) -> None:
    ada, ben, _ = season.ids
    match = {"competition_id": season.competition_id}
    add = f"{season.path}/add.json"
    await season.client.put(add, match | {"participants_delta": deltas((ada, season.unity_id, 3))})
    await season.client.put(add, {"participants_delta": deltas((ben, season.unity_id, 1)), "reason": "fair play"})
    await season.client.put(add, match | {"participants_delta": deltas((ada, season.unity_id, -1))})
    page = await visitor.page(at(season, f"/rankings/{season.ranking_id}/history"))
    assert set(re.findall(r'data-label="By"[^>]*>(?:<bdi>)?([^<]*)', page)) == {"test"}
    assert [words(one) for one in re.findall(r"<h2>(.*?)</h2>", page)] == [
        "Competition of 3",
        "Points without a competition",
    ]
    assert re.findall(r"Ada (.[0-9]) points \((.)\)", words(page)) == [("\N{MINUS SIGN}1", "2"), ("+3", "3")]


async def test_a_first_tournament_is_guided_from_names_to_publication(visitor: Visitor, season: Season) -> None:
    created = await visitor.fill(f"{CONSOLE}/tournaments/new", {"name": "Five a side"})
    home = created.headers["Location"].partition("/rankings")[0]

    async def next_step() -> str:
        return re.findall(r'<a href="([^"]*)" class="button chief">', await visitor.page(home))[0].removeprefix(home)

    assert home + await next_step() == created.headers["Location"].partition("?")[0]
    who = {"names": "Lions\n\n Bears \nWolves", "like": "football"}
    for wrong, why in (("Foxes\nfoxes", "foxes: there already"), ("\n", "must have a name on each line")):
        refused = await visitor.fill(home + "/rankings/like", who | {"names": wrong})
        assert why in words(refused.body.decode())
        assert form_of(refused.body.decode())[0]["names"].strip() == wrong.strip()
    answer = await visitor.fill(home + "/rankings/like", who, times=2)
    assert answer.headers["Location"].partition("?")[0] == home + await next_step()
    assert "Saved." in words(await visitor.page(answer.headers["Location"]))
    assert re.fullmatch(r"/rankings/[0-9]+/fixtures", await next_step())
    again = await visitor.fill(home + "/competitors/names", {"names": "Foxes\nbears"})
    assert "bears: there already" in words(again.body.decode())
    assert "Lions" in (there := words(await visitor.page(home + "/competitors")))
    assert "Foxes" not in there
    match = home + "/competitions/new"
    form, _ = form_of(await visitor.page(match))
    assert {"home", "away", "started_at", "group_id"} <= form.keys()
    sides = dict(re.findall(r'<option value="(id:[0-9]+)">(\w+)<', await visitor.page(match)))
    lions, bears = (next(one for one, name in sides.items() if name == said) for said in ("Lions", "Bears"))
    await visitor.fill(home + "/presentation", {"zone": "Europe/Berlin"})
    when = {"started_at": "2015-05-03T15:00"}
    twice = await visitor.fill(match, {"home": lions, "away": lions} | when)
    said = words(twice.body.decode())
    assert (twice.status, "Lions is named more than once" in said, "participants:" in said) == (422, True, False)
    assert 'id="fault-away"' in twice.body.decode()
    assert (await visitor.fill(match, {"home": lions, "away": bears} | when)).status == 303
    page = await visitor.page(home + "/competitions")
    assert "Lions – Bears" in words(page)  # noqa: RUF001 - one against the other
    assert "3 May 2015, 15:00 UTC+2" in words(page)
    (record,) = re.findall(r'href="([^"]*/record)"', page)
    assert form_of(await visitor.page(record))[0]["started_at"] == "2015-05-03T15:00"
    assert await next_step() == "/publication/publish"
    assert (await visitor.fill(home + "/publication/publish", {})).status == 303
    assert (await visitor.fill(match, {"home": bears, "away": lions, "started_at": "2015-05-10T15:00"})).status == 303
    form, action = form_of(await visitor.page(home + "/matchday?round=2015-05-10"))
    played = {name: "1" for name in form if name.startswith(("home[", "away["))}
    assert (await visitor.post(action, form | played)).status == 303
    page = await visitor.page(home)
    assert "1 match has no result yet" in words(page)
    (enter,) = re.findall('href="([^"]*)"[^>]*>Enter results<', page)
    assert re.findall('value="([^"]*)" selected', await visitor.page(unescape(enter)))[0] == "2015-05-03"
    assert "id:" not in words(await visitor.page(record.replace("/record", "/change")))


async def test_who_is_in_a_ranking_is_chosen_by_name(visitor: Visitor, season: Season) -> None:
    """Nobody need know an id, or what it is to enrol."""
    page = at(season, f"/rankings/{season.ranking_id}/participants")
    ada, ben, pair = season.ids
    form, action = form_of(await visitor.page(page))
    assert {name for name in form if name.startswith("competitor[")} == {f"competitor[{one}]" for one in season.ids}
    del form[f"competitor[{pair}]"]
    assert (await visitor.post(action, form)).status == 303
    shown = (await season.client.get(f"{season.path}.json")).json["ranking"]["competitors"]
    assert [one["id"] for one in shown] == [ada, ben]


async def test_a_token_is_for_tournaments_chosen_by_name(visitor: Visitor, season: Season) -> None:
    await visitor.fill(f"{CONSOLE}/tournaments/new", {"name": "Five a side"})
    page = f"{CONSOLE}/tokens/new"
    assert "Five a side" in words(await visitor.page(page))
    made = await visitor.fill(page, {"name": "Ann", "scope": "write", "tournament[five-a-side]": "on"})
    assert made.status == 200
    assert "1 tournament" in words(await visitor.page(f"{CONSOLE}/tokens"))
