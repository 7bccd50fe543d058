"""Measures how long each request holds up the others."""

import asyncio
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from typing import Final
from urllib.parse import urlencode

from msgspec import Struct

from api.desk.desk import open_desk
from api.http.cookies import COOKIE
from api.service.app import make_front
from assurance.stalls.asked import READ, Asked, brought, imports, reads, writes
from assurance.stalls.worlds import RANKING, SUM, Scale, crowd, names, season
from engine.database.pool import open_database
from engine.domain.events import Event
from engine.process.telemetry import Lines
from tests.api.crowds import append
from tests.api.watched import Watched
from tests.service import FORM

TRIES: Final = 4
"""What is read is asked for again while it takes longer than it may: what other processes do to the caches of the
processor is not the same each time."""
_WORLDS: Final[Mapping[str, Callable[[Scale], list[Event]]]] = {"crowd": crowd, "season": season, "names": names}


class Found(Struct, frozen=True):
    """`stall_ms`: the longest stall while it was answered."""

    name: str
    status: int
    stall_ms: float


async def routes_of(dsn: str) -> dict[str, set[str]]:
    """The templates of all addresses, with their methods."""
    async with open_database(dsn, name="stalls") as database, open_desk(database) as desk:
        router = make_front(desk, Lines(BytesIO()))._router
        await router.complete()
        return {template: set(methods) for template, methods in router.routes()}


def asked_of(world: str, slug: str, scale: Scale, facts: list[Event], routes: Mapping[str, set[str]]) -> list[Asked]:
    """The requests to this tournament."""
    asked = [*reads(routes, slug, facts)]
    if world != "season":
        asked += imports(slug, scale)
        asked += brought(slug, scale)
    if world == "crowd":
        asked += writes(slug, scale, facts)
    return asked


def measured(dsn: str, scale: Scale, bound_ms: float = math.inf, only: str = "") -> list[Found]:
    """Asks all tournaments for everything whose name contains `only`."""
    routes, found = asyncio.run(routes_of(dsn)), list[Found]()
    for world, make in _WORLDS.items():
        facts = make(scale)
        with Watched(dsn) as watched:
            asked = asked_of(world, watched.slug, scale, facts, routes)
            asked = [one for one in asked if only in f"{world}: {one.name}"]
            if not asked:
                continue
            asyncio.run(append(dsn, watched.slug, facts))
            asking = _Asking(watched, bound_ms)
            for one in asked:
                status, stall_ms = asking.ask(one)
                found.append(Found(f"{world}: {one.name}", status, stall_ms))
                sys.stdout.write(f"{stall_ms:8.1f} ms  {status}  {found[-1].name}\n")
                sys.stdout.flush()
    return found


class _Asking:
    """Asks one tournament, signed in to the console."""

    def __init__(self, watched: Watched, bound_ms: float) -> None:
        self._watched, self._bound_ms = watched, bound_ms
        self._cookie = ""
        answered = self._answer("POST", "/console/sign-in", urlencode({"token": watched.token}).encode(), FORM)
        session = re.search(rb"Set-Cookie: (%s=[^;]*)" % COOKIE.encode(), answered)
        assert session, answered[:500]
        self._cookie = session[1].decode()

    def ask(self, asked: Asked) -> tuple[int, float]:
        """The status, and the stall in milliseconds."""
        best = math.inf
        for number in range(TRIES):
            self._change(number)
            self._watched.stall_seconds = 0.0
            answered = self._answer(asked.method, asked.target, asked.body, asked.media_type)
            best = min(best, 1_000 * self._watched.stall_seconds)
            if best <= self._bound_ms or asked.changes:
                break
        return int(answered[9:12] or 0), best

    def _change(self, number: int) -> None:
        """Has nothing that was made for an earlier request at hand."""
        line = f'[{{"competitor_id":1,"unities":[{{"unity_id":{SUM},"delta":{number}}}]}}]'
        path = f"/tournament/{self._watched.slug}/rankings/{RANKING}/add.json"
        self._answer("PUT", path, f"participants_delta={line}".encode(), FORM)

    def _answer(self, method: str, target: str, body: bytes, media_type: str) -> bytes:
        host = f"127.0.0.1:{self._watched.port}"
        head = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
        if target.startswith("/console"):
            head += [f"Origin: http://{host}", f"Cookie: {self._cookie}"]
        elif target.startswith("/tournament"):
            head.append(f"Authorization: Bearer {self._watched.token}")
        if method != READ:
            head += [f"Content-Type: {media_type}", f"Content-Length: {len(body)}"]
        return self._watched.answer("\r\n".join([*head, "", ""]).encode() + body)


def beyond(found: Iterable[Found], bound_ms: float) -> list[Found]:
    """Those that take longer than they may, the longest first."""
    return sorted([one for one in found if one.stall_ms > bound_ms], key=lambda one: -one.stall_ms)
