"""Where the interface is silent: what was decided, row by row of the design's table."""

import asyncio
import json
import pkgutil
import re
from collections.abc import AsyncIterator
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from io import BytesIO
from random import Random
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import asyncpg
import pytest
from msgspec import structs

from api.access import auth
from api.access.auth import Scope
from api.http.forms import BODY_BYTES_MAX, FORM_FIELDS_MAX
from api.interface import operations, resources
from api.interface.declarations import TOURNAMENT, Write, name_of
from engine.database.pool import Database
from engine.domain.terms import OPERATOR, TournamentId
from projections.tables.worker import Worker
from tests.api.asking import (
    BAD,
    NOBODY,
    NOWHERE,
    OPERATIONS,
    PLACES,
    POSSIBLE,
    READS,
    TAGGED,
    WRITES,
    Log,
    ask,
    every_write,
    example_of,
    keyed,
    path_of,
    query_of,
    refused,
    with_points,
)
from tests.api.rendered import BY_NAME
from tests.bounds import Bounds, set_bounds
from tests.desks import GUARD_SECONDS
from tests.poison import POISONS, append_text
from tests.service import (
    FORM,
    Client,
    Season,
    Service,
    create_ranking,
    deltas,
    listed,
    make_token,
    play_season,
    register,
    sent_raw,
    serve,
    slug_of,
    totals,
)
from tests.shares import every
from tests.tournaments import open_new_tournament

_TOURNAMENT_ID = "SELECT tournament_id FROM tournament WHERE slug = $1"


@pytest.fixture
async def season(season: Season) -> Season:
    return await with_points(season)


# ── What the tests of this page are made of ─────────────────────────────────────────────────────────────


NOT_ASKED_FOR: Final = {"caused", "only", "only_of", "named", "head", "next_reveal"}
"""Fields of commands that the desk fills in, or that only the command line gives."""


def test_all_that_resources_declare_is_served() -> None:
    for found in pkgutil.iter_modules(resources.__path__):
        module = import_module(f"{resources.__name__}.{found.name}")
        assert {*map(name_of, getattr(module, "OPERATIONS", ()))} <= BY_NAME.keys(), found.name


@every_write
def test_every_field_of_a_command_is_in_the_path_or_asked_for(name: str) -> None:
    operation = BY_NAME[name]
    assert isinstance(operation, Write)
    asked = [field.argument or field.name for field in operation.fields]
    given = {*re.findall(r"{(\w+)}", operation.path), *operation.new_ids.values(), *asked}
    assert {field.name for field in structs.fields(operation.command)} - NOT_ASKED_FOR == given


def test_every_operation_that_needs_fields_has_an_example() -> None:
    for name in OPERATIONS:
        assert {field.name for field in BY_NAME[name].fields if field.required} <= BY_NAME[name].example.keys(), name
    assert len(OPERATIONS) == len(operations.OPERATIONS)


@pytest.fixture
async def other_id(database: Database) -> TournamentId:
    return await open_new_tournament(database, actor=OPERATOR)


@pytest.fixture
async def other(client: Client, service: Service, other_id: TournamentId) -> Client:
    """A client of the same service with the same token, for another tournament."""
    return service.client(await slug_of(service.database, other_id), client.token)


# ── Authentication ──────────────────────────────────────────────────────────────────────────────────────

EVERYWHERE = [
    *OPERATIONS,
    *(name.replace("GET", "HEAD") for name in READS),
    "GET /metrics",
]


