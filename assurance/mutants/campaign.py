"""The campaign of mutants: breaks the core in one small way after another, and asks whether any test notices.

    python -m assurance.mutants.campaign --count 200 --minutes 60

It first asks about the mutants that were drawn by hand (`drawn.toml`), then about others drawn at random from all that
there are (`operators.py`), always the same ones for one seed. Each is tried in a copy of the tree by all tests that
run it (`covering.py`), until the first that fails. Several are tried at once, because tests mostly wait. A mutant that
no test notices has survived, unless `equivalent.toml` says why it makes no difference that anybody could see. What has
been found out is kept in `.mutants/`, so that an interrupted campaign continues where it stopped; a verdict
on a mutant holds as long as neither its module nor those tests have changed. Exit code 1: something survived.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from assurance.mutants.covering import Covering, is_own
from assurance.mutants.operators import compiles, function_mutants, python_mutants
from assurance.mutants.places import ROOT, Mutant, core, mutant
from tests.memory import IN_MEMORY, memory_has_room

KEPT: Final = ROOT / ".mutants"
HERE: Final = Path(__file__).parent
SECONDS_MAX: Final = 1_800
QUICKEST: Final = 150
"""How many of the tests that run a mutant are asked before the others."""
COPIED: Final = (
    *("engine", "projections", "api", "migrations", "clients", "tests", "assurance", "docs"),
    *("tallybook_command.py", "pyproject.toml", "README.md"),
)
CAUGHT: Final = "caught"
SURVIVED: Final = "survived"
EQUIVALENT: Final = "equivalent"
UNSETTLED: Final = "unsettled"
"""The test that noticed fails without any mutant as well: it is broken, or the machine is too busy. Or the tests took
too long."""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200, help="mutants drawn at random")
    parser.add_argument("--minutes", type=float, default=0, help="no new mutant is begun after that time; 0: no bound")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="of files whose name contains this")
    parser.add_argument("--at-random", action="store_true", help="without those drawn by hand")
    parser.add_argument("--folder", type=Path, default=KEPT, help="what is found out is kept here")
    parser.add_argument("--seconds", type=float, default=SECONDS_MAX, help="no longer for one mutant: it is unsettled")
    parser.add_argument("--workers", type=int, default=2 * (os.cpu_count() or 1), help="mutants asked at the same time")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    by_hand = [] if options.at_random else [made for made in drawn_by_hand() if options.only in made.file]
    at_random = drawn_at_random(options.count, options.seed, options.only)
    reasons = equivalents()
    covering = Covering.recorded(options.folder, workers=options.workers)
    known = Known(options.folder, covering)
    idle = SimpleQueue[Workplace]()

    def verdict_of(made: Mutant) -> str | None:
        if made.name in reasons:
            return EQUIVALENT
        verdict = known.verdict_of(made)
        if verdict is None and time.monotonic() < deadline:
            workplace = idle.get()
            try:
                verdict = workplace.tried(made)
            finally:
                idle.put(workplace)
            print(f"{verdict:<22} {made.file}:{made.line} {made.operator}: {made.code} → {made.becomes}", flush=True)
        return verdict

    mutants = list(unlike([*by_hand, *at_random]))
    with ExitStack() as workplaces, ThreadPoolExecutor(options.workers) as threads:
        for number in range(options.workers):
            idle.put(
                workplaces.enter_context(Workplace(options.folder / f"workplace-{number}", known, options.seconds))
            )
        try:
            verdicts = list(threads.map(verdict_of, mutants))
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    results = [(made, verdict) for made, verdict in zip(mutants, verdicts, strict=True) if verdict is not None]
    tell(results, len(by_hand) + len(at_random), reasons)
    return any(verdict == SURVIVED for _, verdict in results)


# ── Which mutants ───────────────────────────────────────────────────────────────────────────────────────


def drawn_by_hand() -> list[Mutant]:
    """Those of drawn.toml. Raises ValueError where the text that is to be changed is not there just once."""
    made = []
    for entry in tomllib.loads((HERE / "drawn.toml").read_text("utf-8"))["mutant"]:
        source = (ROOT / entry["file"]).read_text("utf-8")
        if source.count(entry["anchor"]) != 1:
            raise ValueError(f"{entry['file']} holds {source.count(entry['anchor'])} times: {entry['anchor']!r}")
        start = source.index(entry["anchor"])
        end = start + len(entry["anchor"])
        made.append(mutant(source, entry["file"], "by hand", start, end, entry["becomes"], entry["noticed_by"]))
    return made


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant of the core, file by file."""
    found: list[Mutant] = []
    for file in core():
        source = (ROOT / file).read_text("utf-8")
        found += python_mutants(source, file) if file.endswith(".py") else function_mutants(source, file)
    return tuple(found)


