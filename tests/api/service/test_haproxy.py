"""`deploy/haproxy/haproxy.cfg`: TLS before several services, each of which owns some of the tournaments."""

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from aiohttp import ClientConnectionError, ClientSession, DummyCookieJar, TCPConnector

from api.http.cookies import COOKIE
from api.service.lifecycle import DSN_VARIABLE
from engine.database.pool import Database
from tests.api.service.served import FIGURE, add, total
from tests.desks import Arena, open_arena, until
from tests.project import ROOT
from tests.running import Running, free_port, started
from tests.service import FORM, Client, make_token, slug_of

CONFIGURATION = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
TOURNAMENTS = 16


@dataclass(frozen=True)
class Proxied:
    """Two services behind the proxy, and tournaments to ask about. `url`, `plain_url`: of the proxy, with and without
    TLS; `urls`: of the services."""

    url: str
    plain_url: str
    urls: list[str]
    services: list[Running]
    session: ClientSession
    token: str
    tournaments: list[tuple[str, Arena]]

    def client(self, slug: str) -> Client:
        return Client(self.session, self.url, slug, self.token)

    async def in_memory(self, url: str) -> float:
        """How many tournaments that service has in memory."""
        async with self.session.get(f"{url}/metrics") as answer:
            return float(dict(FIGURE.findall(await answer.text()))["tallybook_live_tournaments"])


@contextmanager
def running_haproxy(folder: Path, tls_port: int, plain_port: int, ports: list[int]) -> Iterator[Path]:
    """The proxy as it is configured, but for ports and a certificate made for the occasion, which is yielded."""
    haproxy, openssl = shutil.which("haproxy"), shutil.which("openssl")
    if haproxy is None or openssl is None:
        pytest.skip("haproxy or openssl is not installed")
    key, certificate, both = (folder / name for name in ("key.pem", "certificate.pem", "both.pem"))
    asked = ("-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", *asked, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True, timeout=60)
    both.write_text(certificate.read_text() + key.read_text())
    text = CONFIGURATION.read_text(encoding="utf-8")
    for there, here in (
        ("/etc/haproxy/tallybook.pem", str(both)),
        ("bind :443", f"bind 127.0.0.1:{tls_port}"),
        ("bind :80", f"bind 127.0.0.1:{plain_port}"),
        ("127.0.0.1:8081", f"127.0.0.1:{ports[0]}"),
        ("127.0.0.1:8082", f"127.0.0.1:{ports[1]}"),
    ):
        assert there in text
        text = text.replace(there, here)
    (folder / "haproxy.cfg").write_text(text, encoding="utf-8")
    with subprocess.Popen([haproxy, "-db", "-f", str(folder / "haproxy.cfg")]) as proxy:
        try:
            yield certificate
        finally:
            proxy.terminate()


@pytest.fixture
async def proxied(dsn: str, database: Database, tmp_path: Path) -> AsyncIterator[Proxied]:
    arenas = [await open_arena(database) for _ in range(TOURNAMENTS)]
    tournaments = [(await slug_of(database, arena.tournament_id), arena) for arena in arenas]
    token = await make_token(database)
    ports, tls_port, plain_port = [free_port(), free_port()], free_port(), free_port()
    options = ("--processes", "1", "--no-worker", "--open-metrics", "--proxies", "1")
    with ExitStack() as stack:
        services = [
            stack.enter_context(started(tmp_path, "serve", "--port", str(port), *options, **{DSN_VARIABLE: dsn}))
            for port in ports
        ]
        urls = [await running.address() for running in services]
        certificate = stack.enter_context(running_haproxy(tmp_path, tls_port, plain_port, ports))
        connector = TCPConnector(ssl=ssl.create_default_context(cafile=certificate))
        async with ClientSession(connector=connector, cookie_jar=DummyCookieJar()) as session:
            url, plain_url = f"https://localhost:{tls_port}", f"http://127.0.0.1:{plain_port}"

            async def answers() -> bool:
                with suppress(ClientConnectionError):
                    async with session.get(f"{url}/readyz") as answer:
                        return answer.status == 200
                return False

            await until(answers)
            yield Proxied(url, plain_url, urls, services, session, token, tournaments)


@pytest.mark.long
async def test_each_tournament_is_one_services_and_goes_to_another_when_that_is_gone(proxied: Proxied) -> None:
    clients = [(proxied.client(slug), arena) for slug, arena in proxied.tournaments]
    for expected in 1, 2, 3:
        answers = await asyncio.gather(*(add(client, arena) for client, arena in clients))
        assert [total(answer) for answer in answers] == [expected] * TOURNAMENTS

    async def each_is_in_one() -> bool:  # figures are set once in a while
        first, second = [await proxied.in_memory(url) for url in proxied.urls]
        return first + second == TOURNAMENTS and min(first, second) > 0

    await until(each_is_in_one)
    assert await proxied.services[0].stopped() == 0

    async def all_are_answered() -> bool:
        answers = [await client.get("rankings.json") for client, _ in clients]
        return all(answer.status == 200 for answer in answers)

    await until(all_are_answered)
    answers = await asyncio.gather(*(add(client, arena) for client, arena in clients))
    assert [total(answer) for answer in answers] == [4] * TOURNAMENTS


@pytest.mark.long
async def test_tls_is_all_there_is_and_pages_know_it(proxied: Proxied) -> None:
    slug, _ = proxied.tournaments[0]
    async with proxied.session.get(f"{proxied.plain_url}/readyz", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"][:8]) == (308, "https://")
    async with proxied.session.get(f"{proxied.url}/healthz") as answer:
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    form = urlencode({"token": proxied.token, "to": f"/console/tournament/{slug}"})
    headers = {"Content-Type": FORM, "Origin": proxied.url}
    async with proxied.session.post(
        f"{proxied.url}/console/sign-in", data=form, headers=headers, allow_redirects=False
    ) as answer:
        assert answer.status == 303
        cookies = answer.headers.getall("Set-Cookie")
    assert all("; Secure" in cookie for cookie in cookies)
    cookie = cookies[0].partition(";")[0]
    assert cookie.startswith(f"{COOKIE}=")
    async with proxied.session.get(f"{proxied.url}/console/tournament/{slug}", headers={"Cookie": cookie}) as answer:
        assert answer.status == 200


@pytest.mark.long
async def test_a_client_cannot_say_whose_address_it_has(proxied: Proxied) -> None:
    async def fail(n: int) -> int:
        headers = {"Authorization": "Bearer tb_nonsense", "X-Forwarded-For": f"192.0.2.{n}"}
        async with proxied.session.get(f"{proxied.url}/tournament/none/rankings.json", headers=headers) as answer:
            return answer.status

    tried = await asyncio.gather(*(fail(n) for n in range(200)))  # beyond what one address may try in vain at once
    assert set(tried) == {401, 429}


@pytest.mark.long
async def test_a_stream_comes_through_as_it_happens(proxied: Proxied) -> None:
    slug, arena = proxied.tournaments[0]
    headers = {"Authorization": f"Bearer {proxied.token}", "Accept": "application/x-ndjson"}
    async with proxied.session.get(f"{proxied.url}/tournament/{slug}/events?after=head", headers=headers) as stream:
        assert b'"caught-up"' in await stream.content.readline()
        assert total(await add(proxied.client(slug), arena, 5)) == 5
        async with asyncio.timeout(10):
            assert b"PointsAdded" in await stream.content.readline()
