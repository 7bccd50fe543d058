"""The pauses with which the past is played."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.stream.pace import PAUSE_SECONDS_MAX, Pace

BEGAN: Final = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize(("gap_seconds", "pause"), [(0.0, 0.0), (3.0, 1.5), (10.0, 5.0), (10.1, 5.0), (86_400.0, 5.0)])
def test_an_event_comes_after_its_gap_divided_by_the_speed_but_at_most_five_seconds(
    gap_seconds: float, pause: float
) -> None:
    pace = Pace(2.0)
    assert pace.pause_before(BEGAN, now=100.0) == 0.0
    assert pace.pause_before(BEGAN + timedelta(seconds=gap_seconds), now=100.0) == pytest.approx(pause)


def test_without_a_speed_nothing_waits() -> None:
    pace = Pace(None)
    assert [pace.pause_before(BEGAN + timedelta(days=day), now=100.0) for day in range(3)] == [0.0] * 3


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=20), st.floats(0.1, 100))
def test_playing_that_lags_behind_continues_at_its_speed(steps: list[tuple[float, float]], speed: float) -> None:
    """Each event is due a gap after the one before it, or after now, if that one was late."""
    pace, moment, now = Pace(speed), BEGAN, 100.0
    pace.pause_before(moment, now)
    due_at = now
    for gap_seconds, late_seconds in steps:
        moment += timedelta(seconds=gap_seconds)
        now = due_at + late_seconds
        gap = min(timedelta(seconds=gap_seconds).total_seconds() / speed, PAUSE_SECONDS_MAX)
        assert pace.pause_before(moment, now) == pytest.approx(gap, abs=1e-6)
        due_at = now + gap
