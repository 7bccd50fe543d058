"""Question 21: what does a classification cost, compared with plain standings, and do others wait for it?

A ranking of 20, 1,000 and 100,000 competitors, with points, difference and goals. Each competitor has met nine others
in each of seven competitions, so that thousands of the largest ranking are tied on points. It is classified in three
ways: by totals alone, with a criterion among the tied in the middle, and with the best five competitions first.

After each add, a request asks for twenty lines: the first, or those in the middle, where most are tied. The same lines
of the plain standings of the main unity take turns with them. The cost is processor time of one request, and the stall
is how long others wait meanwhile, both as in question 19 (`sizes/measuring.py`). Of the two windows, the one with the
higher ratio to the standings counts. Only totals alone have a goal in the table; the costs of the others are figures.
"""

from collections.abc import Iterator
from random import Random
from statistics import median
from typing import Final

import msgspec
from msgspec import Struct

from benchmarks.asking import enrol
from benchmarks.processes import ProgramFailed
from benchmarks.setting import Setting
from benchmarks.sizes import worlds
from benchmarks.sizes.measuring import Cell, Effort, Measuring, measuring, wait_for_tables
from benchmarks.sizes.operations import Kind, Operation, add_to, get, put
from benchmarks.sizes.worlds import Size, World
from benchmarks.table import TIMES, Findings, Grid
from benchmarks.world import seeding, settle
from engine.domain.events import CompetitionAdded, Delta, Event, PointsAdded
from engine.domain.terms import CompetitionId
from engine.log import registry

NUMBERS: Final = (21,)
NEEDS: Final = ()
COMPETITORS: Final = {"21a": 20, "21b": 1_000, "21c": 100_000}
QUICK_COMPETITORS: Final = {"21a": 20, "21b": 1_000, "21c": 10_000}
EFFORT: Final = Effort(seconds=0.5, times_max=50, times_min=4, idle_seconds=0.0, with_tables=False)
QUICK_EFFORT: Final = Effort(seconds=0.1, times_max=12, times_min=2, idle_seconds=0.0, with_tables=False)
LINES: Final = 20
BEST: Final = 5
COMPETITIONS_EACH: Final = 7
TOGETHER: Final = 10
"""Competitors of one competition."""
POOL: Final = 100
"""Competitors among whom those of a competition are drawn."""
SEED: Final = 21

BY_TOTALS: Final = "points, difference, goals"
AMONG_TIED: Final = "points, difference among the tied, goals"
BEST_FIRST: Final = f"points of the best {BEST}, difference, goals"


class Compared(Struct, frozen=True, kw_only=True):
    """A window of a classification and the same window of the standings."""

    chain: str
    window: str
    standings_us: float
    classification_us: float
    stall_ms: float

    @property
    def times(self) -> float:
        return self.classification_us / self.standings_us


async def measure(setting: Setting) -> Findings:
    findings = Findings()
    sizes = QUICK_COMPETITORS if setting.quick else COMPETITORS
    found = {competitors: await _rounds(setting, competitors) for competitors in sizes.values()}
    for key, competitors in sizes.items():
        findings.values[key] = [
            max(one.times for one in compared if one.chain == BY_TOTALS) for compared in found[competitors]
        ]
    findings.values["21d"] = [
        max(one.stall_ms for compared in of_round for one in compared) for of_round in zip(*found.values(), strict=True)
    ]
    findings.grids = [_grid(found)]
    if setting.quick:
        findings.notes.append(f"21: scaled down, {sizes['21c']:,} competitors instead of {COMPETITORS['21c']:,}")
    return findings


# ── Measuring ───────────────────────────────────────────────────────────────────────────────────────────


async def _rounds(setting: Setting, competitors: int) -> list[list[Compared]]:
    """The findings in a ranking of that size, in each round. Raises ProgramFailed and NotAnswered."""
    dsn = await setting.database(f"classification_{competitors}")
    world = await _played(setting, dsn, competitors)
    effort = QUICK_EFFORT if setting.quick else EFFORT
    async with (
        setting.service(dsn, f"classification-{competitors}") as service,
        measuring(service, world, effort) as measured,
    ):
        _cost_and_stall(await measured.first())
        return [await _round(measured, world) for _ in range(setting.rounds)]


async def _round(measured: Measuring, world: World) -> list[Compared]:
    found = []
    for chain, criteria in _chains(world).items():
        declared = msgspec.json.encode(criteria).decode()
        await measured.answered(put(f"rankings/{world.tournament.ranking_id}/classification.json", criteria=declared))
        for window, query in _windows(world).items():
            standings_us, _ = _cost_and_stall(await measured.cell(_asking("standings", query)))
            classification_us, stall_ms = _cost_and_stall(await measured.cell(_asking("classification", query)))
            found.append(
                Compared(
                    chain=chain,
                    window=window,
                    standings_us=standings_us,
                    classification_us=classification_us,
                    stall_ms=stall_ms,
                )
            )
    return found


