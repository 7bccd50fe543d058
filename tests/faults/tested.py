"""Cases that are tests, or a program of ours, run as they are, in a process of their own.

A test that was skipped shows nothing, so a case of which any was skipped is not shown.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from tests.faults.table import Trial, absent, case
from tests.faults.tools import CITUS, TIME_NAMESPACE, Tool

ROOT: Final = Path(__file__).parents[2]
TOLD_CHARACTERS: Final = 1_000


def by_tests(
    number: int,
    name: str,
    injection: str,
    invariants: str,
    *tests: str,
    tools: tuple[Tool, ...] = (),
    prefix: tuple[str, ...] = (),
) -> None:
    """A case that is these tests, as pytest takes them. `prefix`: the command that pytest is run by."""

    @case(number, name, injection, invariants, tools=tools)
    async def run(trial: Trial) -> None:
        report = trial.folder / "report.xml"
        options = ["-q", "-m", "", "-p", "no:cacheprovider", "--tb=short", f"--basetemp={trial.folder / 'pytest'}"]
        command = [*prefix, sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *tests]
        code, told = await _ran(command)
        (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
        count, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
        trial.look("I10", code == 0, told)
        trial.show(count > skipped, "no test was run")
        trial.show(not skipped, f"{skipped} tests were skipped")
        trial.tell(f"{count - skipped} tests")


async def _ran(command: list[str]) -> tuple[int, str]:
    """The exit code, and the last of what was said."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    return process.returncode or 0, said.decode(errors="replace")[-TOLD_CHARACTERS:]


by_tests(
    68,
    "Distributed",
    "a node killed, the coordinator killed, a shard moved, under load",
    "I1-I12",
    "tests/faults/test_distributed.py",
    tools=(CITUS,),
)
by_tests(
    69,
    "Young machine",
    "a time namespace whose monotonic clock has just begun: workers, webhooks, verification, throttling",
    "the first sweep, poll, retry and verification happen at once",
    "tests/projections/test_worker.py",
    "tests/projections/test_continuous.py",
    "tests/api/test_webhooks.py",
    "tests/api/test_throttle.py",
    tools=(TIME_NAMESPACE,),
    # The clock may not be put before its beginning, so it begins a second later.
    prefix=("sh", "-c", 'exec unshare --time --monotonic "-$(cut -d. -f1 /proc/uptime)" "$@"', "sh"),
)
by_tests(
    70,
    "Forged log",
    "a random log with one random change; digests made again; imported",
    "refused with line and reason, or it is a log in which all is well; nothing hangs or dies",
    "tests/engine/test_rejudging.py",
    "tests/api/cli/test_archives.py",
)
by_tests(
    71,
    "Defect in one tournament",
    "an exception in judging, folding, rendering, streaming, delivering, tables, verification",
    "500, that tournament stopped and reported, all others as before",
    "tests/api/test_defects.py",
)
by_tests(
    75,
    "A frozen public",
    "changes that the public may not see yet",
    "every public answer and stream is the same before and after, headers included",
    "tests/api/test_public.py",
    "tests/api/test_public_stream.py",
)
absent(72, "One node dead among many", "there is no case of it yet; case 68 kills nodes and asks for no figure")
absent(73, "One node restored alone", "there is no case of it yet")
absent(74, "Shards moved", "there is no case of it yet beyond the one move of case 68")
for _number, _name in ((76, "Boundaries"), (77, "Taken back"), (78, "Forgotten")):
    absent(_number, _name, "what it is about is not built")

# ── 80 ──────────────────────────────────────────────────────────────────────────────────────────────────


@case(
    80,
    "Sizes",
    "a leaderboard of a million, imported, enrolled, scored by 64 clients; kill -9 of the API process in the midst",
    "each score once, windows as the clients' own books have them, `verify` clean",
)
async def sizes(trial: Trial) -> None:
    count = trial.times(1_000_000, least=10_000)
    command = [sys.executable, "-m", "benchmarks.million", "--competitors", str(count), "--scores", str(count)]
    code, told = await _ran(command)
    trial.look("I1", code == 0, told)
    trial.deltas += count
    trial.tell(f"{count:,} competitors and scores")
