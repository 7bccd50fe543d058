"""The named bounds of the product, as its modules declare them, and how a test sets others."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol

import pytest

from tests.project import ROOT

_SOURCES: Final = {
    "engine": ROOT,
    "projections": ROOT,
    "api": ROOT,
    "tallybook_client": ROOT / "clients" / "python",
}
_BOUND: Final = re.compile(r"_?[A-Z][A-Z0-9_]*_(?:MAX|MIN|SECONDS|SHOWN|LISTED|KEPT|AT_ONCE)")


def declared() -> Iterator[str]:
    """Each constant whose name says that it is a bound, as `module.NAME`."""
    for package, root in _SOURCES.items():
        for path in sorted((root / package).rglob("*.py")):
            module = ".".join(path.relative_to(root).with_suffix("").parts)
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                match node:
                    case ast.AnnAssign(target=ast.Name(id=name), value=value) if _BOUND.fullmatch(name):
                        if _is_number(value):
                            yield f"{module}.{name}"


def _is_number(value: ast.expr | None) -> bool:
    match value:
        case ast.Constant(value=int() | float()) | ast.BinOp() | ast.Call(func=ast.Name(id="len" | "timedelta")):
            return True
        case _:
            return False


def named_by(module: ModuleType) -> set[str]:
    """The bounds that `module` uses, as `module.NAME` of where each was imported from."""
    assert module.__file__ is not None
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module=str(source), names=aliases):
                names |= {f"{source}.{alias.name}" for alias in aliases if _BOUND.fullmatch(alias.name)}
            case ast.Attribute(value=ast.Name(id=used), attr=name) if _BOUND.fullmatch(name):
                names.add(f"{getattr(module, used).__name__}.{name}")
    return names


class Bounds(Protocol):
    """Sets bounds for the rest of the test: `bounds(TAIL_EVENTS_MAX=1)`."""

    def __call__(self, **values: float) -> None: ...


def set_bounds(patch: pytest.MonkeyPatch, **values: float) -> None:
    """Sets bounds, wherever they are known, until `patch` is undone. Raises LookupError if a name is none of a number
    in the product, or private: several modules may have it."""
    for name, value in values.items():
        knowing = [module for module in _product() if isinstance(vars(module).get(name), int | float)]
        if not knowing or name.startswith("_"):
            raise LookupError(name)
        for module in knowing:
            patch.setattr(module, name, value)


def _product() -> list[ModuleType]:
    """What is loaded of it."""
    return [module for name, module in sys.modules.items() if name.partition(".")[0] in _SOURCES]
