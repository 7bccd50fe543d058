"""Lines and figures: nothing of what is said gets lost or counted otherwise, only sooner or later."""

import asyncio
import json
import re
from io import BytesIO
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Gauge, Histogram, generate_latest

from engine.process import telemetry
from engine.process.telemetry import Lines, LogLevel, log_to, observe_all
from tests.histories import unhurried

ROOT = Path(__file__).parents[2]
BUCKETS = (0.5, 1, 2.5, 10)


@unhurried
@given(st.lists(st.sampled_from([0.0, 0.5, 0.75, 1.0, 2.0, 2.5, 2.625, 10.0, 11.0]), min_size=1))
def test_to_observe_all_is_to_observe_each(values: list[float]) -> None:
    # These have sums without rounding: from Python 3.12 on, `sum` rounds less than adding one after the other does.
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
        lines = log_to(stream)
        structlog.get_logger().info("said", number=1)
        lines.event("said", number=1)
    finally:
        structlog.configure(**before)
    one, other = stream.getvalue().splitlines()
    without_time = [line.rpartition(b',"timestamp"')[0] for line in (one, other)]
    assert without_time[0] == without_time[1] == b'{"number":1,"event":"said","level":"info"'


class Terminal(BytesIO):
    def isatty(self) -> bool:
        return True


def logged(stream: BytesIO, level: LogLevel = "info") -> list[str]:
    """What is written of an event, a warning and a defect."""
    before = structlog.get_config()
    try:
        lines = log_to(stream, level=level)
        lines.event("request", status=200, code=None)
        logger = structlog.get_logger()
        logger.warning("clock_behind", seconds=2.5)
        try:
            raise ValueError("a\x1b[2J")
        except ValueError:
            logger.exception("request_failed", path="/\x1b]0;x\x07")
    finally:
        structlog.configure(**before)
    return stream.getvalue().decode().splitlines()


def test_on_a_terminal_lines_are_for_people_and_steer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    said, warned, failed, *traceback = logged(Terminal())
    assert re.fullmatch(r"\d\d:\d\d:\d\dZ  info     request  status=200", said)
    assert warned.endswith("  warning  clock_behind  seconds=2.5")
    assert failed.endswith(r"  error    request_failed  path=/\x1b]0;x\x07")
    assert traceback[0] == "    Traceback (most recent call last):"
    assert traceback[-1] == r"    ValueError: a\x1b[2J"


def test_on_a_terminal_what_is_urgent_has_a_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    said, warned, *failed = logged(Terminal())
    assert "\x1b" not in said
    assert (warned[:5], warned[-4:]) == ("\x1b[33m", "\x1b[0m")
    assert (failed[0][:5], failed[-1][-4:]) == ("\x1b[31m", "\x1b[0m")


@pytest.mark.parametrize(
    ("level", "events"),
    [
        ("info", ["request", "clock_behind", "request_failed"]),
        ("warning", ["clock_behind", "request_failed"]),
        ("error", ["request_failed"]),
    ],
)
def test_a_log_begins_at_its_level(level: LogLevel, events: list[str]) -> None:
    assert [json.loads(line)["event"] for line in logged(BytesIO(), level)] == events


def test_the_catalogue_names_every_figure_and_every_figure_it_names_is_there() -> None:
    named = set(re.findall(r"tallybook_\w+", telemetry.__doc__ or ""))
    there = {metric.name for metric in REGISTRY.collect() if metric.name.startswith("tallybook_")}
    counters = {metric.name for metric in REGISTRY.collect() if metric.type == "counter"}
    assert named == {f"{name}_total" if name in counters else name for name in there}


def test_every_gauge_says_how_those_of_several_processes_are_one() -> None:
    gauges = [metric for metric in vars(telemetry).values() if isinstance(metric, Gauge)]
    assert [gauge._name for gauge in gauges if gauge._multiprocess_mode == "all"] == []
    assert len(gauges) > 10


def test_the_catalogue_names_every_line_of_the_log() -> None:
    catalogue = (telemetry.__doc__ or "").split()
    logged = {
        name
        for package in ("api", "engine", "projections")
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"(?:logger\.\w+|announce)\(\s*\"(\w+)\"", path.read_text(encoding="utf-8"))
    }
    assert "expiry_failed" in logged
    assert logged - set(catalogue) == set()