def drawn_at_random(count: int, seed: int, only: str = "") -> list[Mutant]:
    """`count` of all mutants, each as likely as any other; fewer of them are the first of more."""
    everything = [made for made in all_mutants() if only in made.file]
    random.Random(seed).shuffle(everything)
    drawn: list[Mutant] = []
    for made in everything:
        if len(drawn) == count:
            break
        if not made.file.endswith(".py") or compiles(made.applied((ROOT / made.file).read_text("utf-8"))):
            drawn.append(made)
    return drawn


def unlike(mutants: Iterable[Mutant]) -> Iterator[Mutant]:
    """Each name once."""
    seen = set()
    for made in mutants:
        if made.name not in seen:
            seen.add(made.name)
            yield made


def equivalents() -> dict[tuple[str, str, str, str], str]:
    """Why nobody could notice them, by the mutants' names."""
    entries = tomllib.loads((HERE / "equivalent.toml").read_text("utf-8")).get("mutant", [])
    return {(e["file"], e["within"], e["code"], e["becomes"]): e["reason"] for e in entries}


# ── Trying one ──────────────────────────────────────────────────────────────────────────────────────────


class Known:
    """What became of mutants, in this campaign and before; kept in `folder`. `covering`: the tests that run them."""

    def __init__(self, folder: Path, covering: Covering) -> None:
        self.covering = covering
        self._file = folder / "results.ndjson"
        lines = self._file.read_text("utf-8").splitlines() if self._file.exists() else []
        self._verdicts: dict[str, str] = {entry["key"]: entry["verdict"] for entry in map(json.loads, lines)}

    def verdict_of(self, made: Mutant) -> str | None:
        """What was found out about it, if nothing has changed since."""
        return self._verdicts.get(_key(made, self.covering.tests_of(made)))

    def keep(self, made: Mutant, verdict: str, noticed: str, seconds: float) -> None:
        facts: dict[str, Any] = {
            "key": _key(made, self.covering.tests_of(made)),
            "verdict": verdict,
            "file": made.file,
            "line": made.line,
            "operator": made.operator,
            "code": made.code,
            "becomes": made.becomes,
            "noticed": noticed,
            "seconds": round(seconds),
        }
        with self._file.open("a", encoding="utf-8") as results:
            results.write(json.dumps(facts, ensure_ascii=False) + "\n")
        self._verdicts[facts["key"]] = verdict


