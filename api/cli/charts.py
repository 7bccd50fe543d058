"""The picture of a ranking: positions and totals over time, a line per competitor. Only `chart` imports this module,
because matplotlib is an extra.

The days on which something happened stand at equal distances. If there are few days, the events stand there instead. A
day is that of the competition, not of the record: a season entered in one evening looks as it was played.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Items
from itertools import cycle, groupby
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from engine.domain.terms import CompetitorId
from projections.past.series import SeriesPoint

COLORED_MAX: Final = 20
"""Competitors whose lines have a color, and a name at the end. The others are grey."""
LABEL_CHARACTERS_MAX: Final = 28
LABEL_HEIGHT: Final = 1 / 25
"""Height of a label, as a fraction of its panel's."""
TICKS: Final = 8
DAYS_MIN: Final = 20
_STYLE: Final[Any] = {
    "svg.hashsalt": "tallybook",  # the same series gives the same file
    "svg.fonttype": "none",
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a name with dollar signs is a name
}
# Ten hues, as far apart as possible; then the same again, dashed.
_COLORS: Final = (
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f00", "#34495e",
)  # fmt: skip
_DASHES: Final[tuple[Any, ...]] = ("-", (0, (4, 1.5)))
_GREY: Final = "#c8ccd0"


def draw(title: str, points: Items[SeriesPoint], names: Mapping[CompetitorId, str], file: Path) -> None:
    """Writes the picture of `points`, at least one, as SVG. Raises OSError."""
    with mpl.rc_context(_STYLE):
        points = _by_day(points)
        figure = Figure(figsize=(10, 10), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        above, below = figure.subplots(2, 1, sharex=True)
        _panel(above, points, names, "position")
        _panel(below, points, names, "total")
        _dates(below, points)
        figure.savefig(file, format="svg", metadata={"Date": None})


def _by_day(points: Items[SeriesPoint]) -> Items[SeriesPoint]:
    """The last point of each day, or all points if there are fewer than DAYS_MIN days."""
    days = [list(of_a_day)[-1] for _, of_a_day in groupby(points, key=lambda point: point.at.date())]
    return days if len(days) >= DAYS_MIN else points


def _panel(axes: Any, points: Items[SeriesPoint], names: Mapping[CompetitorId, str], what: str) -> None:
    ends = list(points[-1].lines.values())
    styles = [(color, dashes) for dashes in _DASHES for color in _COLORS]
    drawn = list(zip(ends[:COLORED_MAX], styles, strict=False)) + list(
        zip(ends[COLORED_MAX:], cycle([(_GREY, "-")]), strict=False)
    )
    x = range(len(points))
    for line, (color, dashes) in reversed(drawn):
        values = [
            getattr(point.lines[line.competitor_id], what) if line.competitor_id in point.lines else float("nan")
            for point in points
        ]
        axes.plot(x, values, color=color, linestyle=dashes, linewidth=1.3, solid_joinstyle="round")
    axes.set_ylabel(what)
    axes.grid(axis="y", linewidth=0.3)
    axes.margins(x=0.01)
    axes.yaxis.get_major_locator().set_params(integer=True)
    if what == "position":
        axes.set_ylim(max(line.position for point in points for line in point.lines.values()) + 0.6, 0.4)
    bottom, top = axes.get_ylim()
    named = [(getattr(line, what), line, color) for line, (color, _) in drawn[:COLORED_MAX]]
    heights = _apart([(value - bottom) / (top - bottom) for value, *_ in named], LABEL_HEIGHT)
    for (value, line, color), height in zip(named, heights, strict=True):
        name = names[line.competitor_id]
        text = name if len(name) <= LABEL_CHARACTERS_MAX else name[: LABEL_CHARACTERS_MAX - 1] + "…"
        axes.annotate(
            f"{line.position}  {text}" if what == "position" else f"{line.total}  {text}",
            xy=(len(points) - 1, value),
            xytext=(1.04, height),
            textcoords="axes fraction",
            va="center",
            color=color,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 1, "relpos": (0, 0.5)},
        )


def _apart(values: Items[float], gap: float) -> list[float]:
    """The values, moved as little as possible so that each is at least `gap` from the next. They keep their order, and
    those that are moved keep their middle."""
    order = sorted(range(len(values)), key=lambda n: values[n])
    groups: list[tuple[list[int], float]] = []  # neighbours that touch, and the middle of their values
    for n in order:
        members, middle = [n], float(values[n])
        while groups and middle - groups[-1][1] < gap * (len(groups[-1][0]) + len(members)) / 2:
            before, its_middle = groups.pop()
            middle = (its_middle * len(before) + middle * len(members)) / (len(before) + len(members))
            members = before + members
        groups.append((members, middle))
    places = [0.0] * len(values)
    for members, middle in groups:
        for k, n in enumerate(members):
            places[n] = middle + (k - (len(members) - 1) / 2) * gap
    return places


def _dates(axes: Any, points: Items[SeriesPoint]) -> None:
    last = len(points) - 1
    ticks = sorted({round(n * last / (TICKS - 1)) for n in range(TICKS)})
    axes.set_xticks(ticks, [f"{points[n].at:%Y-%m-%d}\nevent {points[n].sequence}" for n in ticks])
