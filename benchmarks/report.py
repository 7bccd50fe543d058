"""The report of a run: a table on the terminal, a JSON document, a results page."""

from collections.abc import Iterable
from operator import truediv
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
from benchmarks.table import FEATURES, PROCESSES, ROWS, TIMES, Figure, Grid, Outcome, Profile, Row, Verdict

PACKAGES_SHOWN: Final = 12
PAGE: Final = "RESULTS.md"
HEADLINES: Final = "headlines"
"""The name of the picture at the top of the page."""
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
    profiles: list[Profile]
    grids: list[Grid] = []


def write_json(run: Run, file: Path) -> None:
    file.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")


def read_json(file: Path) -> Run:
    return msgspec.json.decode(file.read_bytes(), type=Run)


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
    return figure.name, _middle(figure), spread, figure.unit


def _middle(figure: Figure) -> str:
    return _number(median(figure.samples))


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

What one process does on a machine of {cores} cores, on which the load generator, the service, its worker and PostgreSQL
share the cores. What that means for your machine is in [BENCHMARKS](../docs/BENCHMARKS.md).
"""
_METHOD: Final = """\
## How it was measured

`make bench` writes this page, and `python -m benchmarks.bench --page` writes it again without measuring.
[results.json](results.json) has every figure: those of the peers, costs, memory, and the profile by function. The
docstrings of [`questions/`](questions) say how each question is measured; the peers are in [`peers/`](peers).

