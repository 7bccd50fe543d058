"""The campaign of mutants itself: what it draws, how it names it, and that it tells who notices from who does not."""

from pathlib import Path
from textwrap import dedent

import pytest

from assurance.mutants.campaign import (
    CAUGHT,
    SURVIVED,
    UNSETTLED,
    Known,
    Workplace,
    all_mutants,
    drawn_at_random,
    drawn_by_hand,
    equivalents,
)
from assurance.mutants.covering import Covering
from assurance.mutants.operators import compiles, function_mutants, python_mutants, sql_mutants
from assurance.mutants.places import ROOT, core, mutant
from tests.running import said


def changes(source: str) -> set[tuple[str, str]]:
    """The operator of each mutant of a module, and the line that it leads to."""
    return {(made.operator, made.becomes) for made in python_mutants(dedent(source), "module.py")}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("if a < b: go()", {"if a <= b: go()", "if a >= b: go()", "if not (a < b): go()", "if a < b: pass"}),
        ("x = a is not None", {"x = a is None"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a and not b", {"x = a or not b", "x = True and not b", "x = a and True", "x = a and (b)"}),
        ("x = y + 1", {"x = y - 1", "x = y + 2", "x = y + 0"}),
        ("x.y = True", {"x.y = False", "pass"}),
        ("x = f(a, b, c)", {"x = f(b, a, c)"}),
        ("x = f(connection, b)", set()),
        ("x = min(a, b)", {"x = max(a, b)", "x = min(b, a)"}),
        ("x = q.popleft()", {"x = q.pop()"}),
        ("while a: break", {"while not (a): break", "while a: pass"}),
        ("x = a if b else c", {"x = a if not (b) else c"}),
        ("raise Wrong(a == b)", {"raise Wrong(a != b)", "pass"}),
        ("del a[0]", {"del a[1]", "pass"}),
        ("x += y", {"pass"}),
    ],
)
def test_each_small_change_is_drawn(line: str, expected: set[str]) -> None:
    assert {becomes for _, becomes in changes(line)} == expected


def test_what_is_returned_is_drawn_also_where_it_stands_on_several_lines() -> None:
    source = "def f():\n    return g(\n        a,\n    )\n"
    (made,) = python_mutants(source, "module.py")
    assert (made.within, made.line, made.code, made.becomes) == ("f", 2, "return g( a, )", "return None")
    assert made.applied(source) == "def f():\n    return None\n"


@pytest.mark.parametrize(
    "line",
    [
        '"""A docstring."""',
        "LIMIT: Final = 10 * 1024",
        "assert a < b",
        "_logger.warning('it_went_wrong', a=a + 1)",
        "_observe_seconds(a - b)",
        "COUNTED.inc(1)",
        "import a",
        "x = [*zip(a, strict=True)]",
        "x = f'{a + 1} of {b or c}'",
        "assert_never(event)",
    ],
)
def test_what_no_test_is_meant_to_hold_is_left_alone(line: str) -> None:
    assert changes(line) == set()


def test_of_sql_words_are_drawn_but_not_those_of_comments_and_texts() -> None:
    sql = "SELECT a FROM b WHERE c <= $1 AND d = 'x < y AND z' -- if e < f\nLIMIT $2"
    found = {made.becomes for made in sql_mutants(sql, "0001.sql", 0, len(sql))}
    assert found == {
        "SELECT a FROM b WHERE c < $1 AND d = 'x < y AND z' -- if e < f",
        "SELECT a FROM b WHERE c <= $1 OR d = 'x < y AND z' -- if e < f",
        "SELECT a FROM b WHERE c <= $1 AND d <> 'x < y AND z' -- if e < f",
        "LIMIT $2 + 1",
    }


def test_the_append_functions_are_drawn_and_nothing_around_them() -> None:
    *_, file = core()
    source = (ROOT / file).read_text("utf-8")
    found = function_mutants(source, file)
    for function in ("append_block", "append_blocks"):
        begins = source.index(f"FUNCTION {function}(")
        ends = source.index("\n$$;", begins)
        of_this = [made for made in found if made.within == function]
        assert len(of_this) > 10
        assert all(begins < made.start < made.end < ends for made in of_this)
    assert {made.within for made in found} == {"append_block", "append_blocks"}


