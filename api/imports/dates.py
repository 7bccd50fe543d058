"""Dates as spreadsheets write them: day, month and year in numbers, in the order of a country; and scores that a
spreadsheet took for dates and times. Pure."""

import re
from collections.abc import Iterable
from datetime import date
from typing import Final, Literal

from engine.domain.errors import Unreadable

DateOrder = Literal["day-first", "month-first"]
_DATE: Final = re.compile(r"([0-9]{1,2})(?P<separator>[/.])([0-9]{1,2})(?P=separator)([0-9]{4})((?: .*)?)")
"""With dots, the day is always first."""
_DAY: Final = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T].*)?")
_MONTH: Final = (
    "(?:jan|feb|fév|fev|mar|mär|mrz|apr|avr|abr|may|mai|mag|jun|jui|giu|jul|lug|aug|aoû|ago|sep|set|oct|okt|ott|out|nov|"
    r"dec|dez|déc|dic|ene|gen)[a-z]*\.?"
)
_DATE_OF_SCORE: Final = re.compile(
    rf"[0-9]{{1,2}}(?:[-/]|\. ?){_MONTH}|{_MONTH}[-/ ][0-9]{{1,2}}|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}.*|{_DATE.pattern}",
    re.IGNORECASE | re.ASCII,
)
_TIME_OF_SCORE: Final = re.compile("[0-9]{1,2}:[0-9]{2}:00(?: [AP]M)?")


def is_no_day(text: str) -> bool:
    """Whether it has the form of a day, perhaps with a time, that is in no calendar: `2026-02-31`."""
    if (found := _DAY.fullmatch(text)) is None:
        return False
    try:
        date(*map(int, found.groups()))
    except ValueError:
        return True
    return False


def spoilt(score: str, participants: int) -> str | None:
    """What is wrong with a score that a spreadsheet has changed: 2-1 into `02-Jan` or, between two participants, 21:19
    into `21:19:00`. None: nothing shows that it has. `participants`: how many there are."""
    is_time = participants == 2 and _TIME_OF_SCORE.fullmatch(score) is not None
    if not is_time and not any(_DATE_OF_SCORE.fullmatch(part.strip()) for part in score.split("|")):
        return None
    return (
        f"{score!r} is what a spreadsheet makes of a score such as 2-1 or 21:19; "
        "format the column as text there, and type the score again"
    )


def order_of(dates: Iterable[str]) -> DateOrder:
    """The order of these dates, which is asked for if all of them could have either. Raises Unreadable with the
    question."""
    either = ""
    for text in dates:
        if (found := _DATE.fullmatch(text)) is not None and found[2] == "/":
            if int(found[1]) > 12:
                return "day-first"
            if int(found[3]) > 12:
                return "month-first"
            if int(found[1]) != int(found[3]):
                either = either or text
    if either:
        raise Unreadable(
            f"Does {either} have the day or the month first? Say so for the whole file: --dates day-first or --dates "
            "month-first."
        )
    return "day-first"


def year_first(text: str, order: DateOrder) -> str:
    """The date, with what follows it, as everything else reads it."""
    found = _DATE.fullmatch(text)
    if found is None:
        return text
    first, separator, second, year, rest = found.groups()
    month, day = (first, second) if order == "month-first" and separator == "/" else (second, first)
    return f"{year}-{month:0>2}-{day:0>2}{rest}"
