"""Matches as a calendar that other programs subscribe to: iCalendar, RFC 5545."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from api.web.result_text import ended_text, score_text
from api.web.words import Words
from projections.answers.rounds import DatedMatch

CALENDAR_TYPE: Final = "text/calendar; charset=utf-8"
CALENDAR_LINE_BYTES_MAX: Final = 75
"""RFC 5545, section 3.1: longer lines are folded."""


def calendar(words: Words, name: str, host: str, matches: Iterable[DatedMatch]) -> bytes:
    """The calendar with this name. `host` makes the ids of its entries unique in the world."""
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Tallybook//Tallybook//EN",
        f"X-WR-CALNAME:{_escaped(name)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
    ]
    for match in matches:
        lines += _entry(words, host, match)
    return "".join(map(_folded, [*lines, "END:VCALENDAR"])).encode()


def _entry(words: Words, host: str, match: DatedMatch) -> list[str]:
    one = match.competition
    begins = f"DTSTART:{_time(match.begins)}"
    if words.is_day(match.begins):  # without an end it lasts the day
        begins = f"DTSTART;VALUE=DATE:{_date(words.local(match.begins))}"
    result = one.result if isinstance(one.result, str) and len(match.names) == 2 else ""
    score = score_text(words, result)
    middle = f" {score} " if score else " \N{EN DASH} "
    number = "" if one.round is None else words("round", number=one.round)
    about = ", ".join(filter(None, (one.round_name or number, "" if score else ended_text(words, result))))
    said = {"SUMMARY": middle.join(match.names), "LOCATION": one.location, "DESCRIPTION": about}
    return [
        "BEGIN:VEVENT",
        f"UID:{match.competition_id}@{host}",
        f"DTSTAMP:{_time(match.updated_at)}",
        f"LAST-MODIFIED:{_time(match.updated_at)}",
        f"SEQUENCE:{match.revised}",
        begins,
        *[f"{name}:{_escaped(text)}" for name, text in said.items() if text],
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]


def _time(moment: datetime) -> str:
    moment = moment.astimezone(UTC)
    return f"{_date(moment)}{moment:T%H%M%SZ}"


def _date(moment: datetime) -> str:
    return f"{moment.year:04}{moment:%m%d}"


def _escaped(text: str) -> str:
    """Text without the marks that separate texts, and without line breaks."""
    for mark in "\\;,":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.splitlines())


def _folded(line: str) -> str:
    """The line in pieces of at most CALENDAR_LINE_BYTES_MAX bytes, none of which divides a character."""
    pieces, piece, size = [], "", 0
    for character in line:
        length = len(character.encode())
        if size + length > CALENDAR_LINE_BYTES_MAX:
            pieces.append(piece)
            piece, size = " ", 1
        piece, size = piece + character, size + length
    return "\r\n".join([*pieces, piece]) + "\r\n"
