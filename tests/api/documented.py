"""docs/PATHS.md, the table of all operations, made from their declarations; the tables of docs/LIMITS.md; and the
examples that a running service shows. `make docs` writes all of them."""

import asyncio
from pathlib import Path
from typing import Final

from api.access.auth import Scope
from api.interface.declarations import Action, Operation, Preview, Stream, Write, method_of, name_of, scope_of
from api.interface.fields import Fields
from api.interface.operations import ACTIONS, OPERATIONS, STREAMS
from api.interface.public.reads import PUBLIC_READS, PublicRead
from tests.api import examples, limits

PAGE: Final = Path(__file__).parents[2] / "docs" / "PATHS.md"
_HEAD: Final = "| request | what it does | takes |\n|---|---|---|\n"
_INTRODUCTION: Final = """\
# All paths

[INTERFACE](INTERFACE.md) has the rules. `/docs` of a running service shows each operation with a request, its answer
and every field. Fields in bold are required.

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
[the public stream](STREAM.md#the-stream-for-the-public). *The same*: as with a token.
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
    return f"| GET `/{_shown(read.path)}` | {read.summary} | {_taken_by_public(read)} |\n"


def _taken_by_public(read: PublicRead) -> str:
    """What a public read takes, compared with the same read with a token."""
    with_token = [field for one in OPERATIONS if name_of(one) == f"GET {read.path}" for field in one.fields]
    left_out = tuple([field for field in with_token if field not in read.fields])
    if not read.fields or [*read.fields] != [field for field in with_token if field not in left_out]:
        return _named(read.fields) or "nothing"
    return f"the same, without {_named(left_out)}" if left_out else "the same"


def _shown(path: str) -> str:
    return path.replace("{", "<").replace("_id}", " id>")


def _named(fields: Fields) -> str:
    return ", ".join(f"**`{one.name}`**" if one.required else f"`{one.name}`" for one in fields)


def _row(declared: Operation | Stream | Action) -> str:
    match declared:
        case Stream():
            method, taken, needed = "GET", declared.fields, Scope.READ
        case Action():
            method, taken, needed = declared.method, declared.fields, declared.scope
        case Write():
            is_previewed = any(isinstance(one, Preview) and one.path == declared.path for one in OPERATIONS)
            method, taken, needed = declared.method, declared.takes, scope_of(declared)
            method += ", GET" * is_previewed
        case _:
            method, taken, needed = method_of(declared), declared.fields, scope_of(declared)
    scope = "; scope `admin`" if needed is Scope.ADMIN else ""
    return f"| {method} `/{_shown(declared.path)}` | {declared.summary} | {_named(taken) or 'nothing'}{scope} |\n"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    limits.write()
    asyncio.run(examples.record())


if __name__ == "__main__":
    main()
