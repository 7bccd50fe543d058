"""One client that listens to a tournament, on its connection.

A listener that has everything is *current*: its follower hands it new events (`take`), and its own task sleeps. A
listener that has just connected, or has unread data, continues at its own pace: its task fetches a chunk, writes it,
and waits until the client has read it. So a client that does not read holds one chunk in memory, and after
UNREAD_SECONDS_MAX its connection is closed, like that of any client (`api/http/connections.py`).
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from collections.abc import Sequence as Items
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar, get_args

from aiohttp.client_exceptions import ClientConnectionResetError
from aiohttp.http import HttpVersion11
from msgspec import Struct

from api.http.connections import UNREAD_SECONDS_MAX
from api.http.reply import STREAMED, Reply, header
from api.http.request import HttpRequest, RequestConnection
from api.stream import frames
from api.stream.followers import OpenedBy, Pieces, StreamEnd, Streams
from api.stream.frames import ALL, SILENCE, WHOLE_LOG, Frame, Reached, StreamedLog, StreamFormat, Wanted
from api.stream.pace import Pace
from engine.domain.errors import DatabaseUnavailable, LogForked, ShuttingDown, Unavailable
from engine.domain.terms import CompetitorId
from engine.log.heads import Head
from engine.process.background import set_within
from engine.process.logs import Logger
from engine.process.telemetry import LISTENERS_ENDED, by_kind
from engine.process.time_slices import TimeSlices
from projections.live.tournament import LiveTournament

PASSED_EVENTS_MAX: Final = 1_000
"""After this many events that its filter does not accept, a listener receives its position."""
UNBUFFERED: Final = header("X-Accel-Buffering", "no")
"""Without it, nginx would hold events back."""
_PIECE_SECONDS: Final = 0.01
"""Played events that are due within this time of each other are sent in one piece."""
UNSENT_BYTES_OF_SYSTEM_MAX: Final = 65_536
"""Approximate bytes of a stream that the system may hold for a client. By default, it would hold megabytes for each
client that does not read."""
_LAST_CHUNK: Final = b"0\r\n\r\n"
_ENDED: Final = by_kind(LISTENERS_ENDED, get_args(StreamEnd))

_P = ParamSpec("_P")
_R = TypeVar("_R")
_logger: Final = Logger()


class Asked(Struct, frozen=True, kw_only=True):
    """A listener's request. `streamed`: the log, and `end`: its end at the time of the request. `after`: the event
    after which the stream begins. `speed`: the past is played this many times as fast as it happened; None: as fast as
    it can be read. `opener`: the opener of the stream."""

    form: StreamFormat
    after: Reached
    end: Head
    opener: OpenedBy
    streamed: StreamedLog = WHOLE_LOG
    wanted: Wanted = ALL
    speed: float | None = None


def _alone(
    method: Callable[Concatenate["Listener", _P], _R],
) -> Callable[Concatenate["Listener", _P], _R | None]:
    """For methods that a follower calls on its listeners: an exception ends this stream, and no other."""

    @wraps(method)
    def guarded(self: "Listener", /, *given: _P.args, **named: _P.kwargs) -> _R | None:
        try:
            return method(self, *given, **named)
        except Exception as error:  # noqa: BLE001 - the follower goes on with the others
            self._fail(error)
            return None

    return guarded


class Listener:
    """`position`: the last event up to which it has everything it wants. `why`: why it has ended; empty: it has
    not. `failure`: the exception that ended it."""

    __slots__ = (
        "_asked",
        "_called",
        "_connection",
        "_is_chunked",
        "_pace",
        "_passed",
        "_reads_again",
        "_sent_at",
        "_transport",
        "failure",
        "opener",
        "position",
        "why",
    )

    def __init__(
        self, asked: Asked, connection: RequestConnection, transport: asyncio.Transport, *, is_chunked: bool
    ) -> None:
        self.position = asked.after
        self.opener = asked.opener
        self.why = ""
        self.failure: Exception | None = None
        self._asked = asked
        self._connection = connection
        self._transport = transport
        self._is_chunked = is_chunked
        self._called = asyncio.Event()
        self._reads_again = False  # what it was about to send
        self._passed = 0  # events since the last one that was sent
        self._sent_at = connection.loop.time()
        self._pace = Pace(asked.speed)

    # ── At its own pace ───────────────────────────────────────────────────────────────────────────────────────

    async def listen(self, streams: Streams, live: LiveTournament) -> None:
        """Returns when the stream has ended. Raises ConnectionError if the client has gone."""
        try:
            follower = await streams.enter(live, self, self._asked.streamed, self._asked.end)
        except ShuttingDown:
            self.end("shutting_down")
            return
        except Unavailable:
            self.end("log_replaced")
            return
        self._connection.on_end = self.end
        knows_erased = False
        try:
            while not self.why:
                end = follower.end
                if self._transport.is_closing():
                    self.end("client_gone")  # before anybody could call `on_end`
                elif end is None:
                    self.end("unpublished")
                elif self._connection.writing_paused:
                    await self._connection.read_up()
                elif self.position.sequence < end:
                    self._reads_again = False
                    await self._send_next(await follower.next_frames(self.position, end), streams.time_slices)
                elif follower.is_held and not knows_erased:
                    knows_erased = True  # later ones are reported by the follower
                    self._say_erased(await follower.erased_beyond(self.position.sequence))
                else:
                    self._called.clear()
                    self.say_caught_up(is_held=follower.is_held)
                    follower.current[self] = None
                    await self._called.wait()
        except LogForked:
            self.end("log_replaced")
        except DatabaseUnavailable:
            self.end("database_unavailable")
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - `StreamReply` logs it
            self._fail(error)
        finally:
            self.end("client_gone")  # unless it has ended for another reason
            self._connection.on_end = None
            streams.leave(follower, self)

    @_alone
    def say_caught_up(self, *, is_held: bool) -> None:
        if not self._connection.writing_paused and not self.why:
            self._write(frames.caught_up(self._asked.form, self.position, self._asked.streamed, is_held=is_held))
            self._passed = 0

    @_alone
    def forget(self, competitor_id: CompetitorId, *, is_held: bool) -> None:
        self._reads_again = True
        if self._asked.speed is not None:
            self._called.set()  # it may pause for long
        if is_held and self._connection.writing_paused:
            self.end("reset")  # the client would not read it
        elif is_held:
            self._say_erased([competitor_id])

    def _say_erased(self, competitor_ids: Items[CompetitorId]) -> None:
        if competitor_ids and not self.why:
            self._write(b"".join([frames.erased(self._asked.form, one, self.position) for one in competitor_ids]))

    async def _send_next(self, events: Items[Frame], time_slices: TimeSlices) -> None:
        """Sends these events, in a time slice, or, if a speed was requested, with pauses between them."""
        if self._asked.speed is not None:
            await self._play(events)
            return
        async with time_slices:
            if not self.why and not self._reads_again:
                self._pass_on(events)

    async def _play(self, events: Items[Frame]) -> None:
        start = 0
        for n, frame in enumerate(events):
            pause_seconds = self._pace.pause_before(frame.stored.recorded_at, self._connection.loop.time())
            if pause_seconds > _PIECE_SECONDS:
                self._pass_on(events[start:n])
                start = n
                self._called.clear()
                await set_within(self._called, pause_seconds)
            if self.why or self._reads_again:
                return
        self._pass_on(events[start:])

    def _pass_on(self, events: Items[Frame]) -> None:
        if events:
            self._send(Pieces(self.position, events))

    # ── In rounds ───────────────────────────────────────────────────────────────────────────────────────

    @_alone
    def take(self, pieces: Pieces) -> bool:
        """Sends the events after its position. Returns False or None if it did not: it has ended, or it is behind, and
        reads at its own pace."""
        if self.why or self._connection.writing_paused or pieces.before.sequence > self.position.sequence:
            self.read_on()
            return False
        if pieces.last.sequence > self.position.sequence:
            if pieces.follow(self.position):
                self._send(pieces)
            else:
                self.end("log_replaced")
        return True

    def read_on(self) -> None:
        self._called.set()

    @_alone
    def give_sign_of_life(self, silent_since: float) -> None:
        """Sends something if nothing has been sent since, in the loop's time: its position if that has moved."""
        if self._sent_at > silent_since or self._connection.writing_paused or self.why:
            return
        if self._passed:
            self._say_position()
        else:
            self._write(SILENCE[self._asked.form])

    @_alone
    def start_over(self, head: Head) -> None:
        """Tells the client to forget everything and begin again, with a log that ends at `head`, and ends the
        stream."""
        if not self.why:
            self._write(frames.reset(self._asked.form, head, self._asked.streamed))
        self.end("reset")

    def end(self, why: StreamEnd) -> None:
        """Ends the stream, if it has not ended yet. Unread bytes are discarded."""
        if self.why:
            return
        self.why = why
        _ENDED[why].inc()
        if self._connection.writing_paused:
            self._transport.abort()
        self._called.set()

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self.end("defect")

    # ── On the way ──────────────────────────────────────────────────────────────────────────────────────

    def _send(self, pieces: Pieces) -> None:
        """Sends the events after its position. If its filter lets none through, it receives its position from time to
        time."""
        asked = self._asked
        piece = pieces.after(self.position.sequence, asked.form, asked.wanted, is_chunked=self._is_chunked)
        passed = pieces.last.sequence - self.position.sequence
        self.position = pieces.last
        if piece:
            self._passed = 0
            self._write_as_it_is(piece)
            return
        self._passed += passed
        if self._passed >= PASSED_EVENTS_MAX:
            self._say_position()

    def _say_position(self) -> None:
        self._passed = 0
        self._write(frames.position(self._asked.form, self.position))

    def _write(self, piece: bytes) -> None:
        self._write_as_it_is(frames.chunk(piece) if self._is_chunked else piece)

    def _write_as_it_is(self, piece: bytes) -> None:
        if not self._transport.is_closing():
            self._sent_at = self._connection.loop.time()
            self._transport.write(piece)


