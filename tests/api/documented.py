"""The table of operations in docs/INTERFACE.md, made from their declarations, and the examples that a running service
shows. `make docs` writes both."""

import asyncio
from pathlib import Path
from typing import Final

from api.http.auth import Scope
from api.interface.declarations import Issue, Operation, Stream, Write, method_of, scope_of
from api.interface.operations import OPERATIONS, STREAMS
from tests.api import examples

PAGE: Final = Path(__file__).parents[2] / "docs" / "INTERFACE.md"
_HEAD: Final = "| request | what it does | takes |\n|---|---|---|\n"


def table() -> str:
    return _HEAD + "".join(_row(declared) for declared in sorted((*OPERATIONS, *STREAMS), key=lambda one: one.path))


def _row(declared: Operation | Stream | Issue) -> str:
    path = declared.path.replace("{", "<").replace("_id}", " id>")
    match declared:
        case Stream():
            method, taken, needed = "GET", declared.fields, Scope.READ
        case Issue():
            method, taken, needed = "POST", (), Scope.READ
        case Write():
            method, taken, needed = declared.method, declared.takes, scope_of(declared)
        case _:
            method, taken, needed = method_of(declared), declared.fields, scope_of(declared)
    fields = ", ".join(f"**`{one.name}`**" if one.required else f"`{one.name}`" for one in taken)
    scope = "; scope `admin`" if needed is Scope.ADMIN else ""
    return f"| {method} `/{path}` | {declared.summary} | {fields or 'nothing'}{scope} |\n"


def in_page(text: str) -> str:
    """The table that stands in the page."""
    start = text.index(_HEAD)
    return text[start : text.index("\n\n", start) + 1]


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(in_page(text), table()), encoding="utf-8")
    asyncio.run(examples.record())


if __name__ == "__main__":
    main()
