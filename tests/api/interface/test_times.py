"""Times as answers write them, against their parts."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.times import instant, timestamp


@given(st.datetimes(timezones=st.just(UTC)))
def test_times_are_written_digit_by_digit(moment: datetime) -> None:
    date = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    time = f"{moment.hour:02}:{moment.minute:02}:{moment.second:02}"
    assert timestamp(moment) == f"{date} {time}"
    assert instant(moment) == f"{date}T{time}.{moment.microsecond:06}Z"
