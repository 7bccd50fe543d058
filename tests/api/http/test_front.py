"""What a request meets before and after its operation: how it is found, and how its answer goes out."""

import asyncio
import re
import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

import pytest
from yarl import URL

from api.desk.case import Receipt
from api.desk.desk import Desk
from api.http import router as router_module
from api.http.errors import MethodNotAllowed
from api.http.reply import Reply
from api.http.router import NO_PATH, NOTHING_HERE, IncomingRequest, Router
from engine.domain.errors import NotFound
from tests.bounds import Bounds
from tests.desks import GUARD_SECONDS
from tests.service import Client, Service

# ── The way out ─────────────────────────────────────────────────────────────────────────────────────────


async def exchanged(service: Service, request: bytes, *, bodies: bool = True) -> bytes:
    """What the service answers to these bytes sent twice, over one connection while that is kept."""
    url = URL(service.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        answers = b""
        async with asyncio.timeout(GUARD_SECONDS):
            for _ in range(2):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(fields(head).get("Content-Length", 0)) if bodies else 0
                answers += head + await reader.readexactly(length)
                if fields(head).get("Connection") == "close":
                    assert await reader.read() == b""
                    break
        return answers
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def request_for(client: Client, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    head = [
        f"{method} /tournament/{client.tournament}/rankings.json HTTP/{version}",
        "Host: localhost",
        f"Authorization: Bearer {client.token}",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode()


def fields(answer: bytes) -> dict[str, str]:
    head = answer.partition(b"\r\n\r\n")[0].decode()
    return dict(re.findall(r"(?m)^([\w-]+): (.*?)\r?$", head))


async def test_an_answer_has_the_head_that_clients_need(service: Service, client: Client) -> None:
    answer = await exchanged(service, request_for(client, "X-Request-Id: mine-1"))
    head, _, body = answer[: len(answer) // 2].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    found = fields(answer)
    assert found["Content-Type"] == "application/json"
    assert int(found["Content-Length"]) == len(body) > 0
    assert found["X-Request-Id"] == "mine-1"
    assert parsedate_to_datetime(found["Date"]).year >= 2024
    assert "Connection" not in found


async def test_the_ids_of_requests_tell_nothing_of_those_between(service: Service, client: Client) -> None:
    found = [fields(await exchanged(service, request_for(client)))["X-Request-Id"] for _ in range(20)]
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in found)
    assert len({one[:8] for one in found} | {one[8:] for one in found}) == 40
    assert found != sorted(found)


async def test_a_connection_is_kept_or_closed_as_its_version_and_the_client_say(
    service: Service, client: Client, subtests: pytest.Subtests
) -> None:
    for version, asked, said in [
        ("1.1", "close", "close"),
        ("1.1", "keep-alive", None),
        ("1.0", "keep-alive", "keep-alive"),
        ("1.0", None, "close"),
    ]:
        with subtests.test(version):
            lines = [] if asked is None else [f"Connection: {asked}"]
            answer = await exchanged(service, request_for(client, *lines, version=version))
            assert fields(answer).get("Connection") == said
            assert answer.count(b"HTTP/1.1 200 OK") == (1 if said == "close" else 2)


async def test_head_is_answered_without_the_body_whose_length_it_tells(service: Service, client: Client) -> None:
    full = await exchanged(service, request_for(client))
    head = await exchanged(service, request_for(client, method="HEAD"), bodies=False)
    assert fields(head)["Content-Length"] == fields(full)["Content-Length"]
    assert head.endswith(b"\r\n\r\n")


async def test_not_modified_has_neither_body_nor_length(service: Service, client: Client) -> None:
    etag = fields(await exchanged(service, request_for(client)))["ETag"]
    answer = await exchanged(service, request_for(client, f"If-None-Match: {etag}"))
    assert answer.startswith(b"HTTP/1.1 304 Not Modified\r\n")
    assert fields(answer)["ETag"] == etag
    assert "Content-Length" not in fields(answer)
    assert answer.endswith(b"\r\n\r\n")


async def register_when_told(service: Service, client: Client) -> float:
    """Sends the body of a request that registers Ada only when the service asks for it. Returns when that was."""
    head = [
        f"POST /tournament/{client.tournament}/competitors.json HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {client.token}",
        "Content-Type: application/x-www-form-urlencoded",
        "Content-Length: 8",
        "Expect: 100-continue",
    ]
    url = URL(service.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write("\r\n".join([*head, "", ""]).encode())
    assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), GUARD_SECONDS) == b"HTTP/1.1 100 Continue\r\n\r\n"
    sent_at = time.monotonic()
    writer.write(b"name=Ada")
    assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), GUARD_SECONDS)).startswith(b"HTTP/1.1 200 OK\r\n")
    writer.close()
    await writer.wait_closed()
    return sent_at


