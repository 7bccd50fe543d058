"""What is asked of the past, and how exactly: texts become moments, filters and cursors, or are refused by name."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.interface.declarations import Recall
from api.interface.fields import begin_of_time, end_of_time, read_query
from engine.domain.errors import Unreadable
from engine.domain.faults import shortened
from engine.domain.terms import ID_MAX, Sequence, UnityId
from projections.answers.explanation import STEPS_DEFAULT, STEPS_MAX
from projections.answers.history import LINES_DEFAULT, LINES_MAX
from projections.past.moments import AtSequence, AtTime, AtVersion
from projections.past.pages import Cursor
from tests.api.rendered import BY_NAME

STANDINGS: Final = "GET rankings/{ranking_id}/standings.json"
HISTORY: Final = "GET rankings/{ranking_id}/history.json"
EXPLAIN: Final = "GET rankings/{ranking_id}/explain.json"


def question_of(name: str, query: list[tuple[str, str]]) -> Any:
    operation = BY_NAME[name]
    assert isinstance(operation, Recall)
    return operation.question(ranking_id=1, **read_query(query, operation.fields))


texts = st.text() | st.from_regex(r"[0-9:. TZ+-]{0,30}", fullmatch=True) | st.integers().map(str)


@given(st.sampled_from([STANDINGS, HISTORY, EXPLAIN]), st.data())
def test_any_text_in_any_parameter_is_read_or_refused_by_its_name(name: str, data: st.DataObject) -> None:
    names = st.sampled_from([field.name for field in BY_NAME[name].fields]) | texts
    query = data.draw(st.lists(st.tuples(names, texts), max_size=4))
    refusals: list[Unreadable] = []
    try:
        question_of(name, query)
    except Unreadable as refusal:
        refusals.append(refusal)
    for refusal in refusals:
        named = {shortened(name) for name, _ in query} | {"competitor"}
        assert refusal.faults
        assert {fault.field for fault in refusal.faults} <= named


@pytest.mark.parametrize(
    ("text", "begin", "length"),
    [
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC), timedelta(days=1)),
        ("2024-02-29 12:30", datetime(2024, 2, 29, 12, 30, tzinfo=UTC), timedelta(minutes=1)),
        ("2024-02-29 12:30:01", datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC), timedelta(seconds=1)),
        ("2024-02-29T12:30:01Z", datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC), timedelta(seconds=1)),
        ("2024-02-29 12:30:01.5", datetime(2024, 2, 29, 12, 30, 1, 500_000, tzinfo=UTC), timedelta(milliseconds=100)),
        ("2024-02-29 12:30:01.000001", datetime(2024, 2, 29, 12, 30, 1, 1, tzinfo=UTC), timedelta(microseconds=1)),
        ("2024-02-29T12:30:01.500Z", datetime(2024, 2, 29, 12, 30, 1, 500_000, tzinfo=UTC), timedelta(milliseconds=1)),
        ("2024-02-29T12:30:01.1234567Z", datetime(2024, 2, 29, 12, 30, 1, 123456, UTC), timedelta(microseconds=1)),
        ("2024-02-29 12:30:01.000001999", datetime(2024, 2, 29, 12, 30, 1, 1, tzinfo=UTC), timedelta(microseconds=1)),
        ("2024-02-29t12:30:01z", datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC), timedelta(seconds=1)),
        ("2024-02-29T12:30:01+02:00", datetime(2024, 2, 29, 10, 30, 1, tzinfo=UTC), timedelta(seconds=1)),
        ("2024-02-29 12:30-00:30", datetime(2024, 2, 29, 13, 0, tzinfo=UTC), timedelta(minutes=1)),
        ("2024-03-01+05:45", datetime(2024, 2, 29, 18, 15, tzinfo=UTC), timedelta(days=1)),
        ("2024-02-29T23:59:59-23:59", datetime(2024, 3, 1, 23, 58, 59, tzinfo=UTC), timedelta(seconds=1)),
        ("0001-01-01T23:59:00+23:59", datetime(1, 1, 1, tzinfo=UTC), timedelta(seconds=1)),
        ("0001-01-01 00:00:00", datetime(1, 1, 1, tzinfo=UTC), timedelta(seconds=1)),
        ("9999-12-31 23:59:59", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), timedelta(seconds=1)),
    ],
)
def test_a_time_lasts_as_long_as_it_is_exact(text: str, begin: datetime, length: timedelta) -> None:
    assert begin_of_time(text) == begin
    assert end_of_time(text) == begin + (length - timedelta(microseconds=1))


@pytest.mark.parametrize(
    "text",
    ["", "2024", "2024-02-30", "2024-1-1", "24-01-01", "2024-01-01 24:00:00", "2024-01-01 1:00", "2024-01-01 12:30:60",
     "2024-01-01 12:30:01.0000000000001", "2024-01-01 12:30:01 02:00", "2024-01-01 12:30:01+24:00",
     "2024-01-01 12:30:01+02:60", "2024-01-01 12:30:01+0200", "2024-01-01 12:30:01+2:00", "2024-01-01 12:30:01Z+02:00",
     "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2024-01-01 12:30:01.", "2024-01-01 ",
     " 2024-01-01", "٢٠٢٤-01-01", "0000-01-01"],
)  # fmt: skip
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a time of the form"):
        begin_of_time(text)


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),
    st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
def test_a_time_is_the_same_in_every_zone(moment: datetime, zone: timezone) -> None:
    utc = moment.replace(tzinfo=UTC)
    assert begin_of_time(utc.astimezone(zone).isoformat()) == utc == begin_of_time(moment.isoformat())


def test_a_moment_is_one_or_none() -> None:
    assert question_of(STANDINGS, []).moment is None
    assert question_of(STANDINGS, [("at_sequence", str(ID_MAX))]).moment == AtSequence(Sequence(ID_MAX))
    assert question_of(STANDINGS, [("version", "7:3")]).moment == AtVersion(UnityId(7), 3)
    assert question_of(STANDINGS, [("at_time", "2024-01-01 00:00:00")]).moment == AtTime(
        datetime(2024, 1, 1, 0, 0, 0, 999_999, tzinfo=UTC)
    )


@given(st.integers(1, ID_MAX), st.integers(0, 10**6))
def test_a_cursor_is_read_as_it_was_written(sequence: int, lines: int) -> None:
    cursor = Cursor(Sequence(sequence), lines)
    assert question_of(HISTORY, [("after", cursor.text)]).after == cursor


def test_more_than_the_most_at_a_time_is_the_most() -> None:
    assert question_of(HISTORY, [("limit", str(LINES_MAX))]).limit == LINES_MAX
    assert question_of(HISTORY, [("limit", str(LINES_MAX + 1))]).limit == LINES_MAX
    assert question_of(EXPLAIN, [("competitor", "1"), ("limit", str(ID_MAX))]).limit == STEPS_MAX
    assert question_of(HISTORY, []).limit == LINES_DEFAULT
    assert question_of(EXPLAIN, [("competitor", "1")]).limit == STEPS_DEFAULT
