"""The mutants of a source: every small change of a kind that programmers make by mistake.

Of Python, by its syntax tree: comparisons and their bounds, conditions, constants, arithmetic, statements that are left
out, values returned, arguments swapped. Left alone is what no test is meant to hold: log lines, metrics, assertions,
annotations, docstrings, the text of messages, and the values of named limits, which are decisions that tests take by
their names. Left alone, too, is what any test would stumble over: the only assignment of a local name, a connection
swapped with an id. Of SQL, in the append function and in statements that Python holds: the same by words.
"""

import ast
import re
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Final

from assurance.mutants.places import FUNCTIONS, Mutant, begin_of, mutant

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, ...]]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_ARITHMETIC: Final[dict[type[ast.operator], str]] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Mod: "+",
}
_SWAPPED_NAMES: Final = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "popleft": "pop",
    "appendleft": "append",
}
_NOT_OF_INTEREST: Final = re.compile(
    r"_logger\.|_observe\w*\(|observer\(|_add_events\(|[A-Z_]+\.(inc|set|observe|labels)\(|super\(\)|telemetry\.|assert_never\("
)
_TYPED: Final = {"connection", "self._connection", "_T", "self"}
_ERRORS: Final = re.compile(r"(Error|Refusal|Unreadable|Unacceptable|Conflict|NotFound|Fault|Undecodable)$")


