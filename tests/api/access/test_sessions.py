"""Sessions: signing in with a token, and what a cookie is good for, and what not."""

import asyncio
from contextlib import AsyncExitStack
from hashlib import sha256
from io import BytesIO

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.access.auth import Scope, Token
from api.access.granting import reaches
from api.http.cookies import COOKIE
from engine.domain.terms import OPERATOR, ActorId, TournamentId
from tests.api.asking import Log
from tests.api.visitor import CONSOLE, visiting
from tests.bounds import Bounds
from tests.desks import GUARD_SECONDS
from tests.service import Season, Service, make_token, serve
from tests.spectator import SSE, Connected, Spectator, connected
from tests.tournaments import open_new_tournament

# ── The cookie ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_session_is_a_cookie_that_no_script_reads_and_no_other_site_causes(
    service: Service, token: str, owner: asyncpg.Connection, log_lines: BytesIO
) -> None:
    async with visiting(service) as visitor:
        answer = await visitor.sign_in(token)
        cookies = answer.headers.getall("Set-Cookie")
        assert (answer.status, answer.headers["Location"]) == (303, CONSOLE)
        assert visitor.text is not None
        assert cookies == [
            f"{COOKIE}={visitor.text}; Path={path}; Max-Age=43200; HttpOnly; SameSite=Strict"
            for path in ("/console", "/tournament")
        ]
        row = await owner.fetchrow("SELECT hash, expires_at - created_at AS life, session::text AS all FROM session")
        assert row["hash"] == sha256(visitor.text.encode()).digest()
        assert row["life"].total_seconds() == 12 * 3600
        page = await visitor.page(CONSOLE)
        for secret in (visitor.text, token):
            assert secret not in page
            assert secret not in row["all"]
            assert secret not in log_lines.getvalue().decode()


@pytest.mark.parametrize(
    ("proxies", "said", "secure"),
    [(0, "https", False), (1, "https", True), (1, "http", False), (1, None, False), (2, "https, http", True)],
)
async def test_the_cookie_is_secure_where_a_proxy_that_is_believed_says_tls(
    dsn: str, proxies: int, said: str | None, secure: bool
) -> None:
    async with serve(dsn, proxies=proxies) as service, visiting(service) as visitor:
        visitor.headers = {} if said is None else {"X-Forwarded-Proto": said}
        origin = {"Origin": visitor.url.replace("http:", "https:") if secure else visitor.url}
        answer = await visitor.post(f"{CONSOLE}/sign-in", {"token": await make_token(service.database)}, origin)
        assert answer.status == 303
        assert {line.endswith("; Secure") for line in answer.headers.getall("Set-Cookie")} == {secure}


async def test_a_visitor_without_a_good_token_gets_no_session_and_has_to_wait(dsn: str) -> None:
    async with serve(dsn, failures_at_once=3) as service, visiting(service) as visitor:
        answers = [await visitor.sign_in(text) for text in ("", "tb_nonsense", f"tb_{'0' * 36}", "x\r\nSet-Cookie: a")]
        assert [answer.status for answer in answers] == [401, 401, 401, 429]
        assert all("Set-Cookie" not in answer.headers for answer in answers)
        assert b"This token is not accepted." in answers[0].body


async def test_a_signed_in_user_does_not_notice_the_failures_of_others_at_their_address(dsn: str) -> None:
    async with (
        serve(dsn, failures_at_once=2) as service,
        visiting(service, await make_token(service.database)) as visitor,
        visiting(service) as guesser,
    ):
        assert (await visitor.get(CONSOLE)).status == 200
        guessed = []
        for number in range(5):
            guesser.text = f"se_{number:043}"
            guessed.append((await guesser.get(CONSOLE)).status)
        assert guessed == [401, 401, 429, 429, 429]
        assert (await visitor.get(CONSOLE)).status == 200


async def test_a_session_is_good_in_every_process_although_others_fail_at_its_address(dsn: str) -> None:
    async with (
        serve(dsn) as first,
        serve(dsn, failures_at_once=1) as second,
        visiting(first, await make_token(first.database)) as visitor,
        visiting(second) as guesser,
    ):
        guesser.text = f"se_{0:043}"
        assert [(await guesser.get(CONSOLE)).status for _ in range(2)] == [401, 429]
        visitor.url = second.url
        assert (await visitor.get(CONSOLE)).status == 200


async def test_signing_in_leads_to_the_console_only(service: Service, token: str, subtests: pytest.Subtests) -> None:
    for to, leads in [
        ("/console/tournament/cup?done=3", "/console/tournament/cup?done=3"),
        ("/console", "/console"),
        ("https://example.org/", "/console"),
        ("//example.org/console", "/console"),
        ("/consoles", "/console"),
        ("/console/\r\nX: y", "/console"),
        ("/board/x", "/console"),
    ]:
        with subtests.test(to):
            async with visiting(service) as visitor:
                answer = await visitor.sign_in(token, to)
                assert answer.headers["Location"] == leads
                assert "X" not in answer.headers


