"""Loggers of structlog, which is imported with the first line: it is large, and most commands write none."""

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

_configurations: list[Callable[[ModuleType], None]] = []


class Logger:
    """Has the methods of a logger of structlog."""

    def __getattr__(self, method: str) -> Any:
        return getattr(_structlog().get_logger(), method)


def configure(configuration: Callable[[ModuleType], None]) -> None:
    """Has a function configure structlog, now or when it is imported."""
    _configurations[:] = [configuration]
    if "structlog" in sys.modules:
        configuration(_structlog())


@cache
def _structlog() -> ModuleType:
    """Imports it without rich, with which it would draw tracebacks on consoles, and which is larger still."""
    rich = sys.modules.get("rich")
    sys.modules["rich"] = None  # type: ignore[assignment] # so it seems not to be installed
    try:
        import structlog  # noqa: PLC0415 - the point of this module
    finally:
        if rich is None:
            sys.modules.pop("rich", None)
        else:
            sys.modules["rich"] = rich
    for configuration in _configurations:
        configuration(structlog)
    return structlog