def python_mutants(source: str, file: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of its text. Hardly one of them is no Python any more: see `compiles`."""
    drawing = _Drawing(source, file)
    for node, text_of_message in _of_interest(ast.parse(source)):
        drawing.draw_expression(node, text_of_message)
        drawing.draw_statement(node)
        if isinstance(node, ast.Call) and not text_of_message:
            drawing.draw_arguments(node)
    yield from sorted(drawing.found, key=lambda made: (made.start, made.end, made.text))


class _Drawing:
    """The mutants `found` so far in a module."""

    def __init__(self, source: str, file: str) -> None:
        self.found: list[Mutant] = []
        self._source = source
        self._file = file
        self._encoded = source.encode()
        self._lines = [0, *accumulate(len(line.encode()) for line in source.splitlines(keepends=True))]  # in bytes

    def draw_expression(self, node: ast.AST, text_of_message: bool) -> None:
        match node:
            case ast.Compare(ops=[operation], comparators=[right]):
                for new in _COMPARISONS[type(operation)]:
                    self._between("comparison", node.left, right, _TEXTS[type(operation)], new)
            case ast.BoolOp():
                old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in pairwise(node.values):
                    self._between("boolean", left, right, old, new)
                for value in node.values:
                    self._instead("boolean", value, "True" if old == "and" else "False")
            case ast.UnaryOp(op=ast.Not()):
                self._instead("boolean", node, f"({ast.unparse(node.operand)})")
            case ast.BinOp() if type(node.op) in _ARITHMETIC and not _holds_text(node):
                self._between("arithmetic", node.left, node.right, _SIGNS[type(node.op)], _ARITHMETIC[type(node.op)])
            case ast.Constant(value=bool()):
                self._instead("constant", node, str(not node.value))
            case ast.Constant(value=int() | float()):
                self._instead("constant", node, str(node.value + 1))
                if node.value:
                    self._instead("constant", node, str(node.value - 1))
            case ast.Constant(value=str()) if _is_sql(node.value) and not text_of_message:
                self.found += sql_mutants(self._source, self._file, *self._span(node))
            case ast.IfExp():
                self._instead("condition", node.test, f"not ({self._text(node.test)})")
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in _SWAPPED_NAMES:
                _, end = self._span(node)
                self._add("swapped name", end - len(name), end, _SWAPPED_NAMES[name])

    def draw_statement(self, node: ast.AST) -> None:
        match node:
            case ast.If() | ast.While():
                self._instead("condition", node.test, f"not ({self._text(node.test)})")
            case ast.Return(value=ast.expr() as value) if not _is_plain(value):
                self._instead("returned value", value, "None")
            case (
                ast.Expr() | ast.Assign() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete()
            ):
                if not _is_docstring(node) and not _is_needed(node):
                    self._instead("statement left out", node, "pass")

    def draw_arguments(self, node: ast.Call) -> None:
        first_two = node.args[:2]
        if len(first_two) < 2 or any(isinstance(a, ast.Starred) or ast.unparse(a) in _TYPED for a in first_two):
            return
        (a, b), (c, d) = map(self._span, first_two)
        source = self._source
        self._add("swapped arguments", a, d, source[c:d] + source[b:c] + source[a:b])

    def _between(self, operator: str, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        start, end = self._span(left)[1], self._span(right)[0]
        place = self._source.find(old, start, end)
        if place >= 0:
            self._add(operator, place, place + len(old), new)

    def _instead(self, operator: str, node: ast.AST, text: str) -> None:
        self._add(operator, *self._span(node), text)

    def _add(self, operator: str, start: int, end: int, text: str) -> None:
        if self._source[start:end] != text:
            self.found.append(mutant(self._source, self._file, operator, start, end, text))

    def _text(self, node: ast.AST) -> str:
        return self._source[slice(*self._span(node))]

    def _span(self, node: ast.AST) -> tuple[int, int]:
        """From which character to which: the tree counts lines, and bytes in them."""
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        end = self._lines[node.end_lineno - 1] + node.end_col_offset
        return len(self._encoded[:start].decode()), len(self._encoded[:end].decode())


_TEXTS: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_SIGNS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


def _of_interest(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes that may be changed, and whether each is part of the text of an error."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, message = waiting.pop()
        yield node, message
        for field, value in ast.iter_fields(node):
            if field in {"annotation", "returns", "decorator_list", "bases", "keywords"} and not isinstance(
                node, ast.Call
            ):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_left_alone(child):
                    waiting += [(child, message or _is_error(child))]


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
        return "TypeVar" in ast.unparse(node.value.func)
    if (
        isinstance(node, ast.AnnAssign)
        and node.col_offset == 0
        and not isinstance(node.value, ast.Constant | ast.Tuple)
    ):
        return isinstance(node.value, ast.BinOp)
    if isinstance(node, ast.AnnAssign) and node.col_offset == 0 and isinstance(node.value, ast.Constant):
        return isinstance(node.value.value, int | float)
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, ast.Expr | ast.Call) and bool(
        _NOT_OF_INTEREST.match(ast.unparse(node).removeprefix("await "))
    )


def _is_error(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(_ERRORS.search(ast.unparse(node.func)))


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_needed(node: ast.AST) -> bool:
    """An assignment of local names alone: without it they would not exist."""
    return isinstance(node, ast.Assign) and all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets)


def _is_plain(value: ast.expr) -> bool:
    """None, or a truth value, which is turned round as a constant."""
    return isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool))


def _holds_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


# ── SQL ─────────────────────────────────────────────────────────────────────────────────────────────────

_WORDS: Final = (
    (r"(?<![<>=:])<(?![=>])", "<="),
    (r"<=", "<"),
    (r"(?<![<>=:|-])>(?!=)", ">="),
    (r">=", ">"),
    (r"(?<![<>=:!])=(?![>=])", "<>"),
    (r"\bAND\b", "OR"),
    (r"\bOR\b(?! REPLACE)", "AND"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bNOT FOUND\b", "FOUND"),
    (r"\bIF FOUND\b", "IF NOT FOUND"),
    (r"\bgreatest\(", "least("),
    (r"\bALL \(", "ANY ("),
    (r"(?<=\+ )1\b", "0"),
    (r"(?<= )> 0\b", "> 1"),
    (r"(?<=[\w\]] )\+(?= )", "-"),
    (r"\bLIMIT (\$\d+)", r"LIMIT \1 + 1"),
    (r" SKIP LOCKED\b", ""),
    (r" FOR UPDATE\b(?! SKIP)", ""),
    (r"(?<=\n) *RETURN;", "NULL;"),
    (r"(?<=\n) *(answers|v_keys|v_new|status|v_next|previous_digest|recorded_at|digest) :=[^;]*;", "NULL;"),
)
_BEGINNING: Final = re.compile(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b")


def _is_sql(text: str) -> bool:
    return bool(_BEGINNING.match(text))


def sql_mutants(source: str, file: str, start: int, end: int) -> Iterator[Mutant]:
    """Every mutant of the SQL in `source[start:end]`; comments and texts in quotes are left alone."""
    quiet = [m.span() for m in re.finditer(r"--[^\n]*|'(?:[^'\n]|'')*'", source[start:end])]
    for pattern, replacement in _WORDS:
        for match in re.finditer(pattern, source[start:end]):
            if not any(a <= match.start() < b for a, b in quiet):
                text = match.expand(replacement)
                yield mutant(source, file, "SQL", start + match.start(), start + match.end(), text)


def function_mutants(source: str, file: str) -> list[Mutant]:
    """Every mutant of the bodies of the append functions, in the order of their text."""
    found: list[Mutant] = []
    for function in FUNCTIONS:
        begins = source.index("$$", source.index(begin_of(function))) + 2
        found += sql_mutants(source, file, begins, source.index("$$", begins))
    return sorted(found, key=lambda made: (made.start, made.end))
