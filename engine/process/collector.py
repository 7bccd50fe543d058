"""When Python's garbage collector begins.

It begins when so many more objects were made than freed, and then examines all that were made since it last began. What
a request makes is freed with its answer, without the collector, so examining requests under way is wasted: with 5,500
of them, some 200 ms each time. So it waits for more objects while there are more connections.
"""

import gc
from typing import Final

YOUNG_OBJECTS: Final = 5_000
"""Python's default of 700 is fewer than the requests of 64 connections make. With 10,000, the collector takes up to 8
ms each time while a large tournament is brought into memory."""
YOUNG_OBJECTS_PER_CONNECTION: Final = 20
_OLDER: Final = (40, 50)


def settle() -> None:
    """Has the collector pass over what is in memory now, because all of it stays."""
    gc.freeze()
    adapt(0)


def adapt(connections: int) -> None:
    """Has the collector wait for as many objects as suits so many connections."""
    gc.set_threshold(YOUNG_OBJECTS + YOUNG_OBJECTS_PER_CONNECTION * connections, *_OLDER)
