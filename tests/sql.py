"""The statements of all modules, and how PostgreSQL executes them."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import api
import engine
import projections
from engine.database.distribution import TournamentQuery
from projections.tables import columns
from projections.tables.columns import Table

VERBS: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "CREATE", "GRANT", "SET", "LOCK", "COPY")
OWNERS_OWN: Final = {
    "engine.database.distribution",
    "engine.database.migrator",
    "engine.database.embedded",
    "projections.verification.archives",
    "projections.verification.deletion",
}
"""Modules whose statements, or some of them, are not executed as the service's role."""
SQLITES: Final = {"projections.verification.witness", "projections.verification.progress"}
"""Modules whose statements are for files of their own, and none for PostgreSQL."""


def modules() -> Iterator[ModuleType]:
    for package in (engine, projections, api):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def statements_of(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The SQL among a module's own constants, by their names; one at a time."""
    for name, value in vars(module).items():
        texts = value if isinstance(value, tuple) else (value,)
        if isinstance(value, Table) and module is columns:
            texts = value.select, value.insert, value.insert_of_one, value.delete
        if isinstance(value, TournamentQuery):
            yield f"{module.__name__}.{name}.one/0", value.one
            yield f"{module.__name__}.{name}.each/0", value.each
        elif name.lstrip("_").isupper() and all(isinstance(text, str) for text in texts):
            sql = [text for text in texts if text.split()[:1] and text.split()[0] in VERBS]
            for n, statement in enumerate(";".join(sql).split(";") if sql else ()):
                yield f"{module.__name__}.{name}/{n}", statement


CITUS: Final = re.compile(
    r"\bpg_dist_|\bcitus\b|_on_all_nodes\(|_on_coordinator\(|\bcreate_(distributed|reference)_|_distributing_"
)


def statements() -> dict[str, str]:
    """Those that a plain PostgreSQL can prepare."""
    return {name: statement for name, statement in all_statements().items() if not CITUS.search(statement)}


def all_statements() -> dict[str, str]:
    return dict(pair for module in modules() if module.__name__ not in SQLITES for pair in statements_of(module))


NUMBER_OF_SHARD: Final = re.compile("_[0-9]{6}$")


def flattened(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Its nodes, and those of the plans that shards have for it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from flattened(below)
    for task in plan.get("Distributed Query", {}).get("Job", {}).get("Tasks", ()):
        for (remote,) in task["Remote Plan"]:
            yield from flattened(remote["Plan"])


def rows_scanned(node: dict[str, Any]) -> float:
    if "Relation Name" not in node:
        return 0
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    rows: float = (node["Actual Rows"] + removed) * node["Actual Loops"]
    return rows
