"""Points at which a process can be made to die, to test the effect on its unfinished work.

    TALLYBOOK_FAIL_AT=append-sent       dies when it reaches that point
    TALLYBOOK_FAIL_AT=append-sent:7     dies when it reaches that point for the 7th time

It dies by SIGKILL, so it cleans up nothing. Without the variable, a point costs a look-up in an empty dictionary. Only
the processes of a service read the variable, when they start.
"""

import asyncio
import os
import re
import signal
from enum import StrEnum
from typing import Final

from engine.domain.errors import StartupRefused

VARIABLE: Final = "TALLYBOOK_FAIL_AT"


class Point(StrEnum):
    """Where a process can die."""

    APPEND = "append"
    """Before a batch goes to the database."""
    APPEND_SENT = "append-sent"
    """After the append is sent to the database, before its answer is read."""
    APPEND_COMMITTED = "append-committed"
    """After the database has confirmed the commit, before any client is answered."""
    FOLD_CLAIMED = "fold-claimed"
    """After a worker has locked the checkpoints of a batch."""
    FOLD_READ = "fold-read"
    """After the worker has read the events that follow them."""
    FOLD_SAVED = "fold-saved"
    """After the worker has written rows and checkpoints, before the COMMIT."""
    FOLD_COMMITTED = "fold-committed"
    """After the worker's COMMIT."""

    WEBHOOK_TAKEN = "webhook-taken"
    """After a receiver has taken a message, before that is noted."""


_left: dict[Point, int] = {}
"""How many more times the process reaches each point until it dies there; empty unless armed."""


def arm() -> None:
    """Reads the variable. Raises StartupRefused if it names no point, or its N is not a number from 1 on."""
    _left.clear()
    setting = os.environ.get(VARIABLE, "")
    if not setting:
        return
    name, _, times = setting.partition(":")
    if name not in set(Point) or not re.fullmatch("[1-9][0-9]{0,8}", times or "1"):
        raise StartupRefused(
            f"{VARIABLE} is {setting!r}; it must be one of {', '.join(Point)}, or one of them with :N."
        )
    _left[Point(name)] = int(times or 1)


def reached(point: Point) -> None:
    """The process is at `point`. Does not return if the process must die there."""
    if _left:
        _count_down(point)


def reached_next(point: Point) -> None:
    """The process will be at `point` in the next round of its event loop, after its current writes have been sent."""
    if _left:
        asyncio.get_running_loop().call_soon(_count_down, point)


def _count_down(point: Point) -> None:
    if point not in _left:
        return
    _left[point] -= 1
    if _left[point] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
