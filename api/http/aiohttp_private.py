"""Wraps the undocumented parts of aiohttp that this program uses; nothing else uses them.

`PRIVATE` lists the names. pyproject.toml bounds aiohttp to the minor version that has them. A test names those that
another version lacks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from aiohttp import web_protocol, web_server
from aiohttp.http import HttpProcessingError, HttpRequestParser
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import ERROR, RequestPayloadError, _ErrInfo

from api.http.heads import Heads, taken_apart
from api.http.request import HttpRequest

PRIVATE: Final = {
    web_protocol.RequestHandler: (
        "_buffer_paused",
        "_close",
        "_current_request",
        "_drain_helper",
        "_force_close",
        "_handler_waiter",
        "_keepalive",
        "_lingering_time",
        "_loop",
        "_max_msg_queue_size",
        "_messages",
        "_msg_queue_resume_size",
        "_parser",
        "_pause_reading_for_buffer",
        "_reading_paused",
        "_request_in_progress",
        "_resume_reading_if_drained",
        "_task_handler",
        "_upgraded",
        "_waiter",
    ),
    StreamReader: ("_buffer", "_eof", "_exception"),
    web_server.Server: ("_connections", "_kwargs"),
}


class Sent(Protocol):
    """An answer. `closing`, once it is sent: its connection takes no further request."""

    closing: bool

    def send(self, request: HttpRequest) -> Awaitable[object] | None:
        """Sends as much as possible at once. Returns a coroutine that sends the rest; None: there is none. Both raise
        ConnectionError if the client has disconnected."""


class Server(web_server.Server):
    """aiohttp's server, which makes a handler for each connection."""

    def __init__(self, *means: Any, **settings: Any) -> None:
        super().__init__(*means, **settings)
        self.heads = Heads()

    @property
    def open_count(self) -> int:
        """Open connections, and closed ones whose last request is still being worked on."""
        return len(self._connections)

    @property
    def handler_settings(self) -> dict[str, Any]:
        """The keyword arguments that it makes handlers with."""
        return self._kwargs


