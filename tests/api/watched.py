"""A service that is watched: it runs as in production, on uvloop in a thread of its own, alongside a task that looks at
the processor time of that thread each half millisecond. What passes between two looks is a stall. It is processor time,
so that what else the machine does is not taken for ours."""

import asyncio
import gc
import json
import socket
import threading
import time
from contextlib import suppress
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlencode

import uvloop

from api.desk.desk import open_desk
from api.service.app import make_front, serving
from engine.database.pool import open_database
from engine.domain.terms import OPERATOR
from engine.process.telemetry import Lines
from tests.service import FORM, make_token, slug_of
from tests.tournaments import open_new_tournament

LOOK_SECONDS: Final = 0.0005
PATIENCE_SECONDS: Final = 60.0


class Watched:
    """A service that is watched: `stall_seconds` is its longest stall since it was set to 0."""

    def __init__(self, dsn: str) -> None:
        self.stall_seconds = 0.0
        self.slug = self.token = ""
        self.port = 0
        self._dsn = dsn
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: uvloop.run(self._run()), name="watched")

    def __enter__(self) -> "Watched":
        self._thread.start()
        assert self._ready.wait(PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = listener.getsockname()[1]
        async with open_database(self._dsn, name="test") as database, open_desk(database) as desk:
            tournament_id = await open_new_tournament(database, actor=OPERATOR)
            self.slug, self.token = await slug_of(database, tournament_id), await make_token(database)
            async with serving(make_front(desk, Lines(BytesIO())), listener):
                gc.freeze()
                looking = asyncio.create_task(self._look())
                self._ready.set()
                await self._stop.wait()
                looking.cancel()
        gc.unfreeze()

    async def _look(self) -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = time.thread_time()
            self.stall_seconds = max(self.stall_seconds, now - before)
            before = now

    def head(self, method: str, path: str, *lines: str, media_type: str = FORM) -> bytes:
        head = [
            f"{method} /tournament/{self.slug}/{path} HTTP/1.1",
            "Host: a",
            "Connection: close",
            f"Authorization: Bearer {self.token}",
            f"Content-Type: {media_type}",
            *lines,
        ]
        return "\r\n".join([*head, "", ""]).encode()

    def answer(self, sent: bytes) -> bytes:
        """What is answered until the connection is closed."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.settimeout(PATIENCE_SECONDS)
            received = b""
            with suppress(ConnectionError):
                connection.sendall(sent)
            with suppress(ConnectionError):
                while piece := connection.recv(65_536):
                    received += piece
        return received

    def ask(self, method: str, path: str, form: dict[str, Any] | str | bytes = b"") -> Any:
        """The JSON of an answer."""
        if isinstance(form, dict):
            form = urlencode(form)
        body = form.encode() if isinstance(form, str) else form
        answered = self.answer(self.head(method, path, f"Content-Length: {len(body)}") + body)
        head, _, rest = answered.partition(b"\r\n\r\n")
        return json.loads(unchunked(rest) if b"chunked" in head else rest)


def unchunked(sent: bytes) -> bytes:
    body = b""
    while sent:
        size, _, sent = sent.partition(b"\r\n")
        body, sent = body + sent[: int(size, 16)], sent[int(size, 16) + 2 :]
    return body
