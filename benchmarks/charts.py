"""The pictures of the results page, as SVG. Imported only where matplotlib is installed."""

import re
from pathlib import Path
from statistics import median
from typing import Any, Final

import matplotlib as mpl
from matplotlib import pyplot
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from benchmarks.report import HEADLINES, Run
from benchmarks.table import Outcome

WIDTH_INCHES: Final = 9.0
_ADDS: Final = re.compile(r"add\.json, (ceiling|crud|redis|valkey|ours), (\d+) competitors")
_FIXED_RATE: Final = re.compile(r"2,000 adds a second, (ceiling|crud|redis|ours): (p50|p90|p99)")
_OVERLOAD: Final = re.compile(r"overload, (there|back): ([\d,]+) connections")
_PROPORTIONS: Final = (0.25, 0.5, 1, 2, 4, 8)
_US: Final = "Tallybook"
_OURS: Final = (_US, "verifying", "replaying")
_AUDIT: Final = "seconds for a million events"
_PANELS: Final = {
    "points a second, 20 competitors": {
        _US: "add.json, ours, 20 competitors",
        "Redis": "add.json, redis, 20 competitors",
        "Valkey": "add.json, valkey, 20 competitors",
        "with RANK()": "add.json, crud, 20 competitors",
    },
    "points a second, 1,000 competitors": {
        _US: "add.json, ours, 1000 competitors",
        "with RANK()": "add.json, crud, 1000 competitors",
    },
    "reads a second": {_US: "GET rankings.json, ours", "doing nothing": "GET rankings.json, ceiling"},
    "points a second, 1,000 tournaments": {
        _US: "add.json, 1,000 tournaments, ours",
        "doing nothing": "add.json, 1,000 tournaments, ceiling",
    },
    _AUDIT: {"verifying": "verify", "replaying": "full replay", "only reading": "plain SELECT"},
    "ms for 99 of 100, 500 a second": {
        _US: "500 adds a second, ours: p99",
        "Redis": "500 adds a second, redis: p99",
        "with RANK()": "500 adds a second, crud: p99",
    },
}
"""Titles, and names of contestants with their figures; "doing nothing" is a handler that does nothing."""
_GOOD: Final = "#3b6ea5"
_OTHER: Final = "#9aa5b1"
_BAD: Final = "#bf616a"
_COLORS: Final = {"ceiling": "#9aa5b1", "crud": "#d08770", "redis": "#bf616a", "valkey": "#a3749b", "ours": "#3b6ea5"}
_STYLE: Final[Any] = {
    "svg.hashsalt": "tallybook",  # the same figures give the same file
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


def draw(run: Run, directory: Path) -> None:
    """Draws the pictures that this run has figures for, and no others."""
    mpl.use("svg")
    directory.mkdir(exist_ok=True)
    for old in directory.glob("*.svg"):
        old.unlink()
    with mpl.rc_context(_STYLE):
        figures = {
            HEADLINES: _headlines(run),
            "rows": _rows(run.outcomes),
            "adds": _adds(run),
            "fixed-rate": _fixed_rate(run),
            "overload": _overload(run),
        }
        for name, figure in figures.items():
            if figure is not None:
                figure.savefig(directory / f"{name}.svg", metadata={"Date": None})


def _headlines(run: Run) -> Any:
    """What people ask first: a small picture for each, with a bar for each contestant."""
    known = {one.name: median(one.samples) for one in run.figures}
    panels = [
        (title, {who: known[name] for who, name in names.items() if name in known}) for title, names in _PANELS.items()
    ]
    if not all(bars for _, bars in panels):
        return None
    figure, places = pyplot.subplots(2, 3, figsize=(WIDTH_INCHES, 4.2))
    for axes, (title, bars) in zip(places.flat, panels, strict=True):
        values = [1e6 / value if title == _AUDIT else value for value in bars.values()]
        colors = [_GOOD if who in _OURS else _OTHER for who in bars]
        drawn = axes.barh(list(bars), values, color=colors, height=0.6)
        axes.bar_label(drawn, fmt="{:,.0f}" if max(values) >= 100 else "{:.1f}", padding=2, fontsize=8)
        axes.invert_yaxis()
        axes.set_xticks([])
        axes.margins(x=0.25)
        axes.spines["bottom"].set_visible(False)
        axes.set_title(title, fontsize=9, loc="left")
    return figure


def _rows(outcomes: list[Outcome]) -> Any:
    """How each row compares with its goal: a bar to the right is good."""
    measured = [outcome for outcome in reversed(outcomes) if outcome.value]
    if not measured:
        return None
    figure, axes = pyplot.subplots(figsize=(WIDTH_INCHES, 0.28 * len(measured) + 1))
    for place, outcome in enumerate(measured):
        row = outcome.row
        low, middle, high = sorted(_reached(outcome, v) for v in (outcome.lowest, outcome.value, outcome.highest))
        axes.barh(place, middle - 1, left=1, color=_GOOD if outcome.is_good else _BAD, height=0.6)
        axes.plot([low, high], [place, place], color="black", linewidth=1)
        if row.aim is not None:
            axes.plot(_reached(outcome, row.aim), place, marker="D", color="black", markersize=4)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(measured)), [f"{o.row.key}  {o.row.question}" for o in measured])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(_PROPORTIONS, [f"{proportion:g}" for proportion in _PROPORTIONS])
    axes.set_xlabel("median of the rounds / must (line: all rounds; diamond: aim)")
    return figure


