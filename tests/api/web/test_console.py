"""The console, as a browser without scripts sees and uses it."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from dataclasses import replace
from html import unescape
from io import BytesIO
from itertools import count
from typing import Any, Final

import asyncpg
import pytest

from api.access import auth
from api.access.auth import Scope
from api.imports import rows as imported_rows
from api.interface.cells import csv_rows
from api.interface.declarations import name_of
from api.interface.fields import Empty
from api.web.console.change_page import LOOK
from api.web.console.changes import CONSOLE_CHANGES
from api.web.console.competition_import_pages import PASTED_COMPETITIONS_MAX
from api.web.console.inputs import Beginning
from api.webhooks.webhooks import add_webhook
from engine.domain.terms import ITEMS_MAX, OPERATOR, RESULT_MAX, CompetitionId, Sequence, TournamentId
from engine.log.registry import tournament_named
from engine.process.time_slices import TimeSlice
from projections.verification.noted import note_verified
from tests.api.asking import Log, path_of, with_points
from tests.api.visitor import CONSOLE, Visitor, form_of, routes_below, unreached, visiting
from tests.bounds import Bounds
from tests.desks import holding, until, waiting_for_locks
from tests.service import Answer, Season, Service, create_ranking, deltas, listed, make_token, totals
from tests.tournaments import open_new_tournament

SCOPES: Final = {"read": Scope.READ, "write": Scope.WRITE, "admin": Scope.ADMIN}


def at(season: Season, below: str = "") -> str:
    return f"{CONSOLE}/tournament/{season.client.tournament}{below}"


async def head_of(visitor: Visitor, season: Season) -> int:
    """The last event, as the page for auditors says."""
    found = re.search(r"Head change ([0-9]+)", words(await visitor.page(at(season, "/log"))))
    assert found
    return int(found[1])


def words(page: str) -> str:
    """What a page says, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


# ── Who may see and do what ─────────────────────────────────────────────────────────────────────────────

NEEDED: Final = {
    **{f"/tournament/{{tournament}}{change.path}": change.scope for change in CONSOLE_CHANGES},
    "/tournament/{tournament}/rankings/like": Scope.WRITE,
    "/tournament/{tournament}/rankings/{ranking_id}/add": Scope.WRITE,
    "/tournament/{tournament}/matchday": Scope.WRITE,
    "/tournament/{tournament}/scorers": Scope.WRITE,
    "/tournament/{tournament}/scorers/{token_id}/revoke": Scope.WRITE,
    "/tournament/{tournament}/publication": Scope.ADMIN,
    "/tournament/{tournament}/competitors/{competitor_id}/export": Scope.ADMIN,
    "/tournament/{tournament}/webhooks": Scope.ADMIN,
    "/tournaments/new": Scope.ADMIN,
    "/tournament/{tournament}/competitors/import": Scope.WRITE,
    "/tournament/{tournament}/competitors/{competitor_id}/remove": Scope.ADMIN,
    "/tournament/{tournament}/competitors/{competitor_id}/withdraw": Scope.ADMIN,
    "/tournament/{tournament}/rankings/{ranking_id}/import": Scope.WRITE,
    "/tournament/{tournament}/rankings/{ranking_id}/fixtures": Scope.WRITE,
    "/tournament/{tournament}/bring": Scope.WRITE,
    "/tournament/{tournament}/imports/{import_name}/undo": Scope.WRITE,
    "/tokens": Scope.ADMIN,
    "/tokens/new": Scope.ADMIN,
    "/tokens/{token_id}/revoke": Scope.ADMIN,
}
"""What a token must reach for the addresses of the console; for all others, to be there is enough."""
EXPECTED: Final = {
    "/competitors/names": Scope.WRITE,
    "/competitors/new": Scope.WRITE,
    "/competitors/{competitor_id}/change": Scope.WRITE,
    "/competitors/{competitor_id}/erase": Scope.ADMIN,
    "/competitions/new": Scope.WRITE,
    "/competitions/{competition_id}/record": Scope.WRITE,
    "/competitions/{competition_id}/change": Scope.WRITE,
    "/competitions/{competition_id}/void": Scope.ADMIN,
    "/competitions/{competition_id}/unvoid": Scope.ADMIN,
    "/competitions/{competition_id}/strike": Scope.ADMIN,
    "/competitions/{competition_id}/unstrike": Scope.ADMIN,
    "/rankings/new": Scope.WRITE,
    "/rankings/{ranking_id}/information": Scope.WRITE,
    "/rankings/{ranking_id}/participants": Scope.WRITE,
    "/rankings/{ranking_id}/classification": Scope.WRITE,
    "/rankings/{ranking_id}/scoring": Scope.WRITE,
    "/rankings/{ranking_id}/unities/new": Scope.WRITE,
    "/rankings/{ranking_id}/undo/{sequence}": Scope.WRITE,
    "/rankings/{ranking_id}/redo/{sequence}": Scope.WRITE,
    "/rankings/{ranking_id}/close": Scope.ADMIN,
    "/rankings/{ranking_id}/reopen": Scope.ADMIN,
    "/rankings/order": Scope.WRITE,
    "/rankings/{ranking_id}/hide": Scope.ADMIN,
    "/rankings/{ranking_id}/show": Scope.ADMIN,
    "/name": Scope.ADMIN,
    "/presentation": Scope.ADMIN,
    "/logo": Scope.ADMIN,
    "/archive": Scope.ADMIN,
    "/restore": Scope.ADMIN,
    "/delete": Scope.ADMIN,
    "/publication/publish": Scope.ADMIN,
    "/publication/unpublish": Scope.ADMIN,
    "/publication/freeze": Scope.ADMIN,
    "/publication/freeze-at": Scope.ADMIN,
    "/publication/reveal-to": Scope.ADMIN,
    "/publication/reveal-next": Scope.ADMIN,
    "/publication/reveal-all": Scope.ADMIN,
}
OPEN: Final = {"/sign-in", "/sign-out", "/score"}
WRONG_NUMBERS: Final = ("0.5", "1e3", "\N{FULLWIDTH DIGIT ONE}", "0x1", "1_000")


async def routes_of(service: Service) -> dict[str, set[str]]:
    """Every template of the console, below it, and its methods."""
    routes = await routes_below(service, CONSOLE)
    return {template.removeprefix(CONSOLE): methods for template, methods in routes.items()}


MATCH: Final = "date,participants,score\n2015-05-03,Ada|Ben,2:1\n"


USUAL: Final = {"name": "Cup", "csv": MATCH, "scope": "read", "group_id": "1"}
"""What forms are filled in with, where they ask for it."""
NUMBERS_OF_FORMS: Final = {
    *("division", "group_id", "round", "main_unity_decimals", "decimals", "place[1]", "points[1]"),
    *("criteria[1].best", "expires_in_days", "freeze", "reveal", "every", "lasts"),
}


def inputs_of(page: str) -> list[str]:
    """The attributes of each input of a page."""
    return [unescape(attributes) for attributes in re.findall(r"<input ([^>]*)>", page)]


def numbers_of(page: str) -> list[str]:
    """The inputs of a page that take whole numbers, as it says."""
    numeric = [one for one in inputs_of(page) if 'inputmode="numeric"' in one]
    return [name for one in numeric for name in re.findall(r'\bname="([^"]*)"', one)]


def match_with(points: str) -> str:
    return f"date,participants,score,points\n2015-05-03,Ada|Ben,2:1,{points}\n"


async def import_match(visitor: Visitor, season: Season) -> str:
    """Imports a competition. Returns the name of the import."""
    page = at(season, f"/rankings/{season.ranking_id}/import")
    look = await visitor.fill(page, {"csv": MATCH})
    form, action = form_of(look.body.decode())
    assert (await visitor.post(action, form)).status == 303
    (name,) = re.findall(r"/imports/([a-z0-9]+)/undo", await visitor.page(at(season, "/imports")))
    assert isinstance(name, str)
    return name


def address_of(template: str, season: Season, import_name: str = "none") -> str:
    ids = {
        "tournament": season.client.tournament,
        "ranking_id": season.closed_ranking_id if template.endswith("/reopen") else season.ranking_id,
        "competition_id": season.voided_competition_id if template.endswith("/unvoid") else season.competition_id,
        "competitor_id": season.idle_id if template.endswith("/remove") else season.ids[0],
        "token_id": 1,
        "session_id": 999,
        "sequence": season.added or 1,
        "import_name": import_name,
    }
    return CONSOLE + template.format(**ids)


async def with_idle(season: Season) -> Season:
    """The season with one more competitor, who takes part in nothing."""
    added = await season.client.post("competitors.json", {"name": "Idle"})
    return replace(season, idle_id=added.json["competitor"]["id"])


def test_the_changes_are_these_and_need_what_their_operations_need() -> None:
    assert {change.path: change.scope for change in CONSOLE_CHANGES} == EXPECTED
    assert {change.path for change in CONSOLE_CHANGES if change.warning is None} == {
        path for path, scope in EXPECTED.items() if scope is Scope.WRITE and "{sequence}" not in path
    }


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scope", SCOPES)
async def test_each_page_and_each_change_needs_its_scope(
    service: Service, season: Season, log: Log, scope: str
) -> None:
    routes, tried = await routes_of(service), 0
    assert NEEDED.keys() | OPEN < routes.keys()
    token = await make_token(service.database, SCOPES[scope])
    adding = service.client(season.client.tournament, token) if SCOPES[scope] >= Scope.WRITE else season.client
    form = {"participants_delta": deltas((season.ids[0], season.unity_id, 1))}
    added = await adding.put(f"{season.path}/add.json", form)
    season = replace(await with_idle(season), added=int(added.headers["Tallybook-Sequence"]))
    its_token = token if SCOPES[scope] >= Scope.WRITE else season.client.token
    async with visiting(service, its_token) as visitor:
        import_name = await import_match(visitor, season)
    async with visiting(service, token) as visitor:
        for template, methods in routes.items():
            if template in OPEN:
                continue
            needed = NEEDED.get(template, Scope.READ)
            before = await log.length()
            for method in sorted(methods):  # POST is the last
                address = address_of(template, season, import_name)
                if method == "POST":
                    answer = await visitor.post(address, {})
                    allowed = {303, 404, 400, 422}
                else:
                    answer = await visitor.send(method, address, None)
                    allowed = {200}
                if SCOPES[scope] < needed:
                    assert answer.status == 403, (template, method)
                    assert await log.length() == before
                elif "token_id" not in template or method != "POST":
                    assert answer.status in allowed, (template, method, answer.body[-3_000:])
                tried += 1
                if (await visitor.get(f"{CONSOLE}/sessions")).status == 401:
                    await visitor.sign_in(await make_token(service.database, SCOPES[scope]))
    assert tried == sum([len(methods) for template, methods in routes.items() if template not in OPEN])


