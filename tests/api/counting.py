"""What one request makes a service do: the Python functions that it enters, the bytecode instructions that it executes,
and its calls into C.

These are counts, not times, so they are the same on every machine with the same minor version of Python, however busy
it is. The service runs on uvloop in a thread of its own, on a real PostgreSQL, and is asked over one connection, one
request at a time. A coroutine that goes on counts as entered again. What a service does by the clock (watching) is left
out: it is no part of a request. Nor is waking workers, which the tests have it do once.
"""

import asyncio
import gc
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import uvloop

from api.desk.desk import Desk, open_desk
from api.http.connections import Connections
from api.service.app import make_front, serving
from api.stream.followers import Streams
from engine.database.pool import open_database
from engine.domain.terms import OPERATOR
from engine.process.telemetry import Lines
from tests.service import FORM, make_token, slug_of
from tests.tournaments import open_new_tournament

PATIENCE_SECONDS: Final = 60.0
TURNS_AFTER: Final = 30
"""Turns of the event loop in which a service finishes what it does for a request after the answer was sent."""
_BY_THE_CLOCK: Final = {
    function.__code__
    for function in (
        Desk.watch,
        Desk.watch_quotas,
        Connections.watch,
        Streams._look,
        asyncio.futures._set_result_unless_cancelled,
    )
}
"""What is called straight by the event loop when its time has come. (The last one ends what sleeps.)"""


@dataclass(frozen=True)
class Counted:
    """What one request took: by function, which is named as `function (package/module.py)`."""

    entered: Counter[str]
    instructions: Counter[str]
    c_calls: Counter[str]

    @property
    def totals(self) -> tuple[int, int]:
        """The functions entered, and the instructions executed."""
        return self.entered.total(), self.instructions.total()

    def table(self) -> str:
        """For people: the functions, those with the most instructions first, then the calls into C."""
        lines = [f"{self.entered.total():6} entered  {self.instructions.total():6} instructions"]
        lines += [f"{self.entered[name]:6}          {n:6}  {name}" for name, n in self.instructions.most_common()]
        lines += [f"{self.c_calls.total():6} calls into C"]
        lines += [f"{n:6}  {name}" for name, n in self.c_calls.most_common()]
        return "\n".join(lines)


