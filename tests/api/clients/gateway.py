"""A gateway between a client and the service that loses requests and answers, one by one as it is told."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto
from typing import Final

from aiohttp import ClientSession, DummyCookieJar, web
from yarl import URL

_HOP_BY_HOP: Final = {"connection", "host", "keep-alive", "transfer-encoding", "content-length"}
BUSY_RETRY_AFTER_SECONDS: Final = 1


class Fate(Enum):
    """What becomes of a request."""

    PASSED = auto()
    CUT_BEFORE = auto()
    """The service never sees it, and the connection is cut."""
    CUT_AFTER = auto()
    """The service has answered it, and the connection is cut before the answer."""
    BAD_GATEWAY_AFTER = auto()
    """The service has answered it, and the client gets a 502 that is not the service's."""
    TURNED_AWAY = auto()
    """The service never sees it: 503."""
    BUSY = auto()
    """The same, with a Retry-After."""
    FORBIDDEN = auto()
    """The service never sees it: 403."""
    LOST_ITS_WAY = auto()
    """The service never sees it: a 404 that is not the service's."""


class Gateway:
    """Use within `gateway`. `met` are the fates of the requests that came, `keys` their idempotency keys."""

    def __init__(self, target: str, session: ClientSession) -> None:
        self.address = ""
        self.met: list[Fate] = []
        self.keys: list[str | None] = []
        self._fates: deque[Fate] = deque()
        self._target = target
        self._session = session

    def expect(self, *fates: Fate) -> None:
        """The next requests meet with these fates, one each; further ones pass."""
        self._fates = deque(fates)
        self.met, self.keys = [], []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        fate = self._fates.popleft() if self._fates else Fate.PASSED
        self.met.append(fate)
        self.keys.append(request.headers.get("Idempotency-Key"))
        match fate:
            case Fate.CUT_BEFORE:
                return _cut(request)
            case Fate.TURNED_AWAY:
                return web.Response(status=503)
            case Fate.BUSY:
                return web.Response(status=503, headers={"Retry-After": str(BUSY_RETRY_AFTER_SECONDS)})
            case Fate.LOST_ITS_WAY:
                return web.Response(status=404, text="<h1>Not found</h1>")
            case Fate.FORBIDDEN:
                return web.json_response({"status": 403, "message": "no"}, status=403)
            case _:
                answer = await self._passed(request)
        if fate is Fate.CUT_AFTER:
            return _cut(request)
        return web.Response(status=502, text="<h1>Bad gateway</h1>") if fate is Fate.BAD_GATEWAY_AFTER else answer

    async def _passed(self, request: web.BaseRequest) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        address = URL(self._target + request.raw_path, encoded=True)
        async with self._session.request(
            request.method, address, data=await request.read(), headers=headers
        ) as response:
            kept = {name: value for name, value in response.headers.items() if name.lower() not in _HOP_BY_HOP}
            return web.Response(status=response.status, body=await response.read(), headers=kept)


def _cut(request: web.BaseRequest) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@asynccontextmanager
async def gateway(target: str) -> AsyncIterator[Gateway]:
    """A gateway to the service at this address."""
    async with ClientSession(cookie_jar=DummyCookieJar(), auto_decompress=False) as session:
        between = Gateway(target, session)
        runner = web.ServerRunner(web.Server(between.handle, access_log=None))
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            between.address = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield between
        finally:
            await runner.cleanup()