async def test_links_lead_to_every_page(service: Service, visitor: Visitor, season: Season) -> None:
    """But to that of signing in, of a scorer's link, and of the problems of contests. Some are there only before, and
    some only after a change."""
    templates = (await routes_below(service, CONSOLE)).keys() - {f"{CONSOLE}/sign-in", f"{CONSOLE}/score"}
    templates = {one for one in templates if not one.endswith("/problems")}
    scorer = {"name": "Ann", "division": "2", "until": "2100-01-01"}
    assert (await visitor.fill(at(season, "/scorers"), scorer)).status == 200
    added = await season.client.put(
        f"{season.path}/add.json", {"participants_delta": deltas((season.ids[0], season.unity_id, 1))}
    )
    await import_match(visitor, season)
    missed = await unreached(visitor.get, CONSOLE, templates)
    sequence = int(added.headers["Tallybook-Sequence"])
    await season.client.put(f"{season.path}/reverse.json", {"sequence": sequence})
    await season.client.put(f"competitions/{season.competition_id}/strike.json", {"competitors": season.ids[1]})
    await season.client.put(f"{season.path}/visibility.json", {"hidden": "true"})
    for published in ({"published": "true"}, {"freeze": "now"}):
        await season.client.put("publication.json", published)
    await season.client.put("archive.json")
    assert missed & await unreached(visitor.get, CONSOLE, templates) == set()


async def test_nothing_is_answered_without_a_session(service: Service, season: Season) -> None:
    async with visiting(service) as nobody:
        for template, methods in (await routes_of(service)).items():
            if template in OPEN:
                continue
            for method in methods:
                address = address_of(template, season)
                answer = await (nobody.post(address, {}) if method == "POST" else nobody.send(method, address, None))
                assert answer.status == 401, (template, method)
                assert b"Ada" not in answer.body
                nobody.headers = {"Authorization": f"Bearer {season.client.token}"}  # which is for operations
                answer = await (nobody.post(address, {}) if method == "POST" else nobody.send(method, address, None))
                assert answer.status == 401, (template, method)
                nobody.headers = {}


async def test_a_tournament_beyond_the_token_is_as_one_that_does_not_exist(service: Service, season: Season) -> None:
    other = await open_new_tournament(service.database, actor=OPERATOR)
    async with visiting(service, await make_token(service.database, Scope.ADMIN, [other])) as stranger:
        listed = await stranger.page(CONSOLE)
        assert f'{at(season)}"' not in listed
        for template, methods in (await routes_of(service)).items():
            if "{tournament}" in template:
                for method in methods - {"HEAD"}:
                    bodies = set()
                    for slug in (season.client.tournament, "nowhere"):
                        address = address_of(template, season).replace(season.client.tournament, slug)
                        form = {"idempotency_key": "k", "name": "x", "group_id": 1}
                        answer = await (stranger.post(address, form) if method == "POST" else stranger.get(address))
                        assert answer.status in (404, 400), (template, method, answer.body)
                        bodies.add(answer.body.replace(slug.encode(), b""))
                    assert len(bodies) == 1, template


CHANGING: Final = re.compile(
    r'href="[^"]*/(?:new|change|record|void|unvoid|close|reopen|add|participants|classification|revoke)"'
)


@pytest.mark.parametrize(("scope", "shown"), [("read", False), ("write", True), ("admin", True)])
async def test_a_reader_is_shown_no_way_to_change_anything(
    service: Service, season: Season, scope: str, shown: bool
) -> None:
    async with visiting(service, await make_token(service.database, SCOPES[scope])) as visitor:
        pages = [
            await visitor.page(address)
            for address in (
                CONSOLE,
                at(season),
                at(season, "/competitors"),
                at(season, "/competitions"),
                at(season, f"/rankings/{season.ranking_id}"),
                at(season, f"/rankings/{season.ranking_id}/history"),
            )
        ]
        assert any(CHANGING.search(page) for page in pages) == shown
        assert any("/void" in page or "/close" in page for page in pages) == (scope == "admin")
        assert any("/publication" in page for page in pages) == (scope == "admin")
        assert all(page.count("<form") == 1 for page in pages)  # to sign out


# ── How pages are sent ──────────────────────────────────────────────────────────────────────────────────


async def test_pages_are_kept_by_nobody_and_hold_no_script_or_style(visitor: Visitor, season: Season) -> None:
    for address in (CONSOLE, at(season), at(season, "/competitors/new"), at(season, "/nowhere"), f"{CONSOLE}/tokens"):
        answer = await visitor.send("GET", address, None, {"Accept-Encoding": "gzip"})
        if answer.headers["Content-Type"].startswith("application/json"):
            assert answer.status == 404
            continue
        policy = answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert "Content-Encoding" not in answer.headers
        page = answer.body.decode()
        assert " style=" not in page
        assert page.count("<script") == page.count('<script type="module" src="/static/')


async def test_names_are_shown_as_they_were_written(visitor: Visitor, season: Season) -> None:
    name = "<script>alert('1 & 2')</script>"
    answer = await visitor.fill(at(season, "/competitors/new"), {"name": name})
    assert answer.status == 303
    page = await visitor.page(at(season, "/competitors"))
    assert "<script>alert" not in page
    assert name in unescape(page)


# ── Changes ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_points_are_added_once_however_often_the_form_is_sent(visitor: Visitor, season: Season, log: Log) -> None:
    page = at(season, f"/rankings/{season.ranking_id}/add?unity={season.unity_id}")
    before = await log.length()
    given = {f"points[{season.ids[0]}]": "+5", f"points[{season.ids[1]}]": " \N{MINUS SIGN}2 ", "reason": "fair play"}
    answer = await visitor.fill(page, given, times=2)
    assert answer.status == 303
    assert await log.length() == before + 1
    shown = totals(await season.client.get(f"{season.path}/standings.json"))
    assert [shown[one] for one in season.ids] == [5, -2, 0]
    after = await visitor.page(answer.headers["Location"])
    assert "Saved." in words(after)
    history = words(await visitor.page(at(season, f"/rankings/{season.ranking_id}/history")))
    assert "Ada +5 points" in history
    assert "fair play" in history


async def test_too_many_points_are_refused_next_to_what_was_typed(visitor: Visitor, season: Season) -> None:
    halves = (await season.client.post(f"{season.path}/unities.json", {"name": "halves", "decimals": "1"})).json
    best = (await season.client.post(f"{season.path}/unities.json", {"name": "best", "counts": "best"})).json
    ada, ben, _ = season.ids
    for unity_id, least, most in (
        (season.unity_id, "2147483648", "2147483647"),
        (halves["unity"]["id"], "214748364.8", "214748364.7"),
        (best["unity"]["id"], str(RESULT_MAX + 1), str(RESULT_MAX)),
    ):
        page = at(season, f"/rankings/{season.ranking_id}/add?unity={unity_id}")
        refused = await visitor.fill(page, {f"points[{ada}]": f"-{least}", f"points[{ben}]": least})
        assert refused.status == 422
        text = refused.body.decode()
        for one, name, typed in ((ada, "Ada", f"-{least}"), (ben, "Ben", least)):
            (fault,) = re.findall(rf'id="fault-{one}">([^<]*)<', text)
            said = unescape(fault).replace("\u2068", "").replace("\u2069", "")
            assert said == f"'{typed}', for {name}, is not within ±{most}."
        assert "delta" not in words(text)
        assert (await visitor.fill(page, {f"points[{ben}]": most})).status == 303
    nothing = words((await visitor.fill(page, {})).body.decode())
    assert "Points: is required" in nothing
    assert "delta" not in nothing


async def test_points_that_were_typed_stay_though_the_competitor_has_left_the_page(
    visitor: Visitor, season: Season
) -> None:
    page = at(season, f"/rankings/{season.ranking_id}/add?unity={season.unity_id}")
    gone, there = season.ids[:2]
    form, action = form_of(await visitor.page(page))
    await season.client.put(f"{season.path}/participants.json", {"remove": gone})
    refused = await visitor.post(action, {**form, f"points[{gone}]": "3", f"points[{there}]": "1"})
    assert refused.status == 422
    again, _ = form_of(refused.body.decode())
    assert (again[f"points[{gone}]"], again[f"points[{there}]"]) == ("3", "1")
    assert "Ada is not in this ranking." in words(refused.body.decode())
    assert (await visitor.get(at(season, f"/rankings/{season.ranking_id}?added=1"))).status == 200


async def test_the_log_line_of_a_change_names_its_event(
    visitor: Visitor, season: Season, log_lines: BytesIO, log: Log
) -> None:
    assert (await visitor.fill(at(season, "/competitors/new"), {"name": "Zoe"})).status == 303
    (line,) = [line for line in log_lines.getvalue().decode().splitlines() if '"POST"' in line and "/new" in line]
    assert json.loads(line)["sequence"] == await log.length()


async def test_an_unknown_outcome_is_said_though_the_form_cannot_be_shown_again(
    visitor: Visitor, season: Season, owner: asyncpg.Connection, dsn: str, bounds: Bounds
) -> None:
    """The database is away when the change times out, and still when its form is to be shown."""
    page = at(season, f"/rankings/{season.ranking_id}/add?unity={season.unity_id}")
    form, action = form_of(await visitor.page(page))
    bounds(SUBMIT_SECONDS_MAX=2.0, READ_SECONDS_MAX=2.0)
    async with holding(dsn, "LOCK TABLE append_lock IN ACCESS EXCLUSIVE MODE"):
        sent = asyncio.create_task(visitor.post(action, {**form, f"points[{season.ids[0]}]": "3"}))
        await until(lambda: waiting_for_locks(owner, "append_block"))
        async with holding(dsn, "LOCK TABLE block IN ACCESS EXCLUSIVE MODE"):
            answer = await sent
    assert answer.status == 500
    assert "may or may not have been applied" in words(answer.body.decode())


