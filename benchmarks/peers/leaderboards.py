"""A leaderboard over HTTP, for any store: the requests of the product, with minimal answers.

A change is answered with two words. A window has only positions, totals and ids; the product's has the competitors too.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec
from aiohttp import web
from msgspec import Struct

from benchmarks.peers.serving import (
    BODY_BYTES_MAX,
    Recorded,
    Settings,
    authenticated,
    json_response,
    parsed_lines,
)

MEMBERS_AT_ONCE: Final = 10_000
"""How many members go into a store in one step."""
_CHANGED: Final = msgspec.json.encode({"status": 200, "message": "ok"})


class Line(Struct, frozen=True):
    position: int
    competitor_id: int
    total: int


class Store(Protocol):
    """The store of the totals. Members are known by their ids; `around` and `top` are in the order of the board."""

    async def add(self, member: int, amount: int) -> None: ...

    async def around(self, member: int, span: int) -> Sequence[Line]: ...

    async def top(self, count: int) -> Sequence[Line]: ...

    async def recorded(self) -> int:
        """How many changes the store has counted."""
        ...


def leaderboard(settings: Settings, store: Store) -> web.Application:
    """The server of this store."""

    async def add(request: web.Request) -> web.Response:
        authenticated(request, settings.token)
        for member, _, amount in parsed_lines(await request.post()):
            await store.add(member, amount)
        return json_response(_CHANGED)

    async def window(request: web.Request) -> web.Response:
        authenticated(request, settings.token)
        query = request.query
        if "around" in query:
            lines = await store.around(int(query["around"]), int(query["span"]))
        else:
            lines = await store.top(int(query["top"]))
        return json_response(msgspec.json.encode({"status": 200, "message": "ok", "lines": lines}))

    async def recorded(_: web.Request) -> web.Response:
        return json_response(msgspec.json.encode(Recorded(await store.recorded())))

    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_put("/tournament/{tournament}/rankings/{ranking_id}/add.json", add)
    app.router.add_get("/tournament/{tournament}/rankings/{ranking_id}/standings.json", window)
    app.router.add_get("/recorded", recorded)
    return app
