"""The ceiling: aiohttp and uvloop and nothing else. Reads the body, answers with as many bytes as the product does.

It checks nothing: no token, no form, no database. A comparison with it shows the cost of everything else.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from benchmarks.peers.serving import BODY_BYTES_MAX, Settings, json_response, main


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[web.Application]:
    bodies = {path: b"x" * size for path, size in settings.sizes.items()}

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return json_response(bodies[request.path])

    app = web.Application(client_max_size=BODY_BYTES_MAX)
    app.router.add_put("/tournament/{tournament}/rankings/{ranking_id}/add.json", answer)
    app.router.add_get("/tournament/{tournament}/rankings.json", answer)
    app.router.add_get("/tournament/{tournament}/competitions.json", answer)
    yield app


if __name__ == "__main__":
    main(application)