async def test_a_tournament_is_created_once_however_often_the_form_is_sent(visitor: Visitor, service: Service) -> None:
    page = f"{CONSOLE}/tournaments/new"
    refused = await visitor.fill(page, {"name": " "})
    assert (refused.status, "The name must not be empty." in words(refused.body.decode())) == (422, True)
    answer = await visitor.fill(page, {"name": "Autumn Cup"}, times=2)
    assert answer.headers["Location"] == f"{CONSOLE}/tournament/autumn-cup/rankings/like?done=1"
    assert "Autumn Cup" in words(await visitor.page(answer.headers["Location"]))
    refused = await visitor.fill(page, {"name": "Winter Cup", "zone": "Berlin"})
    assert "is not a known time zone; similar: Europe/Berlin" in words(refused.body.decode())
    answer = await visitor.fill(page, {"name": "Winter Cup", "zone": "Europe/Berlin"}, times=2)
    assert answer.headers["Location"] == f"{CONSOLE}/tournament/winter-cup/rankings/like?done=2"
    form, _ = form_of(await visitor.page(f"{CONSOLE}/tournament/winter-cup/presentation"))
    assert form["zone"] == "Europe/Berlin"
    async with service.database.connection() as connection:
        assert await tournament_named(connection, "autumn-cup-2") is None
        assert await tournament_named(connection, "winter-cup-2") is None


async def test_points_are_typed_as_they_are_shown(visitor: Visitor, season: Season) -> None:
    form = {"name": "laps", "time": "ms"}
    laps = (await season.client.post(f"{season.path}/unities.json", form)).json["unity"]["id"]
    page = at(season, f"/rankings/{season.ranking_id}/add?unity={laps}")
    ada, ben, _ = season.ids
    refused = await visitor.fill(page, {f"points[{ada}]": "1:02.5", f"points[{ben}]": "1:2"})
    assert refused.status == 422
    assert "&#x27;1:2&#x27;, for Ben, must be a time" in refused.body.decode()
    answer = await visitor.fill(page, {f"points[{ada}]": "1:02.5"})
    assert totals(await season.client.get(f"{season.path}/standings.json?unity={laps}"), "laps")[ada] == 62_500
    assert "Ada 1:02.5" in words(await visitor.page(answer.headers["Location"]))
    assert "Ada +1:02.5 laps (1:02.5)" in words(
        await visitor.page(at(season, f"/rankings/{season.ranking_id}/history"))
    )


def recorded(answer: Any) -> str:
    """The sequence that a redirection says was recorded."""
    return str(answer.headers["Location"].rpartition("done=")[2])


async def test_a_fault_stands_next_to_its_field_with_the_text_that_was_sent(
    visitor: Visitor, season: Season, log: Log
) -> None:
    before = await log.length()
    page = at(season, f"/rankings/{season.ranking_id}/add?unity={season.unity_id}")
    answer = await visitor.fill(page, {f"points[{season.ids[1]}]": "x", "competition_id": "0"})
    assert answer.status == 422
    text = answer.body.decode()
    assert form_of(text)[0][f"points[{season.ids[1]}]"] == "x"
    fault = re.search(rf'id="fault-{season.ids[1]}">([^<]*)<', text)
    assert fault
    assert "must be a whole number" in unescape(fault[1])
    assert 'id="fault-competition_id"' in text
    assert form_of(text)[0]["idempotency_key"]
    answer = await visitor.fill(at(season, "/competitors/new"), {"name": "Zoe", "color": "red", "parent": "999"})
    text = answer.body.decode()
    assert answer.status == 422
    assert 'aria-invalid="true"' in text
    assert form_of(text)[0]["name"] == "Zoe"
    answer = await visitor.fill(page, {})
    assert answer.status == 422
    assert "is required" in words(answer.body.decode())
    assert await log.length() == before


async def test_the_import_names_every_column_that_a_file_may_have(visitor: Visitor, season: Season) -> None:
    page = words(await visitor.page(at(season, f"/rankings/{season.ranking_id}/import")))
    for column in ("date", "participants", "score", "winner", "key", "group", "round", "scale", "location"):
        assert column in re.split("[ ,]", page)


async def test_a_competitor_that_is_typed_twice_is_named_as_it_was_typed(visitor: Visitor, season: Season) -> None:
    page = at(season, f"/competitions/{season.competition_id}/change")
    assert (await visitor.fill(page, {"round": "3"})).status == 303, "with the names that it had"
    answer = await visitor.fill(page, {"participants": "Ada, Ben, Ada"})
    found = re.search('id="fault-participants">([^<]*)<', answer.body.decode())
    assert found
    assert (answer.status, unescape(found[1])) == (422, "'Ada' is named more than once.")


async def test_a_number_that_is_not_whole_is_refused_by_every_form(
    service: Service, visitor: Visitor, season: Season, log: Log
) -> None:
    """A form says by `inputmode` which of its fields take one. What is wrong stands next to the field."""
    season, import_name = await with_points(await with_idle(season)), await import_match(visitor, season)
    tried = set()
    for template, methods in (await routes_of(service)).items():
        if methods != {"GET", "HEAD", "POST"}:
            continue
        address = address_of(template, season, import_name)
        page = await visitor.page(address)
        form, action = form_of(page)
        form |= {name: text for name, text in USUAL.items() if name in form}
        form |= {name: str(season.unity_id) for name in form if name.endswith("].unity")}
        before = await log.length()
        for name in numbers_of(page):
            assert name in form, (template, name)
            for text in (*WRONG_NUMBERS, "1.0", "one"):
                answer = await visitor.post(action, {**form, name: text})
                assert answer.status in (400, 422), (template, name, text)
                (field,) = [one for one in inputs_of(answer.body.decode()) if f'name="{name}"' in one]
                assert 'aria-invalid="true"' in field, (template, name, text)
                assert await log.length() == before
            tried.add(re.sub(r"[0-9]+", "1", name))
    assert tried == NUMBERS_OF_FORMS


async def test_a_competition_is_added_its_result_recorded_and_its_points_voided(
    visitor: Visitor, season: Season
) -> None:
    ada, ben, _ = season.ids
    answer = await visitor.fill(at(season, "/competitions/new"), {"group_id": 7, "participants": f"{ben}, {ada}"})
    assert answer.status == 303
    new = (await season.client.get("competitions.json?group_id=7")).json["competitions"]["competition"][0]
    assert [one["competitor_id"] for one in new["participants"]] == [ben, ada]
    record = at(season, f"/competitions/{new['id']}/record")
    assert (await visitor.fill(record, {"result": "3:1", "winner": ben})).status == 303
    line = deltas((ben, season.unity_id, 3))
    await season.client.put(f"{season.path}/add.json", {"participants_delta": line, "competition_id": new["id"]})
    void = at(season, f"/competitions/{new['id']}/void")
    preview = words(await visitor.page(void))
    assert "Ben" in preview
    assert "3 → 0" in preview
    assert totals(await season.client.get(f"{season.path}/standings.json"))[ben] == 3
    assert (await visitor.fill(void, {})).status == 303
    found = (await season.client.get(f"competitions/{new['id']}.json")).json["competition"]
    assert found["voided_at"] is not None
    assert (found["result"], [one["winner"] for one in found["participants"]]) == ("3:1", [True, False])
    assert (await visitor.get(void)).status == 409  # it is void already
    assert (await visitor.fill(at(season, f"/competitions/{new['id']}/unvoid"), {})).status == 303


async def test_recording_a_result_declares_no_date(
    service: Service, visitor: Visitor, season: Season, clients_tournament: TournamentId
) -> None:
    record = at(season, f"/competitions/{season.competition_id}/record")
    assert (await visitor.fill(record, {"winner": season.ids[0]})).status == 303
    async with service.desk.live_pool.pinned(clients_tournament) as live:
        await service.desk.live_pool.make_current(live)
        competition = live.board.competitions[CompetitionId(season.competition_id)]
    assert (competition.winner_id, competition.date) == (season.ids[0], None)


async def test_points_are_undone_right_after_they_were_added_and_redone_from_the_history(
    service: Service, visitor: Visitor, season: Season
) -> None:
    page = at(season, f"/rankings/{season.ranking_id}/add?unity={season.unity_id}")
    after = await visitor.fill(page, {f"points[{season.ids[0]}]": "5"})
    shown = await visitor.page(after.headers["Location"])
    (undo,) = re.findall(r'href="([^"]*/undo/[0-9]+)"', shown)
    assert "Ada 1 5 → 0" in words(await visitor.page(undo))
    after = await visitor.fill(undo, {})
    assert (after.status, (await visitor.get(undo)).status) == (303, 409)
    history = await visitor.page(after.headers["Location"])
    (redo,) = set(re.findall(r'href="([^"]*/redo/[0-9]+)"', history))
    assert "undone by change" in words(history)
    assert "/undo/" not in history
    async with visiting(service, await make_token(service.database, Scope.WRITE)) as other:
        theirs = await other.page(at(season, f"/rankings/{season.ranking_id}/history"))
        assert "/redo/" not in theirs
        assert (await other.get(redo)).status == 403
    assert (await visitor.fill(redo, {})).status == 303
    assert totals(await season.client.get(f"{season.path}/standings.json"))[season.ids[0]] == 5


async def test_the_result_of_many_is_recorded_competitor_by_competitor(visitor: Visitor, season: Season) -> None:
    ada, ben, _ = season.ids
    assert (await season.client.put(f"competitors/{ben}.json", {"name": "{Ben} {0}"})).status == 200
    record = at(season, f"/competitions/{season.competition_id}/record")
    page = await visitor.page(record)
    assert dict(re.findall(r'<label for="field-(result\[[0-9]+\])">([^<]*)</label>', page)) == {
        f"result[{one}]": name for one, name in zip(season.ids, ("Ada", "{Ben} {0}", "Pair"), strict=True)
    }
    answer = await visitor.fill(record, {f"result[{ada}]": "9.8 s", f"result[{ben}]": "10.1 s", "winner": ada})
    assert answer.status == 303
    found = (await season.client.get(f"competitions/{season.competition_id}.json")).json["competition"]
    assert [one["result"] for one in found["participants"]] == ["9.8 s", "10.1 s", None]
    assert (await visitor.fill(record, {f"result[{ada}]": "", f"result[{ben}]": "", "winner": ""})).status == 303
    found = (await season.client.get(f"competitions/{season.competition_id}.json")).json["competition"]
    assert (found["has_result"], [one["winner"] for one in found["participants"]]) == (False, [False] * 3)


async def test_what_is_emptied_in_a_form_is_empty_but_for_a_name(visitor: Visitor, season: Season) -> None:
    pair = season.ids[2]
    change = at(season, f"/competitors/{pair}/change")
    form, _ = form_of(await visitor.page(change))
    assert (form["tags"], form["parent"]) == ("doubles, mixed", f"id:{season.ids[0]}")
    assert (await visitor.fill(change, {"tags": "", "parent": "", "color": ""})).status == 303
    found = (await season.client.get(f"competitors/{pair}.json")).json["competitor"]
    assert (found["name"], found["tags"], found["level"], found["color"]) == ("Pair", [], 0, "000000")
    answer = await visitor.fill(change, {"name": ""})
    assert answer.status == 422
    assert "must not be empty" in words(answer.body.decode())


