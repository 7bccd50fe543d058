"""The measurements in worlds of all sizes, as tables: exponents by operation and dimension, and the figures behind
them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise
from math import log
from typing import Final

from msgspec import Struct

from benchmarks.sizes.measuring import Cell
from benchmarks.sizes.operations import EXPONENT_MAX, OPERATIONS, ROWS, STALL_MS_MAX, Kind, Measured
from benchmarks.sizes.worlds import DIMENSIONS, SMALLEST, STEPS, Step
from benchmarks.table import Grid

NOT_ASKED: Final = "–"  # noqa: RUF001 - the dash of an empty cell

Cells = Mapping[str, Mapping[str, Cell]]
"""By the name of a step (SMALLEST_NAME: of the smallest world), then by that of an operation."""
SMALLEST_NAME: Final = "smallest"


class Found(Struct, frozen=True, kw_only=True):
    """The result of one operation in one dimension: the exponent of the cost and of the tables, as `exponent_of` finds
    it; the longest stall. None: it was not measured. `is_bound`: the exponent is a lower bound."""

    operation: Measured
    dimension: str
    exponent: float | None
    is_bound: bool
    tables_exponent: float | None
    stall_ms: float | None
    stalled_at: str
    skipped: str

    @property
    def grows(self) -> bool:
        return self.exponent is not None and self.exponent > EXPONENT_MAX

    @property
    def is_unexplained(self) -> bool:
        return self.grows and not self.operation.must_be_flat and self.dimension not in self.operation.because


def found(cells: Cells, steps: Iterable[Step]) -> list[Found]:
    """All operations in all dimensions that were measured."""
    measured = list(steps)
    return [_found(cells, measured, row, dimension) for row in ROWS for dimension in DIMENSIONS]


def _found(cells: Cells, steps: list[Step], operation: Measured, dimension: str) -> Found:
    sizes = [(getattr(SMALLEST, dimension), SMALLEST_NAME)]
    sizes += [(step.count, step.name) for step in steps if step.dimension == dimension]
    points = [(count, name, cells[name][operation.name]) for count, name in sizes if operation.name in cells[name]]
    stalls = [(cell.stall_ms, name) for _, name, cell in points if cell.stall_ms is not None]
    stall_ms, stalled_at = max(stalls, default=(None, ""))
    known = [cell for _, _, cell in points if cell.cost_us or cell.at_least_us]
    return Found(
        operation=operation,
        dimension=dimension,
        exponent=exponent_of((count, cell.cost_us or cell.at_least_us) for count, _, cell in points),
        is_bound=bool(known) and known[-1].cost_us is None,
        tables_exponent=exponent_of((count, cell.tables_us) for count, _, cell in points),
        stall_ms=stall_ms,
        stalled_at=stalled_at,
        skipped=next((f"{name}: {cell.skipped}" for _, name, cell in points if cell.skipped), ""),
    )


def exponent_of(points: Iterable[tuple[int, float | None]]) -> float | None:
    """The largest e, between neighbouring sizes, for which the cost grows as size to the power of e.

    A cost is compared with the highest of all smaller sizes: one that was measured too low is not the start of growth,
    and a cliff between two sizes shows in full, where a line through all would flatten it.
    """
    known = [(size, cost) for size, cost in points if cost]
    highest = accumulate((cost for _, cost in known), max)
    pairs = zip(pairwise(known), highest, strict=False)
    return max(
        (log(cost / before) / log(size / smaller) for ((smaller, _), (size, cost)), before in pairs), default=None
    )


# ── Shown ───────────────────────────────────────────────────────────────────────────────────────────────


def exponents(cells: Cells, steps: Iterable[Step]) -> Grid:
    """The table of the question: exponents, and the longest stall of each operation."""
    all_found = found(cells, steps)
    notes = [
        "Exponents of the processor time of a request (API process and PostgreSQL), the largest from one size to the "
        "next, of what it costs beyond the highest cost so far; ≥ where the larger was not answered in time. A change "
        "with a minimal answer, a window and a single read must stay within "
        f"{EXPONENT_MAX}; ! marks what does not, * what is to grow, for the reason below. The stall is the longest "
        f"wait of others, which must stay within {STALL_MS_MAX:.0f} ms. Of a command, its own processor time counts.",
        *_reasons(all_found),
        *_skipped(all_found),
    ]
    rows = [_row(operation, [one for one in all_found if one.operation is operation], cells) for operation in ROWS]
    head = ["operation", "kind", "µs, smallest", *DIMENSIONS, "longest stall, ms"]
    return Grid(title="Any size: what grows with what", head=head, rows=rows, notes=notes)


def tables(cells: Cells, steps: Iterable[Step]) -> Grid:
    """The same table for the worker's work after each change."""
    rows = []
    all_found = found(cells, steps)
    for operation in OPERATIONS:
        if operation.kind is Kind.CHANGE:
            its = [one for one in all_found if one.operation is operation]
            smallest = cells[SMALLEST_NAME].get(operation.name, Cell()).tables_us
            rows.append([operation.name, _us(smallest), *(_number(one.tables_exponent) for one in its)])
    notes = ["Processor time of the worker process and of PostgreSQL for it, until the tables have caught up."]
    head = ["after this change", "µs, smallest", *DIMENSIONS]
    return Grid(title="Any size: what the tables cost", head=head, rows=rows, notes=notes)


