"""The report of a run: a table on the terminal, a JSON document, a results page."""

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Final

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import costs
from benchmarks.machine import Machine
from benchmarks.table import Figure, Grid, HotSpot, Outcome, Row, Verdict

HOT_SPOTS_SHOWN: Final = 25
MODULES_SHOWN: Final = 25
PAGE: Final = "RESULTS.md"
_STYLES: Final = {
    Verdict.AIM: "bold green",
    Verdict.MET: "green",
    Verdict.SHORT: "bold red",
    Verdict.FAILED: "bold red",
    Verdict.MISSING: "yellow",
}


class Run(Struct, frozen=True, kw_only=True):
    """Everything that a run reports. `settings` are PostgreSQL's."""

    started_at: str
    minutes: float
    quick: bool
    rounds: int
    seconds: int
    connections: int
    machine: Machine
    settings: dict[str, str]
    outcomes: list[Outcome]
    figures: list[Figure]
    notes: list[str]
    profile: list[HotSpot]
    grids: list[Grid] = []


def write_json(run: Run, file: Path) -> None:
    file.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


# ── The terminal ────────────────────────────────────────────────────────────────────────────────────────


def print_table(run: Run, console: Console) -> None:
    """Prints the rows, and below them everything that was measured."""
    rows = Table("#", "question", "median", "lowest to highest", "must", "aim", "", title=_title(run))
    for outcome in run.outcomes:
        rows.add_row(*_cells(outcome), style=_STYLES[outcome.verdict])
    console.print(rows)
    figures = Table("figure", "median", "lowest to highest", "unit", title="What was measured")
    for figure in run.figures:
        figures.add_row(*_figure_cells(figure))
    console.print(figures)
    for grid in run.grids:
        if grid.is_printed:
            _print_grid(grid, console)
    for note in run.notes:
        console.print(note, markup=False, highlight=False)


def _print_grid(grid: Grid, console: Console) -> None:
    shown = Table(title=grid.title)
    for place, name in enumerate(grid.head):
        shown.add_column(name, justify="right" if place else "left")
    for row in grid.rows:
        shown.add_row(*map(escape, row))
    console.print(shown)
    for note in grid.notes:
        console.print(note, markup=False, highlight=False)


def shortcomings(outcomes: Iterable[Outcome], verdicts: Iterable[Verdict]) -> list[str]:
    """A sentence for each row with one of these verdicts."""
    wanted = set(verdicts)
    return [
        f"{outcome.row.key} {outcome.verdict}: {outcome.row.question} ({_why(outcome)})"
        for outcome in outcomes
        if outcome.verdict in wanted
    ]


def _why(outcome: Outcome) -> str:
    if outcome.value is None:
        return outcome.reason
    return f"{_shown(outcome.row, outcome.value)}, must be {_bound(outcome.row, outcome.row.must)}"


def _title(run: Run) -> str:
    scale = "quick run, scaled down" if run.quick else "full run"
    return f"Tallybook, {scale}, {run.rounds} rounds, commit {run.machine.commit}"


def _cells(outcome: Outcome) -> tuple[str, ...]:
    row = outcome.row
    must, aim = _bound(row, row.must), "" if row.aim is None else _bound(row, row.aim)
    if outcome.value is None or outcome.lowest is None or outcome.highest is None:
        return row.key, row.question, "", "", must, aim, f"{outcome.verdict}: {outcome.reason.splitlines()[0]}"
    spread = f"{_shown(row, outcome.lowest)} to {_shown(row, outcome.highest)}"
    return row.key, row.question, _shown(row, outcome.value), spread, must, aim, str(outcome.verdict)


def _figure_cells(figure: Figure) -> tuple[str, ...]:
    spread = f"{_number(min(figure.samples))} to {_number(max(figure.samples))}"
    return figure.name, _number(median(figure.samples)), spread, figure.unit


def _shown(row: Row, value: float) -> str:
    return f"{_number(value)} {row.unit}"


def _bound(row: Row, bound: float) -> str:
    return f"{'≤' if row.at_most else '≥'} {bound:,g} {row.unit}"


def _number(value: float) -> str:
    """With three significant digits, or all digits before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


# ── The page ────────────────────────────────────────────────────────────────────────────────────────────

_INTRODUCTION: Final = """\
# Results

`make bench` writes this page. The docstrings of [`questions/`](questions) say how each question is measured; the peers
are in [`peers/`](peers).