def _reached(outcome: Outcome, value: float | None) -> float:
    assert value
    return outcome.row.must / value if outcome.row.at_most else value / outcome.row.must


def _adds(run: Run) -> Any:
    """Adds a second by the number of competitors, on a logarithmic scale."""
    rates: dict[str, dict[str, float]] = {}
    for figure in run.figures:
        if found := _ADDS.fullmatch(figure.name):
            rates.setdefault(found[2], {})[found[1]] = median(figure.samples)
    return _grouped(rates, "adds a second", "competitors", logarithmic=True)


def _fixed_rate(run: Run) -> Any:
    """Latency at 2,000 adds a second."""
    latencies: dict[str, dict[str, float]] = {}
    for figure in run.figures:
        if found := _FIXED_RATE.fullmatch(figure.name):
            latencies.setdefault(found[2], {})[found[1]] = median(figure.samples)
    return _grouped(latencies, "ms from when it was due", "percentile of answers", logarithmic=True)


def _overload(run: Run) -> Any:
    """Adds a second by the number of connections: one line for the way up, one for the way down."""
    rates: dict[str, dict[int, float]] = {}
    for one in run.figures:
        if found := _OVERLOAD.fullmatch(one.name):
            rates.setdefault(found[1], {})[int(found[2].replace(",", ""))] = median(one.samples)
    if not rates:
        return None
    figure, axes = pyplot.subplots(figsize=(WIDTH_INCHES, 3.5))
    for way, style in (("there", "-o"), ("back", "--s")):
        ordered = sorted(rates.get(way, {}).items())
        axes.plot([number for number, _ in ordered], [rate for _, rate in ordered], style, color=_GOOD, label=way)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    axes.set_xlabel("connections")
    axes.set_ylabel("adds a second")
    return figure


def _grouped(groups: dict[str, dict[str, float]], values: str, names: str, *, logarithmic: bool) -> Any:
    """Bars in groups, one for each contestant that was measured; None without any."""
    if not groups:
        return None
    figure, axes = pyplot.subplots(figsize=(WIDTH_INCHES, 3.5))
    known = [who for who in _COLORS if any(who in group for group in groups.values())]
    width = 0.8 / len(known)
    for place, group in enumerate(groups.values()):
        for offset, who in enumerate(known):
            if who in group:
                bar = axes.bar(place + (offset - (len(known) - 1) / 2) * width, group[who], width, color=_COLORS[who])
                axes.bar_label(bar, fmt="{:,.0f}" if logarithmic else "{:.1f}", fontsize=8)
    axes.legend([Patch(color=_COLORS[who]) for who in known], known, frameon=False)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_xlabel(names)
    axes.set_ylabel(values)
    if logarithmic:
        axes.set_yscale("log")
    return figure
