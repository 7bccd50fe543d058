"""The table: what each question asks, what it must reach and aims at, and its result.

The rows are those of the plan for heavy delta load. A row's value is a size, or a ratio of two figures measured in the
same round. The row is met if the median of the rounds is.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from statistics import median
from typing import Final

from msgspec import Struct, field

TIMES: Final = "×"  # noqa: RUF001 - the sign that ratios are written with


class Row(Struct, frozen=True, kw_only=True):
    """`at_most`: the value must not be above `must`; otherwise it must not be below. `unit` is that of the value."""

    key: str
    question: str
    must: float
    aim: float | None = None
    at_most: bool = False
    unit: str = TIMES

    @property
    def number(self) -> int:
        """The number of the question that the row belongs to."""
        return int(self.key.rstrip("abcdefgh"))

    def reaches(self, value: float, bound: float) -> bool:
        return value <= bound if self.at_most else value >= bound


ROWS: Final = (
    Row(key="1", question="add.json, 20 competitors, one delta / ceiling", must=0.77, aim=0.85),
    Row(key="2a", question="the same, 200 competitors / ceiling", must=0.77, aim=0.85),
    Row(key="2b", question="the same, 1,000 competitors / ceiling", must=0.78, aim=0.85),
    Row(key="3a", question="add.json, 20 competitors / crud", must=4),
    Row(key="3b", question="add.json, 1,000 competitors / crud", must=20),
    Row(key="4", question="add.json, 20 competitors / redis with AOF always", must=1.5),
    Row(key="4b", question="the same / valkey with AOF always", must=1.5),
    Row(key="5a", question="GET rankings.json / ceiling", must=0.92, aim=1),
    Row(key="5b", question="GET competitions.json, 100 a page / ceiling", must=0.85, aim=1),
    Row(key="6", question="add.json, 1,000 tournaments, Zipf-distributed / ceiling", must=0.45, aim=0.6),
    Row(key="7", question="1,000 deltas in one request / the decoders alone", must=0.5, aim=0.7),
    Row(
        key="8",
        question="one connection: p50 / (2.5 times the ceiling's + p50 of one append)",
        must=0.8,
        aim=0.7,
        at_most=True,
    ),
    Row(key="9a", question="500 adds a second: p99 / the better of crud's and redis's", must=1, aim=0.8, at_most=True),
    Row(key="9b", question="2,000 adds a second: p99 / the better of crud's and redis's", must=1, at_most=True),
    Row(key="10a", question="engine.log alone, 256 a batch, one tournament / COPY of the same rows", must=1.3, aim=1.8),
    Row(key="10b", question="the same / eventsourcing", must=5),
    Row(
        key="10c",
        question="engine.log alone, 64 a batch over 1,000 tournaments / rate of question 1",
        must=2,
        aim=2.9,
    ),
    Row(key="10d", question="10a / UmaDB, the same events and conditions", must=0.8, aim=1),
    Row(key="11", question="full replay / plain SELECT of the same rows", must=0.9, aim=1.2),
    Row(key="12a", question="worker catching up, one tournament / rate of question 1", must=8, aim=15),
    Row(key="12b", question="worker catching up, 1,000 tournaments / rate of question 1", must=2, aim=5),
    Row(key="13a", question="add.json with 10 million events in the log / with an empty database", must=0.9),
    Row(key="13b", question="add.json with 10,000 tournaments / with an empty database", must=0.9),
    Row(key="14a", question="memory per competitor with one unity", must=1_024, at_most=True, unit="bytes"),
    Row(key="14b", question="memory per competitor and further unity", must=160, at_most=True, unit="bytes"),
    Row(key="14c", question="memory per competition of two", must=1_536, at_most=True, unit="bytes"),
    Row(key="14d", question="memory of an idle API process", must=52, aim=45, at_most=True, unit="MiB"),
    Row(
        key="15",
        question="first answer, cold, 1 million point events / 1,000 point events",
        must=3,
        at_most=True,
    ),
    Row(key="16", question="90 % reads, 10 % adds / ceiling", must=0.77, aim=0.85),
    Row(key="18a", question="verify, 1 million events / plain SELECT of the same rows", must=0.7, aim=0.9),
    Row(key="18b", question="verify, a block for each event / plain SELECT of the same rows", must=0.55, aim=0.7),
    Row(key="19a", question="any size: largest exponent of a change, minimal answer", must=0.15, at_most=True, unit=""),
    Row(key="19b", question="any size: largest exponent of a window", must=0.15, at_most=True, unit=""),
    Row(key="19c", question="any size: largest exponent of a single read", must=0.15, at_most=True, unit=""),
    Row(key="19d", question="any size: longest stall of others next to anything", must=20, at_most=True, unit="ms"),
    Row(key="19e", question="any size: what else grows, without a reason", must=0, at_most=True, unit=""),
    Row(key="20a", question="leaderboard of a million, points / redis with AOF always", must=2, aim=3),
    Row(key="20b", question="the same, five lines around a member / redis", must=0.95, aim=1.1),
    Row(key="20c", question="the same, top ten / redis", must=0.95, aim=1.1),
    Row(key="21a", question="classification by totals, 20 competitors / plain standings", must=1.5, at_most=True),
    Row(key="21b", question="the same, 1,000 competitors / plain standings", must=1.5, at_most=True),
    Row(key="21c", question="the same, 100,000 competitors / plain standings", must=1.5, at_most=True),
    Row(key="21d", question="any classification: longest stall of others next to it", must=20, at_most=True, unit="ms"),
    Row(key="22a", question="add.json with 100 listeners / without", must=0.93, aim=1),
    Row(key="22b", question="memory per listener", must=20, at_most=True, unit="KiB"),
    Row(key="23a", question="add.json, 2,500 connections / 64", must=0.8, aim=0.95),
    Row(key="23b", question="the same, 5,500 connections / 64", must=0.78, aim=0.95),
    Row(key="23c", question="the same, 11,000 connections / 64", must=0.7, aim=0.95),
    Row(key="23d", question="5,500, after the database was halted for 1.5 s / 64", must=0.8, aim=0.95),
    Row(key="23e", question="5,500, next to a calm client / 64", must=0.8, aim=0.95),
    Row(key="23f", question="that client's p99, on a kept connection", must=400, aim=100, at_most=True, unit="ms"),
    Row(key="23g", question="p99 of one that connects each time", must=1_500, at_most=True, unit="ms"),
    Row(key="23h", question="memory with 11,000 connections, beyond that with 64", must=120, at_most=True, unit="MiB"),
    Row(key="24a", question="best results of a million / redis, ZADD GT with AOF always", must=1.5),
    Row(key="24b", question="the same, five lines around a member / redis", must=0.95, aim=1.1),
    Row(key="24c", question="the same, top ten / redis", must=0.95, aim=1.1),
    Row(key="25a", question="10,000 boards of 10, ten results or the top two / redis with AOF always", must=1),
    Row(key="25b", question="the same, boards of 100 / redis", must=1),
    Row(key="25c", question="the same, boards of 1,000 / redis", must=1, aim=1.2),
    Row(key="26a", question="add.json with scoring, tie-breaks, expiry or 20 listeners / without", must=0.75, aim=0.95),
    Row(key="26b", question="GET rankings.json, the same", must=0.9, aim=0.97),
    Row(key="26c", question="add.json, every request traced / not", must=0.4),
    Row(key="26d", question="GET rankings.json, the same", must=0.35),
    Row(key="26e", question="add.json, each with an idempotency key / without", must=0.55),
    Row(key="27a", question="add.json, 20 competitors, two API processes on two cores / one", must=0.6),
    Row(key="27b", question="GET rankings.json, the same", must=0.9),
    Row(key="27c", question="add.json, 1,000 tournaments, each at one of two processes / one process", must=0.7),
)


class Figure(Struct, frozen=True, kw_only=True):
    """Something that was measured, once per round."""

    name: str
    unit: str
    samples: list[float]


FEATURES: Final = "What a feature costs"
PROCESSES: Final = "Two API processes on two cores"
"""Titles of separate tables."""


class Grid(Struct, frozen=True, kw_only=True):
    """A separate table of a question, as text, with notes below it. `is_printed`: on the terminal too, not only on the
    page."""

    title: str
    head: list[str]
    rows: list[list[str]]
    notes: list[str]
    is_printed: bool = True


class HotSpot(Struct, frozen=True):
    """A place where a process spends its time, as shares of all samples: in it alone, and including all that it
    calls."""

    place: str
    own: float
    whole: float


class Profile(Struct, frozen=True, kw_only=True):
    """The hot spots of the API process under a load, largest first. `name`: that of the load among the figures."""

    name: str
    spots: list[HotSpot]


class Findings(Struct):
    """The findings of a question. `values` are those of its rows, by their keys, one per round. `missing` says why a
    row was not measured, `failed` why its figures do not count."""

    values: dict[str, list[float]] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    profiles: list[Profile] = field(default_factory=list)
    grids: list[Grid] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        self.values |= other.values
        self.figures += other.figures
        self.notes += other.notes
        self.missing |= other.missing
        self.failed |= other.failed
        self.profiles += other.profiles
        self.grids += other.grids

    def figure(self, name: str, unit: str, samples: Iterable[float]) -> None:
        self.figures.append(Figure(name=name, unit=unit, samples=list(samples)))

    def ratio(self, key: str, above: Iterable[float], below: Iterable[float]) -> None:
        """Sets a row to the ratio of two figures, round by round."""
        self.values[key] = [a / b for a, b in zip(above, below, strict=True)]


def percentile(samples: Sequence[float], share: int) -> float:
    """The smallest sample that `share` per cent of all do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


