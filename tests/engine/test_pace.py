"""How fast a queue moves."""

from engine.process.pace import PACE_SAMPLES, QueuePace


def test_nothing_is_known_before_anything_was_seen_and_after_it_was_forgotten() -> None:
    pace = QueuePace()
    assert pace.seconds_each == 0.0
    pace.took(1.0, 4)
    assert pace.seconds_each == 0.25
    pace.forget()
    assert pace.seconds_each == 0.0


def test_one_halt_changes_nothing_and_a_slow_time_does() -> None:
    pace = QueuePace()
    for _ in range(PACE_SAMPLES):
        pace.took(1.0, 100)
    pace.took(500.0, 100)
    assert pace.seconds_each == 0.01
    for _ in range(PACE_SAMPLES // 2):
        pace.took(10.0, 100)
    assert pace.seconds_each == 0.1
