"""The pace of a queue: how long a new request can expect to wait."""

from statistics import median
from typing import Final

EXPECTED_SECONDS_MAX: Final = 2.0
"""A request is accepted if it is expected to wait no longer than this for its turn."""
WAITED_SECONDS_MAX: Final = 3.0
"""A request that has waited longer when its turn comes is refused if many wait behind it."""
PACE_SAMPLES: Final = 9
"""The number of measurements kept: a single stall does not change their median; five slower ones do."""


class QueuePace:
    """`seconds_each`: how long each waiting request takes, by the last measurements; 0 if there are none."""

    def __init__(self) -> None:
        self.seconds_each = 0.0
        self._last: list[float] = []

    def took(self, seconds: float, count: int = 1) -> None:
        """Notes that `count` of them took `seconds` together."""
        self._last = [*self._last[1 - PACE_SAMPLES :], seconds / count]
        self.seconds_each = median(self._last)

    def forget(self) -> None:
        """Forgets all measurements: the queue has changed."""
        if self._last:
            self._last.clear()
            self.seconds_each = 0.0
