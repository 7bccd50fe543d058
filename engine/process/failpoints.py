"""Points at which a process can be told to die: for trying what becomes of the work that it had under way.

    TALLYBOOK_FAIL_AT=append-sent       dies when it comes to that point
    TALLYBOOK_FAIL_AT=append-sent:7     dies when it comes there for the 7th time

It dies by SIGKILL, so that nothing is tidied up. Without the variable a point costs a look at an empty dictionary. The
processes of a service read it when they begin, nothing else does.
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
    """When it has gone there, before its answer is read."""
    APPEND_COMMITTED = "append-committed"
    """When the database has answered that it is committed, before anybody is told."""
    FOLD_CLAIMED = "fold-claimed"
    """When a worker has locked the checkpoints of a batch."""
    FOLD_READ = "fold-read"
    """When it has read what follows them."""
    FOLD_SAVED = "fold-saved"
    """When it has written rows and checkpoints, before the COMMIT."""
    FOLD_COMMITTED = "fold-committed"
    """After the COMMIT."""


_left: dict[Point, int] = {}
"""How many times a point is still to be reached until the process dies there; empty unless it was armed."""


def arm() -> None:
    """Reads the variable. Raises StartupRefused where it names no point."""
    _left.clear()
    setting = os.environ.get(VARIABLE, "")
    if not setting:
        return
    name, _, times = setting.partition(":")
    if name not in set(Point) or not re.fullmatch("[1-9][0-9]{0,8}", times or "1"):
        raise StartupRefused(f"{VARIABLE} is {setting!r}; it must be one of {', '.join(Point)}, and perhaps :N.")
    _left[Point(name)] = int(times or 1)


def reached(point: Point) -> None:
    """The process is at `point`. Does not return where it was told to die there."""
    if _left:
        _count_down(point)


def reached_next(point: Point) -> None:
    """The process will be at `point` at the next turn of its event loop: when what is written now has left."""
    if _left:
        asyncio.get_running_loop().call_soon(_count_down, point)


def _count_down(point: Point) -> None:
    if point not in _left:
        return
    _left[point] -= 1
    if _left[point] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