class RequestHandler(web_protocol.RequestHandler):
    """aiohttp's handler of one connection: it parses received bytes, bounds the requests that wait, and ends the
    connection. `answer`: answers its requests. `owes_head`: the first head, or the rest of a head, is awaited.
    `ignores`: it takes no further request, and ignores received bytes. `idle_from`: when it was made, or has sent its
    last answer; in the event loop's time.

    A process has thousands of them, so each is kept small. A deque takes 700 bytes more than a list; so does a timer.
    """

    __slots__ = ("_heads", "_in_step", "answer", "idle_from", "ignores", "owes_head")

    answer: Callable[[HttpRequest], Awaitable[Sent]]
    ignores: bool
    owes_head: bool
    _messages: list[tuple[Any, Any]]  # type: ignore[assignment] # aiohttp has a deque

    def __init__(self, manager: Server, **settings: Any) -> None:
        # Without these, aiohttp makes a timer and a socket object.
        super().__init__(manager, keepalive_timeout=0, tcp_keepalive=False, **settings)
        self._messages = []
        self._heads = manager.heads
        self._in_step = True  # each piece received was one whole request: the parser stands between two
        self.idle_from: float = self._loop.time()

    def misread(self, request: HttpRequest, error: BaseException) -> Sent:
        """Answers bytes that are not a request because of `error`."""
        raise NotImplementedError

    def piece_received(self, data: bytes) -> None:
        """Called with received bytes that are not only whole requests, or that are ignored."""
        raise NotImplementedError

    async def start(self) -> None:
        """Answers requests, one after another, until the connection ends. aiohttp runs it as the connection's task.

        aiohttp's own method makes a task, a writer and a larger request for each: longer than an answer from memory.
        """
        loop, messages = self._loop, self._messages
        while not self._force_close:
            if not messages:
                self._waiter = loop.create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None
            head, content = messages.pop(0)
            body, content = (content, EMPTY_PAYLOAD) if type(content) is bytes else self._parsed_body(content)
            if self._buffer_paused and len(messages) <= self._msg_queue_resume_size:
                self._resume_reading_if_drained()
            self._request_in_progress = True
            try:
                if isinstance(head, _ErrInfo):
                    answer = self.misread(request := HttpRequest(ERROR, body, content, self), head.exc)
                else:
                    request, head = HttpRequest(head, body, content, self), None  # it has what it needs of the head
                    self._current_request = request  # type: ignore[assignment] # it has what aiohttp needs of one
                    answer = await self.answer(request)
                if (sending := answer.send(request)) is not None:
                    await sending
                self._keepalive = not answer.closing
                if self._keepalive and not request.is_read:
                    await self._pass_over(content)
            except ConnectionError:
                break
            except Exception as defect:  # noqa: BLE001 - it ends this connection alone
                self.log_exception("an answer could not be sent", exc_info=defect)
                break
            except BaseException:
                self.force_close()
                raise
            finally:
                self._current_request = None
                self._request_in_progress = False
                if self._handler_waiter is not None:
                    self._handler_waiter.set_result(None)
            if not self._keepalive or self._close:
                break
            del head, body, content, request, answer  # or they would be kept until the next request is answered
            self.idle_from = loop.time()
        self._hang_up()

    def _parsed_body(self, content: StreamReader) -> tuple[bytes | None, StreamReader]:
        """The body of a parsed request, if all of it has arrived, and what reads it otherwise."""
        if self._parser is not None:
            self._parser.message_consumed()
        body = b"" if content is EMPTY_PAYLOAD else whole_body(content)
        return body, content if body is None else EMPTY_PAYLOAD  # a reader takes a kilobyte, even an empty one

    def body_came_apart(self) -> None:
        """Call it when a body is complete that was not when its head was taken. The parser counts a request only now,
        so `message_consumed` had no effect then; and it may have stopped because it counted too many."""
        if self._parser is not None:
            self._parser.message_consumed()
        self.data_received(b"")

    def _hang_up(self) -> None:
        if not self._force_close:
            self._task_handler = None
            self.force_close()

    async def _pass_over(self, content: StreamReader) -> None:
        """Waits for the unread rest of a body, which precedes the next request. Closes the connection if that takes
        longer than the lingering time, or the body is broken."""
        with suppress(TimeoutError, RequestPayloadError):
            async with asyncio.timeout(self._lingering_time):
                while not content.is_eof():
                    await content.readany()
        if content.is_eof():
            self.body_came_apart()
        else:
            self.close()

    def data_received(self, data: bytes) -> None:
        """Parses received bytes, and hands requests to `start`. Drops bytes after a request for another protocol, whose
        answer is the last one. aiohttp's own method would keep them. A whole request whose head is known is not
        parsed again, because that takes a sixth of an add."""
        if self.ignores:
            self.piece_received(data)
            return
        if self._force_close or self._close or self._upgraded or self._parser is None:
            return
        messages: Sequence[tuple[Any, StreamReader | bytes]]
        parsed: Sequence[tuple[Any, StreamReader]]
        is_ordinary = not self.owes_head
        head, body = taken_apart(data) if self._in_step else (None, b"")
        known = None if head is None else self._heads.get(head)
        if known is not None:
            messages = ((known, body),)
        elif head is not None and (keyed := self._heads.get_keyed(head)) is not None:
            messages = ((keyed, body),)
        else:
            try:
                parsed, self._upgraded, _ = self._parser.feed_data(data)
            except HttpProcessingError as error:
                parsed = ((_ErrInfo(status=400, exc=error, message=error.message), EMPTY_PAYLOAD),)
                is_ordinary = False
            self._in_step = head is not None and self._heads.remember(head, parsed)
            messages = parsed
        if messages:
            self._messages.extend(messages)
            if len(self._messages) >= self._max_msg_queue_size and not self._buffer_paused:
                self._pause_reading_for_buffer()
            waiter = self._waiter
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
            if is_ordinary:
                return
        self.piece_received(data)

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Resumes reading and parsing if it was paused. aiohttp calls this once or twice for each body even if it was
        not."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def end_if_idle(self, since: float) -> None:
        """Closes the connection if it has waited for a request since then, or longer."""
        waiter = self._waiter
        if waiter is not None and not waiter.done() and self.idle_from <= since:
            self.force_close()

    @property
    def head_waiter(self) -> "asyncio.Future[None] | None":
        """Done when a head has come; None while a request is under way, and before the first head is waited for."""
        return self._waiter

    @property
    def has_head(self) -> bool:
        """Whether a head, or an error in one, has come and is not being answered yet."""
        return bool(self._messages)

    def answer_unread(self, error: BaseException, message: str) -> None:
        """Has `misread` answer with `error`, as aiohttp does for a head that it cannot read. Call it only while a
        head is awaited."""
        assert self._waiter is not None
        self._messages.append((_ErrInfo(status=400, exc=error, message=message), EMPTY_PAYLOAD))
        self._waiter.set_result(None)

    def body_error(self) -> BaseException | None:
        """The error that broke the body of the request under way; None: it is not broken."""
        last = self._messages[-1][0] if self._messages else None
        return last.exc if isinstance(last, _ErrInfo) else None

    def break_body(self, error: BaseException) -> None:
        """Raises `error` in the reader of the body of the request under way. aiohttp would let that reader wait."""
        request = self._current_request
        if request is not None and not request.content.is_eof():
            request.content.set_exception(error)

    def write(self, data: bytes) -> None:
        """Writes bytes outside of an answer, unless the connection is lost."""
        if self.transport is not None:
            self.transport.write(data)

    async def drained(self) -> None:
        """Returns when there is room to write again. Raises ConnectionError if the connection is lost."""
        await self._drain_helper()


def whole_body(content: StreamReader) -> bytes | None:
    """A body that has arrived; None: some of it is missing. (`read_nowait` takes five times as long.)"""
    if content._eof and content._exception is None:
        return b"".join(content._buffer)
    return None


def parser_is_in_c() -> bool:
    """Whether requests are parsed by aiohttp's extension in C."""
    return HttpRequestParser.__module__ == "aiohttp._http_parser"
