"""What a mutant is: a small piece of the core's text, and what stands there instead.

A mutant is named by file, function, the line of code as it is and as it becomes, without blanks around them; so its
name survives whatever moves the line. Two equal lines of one function have their mutants' names in common, and whoever
calls one of them equivalent says it of both.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct

ROOT: Final = Path(__file__).parents[2]

_OF_ANSWERS: Final = (
    "api/test_answers.py",
    "api/test_interface.py",
    "api/test_section5.py",
    "api/test_openapi.py",
    "api/test_football.py",
    "api/test_long.py",
)
TESTS: Final = {
    "engine/domain/judging.py": ("engine/test_judging.py", "api/test_desk.py", "api/test_voiding.py"),
    "engine/log/codec.py": ("engine/test_codec.py", "engine/test_digest.py", "engine/test_log.py"),
    "engine/log/digest.py": ("engine/test_digest.py", "engine/test_log.py", "projections/test_proof.py"),
    "engine/log/log.py": (
        "engine/test_log.py",
        "engine/test_tails.py",
        "engine/test_appender.py",
        "api/test_voiding.py",
        "projections/test_past.py",
        "projections/test_live_pool.py",
        "api/test_docket.py",
        "api/test_desk.py",
    ),
    "engine/log/appender.py": (
        "engine/test_appender.py",
        "api/test_docket.py",
        "api/test_desk.py",
        "api/test_voiding.py",
        "faults/test_standby.py",
    ),
    "api/desk/docket.py": ("api/test_docket.py", "api/test_desk.py", "api/test_voiding.py"),
    "api/desk/desk.py": (
        "api/test_docket.py",
        "api/test_desk.py",
        "api/test_voiding.py",
        "api/test_answers.py",
    ),
    **dict.fromkeys(
        ("api/interface/competitors.py", "api/interface/competitions.py", "api/interface/rankings.py"), _OF_ANSWERS
    ),
    "api/interface/standings.py": (*_OF_ANSWERS, "api/test_past.py"),
    "api/http/forms.py": ("api/test_wire.py", "api/test_section5.py", "api/test_queries.py", "api/test_fuzz.py"),
    "api/interface/fields.py": ("api/test_wire.py", "api/test_section5.py", "api/test_queries.py", "api/test_fuzz.py"),
    "api/interface/points.py": ("api/test_wire.py", "api/test_section5.py", "api/test_fuzz.py"),
    "api/stream/frames.py": ("api/test_stream.py",),
    "api/stream/pace.py": ("api/test_stream.py",),
    "api/webhooks/message.py": ("api/test_webhooks.py",),
    "api/webhooks/addresses.py": ("api/test_webhooks.py",),
    "projections/board/board.py": (
        "projections/test_board.py",
        "api/test_answers.py",
        "projections/test_tables.py",
        "projections/test_verification.py",
        "api/test_interface.py",
    ),
    "projections/board/enrolment.py": (
        "projections/test_enrolment.py",
        "projections/test_order.py",
        "projections/test_board.py",
        "projections/test_tables.py",
    ),
    "projections/board/publication.py": (
        "projections/test_publication.py",
        "api/test_public.py",
        "engine/test_judging.py",
    ),
    "projections/board/packed.py": ("projections/test_packed.py", "projections/test_board.py"),
    "projections/board/parts.py": (
        "projections/test_enrolment.py",
        "projections/test_packed.py",
        "projections/test_board.py",
        "projections/test_past.py",
    ),
    "projections/live/tournament.py": (
        "projections/test_live_pool.py",
        "api/test_answers.py",
        "api/test_desk.py",
        "api/test_docket.py",
        "projections/test_tables.py",
    ),
    "projections/live/pool.py": (
        "projections/test_live_pool.py",
        "api/test_docket.py",
        "api/test_desk.py",
    ),
    "projections/board/standing.py": (
        "projections/test_standing.py",
        "projections/test_positions.py",
        "projections/test_board.py",
        "projections/test_history.py",
        "projections/test_explanation.py",
    ),
    "projections/board/order.py": ("projections/test_order.py", "projections/test_positions.py"),
    "projections/board/sorted_integers.py": ("projections/test_sorted_integers.py", "projections/test_order.py"),
    "projections/board/hierarchy.py": ("projections/test_hierarchy.py", "projections/test_nested_sets.py"),
    "projections/live/nested_sets.py": ("projections/test_nested_sets.py", "api/test_pieces.py"),
    "projections/live/held.py": ("projections/test_nested_sets.py", "api/test_pieces.py", "api/test_long.py"),
    "projections/live/orders.py": ("projections/test_orders.py", "api/test_windows.py"),
    "projections/live/unreversed.py": ("api/test_voiding.py", "api/test_docket.py"),
    "projections/tables/columns.py": (
        "projections/test_columns.py",
        "projections/test_tables.py",
        "projections/test_worker.py",
        "projections/test_verification.py",
    ),
    "projections/tables/tables.py": (
        "projections/test_tables.py",
        "projections/test_worker.py",
        "projections/test_verification.py",
        "projections/test_rebuild.py",
    ),
    "projections/tables/worker.py": (
        "projections/test_worker.py",
        "projections/test_past.py",
        "projections/test_tables.py",
    ),
    "projections/verification/block_checks.py": ("projections/test_verification.py", "projections/test_continuous.py"),
    "projections/verification/one_tournament.py": (
        "projections/test_verification.py",
        "projections/test_continuous.py",
    ),
    "api/interface/handlers.py": (
        "api/test_answers.py",
        "api/test_past.py",
        "api/test_two_services.py",
        "api/test_voiding.py",
    ),
    "migrations": (
        "engine/test_log.py",
        "engine/test_digest.py",
        "engine/test_appender.py",
        "api/test_docket.py",
        "api/test_voiding.py",
        "api/test_desk.py",
    ),
}
"""The core, and which tests, of those in tests/, are asked about a mutant of it, the likeliest to notice first. None
of them is about time: on a busy machine it would notice what is not there."""

FUNCTION: Final = "FUNCTION append_block("
"""Of the migrations, the core is this one, where it was written last."""


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
        within=_function(source, start) if file.endswith(".py") else FUNCTION.split()[1].rstrip("("),
        operator=operator,
        line=source.count("\n", 0, start) + 1,
        code=_one_line(source[begins:ends]),
        becomes=_one_line(source[begins:start] + text + source[end:ends]),
        start=start,
        end=end,
        text=text,
        noticed_by=noticed_by,
    )


def asked_about(made: Mutant) -> tuple[str, ...]:
    """The test files that are asked about a mutant, relative to the root, if they exist; before them a single one."""
    named = TESTS[made.file if made.file in TESTS else made.file.partition("/")[0]]
    first = (f"tests/{made.noticed_by}",) if made.noticed_by else ()
    return first + tuple(f"tests/{name}" for name in named if (ROOT / "tests" / name).exists())


def core() -> Iterator[str]:
    """Every file of the core. Of the migrations it is the last one that writes the append function."""
    yield from (file for file in TESTS if file.endswith(".py") and file != "api/interface/handlers.py")
    writing = [path for path in sorted((ROOT / "migrations").glob("*.sql")) if FUNCTION in path.read_text("utf-8")]
    yield writing[-1].relative_to(ROOT).as_posix()


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
