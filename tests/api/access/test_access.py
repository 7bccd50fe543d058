"""Who may do what, for every route there is: what is asked is made from the tables of routes and of fields.

What each status means in detail is `test_operations.py`'s matter; here nothing may have been forgotten.
"""

import json
import re
from io import BytesIO
from itertools import product
from typing import Any, Final
from urllib.parse import urlencode

import asyncpg
import pytest

from api.access import auth
from api.access.auth import Scope
from api.interface.declarations import TOURNAMENT, Recall
from api.interface.fields import ID, IDS
from api.interface.operations import ACTIONS, OPERATIONS, STREAMS
from api.interface.public.reads import PUBLIC, PUBLIC_READS
from engine.database.pool import Database
from engine.domain.errors import Unauthenticated
from engine.domain.terms import OPERATOR
from tests.api.asking import (
    BAD,
    NOBODY,
    PLACES,
    WRITES,
    Log,
    ask,
    example_of,
    path_of,
    posting,
    query_of,
    refused,
    with_points,
)
from tests.api.public_boards import Board
from tests.api.rendered import BY_NAME
from tests.api.visitor import routes_below
from tests.bounds import set_bounds
from tests.service import FORM, Answer, Client, Season, Service, make_token, play_season, sent_raw, serve, slug_of
from tests.tournaments import open_new_tournament

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
OPEN: Final = {"/", "/healthz", "/readyz", "/openapi.json", "/docs"}
"""What can be asked without a token."""
NEEDED: Final = {
    f"{PUBLIC}rankings/{{ranking_id}}/explain.json": "?competitor=1",
    f"{PUBLIC}rankings/{{ranking_id}}/expiring.json": "?until=2100-01-01",
    f"{PUBLIC}passage.json": "?ranking=1&at=1",
}
"""What public operations cannot be asked without."""


async def routes_of(service: Service) -> dict[str, set[str]]:
    """Every template that the service answers, and its methods: from what it is found by. Those of the console, which
    a token in a header does not open, are for `web/test_console.py`."""
    routes = await routes_below(service, "/")
    return {template: methods for template, methods in routes.items() if not template.startswith("/console")}


# ── Every route, every method, every bad token ──────────────────────────────────────────────────────────


async def test_whatever_is_not_named_as_open_wants_a_token(service: Service, client: Client) -> None:
    tried = 0
    nobody = service.client(client.tournament, None)
    routes = await routes_of(service)
    public = {template for template in routes if template.startswith(("/board/", "/static/"))}
    declared = {TOURNAMENT + operation.path for operation in (*OPERATIONS, *STREAMS)}
    declared |= {action.address for action in ACTIONS}
    assert {PUBLIC + operation.path for operation in PUBLIC_READS} < public
    assert routes.keys() - public == declared | OPEN | {"/metrics"}
    for (template, taken), method in product(routes.items(), METHODS):
        if method == "CONNECT":  # has no path
            continue
        address = re.sub(r"{\w+[.]*}", "1", template.replace("{tournament}", client.tournament))
        address += NEEDED.get(template, "") if template in public else ""
        for why, authorization in BAD.items():
            headers = {} if authorization is None else {"Authorization": authorization}
            answer = await nobody.send(method, address, None, headers)
            open_ = 404 if template in public else 200 if template in OPEN else 401  # nothing is published
            expected = 405 if method not in taken else 200 if method == "OPTIONS" else open_
            assert answer.status == expected, (method, template, why)
            assert ("WWW-Authenticate" in answer.headers) == (expected == 401)
            tried += 1
    assert tried == len(routes) * (len(METHODS) - 1) * len(BAD)


async def test_a_refusal_is_the_same_whatever_there_is_behind_it(service: Service, season: Season) -> None:
    nobody = service.client(season.client.tournament, auth.text_of("0" * 30))
    for name in BY_NAME:
        answers = []
        for tournament, number in ((season.client.tournament, None), ("nowhere", NOBODY)):
            path = path_of(name, season) if number is None else re.sub(r"{\w+}", str(number), name.split()[1])
            answers.append(await nobody.send(name.split()[0], f"/tournament/{tournament}/{path}"))
        assert [answer.status for answer in answers] == [401, 401]
        assert answers[0].body == answers[1].body


# ── Ids of others ───────────────────────────────────────────────────────────────────────────────────────