FULL: Final[dict[str, Callable[[Season], dict[str, object]]]] = {
    "/competitors/{competitor_id}/change": lambda season: {
        **{"name": "Dan", "tags": "red, blue", "color": "00ff00", "parent": season.ids[1], "key": "D4"},
    },
    "/competitions/{competition_id}/record": lambda season: {
        **{"started_at": "2015-05-03T10:00:00Z", "location": "Hall 2", "winner": season.ids[0]},
        **{f"result[{one}]": "9.8 s" for one in season.ids},
    },
    "/competitions/{competition_id}/change": lambda season: {
        **{"participants": listed(season.ids[:2]), "result": "2:1", "winner": season.ids[0], "group_id": 7},
        **{"round": 3, "round_name": "Final", "scale": "double", "key": "M7"},
    },
    "/rankings/{ranking_id}/information": lambda _: {
        "name": "Cup",
        "description": "Everybody",
        "zones": "1 neutral: In",
    },
    "/presentation": lambda _: {"zone": "Europe/Berlin", "language": "de", "accent": "aa0000", "listed": "true"},
}
"""What forms are filled in with that empty what is left empty: all their fields."""


def test_these_forms_empty_what_is_left_empty() -> None:
    assert FULL.keys() == {
        change.path
        for change in CONSOLE_CHANGES
        if change.path != "/logo"  # a file
        if any(field.empty is Empty.EMPTIES for field in change.fields(Beginning()))
    }


def without_times(answer: Answer) -> Any:
    return json.loads(re.sub(rb'"updated_at":"[^"]*"', b'"updated_at":null', answer.body))


@pytest.mark.parametrize("path", FULL)
async def test_a_form_that_is_sent_as_it_was_opened_changes_nothing(
    visitor: Visitor, season: Season, path: str
) -> None:
    (change,) = [one for one in CONSOLE_CHANGES if one.path == path]
    given, address = FULL[path](season), address_of(f"/tournament/{{tournament}}{path}", season)
    fields = {name.partition("[")[0] for name in given}
    assert fields == {field.name for field in change.fields(Beginning())} - {"logo"}
    shown = path_of(name_of(change.operation).removesuffix("/information.json").removesuffix(".json") + ".json", season)
    filled = await visitor.fill(address, given)
    assert filled.status == 303, words(filled.body.decode())
    before, _ = await season.client.get(shown), await visitor.fill(address, {})
    assert without_times(before) == without_times(await season.client.get(shown))


async def test_a_change_of_something_changed_meanwhile_is_refused_and_may_be_repeated(
    visitor: Visitor, season: Season
) -> None:
    change = at(season, f"/competitors/{season.ids[0]}/change")
    form, action = form_of(await visitor.page(change))
    await season.client.put(f"competitors/{season.ids[0]}.json", {"name": "Adele"})
    answer = await visitor.post(action, {**form, "color": "112233"})
    assert answer.status == 412
    assert "has changed" in words(answer.body.decode())
    form, action = form_of(answer.body.decode())
    assert (form["name"], form["color"]) == ("Ada", "112233")
    assert (await visitor.post(action, form)).status == 303
    found = (await season.client.get(f"competitors/{season.ids[0]}.json")).json["competitor"]
    assert (found["name"], found["color"]) == ("Ada", "112233")


async def test_a_form_that_was_sent_and_is_filled_in_otherwise_is_not_taken_for_the_first(
    visitor: Visitor, season: Season, log: Log
) -> None:
    form, action = form_of(await visitor.page(at(season, "/competitors/new")))
    assert (await visitor.post(action, {**form, "name": "Eve"})).status == 303
    before = await log.length()
    answer = await visitor.post(action, {**form, "name": "Finn"})
    assert answer.status == 422
    again, _ = form_of(answer.body.decode())
    assert again["idempotency_key"] != form["idempotency_key"]
    assert await log.length() == before
    assert (await visitor.post(action, again)).status == 303


async def test_a_key_is_that_of_the_operation(visitor: Visitor, season: Season, log: Log, log_lines: BytesIO) -> None:
    form, action = form_of(await visitor.page(at(season, "/competitors/new")))
    key = {"Idempotency-Key": form.pop("idempotency_key")}
    await season.client.post("competitors.json", {**form, "name": "Eve"}, key)
    before = await log.length()
    answer = await visitor.post(action, {**form, "name": "Eve", "idempotency_key": key["Idempotency-Key"]})
    assert answer.status == 303
    assert await log.length() == before
    assert json.loads(log_lines.getvalue().splitlines()[-1])["replayed"] is True


async def test_what_the_public_sees_is_changed_step_by_step(visitor: Visitor, season: Season) -> None:
    async def shown() -> Any:
        return (await season.client.get("publication.json")).json["publication"]

    for step in ("publish", "freeze", "reveal-all", "unpublish"):
        page = await visitor.page(at(season, f"/publication/{step}"))
        assert 'class="warning"' in page
        before = await shown()
        answer = await visitor.fill(at(season, f"/publication/{step}"), {})
        assert answer.status == 303, step
        assert await shown() != before
        assert "Saved." in words(await visitor.page(answer.headers["Location"]))
    assert (await visitor.fill(at(season, "/publication/publish"), {"published": "false"})).status == 303
    assert (await shown())["published"]  # what a form says without being asked cannot be said otherwise


async def test_the_public_is_held_at_an_event_and_shown_what_follows_up_to_another(
    visitor: Visitor, season: Season
) -> None:
    async def shown() -> Any:
        return (await season.client.get("publication.json")).json["publication"]

    head = await head_of(visitor, season)
    too_far = await visitor.fill(at(season, "/publication/freeze-at"), {"freeze": head + 5})
    assert too_far.status == 422
    assert 'id="fault-freeze"' in too_far.body.decode()
    assert (await visitor.fill(at(season, "/publication/freeze-at"), {"freeze": head - 3})).status == 303
    assert (await visitor.fill(at(season, "/publication/publish"), {})).status == 303
    assert (await shown())["public_end"] == head - 3
    assert (await visitor.fill(at(season, "/publication/reveal-to"), {"reveal": head - 1})).status == 303
    assert (await shown())["public_end"] == head - 1


async def test_the_leaders_of_a_ranking_are_printed_by_both_clocks(visitor: Visitor, season: Season) -> None:
    ranking, ada = at(season, f"/rankings/{season.ranking_id}"), season.ids[0]
    form = {"participants_delta": deltas((ada, season.unity_id, 3)), "competition_id": season.competition_id}
    assert (await season.client.put(f"{season.path}/add.json", form)).status == 200
    address = f"{ranking}/leaders"
    assert f'href="{address}"' in await visitor.page(ranking)
    page = await visitor.page(address)
    assert "Ada" in words(page)
    other = f"{address}?clock=log"
    assert f'href="{other}"' in page
    assert f'href="{ranking}"' in await visitor.page(other)


async def test_a_classification_is_declared_criterion_by_criterion(visitor: Visitor, season: Season) -> None:
    ranking = at(season, f"/rankings/{season.ranking_id}")
    found = (await season.client.get(f"rankings/{season.ranking_id}/classification.json")).json["classification"]
    unities = re.findall(r'<option value="(\d+)">', (await visitor.page(f"{ranking}/classification")))
    points, fouls = unities[:2]
    wrong = {"criteria[0].unity": points, "criteria[0].best": "0"}
    refused = await visitor.fill(f"{ranking}/classification", wrong)
    assert refused.status == 422
    assert 'id="fault-0-best"' in refused.body.decode()
    twice = {"criteria[0].unity": points, "criteria[3].unity": points}
    refused = await visitor.fill(f"{ranking}/classification", twice)
    assert refused.status == 422
    assert 'id="fault-1-unity"' in refused.body.decode()  # the lines are closed up
    before = form_of(await visitor.page(f"{ranking}/classification"))
    refused = await visitor.fill(f"{ranking}/classification", wrong | {"criteria[0].drop": "4"})
    assert 'id="fault-0-drop"' in refused.body.decode()
    divided = {"criteria[0].unity": points, "criteria[0].ratio": fouls, "criteria[0].per": fouls}
    refused = await visitor.fill(f"{ranking}/classification", divided)
    assert 'id="fault-0-per"' in refused.body.decode()
    chain = wrong | {"criteria[0].best": "3", "criteria[2].unity": fouls, "criteria[2].among": "tied"}
    chain |= {"criteria[0].drop": " 4:1, 8 : 2"}
    chain |= {"criteria[3].unity": points, "criteria[3].first": "first"}
    chain |= {"criteria[4].unity": points, "criteria[4].per": fouls}
    assert (await visitor.fill(f"{ranking}/classification", chain)).status == 303
    declared = (await season.client.get(f"rankings/{season.ranking_id}/classification.json")).json["classification"]
    assert declared["criteria"] != found["criteria"]
    assert declared["criteria"] == [
        {"unity": int(points), "best": 3, "drop": [[4, 1], [8, 2]]},
        {"unity": int(fouls), "among": "tied"},
        {"unity": int(points), "first": True},
        {"per": [int(points), int(fouls)]},
    ]
    form, action = form_of(await visitor.page(f"{ranking}/classification"))
    assert (form["criteria[0].unity"], form["criteria[0].best"], form["criteria[1].among"]) == (points, "3", "tied")
    assert (form["criteria[2].first"], form["criteria[0].drop"]) == ("first", "4:1, 8:2")
    assert (form["criteria[3].unity"], form["criteria[3].per"], form["criteria[3].ratio"]) == (points, fouls, "")
    assert (await visitor.post(before[1], {**before[0], "criteria[0].unity": fouls})).status == 412  # begun before
    nothing = {name: "" for name in form if name.startswith("criteria[")}
    assert (await visitor.post(action, {**form, **nothing})).status == 303
    declared = (await season.client.get(f"rankings/{season.ranking_id}/classification.json")).json["classification"]
    assert declared["criteria"] == found["criteria"]


@pytest.mark.parametrize("change", ["close", "reopen"])
async def test_a_ranking_is_closed_and_opened(visitor: Visitor, season: Season, change: str) -> None:
    ranking_id = season.ranking_id if change == "close" else season.closed_ranking_id
    assert (await visitor.fill(at(season, f"/rankings/{ranking_id}/{change}"), {})).status == 303
    closed = (await season.client.get(f"rankings/{ranking_id}.json?omit=competitors")).json["ranking"]["closed_at"]
    assert (closed is not None) == (change == "close")
    page = await visitor.page(at(season, f"/rankings/{ranking_id}"))
    assert (f"/rankings/{ranking_id}/add" in page) == (change == "reopen")