class Verdict(StrEnum):
    AIM = "aim reached"
    MET = "met"
    SHORT = "falls short"
    FAILED = "failed"
    MISSING = "not measured"


class Outcome(Struct, frozen=True, kw_only=True):
    """The outcome of a row. It has no value if the row failed or is missing; then `reason` says why."""

    row: Row
    verdict: Verdict
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None
    reason: str = ""

    @property
    def is_good(self) -> bool:
        return self.verdict in (Verdict.AIM, Verdict.MET)


def outcomes(findings: Findings, numbers: Iterable[int]) -> list[Outcome]:
    """The outcomes of the rows of these questions."""
    asked = set(numbers)
    return [_outcome(row, findings) for row in ROWS if row.number in asked]


def _outcome(row: Row, findings: Findings) -> Outcome:
    if row.key in findings.failed:
        return Outcome(row=row, verdict=Verdict.FAILED, reason=findings.failed[row.key])
    samples = findings.values.get(row.key)
    if not samples:
        reason = findings.missing.get(row.key, "the question said nothing of it")
        return Outcome(row=row, verdict=Verdict.MISSING, reason=reason)
    value = median(samples)
    return Outcome(row=row, verdict=_verdict(row, value), value=value, lowest=min(samples), highest=max(samples))


def _verdict(row: Row, value: float) -> Verdict:
    if not row.reaches(value, row.must):
        return Verdict.SHORT
    return Verdict.AIM if row.aim is not None and row.reaches(value, row.aim) else Verdict.MET
