"""Starts Tallybook, after checking that Python finds Tallybook's own packages.

The packages have plain names, `api`, `engine`, `migrations`, `projections`, which another project may use too. If such
a project is on PYTHONPATH, Python takes its packages for ours. So this module has a name that no other project has,
lies beside the packages, imports none of them before the check, and first looks where Python would take them from.
"""

import gc
import os
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Final

PACKAGES: Final = ("api", "engine", "migrations", "projections")
PROCESSES: Final = {"api": "api.service.api_process", "worker": "api.service.worker_process"}
"""The module of each kind of process."""


def main() -> None:
    """The command `tallybook`: runs what `sys.argv` asks for, and exits with its code."""
    _refuse_strangers()
    try:
        _import_lightly("prometheus_client")
        from api.cli.overview import main as run  # noqa: PLC0415 - only now is it known to be ours
    except KeyboardInterrupt:
        sys.exit(130)  # as `run` does

    try:
        run()
    finally:
        gc.freeze()  # or Python would search all that was imported once more at its exit: a sixth of a command's time


def process() -> None:
    """Runs one process of a service. `api/service/supervisor.py` starts it as `python -m tallybook_command`."""
    _refuse_strangers()
    _import_lightly("aiohttp", "prometheus_client")
    module = PROCESSES.get(sys.argv[1])
    if module is None:
        sys.exit(2)
    run = import_module(module).main
    import_module("engine.process.collector").begin()
    sys.exit(run())


def _refuse_strangers() -> None:
    """Exits with code 1 and a sentence if one of the packages is not ours, or is missing."""
    here = os.path.dirname(__file__)  # pathlib would take longer than all the rest of `--help`
    for name in PACKAGES:
        place, ours = _place(name), f"{here}/{name}"
        if place is None or not os.path.exists(ours) or not os.path.samefile(place, ours):
            sys.exit(_sentence(name, place, here))


def _import_lightly(*bare: str) -> None:
    """Saves time and memory while modules are imported: up to a quarter of a command's time, 10 MiB of a process.

    What is imported stays, so the garbage collector would search it in vain: it rests until `collector.begin`. And
    submodules of the packages `bare` are imported without all that the package itself imports.
    """
    gc.disable()
    for name in bare:
        _import_bare(name)


def _import_bare(name: str) -> None:
    """Puts a package in place that imports the rest of it once one of its own names is asked for: aiohttp's client, and
    prometheus_client's HTTP server, take 5 MiB each, and most processes need neither."""
    if (spec := find_spec(name)) is None or spec.loader is None:
        return
    package = module_from_spec(spec)
    execute = spec.loader.exec_module

    def rest(attribute: str) -> object:
        if attribute == "__version__":
            return import_module("importlib.metadata").version(name)
        if attribute.startswith("__") or find_spec(f"{name}.{attribute}"):
            raise AttributeError(attribute)
        del package.__getattr__
        execute(package)
        return getattr(package, attribute)

    package.__getattr__ = rest  # type: ignore[method-assign]
    sys.modules[name] = package


def _place(name: str) -> str | None:
    """The folder that Python takes the package from, or the file if it is a module; None: there is none."""
    spec = find_spec(name)  # imports nothing, because the name is not inside a package
    if spec is None:
        return None
    if spec.submodule_search_locations is None:
        return spec.origin or name
    return next(iter(spec.submodule_search_locations), None)


def _sentence(name: str, place: str | None, here: str) -> str:
    if place is None or not os.path.exists(f"{here}/{name}"):
        return f"Tallybook's package `{name}` is missing in {here}; install Tallybook again."
    return (
        f"Python finds another package `{name}` in {place} before Tallybook's, which is in {here}; take "
        f"{os.path.dirname(place)} off PYTHONPATH, or run Tallybook in an environment of its own."
    )


if __name__ == "__main__":
    process()
