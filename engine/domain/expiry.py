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

LASTS_MAX: Final = timedelta(days=36_500)
LASTS_PATTERN: Final = r"^P(\d{1,5}W)?(\d{1,6}D)?(T(\d{1,7}H)?(\d{1,9}M)?)?$"
_DURATION: Final = re.compile(r"P(?:(\d{1,5})W)?(?:(\d{1,6})D)?(?:T(?=\d)(?:(\d{1,7})H)?(?:(\d{1,9})M)?)?")
_MONDAY: Final = datetime(1, 1, 1, tzinfo=UTC)
_EVER: Final = datetime.min.replace(tzinfo=UTC)
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
        return moment - (moment - _MONDAY) % self.length


_LENGTHS: Final = {
    ExpiresOn.MINUTE: timedelta(minutes=1),
    ExpiresOn.DAY: timedelta(days=1),
    ExpiresOn.WEEK: timedelta(weeks=1),
}


@lru_cache(maxsize=1_000)
def duration(text: str) -> timedelta | None:
    """The ISO 8601 duration in `text`, in weeks, days, hours and minutes. None: it is not one, is zero, or is too
    long."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    weeks, days, hours, minutes = [int(number or 0) for number in found.groups()]
    lasts = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes)
    return lasts if timedelta() < lasts <= LASTS_MAX else None


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
            return _EVER

    def is_over(self, took_place: datetime, now: datetime) -> bool:
        """Whether points that took place at `took_place` have expired by `now`."""
        return self.expires_at(took_place) <= now
