"""What holds for the project as a whole."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from api.http import errors as http_errors
from api.http.problems import STATUSES
from engine.domain import errors
from engine.domain.errors import TallybookError
from tests.project import PACKAGES, PRODUCT, ROOT, parsed, text_of

LOCKS = ("requirements.lock", "requirements-dev.lock", "benchmarks/requirements.lock")
IMPURE = {"asyncpg", "aiohttp", "structlog", "asyncio", "os", "time", "random", "secrets", "socket"}
FOR_OTHERS = {"PRIVATE", "block_text"}
"""What the product itself does not use: private names of aiohttp, for a test; how events are hashed, for auditors."""
NEVER_ANSWERED = {errors.LogUnreadable, errors.LogForked, errors.LogDisproved, errors.StartupRefused}


ARCHITECTURE: Final = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
MODULES: Final = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in (*PACKAGES, "clients/python")
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "__init__.py"
)


TAKES_FROM_WHAT_ACTS: Final = {
    "api/stream/frames.py",
    "api/stream/public_frames.py",
    "api/web/console/competition_import_pages.py",
    "api/web/console/import_page.py",
    "api/webhooks/message.py",
    "projections/past/mentions.py",
    "projections/tables/sizes.py",
}
"""Pure modules that import from others which act: the structs that they are given, or pure functions."""
TOUCH_MANY: Final = {
    "api/interface/fields.py": "read",
    "engine/domain/counting.py": "totals_after totals_in_order totals_of_named",
    "engine/domain/expirations.py": "_lines_of decided lines",
    "engine/domain/rescoring.py": "_of_competitions _of_ranking _totals competitions_with",
    "engine/domain/scoring.py": "_performed amounts_of",
    "engine/domain/steps.py": "collected in_order",
    "projections/answers/corrected_steps.py": "with_corrections",
    "projections/answers/explainer.py": "_fold_points _points_step _overtakings",
    "projections/board/classification.py": (
        "_broken _index _parts _quotients _value classified left_out lines_among parted"
    ),
    "projections/board/classified_lines.py": "_levels_among _read_off _run _sought among completed",
    "projections/board/games.py": "of tiebreaks_of",
    "projections/board/hierarchy.py": "_tour in_steps",
    "projections/board/order.py": "replace_all sorted_in_steps",
    "projections/board/parts.py": "take_part",
    "projections/board/selection.py": "steps",
    "projections/board/sub_table.py": "among",
    "projections/columns/sorted_integers.py": "fill",
    "projections/past/comparison.py": "_position_of_each _standing_of_each classified_move_steps give move_steps",
    "projections/past/history.py": "_many_lines",
    "projections/past/leaders.py": "_in_time differences finish follow times_at_top",
    "projections/past/mentions.py": "mentions",
    "projections/past/timeline.py": "steps",
}
"""Functions of pure modules that pause: one call may touch thousands of lines, sums, competitors or texts."""


def _docstring(name: str) -> str:
    return ast.get_docstring(parsed(name)) or ""


@cache
def _pure() -> list[str]:
    """What says of itself that it is."""
    return [name for name in MODULES if re.search(r"\bPure\b", _docstring(name))]


def test_the_map_names_every_folder_and_no_other() -> None:
    the_map = ARCHITECTURE[ARCHITECTURE.index("## Map") : ARCHITECTURE.index("## Words")]
    named = set(re.findall(r"^- `([\w/]+)/`:", the_map, re.MULTILINE))
    assert {folder for folder in named if not (ROOT / folder).is_dir()} == set()
    assert {Path(name).parent.as_posix() for name in MODULES} <= named


def test_the_first_line_of_every_module_says_what_it_is_for() -> None:
    assert [name for name in MODULES if not _docstring(name).partition("\n")[0].strip()] == []


def test_every_file_that_the_architecture_walks_through_exists() -> None:
    files = re.findall(r"`((?:\w+/)+\w+\.\w+)`", ARCHITECTURE)
    assert len(files) > len(PACKAGES)
    assert [file for file in files if not (ROOT / file).is_file()] == []


def test_what_is_pure_imports_nothing_that_acts() -> None:
    acting = {name: IMPURE.intersection(_imported(name)) for name in _pure()}
    assert {name: imported for name, imported in acting.items() if imported} == {}


def test_no_rule_pauses_but_those_that_touch_many() -> None:
    """A plain function takes one event, or a chunk; its caller pauses (`engine/process/time_slices.py`)."""
    pausing: dict[str, set[str]] = {}
    for name in _pure():
        for one in ast.walk(parsed(name)):
            if isinstance(one, ast.FunctionDef) and _pauses(one):
                pausing.setdefault(name, set()).add(one.name)
    assert pausing == {name: set(functions.split()) for name, functions in TOUCH_MANY.items()}


def _pauses(function: ast.FunctionDef) -> bool:
    """Whether it yields nothing itself."""
    inner = list(ast.iter_child_nodes(function))
    while inner:
        one = inner.pop()
        if isinstance(one, ast.Yield) and (one.value is None or ast.unparse(one.value) == "None"):
            return True
        if not isinstance(one, ast.FunctionDef | ast.Lambda):
            inner += ast.iter_child_nodes(one)
    return False


def test_import_linter_follows_the_imports_of_all_that_is_pure() -> None:
    linted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = [one for one in linted["contracts"] if one["name"].startswith("what is pure")]
    named = [one.replace(".", "/") for one in contract["source_modules"]]
    followed = {name for name in MODULES for one in named if name == f"{one}.py" or name.startswith(f"{one}/")}
    assert followed == set(_pure()) - TAKES_FROM_WHAT_ACTS
    assert set(contract["forbidden_modules"]) == IMPURE


def _imported(name: str) -> Iterator[str]:
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def test_every_error_has_a_status_or_never_becomes_an_answer() -> None:
    def leaves(parent: type[TallybookError]) -> Iterator[type[TallybookError]]:
        for child in parent.__subclasses__():
            if child.__module__ in (errors.__name__, http_errors.__name__):
                yield child
                yield from leaves(child)

    abstract = {errors.Refusal, errors.Unavailable}
    assert set(leaves(TallybookError)) - abstract - NEVER_ANSWERED == set(STATUSES)


DEFECTS_ARE_BOUNDED_IN: Final = {
    "api/http/aiohttp_private.py",
    "api/http/front.py",
    "api/desk/docket.py",
    "api/stream/followers.py",
    "api/stream/listeners.py",
    "api/webhooks/deliverer.py",
    "engine/log/appender.py",
    "projections/board/board.py",
    "projections/live/nested_sets.py",
    "projections/live/orders.py",
    "projections/live/pool.py",
    "projections/live/tournament.py",
    "projections/tables/worker.py",
    "projections/verification/all_tournaments.py",
    "projections/verification/continuous.py",
    "projections/verification/setting_aside.py",
}
"""Where every exception is caught: at a request, at its connection, and where work for one tournament begins that
others must not feel."""


def test_every_exception_is_caught_only_where_a_defect_is_bounded_to_a_request_or_a_tournament() -> None:
    found = {name for name in PRODUCT if re.search(r"except (Base)?Exception\b", text_of(name))}
    assert found - {"engine/process/background.py"} == DEFECTS_ARE_BOUNDED_IN


def test_each_public_name_of_a_type_or_limit_is_given_once() -> None:
    """But for OPERATIONS: each resource has its own."""
    places: dict[str, list[str]] = {}
    for module in PRODUCT:
        for name in _types_and_constants(parsed(module)):
            places.setdefault(name, []).append(module)
    assert {name for name, paths in places.items() if len(paths) > 1 and name[0] != "_"} <= {"OPERATIONS"}


def test_whatever_a_module_defines_is_used() -> None:
    """A limit, a metric, an action, a page or a command that nothing leads to was forgotten somewhere."""
    modules = {name: parsed(name) for name in PRODUCT}
    used = {name: set(_used(module)) for name, module in modules.items()}
    used_anywhere = set().union(*used.values())
    unused = {
        f"{path}: {name}"
        for path, module in modules.items()
        for name in (*_types_and_constants(module), *_functions(module))
        if name not in (used[path] if name.startswith("_") else used_anywhere | FOR_OTHERS)
    }
    assert unused == set()


def _functions(module: ast.Module) -> Iterator[str]:
    return (one.name for one in module.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


def _used(module: ast.Module) -> Iterator[str]:
    """The names that are read, in texts of the form "module:name", too."""
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                yield name
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w.]+:\w+", text):
                yield text.partition(":")[2]


def _types_and_constants(module: ast.Module) -> Iterator[str]:
    for statement in module.body:
        if isinstance(statement, ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_hashes_and_no_addresses(name: str) -> None:
    lock = (ROOT / name).read_text(encoding="utf-8")
    assert "://" not in lock
    assert all("--hash=sha256:" in entry for entry in re.split(r"\n(?=\S)", lock.strip()))


@pytest.mark.parametrize("name", LOCKS)
def test_what_is_in_two_locks_has_one_version(name: str) -> None:
    dev = _pins("requirements-dev.lock")
    assert {package: version for package, version in _pins(name).items() if dev.get(package, version) != version} == {}


def test_what_runs_is_installed_without_what_checks() -> None:
    assert _pins("requirements.lock").keys() < _pins("requirements-dev.lock").keys()
    assert not _pins("requirements.lock").keys() & {"pytest", "mypy", "ruff", "schemathesis"}


def _pins(name: str) -> dict[str, set[str]]:
    """The versions of each package; a package may have one for each version of Python."""
    pins: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE):
        pins.setdefault(package, set()).add(version)
    return pins
