"""Question 19: does the cost of a request grow with the size of a tournament, and do others wait for it?

Every operation is measured in tournaments that are large in one dimension: competitors, participants of a ranking,
rankings, unities, competitions, points in the log, other tournaments, keys. Each has a separate database and service
(`sizes/`). A change with a minimal answer, a window and a single read must cost the same everywhere. An operation whose
cost may grow says why. Others must not wait.
"""

import asyncio
import math
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec
from asyncpg import PostgresError

from benchmarks import machine, service
from benchmarks.asking import enrol
from benchmarks.past import ran
from benchmarks.processes import ProgramFailed
from benchmarks.service import serving
from benchmarks.setting import Setting
from benchmarks.sizes import table, worlds
from benchmarks.sizes.measuring import (
    SPELLS,
    Cell,
    Effort,
    Measuring,
    NotAnswered,
    measuring,
    wait_for_tables,
)
from benchmarks.sizes.operations import (
    COMMANDS,
    EXPONENT_MAX,
    FIRST_ANSWER,
    IDLENESS,
    OPERATIONS,
    ROWS,
    STALL_MS_MAX,
    Kind,
    Measured,
)
from benchmarks.sizes.table import SMALLEST_NAME, Cells
from benchmarks.sizes.worlds import SMALLEST, Step, World
from benchmarks.table import Findings
from benchmarks.world import seeding, settle

NUMBERS: Final = (19,)
NEEDS: Final = ()
EFFORT: Final = Effort(seconds=0.2, times_max=8, times_min=4, idle_seconds=4.0, with_tables=True)
QUICK_EFFORT: Final = Effort(seconds=0.02, times_max=2, times_min=2, idle_seconds=0.2, with_tables=False)
TEMPLATE: Final = "sizes"
EXPECTED_SECONDS_MAX: Final = 6.0
WORLD_SECONDS_MAX: Final = 45.0
"""For all operations in one world. Most worlds need half of it."""
_MUSTS: Final = {"19a": Kind.CHANGE, "19b": Kind.WINDOW, "19c": Kind.READ}


async def measure(setting: Setting) -> Findings:
    steps = table.all_steps(quick=setting.quick)
    cells: dict[str, dict[str, Cell]] = {}
    findings = Findings()
    token = service.token(setting.product, await setting.database(TEMPLATE))
    for step in (None, *steps):
        name = SMALLEST_NAME if step is None else step.name
        cells[name], peak_bytes = await _measured(setting, token, step, cells)
        findings.figure(f"peak memory of the API process, {name}", "MiB", [peak_bytes / 2**20])
    _judge(findings, cells, steps)
    shown = (table.exponents, table.costs) if setting.quick else (table.exponents, table.tables, table.costs)
    findings.grids = [show(cells, steps) for show in shown]
    return findings


def _judge(findings: Findings, cells: Cells, steps: Iterable[Step]) -> None:
    found = table.found(cells, steps)
    for key, kind in _MUSTS.items():
        exponents = [one.exponent for one in found if one.operation.kind is kind and one.exponent is not None]
        findings.values[key] = [max(exponents)]
    findings.values["19d"] = [max(one.stall_ms for one in found if one.stall_ms is not None)]
    findings.values["19e"] = [sum(one.is_unexplained for one in found)]


async def _measured(setting: Setting, token: str, step: Step | None, known: Cells) -> tuple[dict[str, Cell], int]:
    """The cells of one world, and the most memory that its API process had."""
    began = time.perf_counter()
    dsn = await setting.cluster.copy(TEMPLATE, "measured")
    try:
        return await _in_database(setting, token, dsn, step, known)
    except (ProgramFailed, OSError, PostgresError, TimeoutError) as error:
        setting.say(traceback.format_exc())
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        return {operation.name: Cell(skipped=reason) for operation in ROWS}, 0
    finally:
        await setting.cluster.drop("measured")
        name = SMALLEST_NAME if step is None else step.name
        setting.say(f"  {name}: {time.perf_counter() - began:.0f} s")


async def _in_database(
    setting: Setting, token: str, dsn: str, step: Step | None, known: Cells
) -> tuple[dict[str, Cell], int]:
    size = SMALLEST if step is None else step.size
    async with seeding(dsn) as connection:
        world = await worlds.make(connection, size)
    await settle(dsn)
    if refusal := await _enrolled(setting, token, dsn, world):
        return {operation.name: Cell(skipped=refusal) for operation in ROWS}, 0
    effort = QUICK_EFFORT if setting.quick else EFFORT
    async with (
        serving(setting.product, dsn, log=setting.log("service-sizes"), known_token=token) as running,
        measuring(running, world, effort) as measured,
    ):
        cells = await _cells(measured, step, known)
        if not setting.quick:
            cells |= await _commands(setting, dsn, world, _not_asked(step, known))
        peak_bytes = machine.peak_rss_bytes(running.api)
    for _ in range(SPELLS - 1):
        first = cells[FIRST_ANSWER.name]
        if first.stall_ms is None or first.stall_ms <= STALL_MS_MAX:
            break
        async with (
            serving(setting.product, dsn, log=setting.log("service-sizes-again"), known_token=token) as running,
            measuring(running, world, effort) as measured,
        ):
            again = await measured.first()
        if again.stall_ms is not None:
            cells[FIRST_ANSWER.name] = msgspec.structs.replace(first, stall_ms=min(first.stall_ms, again.stall_ms))
    return cells, peak_bytes


