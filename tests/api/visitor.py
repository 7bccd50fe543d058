"""Somebody at the console: keeps what it is told to keep, as a browser does, and sends what the pages hold."""

import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import unescape
from io import BytesIO
from typing import Final
from urllib.parse import urlencode

from aiohttp import ClientSession, DummyCookieJar
from yarl import URL

from api.http.cookies import COOKIE
from api.service.app import make_front
from engine.process.telemetry import Lines
from tests.service import FORM, Answer, Service

CONSOLE: Final = "/console"


@dataclass
class Visitor:
    """Asks a service as a page of its console would. `text`: that of the session; None: not signed in."""

    session: ClientSession
    url: str
    text: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def cookie(self) -> dict[str, str]:
        return {} if self.text is None else {"Cookie": f"{COOKIE}={self.text}"}

    @property
    def origin(self) -> dict[str, str]:
        return {"Origin": self.url}

    async def get(self, address: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.send("GET", address, None, headers)

    async def post(
        self, address: str, form: Mapping[str, object] = {}, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Sends a form from a page of the service."""
        said = {**self.origin, "Content-Type": FORM, **(headers or {})}
        return await self.send("POST", address, urlencode(form).encode(), said)

    async def send(
        self, method: str, address: str, body: bytes | None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """As it is given; only the cookie is added. Goes nowhere by itself."""
        async with self.session.request(
            method,
            URL(self.url + address, encoded=True),
            data=body,
            headers={**self.cookie, **self.headers, **(headers or {})},
            allow_redirects=False,
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    async def sign_in(self, token: str, to: str = CONSOLE) -> Answer:
        """Signs in, and keeps the session."""
        answer = await self.post(f"{CONSOLE}/sign-in", {"token": token, "to": to})
        found = [re.match(rf"{COOKIE}=([^;]*)", line) for line in answer.headers.getall("Set-Cookie", [])]
        self.text = found[0][1] if found and found[0] else None
        return answer

    async def page(self, address: str) -> str:
        """A page that is there."""
        answer = await self.get(address)
        assert answer.status == 200, (address, answer.status, answer.body[:2_000])
        return answer.body.decode()

    async def fill(self, address: str, given: Mapping[str, object], *, times: int = 1) -> Answer:
        """Opens the page of a form, fills it in and sends it, that many `times`; returns the last answer."""
        page = await self.page(address)
        form, action = form_of(page)
        for _ in range(times):
            answer = await self.post(action, {**form, **given})
        return answer


async def routes_below(service: Service, path: str) -> dict[str, set[str]]:
    """The template of every address that begins with this path, and its methods."""
    router = make_front(service.desk, Lines(BytesIO()))._router
    await router.complete()
    return {template: set(methods) for template, methods in router.routes() if template.startswith(path)}


async def unreached(get: Callable[[str], Awaitable[Answer]], begin: str, templates: Collection[str]) -> set[str]:
    """Those of the templates that no page leads to, from the page `begin` on. Addresses are below its first folder;
    of those that differ in the values of their queries, one is looked at."""
    link = re.compile(rf'="[^"]*?({re.match("/[a-z]+", begin)[0]}[^"#]*)')  # type: ignore[index]
    waiting, looked_at, paths = deque([begin]), set[tuple[str, ...]](), set[str]()
    while waiting:
        address = waiting.popleft()
        path, _, query = address.partition("?")
        paths.add(path)
        kind = (path, *re.findall(r"(\w+)=", query))
        if kind not in looked_at:
            looked_at.add(kind)
            answer = await get(address)
            if answer.headers["Content-Type"].startswith("text/html"):
                waiting += [unescape(found) for found in link.findall(answer.body.decode())]
    patterns = {template: re.compile(re.sub(r"{\w+}", "[^/]+", template)) for template in templates}
    return {template for template, pattern in patterns.items() if not any(map(pattern.fullmatch, paths))}


def form_of(page: str) -> tuple[dict[str, str], str]:
    """What the form of a page holds as it comes, and where it is sent to. The first one is that to sign out."""
    made = re.findall(r'<form method="post" action="([^"]*)"[^>]*>(.*?)</form>', page, re.DOTALL)[-1]
    values = {}
    for attributes in re.findall(r"<input ([^>]*)>", made[1]):
        found = dict(re.findall(r'([\w-]+)="([^"]*)"', attributes))
        is_sent = found.get("type") != "checkbox" or re.search(r"\bchecked\b", attributes)
        if "name" in found and is_sent:
            values[unescape(found["name"])] = unescape(found.get("value", ""))
    for name, options in re.findall(r"<select [^>]*?name=\"([^\"]*)\".*?>(.*?)</select>", made[1], re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected>', options)
        values[unescape(name)] = unescape(chosen[1]) if chosen else ""
    for name, text in re.findall(r"<textarea [^>]*?name=\"([^\"]*)\"[^>]*>(.*?)</textarea>", made[1], re.DOTALL):
        values[unescape(name)] = unescape(text)
    return values, unescape(made[0])


@asynccontextmanager
async def visiting(service: Service, token: str | None = None) -> AsyncIterator[Visitor]:
    """A visitor, signed in if there is a token."""
    async with ClientSession(cookie_jar=DummyCookieJar()) as session:
        visitor = Visitor(session, service.url)
        if token is not None:
            assert (await visitor.sign_in(token)).status == 303
        yield visitor
