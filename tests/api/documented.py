"""The table of operations in docs/INTERFACE.md, made from their declarations. `make docs` writes it."""

from pathlib import Path
from typing import Final

from api.http.auth import Scope
from api.interface.declarations import Operation, Write, method_of, scope_of
from api.interface.operations import OPERATIONS

PAGE: Final = Path(__file__).parents[2] / "docs" / "INTERFACE.md"
_HEAD: Final = "| request | what it does | takes |\n|---|---|---|\n"


def table() -> str:
    return _HEAD + "".join(_row(operation) for operation in sorted(OPERATIONS, key=lambda operation: operation.path))


def _row(operation: Operation) -> str:
    path = operation.path.replace("{", "<").replace("_id}", " id>")
    taken = operation.takes if isinstance(operation, Write) else operation.fields
    fields = ", ".join(f"**`{one.name}`**" if one.required else f"`{one.name}`" for one in taken)
    scope = "; scope `admin`" if scope_of(operation) is Scope.ADMIN else ""
    return f"| {method_of(operation)} `/{path}` | {operation.summary} | {fields or 'nothing'}{scope} |\n"


def in_page(text: str) -> str:
    """The table that stands in the page."""
    start = text.index(_HEAD)
    return text[start : text.index("\n\n", start) + 1]


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(in_page(text), table()), encoding="utf-8")


if __name__ == "__main__":
    main()
