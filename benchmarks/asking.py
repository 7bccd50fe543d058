"""Asks a server a few questions around a load: how large its answers are, and its current state."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import ClientSession, TCPConnector
from yarl import URL

from benchmarks.peers.serving import Ranking
from benchmarks.processes import ProgramFailed
from benchmarks.service import Service
from benchmarks.traffic import nothing_added
from benchmarks.world import Tournament

_AT_ONCE: Final = 32
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_MINIMAL: Final = {"Prefer": "return=minimal"}


class Asker:
    """Use as a context. Raises ProgramFailed for every answer except 200."""

    def __init__(self, url: str, token: str) -> None:
        self._session = ClientSession(
            connector=TCPConnector(limit=_AT_ONCE), headers={"Authorization": f"Bearer {token}"}
        )
        self._url = url

    async def __aenter__(self) -> "Asker":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def get(self, path: str) -> bytes:
        return await self._answer("GET", path, None, {})

    async def put(self, path: str, body: bytes, *, minimal: bool = False) -> bytes:
        return await self._answer("PUT", path, body, _FORM | _MINIMAL if minimal else _FORM)

    async def post(self, path: str, form: Mapping[str, str], *, minimal: bool = False) -> bytes:
        body = urlencode(form).encode()
        return await self._answer("POST", path, body, _FORM | _MINIMAL if minimal else _FORM)

    async def _answer(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        url = URL(self._url + path, encoded=True)
        async with self._session.request(method, url, data=body, headers=headers) as response:
            answer = await response.read()
        if response.status != 200:
            raise ProgramFailed(f"{method} {path} was answered {response.status}: {answer[:300]!r}")
        return answer


async def enrol(service: Service, tournament: Tournament, chunks: Iterable[Iterable[int]]) -> None:
    """Has the service enrol competitors in the tournament's ranking. Raises ProgramFailed with what it says."""
    path = f"{tournament.path}/rankings/{tournament.ranking_id}/participants.json"
    async with Asker(service.url, service.token) as asker:
        for chunk in chunks:
            await asker.put(path, f"add={','.join(map(str, chunk))}".encode(), minimal=True)


async def standings(service: Service, tournaments: Iterable[Tournament]) -> list[dict[str, Any]]:
    """The current ranking of each tournament, in its modification shape. Adds to each an event that adds no points."""
    async with Asker(service.url, service.token) as asker:
        answers = await asyncio.gather(*(asker.put(t.add_path, nothing_added(t)) for t in tournaments))
    return [json.loads(answer)["ranking"] for answer in answers]


async def rankings_for_peers(service: Service, tournaments: list[Tournament]) -> list[Ranking]:
    """What a peer must know to give the answers that the product gives."""
    return [
        Ranking(slug=tournament.slug, unity_ids=list(tournament.unity_ids), shown=shown)
        for tournament, shown in zip(tournaments, await standings(service, tournaments), strict=True)
    ]


async def add_sizes(service: Service, tournaments: list[Tournament]) -> dict[str, int]:
    """The size in bytes of the answer to an add.json, by its path."""
    async with Asker(service.url, service.token) as asker:
        answers = await asyncio.gather(*(asker.put(t.add_path, nothing_added(t)) for t in tournaments))
    return {t.add_path: len(answer) for t, answer in zip(tournaments, answers, strict=True)}


async def read_sizes(service: Service, tournaments: list[Tournament], name: str) -> dict[str, int]:
    """The size in bytes of the list `name` (rankings, competitions), by its path; of its first page."""
    paths = [f"{tournament.path}/{name}.json" for tournament in tournaments]
    async with Asker(service.url, service.token) as asker:
        answers = await asyncio.gather(*(asker.get(path) for path in paths))
    return {path: len(answer) for path, answer in zip(paths, answers, strict=True)}