def test_every_field_that_takes_an_id_is_among_the_places_that_are_tried() -> None:
    tried = {(place.split()[0], field) for place, fill in PLACES.items() for field in _fields(fill)}
    for name, operation in BY_NAME.items():
        for field in operation.fields:
            names_somebody = field.type in (ID, IDS) or field.name == "participants_delta"
            if name in WRITES and names_somebody:
                assert (name.split()[0], field.name) in tried, (name, field)


def _fields(fill: Any) -> set[str]:
    season = Season(None, [1, 2, 3], 4, 5, 6, 7, 8)  # type: ignore[arg-type]
    path, form = fill(season, 99)
    return {field.partition("[")[0] for field, value in form.items() if "99" in f"{field}{value}"} | {path}


async def test_a_query_for_an_id_of_another_tournament_is_one_for_nothing(
    service: Service, season: Season, subtests: pytest.Subtests
) -> None:
    other = await open_new_tournament(service.database, actor=OPERATOR)
    theirs = await play_season(service.client(await slug_of(service.database, other), season.client.token))
    foreign = [*theirs.ids, theirs.ranking_id, theirs.unity_id, theirs.competition_id]
    for name, operation in BY_NAME.items():
        if not isinstance(operation, Recall):
            continue
        for field in operation.fields:
            if field.type is not ID:
                continue
            beside, status = example_of(name), 404
            if field.name == "around":  # a window, which names who is in the ranking
                beside, status = beside | {"span": 1}, 422
            with subtests.test(f"{name} {field.name}"):
                bodies = set()
                for it in (NOBODY, *foreign):
                    answer = await season.client.get(f"{path_of(name, season)}?{urlencode(beside | {field.name: it})}")
                    assert answer.status == status, answer.body
                    bodies.add(re.sub(rb"\b%d\b" % it, b"N", answer.body))
                assert len(bodies) == 1
    for it in (NOBODY, theirs.ranking_id):
        for name in (n for n in BY_NAME if n.startswith("GET") and "{" in n):
            path = re.sub(r"{\w+}", str(it), name.split()[1])
            answer = await season.client.get(path + query_of(name))
            assert answer.status == 404


async def test_a_token_of_one_tournament_reaches_no_other_by_whatever_operation(
    service: Service, season: Season, log: Log
) -> None:
    other = await open_new_tournament(service.database, actor=OPERATOR)
    token = await make_token(service.database, Scope.ADMIN, [other])
    stranger = service.client(season.client.tournament, token)
    before, pairs = await log.length(), 0
    for name in BY_NAME:
        for key in ({}, {"Idempotency-Key": "k"}):
            refused(await ask(name, season, stranger, key), 404)
            pairs += 1
    assert pairs == 2 * len(BY_NAME)
    assert await log.length() == before


# ── Fields that are not theirs to set ───────────────────────────────────────────────────────────────────

OURS: Final = (
    *("sequence", "digest", "version", "created_at", "updated_at", "recorded_at", "closed_at", "scope", "actor", "id"),
    *("tournament", "tournament_id", "token", "token_id", "position", "total", "general", "level", "lft", "rgt"),
    *("has_result", "append_id", "fingerprint", "hash", "voided", "reverses", "kind", "body", "competitor_id"),
)


async def test_what_is_ours_to_say_is_no_field_of_theirs(season: Season, log: Log) -> None:
    season = await with_points(season)
    before = await log.length()
    for name in WRITES:
        send = season.client.post if name.startswith("POST") else season.client.put
        theirs = {field.name for field in BY_NAME[name].fields}
        ours = [field for field in OURS if field not in theirs]  # the event to reverse is theirs to name
        form = example_of(name) | dict.fromkeys(ours, "1")
        refused(await send(path_of(name, season), form), 422, *ours)
    assert await log.length() == before


# ── Guessing ────────────────────────────────────────────────────────────────────────────────────────────


async def test_guesses_cost_no_query_once_there_are_too_many(
    dsn: str, season: Season, owner: asyncpg.Connection
) -> None:
    async with serve(dsn, failures_at_once=3) as careful:
        wrong = [careful.client(season.client.tournament, f"tb_{n:036}") for n in range(2)]
        right = [careful.client(season.client.tournament, auth.text_of(f"{n:030}")) for n in range(20)]
        assert [(await guess.get("rankings.json")).status for guess in (*wrong, right[0])] == [401] * 3
        async with owner.transaction():
            await owner.execute("LOCK TABLE token")  # who asks it now has to wait
            assert {(await guess.get("rankings.json")).status for guess in right} == {429}


