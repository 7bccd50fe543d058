"""The patterns of the product mean ASCII: a digit is 0 to 9, and the end is the end."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybook_client
import tallybook_command
from tests.project import PRODUCT, text_of
from tests.sql import modules

KINDS: Final = {
    "digit": ("0123456789", "\u0663\uff15\u0967\U0001d7d8"),
    "space": (" \t", "\u00a0\u2003\u3000\u0085\x1c"),
    "letter": ("iksIKS", "\u212a\u017f\u0130\u0131\uff4b"),
}
"""Of each kind, characters of ASCII, and others that Python takes for the same."""
ANY: Final = "\N{SNOWMAN}"
"""Where a pattern takes this, it means any text."""
MEANT: Final = {
    "api.http.preferences._ITEM",  # quoted texts
    "api.http.preferences._RANGE",
    "api.imports.played._SCORE",  # spaces of spreadsheets
    "engine.domain.terms._CONTROL",
    "engine.domain.terms._CONTROL_OF_TEXTS",
}
"""Where such characters are meant."""


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """The compiled patterns for text of all modules, by module and name."""
    return {
        f"{module.__name__}.{name}": value
        for module in (*modules(), tallybook_command, tallybook_client.sending)
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }


@pytest.mark.parametrize("name", sorted(patterns()))
def test_no_group_is_possessive(name: str) -> None:
    """Python before 3.11.5 goes on from where a repetition of such a group failed (issue 106052 of CPython)."""
    assert re.search(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+", patterns()[name].pattern) is None


@pytest.mark.parametrize("name", sorted(patterns().keys() - MEANT))
def test_a_pattern_takes_no_digit_space_or_letter_beyond_ascii(name: str) -> None:
    pattern = patterns()[name]

    @given(st.data(), st.from_regex(pattern, fullmatch=True, alphabet=st.characters(max_codepoint=0x7E)))
    def everywhere(data: st.DataObject, text: str) -> None:
        for usual, others in KINDS.values():
            if places := [place for place, character in enumerate(text) if character in usual]:
                place, other = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(others))
                changed = [pattern.fullmatch(text[:place] + one + text[place + 1 :]) for one in (other, ANY)]
                assert changed[1] or not changed[0]

    everywhere()


def lines() -> Iterator[tuple[str, str]]:
    """All lines of the product, by their places."""
    for name in PRODUCT:
        for number, line in enumerate(text_of(name).splitlines(), start=1):
            yield f"{name}:{number}", line


def test_the_end_of_a_pattern_is_not_before_a_last_line_break() -> None:
    """As `$` is, except in a pattern for whole lines."""
    ends = [name for name, one in patterns().items() if re.search(r"\$(?:\)|$)", one.pattern)]
    assert ends == ["engine.database.migrator._OLDEST_LINE"]


def test_digits_and_letters_are_asked_for_among_ascii_alone() -> None:
    asked = re.compile(r"\.is(?:digit|decimal|numeric|alnum|alpha)\(")
    assert [at for at, line in lines() if asked.search(line) and "isascii()" not in line] == []
