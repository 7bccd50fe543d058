"""The table of cases: what is injected, what must hold, and what became of it.

A case is a small function, registered under its number. It is given a Trial, which has a stage for it and takes what
it finds.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from msgspec import Struct

from assurance.faults.checker import Verdicts
from assurance.faults.history import Outcome, seconds_of
from assurance.faults.stage import Stage, stage
from assurance.faults.tools import Tool


class CannotBeMade(Exception):
    """Why a case is impossible on this machine."""


def refuse_without(tools: Iterable[Tool]) -> None:
    """Raises CannotBeMade if one of the tools is missing."""
    missing = [f"{tool.name} (package {tool.package})" for tool in tools if not tool.is_here()]
    if missing:
        raise CannotBeMade(f"there is no {', no '.join(missing)}")


class Trial:
    """One run of a case. `scale` 1 is the full campaign; the shares of everyday tests are smaller."""

    def __init__(self, prepared: Path, folder: Path, *, seed: int = 1, scale: float = 1.0) -> None:
        self.prepared = prepared
        self.folder = folder
        self.seed = seed
        self.scale = scale
        self.random = Random(seed)
        self.outcomes: Counter[Outcome] = Counter()
        self.deltas = 0
        self.verdicts = Verdicts()
        self.figures: list[str] = []
        self.resumed: list[float] = []
        self.shortcoming = ""
        """Why the run does not show what it is for, although nothing that was looked at is wrong."""
        self.stages: list[Stage] = []

    def times(self, full: int, *, least: int = 1) -> int:
        return max(least, round(full * self.scale))

    def seconds(self, full: float, *, least: float = 1.0) -> float:
        return max(least, full * self.scale)

    def tell(self, figure: str) -> None:
        self.figures.append(figure)

    def look(self, invariant: str, right: bool, fault: str) -> None:
        self.verdicts.look(invariant, right, fault)

    def show(self, shown: bool, otherwise: str) -> None:
        """Notes whether it came to what the case is for: what was not injected is not shown."""
        if not shown:
            self.shortcoming += f"{otherwise}; "

    @asynccontextmanager
    async def stage(self, **options: Any) -> AsyncIterator[Stage]:
        """A stage for the case; what was played on it is judged at its end unless the case did that itself."""
        options = {"seed": self.seed} | options
        async with stage(self.prepared, self.folder / f"stage-{len(self.stages)}", **options) as one:
            self.stages.append(one)
            yield one

    async def judge(self, one: Stage, **options: Any) -> None:
        """Judges all that has been played on the stage."""
        self.take(one, await one.judged(**options))

    def take(self, one: Stage, verdicts: Verdicts) -> None:
        self.verdicts.add(verdicts)
        self.outcomes.update(one.history.outcomes())
        self.deltas += one.history.deltas_acknowledged()
        self.resumed += one.resumed
        if verdicts.wrong:
            one.history.write(one.folder / "history.ndjson")

    @property
    def figure(self) -> str:
        resumed = [f"to first ok after each of {len(self.resumed)}: {seconds_of(self.resumed)}"] if self.resumed else []
        return "; ".join([*self.figures, *resumed])


class Case(Struct, frozen=True, kw_only=True):
    number: int
    name: str
    injection: str
    invariants: str
    tools: tuple[Tool, ...]
    run: Callable[[Trial], Awaitable[None]]

    async def made(self, trial: Trial) -> None:
        """Runs the case. Raises CannotBeMade."""
        refuse_without(self.tools)
        await self.run(trial)


class Absent(Struct, frozen=True, kw_only=True):
    """A case that is not run, and why."""

    number: int
    name: str
    why: str


class Control(Struct, frozen=True, kw_only=True):
    """Something that is broken on purpose, so that a check which finds nothing is known to be able to find it.
    `run` answers what it found; an empty text means that the control failed. It must not depend on chance."""

    name: str
    what: str
    tools: tuple[Tool, ...]
    run: Callable[[Trial], Awaitable[str]]

    async def made(self, trial: Trial) -> str:
        """What was found. Raises CannotBeMade."""
        refuse_without(self.tools)
        return await self.run(trial)


CASES: Final[dict[int, Case]] = {}
ABSENT: Final[dict[int, Absent]] = {}
CONTROLS: Final[dict[str, Control]] = {}

_Run = Callable[[Trial], Awaitable[None]]
_Find = Callable[[Trial], Awaitable[str]]


def case(
    number: int, name: str, injection: str, invariants: str, *, tools: tuple[Tool, ...] = ()
) -> Callable[[_Run], _Run]:
    def register(run: _Run) -> _Run:
        assert number not in {*CASES, *ABSENT}
        CASES[number] = Case(number=number, name=name, injection=injection, invariants=invariants, tools=tools, run=run)
        return run

    return register


def absent(number: int, name: str, why: str) -> None:
    assert number not in CASES
    ABSENT[number] = Absent(number=number, name=name, why=why)


def control(name: str, what: str, *, tools: tuple[Tool, ...] = ()) -> Callable[[_Find], _Find]:
    def register(run: _Find) -> _Find:
        assert name not in CONTROLS
        CONTROLS[name] = Control(name=name, what=what, tools=tools, run=run)
        return run

    return register
