"""The pauses between events of the past that are played at a speed. Pure."""

from datetime import datetime
from typing import Final

PAUSE_SECONDS_MAX: Final = 5.0
"""The longest pause between two events."""
SPEED_MAX: Final = 1_000_000
"""The past can be played at most this many times as fast as it happened."""


class Pace:
    """When the events of a log are due, one after another, if they are played `speed` times as fast as they happened.
    None: at once. If playing lags behind, the following events are not played any faster."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._due_at = 0.0
        self._last: datetime | None = None

    def pause_before(self, moment: datetime, now: float) -> float:
        """The seconds from `now`, on a clock of the caller's, until the event of this moment is due."""
        if self._speed is None:
            return 0.0
        gap_seconds = 0.0 if self._last is None else (moment - self._last).total_seconds()
        self._due_at = max(self._due_at, now) + min(gap_seconds / self._speed, PAUSE_SECONDS_MAX)
        self._last = moment
        return self._due_at - now
