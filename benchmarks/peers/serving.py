"""How every peer serves HTTP: aiohttp on uvloop, one process, no access log, keep-alive.

A peer that stores changes answers `GET /recorded` with the number of its recorded changes, and `GET /ledger` also with
whether its totals are right, so that a run can be checked.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from socket import create_server
from typing import Any, Final

import msgspec
import uvloop
from aiohttp import web
from msgspec import Struct

BACKLOG: Final = 1_024
BODY_BYTES_MAX: Final = 1_048_576


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of a peer. `rankings` are answers of the product, from which the peer takes its data. `sizes`: the
    size of the body of the answer at each path, only for the ceiling. `members`: the members of a leaderboard, each
    with its total.
    """

    token: str
    database: str = ""
    rankings: list["Ranking"] = []
    sizes: dict[str, int] = {}
    members: list[tuple[int, int]] = []


class Ranking(Struct, frozen=True, kw_only=True):
    """One ranking with the tournament it belongs to; `shown` is its modification shape."""

    slug: str
    unity_ids: list[int]
    shown: dict[str, Any]


class Recorded(Struct, frozen=True):
    """How many changes a peer has recorded."""

    recorded: int


class Ledger(Recorded, frozen=True):
    """`Recorded`, and whether the totals are the sums of the recorded deltas."""

    exact: bool


Application = Callable[[Settings], AbstractAsyncContextManager[web.Application]]


def main(application: Application) -> None:
    """Serves the application that `application` makes from the settings, until SIGTERM."""
    settings = msgspec.json.decode(sys.stdin.buffer.read(), type=Settings)
    uvloop.run(_serve(application, settings))


async def _serve(application: Application, settings: Settings) -> None:
    async with application(settings) as app:
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        listener = create_server(("127.0.0.1", 0), backlog=BACKLOG)
        await web.SockSite(runner, listener, backlog=BACKLOG).start()
        print(f"Listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        await asyncio.Event().wait()


def json_response(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def authenticated(request: web.Request, token: str) -> None:
    """Refuses every request without the token."""
    if request.headers.get("Authorization") != f"Bearer {token}":
        raise web.HTTPUnauthorized


def parsed_lines(form: Any) -> list[tuple[int, int, int]]:
    """Competitor, unity and amount of every delta of an add.json form; refuses what is not of the form."""
    try:
        lines = msgspec.json.decode(form["participants_delta"], type=list[_Line])
        return [(line.competitor_id, unity.unity_id, int(unity.delta)) for line in lines for unity in line.unities]
    except (KeyError, ValueError) as error:
        raise web.HTTPUnprocessableEntity(text=str(error)) from error


class _Unity(Struct):
    unity_id: int
    delta: str


class _Line(Struct):
    competitor_id: int
    unities: list[_Unity]