async def test_nothing_is_answered_without_a_good_token(
    service: Service, client: Client, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for name in EVERYWHERE:
        with subtests.test(name):
            bad = dict(BAD)
            for end in ("revoked_at", "expires_at"):
                text = await make_token(service.database)
                await owner.execute(
                    f"UPDATE token SET {end} = now() WHERE token_id = (SELECT max(token_id) FROM token)"
                )
                bad[end] = f"Bearer {text}"
            method, path = name.split()
            address = path if path.startswith("/") else f"/tournament/{client.tournament}/{path}"
            address = re.sub(r"{\w+}", "1", address)
            nobody = service.client(client.tournament, None)
            answers = {
                why: await nobody.send(method, address, None, {} if text is None else {"Authorization": text})
                for why, text in bad.items()
            }
            assert {why: answer.status for why, answer in answers.items()} == dict.fromkeys(bad, 401)
            assert all(answer.headers["WWW-Authenticate"].startswith("Bearer") for answer in answers.values())
            assert len({answer.body for answer in answers.values()}) == 1  # no word on what is wrong with a token
            if method != "HEAD":
                refused(answers["none"], 401)


async def test_a_token_is_accepted_in_the_header_only_under_any_case_of_bearer(
    service: Service, client: Client
) -> None:
    nobody = service.client(client.tournament, None)
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert (await nobody.get("rankings.json", {"Authorization": f"{scheme} {client.token}"})).status == 200
    assert (await nobody.get(f"rankings.json?token={client.token}")).status == 401
    assert (await nobody.post("competitors.json", {"name": "Ada", "token": client.token})).status == 401


async def test_each_scope_reaches_as_far_as_it_should(
    service: Service, season: Season, log: Log, subtests: pytest.Subtests
) -> None:
    clients = {
        scope: service.client(season.client.tournament, await make_token(service.database, scope)) for scope in Scope
    }
    for name in OPERATIONS:
        with subtests.test(name):
            is_read = name in READS and not name.endswith(("preview.json", "participants.json"))
            needed = Scope.READ if is_read else Scope.WRITE
            if any(
                word in name
                for word in (
                    "close",
                    "reopen",
                    "void",
                    "strike",
                    "reverse",
                    "erase",
                    "export",
                    "PUT publication",
                    "PUT presentation",
                    "visibility",
                    "PUT tournament.json",
                    "archive",
                    "restore",
                    "delete",
                )
            ):
                needed = Scope.ADMIN
            before = await log.length()
            for scope in Scope:
                if scope < needed:
                    refused(await ask(name, season, clients[scope]), 403)
            assert await log.length() == before
            assert (await ask(name, season, clients[needed])).status == 200


async def test_metrics_are_for_admins(service: Service, client: Client, subtests: pytest.Subtests) -> None:
    for scope in Scope:
        with subtests.test(scope.text):
            reader = service.client(client.tournament, await make_token(service.database, scope))
            answer = await reader.send("GET", "/metrics")
            if scope is Scope.ADMIN:
                assert answer.status == 200
                assert b"tallybook_request_seconds_count{" in answer.body
            else:
                refused(answer, 403)


async def test_a_tournament_that_the_token_is_not_for_is_one_that_does_not_exist(
    service: Service, season: Season, other: Client, other_id: TournamentId, log: Log, subtests: pytest.Subtests
) -> None:
    for name in OPERATIONS:
        with subtests.test(name):
            before = await log.length()
            token = await make_token(service.database, tournament_ids=[other_id])
            foreign = await ask(name, season, service.client(season.client.tournament, token))
            missing = await ask(name, season, service.client(NOWHERE, token))
            refused(foreign, 404)
            assert foreign.body == missing.body
            assert foreign.headers.keys() == missing.headers.keys()
            assert await log.length() == before
            assert (await service.client(other.tournament, token).get("rankings.json")).status == 200


@pytest.mark.long
async def test_a_token_ends_within_five_seconds_everywhere(
    service: Service, peer: Service, client: Client, owner: asyncpg.Connection
) -> None:
    expiring = await make_token(service.database)
    async with owner.transaction():
        await owner.execute(
            "UPDATE token SET expires_at = now() + interval '1 second' WHERE hash = $1",
            sha256(expiring.encode()).digest(),
        )
    clients = [s.client(client.tournament, expiring) for s in (service, peer)]
    assert [(await one.get("rankings.json")).status for one in clients] == [200] * 2
    async with asyncio.timeout(5):
        await assert_that_tokens_end(service, peer, client, owner)
    assert [(await one.get("rankings.json")).status for one in clients] == [401] * 2


async def test_a_token_ends_everywhere(
    service: Service, peer: Service, client: Client, owner: asyncpg.Connection
) -> None:
    assert auth.KEPT_SECONDS_MAX < 5
    await assert_that_tokens_end(service, peer, client, owner)


async def assert_that_tokens_end(service: Service, peer: Service, client: Client, owner: asyncpg.Connection) -> None:
    revoked, cut_short = [await make_token(service.database) for _ in range(2)]
    clients = [s.client(client.tournament, token) for s in (service, peer) for token in (revoked, cut_short)]

    async def set_end(text: str, end: str) -> None:
        await owner.execute(f"UPDATE token SET {end} WHERE hash = $1", sha256(text.encode()).digest())

    for one in clients:
        assert (await one.get("rankings.json")).status == 200
    await set_end(revoked, "revoked_at = now()")
    await set_end(cut_short, "expires_at = now()")

    async def ended(one: Client) -> None:
        while (await one.get("rankings.json")).status == 200:
            pass

    async with asyncio.timeout(GUARD_SECONDS):
        await asyncio.gather(*map(ended, clients))
    assert [(await one.get("rankings.json")).status for one in clients] == [401] * 4


async def test_an_id_of_another_tournament_is_one_that_nothing_has(
    season: Season, other: Client, log: Log, subtests: pytest.Subtests
) -> None:
    theirs = await with_points(await play_season(other))
    before = await log.length()
    all_of_theirs = [*theirs.ids, theirs.ranking_id, theirs.unity_id, theirs.closed_ranking_id, theirs.competition_id]
    for place, request in PLACES.items():
        with subtests.test(place):
            bodies = set()
            for it in (NOBODY, *all_of_theirs):
                path, form = request(season, it)
                answer = await (season.client.post if place.startswith("POST") else season.client.put)(path, form)
                assert answer.status == (404 if str(it) in path else 422)
                bodies.add(re.sub(rb"\b%d\b" % it, b"N", answer.body))
            assert len(bodies) == 1
    assert await log.length() == before


# ── Errors ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_refusal_lists_every_fault_in_words_that_help(season: Season) -> None:
    form = {"main_unity_name": "", "participants": f"{NOBODY},{season.ids[0]},{season.ids[0]}", "closed": "yes"}
    messages = refused(await season.client.post("rankings.json", form), 422, "name", "main_unity_name", "closed")
    assert messages == [
        "is required",
        "is required",
        "is not a field of this operation; it takes name, main_unity_name, participants, description, main_unity_sort, "
        "main_unity_decimals, main_unity_time, main_unity_counts, main_unity_lasts, main_unity_expires_on, "
        "main_unity_absent",
    ]
    form = {"name": "x" * 256, "main_unity_name": "\t", "participants": f"{NOBODY},{season.ids[0]},{season.ids[0]}"}
    messages = refused(
        await season.client.post("rankings.json", form), 422, "name", "main_unity_name", "participants", "participants"
    )
    assert messages == [
        "must have at most 255 characters",
        "must not be empty",
        f"competitor {NOBODY} is not in this tournament",
        f"competitor {season.ids[0]} is named more than once",
    ]


PATHS = [*sorted({TOURNAMENT + operation.path for operation in BY_NAME.values()}), "/healthz", "/readyz", "/metrics"]


async def test_405_says_which_methods_an_address_takes(client: Client, subtests: pytest.Subtests) -> None:
    for path in PATHS:
        with subtests.test(path):
            taken = {name.split()[0] for name in OPERATIONS if TOURNAMENT + name.split()[1] == path} or {"GET"}
            taken |= {"HEAD"} if "GET" in taken else set()
            address = re.sub(r"{\w+}", "1", path.replace("{tournament}", client.tournament))
            for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - taken:
                answer = await client.send(method, address)
                assert answer.status == 405
                assert answer.headers["Allow"] == ", ".join(sorted(taken))
                if method != "HEAD":
                    refused(answer, 405)


async def test_500_is_an_outcome_that_nobody_knows_yet_and_the_key_resolves_it(
    season: Season, owner: asyncpg.Connection, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await log.length()
    name = "PUT rankings/{ranking_id}/add.json"
    async with owner.transaction():
        # Somebody is in the way for longer than clients wait.
        tournament_id = await owner.fetchval(_TOURNAMENT_ID, season.client.tournament)
        await owner.execute("SELECT FROM append_lock WHERE tournament_id = $1 FOR UPDATE", tournament_id)
        with monkeypatch.context() as patience:
            set_bounds(patience, SUBMIT_SECONDS_MAX=0.2)
            refused(await ask(name, season, season.client, keyed("k")), 500)
    answer = await ask(name, season, season.client, keyed("k"))
    assert (answer.status, answer.headers["Idempotency-Replayed"]) == (200, "true")
    assert totals(answer)[season.ids[0]] == 3
    assert await log.length() == before + 1


@pytest.mark.one_in(8)
@every_write
async def test_503_is_certainly_not_applied_and_says_when_to_retry(
    season: Season, other: Client, owner: asyncpg.Connection, log: Log, bounds: Bounds, name: str
) -> None:
    bounds(APPEND_ATTEMPTS_MAX=1)
    before = await log.length()
    async with owner.transaction():
        tournament_id = await owner.fetchval(_TOURNAMENT_ID, season.client.tournament)
        await owner.execute("SELECT FROM append_lock WHERE tournament_id = $1 FOR UPDATE", tournament_id)
        held_up = asyncio.create_task(ask(name, season, season.client))
        assert (await other.post("competitors.json", {"name": "Ada"})).status == 200  # others need not wait
        answer = await held_up
    refused(answer, 503)
    assert int(answer.headers["Retry-After"]) >= 1
    assert await log.length() == before + 1
    assert (await ask(name, season, season.client)).status == 200


async def test_503_answers_what_is_too_much(
    season: Season, log: Log, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for name in WRITES:
        with subtests.test(name):
            before = await log.length()
            with monkeypatch.context() as full:
                set_bounds(full, WAITING_BYTES_MAX=-1)
                answer = await ask(name, season, season.client)
            refused(answer, 503)
            assert answer.headers["Retry-After"] in ("1", "2")
            assert await log.length() == before


async def test_503_answers_what_would_change_something_when_the_service_is_closing(
    service: Service, season: Season, log: Log
) -> None:
    before = await log.length()
    await service.desk.close()
    for name in WRITES:
        answer = await ask(name, season, season.client)
        refused(answer, 503)
        assert answer.headers["Retry-After"] == "1"
    assert await log.length() == before


async def test_without_a_database_everything_is_503_until_it_is_back(cluster: str, dsn: str, season: Season) -> None:
    name = urlsplit(dsn).path[1:]
    administrator = await asyncpg.connect(cluster)
    try:
        await administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
        answers = [
            await season.client.send("GET", "/readyz"),
            await season.client.send("GET", f"/tournament/{NOWHERE}/rankings.json"),
            await ask("GET rankings.json", season, season.client),
            await ask(WRITES[0], season, season.client),
        ]
        for answer in answers:
            refused(answer, 503)
            assert int(answer.headers["Retry-After"]) >= 1
        assert (await season.client.send("GET", "/healthz")).status == 200
    finally:
        await administrator.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await administrator.close()
    assert (await season.client.send("GET", "/readyz")).status == 200
    assert (await ask("GET rankings.json", season, season.client)).status == 200
    assert (await ask(WRITES[0], season, season.client)).status == 200


# ── All or nothing ──────────────────────────────────────────────────────────────────────────────────────


async def test_points_are_added_all_or_none(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for place in [place for place in PLACES if place.startswith("PUT points")]:
        with subtests.test(place):
            before = await log.length()
            path, form = PLACES[place](season, NOBODY)
            assert (await season.client.put(path, form)).status in (404, 422)
            assert await log.length() == before
            same = await season.client.put(
                f"{season.path}.json", {"main_unity_name": "points", "participants": listed(season.ids)}
            )
            assert totals(same) == dict.fromkeys(season.ids, 0)
            assert [unity["version"] for unity in same.json["ranking"]["unities"]] == [2, 1]


async def test_a_modification_is_done_whole_or_not_at_all(season: Season) -> None:
    before = await season.client.get("rankings.json")
    form = {"name": "New", "main_unity_name": "fouls", "participants": season.ids[1], "description": "New"}
    refused(await season.client.put(f"{season.path}.json", form), 422, "main_unity_name")
    assert (await season.client.get("rankings.json")).body == before.body


# ── Idempotency ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_repeat_with_the_same_key_is_answered_as_the_first_was(
    season: Season, log: Log, subtests: pytest.Subtests
) -> None:
    for name in POSSIBLE:
        with subtests.test(name):
            before, key = await log.length(), keyed(BY_NAME[name].operation_id)
            first = await ask(name, season, season.client, key)
            assert "Idempotency-Replayed" not in first.headers
            for _ in range(3):
                repeat = await ask(name, season, season.client, key)
                assert (repeat.status, repeat.body) == (first.status, first.body)
                assert repeat.headers["Idempotency-Replayed"] == "true"
                assert repeat.headers["Tallybook-Sequence"] == first.headers["Tallybook-Sequence"]
            assert await log.length() == before + 1


@pytest.mark.one_in(8)
@every_write
async def test_repeats_at_once_by_two_services_count_once(
    season: Season, peer: Service, peers_client: Client, log: Log, name: str
) -> None:
    before = await log.length()
    clients = [season.client, peers_client] * 5
    answers = await asyncio.gather(*(ask(name, season, client, keyed("k")) for client in clients))
    assert [answer.status for answer in answers] == [200] * 10
    assert len({answer.body for answer in answers}) == 1
    assert len({answer.headers["Tallybook-Sequence"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == 9
    assert await log.length() == before + 1


async def test_each_of_many_keys_counts_once_however_often_it_comes_and_by_whichever_service(
    season: Season, peers_client: Client, log: Log
) -> None:
    before, random = await log.length(), Random(28)
    add, register_one = WRITES[0], "POST competitors.json"
    sent = [f"{name}-{n}" for n in range(100) for name in ("add", "register") for _ in range(random.randint(1, 10))]
    random.shuffle(sent)

    async def send(key: str) -> tuple[str, str | int, bool]:
        name = add if key.startswith("add") else register_one
        answer = await ask(name, season, random.choice([season.client, peers_client]), keyed(key))
        while answer.status == 503:  # a busy machine: it was not applied
            answer = await ask(name, season, random.choice([season.client, peers_client]), keyed(key))
        assert answer.status == 200
        # Points are answered with the current standing, which others change meanwhile.
        shown = answer.headers["Tallybook-Sequence"] if name == add else answer.json["competitor"]["id"]
        return key, shown, "Idempotency-Replayed" in answer.headers

    answers = await asyncio.gather(*map(send, sent))
    assert len({(key, shown) for key, shown, _ in answers}) == 200
    assert sorted(key for key, _, replayed in answers if not replayed) == sorted(set(sent))
    assert await log.length() == before + 200
    same = await season.client.put(
        f"{season.path}.json", {"main_unity_name": "points", "participants": listed(season.ids)}
    )
    assert totals(same)[season.ids[0]] == 100 * 3


async def test_a_repeat_shows_the_same_resource_as_it_is_now(season: Season) -> None:
    name = "POST rankings.json"
    created = (await ask(name, season, season.client, keyed("k"))).json["ranking"]
    await season.client.put(
        f"rankings/{created['id']}.json", {"name": "Shield", "main_unity_name": "points", "participants": season.ids[0]}
    )
    repeat = (await ask(name, season, season.client, keyed("k"))).json
    assert repeat["message"] == "added"
    assert repeat["ranking"]["id"] == created["id"]
    assert repeat["ranking"]["name"] == "Shield"


async def test_a_key_is_up_to_255_visible_ascii_characters(season: Season, subtests: pytest.Subtests) -> None:
    for key in ("!", "~" * 255, 'a,b;c="d"\'e\\f'):
        with subtests.test(key[:20]):
            first = await ask(WRITES[0], season, season.client, keyed(key))
            repeat = await ask(WRITES[0], season, season.client, keyed(key))
            assert (first.status, repeat.headers["Idempotency-Replayed"]) == (200, "true")
            refused(
                await ask(WRITES[0], season, season.client, keyed(key), competition_id=season.competition_id),
                422,
                "Idempotency-Key",
            )


async def test_what_is_no_key_is_400(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for name in WRITES:
        with subtests.test(name):
            before = await log.length()
            for key in ("", "~" * 256, "a b", "a\tb", "é", "\u0661"):
                refused(await ask(name, season, season.client, keyed(key)), 400)
            assert await log.length() == before


async def test_two_keys_are_400(service: Service, season: Season, log: Log) -> None:
    before = await log.length()
    request = (
        f"POST /tournament/{season.client.tournament}/competitors.json HTTP/1.1\r\nHost: a\r\nContent-Type: {FORM}\r\n"
        f"Authorization: Bearer {season.client.token}\r\nContent-Length: 8\r\n"
        "Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\nname=Ada"
    )
    status, _ = await sent_raw(service, request.encode()) or (0, b"")
    assert status == 400
    assert await log.length() == before


async def test_the_same_key_with_another_request_is_422(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    assert (await ask("POST competitors.json", season, season.client, keyed("k"), name="Eve")).status == 200
    before = await log.length()
    for name in WRITES:
        with subtests.test(name):
            answer = await ask(name, season, season.client, keyed("k"))
            assert refused(answer, 422, "Idempotency-Key") == ["was used for another request"]
            assert await log.length() == before


async def test_another_request_is_one_with_other_fields_or_another_address(season: Season, log: Log) -> None:
    ada, ben, _ = season.ids
    form = {"participants_delta": deltas((ada, season.unity_id, 3)), "competition_id": season.competition_id}
    assert (await season.client.put(f"{season.path}/add.json", form, keyed("k"))).status == 200
    before = await log.length()
    for others in (
        form | {"participants_delta": deltas((ada, season.unity_id, 4))},
        form | {"participants_delta": deltas((ben, season.unity_id, 3))},
        form | {"competition_id": ""},
        {"participants_delta": form["participants_delta"]},
    ):
        refused(await season.client.put(f"{season.path}/add.json", others, keyed("k")), 422, "Idempotency-Key")
    elsewhere = f"rankings/{(await create_ranking(season.client, [ada]))['id']}/add.json"
    refused(await season.client.put(elsewhere, form, keyed("k")), 422, "Idempotency-Key")
    assert await log.length() == before + 1  # that was the other ranking


async def test_neither_the_order_of_fields_nor_how_they_are_encoded_makes_another_request(season: Season) -> None:
    first = await season.client.post("competitors.json", b"name=Zo%C3%AB&color=c0ffee", keyed("k"))
    again = await season.client.post("competitors.json", "color=%63%30ffee&name=Zoë".encode(), keyed("k"))
    assert first.status == 200
    assert (again.body, again.headers["Idempotency-Replayed"]) == (first.body, "true")


async def test_a_key_means_nothing_in_another_tournament(season: Season, other: Client) -> None:
    mine = await season.client.post("competitors.json", {"name": "Ada"}, keyed("k"))
    theirs = await other.post("competitors.json", {"name": "Ada"}, keyed("k"))
    assert theirs.status == 200
    assert "Idempotency-Replayed" not in theirs.headers
    assert theirs.json["competitor"]["id"] != mine.json["competitor"]["id"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "name", [name for name in WRITES if "{ranking_id}" in name and "close" not in name and "reopen" not in name]
)
async def test_a_retry_after_closing_is_answered_as_accepted(
    season: Season, peers_client: Client, log: Log, name: str
) -> None:
    first = await ask(name, season, season.client, keyed("k"))
    await season.client.put(f"{season.path}/close.json")
    before = await log.length()
    for client in (season.client, peers_client):
        repeat = await ask(name, season, client, keyed("k"))
        assert (repeat.status, repeat.headers["Idempotency-Replayed"]) == (200, "true")
        assert repeat.headers["Tallybook-Sequence"] == first.headers["Tallybook-Sequence"]
        refused(await ask(name, season, client, keyed("a-new-one")), 409)
        refused(await ask(name, season, client), 409)
    assert await log.length() == before


async def test_a_refusal_does_not_use_the_key_up(season: Season) -> None:
    add = WRITES[0]
    refused(await ask(add, season, season.client, keyed("k"), participants_delta="[]"), 422, "participants_delta")
    await season.client.put(f"{season.path}/close.json")
    refused(await ask(add, season, season.client, keyed("k")), 409)
    await season.client.put(f"{season.path}/reopen.json")
    answer = await ask(add, season, season.client, keyed("k"))
    assert answer.status == 200
    assert "Idempotency-Replayed" not in answer.headers
    assert totals(answer)[season.ids[0]] == 3


# ── The result of a write, and where it is sent ─────────────────────────────────────────────────────────


async def test_a_write_says_which_event_it_became(
    season: Season, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for name in POSSIBLE:
        with subtests.test(name):
            answer = await ask(name, season, season.client)
            assert (answer.status, answer.json["status"]) == (200, 200)
            assert answer.json["message"] == ("added" if name.startswith("POST") else "ok")
            event = await owner.fetchrow("SELECT sequence, actor FROM event ORDER BY sequence DESC LIMIT 1")
            assert int(answer.headers["Tallybook-Sequence"]) == event["sequence"]
            assert event["actor"] == await owner.fetchval("SELECT max(token_id) FROM token")


async def test_an_unknown_tournament_and_another_suffix_are_404(
    service: Service, season: Season, subtests: pytest.Subtests
) -> None:
    for name in OPERATIONS:
        with subtests.test(name):
            refused(await ask(name, season, service.client(NOWHERE, season.client.token)), 404)
            refused(await ask(name, season, service.client(season.client.tournament.upper(), season.client.token)), 404)
            method, path = name.partition(" ")[0], path_of(name, season)
            stem = f"/tournament/{season.client.tournament}/{path.removesuffix('.json')}"
            for address in (stem, f"{stem}.xml", f"{stem}.JSON", f"{stem}.json/", f"{stem}.json.json", f"{stem}.jso"):
                refused(await season.client.send(method, address), 404)


NO_SLUGS = [
    "%00",
    "a%00b",
    "%FF",
    "%ED%A0%80",
    "%E2%82%AC",
    "%2F",
    "..%2F..",
    "'; DROP TABLE event;--",
    "x" * 7000,
    "%",
]


async def test_what_cannot_be_a_tournament_is_404(client: Client, subtests: pytest.Subtests) -> None:
    for slug in NO_SLUGS:
        with subtests.test(slug):
            address = f"/tournament/{slug.replace(' ', '%20')}/rankings.json"
            refused(await client.send("GET", address), 404)
            refused(await client.send("POST", address, b"", {"Content-Type": FORM}), 404)


async def test_what_cannot_be_an_id_is_404(season: Season) -> None:
    for text in ("0", "-1", "+1", "01", "1.0", "1e3", "%D9%A1", str(2**63), "9" * 5000, "x", "%00", "%20", "%FF"):
        for path, form in (
            (f"rankings/{text}/add.json", example_of(WRITES[0])),
            (f"rankings/{text}.json", {"main_unity_name": "p", "participants": season.ids[0]}),
            (f"competitors/{text}.json", {}),
            (f"competitions/{text}.json", {}),
        ):
            refused(await season.client.put(path, form), 404)


# ── Operations that are ours, and closing ───────────────────────────────────────────────────────────────


async def test_a_competitor_may_change_in_part(season: Season) -> None:
    ada, ben, pair = season.ids
    await season.client.put(f"competitors/{pair}.json", {"name": "Duo"})
    listing = (await season.client.get("competitors.json")).json["competitors"]["competitor"]
    (changed,) = [competitor for competitor in listing if competitor["id"] == pair]
    assert (changed["name"], changed["color"], changed["level"]) == ("Duo", "c0ffee", 1)
    assert changed["tags"] == [{"name": "doubles"}, {"name": "mixed"}]
    answer = await season.client.put(f"competitors/{ada}.json", {"parent": pair})
    assert refused(answer, 422, "parent") == [f"competitor {pair} is below competitor {ada}"]
    answer = await season.client.put(f"competitors/{ben}.json", {"tags": "new", "color": "FFFFFF", "parent": pair})
    changed = answer.json["competitor"]
    assert (changed["name"], changed["color"], changed["level"]) == ("Ben", "FFFFFF", 2)
    assert changed["tags"] == [{"name": "new"}]


NO_COLORS = ["fff", "#c0ffee", "c0ffeg", "c0ffee0", "\u0660" * 6, "\u217d0ffee"]


async def test_a_color_is_six_hexadecimal_characters(client: Client, subtests: pytest.Subtests) -> None:
    for color in NO_COLORS:
        with subtests.test(color):
            refused(await client.post("competitors.json", {"name": "Ada", "color": color}), 422, "color")


async def test_a_unity_sorts_one_way_or_the_other(season: Season) -> None:
    for sort in ("asc", "UP", "ASC,DESC"):
        refused(await season.client.post(f"{season.path}/unities.json", {"name": "goals", "sort": sort}), 422, "sort")


ALWAYS: Final = ("reopen", "visibility")
"""What can be done with a ranking that is closed."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [one for one in WRITES if "{ranking_id}" in one and not any(w in one for w in ALWAYS)])
async def test_a_closed_ranking_refuses_change_until_it_is_reopened(season: Season, log: Log, name: str) -> None:
    await season.client.put(f"{season.path}/close.json")
    before = await log.length()
    refused(await ask(name, season, season.client), 409)
    assert await log.length() == before
    await season.client.put(f"{season.path}/reopen.json")
    assert (await ask(name, season, season.client)).status == 200


async def test_what_is_open_cannot_be_reopened_and_a_closed_ranking_closes_nothing_else(season: Season) -> None:
    refused(await season.client.put(f"{season.path}/reopen.json"), 409)
    await season.client.put(f"{season.path}/close.json")
    for name in ("POST rankings.json", "POST competitions.json", "POST competitors.json"):
        assert (await ask(name, season, season.client)).status == 200


# ── Fields ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_optional_field_of_a_creation_is_as_absent(season: Season) -> None:
    def without(fields: Any, *names: str) -> Any:
        return {name: value for name, value in fields.items() if name not in names}

    unsaid: dict[str, dict[str, object]] = {
        "POST competitors.json": {"tags": "", "color": "", "parent": ""},
        "POST competitions.json": {"started_at": "", "location": "", "participants": "", "result": "", "winner": ""},
        "POST rankings.json": {"description": ""},
    }
    for name, empty in unsaid.items():
        item = name.removeprefix("POST ").removesuffix("s.json")
        plain = (await ask(name, season, season.client)).json[item]
        answer = (await ask(name, season, season.client, **empty)).json[item]
        changing = ("id", "position", "unities", "lft", "rgt", "created_at", "updated_at", "started_at")
        assert without(answer, *changing) == without(plain, *changing)
    unity = await ask("POST rankings/{ranking_id}/unities.json", season, season.client, sort="")
    assert unity.json["unity"]["sort"] == "DESC"
    points = await ask(WRITES[0], season, season.client, competition_id="")
    assert points.status == 200


async def test_an_empty_description_of_a_modification_takes_it_away(season: Season) -> None:
    form = {"main_unity_name": "points", "participants": listed(season.ids)}
    kept = await season.client.put(f"{season.path}.json", form)
    assert (kept.json["ranking"]["name"], kept.json["ranking"]["description"]) == ("Season", "All of it")
    assert (await season.client.put(f"{season.path}.json", form | {"name": ""})).status == 422
    taken = await season.client.put(f"{season.path}.json", form | {"description": ""})
    assert taken.json["ranking"]["description"] is None


NAMES = ["x", "ß" * 255, "🏓" * 255, "A  B", "\uff21\uff22", "\u200fאבג", "'); DROP TABLE event;--", "<b>&amp;</b>"]
NO_NAMES = ["x" * 256, " ", "\n\t", "a\nb", "a\x1fb", "a\x7fb", "a\x85b"]


@pytest.mark.parametrize(
    "name",
    [
        "POST competitors.json",
        "PUT competitors/{competitor_id}.json",
        "POST rankings.json",
        "PUT rankings/{ranking_id}.json",
        "POST rankings/{ranking_id}/unities.json",
    ],
)
async def test_names_are_1_to_255_characters_trimmed_and_without_control_characters(season: Season, name: str) -> None:
    for good in NAMES:
        answer = await ask(name, season, season.client, name=f" \t{good}\n ")
        assert answer.status == 200
        (item,) = answer.json.keys() - {"status", "message"}
        assert answer.json[item]["name"] == good
    for bad in NO_NAMES:
        refused(await ask(name, season, season.client, name=bad), 422, "name")


async def test_the_two_forms_of_a_letter_stay_two(client: Client) -> None:
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    await register(client, composed, decomposed)
    listing = (await client.get("competitors.json")).json["competitors"]["competitor"]
    assert [c["name"] for c in listing] == [composed, decomposed]


async def test_unity_names_are_unique_in_their_ranking(season: Season) -> None:
    unities = f"{season.path}/unities.json"
    for taken in ("points", "fouls", " points "):
        refused(await season.client.post(unities, {"name": taken}), 422, "name")
    modified = {"main_unity_name": "fouls", "participants": listed(season.ids)}
    refused(await season.client.put(f"{season.path}.json", modified), 422, "main_unity_name")
    assert (await season.client.put(f"{season.path}.json", modified | {"main_unity_name": "score"})).status == 200
    assert (await season.client.post(unities, {"name": "points"})).status == 200  # the name is free again
    assert (await create_ranking(season.client, season.ids, main_unity_name="fouls"))["unities"][0]["name"] == "fouls"


async def test_descriptions_have_lines_and_a_bound(season: Season) -> None:
    for good in ("One.\r\n\tTwo.", "x" * 10_000):
        answer = await ask("PUT rankings/{ranking_id}.json", season, season.client, description=good)
        assert answer.json["ranking"]["description"] == good
    for bad in ("x" * 10_001, "a\x08b"):
        refused(await ask("PUT rankings/{ranking_id}.json", season, season.client, description=bad), 422, "description")


async def test_a_competitor_that_leaves_keeps_its_totals_in_every_unity_and_has_them_back(
    season: Season, owner: asyncpg.Connection
) -> None:
    ada, ben, pair = season.ids
    fouls = await owner.fetchval("SELECT (body::json->>'unity_id')::bigint FROM event WHERE kind = 'UnityAdded'")
    given = deltas((ben, season.unity_id, -4), (ben, fouls, 9))
    await season.client.put(f"{season.path}/add.json", {"participants_delta": given})

    async def modified(*participants: int) -> list[dict[int, int]]:
        form = {"main_unity_name": "points", "participants": listed(participants)}
        answer = await season.client.put(f"{season.path}.json", form)
        assert [c["id"] for c in answer.json["ranking"]["competitors"]] == list(participants)
        return [totals(answer, unity) for unity in ("points", "fouls")]

    assert await modified(pair, ada) == [{pair: 0, ada: 0}] * 2
    assert await modified(ben) == [{ben: -4}, {ben: 9}]


async def test_a_repeated_or_unknown_competitor_in_a_list_is_named(
    season: Season, log: Log, subtests: pytest.Subtests
) -> None:
    for name in ["POST rankings.json", "PUT rankings/{ranking_id}.json", "POST competitions.json"]:
        with subtests.test(name):
            ada, ben, _ = season.ids
            before = await log.length()
            wrong = f"{ada},{NOBODY},{ben},{ada},{NOBODY + 1},{ben},{ben}"
            messages = refused(await ask(name, season, season.client, participants=wrong), 422, *["participants"] * 4)
            assert messages == [
                f"competitor {NOBODY} is not in this tournament",
                f"competitor {NOBODY + 1} is not in this tournament",
                f"competitor {ada} is named more than once",
                f"competitor {ben} is named more than once",
            ]
            for unreadable in (
                f"{ada},",
                f",{ada}",
                f"{ada},,{ben}",
                f"{ada};{ben}",
                f"[{ada}]",
                "1.0",
                "x",
                "-1",
                "0",
                "\u0663",
            ):
                refused(await ask(name, season, season.client, participants=unreadable), 422, "participants")
            assert await log.length() == before
            assert (await ask(name, season, season.client, participants=f" {ada} , {ben} ")).status == 200


async def test_a_ranking_has_at_least_one_participant(season: Season) -> None:
    for name in ("POST rankings.json", "PUT rankings/{ranking_id}.json"):
        refused(await ask(name, season, season.client, participants=""), 422, "participants")


# ── Points ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_all_that_points_name_must_be_there_and_each_that_is_not_is_named(season: Season, log: Log) -> None:
    ada, ben, _ = season.ids
    (dan,) = await register(season.client, "Dan")
    before = await log.length()
    form = {
        "participants_delta": deltas(
            (dan, season.unity_id, 1), (ada, NOBODY, 1), (ben, season.unity_id, 1), (NOBODY, NOBODY + 1, 1)
        ),
        "competition_id": NOBODY,
    }
    fields = ["participants_delta"] * 4 + ["competition_id"]
    assert refused(await season.client.put(f"{season.path}/add.json", form), 422, *fields) == [
        f"competitor {dan} is not in this ranking",
        f"unity {NOBODY} is not in this ranking",
        f"competitor {NOBODY} is not in this ranking",
        f"unity {NOBODY + 1} is not in this ranking",
        f"competition {NOBODY} is not in this tournament",
    ]
    assert await log.length() == before


NO_DELTAS = [
    *('"2147483648"', '"-2147483648"', '"99999999999"', "2147483648", "-2147483648", "9223372036854775808", "9" * 400),
    *('""', '" 5"', '"5 "', '"+ 5"', '"--5"', '"+"', '"1_0"', '"1e3"', '"1.5"', '"0x10"', '"NaN"'),
    *('"\u0663\u0664"', '"\uff15"', "1.5", "1e400", "true", "null", "[]", "{}"),
]


async def test_what_is_not_a_delta_is_422(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for delta in NO_DELTAS:
        with subtests.test(delta):
            before = await log.length()
            lines = (
                f'[{{"competitor_id":{season.ids[0]},"unities":[{{"unity_id":{season.unity_id},"delta":{delta}}}]}}]'
            )
            answer = await season.client.put(f"{season.path}/add.json", {"participants_delta": lines})
            (message,) = refused(answer, 422, "participants_delta")
            assert ("%2B" in message) == delta.startswith('" ')
            assert await log.length() == before


NO_JSON = ["[", "5 5", '{"competitor_id":', "[NaN]", "\ufeff[]", "[1] x", "[" * 100_000, "'a'"]


async def test_what_is_not_json_is_400(season: Season, subtests: pytest.Subtests) -> None:
    for lines in NO_JSON:
        with subtests.test(lines[:20]):
            answer = await season.client.put(f"{season.path}/add.json", {"participants_delta": lines})
            refused(answer, 400, "participants_delta")


NO_LINES = [
    *("[]", "{}", "5", '"x"', "null", "[1]", "[{}]", "[[]]", "[1e999999999999]"),
    '[{"competitor_id":ADA,"unities":[]}]',
    '[{"competitor_id":ADA,"unities":[{"unity_id":POINTS}]}]',
    '[{"competitor_id":"ADA","unities":[{"unity_id":POINTS,"delta":"1"}]}]',
    '[{"competitor_id":ADA,"unities":[{"unity_id":POINTS,"delta":"1","version":7}]}]',
    '[{"competitor_id":ADA,"sequence":1,"unities":[{"unity_id":POINTS,"delta":"1"}]}]',
    '[{"competitor_id":ADA,"unities":[{"unity_id":POINTS,"delta":"1","delta":"2"}]}]',
    '[{"competitor_id":0,"unities":[{"unity_id":POINTS,"delta":"1"}]}]',
]


async def test_what_is_not_of_the_form_of_deltas_is_422(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    before = await log.length()
    for template in NO_LINES:
        with subtests.test(template):
            lines = template.replace("ADA", str(season.ids[0])).replace("POINTS", str(season.unity_id))
            answer = await season.client.put(f"{season.path}/add.json", {"participants_delta": lines})
            refused(answer, 422, "participants_delta")
            assert await log.length() == before


async def test_an_unescaped_plus_is_a_blank_and_the_refusal_says_so(season: Season) -> None:
    lines = f'[{{"competitor_id":{season.ids[0]},"unities":[{{"unity_id":{season.unity_id},"delta":"+5"}}]}}]'
    unescaped = await season.client.put(f"{season.path}/add.json", f"participants_delta={lines}".encode())
    assert "%2B" in refused(unescaped, 422, "participants_delta")[0]
    escaped = await season.client.put(
        f"{season.path}/add.json", f"participants_delta={lines}".replace("+", "%2B").encode()
    )
    assert totals(escaped)[season.ids[0]] == 5


async def test_both_of_two_lines_for_the_same_are_kept(season: Season, owner: asyncpg.Connection) -> None:
    ada, unity = season.ids[0], season.unity_id
    form = {"participants_delta": deltas((ada, unity, 2), (ada, unity, -3), (ada, unity, 0))}
    assert totals(await season.client.put(f"{season.path}/add.json", form))[ada] == -1
    stored = json.loads(await owner.fetchval("SELECT body FROM event ORDER BY sequence DESC LIMIT 1"))
    assert stored["deltas"] == [[ada, unity, 2], [ada, unity, -3], [ada, unity, 0]]


# ── Competitions ────────────────────────────────────────────────────────────────────────────────────────


NO_COMPETITIONS = [
    (2, {"result[ADA]": "1"}, "result"),
    (2, {"result": "1:0", "result[ADA]": "1"}, "result"),
    (3, {"result": "1:0"}, "result"),
    (3, {"result": "[]"}, "result"),
    (3, {"result": '{"ADA":1}'}, "result"),
    (3, {"result": '{"ADA":"1"}', "result[BEN]": "2"}, "result"),
    (3, {"result": '{"ADA":"a\\u0000b"}'}, "result"),
    (3, {"result": '{"ADA":"\\ud800"}'}, "result"),
    (3, {"result[x]": "1"}, "result[x]"),
    (3, {"result[]": "1"}, "result[]"),
    (2, {"winner": "CLEO"}, "winner"),
    (0, {"winner": "ADA"}, "winner"),
    (2, {"winner": "ADA,BEN"}, "winner"),
    (0, {"started_at": "2024-02-30 00:00:00"}, "started_at"),
    (0, {"started_at": "2024-02-28 24:00:00"}, "started_at"),
    (0, {"started_at": "2024-02-28"}, "started_at"),
    (0, {"started_at": "0000-01-01 00:00:00"}, "started_at"),
    (0, {"started_at": "2024-02-2\u0668 00:00:00"}, "started_at"),
    (0, {"location": "a\x01b"}, "location"),
    (0, {"location": "x" * 256}, "location"),
    (0, {"result": "x" * 256}, "result"),
]


async def test_what_a_competition_refuses(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    def named(text: str) -> str:
        for name, competitor in zip(("ADA", "BEN", "CLEO"), season.ids, strict=True):
            text = text.replace(name, str(competitor))
        return text

    before = await log.length()
    for participants, fields, field in NO_COMPETITIONS:
        with subtests.test(str(fields)):
            form = {"group_id": 1, "participants": listed(season.ids[:participants])}
            sent = {named(name): named(text) for name, text in fields.items()}
            refused(await season.client.post("competitions.json", form | sent), 422, field)
            assert await log.length() == before


NO_GROUPS = ["", "x", "1.5", "+1", "01", "9223372036854775808", "-9223372036854775809", "9" * 5000, "\u0663"]


async def test_a_group_is_a_64_bit_integer(client: Client, subtests: pytest.Subtests) -> None:
    for group_id in NO_GROUPS:
        with subtests.test(group_id[:20]):
            refused(await client.post("competitions.json", {"group_id": group_id}), 422, "group_id")


async def test_any_64_bit_integer_is_a_group(client: Client, subtests: pytest.Subtests) -> None:
    for group_id in (0, -(2**63), 2**63 - 1):
        with subtests.test(str(group_id)):
            answer = await client.post("competitions.json", {"group_id": group_id})
            assert answer.json["competition"]["group_id"] == group_id


async def test_locations_and_results_are_trimmed_as_names_are(season: Season) -> None:
    added = await season.client.post(
        "competitions.json", {"group_id": 1, "location": "\n Hall 2 " + " " * 5000, "result": "\t3:1\r\n"}
    )
    assert (added.json["competition"]["location"], added.json["competition"]["result"]) == ("Hall 2", "3:1")
    path = f"competitions/{added.json['competition']['id']}.json"
    changed = (await season.client.put(path, {"location": " Hall 3\n", "result": "\t4:1"})).json["competition"]
    assert (changed["location"], changed["result"]) == ("Hall 3", "4:1")
    performances = {f"result[{season.ids[0]}]": " 9.8 s\n"}
    race = await season.client.put(f"competitions/{season.competition_id}.json", performances)
    assert race.json["competition"]["result"] == {str(season.ids[0]): "9.8 s"}


async def test_ids_are_positive_64_bit_integers_unique_in_the_service(season: Season, other: Client) -> None:
    def ids_in(value: Any) -> set[int]:
        if isinstance(value, list):
            return set().union(*map(ids_in, [one for one in value if not isinstance(one, int)]))
        own = {value["id"]} if "id" in value else set()
        return own.union(*(ids_in(v) for name, v in value.items() if isinstance(v, list) and name != "competitors"))

    theirs = await with_points(await play_season(other))
    found = []
    for client in (season.client, theirs.client):
        for path, payload, item in (
            ("rankings.json", "rankings", "ranking"),
            ("competitions.json", "competitions", "competition"),
            ("competitors.json", "competitors", "competitor"),
        ):
            found.append(ids_in((await client.get(path)).json[payload][item]))
    assert sum(map(len, found)) == len(set().union(*found)) == 2 * (2 + 3 + 3 + 3)
    assert all(0 < it < 2**63 for it in set().union(*found))


# ── Bodies ──────────────────────────────────────────────────────────────────────────────────────────────


UNKNOWN = {
    "sequence",
    "version",
    "created_at",
    "closed_at",
    "id",
    "scope",
    "Name",
    "name ",
    "result[1",
    "é",
    "__proto__",
}


async def test_unknown_and_repeated_fields_are_422(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for name in WRITES:
        with subtests.test(name):
            before = await log.length()
            path = path_of(name, season)
            send = season.client.post if name.startswith("POST") else season.client.put
            form = example_of(name)
            for unknown in UNKNOWN - form.keys():
                (message,) = refused(await send(path, {**form, unknown: "1"}), 422, unknown)
                assert message.startswith("is not a field of this operation")
            twice = urlencode({**form, "description": "1"}).encode() + b"&description=1"
            assert refused(await send(path, twice), 422, "description") == ["is sent more than once"]
            assert await log.length() == before


UNREADABLE = [
    *(b"a=%", b"a=%4", b"a=%zz", b"a=%u0041", b"a=%FF", b"a=\xff", b"a=%ED%A0%80", b"a=%C0%80"),
    *(b"a=%00", b"a=\0", b"%00=a", b"a", b"&", b"=a", b"a;b"),
]


@every(5)
async def test_a_body_that_cannot_be_read_is_400(
    season: Season, log: Log, subtests: pytest.Subtests, step: int
) -> None:
    for number, name in enumerate(WRITES):
        with subtests.test(name):
            before = await log.length()
            path = path_of(name, season)
            send = season.client.post if name.startswith("POST") else season.client.put
            form = urlencode(example_of(name)).encode()
            for wrong in UNREADABLE[number % step :: step]:
                refused(await send(path, wrong), 400)
                refused(await send(path, form + b"&" + wrong), 400)
                refused(await send(path, wrong + b"&" + form), 400)
            assert await log.length() == before


async def test_a_form_has_a_bounded_number_of_fields(client: Client) -> None:
    fields = [f"f{n}=" for n in range(FORM_FIELDS_MAX + 1)]
    assert (await client.post("competitors.json", "&".join(fields[:-1]).encode())).status == 422
    refused(await client.post("competitors.json", "&".join(fields).encode()), 400)
    refused(await client.post("competitors.json", b"&" * BODY_BYTES_MAX), 400)


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize("chunked", [False, True])
async def test_413_begins_one_byte_beyond_the_bound(client: Client, chunked: bool) -> None:
    fits = b"name=" + b"x" * (BODY_BYTES_MAX - 5)
    for body_sent, status in ((fits, 422), (fits + b"x", 413), (fits * 3, 413)):
        sent: Any = BytesIO(body_sent)
        if chunked:
            sent = chunks(*(body_sent[n : n + 65_536] for n in range(0, len(body_sent), 65_536)))
        address = f"/tournament/{client.tournament}/competitors.json"
        answer = await client.send("POST", address, sent, {"Content-Type": FORM})
        refused(answer, status, *(["name"] if status == 422 else []))


async def test_what_announces_too_much_is_413_before_it_is_sent(service: Service, client: Client) -> None:
    head = (
        f"POST /tournament/{client.tournament}/competitors.json HTTP/1.1\r\nHost: a\r\nContent-Type: {FORM}\r\n"
        f"Authorization: Bearer {client.token}\r\nContent-Length: 10000000000\r\n\r\n"
    )
    status, answer = await sent_raw(service, head.encode()) or (0, b"")
    assert (status, json.loads(answer)["status"]) == (413, 413)


async def test_a_body_that_comes_too_slowly_is_408(service: Service, client: Client, log: Log, bounds: Bounds) -> None:
    before = await log.length()
    bounds(BODY_SECONDS_MAX=0.1)
    head = (
        f"POST /tournament/{client.tournament}/competitors.json HTTP/1.1\r\nHost: a\r\nContent-Type: {FORM}\r\n"
        f"Authorization: Bearer {client.token}\r\nContent-Length: 8\r\n\r\n"
    )
    status, answer = await sent_raw(service, head.encode(), b"name=Ad") or (0, b"")
    assert (status, json.loads(answer)["status"]) == (408, 408)
    assert await log.length() == before
    assert (await client.post("competitors.json", {"name": "Ada"})).status == 200


OTHER_MEDIA = [
    {"Content-Type": "application/json; charset=utf-16"},
    {"Content-Type": "application/x-ndjson"},
    {"Content-Type": "text/plain"},
    {"Content-Type": "multipart/form-data; boundary=x"},
    {"Content-Type": "multipart/form-data"},
    {"Content-Type": f"{FORM}; charset=utf-16"},
    {"Content-Type": f"{FORM}; charset=iso-8859-1"},
    {"Content-Type": f"{FORM}; charset=utf-7"},
    {"Content-Type": "x"},
    {"Content-Type": ""},
    {"Content-Encoding": "gzip"},
    {"Content-Encoding": "deflate, identity"},
]


async def test_another_media_type_charset_or_encoding_is_415(
    season: Season, log: Log, subtests: pytest.Subtests
) -> None:
    for name in WRITES:
        with subtests.test(name):
            before = await log.length()
            for headers in OTHER_MEDIA:
                refused(await ask(name, season, season.client, headers, more="than nothing"), 415)
            assert await log.length() == before


async def test_a_body_without_media_type_is_415(season: Season) -> None:
    tournament = f"/tournament/{season.client.tournament}"
    refused(await season.client.send("POST", f"{tournament}/competitors.json", b"name=Ada"), 415)


async def test_no_body_needs_no_media_type_and_none_matters(season: Season, subtests: pytest.Subtests) -> None:
    """Programs send `application/octet-stream` unasked."""
    path = f"/tournament/{season.client.tournament}/{season.path}"
    for headers in ({}, {"Content-Type": "application/octet-stream"}, *OTHER_MEDIA):
        for body in (None, b""):
            with subtests.test(headers, body=body):
                for change in ("close", "reopen"):
                    assert (await season.client.send("PUT", f"{path}/{change}.json", body, headers)).status == 200


async def test_the_form_in_utf8_is_taken_however_it_is_announced(client: Client, subtests: pytest.Subtests) -> None:
    for suffix in ("", "; charset=utf-8", "; charset=UTF-8", ";charset=utf8", '; charset="utf-8"'):
        with subtests.test(suffix):
            for media_type in (FORM, FORM.upper()):
                answer = await client.post("competitors.json", {"name": "Zoë"}, {"Content-Type": media_type + suffix})
                assert answer.status == 200
            identity = {"Content-Encoding": "identity"}
            assert (await client.post("competitors.json", {"name": "Zoë"}, identity)).status == 200


async def test_a_refusal_says_what_is_accepted(season: Season, subtests: pytest.Subtests) -> None:
    client, path = season.client, season.path
    too_long = "with at most 9999W, 99999D, 999999H and 99999999M"
    expiring = {"name": "rating", "expires_on": "day"}
    for status, field, told, answer in (
        (400, "on", "; or a day of the calendar, yyyy-mm-dd", client.get(f"{path}/standings.json?on=2024-02-30")),
        (400, "page", " from 1 to 9,223,372,036,854,775,807,", client.get(f"competitors.json?page={10**20}")),
        (422, "lasts", too_long, client.post(f"{path}/unities.json", expiring | {"lasts": "PT100000000M"})),
        (422, "started_at", "+02:00 follows", client.put("competitions/1.json", {"started_at": "2024-02-28"})),
        (422, "published", "is required, unless freeze or reveal is sent", client.put("publication.json")),
    ):
        with subtests.test(field):
            (message,) = refused(await answer, status, field)
            assert told in message
            assert (field == "on") == ("calendar" in message)


# ── Queries and conditional reads ───────────────────────────────────────────────────────────────────────


async def test_what_is_no_positive_integer_is_400(client: Client, subtests: pytest.Subtests) -> None:
    for text in ("0", "-1", "1.5", "1e3", "x", "%2B1", "+1", "%D9%A3", "9" * 19, "9" * 5000, "%00", "1,2", "%ff", "1%"):
        with subtests.test(text[:20]):
            for path in ("competitors.json", "competitions.json"):
                for name in ("page", "per_page"):
                    refused(await client.get(f"{path}?{name}={text}"), 400, name)


async def test_parameters_are_named_rightly_and_once(client: Client) -> None:
    refused(await client.get("competitors.json?page=1&page=1"), 400, "page")
    refused(await client.get("competitors.json?perpage=10&sort=name"), 400, "perpage", "sort")
    refused(await client.get("rankings.json?page=1"), 400, "page")
    refused(await client.post("competitors.json?name=Ada", {"name": "Ada"}), 400, "name")
    refused(await client.get("rankings.json?%ff=%ff"), 400, "\ufffd")


CHANGES: dict[str, str] = {
    "GET rankings.json": "POST rankings.json",
    "GET competitions.json": "POST competitions.json",
    "GET competitors.json": "POST competitors.json",
    "GET rankings/{ranking_id}.json": "PUT rankings/{ranking_id}.json",
    "GET competitions/{competition_id}.json": "PUT competitions/{competition_id}.json",
    "GET competitors/{competitor_id}.json": "PUT competitors/{competitor_id}.json",
    "GET competitors/{competitor_id}/erase.json": "PUT competitors/{competitor_id}.json",
    "GET rankings/{ranking_id}/standings.json": "PUT rankings/{ranking_id}/add.json",
    "GET rankings/{ranking_id}/form.json": "PUT rankings/{ranking_id}/add.json",
    "GET competitors/{competitor_id}/standings.json": "PUT rankings/{ranking_id}/add.json",
    "GET rankings/{ranking_id}/history.json": "PUT rankings/{ranking_id}/add.json",
    "GET rankings/{ranking_id}/explain.json": "PUT rankings/{ranking_id}/add.json",
    "GET publication.json": "PUT publication.json",
    "GET presentation.json": "PUT presentation.json",
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TAGGED)
async def test_what_has_not_changed_is_304(season: Season, peers_client: Client, name: str) -> None:
    listing = await ask(name, season, season.client)
    tag = listing.headers["ETag"]
    assert re.fullmatch(r'"[^"]+"', tag)  # strong
    for client in (season.client, peers_client):
        for asked in (tag, f"W/{tag}", f'"another", {tag}', "*"):
            unchanged = await ask(name, season, client, {"If-None-Match": asked})
            assert (unchanged.status, unchanged.body, unchanged.headers["ETag"]) == (304, b"", tag)
        for asked in ('"another"', '"*"', tag[1:-1], "", "x", f'"{tag[1:-2]}"'):
            changed = await ask(name, season, client, {"If-None-Match": asked})
            assert (changed.status, changed.body, changed.headers["ETag"]) == (200, listing.body, tag)
    if name == "GET rankings/kinds.json":  # which no request changes
        return
    await ask(CHANGES[name], season, peers_client)
    changed = await ask(name, season, season.client, {"If-None-Match": tag})
    assert changed.status == 200
    assert changed.headers["ETag"] != tag
    assert changed.body != listing.body


async def test_each_page_has_a_tag_of_its_own(season: Season) -> None:
    tags = {(await season.client.get(f"competitors.json?per_page=1&page={n}")).headers["ETag"] for n in (1, 2, 3, 4)}
    assert len(tags) == 4


async def test_head_is_get_without_its_body(season: Season, subtests: pytest.Subtests) -> None:
    for name in TAGGED:
        with subtests.test(name):
            got = await ask(name, season, season.client)
            path = path_of(name, season) + query_of(name)
            head = await season.client.send("HEAD", f"/tournament/{season.client.tournament}/{path}")
            assert (head.status, head.body) == (200, b"")
            assert head.headers["ETag"] == got.headers["ETag"]
            assert head.headers["Content-Length"] == str(len(got.body))


# ── Health ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_health_is_open_and_names_no_tournament_that_is_well(service: Service, season: Season) -> None:
    nobody = service.client(season.client.tournament, None)
    health, readiness = await nobody.send("GET", "/healthz"), await nobody.send("GET", "/readyz")
    assert (health.status, health.json) == (200, {"status": 200, "message": "ok", "version": version("tallybook")})
    assert (readiness.status, readiness.json) == (
        200,
        {"status": 200, "message": "ok", "stopped": 0, "tournaments": []},
    )


async def test_metrics_may_be_opened(dsn: str, season: Season) -> None:
    async with serve(dsn, open_metrics=True) as open_service:
        answer = await open_service.client("", None).send("GET", "/metrics")
    assert answer.status == 200
    assert season.client.tournament.encode() not in answer.body
    assert (season.client.token or "").encode() not in answer.body


# ── Tournaments that stop ───────────────────────────────────────────────────────────────────────────────


async def poison(owner: asyncpg.Connection, season: Season, why: str) -> int:
    """Appends an event that cannot be folded; returns its sequence."""
    kind, text = POISONS[why]
    ids = {"ranking": season.ranking_id, "unity": season.unity_id, "competitor": season.ids[0]}
    tournament_id = await owner.fetchval(_TOURNAMENT_ID, season.client.tournament)
    return await append_text(owner, tournament_id, kind, text % ids)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("why", POISONS)
async def test_a_tournament_with_an_event_that_cannot_be_folded_stops_and_the_others_continue(
    season: Season,
    peer: Service,
    other: Client,
    database: Database,
    owner: asyncpg.Connection,
    log: Log,
    why: str,
) -> None:
    season, theirs = await with_points(season), await play_season(other)
    sequence = await poison(owner, theirs, why)
    before = await log.length()
    peers_client = peer.client(other.tournament, other.token)
    for client in (other, peers_client, other):
        for name in OPERATIONS:
            answer = await ask(name, theirs, client)
            refused(answer, 503)
            assert int(answer.headers["Retry-After"]) >= 1
    assert await log.length() == before

    folded = await Worker(database).catch_up()
    assert folded > 0
    for client in (season.client, peers_client):
        readiness = await client.send("GET", "/readyz")
        assert (readiness.status, readiness.json["stopped"]) == (200, 1)
    assert await owner.fetchval("SELECT sequence FROM stopped") == sequence
    for name in OPERATIONS:
        assert (await ask(name, season, season.client)).status == 200
    await Worker(database).catch_up()
    slug = season.client.tournament
    assert await owner.fetchval("SELECT count(*) FROM standing WHERE tournament = $1", slug) > 0


async def test_a_write_that_reaches_the_log_before_its_service_has_seen_the_poison_is_not_denied(
    season: Season, owner: asyncpg.Connection, log: Log
) -> None:
    assert (await season.client.get("rankings.json")).status == 200  # it has seen everything until here
    await poison(owner, season, "unknown tag")
    before = await log.length()
    refused(await ask(WRITES[0], season, season.client), 500)
    assert await log.length() == before + 1
    refused(await ask(WRITES[0], season, season.client), 503)


# ── What is logged ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_request_that_repeats_another_is_logged_as_replayed(season: Season, log_lines: BytesIO) -> None:
    for _ in range(2):
        assert (await ask("POST competitors.json", season, season.client, keyed("k"), name="Eve")).status == 200
    first, again = [json.loads(line) for line in log_lines.getvalue().splitlines()[-2:]]
    assert "replayed" not in first
    assert (again["replayed"], again["sequence"]) == (True, first["sequence"])


async def test_logs_are_facts_without_tokens_and_bodies(season: Season, log_lines: BytesIO) -> None:
    for name in OPERATIONS:
        await ask(name, season, season.client, {"X-Request-Id": "r-1"}, description="a secret\r\nof ours")
        await ask(name, season, season.client, {"X-Request-Id": "two\twords"})
    text = log_lines.getvalue().decode()
    assert season.client.token not in text
    assert "secret" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["event"] for line in lines} == {"request"}
    assert {line["tournament"] for line in lines} == {season.client.tournament}
    assert sum(line["request_id"] == "r-1" for line in lines) == len(OPERATIONS)
    facts = {"request_id", "method", "route", "status", "milliseconds", "actor", "tournament"}
    assert all(facts <= line.keys() for line in lines)