class Counting:
    """Counts in one thread, whose event loop calls `start` and `stop`."""

    def __init__(self) -> None:
        self._entered: Counter[CodeType] = Counter()
        self._instructions: Counter[CodeType] = Counter()
        self._c_calls: Counter[str] = Counter()
        self._below: FrameType | None = None  # the frame that the event loop runs in
        self._counts = False  # whether what is being run belongs to the request

    def start(self) -> None:
        self._entered.clear()
        self._instructions.clear()
        self._c_calls.clear()
        self._below = _frame_of_the_loop()
        self._counts = False
        gc.disable()
        self._switch(on=True)

    def stop(self) -> Counted:
        self._switch(on=False)
        gc.enable()
        entered: Counter[str] = Counter()
        instructions: Counter[str] = Counter()
        for code, number in self._entered.items():
            entered[_name(code)] += number
        for code, number in self._instructions.items():
            instructions[_name(code)] += number
        return Counted(entered, instructions, Counter(self._c_calls))

    def _enter(self, frame: FrameType) -> None:
        code = frame.f_code
        if frame.f_back is self._below:
            self._counts = code not in _BY_THE_CLOCK and code.co_filename != __file__
        if self._counts:
            self._entered[code] += 1

    if sys.version_info < (3, 12):

        def _switch(self, *, on: bool) -> None:
            sys.settrace(self._trace if on else None)
            sys.setprofile(self._profile if on else None)

        def _trace(self, frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            if event == "call":
                self._enter(frame)
                frame.f_trace_opcodes, frame.f_trace_lines = True, False
            elif event == "opcode" and self._counts:
                self._instructions[frame.f_code] += 1
            return self._trace

        def _profile(self, _: FrameType, event: str, called: Any) -> None:
            if event == "c_call" and self._counts:
                self._c_calls[called.__qualname__] += 1

    else:

        def _switch(self, *, on: bool) -> None:
            monitoring, events = sys.monitoring, sys.monitoring.events
            tool, thread = monitoring.PROFILER_ID, threading.get_ident()

            def entered(_code: CodeType, _offset: int) -> None:
                if threading.get_ident() == thread:
                    self._enter(sys._getframe(1))

            def executed(code: CodeType, _offset: int) -> None:
                if self._counts and threading.get_ident() == thread:
                    self._instructions[code] += 1

            def called(_code: CodeType, _offset: int, function: Any, _first: object) -> None:
                if self._counts and threading.get_ident() == thread:
                    self._c_calls[getattr(function, "__qualname__", repr(function))] += 1

            if not on:
                monitoring.set_events(tool, 0)
                monitoring.free_tool_id(tool)
                return
            monitoring.use_tool_id(tool, "tallybook")
            for event, callback in (
                (events.PY_START, entered),
                (events.PY_RESUME, entered),
                (events.INSTRUCTION, executed),
                (events.C_RETURN, called),
                (events.C_RAISE, called),
            ):
                monitoring.register_callback(tool, event, callback)
            monitoring.set_events(tool, events.PY_START | events.PY_RESUME | events.INSTRUCTION | events.CALL)


def _frame_of_the_loop() -> FrameType:
    """The frame that the event loop runs in, from a call that the event loop has made."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not asyncio.Runner.run.__code__:
        frame = frame.f_back
    assert frame is not None
    return frame


def _name(code: CodeType) -> str:
    return f"{code.co_qualname} ({'/'.join(Path(code.co_filename).parts[-2:])})"


class CountedService:
    """A service that is asked over one connection, and counted. Use within `counted_service`."""

    def __init__(self, dsn: str) -> None:
        self.slug = self.token = ""
        self.desk: Desk | None = None
        self._dsn = dsn
        self._counting = Counting()
        self._ready: Future[int] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: uvloop.run(self._run()), name="counted")
        self._connection: socket.socket | None = None

    def open(self) -> None:
        self._thread.start()
        self._connection = socket.create_connection(("127.0.0.1", self._ready.result(PATIENCE_SECONDS)))
        self._connection.settimeout(PATIENCE_SECONDS)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        try:
            async with open_database(self._dsn, name="test") as database, open_desk(database, with_quotas=True) as desk:
                tournament_id = await open_new_tournament(database, actor=OPERATOR)
                self.slug, self.token = await slug_of(database, tournament_id), await make_token(database)
                self._loop, self.desk = asyncio.get_running_loop(), desk
                listener = socket.create_server(("127.0.0.1", 0))
                async with serving(make_front(desk, Lines(BytesIO())), listener):
                    self._ready.set_result(listener.getsockname()[1])
                    await self._stop.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A request as clients send it, head and body in one piece."""
        head = [
            f"{method} /tournament/{self.slug}/{path} HTTP/1.1",
            "Host: localhost",
            f"Authorization: Bearer {self.token}",
            *([f"Content-Type: {FORM}", f"Content-Length: {len(body)}"] if body else []),
        ]
        return "\r\n".join([*head, "", ""]).encode() + body

    def answer(self, request: bytes, status: int = 200) -> bytes:
        """The body of its answer, which has this status."""
        assert self._connection is not None
        self._connection.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._connection.recv(65_536)
        head, _, body = received.partition(b"\r\n\r\n")
        assert head.startswith(f"HTTP/1.1 {status} ".encode()), received
        length = re.search(rb"Content-Length: (\d+)", head)
        assert length
        while len(body) < int(length[1]):
            body += self._connection.recv(65_536)
        return body

    def send(self, request: bytes) -> socket.socket:
        """Sends a request over a connection of its own, which is returned. Nobody waits for its answer."""
        assert self._connection is not None
        connection = socket.create_connection(self._connection.getpeername())
        connection.sendall(request)
        return connection

    def counted(self, request: bytes, status: int = 200) -> Counted:
        """What the service does from the first byte of the request until it has nothing left to do for it. Its answer
        has this status."""
        self._in_its_thread(self._counting.start, turns=1)
        self.answer(request, status)
        return self._in_its_thread(self._counting.stop, turns=TURNS_AFTER)

    def _in_its_thread(self, work: Callable[[], Any], *, turns: int) -> Any:
        """What `work` returns, which the event loop of the service calls after that many turns."""
        done: Future[Any] = Future()
        loop = self._loop
        assert loop is not None

        def after(turns: int) -> None:
            if turns:
                loop.call_soon(after, turns - 1)
            else:
                done.set_result(work())

        loop.call_soon_threadsafe(after, turns)
        return done.result(PATIENCE_SECONDS)


@contextmanager
def counted_service(dsn: str) -> Iterator[CountedService]:
    service = CountedService(dsn)
    try:
        service.open()
        yield service
    finally:
        service.close()
