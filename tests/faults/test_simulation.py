"""A share of the simulation; `make faults` plays thousands."""

from tests.faults.simulation import play_schedules


def test_whatever_the_schedule_the_log_holds_what_was_promised(dsn_of_thread: str) -> None:
    counts = play_schedules(dsn_of_thread, 25, first_seed=1)
    assert counts.schedules >= 25
