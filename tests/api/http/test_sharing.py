"""Which answers pages of other sites may read."""

from typing import Final

import pytest

from api.http.sharing import REQUEST_HEADERS
from api.service.settings import ORIGIN
from tests.api.public_boards import Board, change
from tests.service import Answer, Season, Service, serve

ORGANISER: Final = "https://club.example"
STRANGER: Final = "https://elsewhere.example"


def shown_to(answer: Answer) -> str | None:
    return answer.headers.get("Access-Control-Allow-Origin")


async def test_pages_of_all_sites_may_read_what_needs_no_token(board: Board, season: Season, service: Service) -> None:
    await change(season.client, published="true")
    nobody = service.client(board.slug, None)
    statuses = {}
    for path in "tournament.json", f"{season.path}/standings.json", "table.csv", "table.csv?offset=x", "nothing.json":
        answer = await board.get(path, {"Origin": STRANGER})
        statuses[answer.status] = path
        assert (shown_to(answer), "ETag" in answer.headers["Access-Control-Expose-Headers"]) == ("*", True), path
        assert "Access-Control-Allow-Credentials" not in answer.headers
        if tag := answer.headers.get("ETag"):
            same = await board.get(path, {"Origin": STRANGER, "If-None-Match": tag})
            assert (same.status, shown_to(same)) == (304, "*")
    assert statuses.keys() == {200, 400, 404}
    assert shown_to(await nobody.send("GET", "/openapi.json")) == "*"
    assert shown_to(await nobody.send("GET", "/")) is None
    asked = {"Origin": STRANGER, "Access-Control-Request-Method": "GET"}
    preflight = await nobody.send("OPTIONS", f"/board/{board.slug}/tournament.json", headers=asked)
    assert (preflight.status, shown_to(preflight)) == (200, "*")
    assert preflight.headers["Allow"] == preflight.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert preflight.headers["Access-Control-Allow-Headers"] == REQUEST_HEADERS


async def test_pages_with_a_token_are_those_of_origins_that_the_operator_names(season: Season, dsn: str) -> None:
    slug, token = season.client.tournament, season.client.token
    path = f"/tournament/{slug}/rankings.json"
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    as_usual = await season.client.send("GET", path, headers={"Origin": ORGANISER})
    assert (shown_to(as_usual), as_usual.headers.get("Vary")) == (None, "Accept-Encoding")
    assert (await season.client.send("OPTIONS", path, headers={"Origin": ORGANISER} | asked)).status == 405
    async with serve(dsn, origins=(ORGANISER,)) as service:
        client, nobody = service.client(slug, token), service.client(slug, None)
        for who, status in (client, 200), (nobody, 401):
            answer = await who.send("GET", path, headers={"Origin": ORGANISER})
            assert (answer.status, shown_to(answer)) == (status, ORGANISER)
            assert "Origin" in answer.headers.getall("Vary")
        for origin in STRANGER, "null", f"{ORGANISER}.elsewhere.example":
            answer = await client.send("GET", path, headers={"Origin": origin})
            assert (answer.status, shown_to(answer)) == (200, None)
            assert "Origin" in answer.headers.getall("Vary")
            refused = await nobody.send("OPTIONS", path, headers={"Origin": origin} | asked)
            assert shown_to(refused) is None
        preflight = await nobody.send("OPTIONS", path, headers={"Origin": ORGANISER} | asked)
        assert (preflight.status, shown_to(preflight)) == (200, ORGANISER)
        assert preflight.headers["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS, POST, PUT"
        assert "Authorization" in preflight.headers["Access-Control-Allow-Headers"]
        metrics = await client.send("GET", "/metrics", headers={"Origin": ORGANISER})
        assert shown_to(metrics) is None


@pytest.mark.parametrize(
    ("text", "is_origin"),
    [
        ("https://club.example", True),
        ("http://localhost:3000", True),
        ("http://[::1]:8080", True),
        ("https://club.example/", False),
        ("https://Club.example", False),
        ("club.example", False),
        ("*", False),
        ("null", False),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(text: str, is_origin: bool) -> None:
    assert (ORIGIN.fullmatch(text) is not None) == is_origin
