"""The words of a board, in its language, with numbers and times as they are written in that language.

`words.json` has all words. Scripts get those under `script`, as a module for each language (`files.py`).
`static/words.js` writes the same.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from api.interface.sports import ANY_SPORT, PLACE, Sport
from api.web.html import Child, Html, element, joined
from engine.domain.notation import NONE, WHOLE, Notation
from engine.domain.presentation import LANGUAGES, ZONE_DEFAULT, in_zone
from engine.domain.times import timestamp
from projections.answers.zones import zone_of

_DIGITS_UNGROUPED_MAX: Final = 4
_THIN_SPACE: Final = "\u202f"
_ENDS_OF_DAY: Final = ("000000", "235959")
_OF_SPORTS: Final = {"competitor": "{Team}"}
"""What is called otherwise where the sport is known."""
_PLACES: Final = {1: "place_first", 2: "place_second", 3: "place_third"}


@cache
def table() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """All words: those of pages alone and those of scripts, too, by key and language."""
    return msgspec.json.decode(
        Path(__file__).with_name("words.json").read_bytes(), type=dict[str, dict[str, dict[str, str]]]
    )


@cache
def texts_of(language: str, sport: Sport = ANY_SPORT) -> Mapping[str, str]:
    """All words of a language, by key, with those of a sport."""
    texts = {key: texts[language] for part in table().values() for key, texts in part.items()}
    if sport != ANY_SPORT:
        texts |= _OF_SPORTS
    return {key: sport(text, language) for key, text in texts.items()}


class Words(Struct, frozen=True):
    """The words of a `language`, with times of a `zone`, and what a `sport` calls competitors and competitions."""

    language: str
    zone: str = ZONE_DEFAULT
    sport: Sport = ANY_SPORT

    def __call__(self, key: str, **values: object) -> str:
        """The words, with values in their places."""
        text = texts_of(self.language, self.sport)[key]
        return text.format_map(values) if values else text

    def html(self, key: str, **values: Child) -> Html:
        """The same, with values that may be HTML."""
        parts: list[Child] = [*PLACE.split(texts_of(self.language, self.sport)[key])]
        parts[1::2] = [values[str(name)] for name in parts[1::2]]
        return joined(parts)

    def counted(self, key: str, number: int, **values: object) -> str:
        """The words for one, or for several."""
        is_one = number == 1 or (number == 0 and self.language == "fr")
        return self(f"{key}_{'one' if is_one else 'other'}", number=self.number(number), **values)

    # ── Numbers ─────────────────────────────────────────────────────────────────────────────────────────

    def number(self, number: int | None, notation: Notation = WHOLE) -> str:
        """A total: with a real minus, and digits in groups from five digits on; None: a dash."""
        if number is None:
            return NONE
        whole, point, rest = notation.text(abs(number)).partition(".")
        if notation.time is None and len(whole) > _DIGITS_UNGROUPED_MAX:
            whole = f"{int(whole):,}".replace(",", _THIN_SPACE)
        size = whole + (self("point") if point else "") + rest
        return f"\N{MINUS SIGN}{size}" if number < 0 else size

    def place(self, number: int) -> str:
        """A position: 2nd."""
        ends_like = number % 10 if self.language == "en" and number // 10 % 10 != 1 else number
        return self(_PLACES.get(ends_like, "place_nth"), number=self.number(number))

    def signed(self, number: int, notation: Notation = WHOLE) -> str:
        return f"{'+' if number > 0 else ''}{self.number(number, notation)}"

    def read(self, text: str) -> str:
        """A text that `number` wrote in English, in this language."""
        return text.replace(".", self("point"))

    # ── Times ───────────────────────────────────────────────────────────────────────────────────────────

    def day(self, moment: datetime) -> str:
        """The day, in the zone."""
        local = self.local(moment)
        month = self("months").split("|")[local.month - 1]
        return self("first_day" if local.day == 1 else "day", day=local.day, month=month, year=local.year)

    def time(self, moment: datetime) -> str:
        """The time in the zone, to the minute."""
        local = self.local(moment)
        return self("time", day=self.day(moment), clock=f"{local:%H:%M}", zone=_offset_text(local))

    def when(self, moment: datetime) -> str:
        """As `time`; the day alone for its first and its last second, which stand for a day without a time."""
        return self.day(moment) if self.is_day(moment) else self.time(moment)

    def time_element(self, moment: datetime) -> Html:
        """The time, for people and for programs."""
        return element("time", self.time(moment), datetime=f"{timestamp(moment).replace(' ', 'T')}Z")

    def when_element(self, moment: datetime) -> Html:
        """As `time_element`, for what `when` writes."""
        if not self.is_day(moment):
            return self.time_element(moment)
        return element("time", self.day(moment), datetime=self.local(moment).date().isoformat())

    def is_day(self, moment: datetime) -> bool:
        """Whether it is the first or the last second of a day in the zone, which stand for a day without a time."""
        return f"{self.local(moment):%H%M%S}" in _ENDS_OF_DAY

    def local(self, moment: datetime) -> datetime:
        """The moment in the zone."""
        return in_zone(moment, zone_of(self.zone))


ENGLISH: Final = Words("en")


def words_for(zone: str, *languages: str | None) -> Words:
    """The words of a page: in the first of the languages that is one, else in English."""
    language = next(filter(None, languages), "en")
    return Words(language if language in LANGUAGES else "en", zone)


def _offset_text(local: datetime) -> str:
    """The offset of the time from UTC: UTC, UTC+2, UTC+5:30."""
    offset = local.utcoffset()
    minutes = 0 if offset is None else round(offset.total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    sign = "" if not minutes else "+" if minutes > 0 else "\N{MINUS SIGN}"
    return f"UTC{sign}{hours if minutes else ''}{f':{rest:02}' if rest else ''}"
