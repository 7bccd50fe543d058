"""Accepts connections: in each round of the event loop, all that wait, up to a bound.

libuv accepts one per round. While thousands connect, a round takes long, so waiting connections would fill the system's
queue. The system would drop any further ones, and their clients would try again after one, two and four seconds.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from socket import SO_KEEPALIVE, SOL_SOCKET, socket
from typing import Final

from api.http.limits import UNACCEPTED_MAX
from engine.process.background import background
from engine.process.logs import Logger

ACCEPTED_AT_ONCE_MAX: Final = 128
"""Connections that are accepted in one round; each takes some 0.1 ms."""
ACCEPT_AGAIN_SECONDS: Final = 0.1
"""The pause after the system could not accept for lack of descriptors or memory."""

_logger: Final = Logger()


@asynccontextmanager
async def accepting(listener: socket, make: Callable[[], asyncio.Protocol]) -> AsyncIterator[None]:
    """Accepts connections on a bound socket; `make` makes the protocol of each. The socket is closed at the end; the
    connections are not."""
    loop = asyncio.get_running_loop()
    listener.listen(UNACCEPTED_MAX)
    listener.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)  # accepted sockets inherit it
    listener.setblocking(False)
    async with background() as tasks:

        async def open_one(accepted: socket) -> None:
            try:
                await loop.connect_accepted_socket(make, accepted)
            except OSError:
                accepted.close()  # the client has gone already

        def accept() -> None:
            for _ in range(ACCEPTED_AT_ONCE_MAX):
                try:
                    accepted, _ = listener.accept()
                except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                    return
                except OSError as error:
                    _logger.warning("accepting_paused", error=repr(error))
                    loop.remove_reader(listener)
                    loop.call_later(ACCEPT_AGAIN_SECONDS, begin)
                    return
                accepted.setblocking(False)
                tasks.create_task(open_one(accepted))

        def begin() -> None:
            if listener.fileno() != -1:
                loop.add_reader(listener, accept)

        begin()
        try:
            yield
        finally:
            loop.remove_reader(listener)
            listener.close()
