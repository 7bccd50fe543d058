"""Outgoing data of a process: long answers, and an account of the memory that all answers hold.

A short answer is bytes, made without a pause and shared by all requests. A long answer is made step by step while it is
sent, from the parts it reserved when it began. So one round of the event loop never makes much of it, and a client that
does not read holds only a chunk of it. Equal requests at the same head share its parts. Each part is counted here once,
as are the answers and chunks that wait to be read.
"""

import asyncio
import hashlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, Literal, Protocol

from engine.domain.errors import OutcomeUnknown, QueueFull
from engine.process.background import set_within
from engine.process.time_slices import TimeSlices

LONG_BYTES: Final = 1_048_576
"""An answer is long if it, or a list in it, is larger than this."""
CHUNK_BYTES: Final = 65_536
"""A long answer is made and sent chunk by chunk. A chunk is complete when it exceeds this."""
STEP_BYTES: Final = 8_192
"""A chunk is made in steps of about this size, some 0.3 ms each. Without steps it would exceed the time slice of long
answers in each round of the event loop."""
UNSENT_BYTES_MAX: Final = 134_217_728
"""Bytes of all answers that a process holds because they have not been read yet. Beyond it, the connection of the
client that has not read for longest is closed, and a long answer waits for room."""
ROOM_SECONDS_MAX: Final = 5.0
"""A long answer waits for room this long. Then it is not begun."""
STUCK_SECONDS: Final = 1.0
"""While a long answer waits for room, a client that has not read for this long is disconnected."""
RENDERING: Final = 1
"""Goes into the ETag of a long answer. Raise it whenever the same query at the same head gives other bytes."""


class Part(Protocol):
    """Data that long answers hold while they are sent. It takes `size_bytes` in memory, which may change."""

    @property
    def size_bytes(self) -> int: ...


class Taken:
    """A part that only says how much memory an answer holds."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


class Long:
    """A long answer that has begun; `etag` is strong. Several requests may go through its `chunks` at once, each at its
    own pace."""

    def __init__(
        self,
        make: Callable[[], Iterator[bytes]],
        parts: tuple[Part, ...],
        *,
        end: bytes,
        etag: str,
    ) -> None:
        self.parts = parts
        self.etag = etag
        self._make = make
        self._end = end

    @property
    def body(self) -> "Long":
        return self

    def chunks(self) -> Iterator[bytes]:
        """The body in chunks, each made within a step. Empty ones are steps of the work before it."""
        return chain(self._make(), (self._end,))

    def ending(self, end: bytes, etag: str) -> "Long":
        """The same answer with another end and ETag."""
        return Long(self._make, self.parts, end=end, etag=etag)

    def with_etag(self, etag: str) -> "Long":
        """The same answer with another ETag."""
        return self.ending(self._end, etag)


Later = Callable[[], Long]
"""A long answer that has not begun. A call begins it, with the state at that moment."""


class Made:
    """A part that is made once, a chunk at a time, by the answer that needs the next chunk first. `size_bytes` is
    an estimate until the last one is made."""

    def __init__(self, chunks: Iterator[bytes], size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._making: Iterator[bytes] | None = chunks
        self._made: list[bytes] = []
        self._broken = False

    def chunks(self) -> Iterator[bytes]:
        """The chunks made already, then the others as they are made, step by step."""
        made = self._made
        number = 0
        while True:
            while number < len(made):
                yield made[number]
                number += 1
            if self._making is None:
                return
            self._step(self._making)
            if number == len(made):
                yield b""

    def _step(self, making: Iterator[bytes]) -> None:
        if self._broken:
            raise RuntimeError("what this is made from has failed before")
        self._broken = True
        chunk = next(making, None)
        self._broken = False
        if chunk:
            self._made.append(chunk)
        elif chunk is None:
            self._making = None  # frees the source of the chunks
            self.size_bytes = sum(map(len, self._made)) + _CHUNK_OVERHEAD_BYTES * len(self._made)


class MadePerAnswer:
    """A part that is too large to be kept: each answer makes its own chunks. Their source takes `size_bytes`."""

    def __init__(self, make: Callable[[], Iterator[bytes]], size_bytes: int) -> None:
        self.chunks = make
        self.size_bytes = size_bytes


_CHUNK_OVERHEAD_BYTES: Final = 50


def joined(pieces: Iterable[bytes], *, comma: bytes = b",") -> Iterator[bytes]:
    """The pieces with commas between them, in chunks. Empty pieces are steps, here and in what they are made from."""
    chunk: list[bytes] = []
    size, step_ends = 0, STEP_BYTES
    first = b""
    for piece in pieces:
        if not piece:
            yield b""
            continue
        chunk.append(piece)
        size += len(piece)
        if size > CHUNK_BYTES:
            yield first + comma.join(chunk)
            chunk, size, step_ends, first = [], 0, STEP_BYTES, comma
        elif size > step_ends:
            yield b""
            step_ends = size + STEP_BYTES
    if chunk:
        yield first + comma.join(chunk)


def regrouped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces as `joined` has them, with nothing between them: small ones are put together."""
    return joined(pieces, comma=b"")