async def test_competitors_are_imported_after_a_look_at_them(visitor: Visitor, season: Season, log: Log) -> None:
    page, before = at(season, "/competitors/import"), await log.length()
    for lines, status, faults in (
        ("Zoe;red;\nYan;00ff00;Nobody", 422, ("line 2, color: must be 6", "line 3, parent: 'Nobody': no competitor")),
        ("Zoe;00ff00;\nXia", 400, ("line 3: it has more or fewer fields",)),
        ("", 400, ("There are no lines after the first.",)),
    ):
        refused = await visitor.fill(page, {"csv": f"name;color;parent\n{lines}"})
        assert (refused.status, [one in words(refused.body.decode()) for one in faults]) == (
            status,
            [True] * len(faults),
        )
    text = "\ufeffname,tags,parent,born\r\n  Zoe ,under 18|north,Ada,2001\r\nBen,,Zoe,\r\n"
    assert "Competitors have no 'born'." in words((await visitor.fill(page, {"csv": text})).body.decode())
    look = await visitor.fill(page, {"csv": text, "leave_out": "true"})
    assert "Left out: born." in words(look.body.decode())
    assert "Zoe under 18, north Ada" in words(look.body.decode())
    assert "Ben Zoe" in words(look.body.decode())
    assert "There is already one with this name: Ben." in words(look.body.decode())
    assert await log.length() == before
    form, action = form_of(look.body.decode())
    done = [await visitor.post(action, form) for _ in range(2)]
    assert [answer.status for answer in done] == [303, 303]
    assert await log.length() == before + 2
    found = (await season.client.get("competitors.json?name=Zoe")).json["competitors"]["competitor"]
    assert [[tag["name"] for tag in one["tags"]] for one in found] == [["under 18", "north"]]
    assert found[0]["level"] == 1
    again = await visitor.fill(page, {"csv": text + "Cid,,Zoe,", "leave_out": "true"})
    assert "1 would be registered. Nothing is recorded yet. 2 in the text are already registered." in words(
        again.body.decode()
    )


@pytest.mark.parametrize("what", ["competitors", "competitions"])
async def test_others_get_their_turns_however_much_is_imported(
    visitor: Visitor, season: Season, monkeypatch: pytest.MonkeyPatch, bounds: Bounds, what: str
) -> None:
    page = at(season, "/competitors/import")
    text = "name,parent\n" + "Zoe,Nobody\n" * 50
    if what == "competitions":
        page = at(season, f"/rankings/{season.ranking_id}/import")
        text = "date,participants,score\n" + f"2015-05-03,{'|'.join(['Nobody'] * 5)},\n" * 50
    form, action = form_of(await visitor.page(page))
    turns, give_way = count(), TimeSlice.give_way

    async def counted(time_slice: TimeSlice) -> None:
        next(turns)
        await give_way(time_slice)

    bounds(SLICE_SECONDS_MAX=-1.0)
    monkeypatch.setattr(TimeSlice, "give_way", counted)
    refused = await visitor.post(action, form | {"csv": text})
    assert refused.status == 422
    assert "Nobody" in words(refused.body.decode())
    assert next(turns) >= len(season.ids) + (0 if what == "competitors" else 50)