def costs(cells: Cells, steps: Iterable[Step]) -> Grid:
    """Microseconds of each operation in each world, with the stall in ms if that is too long."""
    names = [SMALLEST_NAME, *(step.name for step in steps)]
    rows = [[row.name, *(_cost(cells[name].get(row.name, Cell())) for name in names)] for row in ROWS]
    notes = ["µs of processor time of a request; after a stroke, ms that others waited meanwhile, if too long."]
    return Grid(title="Any size: costs", head=["operation", *names], rows=rows, notes=notes, is_printed=False)


def _row(operation: Measured, its: list[Found], cells: Cells) -> list[str]:
    smallest = cells[SMALLEST_NAME].get(operation.name, Cell())
    stall_ms, stalled_at = max(((one.stall_ms or 0.0, one.stalled_at) for one in its), default=(0.0, ""))
    stall = f"{stall_ms:,.0f}" if stall_ms <= STALL_MS_MAX else f"{stall_ms:,.0f}! ({stalled_at})"
    if all(one.stall_ms is None for one in its):
        stall = NOT_ASKED
    return [operation.name, operation.kind, _us(smallest.cost_us), *map(_cell, its), stall]


def _cell(one: Found) -> str:
    if not one.grows:
        return _number(one.exponent)
    return (
        ("≥" if one.is_bound else "")
        + _number(one.exponent)
        + ("!" if one.operation.must_be_flat or one.is_unexplained else "*")
    )


def _cost(cell: Cell) -> str:
    stall = f" / {cell.stall_ms:,.0f}" if cell.stall_ms is not None and cell.stall_ms > STALL_MS_MAX else ""
    if cell.at_least_us is not None:
        return f"≥{_us(cell.at_least_us)}"
    return _us(cell.cost_us) + stall


def _us(value: float | None) -> str:
    return NOT_ASKED if value is None else f"{value:,.0f}"


def _number(value: float | None) -> str:
    return NOT_ASKED if value is None else f"{value:.2f}"


def _reasons(all_found: Iterable[Found]) -> Iterator[str]:
    """Why the operations that may grow do so."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in all_found:
        if one.grows and (because := one.operation.because.get(one.dimension)):
            reasons.setdefault((one.operation.name, because), []).append(one.dimension)
    for (name, because), dimensions in reasons.items():
        yield f"* {name} × {', '.join(dimensions)}: {because}."  # noqa: RUF001 - the sign


def _skipped(all_found: Iterable[Found]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for one in all_found:
        if one.skipped:
            names = reasons.setdefault(one.skipped, [])
            if one.operation.name not in names:
                names.append(one.operation.name)
    for reason, names in reasons.items():
        yield f"{NOT_ASKED} {'Everything' if len(names) == len(ROWS) else ', '.join(names)}: {reason}"


def all_steps(*, quick: bool) -> list[Step]:
    return [step for step in STEPS if step.is_quick or not quick]
