"""Where people wrote the name of a competitor: every such text is found, in any case, by Python and by PostgreSQL."""

import re
import sys
from random import Random
from typing import Any, Final, get_args, get_type_hints
from unicodedata import normalize

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.events import Event
from engine.domain.terms import Sequence
from engine.log.reading import Mentioning
from projections.past.mentions import _KEYS, KEY_FIELD, NAMES_MAX, TEXTS, Mention, _cases, sought

NOT_WRITTEN_BY_PEOPLE: Final = {
    *("slug", "zone", "language", "accent", "logo"),  # of a tournament
    *("color", "tags", "commitment"),  # personal, or what is left of it
    *("main_unity_lasts", "lasts", "digest"),
}
LETTERS: Final = [*"aAbBzZ09 .*+?|^$()[]{}\\\"'-_/&#~éÉßẞsSkKK\u0130iIıµμ鈴木яЯ\U0001f3d3"]  # noqa: RUF001 - letters with odd cases
letters = st.sampled_from(LETTERS)
names = st.text(letters, min_size=1, max_size=6).filter(str.strip)
texts = st.text(letters, max_size=20)


def event(body: dict[str, Any], key: str | None = None, sequence: int = 1) -> Mentioning:
    return Mentioning(Sequence(sequence), "PointsAdded", key, msgspec.json.encode(body).decode())


def found(name: str, *of: Mentioning) -> list[Mention]:
    wanted = sought([name])
    assert wanted is not None
    return [one for one in wanted.mentions(of) if one is not None]


def test_every_field_of_an_event_that_holds_text_is_looked_at_or_named_here() -> None:
    of_text = {
        name
        for kind in get_args(Event)
        for name, hint in get_type_hints(kind).items()
        if name in kind.__struct_fields__ and "str" in re.findall(r"\w+", repr(hint).replace("class 'str'", "str"))
    }
    assert of_text - TEXTS == NOT_WRITTEN_BY_PEOPLE, "what people write stays a plain str; name what they do not"
    assert of_text >= TEXTS


def test_a_name_is_found_in_any_case_and_within_words_with_the_words_around_it() -> None:
    told = [
        event({"reason": "for ANN"}, sequence=3),
        event({"result": {"7": "planned", "8": "Bo"}}, sequence=4),
        event({"description": "x" * 100 + "ann" + "y" * 100}, "Ann-7", sequence=5),
        event({"zone": "ann", "name": "Bo", "deltas": [["ann"]]}, "bo", sequence=6),
    ]
    assert found("Ann", *told) == [
        Mention(Sequence(3), "PointsAdded", "reason", "for ANN"),
        Mention(Sequence(4), "PointsAdded", "result", "planned"),
        Mention(Sequence(5), "PointsAdded", KEY_FIELD, "Ann-7"),
        Mention(Sequence(5), "PointsAdded", "description", "x" * 40 + "ann" + "y" * 40),
    ]


def test_a_name_is_found_whether_its_accents_are_composed_or_not() -> None:
    for name in ("Zo\u00eb \u00c5", "Zoe\u0308 A\u030a"):
        told = event({"reason": "for ZO\u00cb \u00c5"}), event({"reason": "by zoe\u0308 a\u030a"}, "zo\u00eb \u00c5!")
        assert [(one.field, one.text) for one in found(name, *told)] == [
            ("reason", "for ZO\u00cb \u00c5"),
            (KEY_FIELD, "zo\u00eb \u00c5!"),
            ("reason", "by zoe\u0308 a\u030a"),
        ]


def test_a_body_that_cannot_be_read_has_its_key_looked_at() -> None:
    told = [Mentioning(Sequence(n), "Nonsense", "ann", body) for n, body in enumerate(["{", "[]", "7", "[" * 9_999])]
    assert [one.field for one in found("Ann", *told)] == [KEY_FIELD] * 4


def test_of_very_many_names_the_last_are_looked_for() -> None:
    assert sought([]) is None
    wanted = sought([f"<{n}>" for n in range(NAMES_MAX + 1)])
    assert wanted is not None
    told = event({"reason": "<0>"}), event({"reason": "<1>"}), event({"reason": f"<{NAMES_MAX}>"})
    assert [one.text for one in wanted.mentions(told) if one] == ["<1>", f"<{NAMES_MAX}>"]


@given(names, texts, texts)
def test_whatever_is_around_a_name_it_is_found(name: str, before: str, after: str) -> None:
    for written in (name, *(one for one in (name.upper(), name.lower()) if len(one) == len(name))):
        assert found(name, event({"reason": f"{before}{written}{after}"}))
        assert found(name, event({}, f"{before}{written}{after}"))


@given(names, texts)
def test_what_is_found_is_there_letter_by_letter(name: str, text: str) -> None:
    is_there = any(
        all(
            one in (wanted, wanted.lower(), wanted.upper(), wanted.casefold())
            for one, wanted in zip(part, form, strict=True)
        )
        for form in (name, normalize("NFC", name), normalize("NFD", name))
        for at in range(len(text) - len(form) + 1)
        if (part := text[at : at + len(form)])
    )
    assert bool(found(name, event({"reason": text}))) is is_there


@pytest.mark.parametrize("seed", range(4))
async def test_postgresql_finds_the_same(database: Database, seed: int) -> None:
    async with database.connection() as connection:

        async def check(name: str, said: list[str]) -> None:
            wanted = sought([name, "Zz\\9"])
            assert wanted is not None
            bodies = [msgspec.json.encode({"reason": text}).decode() for text in said]
            rows = await connection.fetch(
                "SELECT body ~ $3 AS body, key ~ $4 AS key FROM unnest($1::text[], $2::text[]) AS e (body, key)",
                *(bodies, said, wanted.in_bodies, wanted.in_texts),
            )
            for text, row in zip(said, rows, strict=True):
                is_there = re.search(wanted.in_texts, text) is not None
                assert row["key"] is is_there, (name, text)
                assert row["body"] or not is_there, (name, text)

        random = Random(seed)
        for _ in range(200):
            name = "".join(random.choices(LETTERS, k=random.randint(1, 4)))
            said = ["".join(random.choices(LETTERS, k=random.randint(0, 8))) for _ in range(20)]
            said += [one + name + two for one, two in zip(said[:10], said[10:], strict=True)]
            await check(name, [*said, *map(str.swapcase, said)])


def test_the_cases_of_every_letter_have_the_same_key() -> None:
    for letter in map(chr, range(sys.maxunicode + 1)):
        if letter.lower() == letter.upper() == letter.casefold():
            continue
        assert {_KEYS[ord(one)] for one in _cases(letter)} == {_KEYS[ord(letter)]}


def test_others_get_their_turn_between_two_places_where_a_name_might_be() -> None:
    """`ß` has the key of `s`, but is no case of it; patterns for that many long names took half a second to make."""
    wanted = sought(["s" * 200 + f"{n}" for n in range(NAMES_MAX)])
    assert wanted is not None
    told = event({"reason": "ß" * 200 + "7" + "s" * 200 + "9"})
    pauses = list(wanted.mentions([told]))
    assert [one.text for one in pauses if one] == ["ß" * 39 + "7" + "s" * 200 + "9"]
    assert pauses.count(None) > 1