@pytest.mark.parametrize("page", ["/competitors/import", "/rankings/{ranking_id}/import"])
async def test_no_more_lines_are_read_than_an_import_may_have(
    visitor: Visitor, season: Season, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    rows = count()

    def counted(text: str) -> Iterator[tuple[int, list[str]]]:
        for row in csv_rows(text):
            next(rows)
            yield row

    monkeypatch.setattr(imported_rows, "csv_rows", counted)
    form, action = form_of(await visitor.page(at(season, page.format(ranking_id=season.ranking_id))))
    first = "name" if "competitors" in page else "date,participants,score"
    refused = await visitor.post(action, form | {"csv": f"{first}\n" + "too,few\n" * 20_000})
    assert refused.status == 400
    assert len(refused.body) < 20_000 * len("too,few\n") + 10_000
    assert next(rows) <= 1 + max(ITEMS_MAX, PASTED_COMPETITIONS_MAX) + 1


async def test_times_of_a_tournament_are_shown_in_its_zone(visitor: Visitor, season: Season) -> None:
    await visitor.fill(at(season, "/presentation"), {"zone": "Europe/Berlin"})
    page = at(season, f"/rankings/{season.ranking_id}/import")
    look = await visitor.fill(page, {"csv": match_with("3|0").replace("2015-05-03", "2015-05-03 19:30")})
    assert "3 May 2015, 19:30 UTC+2" in words(look.body.decode())
    await visitor.post(*reversed(form_of(look.body.decode())))
    for below in ("/competitions", f"/rankings/{season.ranking_id}/competitors/{season.ids[0]}"):
        assert "3 May 2015, 19:30 UTC+2" in words(await visitor.page(at(season, below)))
    for below in (
        "/log",
        "/imports",
        f"/rankings/{season.ranking_id}/history",
        f"/rankings/{season.ranking_id}/leaders",
    ):
        assert re.search(r"[0-9]{2}:[0-9]{2} UTC\+[12]\b", words(await visitor.page(at(season, below)))), below


async def test_a_time_that_clocks_skip_is_refused_at_every_door_of_the_console(
    visitor: Visitor, season: Season, log: Log
) -> None:
    await visitor.fill(at(season, "/presentation"), {"zone": "Europe/Berlin"})
    ada, ben, _ = season.ids
    fixture = {"group_id": 1, "participants": listed([ada, ben]), "started_at": "2026-03-28 14:00:00"}
    match = (await season.client.post("competitions.json", fixture)).json["competition"]["id"]
    table, skipped = at(season, f"/rankings/{season.ranking_id}"), "2026-03-29T02:30"
    before = await log.length()
    for below, given in (
        (at(season, "/competitions/new"), {"participants": listed([ada, ben]), "started_at": skipped}),
        (at(season, f"/competitions/{match}/record"), {"started_at": skipped}),
        (at(season, "/matchday?round=2026-03-28"), {f"how[{match}]": "postponed", f"on[{match}]": skipped}),
        (f"{table}/import", {"csv": MATCH.replace("2015-05-03", skipped)}),
        (f"{table}/fixtures", {"day": "2026-03-29", "time": "02:30", "every": "7", "unit": "d", "twice": "on"}),
    ):
        refused = await visitor.fill(below, given)
        said = words(refused.body.decode())
        assert refused.status in (400, 422), (below, said)
        assert "2026-03-29 02:30 does not exist in Europe/Berlin: clocks are put forward then" in said, below
    assert await log.length() == before


async def test_no_page_of_a_tournament_shows_a_time_of_another_zone(
    service: Service, visitor: Visitor, season: Season
) -> None:
    season, import_name = await with_points(await with_idle(season)), await import_match(visitor, season)
    await visitor.fill(at(season, "/presentation"), {"zone": "Europe/Berlin"})
    await visitor.fill(at(season, "/scorers"), {"name": "Ann", "division": "2", "until": "2100-01-01"})
    for winner in season.ids[:2]:
        await season.client.put(f"competitions/{season.competition_id}.json", {"winner": winner})
    async with service.database.connection() as connection:
        tournament_id = await tournament_named(connection, season.client.tournament)
        assert tournament_id is not None
        await note_verified(connection, tournament_id, Sequence(7), 0)
    times = dict[str, set[str]]()
    for template, methods in (await routes_of(service)).items():
        if "{tournament}" in template and "GET" in methods:
            page = words(await visitor.page(address_of(template, season, import_name)))
            times[template] = {*re.findall(r"[0-9]{2}:[0-9]{2} (UTC\S*)", page)}
    assert {template: zones for template, zones in times.items() if zones - {"UTC+1", "UTC+2"}} == {}
    assert times["/tournament/{tournament}/competitions/{competition_id}/record"]


async def test_a_list_of_competitions_shows_the_days_and_times_that_were_declared(
    visitor: Visitor, season: Season
) -> None:
    who = {"group_id": 1, "participants": season.ids[0]}
    for started_at in ({}, {"started_at": "2015-05-03 00:00:00"}, {"started_at": "2015-05-04 18:30:00"}):
        assert (await season.client.post("competitions.json", who | started_at)).status == 200
    page = await visitor.page(at(season, "/competitions"))
    cells = re.findall(r'<td[^>]*class="when"[^>]*>(.*?)</td>', page)[:3]
    said = ["4 May 2015, 18:30 UTC", "3 May 2015", ""]
    assert [re.sub(r"<[^>]*>", "", cell) for cell in cells] == said


async def test_competitions_are_imported_after_a_look_and_taken_back_after_another(
    visitor: Visitor, season: Season, log: Log
) -> None:
    ranking = f"rankings/{season.ranking_id}"
    page, before = at(season, f"/{ranking}/import"), await log.length()
    found = totals(await season.client.get(f"{ranking}/standings.json"))
    for given, fault in (
        ({"csv": "date,participants\n"}, "The first line must name the columns"),
        ({"csv": MATCH.replace("Ada", "Zoe")}, "line 2, participants: This tournament has no competitor 'Zoe'."),
        ({"csv": MATCH.replace("2015-05-03", "05/03/2015")}, "Does 05/03/2015 have the day or the month first?"),
        ({"csv": MATCH.replace("score", "score,goals").replace("2:1", "2:1,3|1")}, "has no unity 'goals'"),
        *[({"csv": match_with(f"{text}|0")}, "must be a whole number, in digits only") for text in WRONG_NUMBERS],
    ):
        refused = words((await visitor.fill(page, given)).body.decode())
        assert fault in refused, given
    look = await visitor.fill(page, {"csv": MATCH.replace("2015-05-03", "05/03/2015"), "dates": "month-first"})
    assert "3 May 2015" in words(look.body.decode())
    look = await visitor.fill(page, {"csv": match_with("2|-1")})
    assert "1 would be imported." in words(look.body.decode())
    assert "2 : -1" in words(look.body.decode()).replace("\N{MINUS SIGN}", "-")
    assert await log.length() == before
    form, action = form_of(look.body.decode())
    done = [await visitor.post(action, form) for _ in range(2)]
    assert [answer.status for answer in done] == [303, 303]
    assert await log.length() == before + 2
    (name,) = re.findall(r"/imports/([a-z0-9]+)/undo", await visitor.page(at(season, "/imports")))
    undo = await visitor.page(at(season, f"/imports/{name}/undo"))
    assert "1 competition would no longer count, and the points of 1 change taken back." in words(undo)
    form, action = form_of(undo)
    assert (await visitor.post(action, form)).status == 303
    assert "undone" in words(await visitor.page(at(season, "/imports")))
    assert totals(await season.client.get(f"{ranking}/standings.json")) == found
    assert "Nothing from it counts any longer." in words(await visitor.page(at(season, f"/imports/{name}/undo")))
    assert "1 would be imported." in words((await visitor.fill(page, {"csv": MATCH})).body.decode())


async def test_an_import_that_was_voided_by_hand_can_be_undone_and_imported_again(
    visitor: Visitor, season: Season
) -> None:
    page = at(season, f"/rankings/{season.ranking_id}/import")
    corrected = {"csv": MATCH.replace("2:1", "0:0")}
    form, action = form_of((await visitor.fill(page, {"csv": MATCH})).body.decode())
    await visitor.post(action, form)
    refused = words((await visitor.fill(page, corrected)).body.decode())
    (imported,) = re.findall(r"as competition ([0-9]+), .*undo that import first", refused)
    assert (await visitor.fill(at(season, f"/competitions/{imported}/void"), {})).status == 303
    (name,) = re.findall(r"/imports/([a-z0-9]+)/undo", await visitor.page(at(season, "/imports")))
    undo = await visitor.page(at(season, f"/imports/{name}/undo"))
    assert "Nothing from it counts any longer. The corrected file can be imported afterwards." in words(undo)
    form, action = form_of(undo)
    assert (await visitor.post(action, form)).status == 303
    assert "Undo it" not in await visitor.page(at(season, f"/imports/{name}/undo"))
    assert "1 would be imported." in words((await visitor.fill(page, corrected)).body.decode())


async def test_a_form_takes_the_performances_of_many_participants_as_json(
    visitor: Visitor, season: Season, bounds: Bounds
) -> None:
    bounds(CHOSEN_MAX=2)
    page = at(season, f"/competitions/{season.competition_id}/record")
    form, action = form_of(await visitor.page(page))
    assert not any(name.startswith("result[") for name in form)
    ada, ben = season.ids[:2]
    recorded = await visitor.post(action, form | {"result": json.dumps({ada: "9.8", ben: "9.9"}), "winner": ada})
    assert recorded.status == 303
    path = f"competitions/{season.competition_id}.json"
    competition = (await season.client.get(path)).json["competition"]
    assert [(one["competitor_id"], one["result"]) for one in competition["participants"][:2]] == [
        (ada, "9.8"),
        (ben, "9.9"),
    ]
    assert await visitor.fill(page, {}) is not None
    again = (await season.client.get(path)).json["competition"]
    assert [one["result"] for one in again["participants"]] == [one["result"] for one in competition["participants"]]


async def test_forms_take_names_and_refuse_a_number_that_is_an_id_and_the_name_of_another(
    visitor: Visitor, season: Season, log: Log, bounds: Bounds
) -> None:
    """Ada is called by the id of Ben."""
    bounds(CHOSEN_MAX=0)
    ada, ben, pair = season.ids
    await season.client.put(f"competitors/{ada}.json", {"name": str(ben)})
    run = (await season.client.post("competitions.json", {"group_id": 9, "participants": pair})).json["competition"]
    solo = await season.client.post("competitions.json", {"group_id": 9, "participants": ada})
    both = f"{ben} is the id of competitor 'Ben' and the name of competitor {ada}; write id:{ben} or name:{ben}."
    record = f"/competitions/{season.competition_id}/record"
    points = f"/rankings/{season.ranking_id}/add?unity={season.unity_id}"
    forms: list[tuple[str, str, dict[str, object]]] = [
        ("/competitors/new", "parent", {"name": "Eve"}),
        (f"/competitors/{pair}/change", "parent", {}),
        ("/competitions/new", "participants", {"group_id": 7}),
        (record, "winner", {}),
        ("/rankings/new", "participants", {"name": "Cup", "main_unity_name": "goals"}),
        ("/rankings/like", "participants", {"name": "Cup", "like": "football"}),
        (f"/rankings/{season.ranking_id}/participants", "add", {}),
        (f"/rankings/{season.ranking_id}/participants", "remove", {}),
    ]
    for below, field, more in forms:
        before = await log.length()
        refused = await visitor.fill(at(season, below), {**more, field: ben})
        assert (refused.status, both in words(refused.body.decode())) == (422, True), below
        assert form_of(refused.body.decode())[0][field] == str(ben)
        assert await log.length() == before
        for text in (f"id:{ben}", f"name:{ben}", "Ben"):
            assert (await visitor.fill(at(season, below), {**more, field: text})).status == 303, (below, text)
    refused = await visitor.fill(at(season, record), {"result": json.dumps({str(ben): "9.8"})})
    assert (refused.status, both in words(refused.body.decode())) == (422, True)
    sent = {"result": json.dumps({f"name:{ben}": "9.8", "Pair": "9.9"})}
    for given in (sent, {}):  # what it is filled in with can be sent
        look = await visitor.fill(at(season, record), given)  # at the effects, because a ranking scores results now
        assert (await visitor.post(*reversed(form_of(look.body.decode())))).status == 303
    competition = (await season.client.get(f"competitions/{season.competition_id}.json")).json["competition"]
    assert {one["competitor_id"]: one["result"] for one in competition["participants"]} == {
        **{ada: "9.8", ben: None, pair: "9.9"}
    }
    refused = await visitor.fill(at(season, points), {f"points[{ben}]": "x", "competition_id": "Nobody"})
    said = words(refused.body.decode())
    assert ("must be a whole number" in said, "no competition 'Nobody'" in said) == (True, True)
    await season.client.put(f"competitors/{ada}.json", {"name": str(run["id"])})
    assert solo.status == 200
    refused = await visitor.fill(at(season, points), {f"points[{pair}]": "1", "competition_id": run["id"]})
    assert f"{run['id']} is the id of competition 'Pair'" in words(refused.body.decode())
    sent = {f"points[{pair}]": "1", "competition_id": f"id:{run['id']}"}
    assert (await visitor.fill(at(season, points), sent)).status == 303


async def test_what_a_form_is_filled_in_with_means_the_same_whatever_others_are_called(
    visitor: Visitor, season: Season, bounds: Bounds
) -> None:
    """Ben is called by the id of Ada, who is above Pair, and has won."""
    ada, ben, pair = season.ids
    record = at(season, f"/competitions/{season.competition_id}/record")
    assert (await visitor.fill(record, {"winner": f"id:{ada}"})).status == 303
    await season.client.put(f"competitors/{ben}.json", {"name": str(ada)})
    for page, more in ((record, {"location": "Hall"}), (at(season, f"/competitors/{pair}/change"), {"tags": "x"})):
        form, action = form_of(await visitor.page(page))
        assert (await visitor.post(action, form | more)).status == 303
    competition = (await season.client.get(f"competitions/{season.competition_id}.json")).json["competition"]
    assert [one["winner"] for one in competition["participants"]] == [True, False, False]
    form, action = form_of(await visitor.page(at(season, "/rankings/new")))
    assert (await visitor.post(action, form | {"name": "Cup", "main_unity_name": "goals"})).status == 303
    bounds(CHOSEN_MAX=2)  # from then on, forms take names
    listed = await visitor.page(at(season, f"/rankings/{season.ranking_id}/participants"))
    assert re.findall(r'data-id="([^"]*)"', listed) == ["Ada", f"id:{ben}", "Pair"]


async def test_a_strike_is_looked_at_before_it_is_done(visitor: Visitor, season: Season, log: Log) -> None:
    """The participants are chosen by name."""
    page, before = at(season, f"/competitions/{season.competition_id}/strike"), await log.length()
    form, action = form_of(await visitor.page(page))
    ada, ben = (f"competitor[{one}]" for one in season.ids[:2])
    nobody = {name: text for name, text in form.items() if not name.startswith("competitor[")}
    refused = await visitor.post(action, nobody)
    assert (refused.status, LOOK in refused.body.decode()) == (422, True)
    look = (await visitor.post(action, nobody | {ada: "on"})).body.decode()
    seen = nobody | {"step": form_of(look)[0]["step"], ada: "on"}
    other = await visitor.post(action, seen | {ben: "on"})
    assert (other.status, await log.length()) == (200, before)  # this was not looked at
    assert (await visitor.post(action, seen)).status == 303
    competition = f"competitions/{season.competition_id}.json"
    assert (await season.client.get(competition)).json["competition"]["struck"] == [season.ids[0]]
    look = (await visitor.fill(page.replace("/strike", "/unstrike"), {})).body.decode()
    form, action = form_of(look)
    assert (await visitor.post(action, form)).status == 303
    assert "struck" not in (await season.client.get(competition)).json["competition"]


async def test_a_ranking_of_a_known_kind_takes_a_season_without_further_options(
    visitor: Visitor, season: Season, log: Log
) -> None:
    page, before = at(season, "/rankings/like"), await log.length()
    for given, fault in (
        ({"name": "Table"}, "must be one of the kinds listed"),
        ({"name": "Table", "like": "croquet"}, "must be one of the kinds listed"),
        ({"name": "", "like": "football"}, "is required"),
    ):
        refused = await visitor.fill(page, given)
        assert (refused.status, fault in words(refused.body.decode())) == (422, True), given
    assert await log.length() == before
    form, action = form_of(await visitor.page(page))
    del form[f"competitor[{season.ids[2]}]"]
    created = [await visitor.post(action, form | {"name": "Table", "like": "football"}) for _ in range(2)]
    assert len({answer.headers["Location"] for answer in created}) == 1
    assert await log.length() == before + 11  # seven more unities, the classification, the scoring, an earlier result
    table = (await season.client.get("rankings.json")).json["rankings"]["ranking"][-1]
    assert created[0].headers["Location"] == at(season, f"?done={before + 11}")
    assert [one["id"] for one in table["competitors"]] == season.ids[:2]
    look = await visitor.fill(at(season, f"/rankings/{table['id']}/import"), {"csv": MATCH})
    await visitor.post(*reversed(form_of(look.body.decode())))
    shown = words(await visitor.page(at(season, f"/rankings/{table['id']}")))
    assert "1 Ada 1 1 0 0 2 1 1 3 2 Ben 1 0 0 1 1 2 \N{MINUS SIGN}1 0" in shown


async def test_the_winner_of_a_result_that_gives_points_is_that_of_the_score_unless_a_word_follows(
    visitor: Visitor, season: Season
) -> None:
    award = {"unity": season.unity_id, "from": "outcome", "table": {"win": 3, "draw": 1}}
    scorings = json.dumps([{"awards": [award]}])
    await season.client.put(f"rankings/{season.ranking_id}/scoring.json", {"scorings": scorings})
    ada, ben = season.ids[:2]
    fields = {"group_id": 1, "participants": listed([ada, ben])}
    match = (await season.client.post("competitions.json", fields)).json["competition"]["id"]
    page = at(season, f"/competitions/{match}/record")
    asked = {
        "2:1 wo": "The winner has the lower score. Is that right?",
        "1:1": "By the result nobody has won, and yet a winner is named. Is that right?",
    }

    async def record(result: str, winner: str = "") -> int:
        form, action = form_of(await visitor.page(page))
        assert form["winner"] in ("", f"id:{ben}")
        answer = await visitor.post(action, form | {"result": result, "winner": winner})
        if result in asked:
            assert asked[result] in words(answer.body.decode())
        if answer.status == 200:  # the effects, which are looked at first
            answer = await visitor.post(*reversed(form_of(answer.body.decode())))
        if answer.status == 422:
            why = (
                "has the lower score; leave it out, or add a word such as wo" if winner else "name the winner: a shoot"
            )
            assert why in words(answer.body.decode())
        return answer.status

    async def winners() -> list[int]:
        competition = (await season.client.get(f"competitions/{match}.json")).json["competition"]
        return [one["competitor_id"] for one in competition["participants"] if one["winner"]]

    for result, named, status, expected in (
        ("2:1", "", 303, [ada]),
        ("1:2", "", 303, [ben]),
        ("2:1", f"id:{ben}", 422, [ben]),
        ("2:1 wo", f"id:{ben}", 303, [ben]),
        ("2:2", "", 303, []),
        ("1:1", f"id:{ben}", 303, [ben]),
        ("2:2", "", 303, []),
        ("2:2 pen", "", 422, []),
        ("2:2 pen", f"id:{ben}", 303, [ben]),
        ("5:4 pen", "", 303, [ada]),
    ):
        assert (await record(result, named), await winners()) == (status, expected), result


async def test_the_winner_of_a_race_is_one_of_those_whom_its_result_has_first(visitor: Visitor, season: Season) -> None:
    award = {"unity": season.unity_id, "from": "place", "table": [10, 6, 3]}
    scorings = json.dumps([{"order": "sent", "awards": [award]}])
    await season.client.put(f"rankings/{season.ranking_id}/scoring.json", {"scorings": scorings})
    page = at(season, f"/competitions/{season.competition_id}/record")

    async def record(places: Items[str], winner: int | str) -> tuple[int, str]:
        form, action = form_of(await visitor.page(page))
        typed = {f"result[{one}]": place for one, place in zip(season.ids, places, strict=True)}
        answer = await visitor.post(action, form | typed | {"winner": winner and f"id:{winner}"})
        if answer.status == 200:  # the effects, which are looked at first
            answer = await visitor.post(*reversed(form_of(answer.body.decode())))
        return answer.status, words(answer.body.decode())

    ada, ben, pair = season.ids
    for places, winner in ((("3", "1", "2"), pair), (("1", "1", "DNF"), pair), (("1", "1", "3"), pair)):
        status, said = await record(places, winner)
        assert (status, "is not first in the result; leave it empty, or correct the result" in said) == (422, True)
    for places, winner in (
        (("3", "1", "2"), ben),
        (("1", "1", "3"), ben),
        (("2", "3", ""), ada),
        (("", "2", "3"), ada),
    ):
        assert (await record(places, winner))[0] == 303, places


async def test_a_race_is_looked_at_in_few_words_and_whoever_is_struck_from_it_stands_first(
    visitor: Visitor, season: Season
) -> None:
    runners = [f"Runner {number}" for number in range(1, 6)]
    ids = [(await season.client.post("competitors.json", {"name": one})).json["competitor"]["id"] for one in runners]
    race = {"main_unity_name": "time", "main_unity_sort": "ASC", "main_unity_time": "s", "main_unity_counts": "best"}
    ranking = await create_ranking(season.client, ids, **race)
    times = "|".join([f"2:0{number}:00" for number in range(1, 6)])
    file = f"date,participants,score,time\n2015-05-03,{'|'.join(runners)},{times},{times}\n"
    look = (await visitor.fill(at(season, f"/rankings/{ranking['id']}/import"), {"csv": file})).body.decode()
    assert "Runner 1, Runner 2, Runner 3 and 2 more" in words(look)
    assert "5 performances 2:01:00, 2:02:00, 2:03:00 and 2 more" in words(look)
    form, action = form_of(look)
    assert (await visitor.post(action, form)).status == 303
    (*_, run) = (await season.client.get("competitions.json?group_id=1")).json["competitions"]["competition"]
    strike = at(season, f"/competitions/{run['id']}/strike")
    form, action = form_of(await visitor.page(strike))
    form = {name: text for name, text in form.items() if not name.startswith("competitor[")}
    look = (await visitor.post(action, form | {f"competitor[{ids[0]}]": "on"})).body.decode()
    assert "Total Runner 1 1 → \N{EN DASH} 2:01:00 → \N{EN DASH} Runner 2 2 → 1 2:02:00" in words(look)


async def test_a_ranking_is_of_the_competitors_that_stay_chosen(visitor: Visitor, season: Season) -> None:
    """At first, all are. Nobody's id need be known. Its own page comes next."""
    page = at(season, "/rankings/new")
    form, action = form_of(await visitor.page(page))
    ada, ben, pair = season.ids
    assert {f"competitor[{one}]" for one in season.ids} <= form.keys()
    del form[f"competitor[{ben}]"]
    form |= {"name": "Chess", "main_unity_name": "points", "main_unity_sort": "ASC", "main_unity_decimals": "1"}
    form |= {"main_unity_counts": "best"}
    nobody = {name: text for name, text in form.items() if not name.startswith("competitor[")}
    refused = await visitor.post(action, nobody)
    assert (refused.status, "is required." in words(refused.body.decode())) == (422, True)
    assert "checked" not in refused.body.decode()
    created = await visitor.post(action, form)
    made = (await season.client.get("rankings.json")).json["rankings"]["ranking"][-1]
    assert (created.status, created.headers["location"].split("?")[0]) == (303, at(season, f"/rankings/{made['id']}"))
    assert [one["id"] for one in made["competitors"]] == [ada, pair]
    made = made["unities"][0]
    assert (made["sort"], made["decimals"], made["counts"]) == ("ASC", 1, "best")
    assert "points (the best result)" in words(await visitor.page(at(season)))


async def test_everything_else_that_is_offered_works(visitor: Visitor, season: Season) -> None:
    new = {"name": "Cup", "main_unity_name": "goals", "participants": season.ids[0], "description": "Two\nlines"}
    assert (await visitor.fill(at(season, "/rankings/new"), new)).status == 303
    ranking = at(season, f"/rankings/{season.ranking_id}")
    assert (await visitor.fill(f"{ranking}/unities/new", {"name": "cards", "sort": "ASC"})).status == 303
    assert (await visitor.fill(f"{ranking}/participants", {"remove": season.ids[2]})).status == 303
    assert (await visitor.fill(f"{ranking}/information", {"name": "Year", "description": ""})).status == 303
    found = (await season.client.get(f"rankings/{season.ranking_id}.json")).json["ranking"]
    assert (found["name"], found["description"]) == ("Year", None)
    assert [unity["name"] for unity in found["unities"]] == ["points", "fouls", "cards"]
    assert "Cup" in words(await visitor.page(at(season)))


# ── What is shown ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_page_for_auditors_shows_the_head_and_how_far_the_tables_are(
    visitor: Visitor, season: Season, owner: asyncpg.Connection
) -> None:
    page = words(await visitor.page(at(season, "/log")))
    head = await owner.fetchrow(
        """
        SELECT h.sequence, encode(h.digest, 'hex') AS digest
        FROM head AS h
        JOIN tournament USING (tournament_id)
        WHERE slug = $1
        """,
        season.client.tournament,
    )
    assert f"change {head['sequence']}" in page
    assert head["digest"] in page
    assert f"{head['sequence']} changes behind" in page  # there is no worker
    assert f"{head['sequence']} changes behind" in words(await visitor.page(CONSOLE))