class StreamReply(Reply):
    """An answer that is a stream. `facts`: the fields of the request's canonical line."""

    def __init__(self, streams: Streams, live: LiveTournament, asked: Asked, facts: dict[str, object]) -> None:
        super().__init__(b"", media_type=asked.form, headers=UNBUFFERED, kept=STREAMED)
        self._streams = streams
        self._live = live
        self._asked = asked
        self._facts = facts

    def send(self, request: HttpRequest) -> Awaitable[None]:
        """Returns a coroutine that sends the head, and the stream until it ends."""
        return self._sent(request)

    async def _sent(self, request: HttpRequest) -> None:
        self.closing = True
        is_chunked = request.version >= HttpVersion11
        content = f"Content-Type: {self.media_type}\r\n" + ("Transfer-Encoding: chunked\r\n" if is_chunked else "")
        connection = request.connection
        transport = connection.transport
        try:
            if transport is None or transport.is_closing():
                raise ClientConnectionResetError("the client has gone")
            _bound(transport)
            transport.write(self.head(content, "Connection: close\r\n"))
            listener = Listener(self._asked, connection, transport, is_chunked=is_chunked)
            try:
                await listener.listen(self._streams, self._live)
            finally:
                self._facts["ended"] = listener.why
            if listener.failure is not None:
                _logger.error(
                    "request_failed",
                    request_id=self.request_id,
                    method=request.method,
                    path=request.path,
                    exc_info=listener.failure,
                )
            if is_chunked and not transport.is_closing():
                transport.write(_LAST_CHUNK)
        finally:
            self.on_end()


def _bound(transport: asyncio.Transport) -> None:
    """Limits the unread data that the system holds for a client, and closes the connection of a client that vanished;
    by default the system retries for a quarter of an hour."""
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNSENT_BYTES_OF_SYSTEM_MAX)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux has it
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_SECONDS_MAX * 1000))
