"""How much is tried of what clients might send, and header lines of any bytes."""

import os
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

SHARE: Final = min(1.0, int(os.environ.get("TALLYBOOK_TEST_EXAMPLES", "2")) / 10)
"""`make fuzz` plays all examples, `make test` two of ten."""


def examples(number: int) -> Any:
    """Settings for SHARE of `number` examples. One may take long: the connection bounds it."""
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(max_examples=round(number * SHARE), deadline=None, suppress_health_check=checks)


header_bytes = st.lists(st.sampled_from([9, *range(0x20, 0x7F), *range(0x80, 0x100)]), max_size=300).map(bytes)
"""What HTTP lets be the value of a header."""
