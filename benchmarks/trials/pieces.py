"""What answers that show competitors cost, and how long each of their steps takes, beside many competitors. To be run
by itself, with the folder of an earlier checkout to compare with:

    python -m benchmarks.trials.pieces ../earlier [case …]

Each case runs in a process of its own, in this checkout and in the other by turns, three times; the best counts.
Figures: ms of processor time of an answer, with the change that it follows; its longest step in ms (for so long all
others wait, plus what is left of the slice of 4 ms); MB that twelve readers hold of it who have read 200 KB each, with
a changed competitor between them. `-`: the answer is short, so that readers share it.
"""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from api.http.outgoing import Long
from api.interface.declarations import Read, Write, name_of
from api.interface.operations import OPERATIONS
from api.interface.paging import PageQuestion
from api.interface.rankings import RankingQuestion, RankingsQuestion
from api.interface.rendering import TaggedBody
from engine.domain.events import (
    CompetitionAdded,
    CompetitorChanged,
    CompetitorRegistered,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    Recorded,
)
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log.log import Head
from projections.board.board import Board
from projections.live.tournament import LiveTournament

READERS: Final = 12
READ_BYTES: Final = 200_000
ROUNDS: Final = 3
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Figures(msgspec.Struct):
    """`held_mb` is None for a short answer."""

    milliseconds: float
    longest: float
    held_mb: float | None


class World:
    """A tournament in memory, in which events happen and questions are answered."""

    def __init__(self, events: Iterator[Event]) -> None:
        self.live = LiveTournament(TournamentId(1), Head(Sequence(0), b""), Board())
        for event in events:
            self.happens(event)

    def happens(self, event: Event) -> None:
        sequence = Sequence(self.live.head.sequence + 1)
        recorded = Recorded(sequence=sequence, recorded_at=NOW, actor=OPERATOR, idempotency_key=None, event=event)
        self.live.fold([recorded], Head(sequence, b"%d" % sequence))

    def steps(self, name: str, of: Any) -> Iterator[bytes]:
        """The steps of an answer, as the server takes them."""
        operation = next(one for one in OPERATIONS if name_of(one) == name)
        assert isinstance(operation, Read | Write)
        settling = getattr(self.live, "nested_sets", None)
        while settling is not None and not settling.ready:
            settling._go_on()
            yield b""
        made = operation.render(self.live, operation.answer, of)
        if isinstance(made, bytes | TaggedBody):
            yield made if isinstance(made, bytes) else made.body
            return
        yield b""
        long = made()
        assert isinstance(long, Long)
        yield b""
        yield from long.portions()


Case = tuple[Iterator[Event], Callable[[int], Event], str, Any]
"""The events before (to be read once), the n-th event before an answer, the operation that answers, and what it is
asked."""


def competitors(number: int, *, teams: int = 0) -> Iterator[Event]:
    for n in range(1, number + 1):
        team = CompetitorId(1 + n % teams) if n > teams > 0 else None
        yield CompetitorRegistered(
            competitor_id=CompetitorId(n), name=f"Competitor number {n}", color="0044ff", parent_id=team
        )


def ranking(number: int, participants: int) -> Event:
    return RankingCreated(
        ranking_id=RankingId(number),
        name=f"Ranking {number}",
        participants=tuple(map(CompetitorId, range(1, participants + 1))),
        main_unity_id=UnityId(number),
        main_unity_name="points",
    )


def rankings(number: int, participants: int) -> Iterator[Event]:
    yield from competitors(participants)
    yield from (ranking(n, participants) for n in range(1, number + 1))