def test_a_mutants_name_survives_what_moves_its_line_but_not_what_changes_it() -> None:
    source = "def f(a):\n    return a < 1  # why\n"

    def names(text: str) -> set[tuple[str, str, str, str]]:
        return {made.name for made in python_mutants(text, "module.py")}

    assert names(source) == names("import x\n\n\n" + source.replace("    ", "  "))
    assert not names(source) & names(source.replace("< 1", "< 2"))
    assert not names(source) & names(source.replace("def f", "def g"))


def test_characters_of_several_bytes_move_nothing() -> None:
    source = "x = 'ä→', a < b\n"
    assert {made.applied(source) for made in python_mutants(source, "m.py")} >= {"x = 'ä→', a <= b\n"}


# ── The data ────────────────────────────────────────────────────────────────────────────────────────────


def test_every_mutant_drawn_by_hand_is_of_the_code_as_it_is() -> None:
    drawn = drawn_by_hand()
    assert drawn
    for made in drawn:
        source = (ROOT / made.file).read_text("utf-8")
        assert made.applied(source) != source
        assert not made.file.endswith(".py") or compiles(made.applied(source))
        file, _, test = made.noticed_by.partition("::")
        assert f"def {test}(" in (ROOT / "tests" / file).read_text("utf-8")


def test_every_equivalent_is_still_a_mutant_of_the_code_and_says_why() -> None:
    names = {made.name for made in (*all_mutants(), *drawn_by_hand())}
    for name, reason in equivalents().items():
        assert name in names, f"no such mutant any more: {name}"
        assert len(reason) > 20


@pytest.mark.long
def test_fewer_mutants_of_a_seed_are_the_first_of_more() -> None:
    few, many = drawn_at_random(5, 1), drawn_at_random(50, 1)
    assert few == many[:5]
    assert len(many) == 50
    assert drawn_at_random(5, 2) != few


# ── A trial ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_runs_in_the_copy_of_the_tree(tmp_path: Path) -> None:
    with Workplace(tmp_path, Known(tmp_path, Covering({}))):
        ended = said("migrate", "--help", cwd=tmp_path / "tree", PYTHONPATH=str(tmp_path / "tree"))
        assert (ended.code, ended.err) == (0, "")


@pytest.mark.long
def test_noticed_and_unnoticed_mutants_are_distinguished_and_remembered(tmp_path: Path) -> None:
    file, tests = "projections/board/standing.py", ["tests/projections/test_standing.py"]
    source = (ROOT / file).read_text("utf-8")
    imports = source.index("from ")
    harmless = mutant(source, file, "by hand", imports, imports, "\n")
    (harmful, *_) = (made for made in python_mutants(source, file) if made.within == "ordered")
    known = Known(tmp_path, Covering({}))
    assert known.verdict_of(harmful) is None
    with Workplace(tmp_path, known) as workplace:
        assert workplace.tried(harmful, tests) == CAUGHT
        assert workplace.tried(harmless, tests) == SURVIVED
    with Workplace(tmp_path, Known(tmp_path / "nothing", Covering({})), seconds_max=0.1) as workplace:
        assert workplace.tried(harmful, tests) == UNSETTLED
    again = Known(tmp_path, Covering({}))
    assert [again.verdict_of(made) for made in (harmful, harmless)] == [CAUGHT, SURVIVED]


@pytest.mark.long
def test_a_mutant_is_asked_of_the_tests_that_run_it_and_of_no_others(tmp_path: Path) -> None:
    own, other = "tests/projections/test_sorted_integers.py", "tests/engine/test_digest.py"
    covering = Covering.recorded(tmp_path, tests=[own, other])
    file = "projections/columns/sorted_integers.py"
    source = (ROOT / file).read_text("utf-8")
    of_functions = [made for made in python_mutants(source, file) if made.operator == "returned value"]
    asked = [set(covering.tests_of(made)) for made in of_functions]
    assert any(asked)
    in_order = [covering.tests_of(made) for made in of_functions]
    assert all(tests == sorted(tests, key=covering.seconds.__getitem__) for tests in in_order)
    assert all(test.startswith(f"{own}::") for tests in asked for test in tests)
    assert max(map(len, asked)) > min(map(len, asked))
    at = source.index("from ")
    imported = mutant(source, file, "by hand", at, at, "\n")
    assert set(covering.tests_of(imported)) == set().union(*asked)
    elsewhere = python_mutants((ROOT / "engine/log/digest.py").read_text("utf-8"), "engine/log/digest.py")
    assert {test.partition("::")[0] for made in elsewhere for test in covering.tests_of(made)} == {other}
    assert Covering.recorded(tmp_path, tests=["tests/none.py"]).tests_of(imported) == covering.tests_of(imported)
