"""Has a process take its time from `told_clock.py`, if the environment says so. Python reads this as it starts."""

import os

if "TOLD_CLOCK_OF_TESTS" in os.environ:
    from engine.log import heads
    from tests.told_clock import TOLD

    heads._NOW = TOLD
