"""The time of logs against the clock: says so when a log is ahead of it.

`recorded_at` is the later of the database's clock and the previous block's time, so time never runs backwards in a log.
So when the clock was in the future once, be it for a moment, the log's time stands still until the clock has caught up:
what is appended meanwhile has the time of that moment. It cannot be otherwise: what was appended is never changed, and
questions about a time are answered by halving a log whose times never fall.
"""

import time
from datetime import datetime
from typing import Final

import structlog

from engine.domain.terms import TournamentId
from engine.log.log import Appended
from engine.process.telemetry import APPENDED_EVENTS, CLOCK_BEHIND

BEHIND_SECONDS_MAX: Final = 1.0
"""A log that is ahead of this process's clock by more is an alarm; clocks of two machines may differ by less."""
SAID_EVERY_SECONDS: Final = 60.0

_logger = structlog.get_logger()


class Clock:
    """The latest time of all logs that a process appended to, held against its clock."""

    def __init__(self) -> None:
        self._latest = 0.0
        self._of: TournamentId | None = None
        self._said_at: float | None = None

    def appended(self, tournament_id: TournamentId, recorded_at: datetime) -> None:
        """A block was recorded then."""
        seconds = recorded_at.timestamp()
        if seconds > self._latest:
            self._latest, self._of = seconds, tournament_id

    def behind_seconds(self, now: float) -> float:
        """How far the clock, which says `now`, is behind the latest of the logs; 0: it is not."""
        return max(0.0, self._latest - now)

    def watch(self) -> None:
        """Sets the gauge; and where it shows more than BEHIND_SECONDS_MAX, says so every SAID_EVERY_SECONDS."""
        behind = self.behind_seconds(time.time())
        CLOCK_BEHIND.set(behind)
        if behind <= BEHIND_SECONDS_MAX:
            self._said_at = None
        elif self._said_at is None or time.monotonic() >= self._said_at + SAID_EVERY_SECONDS:
            self._said_at = time.monotonic()
            _logger.error("clock_behind", tournament_id=self._of, seconds=round(behind, 1))


CLOCK: Final = Clock()
"""This process's."""


def note(tournament_id: TournamentId, outcome: object) -> None:
    """Counts what was appended, and takes note of its time; any other outcome is none of our business."""
    if isinstance(outcome, Appended) and outcome.first_sequence is not None:
        assert outcome.last_sequence is not None
        assert outcome.recorded_at is not None
        APPENDED_EVENTS.inc(outcome.last_sequence - outcome.first_sequence + 1)
        CLOCK.appended(tournament_id, outcome.recorded_at)
