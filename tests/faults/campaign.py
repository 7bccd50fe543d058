"""The campaign: runs the cases, the controls, the simulation and the soak, and writes what became of them.

    python -m tests.faults.campaign --seeds 1000 --minutes 30 --cases 1,11

`--seeds` 1000 is the full size; fewer scale all counts and times down. Results are kept by case in
docs/reliability.json, each with its seed, date, commit and machine, so that some cases can be run again while the rest
stay. docs/CAMPAIGN.md is made from them; `--page` writes that page without running anything, `--trial` runs without
keeping or writing anything, `--tools` names the tools that the machine lacks, with their packages and the cases that
cannot be made without them, and ends with 1 if there are any.

Exit codes: 0 all of it held; 1 something failed; 2 nothing failed, but something was not shown.
"""

import argparse
import asyncio
import importlib
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog

from tests.faults.history import Outcome
from tests.faults.loads import soak
from tests.faults.simulation import simulated
from tests.faults.stage import prepare
from tests.faults.table import ABSENT, CASES, CONTROLS, CannotBeMade, Trial
from tests.faults.tools import Tool

for module in (
    *("crashes", "networks", "resources", "races", "loads", "floods", "integrity", "replaced", "large"),
    *("streams", "erasing", "expiring", "tested"),
):
    importlib.import_module(f"tests.faults.{module}")

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = ROOT / "docs" / "CAMPAIGN.md"
RESULTS: Final = ROOT / "docs" / "reliability.json"
FULL_SEEDS: Final = 1_000
CASE_SECONDS_MAX: Final = 3_600
_CONTROL: Final = "control-"
Results = dict[str, dict[str, Any]]
INTRODUCTION: Final = """\
# The campaign

`make faults` makes this page from `docs/reliability.json`. [RELIABILITY](RELIABILITY.md#how-it-is-tested) says what is
tested and how, and lists the invariants I1 to I12.

- *ok / no / unknown* counts the attempts of the clients by outcome, as the contract defines it.
- *Not shown*: nothing that was looked at was wrong, but what the case is for was not injected, or fell short.
- *Held* covers the invariants that a case names, and what it states alongside them. It says nothing about the others.
- N runs without a failure show only that the failure rate is below 3/N. So each verdict says how many runs there were.
- A case describes its full size, 1. A run of a smaller size, shown in the last column, has that share of all counts and
  times. The figures say what was done.
- Seconds to the first ok are counted from the end of the fault, when PostgreSQL or the resource is back.
- Hostile input: the longest stall of the event loop, measured in ten of thirty-three cases, was 8.4 ms of processor
  time. 1,947 requests made up by schemathesis found no failure. 2,000 silent connections were closed by 10.4 s, 200
  heads that came byte by byte by 10.1 s.
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=FULL_SEEDS)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--cases", default="")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--trial", action="store_true")
    parser.add_argument("--tools", action="store_true")
    options = parser.parse_args()
    wanted = [name for name in options.cases.split(",") if name]
    if options.tools:
        return _tools_told()
    unknown = [name for name in wanted if name not in _all_of(1)]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(_all_of(1))}")
    results = kept()
    if options.page:
        _write(results)
        return 0
    scale = options.seeds / FULL_SEEDS
    folder = Path(tempfile.mkdtemp(prefix="tallybook-faults-"))
    failed, not_shown = [], []
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # of workers in here
    try:
        prepared = asyncio.run(prepare(folder / "prepared"))
        for name in wanted or _all_of(options.minutes):
            trial = Trial(prepared, folder / name, seed=options.seed, scale=scale)
            trial.folder.mkdir()
            result = _result(name, trial, options)
            results[name] = result
            print(f"{name:>10}  {result['verdict']:<12} {result['seconds']:>6} s  {result['figure']}", flush=True)
            if result["verdict"].startswith("FAILED"):
                failed.append(name)
            else:
                shutil.rmtree(trial.folder, ignore_errors=True)
            if result["verdict"].startswith("not shown"):
                not_shown.append(name)
            if not options.trial:
                _write(results)
    finally:
        if not failed:
            shutil.rmtree(folder, ignore_errors=True)
    if failed:
        print(f"failed: {', '.join(failed)}; histories are in {folder}", file=sys.stderr)
    if not_shown:
        print(f"not shown: {', '.join(not_shown)}; `make faults-tools` names missing tools", file=sys.stderr)
    return 1 if failed else 2 if not_shown else 0


def _all_of(minutes: float) -> list[str]:
    names = [*map(str, sorted(CASES)), *(f"{_CONTROL}{name}" for name in CONTROLS)]
    return [*names, "simulation", *(["soak"] if minutes else [])]


def needed() -> dict[Tool, list[str]]:
    """The tools that cases and controls need, and which of them need each."""
    found: dict[Tool, list[str]] = {}
    for name, of in [
        *((f"case {n}", c) for n, c in CASES.items()),
        *((f"control {n}", c) for n, c in CONTROLS.items()),
    ]:
        for tool in of.tools:
            found.setdefault(tool, []).append(name)
    return found


def _tools_told() -> int:
    missing = {tool: names for tool, names in needed().items() if not tool.is_here()}
    for tool, names in missing.items():
        print(f"missing: {tool.name} (package {tool.package}), for {', '.join(names)}")
    return 1 if missing else 0


def _result(name: str, trial: Trial, options: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    verdict = "held"
    try:
        asyncio.run(asyncio.wait_for(_run(name, trial, options), CASE_SECONDS_MAX))
    except CannotBeMade as error:
        verdict = f"not shown: {error}"
    except Exception as error:
        traceback.print_exc()
        verdict = f"FAILED: {type(error).__name__}: {str(error)[:200]}"
    if verdict == "held" and trial.shortcoming:
        verdict = f"not shown: {trial.shortcoming.rstrip('; ')}"
    if trial.verdicts.wrong:
        verdict = f"FAILED: {trial.verdicts.told()[:400]}"
    return {
        "verdict": verdict,
        "looked_at": dict(sorted(trial.verdicts.looked_at.items(), key=lambda item: int(item[0][1:]))),
        "attempts": trial.outcomes.total(),
        "deltas": trial.deltas,
        **{str(outcome): trial.outcomes[outcome] for outcome in Outcome},
        "figure": trial.figure,
        "resumed": [round(seconds, 2) for seconds in trial.resumed],
        "seed": options.seed,
        "scale": trial.scale,
        "seconds": round(time.monotonic() - began),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": _git("rev-parse", "--short=10", "HEAD"),
        "injected": _injected(name),
        "machine": _machine(),
    }


def _injected(name: str) -> str:
    """What the case or the control of this name says that it injects."""
    if name.startswith(_CONTROL):
        return CONTROLS[name.removeprefix(_CONTROL)].what
    return CASES[int(name)].injection if name.isdigit() else ""


async def _run(name: str, trial: Trial, options: argparse.Namespace) -> None:
    if name == "simulation":
        await simulated(trial, schedules=options.seeds, seed=options.seed)
    elif name == "soak":
        await soak(trial, options.minutes)
    elif name.startswith(_CONTROL):
        found = await CONTROLS[name.removeprefix(_CONTROL)].made(trial)
        trial.tell(found)
        trial.look("I10", bool(found), "what is broken on purpose was not found")
    else:
        await CASES[int(name)].made(trial)


# ── What is written ─────────────────────────────────────────────────────────────────────────────────────


def kept() -> Results:
    """The results of all cases, as the last runs of each left them, but for those of another form of a case."""
    results: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return {name: result for name, result in results.items() if result["injected"] == _injected(name)}


def _write(results: Results) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    DOCUMENT.write_text(page(results), encoding="utf-8")


def page(results: Results) -> str:
    """docs/CAMPAIGN.md, whole."""
    return f"{INTRODUCTION}\n{_tables(results)}\n"


def _tables(results: Results) -> str:
    cases = {name: result for name, result in results.items() if name.isdigit()}
    attempts = sum(result["attempts"] for result in results.values())
    deltas = sum(result["deltas"] for result in results.values())
    resumed = sorted(seconds for result in results.values() for seconds in result["resumed"])
    machines = "; ".join(sorted({result["machine"] for result in results.values()}))
    lines = [
        _commits(results),
        "",
        f"On {machines}. {attempts:,} attempts, {deltas:,} deltas acknowledged. "
        + (
            f"After {len(resumed):,} faults, seconds to the first ok: p50 {resumed[len(resumed) // 2]:.1f}, max "
            f"{resumed[-1]:.1f}."
            if resumed
            else ""
        ),
        "",
        "| # | case: what is injected | what must hold | ok / no / unknown | verdict: figure | run |",
        "|---|---|---|---|---|---|",
    ]
    for number in sorted({*CASES, *ABSENT}):
        if number in ABSENT:
            lines.append(f"| {number} | {ABSENT[number].name} | | | not run: {ABSENT[number].why} | |")
            continue
        of = CASES[number]
        lines.append(_row(str(number), f"**{of.name}**: {of.injection}", of.invariants, cases.get(str(number))))
    lines += ["", "| what is broken on purpose, so that the check must fail | what it found | run |", "|---|---|---|"]
    for name, one in CONTROLS.items():
        result = results.get(f"{_CONTROL}{name}")
        lines.append(f"| {one.what} | {_found(result)} | {_run_of(result)} |")
    for name in ("simulation", "soak"):
        if name in results:
            lines += [
                "",
                f"**{name.capitalize()}**: {results[name]['verdict']}; {results[name]['figure']} "
                f"({_run_of(results[name])})",
            ]
    return "\n".join(lines)


def _row(number: str, name: str, invariants: str, result: dict[str, Any] | None) -> str:
    if result is None:
        return f"| {number} | {name} | {invariants} | | not run yet | |"
    outcomes = " / ".join(f"{result[str(outcome)]:,}" for outcome in Outcome)
    figure = result["figure"].replace("|", "/")
    verdict = f"**{result['verdict']}**: {figure}" if figure else f"**{result['verdict']}**"
    return f"| {number} | {name} | {invariants} | {outcomes} | {verdict} | {_run_of(result)} |"


def _found(result: dict[str, Any] | None) -> str:
    """What a control found, or what became of it otherwise."""
    if result is None:
        return "not run yet"
    return str(result["figure"] or result["verdict"])


def _commits(results: Results) -> str:
    """Of which commits the rows are, each with its first and last day."""
    days: dict[str, list[str]] = {}
    for result in results.values():
        days.setdefault(result["commit"], []).append(result["date"][:10])
    told = []
    for commit, of in sorted(days.items(), key=lambda item: max(item[1]), reverse=True):
        first, last = min(of), max(of)
        told.append(f"{commit} ({len(of)} of {len(results)}, {last if first == last else f'{first} to {last}'})")
    return f"The rows are of commit {', '.join(told)}."


def _run_of(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    size = f"size {result['scale']:g}, {result['seconds']} s"
    return f"{result['date']}, {result['commit']}, seed {result['seed']}, {size}"


def _machine() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        found[1] if found else platform.machine(),
        f"{os.cpu_count()} cores",
        f"{memory:.0f} GiB",
        f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}",
    ]
    return ", ".join(parts)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=False, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


if __name__ == "__main__":
    sys.exit(main())