def _cost_and_stall(cell: Cell) -> tuple[float, float]:
    """Cost and stall of one request, in µs and ms. Raises ProgramFailed if it was not answered."""
    if cell.cost_us is None or cell.stall_ms is None:
        raise ProgramFailed(cell.skipped)
    return cell.cost_us, cell.stall_ms


def _chains(world: World) -> dict[str, list[dict[str, object]]]:
    """Criteria as they are sent."""
    its: list[dict[str, object]] = [{"unity": unity_id} for unity_id in world.tournament.unity_ids]
    points, difference, goals = its
    return {
        BY_TOTALS: [points, difference, goals],
        AMONG_TIED: [points, {**difference, "among": "tied"}, goals],
        BEST_FIRST: [{**points, "best": BEST}, difference, goals],
    }


def _windows(world: World) -> dict[str, str]:
    """The queries of windows. With 20 competitors, both windows have all of them."""
    middle = (len(world.participants) - LINES) // 2
    return {"the first": f"top={LINES}", "in the middle": f"offset={middle}&limit={LINES}"}


def _asking(what: str, query: str) -> Operation:
    """A window after an add. Every second add takes back the points of the previous one, so that the ties stay."""
    return Operation(
        name=what,
        kind=Kind.WINDOW,
        ask=lambda world, _n: get(f"rankings/{world.tournament.ranking_id}/{what}.json?{query}"),
        before=lambda world, n: add_to(world, n // 2, -1 if n % 2 else 1),
        is_alone=True,
    )


# ── The world ───────────────────────────────────────────────────────────────────────────────────────────


async def _played(setting: Setting, dsn: str, competitors: int) -> World:
    """A ranking of that size with a season behind it."""
    size = Size(
        competitors=0,
        participants=competitors,
        rankings=0,
        unities=3,
        competitions=1,
        events=0,
        tournaments=1,
        keys=0,
    )
    async with seeding(dsn) as connection:
        world = await worlds.make(connection, size, scores=False)
    if any(world.not_yet_enrolled):
        async with setting.service(dsn, f"enrolling-{competitors}") as service:
            await wait_for_tables(dsn)
            await enrol(service, world.tournament, world.not_yet_enrolled)
    async with seeding(dsn) as connection:
        ids = await registry.next_ids(connection, competitors // TOGETHER * COMPETITIONS_EACH)
        await worlds.append(connection, world.tournament, _season(world, iter(map(CompetitionId, ids))))
    await settle(dsn)
    return world


def _season(world: World, competition_ids: Iterator[CompetitionId]) -> Iterator[Event]:
    """Competitions with the points of their participants, pool by pool."""
    tournament, draw = world.tournament, Random(SEED)
    for pool in worlds.chunks(world.participants, POOL):
        for _ in range(COMPETITIONS_EACH):
            for together in worlds.chunks(draw.sample(pool, len(pool)), TOGETHER):
                competition_id = next(competition_ids)
                yield CompetitionAdded(competition_id=competition_id, group_id=1, participants=together)
                deltas = [
                    Delta(competitor_id, unity_id, amount)
                    for competitor_id in together
                    for unity_id, amount in zip(tournament.unity_ids, _result(draw), strict=True)
                ]
                yield PointsAdded(ranking_id=tournament.ranking_id, deltas=tuple(deltas), competition_id=competition_id)


def _result(draw: Random) -> tuple[int, int, int]:
    """Points, difference and goals, as of one match of football."""
    scored, taken = draw.randint(0, 4), draw.randint(0, 4)
    return 3 if scored > taken else int(scored == taken), scored - taken, scored


# ── Showing ─────────────────────────────────────────────────────────────────────────────────────────────


def _grid(found: dict[int, list[list[Compared]]]) -> Grid:
    """The medians of the rounds; for stalls, the longest."""
    rows = []
    for competitors, rounds in found.items():
        for its in zip(*rounds, strict=True):
            cells = [
                f"{median([one.standings_us for one in its]):,.0f}",
                f"{median([one.classification_us for one in its]):,.0f}",
                f"{median([one.times for one in its]):,.2f}",
                f"{max(one.stall_ms for one in its):,.0f}",
            ]
            rows.append([f"{competitors:,}", its[0].chain, its[0].window, *cells])
    return Grid(
        title=f"A classification next to plain standings: {LINES} lines after an add",
        head=["competitors", "classified by", "lines", "µs, standings", "µs, classification", TIMES, "stall, ms"],
        rows=rows,
        notes=["µs of processor time of one request. The stall is the longest of all rounds, of the classification."],
    )
