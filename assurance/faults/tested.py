"""Cases that are tests, or a program of ours, run as they are, in a process of their own.

A test that was skipped shows nothing, so a case of which any was skipped is not shown. Only cases that need a
distributed database run tests of it.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from assurance.faults.table import Trial, case
from assurance.faults.tools import CITUS, DISTRIBUTED_VARIABLE, PGPOOL, TIME_NAMESPACE, Tool

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
        is_distributed = CITUS in tools
        options = [
            "-q",
            "-m",
            "" if is_distributed else "not distributed",
            "-p",
            "no:cacheprovider",
            "--tb=short",
            f"--basetemp={trial.folder / 'pytest'}",
        ]
        command = [*prefix, sys.executable, "-m", "pytest", *options, f"--junitxml={report}", *tests]
        unset = () if is_distributed else (DISTRIBUTED_VARIABLE,)
        code, told = await _ran(command, {name: value for name, value in os.environ.items() if name not in unset})
        (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
        count, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
        trial.look("I10", code == 0, told)
        trial.show(count > skipped, "no test was run")
        trial.show(not skipped, f"{skipped} tests were skipped")
        trial.tell(f"{count - skipped} tests")


async def _ran(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """The exit code, and the last of what was said."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    return process.returncode or 0, said.decode(errors="replace")[-TOLD_CHARACTERS:]


ON_NODES: Final = "tests/assurance/faults/test_distributed.py::test_"

by_tests(
    68,
    "Distributed",
    "a node killed, the coordinator killed, under load",
    "I1-I12",
    f"{ON_NODES}a_node_is_killed_under_load_and_comes_back",
    tools=(CITUS,),
)
by_tests(
    69,
    "Young machine",
    "a monotonic clock that has just begun (time namespace): workers, webhooks, verification, throttling",
    "the first sweep, poll, retry and verification happen at once",
    "tests/projections/test_worker.py",
    "tests/projections/test_continuous.py",
    "tests/api/webhooks/test_webhooks.py",
    "tests/api/http/test_throttle.py",
    tools=(TIME_NAMESPACE,),
    # The clock may not be put before its beginning, so it begins a second later.
    prefix=("sh", "-c", 'exec unshare --time --monotonic "-$(cut -d. -f1 /proc/uptime)" "$@"', "sh"),
)
by_tests(
    70,
    "Forged log",
    "a random log with one random change and new digests, imported",
    "refused with line and reason, or sound; nothing hangs or dies",
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
    "public answers and streams stay the same, headers included",
    "tests/api/interface/public/test_public.py",
    "tests/api/stream/test_public_stream.py",
)
by_tests(
    72,
    "One node dead among many",
    "one of three nodes killed or paused; two processes without affinity",
    "other nodes' tournaments: at least 0.9 of the changes and reads before, none fails; their tables follow",
    f"{ON_NODES}tournaments_of_other_nodes_are_served_as_before_while_a_node_is_away",
    f"{ON_NODES}tables_of_other_nodes_follow_while_a_node_is_away",
    tools=(CITUS,),
)
by_tests(
    73,
    "One node restored alone",
    "a node's registry loses tournaments and their logs",
    "`verify` names the loss; no tournament is created until the nodes agree",
    "tests/engine/test_distribution.py::test_verify_finds_what_the_restore_of_one_node_has_lost",
    "tests/engine/test_distribution.py::test_no_tournament_is_created_while_the_nodes_do_not_agree_on_which_there_are",
    tools=(CITUS,),
)
by_tests(
    74,
    "Shards moved",
    "a shard moved under load, also with writes blocked",
    "I1-I12; nothing rejected that may have been applied",
    f"{ON_NODES}a_tournament_moves_to_another_node_under_load",
    f"{ON_NODES}appends_that_wait_while_a_shard_moves_are_never_said_to_be_impossible",
    f"{ON_NODES}a_shard_does_not_move_away_under_a_lock",
    f"{ON_NODES}a_read_waits_where_a_move_has_been_decided_and_is_not_known_yet",
    tools=(CITUS,),
)
by_tests(
    77,
    "Taken back",
    "undo, redo, strike, unstrike, void and unvoid in any order",
    "the totals of a naive model; nothing reversed twice; tables and `verify` agree",
    "tests/projections/test_undoing.py",
    "tests/api/interface/resources/test_reversing.py",
)

by_tests(
    82,
    "A balancer",
    "pgpool-II sends reads to a standby that has stopped following; so does one of our own, in the midst of a service",
    "refused at the start and by each new session; nothing that a standby says is answered",
    "tests/engine/test_balancers.py",
    tools=(PGPOOL,),
)

# ── 80 ──────────────────────────────────────────────────────────────────────────────────────────────────


@case(
    80,
    "Sizes",
    "a leaderboard of a million: imported, enrolled, scored by 64 clients; kill -9 of the API process",
    "each score once; windows match the clients' own books; `verify` clean",
)
async def sizes(trial: Trial) -> None:
    count = trial.times(1_000_000, least=10_000)
    command = [sys.executable, "-m", "benchmarks.million", "--competitors", str(count), "--scores", str(count)]
    code, told = await _ran(command, dict(os.environ))
    trial.look("I1", code == 0, told)
    trial.deltas += count
    trial.tell(f"{count:,} competitors and scores")
