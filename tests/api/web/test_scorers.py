"""Links for scorers: they enter the results of their matches, and nothing else opens for them."""

import re
from datetime import UTC, datetime, timedelta
from io import BytesIO

import asyncpg
import pytest

from api.access.auth import Scope
from engine.log.registry import tournament_named
from tests.api.asking import Log
from tests.api.scored import League
from tests.api.visitor import CONSOLE, Visitor, form_of, visiting
from tests.api.web.test_console import OPEN, address_of, at, routes_of, words
from tests.api.web.test_sheet import fixtures, match_of
from tests.service import Answer, Season, Service, make_token

TOMORROW = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
USUAL = {"name": "Referee Ann", "round": "1", "until": TOMORROW}


async def link_of(visitor: Visitor, season: Season, **asked: str) -> str:
    """The path of a new link."""
    made = await visitor.fill(at(season, "/scorers"), USUAL | asked)
    assert made.status == 200, words(made.body.decode())
    (link,) = re.findall(r'<code class="secret">([^<]*)</code>', made.body.decode())
    assert link.startswith(visitor.url)
    assert 'aria-label="QR code of the link"' in made.body.decode()
    return str(link).removeprefix(visitor.url)


async def opened(scorer: Visitor, link: str) -> Answer:
    """What the link leads to: its page has one button, and then the matches."""
    form, action = form_of(await scorer.page(link))
    entered = await scorer.sign_in(form["token"], form["to"])
    assert (action, entered.status) == (f"{CONSOLE}/sign-in", 303)
    then = await scorer.get(entered.headers["Location"])
    return await scorer.get(then.headers["Location"])


async def test_a_link_opens_its_matches_and_saves_under_its_name(
    service: Service, visitor: Visitor, season: Season, league: League, owner: asyncpg.Connection
) -> None:
    a, b, c = league.ids
    await league.score()
    (mine,), (other,) = await fixtures(league, (a, b)), await fixtures(league, (b, c), round=2)
    link = await link_of(visitor, season)
    async with visiting(service) as scorer:
        page = (await opened(scorer, link)).body.decode()
        form, action = form_of(page)
        assert [name for name in form if name.startswith("home")] == [f"home[{mine}]"]
        assert "postponed" not in page
        assert "foreseen" in page
        assert "League" not in page
        assert "data-events" not in page
        typed = {f"home[{mine}]": "2", f"away[{mine}]": "1", f"home[{other}]": "9", f"away[{other}]": "0"}
        answer = await scorer.post(action, form | typed | {f"was[{other}]": "x"})
        assert answer.status == 422
        assert "no longer in this round" in words(answer.body.decode())
        late = await scorer.post(action, form | {f"how[{mine}]": "postponed"})
        assert "Only organisers postpone" in words(late.body.decode())
        assert (await scorer.get(at(season, "/matchday?round=2"))).status == 200  # still round 1
        assert f"home[{other}]" not in (await scorer.get(at(season, "/matchday?round=2"))).body.decode()
    assert [(await match_of(league, one))["result"] for one in (mine, other)] == ["2:1", None]
    actor = await owner.fetchval("SELECT max(token_id) FROM token")
    history = (await season.client.get(f"{league.path}/history.json")).json["history"]
    assert history[-1]["actor"] == actor
    assert "Referee Ann" in words(await visitor.page(at(season, "/scorers")))


async def test_a_link_of_a_division_is_for_all_its_rounds(
    service: Service, visitor: Visitor, season: Season, league: League
) -> None:
    a, b, c = league.ids
    (one,) = await fixtures(league, (a, b), group_id=7)
    (two,) = await fixtures(league, (b, c), group_id=7, round=2)
    (other,) = await fixtures(league, (a, c), group_id=8, round=2)
    link = await link_of(visitor, season, round="", division="7")
    async with visiting(service) as scorer:
        await opened(scorer, link)
        found = await scorer.page(at(season, "/matchday?round=2&group=8"))
        assert (f"home[{two}]" in found, f"home[{one}]" in found, f"home[{other}]" in found) == (True, False, False)