async def test_a_client_that_waits_for_continue_before_its_body_gets_it(service: Service, client: Client) -> None:
    await register_when_told(service, client)
    answer = await exchanged(service, request_for(client, "Expect: miracles"))
    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_the_time_of_a_write_begins_when_all_of_it_has_come_in(
    service: Service, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is looked up before it reaches the desk counts, and what the client takes to send it does not."""
    taken: list[float] = []
    submit, new_ids = Desk.submit, Desk.new_ids

    async def noting(desk: Desk, *args: Any, taken_at: float, **named: Any) -> Receipt:
        taken.append(taken_at)
        return await submit(desk, *args, taken_at=taken_at, **named)

    async def noting_ids(desk: Desk, count: int) -> list[int]:
        taken.append(time.monotonic())
        return await new_ids(desk, count)

    monkeypatch.setattr(Desk, "submit", noting)
    monkeypatch.setattr(Desk, "new_ids", noting_ids)
    assert (await client.post("competitors.json", {"name": "Ida"})).status == 200
    drew, began = taken
    assert began < drew
    taken.clear()
    sent_at = await register_when_told(service, client)
    drew, began = taken
    assert sent_at < began < drew


# ── Paths ───────────────────────────────────────────────────────────────────────────────────────────────


async def nothing(_: IncomingRequest) -> Reply:
    return Reply(b"")


def a_router() -> Router:
    router = Router()
    router.add("GET", "/t/{slug}/{id}.json", nothing)
    router.add("PUT", "/t/{slug}/{id}.json", nothing)
    return router


def test_a_path_is_found_by_its_template_and_its_parameters_are_decoded() -> None:
    found = a_router().resolve("PUT", "/t/a%20b/1%2F2.json")
    assert (found.path, found.parameters) == ("/t/{slug}/{id}.json", {"slug": "a b", "id": "1/2"})


@pytest.mark.parametrize(
    "path", ["/", "/t", "/t//1.json", "/t/a/1xjson", "/t/a/1.json/", "/t/a/b/1.json", "t/a/1.json"]
)
def test_other_paths_lead_nowhere(path: str) -> None:
    with pytest.raises(NotFound):
        a_router().resolve("GET", path)


async def test_an_unknown_path_names_the_one_that_is_most_like_it(client: Client, subtests: pytest.Subtests) -> None:
    for path, meant in [
        ("/tournament/cup/ranking.json", "/tournament/{tournament}/rankings.json"),
        ("/tournament/cup/rankings/7/standing.json", "/tournament/{tournament}/rankings/{ranking_id}/standings.json"),
        ("/tournaments/cup/rankings.json", "/tournament/{tournament}/rankings.json"),
        ("/board/cup/rankings/7/standings.jsn", "/board/{tournament}/rankings/{ranking_id}/standings.json"),
        ("/board/cup/", "/board/{tournament}"),
        ("/tournament/cup/results/7.json", None),
        ("/wp-login.php", None),
    ]:
        with subtests.test(path):
            for method in "GET", "POST":
                answer = await client.send(method, path)
                said = NOTHING_HERE if meant is None else f"{NOTHING_HERE} The most similar one is {meant}."
                assert (answer.status, answer.json["message"]) == (404, said)


async def test_what_is_added_for_later_is_made_once_for_all_who_ask_and_again_if_that_failed() -> None:
    tried = 0

    def make() -> Router:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise OSError("no file descriptor is left")
        return a_router()

    router = Router()
    router.add("GET", "/t/{slug}/own.json", nothing)
    router.add_later(make)
    assert router.resolve("GET", "/t/a/own.json").path == "/t/{slug}/own.json"
    with pytest.raises(OSError, match="descriptor"):
        await router.complete()
    assert router.resolve("GET", "/t/a/1.json").path == NO_PATH
    await asyncio.gather(router.complete(), router.complete())
    await router.complete()
    assert (router.resolve("GET", "/t/a/1.json").path, tried) == ("/t/{slug}/{id}.json", 2)


def test_other_methods_are_answered_with_those_that_exist() -> None:
    with pytest.raises(MethodNotAllowed) as raised:
        a_router().resolve("DELETE", "/t/a/1.json")
    assert raised.value.allowed == ("GET", "HEAD", "PUT")


def test_no_more_paths_are_remembered_than_there_is_room_for(bounds: Bounds) -> None:
    bounds(PATHS_KEPT_MAX=10)
    router = a_router()
    for n in range(25):
        assert router.resolve("GET", f"/t/a/{n}.json").parameters["id"] == str(n)
        assert len(router._found) <= 10
    kept = len(router._found)
    router.resolve("GET", f"/t/{'a' * router_module.PATH_KEPT_CHARACTERS_MAX}/1.json")
    assert len(router._found) == kept
