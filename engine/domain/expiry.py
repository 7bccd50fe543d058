"""How long points count, in a unity whose points expire.

Pure. Points count until their age, by the world's clock, reaches the `lasts` of the unity. They expire at the unity's
next boundary. All boundaries are in UTC: the start of a minute, of a day, or of a week on Monday. Each week boundary is
also a day boundary, and each day boundary is also a minute boundary.
"""

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from engine.domain.terms import FIRST_TIME

_DAYS: Final = "[1-9][0-9]{0,4}D"
_TIME: Final = "T(?:[1-9][0-9]{0,5}H(?:[1-9][0-9]{0,7}M)?|[1-9][0-9]{0,7}M)"
LASTS_PATTERN: Final = f"P(?:[1-9][0-9]{{0,3}}W(?:{_DAYS})?(?:{_TIME})?|{_DAYS}(?:{_TIME})?|{_TIME})"
"""Of a duration. At least one of its parts is there, and none is zero; the digits of each bound how long it lasts."""
LASTS_FORM: Final = (
    "an ISO 8601 duration in weeks, days, hours and minutes, such as P52W, P90D or PT1H30M, with at most 9999W, "
    "99999D, 999999H and 99999999M"
)
_DURATION: Final = re.compile(LASTS_PATTERN)
_PART: Final = re.compile("([0-9]+)([WDHM])")
_UNITS: Final = {"W": timedelta(weeks=1), "D": timedelta(days=1), "H": timedelta(hours=1), "M": timedelta(minutes=1)}
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class ExpiresOn(StrEnum):
    """The boundaries at which points expire."""

    MINUTE = "minute"
    DAY = "day"
    WEEK = "week"

    @property
    def length(self) -> timedelta:
        """The time from one boundary to the next."""
        return _LENGTHS[self]

    def boundary(self, moment: datetime) -> datetime:
        """The last boundary that is not after `moment`."""
        return moment - (moment - FIRST_TIME) % self.length


_LENGTHS: Final = {
    ExpiresOn.MINUTE: timedelta(minutes=1),
    ExpiresOn.DAY: timedelta(days=1),
    ExpiresOn.WEEK: timedelta(weeks=1),
}


@lru_cache(maxsize=1_000)
def duration(text: str) -> timedelta | None:
    """The ISO 8601 duration in `text`, in weeks, days, hours and minutes. None: it is not one, or is too long."""
    if not _DURATION.fullmatch(text):
        return None
    return sum([int(number) * _UNITS[unit] for number, unit in _PART.findall(text)], timedelta())


class Expiry(Struct, frozen=True):
    """How long points of a unity count. `lasts`: the duration as declared. `on`: the boundaries at which they
    expire."""

    lasts: str
    on: ExpiresOn

    @property
    def age(self) -> timedelta:
        """The age from which points no longer count."""
        found = duration(self.lasts)
        assert found is not None
        return found

    def boundary(self, moment: datetime) -> datetime:
        """The last boundary that is not after `moment`."""
        return self.on.boundary(moment)

    def expires_at(self, took_place: datetime) -> datetime:
        """The boundary at which points that took place at `took_place` expire."""
        try:
            end = took_place + self.age
            last = self.boundary(end)
            return last if last == end else last + self.on.length
        except OverflowError:
            return _NEVER

    def over_up_to(self, now: datetime) -> datetime:
        """The latest time at which points can have taken place and have expired by `now`."""
        try:
            return self.boundary(now) - self.age
        except OverflowError:
            return FIRST_TIME

    def is_over(self, took_place: datetime, now: datetime) -> bool:
        """Whether points that took place at `took_place` have expired by `now`."""
        return self.expires_at(took_place) <= now
