"""A proxy of our own between two programs, by TCP, that does to a connection what networks do.

It knows nothing of what it carries: it delays, slices, falls silent, cuts after that many bytes in a chosen direction,
resets, refuses, and can be turned to another target. Faults count for the connections there are and for new ones.
"""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from random import Random
from typing import Final

CHUNK_BYTES_MAX: Final = 64 * 1024
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: the close sends RST

Target = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Opens a connection to where the proxy leads."""


class Way(StrEnum):
    """Direction of what is carried."""

    ASKED = "asked"
    ANSWERED = "answered"


def unix(path: str) -> Target:
    return lambda: asyncio.open_unix_connection(path)


def tcp(port: int) -> Target:
    return lambda: asyncio.open_connection("127.0.0.1", port)


class Wire:
    """Use within `wire`. `port` is where it listens, on loopback."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.port = 0
        self.delay_seconds = (0.0, 0.0)
        self.slice_bytes = 0
        self.refusing = False
        self.links: set[Link] = set()
        self.cuts = 0
        self.carried = dict.fromkeys(Way, 0)
        self._random = Random(seed)
        self._open = asyncio.Event()
        self._open.set()
        self._cut: tuple[Way, int, bool] | None = None
        self._was_cut = asyncio.Event()

    def heal(self) -> None:
        """From now on it carries everything as it comes; what was held back goes on its way."""
        self.delay_seconds, self.slice_bytes, self.refusing, self._cut = (0.0, 0.0), 0, False, None
        self._open.set()

    def clog(self) -> None:
        """Nothing gets through any more and nobody is told; new connections are taken, and are as silent."""
        self._open.clear()

    def cut_after(self, way: Way, count: int, *, reset: bool) -> None:
        """The first connection that carries that many bytes that way from now on is cut behind them."""
        for link in self.links:
            link.counted = dict.fromkeys(Way, 0)
        self._was_cut.clear()
        self._cut = way, count, reset

    async def was_cut(self, seconds: float) -> bool:
        """Whether the cut has happened, when it has, or after that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._was_cut.wait()
        return self._was_cut.is_set()

    def reset_all(self) -> None:
        for link in list(self.links):
            link.sever(reset=True)

    def count_from_here(self) -> None:
        for link in self.links:
            link.counted = dict.fromkeys(Way, 0)

    def most_carried(self, way: Way) -> int:
        """By one connection, since `count_from_here`."""
        return max((link.counted[way] for link in self.links), default=0)

    async def carry(self, link: "Link", way: Way, data: bytes, writer: asyncio.StreamWriter) -> None:
        low, high = self.delay_seconds
        if high:
            await asyncio.sleep(self._random.uniform(low, high))
        await self._open.wait()
        if self._cut is not None and self._cut[0] is way:
            _, count, reset = self._cut
            left = count - link.counted[way]
            if len(data) >= left:
                self._cut = None
                self.cuts += 1
                writer.write(data[:left])
                with suppress(OSError, TimeoutError):
                    async with asyncio.timeout(1):
                        await writer.drain()
                link.sever(reset=reset)
                self._was_cut.set()
                return
        link.counted[way] += len(data)
        self.carried[way] += len(data)
        size = self.slice_bytes or len(data)
        for n in range(0, len(data), size):
            writer.write(data[n : n + size])
            await writer.drain()
            if self.slice_bytes:
                await asyncio.sleep(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            _abort(writer, reset=True)
            return
        try:
            await self._open.wait()
            far_reader, far_writer = await self.target()
        except (OSError, asyncio.CancelledError):
            _abort(writer, reset=True)
            return
        link = Link(self, (reader, writer), (far_reader, far_writer))
        self.links.add(link)
        try:
            await link.run()
        finally:
            self.links.discard(link)
            link.sever(reset=False)


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Link:
    """One connection through a wire. `counted`: bytes each way since somebody began to count."""

    def __init__(self, wire: Wire, near: Ends, far: Ends) -> None:
        self.counted = dict.fromkeys(Way, 0)
        self._wire = wire
        self._near, self._far = near, far
        for _, writer in (near, far):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def run(self) -> None:
        """Until either side has ended; an end that one side sends is passed on."""
        pumps = [
            asyncio.create_task(self._pump(Way.ASKED, self._near[0], self._far[1])),
            asyncio.create_task(self._pump(Way.ANSWERED, self._far[0], self._near[1])),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            if pumps[0].done():  # a client may say that it is done, and still listen
                await asyncio.wait(pumps, timeout=1)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)

    def sever(self, *, reset: bool) -> None:
        for _, writer in (self._near, self._far):
            _abort(writer, reset=reset)

    async def _pump(self, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES_MAX):
                await self._wire.carry(self, way, data, writer)
            await self._wire._open.wait()
            writer.write_eof()


def _abort(writer: asyncio.StreamWriter, *, reset: bool) -> None:
    plug = writer.get_extra_info("socket")
    if plug is not None and plug.fileno() != -1:
        if reset and plug.family != socket.AF_UNIX:
            with suppress(OSError):
                plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()
        elif reset:
            writer.transport.abort()
        else:
            writer.close()  # what it was given goes first


@asynccontextmanager
async def wire(target: Target, *, seed: int = 0) -> AsyncIterator[Wire]:
    """A wire to `target`."""
    between = Wire(target, seed)
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await between.serve(reader, writer)
        except asyncio.CancelledError:
            pass  # asyncio would complain of a handler that was cancelled
        finally:
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    between.port = server.sockets[0].getsockname()[1]
    try:
        yield between
    finally:
        server.close()
        between.reset_all()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await server.wait_closed()
