"""A receiver of webhooks: an HTTP server, and the code of docs/WEBHOOKS.md to verify what it gets. A deliverer at
work."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.abc import AbstractResolver
from msgspec import Struct

from api.webhooks.deliverer import PAUSES_SECONDS, Deliverer
from engine.database.pool import Database

NO_PAUSES = (0.0,) * len(PAUSES_SECONDS)
PAGE = Path(__file__).parents[2] / "docs" / "WEBHOOKS.md"


def documented_verify() -> Callable[..., str]:
    """The function `verify` of the documentation."""
    verify: Callable[..., str] = documented(0)["verify"]
    return verify


def documented(number: int) -> dict[str, Any]:
    """What an example of the documentation defines."""
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[number], names)
    return names


verify = documented_verify()


class Got(Struct):
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message_id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def sequence(self) -> int:
        return int(self.json["data"]["sequence"])


class Receiver:
    """What has come, and what is answered: `statuses` one after the other, then always `status`. While `open` is not
    set, nothing is answered. `under_way_max`: how many requests were under way at the same time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.got: list[Got] = []
        self.status = 204
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        self.open = asyncio.Event()
        self.open.set()
        self.under_way = self.under_way_max = 0

    @property
    def sequences(self) -> list[int]:
        return [got.sequence for got in self.got]

    async def handle(self, request: web.Request) -> web.Response:
        self.under_way += 1
        self.under_way_max = max(self.under_way_max, self.under_way)
        try:
            self.got.append(Got(request.path, request.headers.copy(), await request.read()))
            status = self.statuses.pop(0) if self.statuses else self.status
            await self.open.wait()
            return web.Response(status=status, headers=self.headers)
        finally:
            self.under_way -= 1


@asynccontextmanager
async def receiver_on(host: str = "127.0.0.1") -> AsyncIterator[Receiver]:
    """A receiver at work, on any free port of this machine."""
    app = web.Application()
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    receiver = Receiver("")
    app.router.add_route("*", "/{path:.*}", receiver.handle)
    await runner.setup()
    site = web.TCPSite(runner, host, 0)
    await site.start()
    port = runner.addresses[0][1]
    receiver.url = f"http://{f'[{host}]' if ':' in host else host}:{port}/hook"
    try:
        yield receiver
    finally:
        receiver.open.set()
        await runner.cleanup()


@asynccontextmanager
async def delivering(
    database: Database, pauses_seconds: tuple[float, ...] = NO_PAUSES, resolver: AbstractResolver | None = None
) -> AsyncIterator[None]:
    """A deliverer at work, for as long as the context lasts; it must not have ended by itself."""
    task = asyncio.create_task(Deliverer(database, pauses_seconds=pauses_seconds, resolver=resolver).run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])
