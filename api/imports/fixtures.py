"""Fixtures of a league by the circle method: who meets whom in which round, at home or away, when and where. Pure.

All but one team stand in a circle, which turns by one place in each round; the last one meets whoever comes to the top.
Home and away change so that a team has the same at most twice running, and as often as possible only once (de Werra,
"Scheduling in Sports", 1981). With an odd number of teams, the last one is nobody: who meets it has a bye.

They become the CSV that the importer takes, so they are recorded, resumed and undone as a file is.
"""

import re
from collections.abc import Callable
from collections.abc import Sequence as Items
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from api.interface.cells import csv_text
from engine.domain.errors import Fault, Unacceptable
from engine.domain.faults import refuse_if_any, unacceptable
from engine.domain.terms import CompetitorId

FIXTURE_TEAMS_MAX: Final = 200
COLUMNS: Final = ("date", "participants", "score", "group", "round", "location")
_DURATION: Final = re.compile(r"([0-9]{1,4}) *(d|h|min)", re.ASCII)
_SIZES: Final = {"d": "days", "h": "hours", "min": "minutes"}


class Fixture(Struct, frozen=True, kw_only=True):
    """`begins`: in the tournament's zone."""

    round: int
    home: CompetitorId
    away: CompetitorId
    begins: datetime
    location: str


class Fixtures(Struct, frozen=True):
    """`byes`: by round, who has no match."""

    fixtures: list[Fixture]
    byes: dict[int, CompetitorId]


class FixturePlan(Struct, frozen=True, kw_only=True):
    """What is wanted of fixtures. `day`, `clock`: of the first round, in the tournament's zone, as 2026-09-05 and
    15:00; `every`: from round to round, as 7d, 2h or 20min. `places`: of the matches of a round, in turn; `lasts`: how
    long each is taken by one, as 20min. `twice`: everybody is at home to everybody."""

    day: str
    clock: str = ""
    every: str = "7d"
    places: tuple[str, ...] = ()
    lasts: str = ""
    twice: bool = False
    group: str = ""

    def of(self, teams: Items[CompetitorId]) -> Fixtures:
        """The fixtures of these teams. Raises Unacceptable."""
        begins, between, lasts = self._times()
        if not 2 <= len(teams) <= FIXTURE_TEAMS_MAX:
            raise Unacceptable(f"Fixtures are for 2 to {FIXTURE_TEAMS_MAX} teams; this ranking has {len(teams):,}.")
        places, matches = tuple(dict.fromkeys(self.places)), len(teams) // 2
        self._refuse_unfit(matches, len(places) or matches, between, lasts)
        found, byes = list[Fixture](), dict[int, CompetitorId]()
        planned = rounds(len(teams), twice=self.twice)
        try:
            starts = [begins + number * between for number in range(len(planned) + 1)]
        except OverflowError:
            raise Unacceptable("The last rounds would take place after the year 9999.") from None
        for number, (at, pairs) in enumerate(zip(starts, planned, strict=False), start=1):
            for turn, (home, away) in enumerate(pairs):
                before, place = divmod(turn, len(places) or matches)
                begun, location = at + before * lasts, places[place] if places else ""
                found.append(Fixture(round=number, home=teams[home], away=teams[away], begins=begun, location=location))
            playing = {team for pair in pairs for team in pair}
            for one in {*range(len(teams))} - playing:
                byes[number] = teams[one]
        return Fixtures(found, byes)

    def csv(self, fixtures: Fixtures, text_of: Callable[[CompetitorId], str]) -> str:
        """The text that the importer takes. `text_of`: how it names a team."""
        form = "%Y-%m-%d %H:%M" if self._has_times else "%Y-%m-%d"
        lines = [
            (
                f"{one.begins:{form}}",
                f"{text_of(one.home)}|{text_of(one.away)}",
                "",
                self.group,
                one.round,
                one.location,
            )
            for one in fixtures.fixtures
        ]
        return csv_text([COLUMNS, *lines])

    @property
    def _has_times(self) -> bool:
        return bool(self.clock) or not self.every.strip().endswith("d")

    def _refuse_unfit(self, matches: int, places: int, between: timedelta, lasts: timedelta) -> None:
        """Refuses rounds with this many matches if a place or a team would have two of them at a time."""
        turns = -(-matches // places)
        if self._has_times and turns > 1 and not lasts:
            why = f"{matches} matches at one time need {matches} places; add some, or say how long each match takes"
            raise unacceptable([Fault("places", why)])
        if between < turns * lasts:
            minutes = turns * lasts // timedelta(minutes=1)
            why = f"a round takes {minutes:,} minutes at these places, so the next one must begin later"
            raise unacceptable([Fault("every", why)])

    def _times(self) -> tuple[datetime, timedelta, timedelta]:
        """When the first round begins, and the times from round to round and from match to match."""
        faults, begins = list[Fault](), datetime.min
        try:
            begins = datetime.strptime(self.day, "%Y-%m-%d")
        except ValueError:
            faults.append(Fault("day", "must be a day, such as 2026-09-05"))
        try:
            if self.clock:
                begins = datetime.combine(begins, datetime.strptime(self.clock, "%H:%M").time())
        except ValueError:
            faults.append(Fault("time", "must be a time, such as 15:00"))
        between, lasts = _duration(self.every), _duration(self.lasts) if self.lasts else timedelta()
        if not between:
            faults.append(Fault("every", "must be a number of days, hours or minutes, such as 7d, 2h or 20min"))
        if lasts and not self._has_times:
            faults.append(Fault("time", "must be said where matches last a while"))
        if lasts is None:
            faults.append(Fault("lasts", "must be a number of hours or minutes, such as 2h or 20min"))
        refuse_if_any(faults)
        return begins, between or timedelta(), lasts or timedelta()


def _duration(text: str) -> timedelta | None:
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else timedelta(**{_SIZES[found[2]]: int(found[1])})


def rounds(teams: int, *, twice: bool) -> list[list[tuple[int, int]]]:
    """The pairs of each round, the home team first, of teams numbered from 0. The second half has the first one's
    venues changed, and the pairs of the first round last: otherwise, a team could have three home matches running."""
    size = teams + teams % 2 - 1
    once = []
    for turn in range(size):
        pairs = [((turn + step) % size, (turn - step) % size) for step in range(1, (size + 1) // 2)]
        pairs = [pair if step % 2 else pair[::-1] for step, pair in enumerate(pairs, start=1)]
        if teams % 2 == 0:
            pairs.insert(0, (size, turn) if turn % 2 else (turn, size))
        once.append(pairs)
    back = [[pair[::-1] for pair in pairs] for pairs in once]
    return once + back[1:] + back[:1] if twice else once
