"""Reports the state of a service to systemd, as sd_notify(3) describes, if systemd asks for it (`Type=notify`).

A service reports when it is ready to work, and when it is stopping. With `WatchdogSec` it also reports at intervals
that it is well; systemd restarts a service that has not reported for that long.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from engine.process.logs import Logger

SOCKET_VARIABLE: Final = "NOTIFY_SOCKET"
WATCHDOG_VARIABLES: Final = ("WATCHDOG_USEC", "WATCHDOG_PID")
IS_READY: Final = "READY=1"
IS_STOPPING: Final = "STOPPING=1"
IS_WELL: Final = "WATCHDOG=1"

_logger: Final = Logger()


def tell(state: str) -> None:
    """Sends a state. Trouble is logged: a service that cannot be watched still serves."""
    address = os.environ.get(SOCKET_VARIABLE)
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect("\0" + address[1:] if address.startswith("@") else address)
            datagrams.send(state.encode())
    except OSError as error:
        _logger.warning("systemd_not_told", state=state, reason=str(error))


@asynccontextmanager
async def watched(is_well: Callable[[], bool] = lambda: True) -> AsyncIterator[None]:
    """Within the context, as long as the event loop runs and `is_well` returns true: says that the service is well. At
    its end: that it is stopping."""
    telling = asyncio.create_task(_tell_well(is_well))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])
        tell(IS_STOPPING)


async def _tell_well(is_well: Callable[[], bool]) -> None:
    seconds = _watchdog_seconds()
    while seconds is not None:
        if is_well():
            tell(IS_WELL)
        await asyncio.sleep(seconds / 3)


def _watchdog_seconds() -> float | None:
    """How often systemd wants to hear of this process at least; None: it does not."""
    usec, pid = (os.environ.get(name, "") for name in WATCHDOG_VARIABLES)
    if not (usec.isascii() and usec.isdecimal()) or int(usec) == 0 or pid not in ("", str(os.getpid())):
        return None
    return int(usec) / 1_000_000


def without_systemd(environment: dict[str, str]) -> dict[str, str]:
    """An environment for processes of ours, whose state is not that of the service."""
    return {name: text for name, text in environment.items() if name not in (SOCKET_VARIABLE, *WATCHDOG_VARIABLES)}
