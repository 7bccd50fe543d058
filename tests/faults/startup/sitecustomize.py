"""Has a service take its time from `tests/told_clock.py`, if a case says so. Python reads this module as it starts."""

import os

if "TOLD_CLOCK_OF_TESTS" in os.environ:
    from engine.log import heads
    from tests.told_clock import TOLD

    heads._NOW = TOLD
