"""Which tests run a mutant: taken from coverage, which `recording.py` has for each test.

What is recorded holds as long as neither the core nor the tests change. It takes as long as all tests do, and half as
long again.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from assurance.mutants.places import APPENDING, CORE, ROOT, Mutant

FOLDER_VARIABLE: Final = "TALLYBOOK_TEST_RECORDING"
"""The folder in which each process of pytest leaves what it has recorded."""
SECONDS_PREFIX: Final = "seconds-"
"""Of the files there that say how long each test took."""
ABOUT_TIME: Final = ("tests/api/test_stalls.py", "tests/benchmarks/", "tests/assurance/faults/test_cases.py")
"""Tests that are not asked: on a busy machine they would notice what is not there."""
ABOUT_THE_TREE: Final = (
    "tests/assurance/mutants/",
    "tests/wheel/",
    "tests/test_project.py",
    "tests/test_first_hour.py",
)
"""Nor are those that are about the tree as it is."""
LEFT_OUT: Final = (*ABOUT_TIME, *ABOUT_THE_TREE, "tests/assurance/model/test_model.py")
"""The searches of the model take half an hour while they are recorded, and run nothing of the core."""
_PASSED_OR_FAILED: Final = (0, 1)

_Lines = dict[str, dict[int, set[str]]]
"""By file of the core and by line: the tests that run it."""


class Covering:
    """What was recorded: by file of the core, and by line, the tests that run it; and how many seconds each took."""

    def __init__(self, lines: _Lines, seconds: Mapping[str, float] = {}) -> None:
        self._lines = lines
        self.seconds = seconds

    @classmethod
    def recorded(cls, folder: Path, *, workers: int = 1, tests: Iterable[str] = ("tests",)) -> "Covering":
        """What is kept in `folder`, of the tree as it is. It is recorded if there is none. Raises RuntimeError if the
        tests could not be run."""
        kept = folder / f"recorded-{_fingerprint()}"
        if not kept.exists():
            folder.mkdir(parents=True, exist_ok=True)
            begun = folder / "recording"
            begun.mkdir(exist_ok=True)
            for old in (*begun.iterdir(), *folder.glob("recorded-*/*")):
                old.unlink()
            _record(begun, tests, workers)
            begun.rename(kept)
        return cls(_read(kept), _read_seconds(kept))

    def tests_of(self, made: Mutant) -> list[str]:
        """The tests that run the mutant: those of its module's own test file, then the others; the quickest first.

        What runs when its module is imported, such as a constant, is asked of all tests that run any of its functions;
        the function that appends, of those that append.
        """
        file = made.file if made.file.endswith(".py") else APPENDING
        of_file = self._lines.get(file, {})
        found = self._at(file, _statement(file, made.start) if file == made.file else _function_lines(file, "append"))
        if not found:
            found = set().union(*of_file.values()) if of_file else set()
        wanted = (test for test in found if not test.startswith(LEFT_OUT))
        return sorted(wanted, key=lambda test: (not is_own(test, file), self.seconds.get(test, 0.0), test))

    def _at(self, file: str, lines: Iterable[int]) -> set[str]:
        of_file = self._lines.get(file, {})
        return {test for line in lines for test in of_file.get(line, ())}


def is_own(test: str, file: str) -> bool:
    """Whether the test is in the test file of this module."""
    return f"/test_{Path(file).stem}.py::" in test


def _fingerprint() -> str:
    """Of all that says which test runs which line."""
    everything = hashlib.sha256()
    asking = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "assurance").rglob("*.py")]
    for path in [*(ROOT / file for file in CORE), *sorted(asking)]:
        everything.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return everything.hexdigest()[:16]


def _record(folder: Path, tests: Iterable[str], workers: int) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "--tb=no",
        "-m",
        "",
        "-p",
        "assurance.mutants.recording",
    ]
    command += ["-p", "no:randomly", "-p", "no:cacheprovider", *(["-n", str(workers)] if workers > 1 else [])]
    left_out = [f"--ignore={name}" for name in LEFT_OUT]
    surroundings = os.environ | {FOLDER_VARIABLE: str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, *left_out, *tests], cwd=ROOT, env=surroundings, check=False)
    if done.returncode not in _PASSED_OR_FAILED:
        raise RuntimeError(f"the tests could not be run to record them: exit code {done.returncode}")


def _read(folder: Path) -> _Lines:
    import coverage  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415 - only this needs it

    lines: _Lines = {}
    for path in _files(folder, of_seconds=False):
        data = coverage.CoverageData(str(path))
        data.read()
        for measured in data.measured_files():
            of_file = lines.setdefault(Path(measured).relative_to(ROOT).as_posix(), {})
            for line, tests in data.contexts_by_lineno(measured).items():
                of_file.setdefault(line, set()).update(test for test in tests if test)
    return lines


def _read_seconds(folder: Path) -> dict[str, float]:
    seconds: Counter[str] = Counter()  # a test's parameters may be spread over several processes
    for path in _files(folder, of_seconds=True):
        seconds.update(json.loads(path.read_text("utf-8")))
    return dict(seconds)


def _files(folder: Path, *, of_seconds: bool) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith(SECONDS_PREFIX) is of_seconds]


# ── Lines ───────────────────────────────────────────────────────────────────────────────────────────────


def _statement(file: str, at: int) -> range:
    """The lines of the innermost statement around the character `at`; of one with a body, those before the body."""
    source = (ROOT / file).read_text("utf-8")
    line = source.count("\n", 0, at) + 1
    around = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt) and line in _own_lines(node)]
    return _own_lines(max(around, key=lambda node: node.lineno)) if around else range(line, line + 1)


def _own_lines(node: ast.stmt) -> range:
    body = [one for _, field in ast.iter_fields(node) if isinstance(field, list) for one in field]
    inner = min((one.lineno for one in body if isinstance(one, ast.stmt)), default=None)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1 if inner is None else max(inner, node.lineno + 1))


def _function_lines(file: str, name: str) -> Iterator[int]:
    """The lines of the body of the function of this name."""
    for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            yield from range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
