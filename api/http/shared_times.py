"""Times by key, shared by all processes of a service: a table in a file that each process maps into memory.

There are no locks, so no process waits for a suspended one. If two processes set the time of a key in the same
microseconds, one of the two updates is lost.
"""

import mmap
import os
from collections.abc import Hashable
from hashlib import blake2b
from pathlib import Path
from typing import Final

SLOTS: Final = 65_536
"""A slot has a key and its time. The file has 1 MiB, of which only used pages take memory."""
SLOTS_TRIED: Final = 8
"""Slots that a key may take. If none is free, it takes the one with the earliest time."""
_SLOT_BYTES: Final = 8


class SharedTimes:
    """The times in the file at `path`, which is created if it does not exist. Keys under different names are
    different."""

    def __init__(self, path: Path, name: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, 2 * SLOTS * _SLOT_BYTES)
            memory = memoryview(mmap.mmap(descriptor, 2 * SLOTS * _SLOT_BYTES))
        finally:
            os.close(descriptor)
        self._keys = memory[: SLOTS * _SLOT_BYTES].cast("Q")  # 0: free
        self._times = memory[SLOTS * _SLOT_BYTES :].cast("d")
        self._name = name

    def get(self, key: Hashable) -> float:
        """The time of the key; 0: it has none."""
        hashed = self._hashed(key)
        slot = self._slot(hashed)
        return self._times[slot] if self._keys[slot] == hashed else 0.0

    def put(self, key: Hashable, at: float) -> None:
        hashed = self._hashed(key)
        slot = self._slot(hashed)
        self._keys[slot] = hashed
        self._times[slot] = at

    def _hashed(self, key: Hashable) -> int:
        return int.from_bytes(blake2b(f"{self._name} {key!r}".encode(), digest_size=8).digest()) or 1

    def _slot(self, hashed: int) -> int:
        """The slot that has this key, else the one that it would take."""
        slots = [(hashed + n) % SLOTS for n in range(SLOTS_TRIED)]
        for slot in slots:
            if self._keys[slot] == hashed:
                return slot
        return min(slots, key=self._times.__getitem__)
