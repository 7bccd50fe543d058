"""Whether temporary directories lie in memory. To make and drop databases on a disk takes longer than the tests do."""

import os
from pathlib import Path
from typing import Final

IN_MEMORY: Final = Path("/dev/shm")
_BYTES_MIN: Final = 8 * 2**30


def memory_has_room() -> bool:
    """Whether it is writable and large enough for the files of tests."""
    if not os.access(IN_MEMORY, os.W_OK):
        return False
    state = os.statvfs(IN_MEMORY)
    return state.f_bavail * state.f_frsize >= _BYTES_MIN