async def test_a_link_is_ended_in_one_step_and_ends_after_its_day(
    service: Service, visitor: Visitor, season: Season, league: League, owner: asyncpg.Connection
) -> None:
    await fixtures(league, (league.ids[0], league.ids[1]))
    link = await link_of(visitor, season)
    (token_id,) = re.findall(r"/scorers/([0-9]+)/revoke", await visitor.page(at(season, "/scorers")))
    ends = await owner.fetchval("SELECT expires_at FROM token WHERE token_id = $1", int(token_id))
    assert f"{ends:%Y-%m-%d %H:%M}" == f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d} 00:00"
    async with visiting(service) as scorer:
        await opened(scorer, link)
        assert (await visitor.post(at(season, f"/scorers/{token_id}/revoke"))).status == 303
        assert (await scorer.get(at(season, "/matchday"))).status == 401
    assert f"/scorers/{token_id}/" not in await visitor.page(at(season, "/scorers"))
    assert (await visitor.post(at(season, f"/scorers/{token_id}/revoke"))).status == 404
    assert (await visitor.post(at(season, "/scorers/1/revoke"))).status == 404


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"name": ""}, "must"),
        ({"round": ""}, "must be chosen, or a division"),
        ({"round": "name:" + "x" * 256}, "must have at most 255 characters"),
        ({"round": "7"}, "is not a round of these matches"),
        ({"division": "5"}, "is not a round of these matches"),
        ({"round": "", "division": "5"}, "has no matches"),
        ({"division": "x"}, "must be a whole number"),
        ({"division": "9" * 5_000}, "must be a whole number"),
        ({"until": "tomorrow"}, "must be a day"),
        ({"until": "2020-01-01"}, "must be today or later"),
    ],
)
async def test_what_a_link_lacks_is_named(
    visitor: Visitor, season: Season, league: League, asked: dict[str, str], said: str
) -> None:
    await fixtures(league, (league.ids[0], league.ids[1]))
    refused = await visitor.fill(at(season, "/scorers"), USUAL | asked)
    assert (refused.status, said in words(refused.body.decode())) == (422, True)


async def test_a_form_that_is_sent_twice_makes_one_link_until_it_is_ended(
    visitor: Visitor, season: Season, league: League
) -> None:
    await fixtures(league, (league.ids[0], league.ids[1]))
    page = at(season, "/scorers")
    form, action = form_of(await visitor.page(page))
    first, again = [await visitor.post(action, form | USUAL) for _ in range(2)]
    assert first.body == again.body
    (listed,) = [one for one in (await season.client.send("GET", "/tokens.json")).json["tokens"] if one["part"]]
    assert (listed["name"], listed["part"]) == ("Referee Ann", {"group_id": None, "round": "1"})
    other = await visitor.post(action, form | USUAL | {"name": "Bob"})
    assert other.body != first.body
    await visitor.post(f"{page}/{listed['id']}/revoke")
    ended = await visitor.post(action, form | USUAL)
    assert (ended.status, "This link was ended" in words(ended.body.decode())) == (409, True)


async def test_no_other_page_and_no_stream_opens_for_a_scorer(service: Service, season: Season, log: Log) -> None:
    async with service.database.connection() as connection:
        tournament_id = await tournament_named(connection, season.client.tournament)
    assert tournament_id is not None
    token = await make_token(service.database, Scope.SCORE, [tournament_id])
    before, tried = await log.length(), 0
    async with visiting(service, token) as scorer:
        for template, methods in (await routes_of(service)).items():
            if template in {*OPEN, "", "/tournament/{tournament}/matchday"}:
                continue
            for method in methods:
                address = address_of(template, season)
                answer = await (scorer.post(address, {}) if method == "POST" else scorer.send(method, address, None))
                assert answer.status == 403, (method, template)
                tried += 1
        stream = await scorer.send("GET", f"/tournament/{season.client.tournament}/events", None)
        assert stream.status == 403
    assert tried > 60
    assert await log.length() == before


async def test_no_log_has_the_text_of_a_link(
    service: Service, visitor: Visitor, season: Season, league: League, log_lines: BytesIO
) -> None:
    await fixtures(league, (league.ids[0], league.ids[1]))
    link = await link_of(visitor, season)
    async with visiting(service) as scorer:
        await opened(scorer, link)
    assert b"/console/score" in log_lines.getvalue()
    assert link.partition("=")[2].encode() not in log_lines.getvalue()


async def test_a_link_that_is_none_says_so(service: Service, season: Season) -> None:
    async with visiting(service) as stranger:
        assert (await stranger.get(f"{CONSOLE}/score?link=tb_nothing")).status == 401
        assert (await stranger.get(f"{CONSOLE}/score")).status == 400
        assert (await stranger.get(f"{CONSOLE}/score?link={season.client.token}")).status == 404
