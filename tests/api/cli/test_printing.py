"""What commands print: nothing of it is cut, however narrow the terminal."""

import io
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from api.cli import printing
from api.cli.names import cut_apart
from api.interface.direction import isolated

WORDS = st.lists(st.text("abc0123456789-_.點é", min_size=1, max_size=20), max_size=6).map(" ".join)
HEBREW = "\u05d0" * 10
COLUMNS = ("id", "name", "when it was")


def printed(lines: list[tuple[str, ...]], width: int, title: str = "") -> str:
    """The table as a terminal so wide shows it."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        patch.setattr(printing, "width", lambda: width)
        printing.table(COLUMNS, lines, title=title)
    return out.getvalue()


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=4), st.integers(10, 90))
def test_every_word_of_a_table_is_shown_whole_at_any_width(lines: list[tuple[str, ...]], width: int) -> None:
    shown = printed(lines, width, "season")
    words = shown.replace("│", " ").replace("┃", " ").split()
    expected = [word for line in lines for cell in line for word in cell.split()]
    for word in expected:
        assert words.count(word) >= expected.count(word)
    assert "season" in words
    if "┃" in shown:
        assert max(map(cell_len, shown.splitlines())) <= width


def test_a_table_that_is_too_wide_for_its_words_becomes_paragraphs() -> None:
    lines = [("2888424509942549", "A Club of the Capital", "2026-11-23 06:19:50"), ("7", "", "")]
    assert printed(lines, 30, "Season") == (
        "Season\n"
        "\n"
        "id           2888424509942549\n"
        "name         A Club of the Capital\n"
        "when it was  2026-11-23 06:19:50\n"
        "\n"
        "id           7\n"
    )


def test_every_column_gets_what_its_longest_word_takes_before_others_get_more() -> None:
    shown = printed([("2888424509942549", "A Club with a Name of Many Short Words", "now")], 60).splitlines()
    assert {cell_len(line) for line in shown} == {60}
    assert "│ 2888424509942549 │ A Club with a Name of   │ now         │" in shown


@given(st.lists(st.text("ab點", min_size=1, max_size=12), max_size=6), st.integers(2, 10))
def test_names_that_are_cut_stay_apart(names: list[str], cells_max: int) -> None:
    cut = cut_apart(dict(enumerate(names)), cells_max)
    for number, name in enumerate(names):
        assert cut[number] == name or (cell_len(cut[number]) <= cells_max and cut[number].endswith("…"))
        assert all((cut[number] == cut[other]) == (name == names[other]) for other in range(len(names)))
        if cell_len(name) <= cells_max:
            assert cut[number] == name


def test_a_name_is_cut_only_where_no_other_begins_like_it() -> None:
    names = {1: "a club of the capital", 2: "a club of the coast", 3: "another club"}
    assert cut_apart(names, 10) == {1: "a club of the capital", 2: "a club of the coast", 3: "another c…"}


def test_a_name_from_the_right_reorders_no_column() -> None:
    """It stands between FSI and PDI, on each of its lines. Nobody else's name does."""
    shown = printed([("7", f"{HEBREW} {HEBREW}", "2026"), ("8", "Zoe", "2027")], 34)
    assert f"│ 7  │ \u2068{HEBREW}\u2069" in shown
    assert shown.count("\u2068") == shown.count("\u2069") == 2
    assert len({cell_len(line) for line in shown.splitlines()}) == 1
    assert f"name         \u2068{HEBREW}\u2069\n" in printed([("7", HEBREW, "2026-11-23")], 15)


@given(st.text("ab1 –\u05d0\u0627\u0661"))  # noqa: RUF001 - as between names
def test_only_what_is_written_from_the_right_is_isolated(text: str) -> None:
    assert isolated(text) in ((f"\u2068{text}\u2069",) if set(text) & set("\u05d0\u0627\u0661") else (text,))
