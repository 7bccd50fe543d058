"""What holds for the project as a whole."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.problems import STATUSES
from engine import errors
from engine.errors import TallybookError

ROOT = Path(__file__).parents[1]
PACKAGES = ("engine", "projections", "api", "api/cli")
PURE = (
    *(f"engine/{name}.py" for name in ("terms", "events", "commands", "tournament", "errors", "codec", "digest")),
    *(
        f"projections/{name}.py"
        for name in (
            "standing",
            "hierarchy",
            "board",
            "comparison",
            "differences",
            "order",
            "history",
            "explanation",
            "course",
        )
    ),
)
IMPURE = {"asyncpg", "aiohttp", "structlog", "asyncio", "os", "time", "random", "secrets", "socket"}
NEVER_ANSWERED = {errors.LogUnreadable, errors.LogForked, errors.LogDisproved, errors.StartupRefused}


def test_the_map_in_the_readme_names_every_module_and_no_other() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    the_map = readme[readme.index("### The map") : readme.index("### What must hold")]
    named: dict[str, set[str]] = {}
    for line in the_map.splitlines():
        if package := re.match(r"\| \*\*([\w/]+)/\*\*", line):
            current = named.setdefault(package[1], set())
        elif line.startswith("| `"):
            current.update(re.findall(r"`(\w+\.py)`", line.split("|")[1]))
    for package_name in PACKAGES:
        modules = {path.name for path in (ROOT / package_name).glob("*.py")} - {"__init__.py"}
        assert named[package_name] == modules


@pytest.mark.parametrize("name", PURE)
def test_the_pure_middle_imports_nothing_that_acts(name: str) -> None:
    assert not set(_imported(ROOT / name)) & IMPURE


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_every_error_has_a_status_or_never_becomes_an_answer() -> None:
    def leaves(parent: type[TallybookError]) -> Iterator[type[TallybookError]]:
        for child in parent.__subclasses__():
            if child.__module__ == errors.__name__:
                yield child
                yield from leaves(child)

    abstract = {errors.Refusal, errors.Unavailable}
    assert set(leaves(TallybookError)) - abstract - NEVER_ANSWERED == set(STATUSES)


def test_every_exception_is_caught_in_two_places_only() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).glob("*.py")
        if re.search(r"except (Base)?Exception\b", path.read_text(encoding="utf-8"))
    }
    assert found - {"engine/background.py"} == {"api/front.py", "projections/worker.py"}


def test_the_lock_holds_hashes_and_no_addresses() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in lock
    assert all("--hash=sha256:" in entry for entry in re.split(r"\n(?=\S)", lock.strip()))
