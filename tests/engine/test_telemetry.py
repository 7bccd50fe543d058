"""Lines and figures: nothing of what is said gets lost or counted otherwise, only sooner or later."""

import asyncio
import re
from io import BytesIO

import structlog
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Histogram, generate_latest

from engine.process import telemetry
from engine.process.telemetry import Lines, log_json, observe_all
from tests.histories import unhurried

BUCKETS = (0.5, 1, 2.5, 10)


@unhurried
@given(st.lists(st.sampled_from([0.0, 0.5, 0.75, 1.0, 2.0, 2.5, 2.6, 10.0, 11.0]), min_size=1))
def test_to_observe_all_is_to_observe_each(values: list[float]) -> None:
    pages = []
    for at_once in (True, False):
        registry = CollectorRegistry()
        histogram = Histogram("h", "h", buckets=BUCKETS, registry=registry)
        if at_once:
            observe_all(histogram, values)
        else:
            for value in values:
                histogram.observe(value)
        page = generate_latest(registry).decode()
        pages.append([line for line in page.splitlines() if "_created" not in line])
    assert pages[0] == pages[1]


class Counting(BytesIO):
    writes = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.writes += 1
        return super().write(data)


async def test_lines_of_one_turn_of_the_loop_are_written_together_in_their_order() -> None:
    stream = Counting()
    lines = Lines(stream)
    for n in range(3):
        lines.msg(b"%d" % n)
    assert stream.getvalue() == b""
    await asyncio.sleep(0)
    assert (stream.getvalue(), stream.writes) == (b"0\n1\n2\n", 1)
    lines.msg(b"3")
    await asyncio.sleep(0)
    assert (stream.getvalue(), stream.writes) == (b"0\n1\n2\n3\n", 2)


def test_without_a_loop_a_line_is_written_at_once() -> None:
    stream = Counting()
    Lines(stream).msg(b"line")
    assert stream.getvalue() == b"line\n"


async def test_what_waits_is_written_when_asked_for() -> None:
    stream = Counting()
    lines = Lines(stream)
    lines.msg(b"line")
    lines.write()
    assert stream.getvalue() == b"line\n"


def test_loggers_and_events_write_lines_of_the_same_form() -> None:
    before = structlog.get_config()
    stream = BytesIO()
    try:
        lines = log_json(stream)
        structlog.get_logger().info("said", number=1)
        lines.event("said", number=1)
    finally:
        structlog.configure(**before)
    one, other = stream.getvalue().splitlines()
    without_time = [line.rpartition(b',"timestamp"')[0] for line in (one, other)]
    assert without_time[0] == without_time[1] == b'{"number":1,"event":"said","level":"info"'


def test_the_catalogue_names_every_figure_and_every_figure_it_names_is_there() -> None:
    named = set(re.findall(r"tallybook_\w+", telemetry.__doc__ or ""))
    there = {metric.name for metric in REGISTRY.collect() if metric.name.startswith("tallybook_")}
    counters = {metric.name for metric in REGISTRY.collect() if metric.type == "counter"}
    assert named == {f"{name}_total" if name in counters else name for name in there}
