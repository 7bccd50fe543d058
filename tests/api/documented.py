"""docs/PATHS.md, the list of all operations, made from their declarations; the tables of docs/LIMITS.md; and the
examples that a running service shows. `make docs` writes all of them."""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from api.access.auth import Scope
from api.interface.declarations import Action, Operation, Stream, method_of, scope_of
from api.interface.operations import ACTIONS, OPERATIONS, STREAMS
from api.interface.public.reads import PUBLIC_READS
from tests.api import examples, limits

PAGE: Final = Path(__file__).parents[2] / "docs" / "PATHS.md"
_INTRODUCTION: Final = """\
# All paths

`/docs` of a running service says what each does, with its fields, a request and the answer; [INTERFACE](INTERFACE.md)
has the rules. A star means scope `admin`. GET of a path that names a change shows what that would lead to.

## With a token

Below `/tournament/<slug>`:
"""
_SERVICE: Final = """\
## Of the service

With a token, below `/`; for programs that run tournaments of many.
"""
_PUBLIC: Final = """\
## For the public

Below `/board/<slug>`, without a token, for [a published tournament](PUBLIC.md); see also
[the public stream](STREAM.md#the-stream-for-the-public).
"""


def page() -> str:
    """docs/PATHS.md, whole."""
    of_tournaments = [action for action in ACTIONS if not action.of_service]
    operations = _listed((one.path, _asked(one)) for one in (*OPERATIONS, *STREAMS, *of_tournaments))
    of_service = _listed((action.path, _asked(action)) for action in ACTIONS if action.of_service)
    public = _listed((read.path, "GET") for read in PUBLIC_READS)
    return f"{_INTRODUCTION}\n{operations}\n{_SERVICE}\n{of_service}\n{_PUBLIC}\n{public}"


def _listed(asked: Iterable[tuple[str, str]]) -> str:
    """A line for each path, with its methods."""
    methods: dict[str, list[str]] = {}
    for path, method in sorted(asked):
        methods.setdefault(re.sub(r"{[a-z_]+}", "<id>", path), []).append(method)
    return "".join(f"    {' '.join(methods[path]):<10} /{path}\n" for path in sorted(methods))


def _asked(declared: Operation | Stream | Action) -> str:
    match declared:
        case Stream():
            method, needed = "GET", Scope.READ
        case Action():
            method, needed = declared.method, declared.scope
        case _:
            method, needed = method_of(declared), scope_of(declared)
    return method + "*" * (needed is Scope.ADMIN)


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    limits.write()
    asyncio.run(examples.record())


if __name__ == "__main__":
    main()
