"""Time zones by their IANA names, and the days of a tournament in a zone.

Zones are those of the package tzdata, not of the machine, whose may be older: all processes of a release have the same.
"""

import difflib
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any, Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones, reset_tzpath

import msgspec
from msgspec import Struct

from engine.domain.presentation import ZONE_DEFAULT, zone_fault
from projections.board.board import Board

NEAR_ZONES_MAX: Final = 3
_COMPARED_CHARACTERS_MAX: Final = 100
"""The first ones of an unknown name, with which similar names are sought."""
_NOT_A_PLACE: Final = "Factory"
"""A name that Python lists, and browsers do not know."""

reset_tzpath(to=())


class Day(datetime):
    """The first or the last moment of a day that was named without a zone, as if it were a day in UTC. `located`
    converts it to the tournament's day."""

    def located(self, zone: tzinfo) -> datetime:
        """The same moment of the same day in `zone`, in UTC. A day in which an hour occurs twice has both."""
        local = datetime(*self.timetuple()[:6], self.microsecond, zone, fold=1 if self.microsecond else 0)
        try:
            return local.astimezone(UTC)
        except OverflowError:  # before the year 1, or after 9999
            return local.replace(tzinfo=UTC)


_S = TypeVar("_S", bound=Struct)


def with_days(board: Board, value: _S) -> _S:
    """The question or command, with the days of the tournament in place of those that are named without a zone."""
    days = {name: one for name, one in msgspec.structs.asdict(value).items() if isinstance(one, Day)}
    return msgspec.structs.replace(value, **days_in(board, days)) if days else value


def days_in(board: Board, said: Mapping[str, Any]) -> dict[str, Any]:
    """What is `said`, with the days of the tournament."""
    zone = zone_of(board.publication.presentation.zone)
    return {name: value.located(zone) if isinstance(value, Day) else value for name, value in said.items()}


@cache
def zone_of(name: str) -> tzinfo:
    """The zone with this name; UTC if this release lacks it, although it was known where it was declared."""
    if name == ZONE_DEFAULT:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def skipped_time(local: datetime) -> str | None:
    """Why there is no such time in its zone; None: there is one."""
    zone = local.tzinfo
    if local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return None
    return f"{local:%Y-%m-%d %H:%M} does not exist in {zone}: clocks are put forward then"


def unknown_zone(name: str) -> str | None:
    """Why there is no zone with this name, with similar names; None: there is one."""
    fault = zone_fault(name)
    if fault is None and name in _names():
        return None
    near = _near(name[:_COMPARED_CHARACTERS_MAX])
    return (fault or "is not a known time zone") + (f"; similar: {', '.join(near)}" if near else "")


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones() - {_NOT_A_PLACE})


def _near(name: str) -> list[str]:
    """Names like this one, or with a city like it."""
    wanted = name.strip().replace(" ", "_").lower()
    by_text = {one.lower(): one for one in sorted(_names())}
    by_text |= {one.rpartition("/")[2].lower(): one for one in sorted(_names()) if "/" in one and "Etc/" not in one}
    found = difflib.get_close_matches(wanted.rpartition("/")[2], by_text, NEAR_ZONES_MAX, cutoff=0.7)
    found += difflib.get_close_matches(wanted, by_text, NEAR_ZONES_MAX, cutoff=0.7)
    return list(dict.fromkeys([by_text[one] for one in found]))[:NEAR_ZONES_MAX]