async def _cells(measured: Measuring, step: Step | None, known: Cells) -> dict[str, Cell]:
    cells = {FIRST_ANSWER.name: await measured.first(), IDLENESS.name: await measured.idle()}
    if cells[FIRST_ANSWER.name].skipped:
        return {row.name: cells[FIRST_ANSWER.name] for row in ROWS}
    not_asked = _not_asked(step, known)
    with suppress(NotAnswered):  # what cannot be asked at all is found so once more, and noted
        await measured.warm_up(OPERATIONS[0])
    began = time.perf_counter()
    for operation in OPERATIONS:
        if time.perf_counter() - began > WORLD_SECONDS_MAX:
            cells[operation.name] = Cell(skipped=f"not asked, others had taken {WORLD_SECONDS_MAX:.0f} s")
        elif reason := not_asked.get(operation.name):
            cells[operation.name] = Cell(skipped=reason)
        else:
            doubtful_us = _doubtful_us(step, known, operation)
            cells[operation.name] = await measured.cell(operation, doubtful_us=doubtful_us)
    return cells


async def _commands(setting: Setting, dsn: str, world: World, not_asked: dict[str, str]) -> dict[str, Cell]:
    cells = {}
    for command in COMMANDS:
        if reason := not_asked.get(command.name):
            cells[command.name] = Cell(skipped=reason)
        else:
            told = await asyncio.to_thread(ran, setting.product, dsn, *command.arguments(world))
            cells[command.name] = Cell(cost_us=told.processor_seconds * 1e6, seconds=told.seconds)
    return cells


def _doubtful_us(step: Step | None, known: Cells, operation: Measured) -> float:
    """The cost above which this operation grows, though it should not; or infinity."""
    if step is None or step.dimension in operation.because:
        return math.inf
    smaller = _smaller(step, known, operation)
    return min((cell.cost_us or math.inf) * math.pow(step.count / count, EXPONENT_MAX) for count, cell in smaller)


def _smaller(step: Step, known: Cells, operation: Measured) -> list[tuple[int, Cell]]:
    """The sizes of the same dimension measured so far, each with the finding for this operation."""
    sizes = [(getattr(SMALLEST, step.dimension), SMALLEST_NAME)]
    sizes += [
        (other.count, other.name)
        for other in worlds.STEPS
        if other.dimension == step.dimension and other.count < step.count and other.name in known
    ]
    return [(count, known[name].get(operation.name, Cell())) for count, name in sizes]


async def _enrolled(setting: Setting, token: str, dsn: str, world: World) -> str:
    """Enrols the remaining competitors through the service. Returns why the service refused, or nothing."""
    if not any(world.not_yet_enrolled):
        return ""
    log = setting.log("service-enrolling")
    async with serving(setting.product, dsn, log=log, known_token=token) as running:
        await wait_for_tables(dsn)
        try:
            await enrol(running, world.tournament, world.not_yet_enrolled)
        except ProgramFailed as refusal:
            return str(refusal)
    async with seeding(dsn) as connection:
        await worlds.score_all(connection, world)
    await settle(dsn)
    return ""


def _not_asked(step: Step | None, known: Cells) -> dict[str, str]:
    """Why operations are not measured at this size: the service has no such operation, or would take too long."""
    if step is None:
        return {}
    reasons = {}
    for operation in (*OPERATIONS, *COMMANDS):
        cells = _smaller(step, known, operation)
        if skipped := cells[0][1].skipped or cells[-1][1].skipped:
            reasons[operation.name] = skipped
        elif (seconds := _expected_seconds(step.count, cells)) > EXPECTED_SECONDS_MAX:
            reasons[operation.name] = f"not asked, some {seconds:,.0f} s were to be expected"
    return reasons


def _expected_seconds(count: int, cells: list[tuple[int, Cell]]) -> float:
    """What a request would cost at this size if its cost continued to grow as between the last two."""
    if len(cells) < 2:
        return 0.0
    (smaller, before), (size, cell) = cells[-2:]
    if before.seconds is None or cell.seconds is None:
        return 0.0
    power = math.log(count / size) / math.log(size / smaller)
    return cell.seconds * math.pow(max(cell.seconds / before.seconds, 1.0), power)
