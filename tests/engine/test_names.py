"""How names are compared: what looks alike is one name, and a search ignores accents."""

import unicodedata
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.names import caseless_key, name_key, search_key
from engine.domain.terms import NOT_SEEN, name_fault

FORMS: Final = ("NFC", "NFD")
names: Final = st.text(st.sampled_from([*"aZ 1éñÅ\u212bộさガ한글яё", "\u0301", "\u0323"]), max_size=8)


@given(names)
def test_every_form_of_a_name_has_the_same_keys(name: str) -> None:
    for key in (name_key, caseless_key, search_key):
        assert len({key(unicodedata.normalize(form, name)) for form in FORMS}) == 1


@given(names, names)
def test_names_have_one_key_only_if_they_are_one_name(one: str, other: str) -> None:
    same = unicodedata.normalize("NFD", one.strip()) == unicodedata.normalize("NFD", other.strip())
    assert (name_key(one) == name_key(other)) is same


@pytest.mark.parametrize(
    ("name", "found"),
    [
        *[("Zoë Müller", text) for text in ("zoe", "ZOË", "mull", "Zoe\u0308", "müller")],
        *[("Ångström", text) for text in ("angstrom", "\u212bng")],
        *[("Łódź", "lodz"), ("Søren", "soren"), ("Đorđe", "dorde"), ("IŞIK", "isik"), ("\u0131ş\u0131k", "isik")],
        *[("Nguyễn Thị Hồng", "nguyen thi hong"), ("STRASSE", "straße"), ("Ёлкин", "елкин")],
    ],
)
def test_a_search_ignores_accents_and_case(name: str, found: str) -> None:
    assert search_key(found) in search_key(name)


@pytest.mark.parametrize(("one", "other"), [("ガ", "カ"), ("はな", "ばな"), ("Zoe", "Zo"), ("", "a")])
def test_a_search_tells_letters_apart(one: str, other: str) -> None:
    assert search_key(one) != search_key(other)


UNSEEN: Final = [
    *"\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u034f\u061c\u180e\u2061\u206a\u3164\uffa0\u115f\u1160"
]
UNSEEN += [*"\u2800\u17b4\ufe0f\ufffa\U000e0001\U000e0020\U000e01ef\U0001d173\U0001bca0\U0001d159\u2028\u3000"]


@given(st.text(st.sampled_from(UNSEEN), min_size=1, max_size=8))
def test_a_name_that_shows_nothing_is_none(name: str) -> None:
    assert name_fault(name) == (NOT_SEEN if name.strip() else "must not be empty")
    assert name_fault(f"{name}A{name}") is None


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Cn", "Mn", "Zs", "Zl", "Zp"]), min_size=1, max_size=3)
)
def test_a_name_of_letters_digits_or_signs_can_be_seen(name: str) -> None:
    """Of the categories that are left, only fillers and blanks have no glyph."""
    fillers = set("\u115f\u1160\u3164\uffa0\u2800\U0001d159\U00013441\U00013442")
    assert (name_fault(name) is None) is not fillers.issuperset(name)
