"""Measures Tallybook side by side with its peers and its limits: all questions of the table, one after the other.

    python -m benchmarks.bench [--quick] [--only N,M] [--rounds N] [--json FILE] | --page

Prints a table with medians and spreads, writes everything as JSON, and a results page with charts. A full run writes
`benchmarks/RESULTS.md`, and `results.json` and `charts/` next to it. A quick run, or one of some questions, writes the
same into `benchmarks/partial/`, so that it does not replace a full one. `--page` writes `benchmarks/RESULTS.md` and the
charts again from the stored results, without measuring.

Exit codes: 0 every measured row reaches its goal; 1 some rows fall short or failed, and are named; 2 usage. Rows whose
tools are missing (wrk, redis-server, packages of requirements.txt) are named as not measured.
"""

import argparse
import asyncio
import importlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Final

from rich.console import Console

from benchmarks import machine, report
from benchmarks.cluster import open_cluster
from benchmarks.load import CONNECTIONS
from benchmarks.questions import (
    adds,
    any_size,
    appends,
    best_results,
    catching_up,
    classifications,
    features,
    growth,
    large_requests,
    latency,
    leaderboards,
    long_log,
    many_boards,
    memory,
    overload,
    reads,
    several,
    streams,
    verifying,
    zipf,
)
from benchmarks.report import Run
from benchmarks.service import installed
from benchmarks.setting import REDIS, ROUNDS, VALKEY, Setting, missing_command, missing_package
from benchmarks.table import ROWS, Findings, Verdict, outcomes

QUESTIONS: Final = (
    adds,
    reads,
    zipf,
    large_requests,
    latency,
    appends,
    long_log,
    catching_up,
    growth,
    memory,
    verifying,
    any_size,
    leaderboards,
    classifications,
    streams,
    overload,
    best_results,
    many_boards,
    features,
    several,
)
"""Modules with NUMBERS (of questions), NEEDS (commands) and `measure`."""
NUMBERS: Final = frozenset(row.number for row in ROWS)
WORK_DIRECTORY: Final = "/var/tmp"
"""Where the cluster is put unless TMPDIR says otherwise: on a disk, even if /tmp is in memory."""
_OUTPUT: Final = machine.ROOT / "benchmarks"


def main() -> int:
    options = _options(sys.argv[1:])
    if options.page:
        _write_page(report.read_json(_OUTPUT / "results.json"), _OUTPUT)
        return 0
    console = Console(width=None if sys.stdout.isatty() else 180)
    run = asyncio.run(measured(options, Console(stderr=True)))
    report.print_table(run, console)
    is_whole = not options.quick and set(options.only) == NUMBERS
    _write(run, _OUTPUT if is_whole else _OUTPUT / "partial", options.json)
    for sentence in report.shortcomings(run.outcomes, [Verdict.MISSING, Verdict.SHORT, Verdict.FAILED]):
        console.print(sentence, markup=False, highlight=False)
    return int(any(outcome.verdict in (Verdict.SHORT, Verdict.FAILED) for outcome in run.outcomes))


async def measured(options: argparse.Namespace, talk: Console) -> Run:
    """Asks the questions that were chosen."""
    started_at, began = datetime.now(UTC), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tallybook-bench-", dir=os.environ.get("TMPDIR", WORK_DIRECTORY)) as name:
        directory = Path(name)
        async with open_cluster(directory / "postgres") as cluster:
            setting = Setting(
                cluster=cluster,
                product=installed(),
                directory=directory,
                rounds=options.rounds,
                quick=options.quick,
                say=lambda sentence: talk.print(sentence, markup=False, highlight=False),
            )
            findings = await _asked(setting, options.only)
        versions = {"PostgreSQL": cluster.settings["server_version"]}
        versions |= {f"{store.name}-server": store.version for store in (REDIS, VALKEY) if store.missing is None}
        facts = machine.described(directory, versions)
    return Run(
        started_at=started_at.isoformat(" ", "minutes"),
        minutes=(time.monotonic() - began) / 60,
        quick=options.quick,
        rounds=options.rounds,
        seconds=setting.seconds,
        connections=CONNECTIONS,
        machine=facts,
        settings=cluster.settings,
        outcomes=outcomes(findings, options.only),
        figures=findings.figures,
        notes=findings.notes,
        profiles=findings.profiles,
        grids=findings.grids,
    )


async def _asked(setting: Setting, only: Sequence[int]) -> Findings:
    findings = Findings()
    for question in QUESTIONS:
        if not set(question.NUMBERS) & set(only):
            continue
        began = time.monotonic()
        setting.say(f"question {', '.join(map(str, question.NUMBERS))}: {_title(question)}")
        findings.add(await _answered(question, setting))
        await setting.cluster.drop_databases()
        setting.say(f"  took {time.monotonic() - began:.0f} s")
    return findings


async def _answered(question: ModuleType, setting: Setting) -> Findings:
    """What the question found, or why it could not be asked or failed."""
    keys = [row.key for row in ROWS if row.number in question.NUMBERS]
    missing = [reason for command in question.NEEDS if (reason := missing_command(command))]
    if missing:
        return Findings(missing=dict.fromkeys(keys, "; ".join(missing)))
    try:
        findings: Findings = await question.measure(setting)
    except Exception as error:  # noqa: BLE001 - whatever one question meets, the others are still asked
        setting.say(traceback.format_exc())
        return Findings(failed=dict.fromkeys(keys, str(error) or repr(error)))
    return findings


def _title(question: ModuleType) -> str:
    return (question.__doc__ or "").partition("\n")[0].partition(": ")[2]


def _write(run: Run, directory: Path, json: Path | None) -> None:
    directory.mkdir(exist_ok=True)
    report.write_json(run, json or directory / "results.json")
    _write_page(run, directory)


def _write_page(run: Run, directory: Path) -> None:
    """The page, and its pictures; without matplotlib, the pictures stay as they are."""
    pictures = directory / "charts"
    if missing_package("matplotlib") is None:
        importlib.import_module("benchmarks.charts").draw(run, pictures)
    charts = [str(file.relative_to(directory)) for file in pictures.glob("*.svg")]
    (directory / report.PAGE).write_text(report.page(run, charts))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measures Tallybook side by side with its peers.")
    parser.add_argument("--quick", action="store_true", help="scaled down, in less than nine minutes")
    parser.add_argument("--only", type=_numbers, default=sorted(NUMBERS), help="numbers of questions, such as 1,3")
    parser.add_argument("--rounds", type=_rounds, default=ROUNDS, help=f"interleaved rounds; {ROUNDS} if not given")
    parser.add_argument("--page", action="store_true", help="only write the page again, from the stored results")
    parser.add_argument("--json", type=Path, help="where to write all figures as JSON")
    return parser.parse_args(arguments)


def _rounds(text: str) -> int:
    rounds = int(text)
    if rounds < 1:
        raise argparse.ArgumentTypeError("at least one")
    return rounds


def _numbers(text: str) -> list[int]:
    numbers = [int(number) for number in text.split(",")]
    if unknown := set(numbers) - NUMBERS:
        raise argparse.ArgumentTypeError(f"there is no question {', '.join(map(str, sorted(unknown)))}")
    return numbers


if __name__ == "__main__":
    sys.exit(main())