async def test_a_wrong_checksum_costs_no_query(service: Service, client: Client, owner: asyncpg.Connection) -> None:
    async with owner.transaction():
        await owner.execute("LOCK TABLE token")
        for n in range(200):
            guess = service.client(client.tournament, f"tb_{n:036}")
            assert (await guess.get("rankings.json")).status == 401


async def test_look_ups_take_their_time_from_that_of_the_read(
    dsn: str, season: Season, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that has no time left waits for no token that is unknown, and for no tournament that is not in memory."""
    async with serve(dsn) as fresh:
        slug, live_pool = season.client.tournament, fresh.desk.live_pool
        first, second = [fresh.client(slug, await make_token(fresh.database)) for _ in range(2)]
        assert (await first.get("rankings.json")).status == 200
        with monkeypatch.context() as over:
            set_bounds(over, READ_SECONDS_MAX=-1.0)
            assert (await second.get("rankings.json")).status == 503
            for live in [*live_pool._tournaments.values()]:
                live_pool.drop(live)
            assert (await first.get("rankings.json")).status == 503
            assert (await Board(fresh, slug).get("tournament.json")).status == 503
        assert (await second.get("rankings.json")).status == 200


def test_what_is_kept_of_a_token_is_found_by_its_hash_alone() -> None:
    assert "hash = $1" in auth._BY_HASH
    assert not re.search(r"\b(text|secret)\b", auth._BY_HASH)
    assert Unauthenticated.code == "unauthenticated"


# ── Secrets ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_no_secret_is_said_again_anywhere(
    service: Service,
    season: Season,
    database: Database,
    owner: asyncpg.Connection,
    log_lines: BytesIO,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("DEBUG")
    revoked = await make_token(database)
    await owner.execute("UPDATE token SET revoked_at = now() WHERE token_id = (SELECT max(token_id) FROM token)")
    reader, unknown = await make_token(database, Scope.READ), auth.text_of("s" * 30)
    tokens = [season.client.token or "", revoked, reader, unknown]
    secret = "what-only-the-body-says"
    answers: list[Answer] = []
    for token in tokens:
        client = service.client(season.client.tournament, token)
        answers += [await ask(name, season, client, {"X-Secret": secret, "Cookie": secret}) for name in BY_NAME]
        path = f"/tournament/{client.tournament}/competitors.json"
        bodies = (f"name={secret}%zz".encode(), f"{secret}".encode(), b"name=\xff" + secret.encode())
        answers += [await client.send("POST", path, body, {"Content-Type": FORM}) for body in bodies]
        answers.append(await client.send("POST", path, secret.encode(), {"Content-Type": "text/plain"}))
        answers.append(await client.get("rankings.json", {"Idempotency-Key": secret}))
        for broken in (
            posting(client, "Content-Length: x"),
            posting(client, "X: " + "a" * 9_000),
            posting(client)[:-4],
        ):
            status, text = await sent_raw(service, broken + b"\0\r\n\r\n") or (0, b"")
            assert status in (400, 431)
            answers.append(Answer(status, answers[0].headers, text))
    metrics = await season.client.send("GET", "/metrics")
    kept = await owner.fetch("SELECT token::text FROM token")
    said = {
        "log": log_lines.getvalue().decode(),
        "other log": caplog.text + "".join(capfd.readouterr()),
        "answers": "".join(answer.body.decode() + str(answer.headers) for answer in answers),
        "metrics": metrics.body.decode(),
        "database": json.dumps([row[0] for row in kept]),
    }
    assert {answer.status for answer in answers} >= {200, 400, 401, 403, 415, 431}
    assert len(said["log"]) > 10_000
    for where, text in said.items():
        for token in tokens:
            assert token not in text, where
            assert token[3:33] not in text, where
        assert secret not in text, where


async def test_a_defect_is_reported_to_the_operator_and_not_to_the_client(
    service: Service, season: Season, log_lines: BytesIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise RuntimeError("internals at /a/path")

    monkeypatch.setattr("api.interface.handlers.fingerprint", defect)
    answer = await season.client.post("competitors.json", {"name": "Dan"}, {"Idempotency-Key": "k"})
    refused(answer, 500)
    assert b"internals" not in answer.body
    assert b"Traceback" not in answer.body
    assert b"internals at /a/path" in log_lines.getvalue()
