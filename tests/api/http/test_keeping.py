"""Every answer says how long it may be kept. The clients of all other tests check it too: see `Answer` in `service.py`.

Caches in front of a service decide about answers that do not say it, also about a 404: what the public may see later
would stay hidden as long as they like.
"""

import re
from typing import Final
from urllib.parse import urlencode

from api.web.files import static_files
from tests.api.asking import READS, example_of
from tests.api.public_boards import change
from tests.api.visitor import Visitor, routes_below, visiting
from tests.service import Answer, Season, Service

NOT_STORED: Final = "no-store"
REVALIDATED: Final = "no-cache"
NOWHERE: Final = {"/nowhere": {"GET", "HEAD"}, "/static/0/board.css": {"GET"}, "/board/nobody": {"GET"}}


def expected(method: str, path: str, status: int) -> str:
    """What an answer should say."""
    if method not in ("GET", "HEAD") or status not in (200, 304):
        return NOT_STORED
    if path.endswith("/events") and status == 200:
        return "no-store, no-transform"
    if path.startswith("/static/"):
        return "public, max-age=31536000, immutable"
    if path.startswith("/tournament/"):
        return "private, no-cache"
    return REVALIDATED if path.startswith("/board/") or path in ("/", "/docs", "/openapi.json") else NOT_STORED


async def test_every_answer_of_every_route_says_how_long_it_may_be_kept(
    service: Service, season: Season, token: str
) -> None:
    await change(season.client, published="true")
    places = {
        "tournament": season.client.tournament,
        "ranking_id": season.ranking_id,
        "unity_id": season.unity_id,
        "competitor_id": season.ids[0],
        "competition_id": season.competition_id,
        "version": static_files().version,
        "file...": "board.css",
    }
    queries = {f"/tournament/{{tournament}}/{name[4:]}": urlencode(example_of(name)) for name in READS}
    statuses: set[int] = set()

    async def ask(
        who: Visitor, method: str, template: str, headers: dict[str, str], body: bytes | None = None
    ) -> Answer:
        path = re.sub(r"{(.+?)}", lambda found: str(places.get(found[1], 1)), template)
        answer = await who.send(method, f"{path}?{queries.get(template, '')}", body, headers)
        said = answer.headers["Cache-Control"]
        assert said == expected(method, path, answer.status), (method, path, answer.status)
        statuses.add(answer.status)
        return answer

    async with visiting(service, token) as signed_in, visiting(service) as nobody:
        bearer = {"Authorization": f"Bearer {token}"}
        for template, methods in {**await routes_below(service, "/"), **NOWHERE}.items():
            for who, headers in (nobody, {}), (signed_in, {}), (nobody, bearer), (nobody, {"Accept": "text/html"}):
                for method in ["HEAD"] if template.endswith("/events") else [*methods & {"GET", "HEAD"}, "OPTIONS"]:
                    answer = await ask(who, method, template, headers)
                    if tag := answer.headers.get("ETag"):
                        assert (await ask(who, method, template, headers | {"If-None-Match": tag})).status == 304
        for template, methods in (await routes_below(service, "/")).items():
            for method in methods - {"GET", "HEAD"}:
                await ask(nobody, method, template, {})
                await ask(nobody, method, template, bearer)
                await ask(nobody, method, template, bearer, b"a body of no known type")
                await ask(signed_in, method, template, signed_in.origin)
    assert statuses >= {200, 303, 304, 400, 401, 404, 405, 409, 415, 422}, statuses