async def test_admins_see_when_a_tournament_was_verified_last_and_what_was_found(
    visitor: Visitor, service: Service, season: Season
) -> None:
    for page in (CONSOLE, at(season, "/log")):
        assert "not yet" in words(await visitor.page(page))
    async with service.database.connection() as connection:
        tournament_id = await tournament_named(connection, season.client.tournament)
        assert tournament_id is not None
        for differences, said in ((0, "up to change 7: no difference"), (2, "up to change 7: 2 differences")):
            await note_verified(connection, tournament_id, Sequence(7), differences)
            for page in (CONSOLE, at(season, "/log")):
                assert said in words(await visitor.page(page))
    async with visiting(service, await make_token(service.database, Scope.WRITE)) as referee:
        for page in (CONSOLE, at(season, "/log")):
            assert "2 differences" not in words(await referee.page(page))


async def test_a_stopped_tournament_is_named_with_its_reason(
    service: Service, visitor: Visitor, season: Season, owner: asyncpg.Connection, clients_tournament: TournamentId
) -> None:
    await owner.execute(
        "INSERT INTO stopped (tournament_id, sequence, reason) VALUES ($1, 7, 'its tag is unknown')", clients_tournament
    )
    assert "stopped at change 7: its tag is unknown" in words(await visitor.page(CONSOLE))
    async with visiting(service, await make_token(service.database, Scope.READ)) as reader:
        assert "stopped" not in words(await reader.page(CONSOLE))


async def test_long_lists_come_in_pages(service: Service, visitor: Visitor, season: Season, bounds: Bounds) -> None:
    bounds(ITEMS_SHOWN=2)
    first = await visitor.page(at(season, "/competitors"))
    assert "Ada" in words(first)
    assert "Pair" not in words(first)
    assert "Pair" in words(await visitor.page(at(season, "/competitors?offset=2")))
    newest = words(await visitor.page(at(season, "/competitions")))
    assert "Competition of 3" in newest
    assert "Ada \N{EN DASH} Ben" not in newest
    assert "Ada \N{EN DASH} Ben not counted" in words(await visitor.page(at(season, "/competitions?offset=2&voided=1")))
    await open_new_tournament(service.database, actor=OPERATOR)
    bounds(TOURNAMENTS_SHOWN=1)
    page = await visitor.page(CONSOLE)
    (further,) = re.findall(r'href="(/console\?after=tournament-\d+)"', page)
    assert at(season) in page
    assert f'{at(season)}"' not in await visitor.page(further)