A ratio compares two figures measured one after the other in the same round; the page shows the median of the rounds.
Absolute figures are those of this machine, on which the load generator, the service, its worker and PostgreSQL share
the cores.
"""


def page(run: Run, charts: Iterable[str]) -> str:
    """The results page, in Markdown; `charts` are the paths of pictures, relative to it."""
    parts = [_INTRODUCTION, _conditions(run), _rows_section(run), *map(_grid_section, run.grids), _figures_section(run)]
    parts += [f"![{Path(chart).stem}]({chart})\n" for chart in charts]
    if run.profile:
        parts.append(_profile_section(run))
    return "\n".join(parts)


def _conditions(run: Run) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(run.machine.versions.items()))
    settings = ", ".join(f"{name} = {value}" for name, value in sorted(run.settings.items()))
    lines = [
        *(["**A quick run, scaled down: its figures are rough.**", ""] if run.quick else []),
        f"- {run.started_at}, commit {run.machine.commit}, {run.minutes:.0f} minutes",
        f"- {run.machine.processor}, {run.machine.cores} cores, {run.machine.memory_gib} GiB, {run.machine.system}, "
        f"data on {run.machine.file_system}",
        f"- Python {run.machine.python}, {versions}",
        f"- PostgreSQL: {settings}",
        f"- {run.rounds} interleaved rounds; HTTP runs of {run.seconds} s over {run.connections} connections, if the "
        "question says nothing else",
        *(f"- {note}" for note in run.notes),
    ]
    return "\n".join(lines) + "\n"


def _rows_section(run: Run) -> str:
    head = ["#", "question", "median", "lowest to highest", "must", "aim", ""]
    return f"## What must be reached\n\n{_markdown(head, (_cells(outcome) for outcome in run.outcomes))}"


def _figures_section(run: Run) -> str:
    head = ["figure", "median", "lowest to highest", "unit"]
    return f"## What was measured\n\n{_markdown(head, (_figure_cells(figure) for figure in run.figures))}"


def _grid_section(grid: Grid) -> str:
    notes = "".join(f"- {note}\n" for note in grid.notes)
    return f"## {grid.title}\n\n{_markdown(grid.head, map(tuple, grid.rows))}\n{notes}"


def _profile_section(run: Run) -> str:
    """Where the API process spends its time under question 1, and so what separates it from the ceiling."""
    spent = _median(run, costs.cpu_of("question 1", costs.API))
    modules: dict[str, float] = {}
    for spot in run.profile:
        module = spot.place.rpartition(" (")[2].rstrip(")")
        modules[module] = modules.get(module, 0.0) + spot.own
    largest = sorted(modules.items(), key=lambda item: -item[1])[:MODULES_SHOWN]
    own = sorted(run.profile, key=lambda spot: -spot.own)[:HOT_SPOTS_SHOWN]
    whole = [spot for spot in run.profile if spot.whole < 1 and _is_ours(spot)][:HOT_SPOTS_SHOWN]
    return "\n".join(
        [
            "## Where the time goes: question 1\n",
            _comparison(run, spent),
            "Sampled by py-spy in a run that does not count. The time of a function in C is counted with the Python "
            "function that called it. py-spy stops the process for each sample. On virtual machines, it stops more "
            "often at system calls than between them: functions that send, write or ask for a process id look larger "
            "than they are.\n",
            "### By module, without what it calls\n",
            _markdown(["module", "share", "µs per add"], [(m, f"{s:.1%}", f"{s * spent:.1f}") for m, s in largest]),
            "### By function, without what it calls\n",
            _markdown(["function", "share", "µs per add"], [_spot(s.place, s.own, spent) for s in own]),
            "### By function of ours, with all that it calls\n",
            _markdown(["function", "share", "µs per add"], [_spot(s.place, s.whole, spent) for s in whole]),
        ]
    )


def _comparison(run: Run, spent: float) -> str:
    of_the_ceiling = _median(run, costs.cpu_of("question 1", costs.CEILING))
    return (
        f"An add takes {spent:.0f} µs of processor time in the API process, and {of_the_ceiling:.0f} µs in the "
        "ceiling's. The functions below make the difference. Where rates differ by more than these times, the API "
        "process waits for a core that the database, the worker or the load generator uses.\n"
    )


def _median(run: Run, name: str) -> float:
    (samples,) = [figure.samples for figure in run.figures if figure.name == name]
    return median(samples)


def _is_ours(spot: HotSpot) -> bool:
    return any(f"({package}/" in spot.place for package in ("api", "engine", "projections"))


def _spot(place: str, share: float, spent: float) -> tuple[str, str, str]:
    return f"`{place}`", f"{share:.1%}", f"{share * spent:.1f}"


def _markdown(head: list[str], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [tuple(head), ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
