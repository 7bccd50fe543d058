"""How numbers are written for people: each is read back as what it was, and what does not fit is refused."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.notation import DECIMALS_MAX, Notation

NOTATIONS: Final = st.one_of(
    st.builds(Notation, decimals=st.integers(0, DECIMALS_MAX)),
    st.builds(Notation, time=st.sampled_from(["s", "ms"])),
)
TENTHS, SECONDS, MILLISECONDS = Notation(decimals=1), Notation(time="s"), Notation(time="ms")


@given(NOTATIONS, st.integers(-(2**63), 2**63))
def test_what_is_written_is_read_as_the_same_number(notation: Notation, number: int) -> None:
    assert notation.number(notation.text(number)) == number


@pytest.mark.parametrize(
    ("notation", "number", "text"),
    [
        (Notation(), -7, "-7"),
        (TENTHS, 125, "12.5"),
        (TENTHS, 120, "12.0"),
        (TENTHS, -5, "-0.5"),
        (Notation(decimals=6), 1, "0.000001"),
        (SECONDS, 7397, "2:03:17"),
        (SECONDS, 59, "0:59"),
        (SECONDS, 3600, "1:00:00"),
        (SECONDS, 360_000, "100:00:00"),
        (MILLISECONDS, 7_397_400, "2:03:17.4"),
        (MILLISECONDS, 9_058, "0:09.058"),
        (MILLISECONDS, -60_000, "-1:00"),
    ],
)
def test_a_number_has_one_text(notation: Notation, number: int, text: str) -> None:
    assert notation.text(number) == text


@pytest.mark.parametrize(
    ("notation", "text", "number"),
    [
        (Notation(), "+7", 7),
        (TENTHS, "12", 120),
        (TENTHS, "\N{MINUS SIGN}0.5", -5),
        (Notation(decimals=2), "1.5", 150),
        (SECONDS, "90:00", 5400),
        (SECONDS, "45", 45),
        (MILLISECONDS, "9.58", 9580),
        (MILLISECONDS, "9,58", 9580),
        (MILLISECONDS, "2:03:17,4", 7_397_400),
        (TENTHS, "12,5", 125),
        (TENTHS, "-12½", -125),
        (TENTHS, "½", 5),
        (TENTHS, "1/2", 5),
        (Notation(decimals=2), "\N{MINUS SIGN}½", -50),
        (MILLISECONDS, "02:03:17.40", 7_397_400),
    ],
)
def test_people_may_write_it_otherwise(notation: Notation, text: str, number: int) -> None:
    assert notation.number(text) == number


@pytest.mark.parametrize(
    ("notation", "says", "texts"),
    [
        (
            Notation(),
            "must be a whole number, in digits only",
            ["", "-", "0.5", "0,5", "1½", "1,234", "1.", "1e3", "0x1", "1_000", " 1", "\N{FULLWIDTH DIGIT ONE}"],
        ),
        (
            TENTHS,
            "must be a number with at most 1 decimal, such as 12.5",
            ["1.25", "1,25", ".5", ",5", "1.", "1,", "1:30", "--1", "½½", "1.5½", "1,000.5", "1.000,5", "1/4"],
        ),
        (Notation(decimals=3), "must be a number with at most 3 decimals, such as 12.5", ["1.0000", "1.-5"]),
        (
            SECONDS,
            "must be a time, such as 2:03:17, 3:05 or 45",
            ["2:3:17", "1:60", "1:2:3:4", "3:05.4", ":05", "1:60:00"],
        ),
        (MILLISECONDS, "must be a time, such as 2:03:17.4, 3:05 or 45", ["3:05.1234", "3:05.", "2h"]),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(notation: Notation, says: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ValueError, match="must be") as refused:
            notation.number(text)
        assert str(refused.value) == says