async def test_a_visitor_who_is_not_signed_in_signs_in_and_comes_to_the_page(service: Service, token: str) -> None:
    async with visiting(service) as visitor:
        answer = await visitor.get("/console/sessions?a=%22")
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert b'name="to" value="/console/sessions?a=%22"' in answer.body
        assert b"Already signed in?" not in answer.body
        elsewhere = await visitor.get("/console/sessions", {"Sec-Fetch-Site": "cross-site"})
        assert b"Already signed in?" in elsewhere.body  # a link from another site brings no cookie


# ── How it ends ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "end",
    [
        "UPDATE token SET revoked_at = now()",
        "UPDATE token SET expires_at = now()",
        "UPDATE session SET expires_at = now()",
        "DELETE FROM session",
    ],
)
async def test_a_session_ends_with_its_token_or_its_time_at_once(
    service: Service, owner: asyncpg.Connection, end: str
) -> None:
    async with visiting(service, await make_token(service.database)) as visitor:
        assert (await visitor.get(CONSOLE)).status == 200
        await owner.execute(end)
        answer = await visitor.get(CONSOLE)
        assert answer.status == 401
        assert b"sign in" in answer.body


async def test_signing_out_ends_the_session_and_has_the_browser_forget_it(
    service: Service, token: str, owner: asyncpg.Connection
) -> None:
    async with visiting(service, token) as visitor:
        answer = await visitor.post(f"{CONSOLE}/sign-out")
        assert (answer.status, answer.headers["Location"]) == (303, CONSOLE)
        assert all(f"{COOKIE}=; " in line and "Max-Age=0" in line for line in answer.headers.getall("Set-Cookie"))
        assert await owner.fetchval("SELECT count(*) FROM session") == 0
        assert (await visitor.get(CONSOLE)).status == 401  # although it still sends the cookie
        assert (await visitor.post(f"{CONSOLE}/sign-out")).status == 303


