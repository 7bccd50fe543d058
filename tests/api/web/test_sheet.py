"""The match-day sheet of the console, as a browser without scripts sees and uses it."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import asyncpg
import pytest

from api.access.auth import Scope
from engine.database.pool import Database
from projections.answers.rounds import Round, current
from tests.api.scored import League
from tests.api.visitor import Visitor, form_of, visiting
from tests.api.web.test_console import at, words
from tests.projections.verified import verified
from tests.service import Season, Service, create_ranking, listed, make_token

NOW: Final = datetime(2026, 5, 9, 18, tzinfo=UTC)


async def fixtures(league: League, *pairs: tuple[int, int], **fields: object) -> list[int]:
    return [await league.play(a, b, "", **{"round": 1} | fields) for a, b in pairs]


async def blocks(owner: asyncpg.Connection) -> int:
    return int(await owner.fetchval("SELECT count(*) FROM block"))


async def match_of(league: League, match: int) -> dict[str, Any]:
    return dict((await league.client.get(f"competitions/{match}.json")).json["competition"])


async def winner_of(league: League, match: int) -> int | None:
    found = [one["competitor_id"] for one in (await match_of(league, match))["participants"] if one["winner"]]
    return found[0] if found else None


async def test_a_round_is_saved_in_one_block_and_what_is_wrong_stays_in_its_row(
    visitor: Visitor, season: Season, league: League, owner: asyncpg.Connection, database: Database
) -> None:
    a, b, c = league.ids
    await league.score()
    one, two, three = await fixtures(league, (a, b), (b, c), (c, a))
    before, page = await blocks(owner), at(season, "/matchday?round=1")
    typed = {
        f"home[{one}]": "2",
        f"away[{one}]": " 1 ",
        f"home[{two}]": "0",
        f"home[{three}]": "0",
        f"away[{three}]": "0",
    }
    refused = await visitor.fill(page, typed)
    said = words(refused.body.decode())
    assert (refused.status, await blocks(owner)) == (422, before + 1)
    assert "2 saved. 1 competition needs another look." in said
    assert "Both need a score" in said
    assert "Round 1 (1 to play)" in said
    assert await league.table() == {a: 4, c: 1, b: 0}
    form, action = form_of(refused.body.decode())
    assert (form[f"home[{one}]"], form[f"home[{two}]"], form[f"away[{two}]"]) == ("2", "0", "")
    saved = await visitor.post(action, form | {f"away[{two}]": "3"})
    assert (saved.status, await blocks(owner)) == (303, before + 2)
    assert "Recorded" in words(await visitor.page(saved.headers["Location"])) or "Saved" in words(
        await visitor.page(saved.headers["Location"])
    )
    assert await league.table() == {c: 4, a: 4, b: 0}
    assert [await winner_of(league, match) for match in (one, two, three)] == [a, c, None]
    assert not (await verified(database)).differences


async def test_a_sheet_that_is_sent_twice_is_saved_once(
    visitor: Visitor, season: Season, league: League, owner: asyncpg.Connection
) -> None:
    a, b, _ = league.ids
    await league.score()
    (match,) = await fixtures(league, (a, b))
    form, action = form_of(await visitor.page(at(season, "/matchday?round=1")))
    form |= {f"home[{match}]": "2", f"away[{match}]": "1"}
    before = await blocks(owner)
    answers = [await visitor.post(action, form) for _ in range(2)]
    assert [answer.status for answer in answers] == [303, 303]
    assert answers[0].headers["Location"] == answers[1].headers["Location"]
    assert await blocks(owner) == before + 1
    taken_back = await visitor.fill(action, {f"home[{match}]": "", f"away[{match}]": ""})
    assert (taken_back.status, await league.table()) == (303, {a: 0, b: 0, league.ids[2]: 0})


async def test_another_who_saved_the_match_meanwhile_is_named_and_not_overwritten(
    service: Service, visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    await league.score()
    one, two = await fixtures(league, (a, b), (b, c))
    form, action = form_of(await visitor.page(at(season, "/matchday?round=1")))
    other = await make_token(service.database, Scope.WRITE)
    async with visiting(service, other) as somebody:
        assert (await somebody.fill(action, {f"home[{one}]": "3", f"away[{one}]": "1"})).status == 303
    form |= {f"home[{one}]": "2", f"away[{one}]": "1", f"home[{two}]": "1", f"away[{two}]": "1"}
    asked = await visitor.post(action, form)
    said = words(asked.body.decode())
    assert asked.status == 422
    assert "test has saved 3:1 meanwhile. Save again to replace it." in said
    assert ((await match_of(league, one))["result"], (await match_of(league, two))["result"]) == ("3:1", "1:1")
    again, action = form_of(asked.body.decode())
    assert (await visitor.post(action, again)).status == 303
    assert (await match_of(league, one))["result"] == "2:1"


async def test_a_page_that_is_older_than_a_change_leaves_untouched_rows_alone(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    one, two = await fixtures(league, (a, b), (b, c))
    form, action = form_of(await visitor.page(at(season, "/matchday?round=1")))
    await league.correct(one, result="3:1")
    assert (await visitor.post(action, form | {f"home[{two}]": "1", f"away[{two}]": "1"})).status == 303
    assert (await match_of(league, one))["result"] == "3:1"


@pytest.mark.parametrize(
    ("how", "home", "away", "result", "winner", "said"),
    [
        ("wo-1", "", "", "+:-", 0, "walkover, won by Ajax"),
        ("wo-2", "", "", "-:+", 1, "walkover, won by Bari"),
        ("wo-2", "0", "3", "0:3 wo", 1, "0:3 wo"),
        ("none", "", "", "-:-", None, "not played, lost by both"),
        ("abandoned", "", "", "abandoned", None, "abandoned"),
        ("abandoned", "1", "0", "1:0 abandoned", None, "1:0 abandoned"),
        ("aet", "2", "1", "2:1 aet", 0, "2:1 aet"),
        ("pen-2", "2", "2", "2:2 pen", 1, "2:2 pen"),
        ("word:ot", "2", "3", "2:3 ot", None, "2:3 ot"),
    ],
)
async def test_how_a_match_ended_is_a_choice_of_its_row(
    visitor: Visitor,
    season: Season,
    league: League,
    how: str,
    home: str,
    away: str,
    result: str,
    winner: int | None,
    said: str,
) -> None:
    await league.score(words={"ot": None})
    (match,) = await fixtures(league, (league.ids[0], league.ids[1]))
    page = at(season, "/matchday?round=1")
    typed = {f"how[{match}]": how, f"home[{match}]": home, f"away[{match}]": away}
    assert (await visitor.fill(page, typed)).status == 303
    assert (await match_of(league, match))["result"] == result
    assert await winner_of(league, match) == (None if winner is None else league.ids[winner])
    shown = await visitor.page(page)
    form, _ = form_of(shown)
    assert {name: form[name] for name in typed} == typed
    assert f"Saved: {said} Save" in words(shown)
    listed = words(await visitor.page(at(season, "/competitions")))
    assert f" {said.partition(',')[0]}" in listed
    assert (result == said) == (result in listed)
    points = await league.table()
    assert points[league.ids[0]] == (3 if winner == 0 else 0)


async def test_a_level_score_with_a_winner_fits_into_no_row(visitor: Visitor, season: Season, league: League) -> None:
    drawn, won = await fixtures(league, league.ids[:2], league.ids[1:])
    await league.correct(drawn, result="1:1")
    await league.correct(won, result="1:1", winner=league.ids[2])
    form, _ = form_of(await visitor.page(at(season, "/matchday?round=1")))
    assert (f"home[{drawn}]" in form, f"home[{won}]" in form) == (True, False)


async def test_the_table_beside_a_sheet_is_headed_by_what_it_counts(visitor: Visitor, season: Season) -> None:
    races = await create_ranking(season.client, season.ids, name="Series", main_unity_name="races run")
    series = League(season.client, season.ids, races)
    await series.score()
    await fixtures(series, series.ids[:2])
    assert "Series Place Competitor Races run 1 " in words(await visitor.page(at(season, "/matchday?round=1")))


async def test_a_shoot_out_on_a_sheet_needs_a_winner(visitor: Visitor, season: Season, league: League) -> None:
    match, other = await fixtures(league, league.ids[:2], league.ids[1:])
    page = at(season, "/matchday?round=1")
    for scored in (False, True):
        if scored:
            await league.score()
        typed = {f"home[{match}]": "2", f"away[{match}]": "2 pen"}
        refused = await visitor.fill(page, typed)
        assert refused.status == 422
        assert "Name the winner: a shoot-out always has one" in words(refused.body.decode())
        assert (await match_of(league, match))["result"] is None
    assert (await visitor.fill(page, {f"home[{other}]": "5", f"away[{other}]": "4 pen"})).status == 303
    assert await winner_of(league, other) == league.ids[1]


async def test_a_postponed_match_stays_without_a_result_and_gets_another_date_or_none(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    await season.client.put("presentation.json", {"zone": "Europe/Madrid"})
    one, two = await fixtures(league, (a, b), (b, c), started_at="2015-05-02 13:00:00")
    typed = {f"how[{one}]": "postponed", f"how[{two}]": "postponed", f"on[{two}]": "2015-05-16T15:00"}
    answers = [await visitor.fill(at(season, "/matchday?round=1"), typed) for _ in range(2)]
    assert [answer.status for answer in answers] == [303, 303]
    assert (await match_of(league, two))["started_at"] == "2015-05-16 13:00:00"
    found = await match_of(league, one)
    assert (found["result"], found["started_at"]) == (None, found["created_at"])
    assert "No date" in words(await visitor.page(at(season, "/matchday?round=1")))


async def test_a_result_of_a_match_to_come_and_a_winner_with_the_lower_score_are_asked_about(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    to_come = f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%d %H:%M:%S}"
    (one,) = await fixtures(league, (a, b), started_at=to_come)
    (two,) = await fixtures(league, (b, c))
    (three,) = await fixtures(league, (c, a), started_at=f"{datetime.now(UTC):%Y-%m-%d} 23:59:59")
    today = {f"home[{three}]": "1", f"away[{three}]": "0"}
    assert (await visitor.fill(at(season, "/matchday?round=1"), today)).status == 303
    typed = {f"home[{one}]": "2", f"away[{one}]": "1", f"home[{two}]": "0", f"away[{two}]": "3", f"how[{two}]": "wo-1"}
    asked = await visitor.fill(at(season, "/matchday?round=1"), typed)
    said = words(asked.body.decode())
    assert asked.status == 422
    assert "Has it been played?" in said
    assert "The winner has the lower score." in said
    assert [(await match_of(league, match))["result"] for match in (one, two)] == [None, None]
    form, action = form_of(asked.body.decode())
    assert form[f"home[{one}]"] == "2"
    assert f'name="sure[{one}]"' in asked.body.decode()
    sure = {f"sure[{one}]": "on", f"sure[{two}]": "on"}
    assert (await visitor.post(action, form)).status == 422
    assert (await visitor.post(action, form | sure)).status == 303
    assert [(await match_of(league, match))["result"] for match in (one, two)] == ["2:1", "0:3 wo"]
    assert await winner_of(league, two) == b


async def test_the_table_after_saving_is_on_the_page_and_looking_at_it_records_nothing(
    visitor: Visitor, season: Season, league: League, owner: asyncpg.Connection
) -> None:
    a, b, _ = league.ids
    await league.score()
    (match,) = await fixtures(league, (b, a))
    before = await blocks(owner)
    form, action = form_of(await visitor.page(at(season, "/matchday?round=1")))
    shown = await visitor.post(action, form | {f"home[{match}]": "2", f"away[{match}]": "1", "look": "1"})
    said = words(shown.body.decode())
    assert (shown.status, await blocks(owner)) == (200, before)
    assert "League after saving Place Competitor Points 1 " in said
    assert "3 (+3)" in said
    kept, _ = form_of(shown.body.decode())
    assert kept[f"home[{match}]"] == "2"


async def test_a_result_that_no_scoring_reads_is_marked_with_the_forms_that_count(
    visitor: Visitor, season: Season, league: League
) -> None:
    await league.score()
    (match,) = await fixtures(league, (league.ids[0], league.ids[1]))
    refused = await visitor.fill(at(season, "/matchday?round=1"), {f"home[{match}]": "two", f"away[{match}]": "1"})
    assert refused.status == 422
    assert "Forms that count: a score of two numbers" in words(refused.body.decode())


async def test_results_refused_by_what_rankings_are_leave_the_others_saved(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    await league.score()
    played = await league.play(a, b, "1:0", round=1)
    await league.client.put(f"{league.path}/close.json")
    (fixture,) = await fixtures(league, (b, c))
    typed = {f"home[{played}]": "0", f"home[{fixture}]": "2", f"away[{fixture}]": "2"}
    refused = await visitor.fill(at(season, "/matchday?round=1"), typed)
    assert "gave points in closed rankings" in words(refused.body.decode())
    assert [(await match_of(league, one))["result"] for one in (played, fixture)] == ["1:0", "2:2"]


async def test_matches_without_a_round_are_those_of_a_day_and_of_one_group_if_asked(
    visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    await season.client.put("presentation.json", {"zone": "Asia/Tokyo"})
    late = await league.play(a, b, "", started_at="2015-05-02 16:00:00")
    early = await league.play(b, c, "", started_at="2015-05-02 14:00:00", group_id=2)
    form, _ = form_of(await visitor.page(at(season, "/matchday?round=2015-05-03")))
    assert [name for name in form if name.startswith("home")] == [f"home[{late}]"]
    assert f"home[{early}]" in form_of(await visitor.page(at(season, "/matchday?group=2")))[0]
    assert (await visitor.get(at(season, "/matchday?group=2&round=2015-05-03"))).status == 404
    field = await season.client.post(
        "competitions.json", {"group_id": 1, "participants": listed([a, b, c]), "started_at": "2015-05-02 16:00:00"}
    )
    page = await visitor.page(at(season, "/matchday?round=2015-05-03"))
    assert f"/competitions/{field.json['competition']['id']}/record" in page


async def test_a_sheet_without_a_field_has_no_button(visitor: Visitor, season: Season, league: League) -> None:
    a, b, c = league.ids
    race = {"group_id": 1, "participants": listed([a, b, c]), "started_at": "2015-05-03 16:00:00"}
    raced = (await season.client.post("competitions.json", race)).json["competition"]["id"]
    for fields, is_saved in ((0, False), (1, True)):
        page = await visitor.page(at(season, "/matchday?round=2015-05-03"))
        assert f"/competitions/{raced}/record" in page
        assert page.count('name="home[') == fields
        assert (">Save</button>" in page, ">Show the table</button>" in page) == (is_saved, is_saved)
        await league.play(a, b, "", started_at="2015-05-03 16:00:00")


@pytest.mark.parametrize(
    ("rounds", "number"),
    [
        ([], None),
        ([(-7, 0), (0, 2), (7, 3)], 2),
        ([(-7, 0), (0, 0), (7, 3)], 3),
        ([(-7, 1), (0, 0), (7, 0)], 2),
        ([(-7, 0), (-1, 0)], 2),
        ([(7, 3), (14, 3)], 1),
        ([(None, 0), (None, 2), (None, 2)], 2),
        ([(None, 0), (None, 0)], 2),
        ([(-7, 0), (None, 2)], 2),
    ],
)
def test_the_round_that_is_played_now_is_shown_first(rounds: list[tuple[int | None, int]], number: int | None) -> None:
    found = current(
        [
            Round(number=n, begins=None if days is None else NOW + timedelta(days=days), matches=3, left=left)
            for n, (days, left) in enumerate(rounds, start=1)
        ],
        NOW,
    )
    assert (None if found is None else found.number) == number


async def test_fixtures_are_shown_with_their_byes_then_made_and_filled_on_the_sheet(
    visitor: Visitor, season: Season, league: League
) -> None:
    await season.client.put("presentation.json", {"zone": "Europe/Madrid"})
    await league.score()
    page = at(season, f"/rankings/{league.ranking_id}/fixtures")
    wrong = await visitor.fill(page, {"day": "2015-03-21", "every": "x"})
    assert "must be a number of days" in words(wrong.body.decode())
    wanted = {
        "day": "2015-03-21",
        "time": "16:00",
        "every": "7",
        "unit": "d",
        "places": "North\nSouth\n",
        "twice": "on",
    }
    look = await visitor.fill(page, wanted)
    said = words(look.body.decode())
    assert "In each round, one has no competition: 1: Ajax" in said
    for text in ("Fixtures of League", "6 competitions. Nothing is recorded yet.", "Make 6 competitions"):
        assert text in said
    back, action = form_of(look.body.decode().rpartition("<form")[0])
    again = await visitor.post(action, back)
    assert form_of(again.body.decode())[0]["day"] == "2015-03-21"
    assert "Celtic" in said
    assert "North" in said
    assert (await season.client.get("competitions.json?round=1")).json["competitions"]["competition"] == []
    form, action = form_of(look.body.decode())
    assert (await visitor.post(action, form)).status == 303
    made = (await season.client.get("competitions.json?round=2")).json["competitions"]["competition"]
    assert [(one["started_at"], one["location"]) for one in made] == [("2015-03-28 15:00:00", "North")]
    sheet = at(season, "/matchday?round=2")
    assert (await visitor.fill(sheet, {f"home[{made[0]['id']}]": "2", f"away[{made[0]['id']}]": "0"})).status == 303
    assert sorted((await league.table()).values()) == [0, 0, 3]


async def test_a_match_in_the_last_hours_of_the_calendar_is_on_the_sheet(
    visitor: Visitor, season: Season, league: League
) -> None:
    await season.client.put("presentation.json", {"zone": "Pacific/Auckland"})
    match = await league.play(league.ids[0], league.ids[1], "", started_at="9999-12-31 23:00:00")
    page = at(season, "/matchday?round=9999-12-31")
    assert f"home[{match}]" in await visitor.page(page)
    asked = await visitor.fill(page, {f"home[{match}]": "1", f"away[{match}]": "0"})
    assert "is still to come" in words(asked.body.decode())
    assert (await visitor.fill(page, {f"how[{match}]": "postponed", f"on[{match}]": "9999-12-31T23:30"})).status in (
        303,
        422,
    )
