"""The picture of a ranking: positions and totals over time, a line per competitor. Only `chart` imports this module,
because matplotlib is an extra.

The days on which something happened stand at equal distances. If there are few days, the events stand there instead. A
day is that of the competition, not of the record: a season entered in one evening looks as it was played.
"""

from collections.abc import Sequence as Items
from datetime import date, tzinfo
from itertools import chain, cycle, groupby, repeat
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

from api.cli.names import cut_apart
from engine.domain.events import COLOR_DEFAULT
from engine.domain.notation import WHOLE, Notation
from engine.domain.presentation import in_zone
from projections.answers.names import NamesById
from projections.answers.series import SeriesMoment, UnitySeries

LABELLED_MAX: Final = 20
"""Competitors who have a name at the end of their line, and a color. The others are grey."""
LABEL_CELLS_MAX: Final = 28
CONTRAST_MIN: Final = 3.0
"""Of a line against the white ground, as WCAG 2 reckons it (1.4.11): lighter colors are darkened so far."""
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
# For who has chosen no color: ten hues, as far apart as possible.
_COLORS: Final = (
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2", "#7f7f00", "#34495e",
)  # fmt: skip
# A color that several have is dashed more finely each time.
_DASHES: Final[tuple[Any, ...]] = ("-", (0, (4, 1.5)), (0, (2, 1)), (0, (1, 1)))
_GREY: Final = "#c8ccd0"


def draw(title: str, series: UnitySeries, known: NamesById, notation: Notation, zone: tzinfo, file: Path) -> None:
    """Writes the picture of a series of at least one moment as SVG, with the days of this zone. Raises OSError."""
    with mpl.rc_context(_STYLE):
        drawn = _by_day(series.moments, zone)
        named = [line.competitor_id for line in series.lines[:LABELLED_MAX]]
        names = cut_apart({one: known.competitor(one).name for one in named}, LABEL_CELLS_MAX)
        styles = _styles([known.competitor(one).color for one in named])
        figure = Figure(figsize=(10, 10), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
        above, below = figure.subplots(2, 1, sharex=True)
        positions = [[line.positions[n] for n in drawn] for line in series.lines]
        totals = [[line.totals[n] for n in drawn] for line in series.lines]
        labels = list(names.values())
        _panel(above, positions, labels, styles, "position", WHOLE)
        _panel(below, totals, labels, styles, "total", notation)
        _dates(below, [series.moments[n] for n in drawn], zone)
        figure.savefig(file, format="svg", metadata={"Date": None})


def _by_day(moments: Items[SeriesMoment], zone: tzinfo) -> Items[int]:
    """The numbers of the last moments of each day, or of all moments if there are fewer than DAYS_MIN days."""
    numbers = range(len(moments))
    days = [list(of_a_day)[-1] for _, of_a_day in groupby(numbers, key=lambda n: _day(moments[n], zone))]
    return days if len(days) >= DAYS_MIN else numbers


def _styles(chosen: Items[str]) -> list[tuple[str, Any]]:
    """Color and dashes of each line: the color that was chosen, as dark as it must be, or a hue of ours."""
    hues = cycle(_COLORS)
    colors = [next(hues) if color == COLOR_DEFAULT else seen_on_white(color) for color in chosen]
    before = [colors[:place].count(color) for place, color in enumerate(colors)]
    return [(color, _DASHES[min(count, len(_DASHES) - 1)]) for color, count in zip(colors, before, strict=True)]


def seen_on_white(color: str) -> str:
    """The color, of the form RRGGBB, as #rrggbb, darkened until it has CONTRAST_MIN against white."""
    channels = [int(color[at : at + 2], 16) for at in (0, 2, 4)]
    while 1.05 / (_luminance(channels) + 0.05) < CONTRAST_MIN:
        channels = [channel * 31 // 32 for channel in channels]
    return "#{:02x}{:02x}{:02x}".format(*channels)


def _luminance(channels: Items[int]) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    shares = [c / 255 for c in channels]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _panel(
    axes: Any,
    lines: Items[Items[int | None]],
    labels: Items[str],
    styles: Items[tuple[str, Any]],
    what: str,
    notation: Notation,
) -> None:
    """Draws a line for each competitor through its values, where it has any; the first ones with their labels."""
    heights = [[_NOWHERE if value is None else value for value in line] for line in lines]
    drawn = list(zip(heights, chain(styles, repeat((_GREY, "-"))), strict=False))
    x = range(len(heights[0]))
    for values, (color, dashes) in reversed(drawn):
        axes.plot(x, values, color=color, linestyle=dashes, linewidth=1.3, solid_joinstyle="round")
    axes.set_ylabel(what)
    axes.grid(axis="y", linewidth=0.3)
    axes.margins(x=0.01)
    axes.yaxis.get_major_locator().set_params(integer=True)
    if notation != WHOLE:
        axes.yaxis.set_major_formatter(lambda value, _: notation.text(round(value)))
    if what == "position":
        places = [place for line in lines for place in line if place is not None]
        axes.set_ylim(max(places) + 0.6, min(places) - 0.6)
    bottom, top = axes.get_ylim()
    named = [
        (values[-1], label, color)
        for (values, (color, _)), label in zip(drawn, labels, strict=False)
        if values[-1] is not _NOWHERE
    ]
    places_of_labels = _apart([(value - bottom) / (top - bottom) for value, *_ in named], LABEL_HEIGHT)
    for (value, label, color), height in zip(named, places_of_labels, strict=True):
        axes.annotate(
            f"{notation.text(round(value))}  {label}",
            xy=(len(x) - 1, value),
            xytext=(1.04, height),
            textcoords="axes fraction",
            va="center",
            color=color,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 1, "relpos": (0, 0.5)},
        )


_NOWHERE: Final = float("nan")


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


def _dates(axes: Any, moments: Items[SeriesMoment], zone: tzinfo) -> None:
    last = len(moments) - 1
    ticks = sorted({round(n * last / (TICKS - 1)) for n in range(TICKS)})
    axes.set_xticks(ticks, [f"{_day(moments[n], zone)}\nevent {moments[n].sequence}" for n in ticks])


def _day(moment: SeriesMoment, zone: tzinfo) -> date:
    return in_zone(moment.at, zone).date()
