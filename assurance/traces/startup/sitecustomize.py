"""Has an API process or a worker record what it does, if a test says so. Python reads this module as it starts."""

import os
import sys

if "TRACES_OF_TESTS" in os.environ and "tallybook_command" in sys.orig_argv and "api" in sys.orig_argv:
    from assurance.traces.recorder import record

    record()
elif "TRACES_OF_TESTS" in os.environ and "worker" in sys.orig_argv:
    from assurance.traces.recorder import record_worker

    record_worker()