async def test_the_sessions_of_a_token_are_limited_and_the_oldest_gives_way(
    service: Service, token: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(SESSIONS_MAX=2)
    async with (
        visiting(service, await make_token(service.database)) as other,
        visiting(service, token) as first,
        visiting(service, token) as second,
        visiting(service, token) as third,
    ):
        answers = [await visitor.get(CONSOLE) for visitor in (other, first, second, third)]
        assert [answer.status for answer in answers] == [200, 401, 200, 200]
        assert await owner.fetchval("SELECT count(*) FROM session") == 3
        await owner.execute("UPDATE session SET expires_at = now()")
        await third.sign_in(token)
        assert await owner.fetchval("SELECT count(*) FROM session") == 2  # the expired ones of that token have gone


async def test_sessions_are_listed_to_their_owner_and_to_admins_whose_tournaments_include_theirs(
    service: Service,
) -> None:
    other = await open_new_tournament(service.database, actor=OPERATOR)
    tokens = {
        "admin": await make_token(service.database),
        "bound": await make_token(service.database, Scope.ADMIN, [other]),
        "reader": await make_token(service.database, Scope.READ, [other]),
        "stranger": await make_token(service.database, Scope.READ),
    }
    async with (
        visiting(service, tokens["admin"]) as admin,
        visiting(service, tokens["bound"]) as bound,
        visiting(service, tokens["reader"]) as reader,
        visiting(service, tokens["stranger"]) as stranger,
    ):
        shown = {
            name: (await visitor.page("/console/sessions")).count("/end")
            for name, visitor in {"admin": admin, "bound": bound, "reader": reader, "stranger": stranger}.items()
        }
        assert shown == {"admin": 4, "bound": 2, "reader": 1, "stranger": 1}
        (end,) = [line.split('"')[0] for line in (await stranger.page("/console/sessions")).split('action="')[2:]]
        assert (await bound.post(end)).status == (await reader.post(end)).status == 404
        assert (await stranger.get(CONSOLE)).status == 200
        assert (await admin.post(end)).status == 303
        assert (await stranger.get(CONSOLE)).status == 401
        assert (await admin.post(end)).status == 404


_TOKENS = st.builds(
    Token,
    token_id=st.integers(1, 3).map(ActorId),
    name=st.just("a"),
    scope=st.sampled_from(Scope),
    tournament_ids=st.none() | st.frozensets(st.integers(1, 3).map(TournamentId)),
    created_at=st.none(),
    expires_at=st.none(),
    revoked_at=st.none(),
)


@given(_TOKENS, _TOKENS)
def test_nobody_reaches_a_token_that_may_be_used_where_theirs_may_not(mine: Token, theirs: Token) -> None:
    if reaches(mine, theirs) and mine.token_id != theirs.token_id:
        assert mine.scope is Scope.ADMIN or (mine.scope is Scope.WRITE and theirs.scope is Scope.SCORE)
        assert all(mine.allows(TournamentId(number)) for number in range(1, 5) if theirs.allows(TournamentId(number)))


# ── Requests that other pages cause ─────────────────────────────────────────────────────────────────────

FOREIGN: dict[str, dict[str, str]] = {
    "no origin": {"Origin": ""},
    "an opaque origin": {"Origin": "null"},
    "another site": {"Origin": "https://example.org"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "our name in theirs": {"Origin": "http://127.0.0.1.example.org"},
    "a user": {"Origin": "http://127.0.0.1@example.org"},
    "another site, as the browser says": {"Sec-Fetch-Site": "cross-site"},
    "another host of the site": {"Sec-Fetch-Site": "same-site"},
    "typed in": {"Sec-Fetch-Site": "none"},
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("why", FOREIGN)
async def test_no_change_is_made_for_another_page(
    service: Service, season: Season, log: Log, owner: asyncpg.Connection, why: str
) -> None:
    async with visiting(service, season.client.token) as visitor:
        page = f"/console/tournament/{season.client.tournament}/competitors/new"
        before = await log.length()
        for address in (page, f"{CONSOLE}/sign-out", f"{CONSOLE}/sign-in", f"{CONSOLE}/sessions/1/end"):
            headers = {name: text for name, text in {**visitor.origin, **FOREIGN[why]}.items() if text}
            form = b"name=Eve&idempotency_key=k&token=" + (season.client.token or "").encode()
            answer = await visitor.send(
                "POST", address, form, {"Content-Type": "application/x-www-form-urlencoded", **headers}
            )
            assert answer.status == 403, address
            assert "Set-Cookie" not in answer.headers
        assert await log.length() == before
        assert await owner.fetchval("SELECT count(*) FROM session") == 1
        assert (await visitor.get(CONSOLE)).status == 200


async def test_with_tls_the_origin_must_be_one_of_tls(dsn: str) -> None:
    async with serve(dsn, proxies=1) as service, visiting(service, await make_token(service.database)) as visitor:
        visitor.headers = {"X-Forwarded-Proto": "https", "Host": "example.org"}
        for origin, status in (
            ("https://example.org", 303),
            ("https://EXAMPLE.org", 303),
            ("https://example.org:443", 303),
            ("http://example.org", 403),
            ("https://example.org:8443", 403),
        ):
            answer = await visitor.post(f"{CONSOLE}/sign-in", {"token": "x"}, {"Origin": origin})
            assert answer.status == (403 if status == 403 else 401), origin


# ── What else a cookie opens ────────────────────────────────────────────────────────────────────────────


async def test_a_cookie_opens_a_stream_and_no_operation(service: Service, season: Season) -> None:
    async with visiting(service, season.client.token) as visitor:
        below = f"/tournament/{season.client.tournament}"
        for path in ("rankings.json", "competitors.json", "publication.json"):
            assert (await visitor.get(f"{below}/{path}")).status == 401
        assert (await visitor.post(f"{below}/competitors.json", {"name": "Eve"})).status == 401
        assert (await visitor.post(f"{below}/tickets.json")).status == 401
        spectator = Spectator(SSE)
        async with connected(f"{service.url}{below}/events", {**visitor.cookie, "Accept": SSE}) as stream:
            assert stream.status == 200
            await stream.feed(spectator, lambda: bool(spectator.count("caught-up")))
        for foreign in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://example.org"}):
            assert (await visitor.get(f"{below}/events", foreign)).status == 403
        visitor.text = "se_" + "0" * 43
        assert (await visitor.get(f"{below}/events")).status == 401


@pytest.mark.parametrize("end", ["DELETE FROM session", "UPDATE session SET expires_at = now()", "sign out"])
async def test_a_stream_ends_within_five_seconds_of_its_session_and_no_other_does(
    service: Service, season: Season, owner: asyncpg.Connection, end: str
) -> None:
    address = f"{service.url}/tournament/{season.client.tournament}/events"

    async def caught_up(headers: dict[str, str], stack: AsyncExitStack) -> tuple[Connected, Spectator]:
        spectator, stream = Spectator(SSE), await stack.enter_async_context(connected(address, headers))
        await stream.feed(spectator, lambda: bool(spectator.count("caught-up")))
        return stream, spectator

    async with (
        visiting(service, season.client.token) as visitor,
        asyncio.timeout(GUARD_SECONDS),
        AsyncExitStack() as stack,
    ):
        accept = {"Accept": SSE}
        going, _ = await caught_up({**visitor.cookie, **accept}, stack)
        staying, stays = await caught_up({"Authorization": f"Bearer {season.client.token}", **accept}, stack)
        if end == "sign out":
            await visitor.post(f"{CONSOLE}/sign-out")
        else:
            await owner.execute(end)
        async with asyncio.timeout(GUARD_SECONDS):
            while await going.piece():
                pass
        await season.client.post("competitors.json", {"name": "Eve"})
        await staying.feed(stays, lambda: bool(stays.count("CompetitorRegistered")))


async def test_a_session_of_another_tournament_opens_no_stream_of_this_one(service: Service, season: Season) -> None:
    other = await open_new_tournament(service.database, actor=OPERATOR)
    async with visiting(service, await make_token(service.database, Scope.ADMIN, [other])) as visitor:
        assert (await visitor.get(f"/tournament/{season.client.tournament}/events")).status == 404
        assert (await visitor.get(f"/console/tournament/{season.client.tournament}")).status == 404
