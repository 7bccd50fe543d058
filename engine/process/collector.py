"""When Python's garbage collector begins.

It begins when the objects made exceed the objects freed by a threshold, and examines everything made since it last
began. A request's objects are freed with its answer, without the collector. So examining requests under way is wasted
time: some 200 ms for 5,500 of them. The threshold therefore grows with the number of connections.
"""

import gc
from contextlib import suppress
from typing import Final

YOUNG_OBJECTS: Final = 5_000
"""Python's default of 700 is fewer than the requests of 64 connections make. With 10,000, the collector takes up to 8
ms each time while a large tournament is brought into memory."""
YOUNG_OBJECTS_PER_CONNECTION: Final = 20
_OLDER: Final = (40, 50)


def begin() -> None:
    """Has it begin. Exempts everything in memory from collection, because all of it stays."""
    gc.freeze()
    adapt(0)
    gc.enable()


def settle() -> None:
    """Does the same after a process has started, and returns free memory to the system."""
    import ctypes  # noqa: PLC0415 - commands do without it

    begin()
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def adapt(connections: int) -> None:
    """Sets the threshold for this number of connections."""
    gc.set_threshold(YOUNG_OBJECTS + YOUNG_OBJECTS_PER_CONNECTION * connections, *_OLDER)