async def test_the_history_shows_the_newest_first_and_leads_to_explanations(
    visitor: Visitor, season: Season, bounds: Bounds
) -> None:
    bounds(HISTORY_EVENTS=3)
    bounds(HISTORY_EVENTS=3)
    for amount in (11, 22, 33):
        line = deltas((season.ids[0], season.unity_id, amount))
        await season.client.put(f"{season.path}/add.json", {"participants_delta": line})
    page = await visitor.page(at(season, f"/rankings/{season.ranking_id}/history"))
    assert [int(found) for found in re.findall(r"\+(11|22|33)\b", words(page))] == [33, 22, 11]
    (earlier,) = re.findall(r'href="([^"]*/history\?to=\d+)"', page)
    assert "+11" not in words(await visitor.page(unescape(earlier)))
    explained = re.findall(rf'href="([^"]*/competitors/{season.ids[0]}\?[^"]*)"', page)[0]
    steps = await visitor.page(unescape(explained))
    assert "66" in words(steps)
    back = re.findall(r'<a href="([^"]*)">Back to the table', steps)[0]
    assert "Ada" in words(await visitor.page(unescape(back)))


async def test_a_preview_too_long_for_a_page_says_so_and_the_change_can_be_made(
    visitor: Visitor, season: Season, bounds: Bounds
) -> None:
    line = deltas((season.ids[0], season.unity_id, 3))
    form = {"participants_delta": line, "competition_id": season.competition_id}
    await season.client.put(f"{season.path}/add.json", form)
    bounds(PREVIEW_AT_ONCE_MAX=1)
    void = at(season, f"/competitions/{season.competition_id}/void")
    assert "too long for this page" in words(await visitor.page(void))
    assert (await visitor.fill(void, {})).status == 303


async def test_a_token_is_revoked_after_it_was_shown_and_only_within_reach(service: Service, visitor: Visitor) -> None:
    other = await open_new_tournament(service.database, actor=OPERATOR)
    reader = await make_token(service.database, Scope.READ)
    bound = await make_token(service.database, Scope.ADMIN, [other])
    page = await visitor.page(f"{CONSOLE}/tokens")
    revocable = re.findall(r'href="(/console/tokens/\d+/revoke)"', page)
    assert len(revocable) == 3
    readers = revocable[1]  # the newest comes first
    async with visiting(service, bound) as stranger, visiting(service, reader) as its:
        assert re.findall(r'href="(/console/tokens/\d+/revoke)"', await stranger.page(f"{CONSOLE}/tokens")) == [
            revocable[0]
        ]
        assert (await stranger.get(readers)).status == (await stranger.post(readers)).status == 404
        assert (await its.get(CONSOLE)).status == 200
        assert 'class="warning"' in await visitor.page(readers)
        assert (await visitor.post(readers)).status == 303
        assert (await its.get(CONSOLE)).status == 401
        assert (await visitor.post(readers)).status == 404
        assert (await stranger.post(revocable[0])).status == 303  # its own
        assert (await stranger.get(CONSOLE)).status == 401


async def test_a_token_is_made_and_shown_once_and_reaches_no_further_than_its_maker(
    service: Service, season: Season, visitor: Visitor
) -> None:
    new = f"{CONSOLE}/tokens/new"
    answer = await visitor.fill(new, {"name": "desk", "scope": "write", "tournaments": season.client.tournament})
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-store")
    (text,) = re.findall(r">(tb_[0-9A-Za-z]{36})<", answer.body.decode())
    assert text not in await visitor.page(f"{CONSOLE}/tokens")
    assert (await service.client(season.client.tournament, text).get("rankings.json")).status == 200
    async with service.database.connection() as connection:
        made = (await auth.listed(connection))[-1]
    assert (made.name, made.scope) == ("desk", Scope.WRITE)
    assert made.tournament_ids is not None
    assert len(made.tournament_ids) == 1
    assert made.expires_at is not None
    async with visiting(service, text) as its:
        assert (await its.get(new)).status == (await its.post(new, {"name": "more", "scope": "read"})).status == 403


async def test_an_admin_of_some_tournaments_makes_tokens_for_no_others_that_end_no_later(
    service: Service, season: Season
) -> None:
    other = await open_new_tournament(service.database, actor=OPERATOR)
    async with service.database.connection() as connection:
        _, text = await auth.create(
            connection, name="referee", scope=Scope.ADMIN, tournament_ids=[other], expires_in_days=10
        )
        before = await auth.listed(connection)
    form = {"name": "desk", "scope": "admin", "expires_in_days": 9}
    async with visiting(service, text) as visitor:
        new = f"{CONSOLE}/tokens/new"
        for wrong, field in (
            ({"tournaments": season.client.tournament}, "tournaments"),
            ({"tournaments": "nowhere"}, "tournaments"),
            ({"tournaments": " , "}, "tournaments"),
            ({"tournaments": ",".join(["a"] * 51)}, "tournaments"),
            ({"expires_in_days": ""}, "expires_in_days"),
            ({"expires_in_days": 11}, "expires_in_days"),
            ({"expires_in_days": "0"}, "expires_in_days"),
            ({"scope": "owner"}, "scope"),
            ({"name": " "}, "name"),
        ):
            refused = await visitor.fill(new, form | wrong)
            assert refused.status == 422, wrong
            assert f'id="fault-{field}"' in refused.body.decode(), wrong
        async with service.database.connection() as connection:
            assert await auth.listed(connection) == before
        assert (await visitor.fill(new, form)).status == 200  # without slugs: for those of its maker
        async with service.database.connection() as connection:
            made = (await auth.listed(connection))[-1]
    assert (made.name, made.tournament_ids) == ("desk", frozenset([other]))


async def test_webhooks_are_shown_with_what_is_wrong_and_of_their_addresses_only_the_host(
    visitor: Visitor, service: Service, season: Season, owner: asyncpg.Connection
) -> None:
    page = words(await visitor.page(at(season, "/webhooks")))
    assert "There are no webhooks" in page
    async with service.database.connection() as connection:
        tournament_id = await tournament_named(connection, season.client.tournament)
        assert tournament_id is not None
        webhook_id, sequence, _ = await add_webhook(
            connection,
            tournament_id,
            "https://hooks.example.org/secret-path?k=secret",
            kinds=None,
            allows_private=False,
            after=Sequence(3),
        )
    await owner.execute("UPDATE webhook SET state = 'parked', failures = 10, problem = 'status 500'")
    page = await visitor.page(at(season, "/webhooks"))
    head = await head_of(visitor, season)
    assert "secret" not in page
    assert f"hooks.example.org {webhook_id} parked Failed 10 times: status 500 {sequence} {head - 3} never" in words(
        page
    )


async def test_two_who_send_the_same_form_at_once_are_both_answered_and_it_counts_once(
    visitor: Visitor, season: Season, log: Log
) -> None:
    form, action = form_of(await visitor.page(at(season, "/competitors/new")))
    before = await log.length()
    answers = await asyncio.gather(*[visitor.post(action, {**form, "name": "Eve"}) for _ in range(5)])
    assert {answer.status for answer in answers} == {303}
    assert await log.length() == before + 1


async def test_a_fault_names_other_fields_as_the_form_does(visitor: Visitor, season: Season) -> None:
    for below, prefix in ((f"/rankings/{season.ranking_id}/unities/new", ""), ("/rankings/new", "main_unity_")):
        for name, text, why in (
            ("lasts", "P4W", "must be sent with “Points count for”"),
            ("expires_on", "day", "must be sent with “Their last moment”"),
        ):
            given = {"name": "Cup", "main_unity_name": "x", f"{prefix}{name}": text}
            form, action = form_of(await visitor.page(at(season, below)))
            sent = form | {key: one for key, one in given.items() if key in form}
            said = words((await visitor.post(action, sent)).body.decode())
            assert why in said, (below, name)


async def test_a_form_that_renames_a_tournament_begins_with_its_name(visitor: Visitor, season: Season) -> None:
    name = (await season.client.get("tournament.json")).json["tournament"]["name"]
    assert form_of(await visitor.page(at(season, "/name")))[0]["name"] == name
    assert (await visitor.fill(at(season, "/name"), {"name": "Cup"})).status == 303
    assert form_of(await visitor.page(at(season, "/name")))[0]["name"] == "Cup"


async def test_what_has_few_values_is_chosen(visitor: Visitor, season: Season) -> None:
    for change in CONSOLE_CHANGES:
        closed = {one.name for one in change.fields(Beginning()) if "enum" in one.type.schema}
        if closed and not change.path.endswith("/unvoid"):
            page = await visitor.page(address_of(f"/tournament/{{tournament}}{change.path}", season))
            assert closed <= {*re.findall(r'<select [^>]*name="([^"]*)"', page)}, change.path
    column = at(season, f"/rankings/{season.ranking_id}/unities/new")
    offered = re.findall(r'<option value="none">([^<]*)<', await visitor.page(column))
    assert offered == ["No total, behind all others"]
    assert (await visitor.fill(column, {"name": "sprint", "absent": "none"})).status == 303


async def test_a_tournament_is_archived_restored_and_deleted_by_its_typed_address(
    service: Service, visitor: Visitor, season: Season, clients_tournament: TournamentId
) -> None:
    slug, archived = season.client.tournament, "This tournament is archived"
    for path, said in (("/archive", True), ("/restore", False)):
        assert 'class="chief danger"' not in await visitor.page(at(season, path))
        answer = await visitor.fill(at(season, path), {})
        assert answer.headers["Location"].startswith(at(season))
        assert (archived in await visitor.page(at(season))) == said
    async with visiting(service, await make_token(service.database, Scope.ADMIN, [clients_tournament])) as bound:
        assert "Delete the tournament" not in await bound.page(at(season))
        assert (await bound.fill(at(season, "/delete"), {"slug": slug})).status == 403
    assert 'class="chief danger"' in await visitor.page(at(season, "/delete"))
    assert (await visitor.fill(at(season, "/delete"), {"slug": "another"})).status == 422
    assert (await visitor.fill(at(season, "/delete"), {"slug": slug})).headers["Location"] == CONSOLE
    assert (await visitor.get(at(season))).status == 404
    assert f'{at(season)}"' not in await visitor.page(CONSOLE)