def rankings_beside(number: int, participants: int, others: int) -> Iterator[Event]:
    yield from competitors(others, teams=others // 20)
    yield from (ranking(n, participants) for n in range(1, number + 1))


def races(number: int, participants: int) -> Iterator[Event]:
    yield from competitors(participants)
    everybody = tuple(map(CompetitorId, range(1, participants + 1)))
    for n in range(1, number + 1):
        yield CompetitionAdded(competition_id=CompetitionId(n), group_id=1, participants=everybody)


def new(number: int, parent: int | None = None) -> Callable[[int], Event]:
    """The n-th of those that are registered beside so many."""
    parent_id = None if parent is None else CompetitorId(parent)
    return lambda n: CompetitorRegistered(competitor_id=CompetitorId(number + n), name="New", parent_id=parent_id)


def renamed(n: int) -> Event:
    return CompetitorChanged(competitor_id=CompetitorId(1 + n), name=f"Renamed {n}")


def moved(number: int) -> Callable[[int], Event]:
    return lambda n: CompetitorChanged(competitor_id=CompetitorId(number - n), parent_id=CompetitorId(1))


def points(n: int) -> Event:
    return PointsAdded(ranking_id=RankingId(1), deltas=(Delta(CompetitorId(1 + n), UnityId(1), 1),))


LIST: Final = "GET competitors.json"
SHOW: Final = "PUT competitors/{competitor_id}.json"
PAGE: Final = PageQuestion(1, 200)
CASES: Final[dict[str, Case]] = {
    **{f"page of 200, {n:,} roots": (competitors(n), new(n), LIST, PAGE) for n in (10_000, 100_000)},
    **{f"page of 200, {n:,} in teams": (competitors(n, teams=n // 20), new(n), LIST, PAGE) for n in (10_000, 100_000)},
    **{f"a new root, {n:,} roots": (competitors(n), new(n), SHOW, "event") for n in (1_000, 100_000)},
    **{
        f"a new child, {n:,} in teams": (competitors(n, teams=n // 20), new(n, 7), SHOW, "event")
        for n in (1_000, 100_000)
    },
    **{f"a rename, {n:,} in teams": (competitors(n, teams=n // 20), renamed, SHOW, "event") for n in (1_000, 100_000)},
    **{
        f"another parent, {n:,} in teams": (competitors(n, teams=n // 20), moved(n), SHOW, "event")
        for n in (1_000, 100_000)
    },
    "rankings, 1,000 of 10": (rankings(1_000, 10), renamed, "GET rankings.json", RankingsQuestion()),
    "rankings, 50 of 10,000": (rankings(50, 10_000), renamed, "GET rankings.json", RankingsQuestion()),
    "rankings, 5 of 10,000, beside 200,000 in teams": (
        rankings_beside(5, 10_000, 200_000),
        renamed,
        "GET rankings.json",
        RankingsQuestion(),
    ),
    "competitions, 20 of 10,000": (races(20, 10_000), renamed, "GET competitions.json", PAGE),
    "points, 10,000 enrolled": (
        rankings(1, 10_000),
        points,
        "PUT rankings/{ranking_id}/add.json",
        RankingQuestion(RankingId(1)),
    ),
    "points, 100,000 enrolled": (
        rankings(1, 100_000),
        points,
        "PUT rankings/{ranking_id}/add.json",
        RankingQuestion(RankingId(1)),
    ),
}


def measured(case: str) -> Figures:
    before, event, name, of = CASES[case]
    world = World(before)
    gc.freeze()
    best, longest = float("inf"), float("inf")
    for n in range(1, 6):
        happening = event(n)
        steps, slowest, began_at = None, 0.0, time.thread_time()
        world.happens(happening)
        steps = world.steps(name, happening if of == "event" else of)
        while True:
            step_at = time.thread_time()
            portion = next(steps, None)
            slowest = max(slowest, time.thread_time() - step_at)
            if portion is None:
                break
        if n > 1:  # the first meets what is not warm yet
            best, longest = min(best, time.thread_time() - began_at), min(longest, slowest)
    return Figures(best * 1e3, longest * 1e3, _held_mb(world, name, of))


def _held_mb(world: World, name: str, of: Any) -> float | None:
    """What readers hold who have read the beginning, each of another state."""
    readers, before, read = [], _rss_bytes(), 0
    if of == "event":
        return None
    for n in range(READERS):
        world.happens(renamed(n % 8))
        steps, read = world.steps(name, of), 0
        for portion in steps:
            read += len(portion)
            if read > READ_BYTES:
                break
        readers.append(steps)
    held = _rss_bytes() - before
    return held / 1e6 if read > READ_BYTES else None


def _rss_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _in_process(tree: Path, case: str) -> Figures:
    command = [sys.executable, "-P", __file__, "--case", case]
    done = subprocess.run(
        command, check=True, capture_output=True, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}
    )
    return msgspec.json.decode(done.stdout, type=Figures)


def main(earlier: Path, cases: Iterable[str]) -> None:
    here = Path(__file__).resolve().parents[2]
    print("| case | ms before | after | ratio | longest step before | after | held by twelve before, MB | after |")
    print("|---|---|---|---|---|---|---|---|")
    for case in cases:
        rounds = [(_in_process(earlier, case), _in_process(here, case)) for _ in range(ROUNDS)]
        before, after = (_best([one[side] for one in rounds]) for side in (0, 1))
        held = ["-" if figures.held_mb is None else f"{figures.held_mb:.0f}" for figures in (before, after)]
        print(
            f"| {case} | {before.milliseconds:.2f} | {after.milliseconds:.2f} | "
            f"{before.milliseconds / after.milliseconds:.1f} | {before.longest:.1f} | {after.longest:.1f} | "
            f"{held[0]} | {held[1]} |",
            flush=True,
        )


def _best(rounds: list[Figures]) -> Figures:
    held = [one.held_mb for one in rounds if one.held_mb is not None]
    return Figures(
        min(one.milliseconds for one in rounds), min(one.longest for one in rounds), min(held) if held else None
    )


if __name__ == "__main__":
    if sys.argv[1] == "--case":
        sys.stdout.buffer.write(msgspec.json.encode(measured(sys.argv[2])))
    else:
        main(Path(sys.argv[1]).resolve(), sys.argv[2:] or CASES)
