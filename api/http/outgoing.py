"""What is on its way out of a process: long answers, and how much of all of it is held in memory.

A short answer is bytes, made in one go and shared by all who ask. A long one is made step by step while it is sent,
from what it took hold of when it began: so nothing of its size is ever made in one turn of the event loop, and of those
who do not read none has more of it than a portion. What it took hold of, its parts, is shared by all who asked for the
same at the same head; they are counted here, each once, as are the answers and portions that wait to be read.
"""

import asyncio
import hashlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final, Protocol

from engine.domain.errors import OutcomeUnknown, QueueFull
from engine.log.log import Head
from engine.process.turns import Turns

LONG_BYTES: Final = 1_048_576
"""An answer, or a list in it, of more than this is a long one."""
PORTION_BYTES: Final = 65_536
"""Of a long answer, what is made and sent at a time: as many pieces as first exceed it."""
UNSENT_BYTES_MAX: Final = 134_217_728
"""Of all answers together that a process holds because they have not been read yet. Beyond it, the client that has not
read for longest is hung up on; a long answer that there is no room for waits."""
ROOM_SECONDS_MAX: Final = 5.0
"""For a long answer to wait for room. Then it is not begun."""
STUCK_SECONDS: Final = 1.0
"""Who has not read for so long makes room for a long answer that waits."""
RENDERING: Final = 1
"""Grows whenever a long answer to the same question at the same head would be of other bytes: part of its ETag."""


class Part(Protocol):
    """What long answers hold while they are under way: `size_bytes` in memory."""

    @property
    def size_bytes(self) -> int: ...


class Taken:
    """A part that nothing is made from but what it is."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


class Long:
    """A long answer that has begun: `portions` makes it. Several may go through it at once, at their own pace. It
    shows the state at `head`; `etag` is strong."""

    def __init__(
        self,
        make: Callable[[], Iterator[bytes]],
        parts: tuple[Part, ...],
        *,
        end: bytes,
        etag: str,
        head: Head,
    ) -> None:
        self.parts = parts
        self.etag = etag
        self.head = head
        self._make = make
        self._end = end

    @property
    def body(self) -> "Long":
        return self

    def portions(self) -> Iterator[bytes]:
        """The body, in pieces that each take no time to speak of; empty ones are steps of the work before it."""
        return chain(self._make(), (self._end,))

    def ending(self, end: bytes, etag: str) -> "Long":
        """The same, but for how it ends."""
        return Long(self._make, self.parts, end=end, etag=etag, head=self.head)

    def with_etag(self, etag: str) -> "Long":
        """The same, under another name."""
        return self.ending(self._end, etag)


Later = Callable[[], Long]
"""A long answer that has not begun: begins it, with the state as it is then."""


class Made:
    """A part that is made once, a portion at a time, by whoever needs the next one first. `size_bytes` is what it
    takes, estimated as long as it is not made to its end."""

    def __init__(self, portions: Iterator[bytes], size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._making: Iterator[bytes] | None = portions
        self._made: list[bytes] = []
        self._broken = False

    def portions(self) -> Iterator[bytes]:
        """What is made already, and then what is not, step by step."""
        made = self._made
        number = 0
        while True:
            while number < len(made):
                yield made[number]
                number += 1
            if self._making is None:
                return
            self._go_on(self._making)
            if number == len(made):
                yield b""

    def _go_on(self, making: Iterator[bytes]) -> None:
        if self._broken:
            raise RuntimeError("what this is made from has failed before")
        self._broken = True
        portion = next(making, None)
        self._broken = False
        if portion:
            self._made.append(portion)
        elif portion is None:
            self._making = None  # and with it goes what it was made from
            self.size_bytes = sum(map(len, self._made)) + _PORTION_OVERHEAD_BYTES * len(self._made)


_PORTION_OVERHEAD_BYTES: Final = 50


def joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces with commas between them, in portions. Empty ones, the steps before a piece, are passed on."""
    portion: list[bytes] = []
    size = 0
    first = b""
    for piece in pieces:
        if not piece:
            yield b""
            continue
        portion.append(piece)
        size += len(piece)
        if size > PORTION_BYTES:
            yield first + b",".join(portion)
            portion, size, first = [], 0, b","
    if portion:
        yield first + b",".join(portion)


def regrouped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces one after the other, the small ones put together in portions. Steps are passed on."""
    portion: list[bytes] = []
    size = 0
    for piece in pieces:
        portion.append(piece)
        size += len(piece)
        if not piece:
            yield b""
        elif size > PORTION_BYTES:
            yield b"".join(portion)
            portion, size = [], 0
    if portion:
        yield b"".join(portion)


def tag(*question: object) -> str:
    """An ETag for the answer to a question, which names everything that the answer depends on."""
    return hashlib.sha256(repr((RENDERING, *question)).encode()).hexdigest()[:32]


class Outgoing:
    """The account of one process. `turns` are for its long work; `relieve` hangs up on the client that has not read
    for longest, if for so many seconds."""

    def __init__(self, turns: Turns, *, bytes_max: int = UNSENT_BYTES_MAX) -> None:
        self.turns = turns
        self.held_bytes = 0
        self.relieve: Callable[[float], None] = _nobody
        self._bytes_max = bytes_max
        self._held: dict[int, _Held] = {}  # by its identity
        self._begun: weakref.WeakSet[Long] = weakref.WeakSet()
        self._less = asyncio.Event()

    @property
    def full(self) -> bool:
        return self.held_bytes > self._bytes_max

    async def begun(self, later: Later) -> Long:
        """The long answer, begun when there is room. Raises QueueFull where there is none for too long.

        The last one that is let in may take more than there is left; so nothing is too long to be sent at all.
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
        """As `begun`, for what has been done already: there being no room does not say that it has not."""
        try:
            return await self.begun(later)
        except QueueFull:
            raise OutcomeUnknown from None

    def hold(self, *parts: Part | bytes) -> None:
        """Counts what somebody holds who will `let_go` of it, unless others hold it already."""
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

    def wait_to_be_read(self, size_bytes: int) -> None:
        """Counts what waits in the buffer of one connection until `was_read`. Who has not read for longest makes room
        for it."""
        self.held_bytes += size_bytes
        if self.full:
            self.relieve(0.0)

    def was_read(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes
        self._less.set()

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + ROOM_SECONDS_MAX
        while self.full:
            if loop.time() > until:
                raise QueueFull
            self.relieve(STUCK_SECONDS)
            self._less.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._less.wait()


class _Held:
    __slots__ = ("holders", "part", "size_bytes")

    def __init__(self, part: Part | bytes, size_bytes: int) -> None:
        self.part = part  # or its identity could become another's
        self.size_bytes = size_bytes
        self.holders = 0


def _nobody(_: float) -> None:
    pass


_LOOK_SECONDS: Final = 0.1