A ratio compares two figures measured one after the other in the same round; the page shows the median of the rounds.
"""
_GRIDS: Final = (FEATURES, PROCESSES, "Any size: what grows with what", "Overload, there and back")
"""The separate tables that are on the page. The others are only in the JSON."""


class _Headline(Struct, frozen=True):
    """A row of the opening. `figures`: names of figures, or keys of rows, whose medians `shown` and `means` take."""

    what: str
    shown: str
    means: str
    figures: tuple[str, ...]


_HEADLINES: Final = (
    _Headline(
        "points given",
        "{0:,.0f} a second",
        "Each is on disk before it is answered, and the answer shows the new standings of all 20 competitors.",
        ("add.json, ours, 20 competitors",),
    ),
    _Headline(
        "the same, compared with the usual transaction",
        "{0:.0f} times as many",
        "A transaction that updates totals and then selects with `RANK()` ranks everybody again for each point. With "
        "1,000 competitors, it is {1:.0f} times as many here.",
        ("3a", "3b"),
    ),
    _Headline(
        "reads of rankings",
        "{0:,.0f} a second",
        "Enough for that many spectators who each look once a second. They see every point that was given before.",
        ("GET rankings.json, ours",),
    ),
    _Headline(
        "points for 1,000 tournaments at once",
        "{0:,.0f} a second",
        "Fewer than for a single one: points of different tournaments seldom share a write to disk.",
        ("add.json, 1,000 tournaments, ours",),
    ),
    _Headline(
        "an audit of a million events",
        "{0:.1f} s",
        "`tallybook verify` checks that nothing in the log was changed later. Computing all standings from the log "
        "again takes {1:.1f} s.",
        ("a million: verify", "a million: full replay"),
    ),
    _Headline(
        "waiting, at 500 points a second",
        "{0:.1f} ms",
        "Half of the answers come within that time, 99 of 100 within {1:.1f} ms. People notice some 100 ms.",
        ("500 adds a second, ours: p50", "500 adds a second, ours: p99"),
    ),
)


class _Race(Struct, frozen=True):
    """A line of the comparison. `theirs`: the figure, with {} for the contestant. `ours`: ours, if it is named in
    another way. `is_less`: less is better. `reason`: why another one may be better."""

    what: str
    theirs: str
    reason: str = "the reason is not known"
    ours: str = ""
    is_less: bool = False


_COLUMNS: Final = {
    "transaction with `RANK()`": ("crud",),
    "Redis": ("redis", "redis, AOF always"),
    "Valkey": ("valkey", "valkey, AOF always"),
    "indexed table": ("an indexed table",),
    "eventsourcing": ("eventsourcing",),
    "UmaDB": ("UmaDB",),
}
"""The others, with the names that they have among the figures. All are equally durable."""
_SHORT: Final = "their answers have ids and totals only, ours the names, colors and tags of the competitors, too"
_THREE_PROGRAMS: Final = "three programs of ours share two cores with the load, and only two of theirs"
_ONE_PROCESS: Final = (
    "one process of ours answers and keeps the boards, and takes longer the larger they are; theirs are kept by another"
)
_RACES: Final = (
    _Race("points, 20 competitors", "add.json, {}, 20 competitors"),
    _Race("points, 1,000 competitors", "add.json, {}, 1000 competitors"),
    _Race(
        "p99 at 500 points a second",
        "500 adds a second, {}: p99",
        _THREE_PROGRAMS,
        is_less=True,
    ),
    _Race("p99 at 2,000 points a second", "2,000 adds a second, {}: p99", _THREE_PROGRAMS, is_less=True),
    _Race(
        "256 events in a commit",
        "{}, the same events, 256 a commit",
        "UmaDB appends to a file of its own, and neither numbers events by tournament nor chains them by hashes",
        ours="engine.log, 256 a commit, one tournament",
    ),
    _Race("a million members: points", "leaderboard, points for a member, {}"),
    _Race("a million members: five lines around one", "leaderboard, around a member, {}", _SHORT),
    _Race("a million members: top ten", "leaderboard, top ten, {}", _SHORT),
    _Race(
        "a million members: memory",
        "leaderboard, memory per member: {}",
        "the API process keeps the competitors and their places, and PostgreSQL's share has a log and tables",
        is_less=True,
    ),
    _Race(
        "a million members: answering after a kill",
        "leaderboard, ready after kill -9: {}",
        "a new Python process starts, reads all lines from the tables and puts them in order",
        is_less=True,
    ),
    _Race("a million best results: results", "best_results, points for a member, {}"),
    _Race("a million best results: five lines around one", "best_results, around a member, {}", _SHORT),
    _Race("a million best results: top ten", "best_results, top ten, {}", _SHORT),
    _Race("10,000 boards of 10", "10,000 boards of 10, {}", _ONE_PROCESS),
    _Race("10,000 boards of 100", "10,000 boards of 100, {}", _ONE_PROCESS),
    _Race("10,000 boards of 1,000", "10,000 boards of 1,000, {}", _ONE_PROCESS),
)


class _Line(Struct, frozen=True):
    """A line of the summary: the question, what it means for a user, and the names of its figures."""

    number: int
    what: str
    rate: str = ""
    p50: str = ""
    p99: str = ""


def _load(number: int, what: str, name: str) -> _Line:
    """A load without a pause."""
    return _Line(number, what, rate=name, p99=f"{name}: p99")


def _delay(number: int, what: str, name: str, rest: str = "") -> _Line:
    return _Line(number, what, p50=f"{name}p50{rest}", p99=f"{name}p99{rest}")


SUMMARY: Final = (
    _load(1, "points for a tournament of 20 competitors", "add.json, ours, 20 competitors"),
    _delay(1, "its tables are behind the log", "question 1: tables behind, ", " at the rate of the load"),
    _load(2, "the same points, 200 competitors", "add.json, ours, 200 competitors"),
    _load(2, "the same points, 1,000 competitors", "add.json, ours, 1000 competitors"),
    _Line(5, "reads of a list of rankings", rate="GET rankings.json, ours"),
    _Line(5, "reads of a page of 100 competitions", rate="GET competitions.json, ours"),
    _load(6, "points spread over 1,000 tournaments", "add.json, 1,000 tournaments, ours"),
    _Line(7, "requests of 1,000 deltas each", rate="1,000 deltas in one request, ours"),
    _Line(8, "points from a single connection", p50="one connection, ours: p50"),
    _delay(9, "points, 500 requests a second", "500 adds a second, ours: "),
    _delay(9, "points, 2,000 requests a second", "2,000 adds a second, ours: "),
    _Line(11, "events replayed without tables", rate="full replay"),
    _Line(12, "events that a worker folds, one tournament", rate="worker catching up, one tournament"),
    _Line(12, "events that a worker folds, 1,000 tournaments", rate="worker catching up, 1,000 tournaments"),
    _Line(13, "points with 10 million events in the log", rate="add.json, database: long"),
    _Line(13, "points next to 10,000 other tournaments", rate="add.json, database: wide"),
    _Line(15, "first answer of a process after a million events", p50="first answer, cold, large log"),
    _Line(16, "90 % reads, 10 % points", rate="90 % reads, 10 % adds, ours"),
    _Line(18, "events that `verify` checks", rate="verify"),
    _Line(18, "events that `verify` checks, a block for each", rate="verify, a block for each event"),
    _load(20, "leaderboard of a million: points", "leaderboard, points for a member, ours"),
    _load(20, "leaderboard of a million: around a member", "leaderboard, around a member, ours"),
    _load(20, "leaderboard of a million: top ten", "leaderboard, top ten, ours"),
    _Line(22, "points with 100 listeners", rate="add.json with 100 listeners"),
    _delay(22, "an event arrives, 100 listeners", "100 listeners of 1 tournament, 1,000 adds a second: delay, "),
    _delay(22, "an event arrives, 1,000 listeners", "1,000 listeners of 1 tournament, 1,000 adds a second: delay, "),
    _load(24, "best results of a million: results", "best_results, points for a member, ours"),
    _load(24, "best results of a million: around a member", "best_results, around a member, ours"),
    _load(25, "10,000 boards of 10, 200 connections", "10,000 boards of 10, ours"),
    _load(25, "10,000 boards of 1,000, 200 connections", "10,000 boards of 1,000, ours"),
)


def page(run: Run, charts: Iterable[str]) -> str:
    """The results page, in Markdown; `charts` are the paths of pictures, relative to it."""
    pictures = {Path(chart).stem: f"![{Path(chart).stem}]({chart})\n" for chart in sorted(charts)}
    parts = [_INTRODUCTION.format(cores=run.machine.cores), _opening(run), pictures.pop(HEADLINES, "")]
    parts += [_METHOD, _conditions(run), _rows_section(run), _races_section(run), _summary_section(run)]
    parts += [_grid_section(grid) for title in _GRIDS for grid in run.grids if grid.title == title]
    parts += pictures.values()
    if run.profiles:
        parts.append(_profile_section(run))
    return "\n".join(parts)


def _opening(run: Run) -> str:
    """What people ask first, and what it means for them."""
    known = {figure.name: median(figure.samples) for figure in run.figures}
    known |= {f"a million: {name}": 1e6 / known[name] for name in ("verify", "full replay") if name in known}
    known |= {outcome.row.key: outcome.value for outcome in run.outcomes if outcome.value is not None}
    rows = []
    for headline in _HEADLINES:
        if all(name in known for name in headline.figures):
            values = [known[name] for name in headline.figures]
            rows.append((headline.what, headline.shown.format(*values), headline.means.format(*values)))
    return _markdown(["", "", "what it means"], rows)


def _races_section(run: Run) -> str:
    """How others do the same."""
    figures = {figure.name: figure.samples for figure in run.figures}
    lines: list[tuple[str, ...]] = []
    reasons: dict[str, list[str]] = {}
    measured: set[str] = set()
    for race in _RACES:
        ours = figures.get(race.ours or race.theirs.format("ours"))
        cells = []
        for column, names in _COLUMNS.items():
            theirs = next((figures[name] for name in map(race.theirs.format, names) if name in figures), None)
            if ours is None or theirs is None:
                cells.append("")
                continue
            measured.add(column)
            times = median(map(truediv, theirs, ours) if race.is_less else map(truediv, ours, theirs))
            cells.append(f"{_number(times)} {TIMES}" if times >= 1 else f"**{_number(times)} {TIMES}**")
            if times < 1:
                reasons.setdefault(race.reason, []).append(f"{race.what} ({column})")
        if any(cells):
            lines.append((race.what, *cells))
    told = (
        "How many times as good the product is, in the same rounds; **bold** where another one is better, with the "
        "reason below. All of them confirm only what is on disk."
    )
    if missing := [column for column in _COLUMNS if column not in measured]:
        told += f" Not measured: {', '.join(missing)}."
    why = "".join(f"- {'; '.join(which)}: {reason}.\n" for reason, which in reasons.items())
    return f"## Next to others\n\n{told}\n\n{_markdown(['', *_COLUMNS], lines)}\n{why}"


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
    return f"## What must be reached\n\n{_markdown(head, (_cells(outcome) for outcome in _all_outcomes(run)))}"


def _all_outcomes(run: Run) -> list[Outcome]:
    """Those of the run, and a word for each row that it did not ask."""
    known = {outcome.row.key: outcome for outcome in run.outcomes}
    return [
        known.get(row.key) or Outcome(row=row, verdict=Verdict.MISSING, reason="not asked in this run") for row in ROWS
    ]


def _summary_section(run: Run) -> str:
    """What the service reaches, in absolute figures."""
    figures = {figure.name: figure for figure in run.figures}
    lines = []
    for line in SUMMARY:
        rate, *times = (figures.get(name) for name in (line.rate, line.p50, line.p99))
        if rate or any(times):
            shown = ("" if one is None else f"{_middle(one)} {one.unit}" for one in times)
            lines.append((str(line.number), line.what, "" if rate is None else _middle(rate), *shown))
    told = "Medians of the rounds. Points are `add.json` of one delta."
    return f"## What the service reaches\n\n{told}\n\n{_markdown(['#', 'what', 'a second', 'p50', 'p99'], lines)}"


def _grid_section(grid: Grid) -> str:
    notes = "".join(f"- {note}\n" for note in grid.notes)
    return f"## {grid.title}\n\n{_markdown(grid.head, map(tuple, grid.rows))}\n{notes}"


def _profile_section(run: Run) -> str:
    """The processor time of a request by process, and that of the API process by package."""
    names = [profile.name for profile in run.profiles]
    spent = {figure.name: median(figure.samples) for figure in run.figures}
    sides = {side: [spent[costs.cpu_of(name, side)] for name in names] for side in costs.SIDES}
    shares = [_by_package(profile) for profile in run.profiles]
    packages = {
        package: [its.get(package, 0.0) * us for its, us in zip(shares, sides[costs.API], strict=True)]
        for package in set().union(*shares)
    }
    largest = sorted(packages.items(), key=lambda item: -max(map(truediv, item[1], sides[costs.API])))[:PACKAGES_SHOWN]
    ceiling = spent.get(costs.cpu_of("question 1", costs.CEILING))
    in_ceiling = "" if ceiling is None else f"; of one of question 1 in the ceiling: {_number(ceiling)}"
    rows = [*sides.items(), *((f"API process: {package}", us) for package, us in largest)]
    return "\n".join(
        [
            "## Where the time goes\n",
            f"Processor time of a request, in µs{in_ceiling}. Question 16: reads and adds; 22: adds with 100 "
            "listeners; 25: writes of ten results, and reads. Their workers are measured until the load ends, when the "
            "tables may be behind. Packages are sampled by py-spy, without what they call "
            "in other packages; asyncio is the event loop. py-spy makes functions that send, write or ask for a "
            "process id look larger than they are.\n",
            _markdown(["", *names], [(what, *map(_number, us)) for what, us in rows]),
        ]
    )


def _by_package(profile: Profile) -> dict[str, float]:
    """The share of each package, in itself alone."""
    shares: dict[str, float] = {}
    for spot in profile.spots:
        package = spot.place.rpartition(" (")[2].partition("/")[0]
        shares[package] = shares.get(package, 0.0) + spot.own
    return shares


def _markdown(head: list[str], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [tuple(head), ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