def etag_of(*question: object) -> str:
    """An ETag for the answer to `question`, which must name everything that the answer depends on."""
    return hashlib.sha256(repr((RENDERING, *question)).encode()).hexdigest()[:32]


class UnreadConnection(Protocol):
    """A connection whose client does not read."""

    def end(self, reason: Literal["unread"], *, at_once: bool) -> None:
        """Closes it, and says that it `was_read`."""


class Outgoing:
    """The account of the data that answers of one process hold. `time_slices` are for long work."""

    def __init__(self, time_slices: TimeSlices, *, bytes_max: int = UNSENT_BYTES_MAX) -> None:
        self.time_slices = time_slices
        self.held_bytes = 0
        self._bytes_max = bytes_max
        self._unread: dict[UnreadConnection, tuple[float, int]] = {}  # since when, and the bytes; in order of time
        self._held: dict[int, _Held] = {}  # by the identity of the part
        self._begun: weakref.WeakSet[Long] = weakref.WeakSet()
        self._less = asyncio.Event()

    @property
    def full(self) -> bool:
        return self.held_bytes > self._bytes_max

    async def begun(self, later: Later) -> Long:
        """Begins the long answer when there is room, with the state as this returns. Raises QueueFull if there is none
        for ROOM_SECONDS_MAX.

        The last answer admitted may exceed the remaining room, so no answer is too long to be sent.
        """
        if self.full:
            await self._room()
        long = later()
        if long not in self._begun:
            self._begun.add(long)
            self.hold(*long.parts)
            weakref.finalize(long, self.let_go, *long.parts).atexit = False
        return long

    async def begun_after_all(self, later: Later) -> Long:
        """As `begun`, for a change that has already been made. Raises OutcomeUnknown instead of QueueFull, which would
        mean that the change was not made."""
        try:
            return await self.begun(later)
        except QueueFull:
            raise OutcomeUnknown from None

    def hold(self, *parts: Part | bytes) -> None:
        """Counts the parts until they are `let_go`. A part that another answer holds is not counted again."""
        for part in parts:
            held = self._held.get(id(part))
            if held is None:
                held = self._held[id(part)] = _Held(part, len(part) if isinstance(part, bytes) else part.size_bytes)
                self.held_bytes += held.size_bytes
            held.holders += 1

    def let_go(self, *parts: Part | bytes) -> None:
        for part in parts:
            held = self._held[id(part)]
            held.holders -= 1
            if not held.holders:
                del self._held[id(part)]
                self.held_bytes -= held.size_bytes
        self._less.set()

    def measure(self) -> None:
        """Updates the size of all parts. If it is too large, disconnects the client that has not read for longest."""
        for held in self._held.values():
            if not isinstance(held.part, bytes):
                size_bytes = held.part.size_bytes
                self.held_bytes += size_bytes - held.size_bytes
                held.size_bytes = size_bytes
        if self.full:
            self.end_unread(0.0)

    def wait_to_be_read(self, connection: UnreadConnection, size_bytes: int) -> None:
        """Counts bytes that wait in the buffer of a connection until `was_read`. If there are too many, disconnects the
        client that has not read for longest."""
        self._unread[connection] = asyncio.get_running_loop().time(), size_bytes
        self.held_bytes += size_bytes
        if self.full:
            self.end_unread(0.0)

    def was_read(self, connection: UnreadConnection) -> None:
        """Its bytes are no longer counted. Idempotent."""
        _, size_bytes = self._unread.pop(connection, (0.0, 0))
        if size_bytes:
            self.held_bytes -= size_bytes
            self._less.set()

    def end_unread(self, seconds: float) -> bool:
        """Disconnects the client that has not read for longest, if that is at least that many seconds. Returns whether
        there was one."""
        connection, (since, _) = next(iter(self._unread.items()), (None, (0.0, 0)))
        if connection is None or asyncio.get_running_loop().time() - since < seconds:
            return False
        connection.end("unread", at_once=True)
        return True

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + ROOM_SECONDS_MAX
        while self.full:
            if loop.time() > until:
                raise QueueFull
            self.end_unread(STUCK_SECONDS)
            self._less.clear()
            await set_within(self._less, _LOOK_SECONDS)


class _Held:
    __slots__ = ("holders", "part", "size_bytes")

    def __init__(self, part: Part | bytes, size_bytes: int) -> None:
        self.part = part  # held, or another object could get its identity
        self.size_bytes = size_bytes
        self.holders = 0


_LOOK_SECONDS: Final = 0.1
