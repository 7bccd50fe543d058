"""What a platform does over HTTP alone: tournaments of its clubs, and a token for each."""

import json
import os
import re
from asyncio import create_subprocess_exec
from shutil import which
from subprocess import PIPE
from typing import Any, Final

import pytest

from api.access.auth import Scope
from engine.domain.terms import SLUG_CHARACTERS_MAX
from engine.log.registry import tournaments
from tests.api.asking import refused
from tests.project import ROOT
from tests.service import Answer, Client, Service, deltas, make_token, play_season

ELSEWHERE: Final = "no-such-tournament"


async def asked(
    client: Client, method: str, path: str, headers: dict[str, str] | None = None, **form: object
) -> Answer:
    """`path`: below the root of the service."""
    body = json.dumps(form).encode() if method == "POST" else None
    return await client.send(method, f"/{path}", body, {"Content-Type": "application/json"} | (headers or {}))


@pytest.fixture
async def platform(service: Service, token: str) -> Client:
    return service.client(ELSEWHERE, token)


async def test_a_platform_runs_a_tournament_of_a_club_that_can_do_nothing_else(
    platform: Client, service: Service
) -> None:
    made = (await asked(platform, "POST", "tournaments.json", name="Summer Open", zone="Europe/Berlin")).json
    slug = made["tournament"]["slug"]
    assert (made["message"], slug, made["tournament"]["sequence"]) == ("Tournament created", "summer-open", 2)
    club = await asked(
        platform, "POST", "tokens.json", name="club", scope="admin", tournaments=[slug], expires_in_days=9
    )
    told = club.json["token"]
    assert (told["tournaments"], told["scope"], told["revoked_at"]) == ([made["tournament"]["id"]], "admin", None)
    of_club = service.client(slug, told["text"])
    assert (await of_club.post("competitors.json", {"name": "Ana", "key": "a-1"})).status == 200
    shown = (await of_club.get("tournament.json")).json["tournament"]
    assert (shown["name"], shown["slug"], shown["sequence"], shown["competitors"]) == ("Summer Open", slug, 3, 1)
    assert (shown["published"], shown["public_end"]) == (False, None)
    listed = (await asked(of_club, "GET", "tournaments.json")).json["tournaments"]
    assert listed == [{"id": made["tournament"]["id"], "slug": slug, "name": "Summer Open", "sequence": 3}]
    assert (await asked(of_club, "GET", f"tournaments.json?after={'a' * SLUG_CHARACTERS_MAX}")).status == 200
    refused(await asked(of_club, "GET", f"tournaments.json?after={'a' * (SLUG_CHARACTERS_MAX + 1)}"), 400, "after")
    refused(await asked(of_club, "POST", "tournaments.json", name="Another"), 403)
    refused(
        await asked(of_club, "POST", "tokens.json", name="x", scope="read", tournaments=[ELSEWHERE]), 422, "tournaments"
    )
    refused(await asked(of_club, "POST", "tokens.json", name="x", scope="read"), 422, "expires_in_days")
    refused(await asked(platform, "POST", "tokens.json", name="x", scope="read", tournaments=[]), 422, "tournaments")
    seen = {one["name"] for one in (await asked(of_club, "GET", "tokens.json")).json["tokens"]}
    assert seen == {"club"}
    assert "text" not in (await asked(platform, "GET", "tokens.json")).json["tokens"][0]
    ended = await asked(platform, "POST", f"tokens/{told['id']}/revoke.json")
    assert ended.json["token"]["revoked_at"]
    refused(await asked(platform, "POST", f"tokens/{told['id']}/revoke.json"), 404)
    assert "There is no token 'x'." in (await asked(platform, "POST", "tokens/x/revoke.json")).body.decode()


async def test_a_tournament_is_created_once_however_often_it_is_sent(platform: Client, service: Service) -> None:
    key = {"Idempotency-Key": "7f3a"}
    first = await asked(platform, "POST", "tournaments.json", key, name="Cup", zone="Europe/Paris")
    again = await asked(platform, "POST", "tournaments.json", key, name="Cup", zone="Europe/Paris")
    assert first.body == again.body
    refused(
        await asked(platform, "POST", "tournaments.json", key, name="Cup", zone="Europe/Rome"), 422, "Idempotency-Key"
    )
    refused(await asked(platform, "POST", "tournaments.json", key, name="Cap"), 422, "Idempotency-Key")
    other = service.client(ELSEWHERE, await make_token(service.database, scope=Scope.ADMIN))
    theirs = await asked(other, "POST", "tournaments.json", key, name="Cup")
    unkeyed = await asked(platform, "POST", "tournaments.json", name="Cup")
    assert [theirs.json["tournament"]["slug"], unkeyed.json["tournament"]["slug"]] == ["cup-2", "cup-3"]
    async with service.database.connection() as connection:
        assert {one.slug for one in await tournaments(connection)} >= {"cup", "cup-2", "cup-3"}


