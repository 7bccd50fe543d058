"""What a mutant is: a small piece of the core's text, and what stands there instead.

A mutant is named by file, function, the line of code as it is and as it becomes, without blanks around them; so its
name survives whatever moves the line. Two equal lines of one function have their mutants' names in common, and whoever
calls one of them equivalent says it of both.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[2]

CORE: Final = (
    "engine/domain/judging.py",
    "engine/domain/faults.py",
    "engine/domain/lines.py",
    "engine/domain/counting.py",
    "engine/domain/reversals.py",
    "engine/domain/expirations.py",
    "engine/log/codec.py",
    "engine/log/digest.py",
    "engine/log/appending.py",
    "engine/log/heads.py",
    "engine/log/tails.py",
    "engine/log/undecoded.py",
    "engine/log/reading.py",
    "engine/log/rows.py",
    "engine/log/appender.py",
    "api/desk/case.py",
    "api/desk/docket.py",
    "api/desk/evidence.py",
    "api/desk/desk.py",
    "api/interface/resources/competitors.py",
    "api/interface/resources/competitions.py",
    "api/interface/resources/rankings.py",
    "api/interface/resources/standings.py",
    "api/http/forms.py",
    "api/interface/fields.py",
    "api/interface/resources/points.py",
    "api/stream/frames.py",
    "api/stream/pace.py",
    "api/webhooks/message.py",
    "api/webhooks/addresses.py",
    "projections/board/board.py",
    "projections/columns/enrolment.py",
    "projections/board/publication.py",
    "projections/columns/packed.py",
    "projections/board/parts.py",
    "projections/live/tournament.py",
    "projections/live/pool.py",
    "projections/board/standing.py",
    "projections/board/order.py",
    "projections/columns/sorted_integers.py",
    "projections/board/hierarchy.py",
    "projections/live/nested_sets.py",
    "projections/live/held.py",
    "projections/live/orders.py",
    "projections/live/caused.py",
    "projections/live/kept.py",
    "projections/tables/columns.py",
    "projections/tables/tables.py",
    "projections/tables/worker.py",
    "projections/verification/block_checks.py",
    "projections/verification/derived_checks.py",
    "projections/verification/fold_checks.py",
    "projections/verification/log_checks.py",
    "projections/verification/one_tournament.py",
    "api/interface/access.py",
    "api/interface/handlers.py",
)
"""The modules of the core. The functions that append, in the migrations, belong to it as well."""
APPENDING: Final = "engine/log/appending.py"
"""The module whose function `append` calls those."""

FUNCTIONS: Final = ("append_block", "append_blocks")
"""The core among the migrations."""


class Mutant(Struct, frozen=True, kw_only=True):
    """`start` to `end` of the text of `file` become `text`. `noticed_by`: the test that is to be asked first."""

    file: str
    within: str
    operator: str
    line: int
    code: str
    becomes: str
    start: int
    end: int
    text: str
    noticed_by: str = ""

    @property
    def name(self) -> tuple[str, str, str, str]:
        return self.file, self.within, self.code, self.becomes

    def applied(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def mutant(source: str, file: str, operator: str, start: int, end: int, text: str, noticed_by: str = "") -> Mutant:
    """The mutant that has `text` instead of `source[start:end]`, named by the whole lines that it changes."""
    begins, ends = source.rfind("\n", 0, start) + 1, source.find("\n", end)
    ends = len(source) if ends < 0 else ends
    return Mutant(
        file=file,
        within=_function(source, start)
        if file.endswith(".py")
        else "".join(_SQL_FUNCTION.findall(source, 0, start)[-1:]),
        operator=operator,
        line=source.count("\n", 0, start) + 1,
        code=_one_line(source[begins:ends]),
        becomes=_one_line(source[begins:start] + text + source[end:ends]),
        start=start,
        end=end,
        text=text,
        noticed_by=noticed_by,
    )


def core() -> Iterator[str]:
    """Every file of the core. Of the migrations it is the last one that writes the append functions."""
    yield from CORE
    files = [
        path
        for path in sorted((ROOT / "migrations").glob("*.sql"))
        if begin_of(FUNCTIONS[0]) in path.read_text("utf-8")
    ]
    yield files[-1].relative_to(ROOT).as_posix()


def begin_of(function: str) -> str:
    """What a migration begins the function with."""
    return f"FUNCTION {function}("


_SQL_FUNCTION: Final = re.compile(r"FUNCTION (\w+)\(")


def _function(source: str, at: int) -> str:
    """The dotted name of the innermost function or class around the character `at`; "" at the module's level."""
    line, names = source.count("\n", 0, at) + 1, []
    nodes: list[ast.AST] = [_parsed(source)]
    while nodes:
        node = nodes.pop()
        for child in ast.iter_child_nodes(node):
            if getattr(child, "lineno", line + 1) <= line <= (getattr(child, "end_lineno", None) or 0):
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    names.append(child.name)
                nodes = [child]
                break
    return ".".join(names)


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _one_line(text: str) -> str:
    return " ".join(text.split())
