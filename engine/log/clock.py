"""The time of logs against the clock: raises an alarm when a log is ahead of it.

`recorded_at` is the later of the database's clock and the previous block's time, so time never runs backwards in a log.
If the clock was ever in the future, even for a moment, the log's time stands still until the clock has caught up:
blocks appended meanwhile get the time of that moment. This is unavoidable: the log never changes, and questions about a
time are answered by bisecting a log whose times never fall.
"""

import time
from datetime import datetime
from typing import Final

from engine.domain.terms import TournamentId
from engine.log.appending import Appended
from engine.process.logs import Logger
from engine.process.telemetry import APPENDED_EVENTS, CLOCK_BEHIND, adder

BEHIND_SECONDS_MAX: Final = 1.0
"""How far a log may be ahead of this process's clock without an alarm: clocks of two machines may differ a little."""
SAID_EVERY_SECONDS: Final = 60.0

_logger: Final = Logger()


class Clock:
    """Compares the latest time of all logs that a process has appended to with the process's clock."""

    def __init__(self) -> None:
        self._latest = 0.0
        self._of: TournamentId | None = None
        self._said_at: float | None = None

    def appended(self, tournament_id: TournamentId, recorded_at: datetime) -> None:
        """Notes that a block was recorded at `recorded_at`."""
        seconds = recorded_at.timestamp()
        if seconds > self._latest:
            self._latest, self._of = seconds, tournament_id

    def behind_seconds(self, now: float) -> float:
        """How far `now`, in seconds since 1970, is behind the latest time of the logs; 0: it is not."""
        return max(0.0, self._latest - now)

    def watch(self) -> None:
        """Sets the gauge. While it shows more than BEHIND_SECONDS_MAX, logs an alarm every SAID_EVERY_SECONDS."""
        behind = self.behind_seconds(time.time())
        CLOCK_BEHIND.set(behind)
        if behind <= BEHIND_SECONDS_MAX:
            self._said_at = None
        elif self._said_at is None or time.monotonic() >= self._said_at + SAID_EVERY_SECONDS:
            self._said_at = time.monotonic()
            _logger.error("clock_behind", tournament_id=self._of, seconds=round(behind, 1))


_add_events: Final = adder(APPENDED_EVENTS)
CLOCK: Final = Clock()
"""The clock of this process."""


def note(tournament_id: TournamentId, outcome: object) -> None:
    """Counts the events that were appended, and notes their time. Ignores any other outcome."""
    if isinstance(outcome, Appended) and outcome.first_sequence is not None:
        assert outcome.last_sequence is not None
        assert outcome.recorded_at is not None
        _add_events(outcome.last_sequence - outcome.first_sequence + 1)
        CLOCK.appended(tournament_id, outcome.recorded_at)