async def test_an_archived_tournament_is_only_read_until_it_is_restored(service: Service, token: str) -> None:
    made = (await asked(service.client(ELSEWHERE, token), "POST", "tournaments.json", name="Cup")).json
    client = service.client("cup", token)
    season = await play_season(client)
    refused(await service.client("cup", await make_token(service.database, Scope.WRITE)).put("archive.json"), 403)
    answer = await client.put("archive.json")
    assert (answer.status, answer.json["tournament"]) == (200, {"stage": "archived"})
    points = {"participants_delta": deltas((season.ids[0], season.unity_id, 5))}
    for path, form in (
        (f"{season.path}/add.json", points),
        (f"competitions/{season.competition_id}/void.json", {}),
        (f"competitions/{season.competition_id}.json", {"result": ""}),
        ("publication.json", {"published": "true"}),
        ("archive.json", {}),
    ):
        answer = await client.put(path, form)
        refused(answer, 409)
        assert answer.json["message"] == "This tournament is archived; restore it first."
    refused(await client.get(f"competitions/{season.competition_id}/void.json"), 409)
    assert (await client.get(f"{season.path}/standings.json")).status == 200
    assert (await client.get("tournament.json")).json["tournament"]["stage"] == "archived"
    assert (await client.put("restore.json")).json["tournament"] == {"stage": None}
    assert (await client.put(f"{season.path}/add.json", points)).status == 200
    refused(await client.put("restore.json"), 409)
    assert (await client.put("archive.json")).status == 200
    assert (await client.put("delete.json", {"slug": made["tournament"]["slug"]})).status == 200


async def test_tournaments_are_listed_in_parts(platform: Client) -> None:
    for name in "C", "A", "B":
        await asked(platform, "POST", "tournaments.json", name=name)
    one = (await asked(platform, "GET", "tournaments.json?limit=2")).json["tournaments"]
    rest = (await asked(platform, "GET", f"tournaments.json?limit=2&after={one[-1]['slug']}")).json["tournaments"]
    assert [each["name"] for each in one + rest][:3] == ["A", "B", "C"]


@pytest.mark.parametrize("scope", [Scope.READ, Scope.WRITE])
async def test_only_an_admin_creates_tournaments_and_tokens(service: Service, scope: Scope) -> None:
    client = service.client(ELSEWHERE, await make_token(service.database, scope=scope))
    for method, path in ("POST", "tournaments.json"), ("POST", "tokens.json"), ("GET", "tokens.json"):
        refused(await asked(client, method, path), 403)
    assert (await asked(client, "GET", "tournaments.json")).status == 200


async def test_what_is_wrong_with_a_new_tournament_is_said(platform: Client) -> None:
    refused(await asked(platform, "POST", "tournaments.json"), 422, "name")
    refused(await asked(platform, "POST", "tournaments.json", name="x", zone="Mars/Olympus"), 422, "zone")
    refused(await asked(platform, "POST", "tournaments.json", name="***"), 422)
    refused(await asked(platform, "GET", "tournaments.json?limit=0"), 400, "limit")


async def played_by_a_platform(service: Service, token: str) -> Any:
    """The last answer to the lines of docs/HOSTED.md, as a shell runs them."""
    page = (ROOT / "docs" / "HOSTED.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    assert len([line for line in lines.splitlines() if line]) <= 30
    variables = {"PATH": os.environ["PATH"], "HOST": service.url, "TOKEN": token}
    shell = await create_subprocess_exec(
        "bash", "-euo", "pipefail", "-c", lines, env=variables, stdout=PIPE, stderr=PIPE
    )
    out, err = await shell.communicate()
    assert shell.returncode == 0, (out, err)
    return json.loads(out[out.rindex(b'{"status"') :])


@pytest.mark.skipif(which("curl") is None, reason="no curl: the lines of a platform were not run")
async def test_a_platform_plays_a_season_by_the_lines_of_the_page(service: Service, token: str) -> None:
    shown = (await played_by_a_platform(service, token))["classification"]["standings"]
    assert [(line["competitor_id"], line["position"], line["values"][0]) for line in shown] == [
        (1, 1, 3),
        (3, 2, 1),
        (4, 2, 1),
        (2, 4, 0),
    ]
