"""The campaign: runs the cases, the controls, the simulation and the soak, and writes what became of them.

    python -m assurance.faults.campaign --seeds 1000 --minutes 30 --cases 1,11

`--seeds` 1000 is the full size; fewer scale all counts and times down. Results are kept by case in
docs/reliability.json, each with its seed, date, commit and machine, so that some cases can be run again while the rest
stay. A result whose `injected` is not what the case says counts no more: who only rewords a case rewords it there, too.
assurance/CAMPAIGN.md is made from the results; `--page` writes that page without running anything, `--trial` runs
without keeping or writing anything, `--tools` names the tools that the machine lacks, with their packages and the cases
that cannot be made without them, and ends with 1 if there are any.

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

from assurance.faults.history import Outcome
from assurance.faults.loads import soak
from assurance.faults.simulation import simulated
from assurance.faults.stage import prepare
from assurance.faults.table import ABSENT, CASES, CONTROLS, CannotBeMade, Trial
from assurance.faults.tools import Tool

for module in (
    *("crashes", "networks", "resources", "races", "loads", "floods", "integrity", "replaced", "large"),
    *("streams", "erasing", "expiring", "tested"),
):
    importlib.import_module(f"assurance.faults.{module}")

ROOT: Final = Path(__file__).parents[2]
DOCUMENT: Final = ROOT / "assurance" / "CAMPAIGN.md"
RESULTS: Final = ROOT / "docs" / "reliability.json"
FULL_SEEDS: Final = 1_000
CASE_SECONDS_MAX: Final = 3_600
LONG_SECONDS: Final = 1.0
_LEFT_OUT: Final = re.compile(
    r"to first ok|client-API |API-PostgreSQL |rankings |(before )?descriptors |\d+ acknowledged to wrk|$"
)
"""Parts of figures that are not on the page."""
_CONTROL: Final = "control-"
Results = dict[str, dict[str, Any]]
INTRODUCTION: Final = """\
# The campaign

`make faults` makes this page from `docs/reliability.json`, which has more figures.
[RELIABILITY](../docs/RELIABILITY.md#how-it-is-tested) says what is tested and how, and lists the invariants I1 to I12.

- *Held* covers only the invariants and statements of a case.
- *Not shown*: nothing looked at was wrong, but what the case is for was not injected, or fell short.
- N runs without a failure show only a failure rate below 3/N.
- A case describes its full size, 1. A smaller run has that share of all counts and times.
- *Ok again*: seconds from the end of a fault, when PostgreSQL or the resource is back, to the first ok, if above 1.
- A *mixed load* also creates, erases, voids, unvoids, closes and reopens, with and without keys.
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
    names = [*map(str, sorted(CASES)), *(f"{_CONTROL}{name}" for name in sorted(CONTROLS))]
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
    """assurance/CAMPAIGN.md, whole."""
    return f"{INTRODUCTION}\n{_tables(results)}\n"


def _tables(results: Results) -> str:
    attempts = sum(result["attempts"] for result in results.values())
    deltas = sum(result["deltas"] for result in results.values())
    resumed = sorted(seconds for result in results.values() for seconds in result["resumed"])
    machines = sorted({result["machine"] for result in results.values()})
    machine = ", ".join(dict.fromkeys(part for one in machines for part in one.split(", ")))
    usual, runs = _runs(results)
    lines = [
        f"Unless a row says otherwise: {usual}.",
        "",
        f"On {machine}. {attempts:,} attempts, {deltas:,} deltas acknowledged. "
        + (
            f"After {len(resumed):,} faults, seconds to the first ok: p50 {resumed[len(resumed) // 2]:.1f}, max "
            f"{resumed[-1]:.1f}."
            if resumed
            else ""
        ),
        "",
        "| # | case: what is injected | what must hold | verdict: figure |",
        "|---|---|---|---|",
    ]
    for number in sorted({*CASES, *ABSENT}):
        if number in ABSENT:
            lines.append(f"| {number} | {ABSENT[number].name} | | not run: {ABSENT[number].why} |")
            continue
        of = CASES[number]
        told = _told(results.get(str(number)), runs.get(str(number), ""))
        lines.append(f"| {number} | **{of.name}**: {of.injection} | {of.invariants} | {told} |")
    lines += ["", "| broken on purpose | what the check found |", "|---|---|"]
    for name, one in sorted(CONTROLS.items()):
        key = f"{_CONTROL}{name}"
        lines.append(f"| {one.what} | {_found(results.get(key))}{runs.get(key, '')} |")
    for name in ("simulation", "soak"):
        if name in results:
            told = f"{results[name]['verdict']}; {_figure(results[name])}{runs[name]}"
            lines += ["", f"**{name.capitalize()}**: {told}"]
    return "\n".join(lines)


def _told(result: dict[str, Any] | None, run: str) -> str:
    """The verdict with its figure."""
    if result is None:
        return "not run yet"
    figure = _figure(result)
    return f"**{result['verdict']}**{figure and f': {figure}'}{run}"


def _figure(result: dict[str, Any]) -> str:
    """The figure of a result, without what hardly anybody needs; the JSON has all of it."""
    figure = re.sub(r"(?:, )?\{'\d{3}'.*?\}", "", result["figure"])  # the outcomes say it
    figure = re.sub(r"\{(.*?)\}", lambda found: re.sub("[':]", "", found[1]), figure)
    figure = re.sub(r"(schedules):.*", r"\1", figure)
    parts = [part for part in figure.replace("|", "/").split("; ") if not _LEFT_OUT.match(part)]
    if (seconds := max(result["resumed"], default=0.0)) > LONG_SECONDS:
        parts.append(f"ok again after {seconds:.1f} s")
    return "; ".join(parts)


def _found(result: dict[str, Any] | None) -> str:
    """What a control found, or what became of it otherwise."""
    if result is None:
        return "not run yet"
    return _figure(result) or str(result["verdict"])


def _runs(results: Results) -> tuple[str, dict[str, str]]:
    """The conditions of most runs; and of each run what is different, in brackets."""
    conditions = {
        name: (result["date"][:10], f"commit {result['commit']}", f"seed {result['seed']}", f"size {result['scale']:g}")
        for name, result in results.items()
    }
    usual = max(conditions.values(), key=[*conditions.values()].count, default=())
    other = {name: ", ".join(one for one in its if one not in usual) for name, its in conditions.items()}
    return ", ".join(usual), {name: differs and f" ({differs})" for name, differs in other.items()}


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