class Workplace:
    """A copy of the tree in `folder`, in which mutants are tried. Use as a context."""

    def __init__(self, folder: Path, known: Known, seconds_max: float = SECONDS_MAX) -> None:
        self._seconds_max = seconds_max
        self._tree = folder / "tree"
        self._temporary = (
            IN_MEMORY if memory_has_room() else folder
        ) / f"tallybook-mutants-{os.getpid()}-{folder.name}"
        self._asked_in = folder / "asked"
        self._known = known
        self._sound: set[str] = set()  # tests that pass where nothing is broken

    def __enter__(self) -> "Workplace":
        shutil.rmtree(self._tree, ignore_errors=True)
        self._tree.mkdir(parents=True)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self._tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, self._tree / name)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._tree, ignore_errors=True)
        shutil.rmtree(self._temporary, ignore_errors=True)

    def tried(self, made: Mutant, tests: Iterable[str] | None = None) -> str:
        """What becomes of the mutant, asked of these tests or those that run it; kept if it is settled."""
        place = self._tree / made.file
        before = place.read_text("utf-8")
        began_at = time.monotonic()
        place.write_text(made.applied(before), "utf-8")
        try:
            verdict, noticed = SURVIVED, ""
            for some in (tests,) if tests else self._likeliest_first(made):
                if verdict == SURVIVED and some:
                    verdict, noticed = self._asked(some, began_at + self._seconds_max - time.monotonic())
        except subprocess.TimeoutExpired:
            return UNSETTLED
        finally:
            place.write_text(before, "utf-8")
        noticed = noticed.partition("[")[0]
        if noticed and noticed not in self._sound:
            if self._asked([noticed])[0] == CAUGHT:
                print(f"{noticed} fails without a mutant, too", flush=True)
                return UNSETTLED
            self._sound.add(noticed)
        self._known.keep(made, verdict, noticed, time.monotonic() - began_at)
        return verdict

    def _likeliest_first(self, made: Mutant) -> tuple[list[str], ...]:
        """The test that was written for it, if there is one; the tests of its module; the quickest of the others; then
        the rest. Few tests need not wait until thousands are collected."""
        everything = self._known.covering.tests_of(made)
        written_for = [f"tests/{made.noticed_by}"] if made.noticed_by else []
        own = [test for test in everything if is_own(test, made.file)]
        return written_for, own, everything[len(own) :][:QUICKEST], everything[len(own) :][QUICKEST:]

    def _asked(self, tests: Iterable[str], seconds: float = SECONDS_MAX) -> tuple[str, str]:
        """Runs the tests until the first that fails; the verdict, and the test that noticed.

        Raises TimeoutExpired if they take too long, and RuntimeError if they were ended from outside: that says nothing
        of the mutant.
        """
        shutil.rmtree(self._temporary, ignore_errors=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "-m",
            "",  # those that take long notice as well
        ]
        command += ["--tb=no", f"--basetemp={self._temporary}"]
        surroundings = os.environ | {"PYTHONPATH": str(self._tree), "PYTHONDONTWRITEBYTECODE": "1"}
        self._asked_in.write_text("".join(f"{test}\n" for test in tests), "utf-8")
        running = subprocess.Popen(
            [*command, f"@{self._asked_in}"],
            cwd=self._tree,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            told, _ = running.communicate(timeout=seconds)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.communicate()
            self._stop_clusters()
        if running.returncode < 0:
            raise RuntimeError(f"the tests were ended by signal {-running.returncode}")
        noticed = next((line for line in told.splitlines() if line.startswith("FAILED ")), "").removeprefix("FAILED ")
        return (CAUGHT if running.returncode else SURVIVED), noticed.partition(" - ")[0]

    def _stop_clusters(self) -> None:
        """Ends every PostgreSQL that the tests have left running."""
        for file in self._temporary.rglob("postmaster.pid"):
            try:
                os.kill(int(file.read_text("utf-8").partition("\n")[0]), signal.SIGQUIT)
            except (ProcessLookupError, FileNotFoundError):
                continue


def _key(made: Mutant, tests: Iterable[str]) -> str:
    """Of the mutant, of its module and of the files of the tests that run it."""
    everything = hashlib.sha256(repr((made.name, made.start, made.noticed_by)).encode())
    for name in (made.file, *sorted({test.partition("::")[0] for test in tests})):
        everything.update((ROOT / name).read_bytes())
    return everything.hexdigest()[:32]


# ── Telling ─────────────────────────────────────────────────────────────────────────────────────────────


def tell(results: list[tuple[Mutant, str]], wanted: int, reasons: dict[tuple[str, str, str, str], str]) -> None:
    """A table by file, then who survived or is unsettled, then who is equivalent and why."""
    counts: dict[str, Counter[str]] = {}
    for made, verdict in results:
        counts.setdefault(made.file, Counter())[verdict] += 1
    print("\n| module | drawn | caught | equivalent | survived | unsettled |\n|---|---|---|---|---|---|")
    for file, counted in [*sorted(counts.items()), ("**all**", sum(counts.values(), Counter()))]:
        row = [counted.total(), counted[CAUGHT], counted[EQUIVALENT], counted[SURVIVED], counted[UNSETTLED]]
        print(f"| {file} | {' | '.join(map(str, row))} |")
    if len(results) < wanted:
        print(f"\n{wanted - len(results)} of {wanted} were not tried: the time was over, or they were drawn twice.")
    for made, verdict in results:
        if verdict in (SURVIVED, UNSETTLED):
            print(f"\n{verdict}: {made.file}:{made.line} in {made.within or 'the module'}, {made.operator}")
            print(f"    - {made.code}\n    + {made.becomes}")
    for made, verdict in results:
        if verdict == EQUIVALENT:
            print(f"\nequivalent: {made.file}:{made.line} {made.becomes}\n    {reasons[made.name]}")


if __name__ == "__main__":
    sys.exit(main())
