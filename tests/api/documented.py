"""docs/PATHS.md, the table of all operations, made from their declarations; the tables of docs/LIMITS.md; and the
examples that a running service shows. `make docs` writes all of them."""

import asyncio
from pathlib import Path
from typing import Final

from api.access.auth import Scope
from api.interface.declarations import Action, Operation, Preview, Stream, Write, method_of, scope_of
from api.interface.operations import ACTIONS, OPERATIONS, STREAMS
from api.interface.public.reads import PUBLIC_READS, PublicRead
from tests.api import examples, limits

PAGE: Final = Path(__file__).parents[2] / "docs" / "PATHS.md"
_HEAD: Final = "| request | what it does |\n|---|---|\n"
_INTRODUCTION: Final = """\
# All paths

[INTERFACE](INTERFACE.md) has the rules. `/docs` of a running service shows each operation with a request, its answer
and every field; here are those that are required.

## With a token

Below `/tournament/<slug>`. *PUT, GET*: GET shows what the change would lead to.
"""
_SERVICE: Final = """\
## Of the service

With a token, for programs that run tournaments of many. Below `/`.
"""
_PUBLIC: Final = """\
## For the public

Below `/board/<slug>`, without a token, for [a published tournament](PUBLIC.md); see also
[the public stream](STREAM.md#the-stream-for-the-public).
"""


def page() -> str:
    """docs/PATHS.md, whole."""
    of_tournaments = [action for action in ACTIONS if not action.of_service]
    operations = "".join(
        _row(declared)
        for declared in sorted((*OPERATIONS, *STREAMS, *of_tournaments), key=lambda one: one.path)
        if not isinstance(declared, Preview)
        or declared.path.endswith("preview.json")  # others: in the row of the change
    )
    of_service = "".join(_row(action) for action in ACTIONS if action.of_service)
    public = "".join(_public_row(read) for read in PUBLIC_READS)
    return f"{_INTRODUCTION}\n{_HEAD}{operations}\n{_SERVICE}\n{_HEAD}{of_service}\n{_PUBLIC}\n{_HEAD}{public}"


def _public_row(read: PublicRead) -> str:
    return f"| GET `/{_shown(read.path)}` | {read.summary} |\n"


def _shown(path: str) -> str:
    return path.replace("{", "<").replace("_id}", " id>")


def _row(declared: Operation | Stream | Action) -> str:
    match declared:
        case Stream():
            method, needed = "GET", Scope.READ
        case Action():
            method, needed = declared.method, declared.scope
        case Write():
            is_previewed = any(isinstance(one, Preview) and one.path == declared.path for one in OPERATIONS)
            method, needed = declared.method + ", GET" * is_previewed, scope_of(declared)
        case _:
            method, needed = method_of(declared), scope_of(declared)
    said = [f"`{field.name}`" for field in declared.fields if field.required]
    said += ["scope `admin`"] if needed is Scope.ADMIN else []
    about = f"{declared.summary} ({', '.join(said)})" if said else declared.summary
    return f"| {method} `/{_shown(declared.path)}` | {about} |\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    limits.write()
    asyncio.run(examples.record())


if __name__ == "__main__":
    main()
