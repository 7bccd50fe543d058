"""Queries about the past: their parameters become moments, filters and cursors.

Pure. One `Unreadable` lists every fault under the name of its parameter.

A time is as exact as it is written: 12:30:00 is the whole of that second. Answers show an event with the second that it
was recorded in. So a query for the time that an answer shows includes that event.
"""

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from msgspec import Struct

from api.http.forms import cited, parse_id, shortened
from engine.domain.errors import Fault, Unreadable
from engine.domain.terms import ID_MAX, ActorId, CompetitionId, CompetitorId, Sequence, UnityId
from projections.past.history import Filter
from projections.past.past import AtSequence, AtTime, AtVersion, Cursor, Moment, Range

LINES_DEFAULT: Final = 100
LINES_MAX: Final = 1_000
"""Lines of one page of history."""
STEPS_DEFAULT: Final = 50
STEPS_MAX: Final = 200
"""Steps of one page of an explanation."""
SECOND: Final = timedelta(seconds=1)
_TICK: Final = timedelta(microseconds=1)

_IdT = TypeVar("_IdT")
_T = TypeVar("_T")


class HistoryQuery(Struct, frozen=True, kw_only=True):
    asked: Filter
    bounds: Range
    after: Cursor | None
    limit: int


class ExplainQuery(Struct, frozen=True, kw_only=True):
    """From after the event `start` (0: from the beginning) to after the event `end` (None: the last one)."""

    competitor_id: CompetitorId
    unity_id: UnityId | None
    start: Sequence
    end: Sequence | None
    limit: int


def parse_moment(query: Iterable[tuple[str, str]]) -> Moment | None:
    """The one moment that is asked for; None: now. Raises `Unreadable`, also for more than one moment."""
    parameters = _Parameters(query)
    sequence = parameters.of("at_sequence", _sequence)
    time = parameters.of("at_time", end_of_time)
    version = parameters.of("version", _unity_version)
    parameters.close()
    moments: list[Moment] = []
    if sequence is not None:
        moments.append(AtSequence(sequence))
    if time is not None:
        moments.append(AtTime(time))
    if version is not None:
        moments.append(version)
    if len(moments) > 1:
        faults = [Fault(name, "is one moment too many") for name in parameters.names]
        raise Unreadable("The query names more than one moment; send at_sequence, at_time or version.", faults)
    return moments[0] if moments else None


def parse_history(query: Iterable[tuple[str, str]]) -> HistoryQuery:
    """Which lines are asked for; a `limit` above LINES_MAX means LINES_MAX. Raises `Unreadable`."""
    parameters = _Parameters(query)
    asked = HistoryQuery(
        asked=Filter(
            unity_id=parameters.id("unity", UnityId),
            competitor_id=parameters.id("competitor", CompetitorId),
            competition_id=parameters.id("competition", CompetitionId),
            actor=parameters.of("actor", _actor),
        ),
        bounds=Range(
            first=parameters.of("from_sequence", _sequence),
            last=parameters.of("to_sequence", _sequence),
            since=parameters.of("from_time", begin_of_time),
            until=parameters.of("to_time", end_of_time),
        ),
        after=parameters.of("after", _cursor),
        limit=parameters.limit(LINES_DEFAULT, LINES_MAX),
    )
    parameters.close()
    return asked


def parse_explain(query: Iterable[tuple[str, str]]) -> ExplainQuery:
    """Whose steps are asked for, and which; a `limit` above STEPS_MAX means STEPS_MAX. Raises `Unreadable`."""
    parameters = _Parameters(query)
    competitor_id = parameters.id("competitor", CompetitorId)
    unity_id = parameters.id("unity", UnityId)
    start = parameters.of("from", _beginning)
    end = parameters.of("to", _sequence)
    limit = parameters.limit(STEPS_DEFAULT, STEPS_MAX)
    if "competitor" not in parameters.names:
        parameters.fault("competitor", "is required")
    if start is not None and end is not None and start > end:
        parameters.fault("from", "must not be greater than to")
    parameters.close()
    assert competitor_id is not None
    return ExplainQuery(
        competitor_id=competitor_id, unity_id=unity_id, start=start or Sequence(0), end=end, limit=limit
    )


def cursor_text(cursor: Cursor) -> str:
    """The cursor as `after` takes it."""
    return f"{cursor.sequence}.{cursor.lines}"


class _Parameters:
    """A query while it is read. Each method returns one parameter, or None; what cannot be read is noted as a fault."""

    def __init__(self, query: Iterable[tuple[str, str]]) -> None:
        self._given: dict[str, str] = {}
        self._taken: list[str] = []
        self._faults: list[Fault] = []
        for name, text in query:
            if name in self._given:
                self.fault(name, "is given more than once")
            self._given[name] = text

    @property
    def names(self) -> Collection[str]:
        return self._given.keys()

    def fault(self, name: str, message: str) -> None:
        self._faults.append(Fault(shortened(name), message))

    def of(self, name: str, parse: Callable[[str], _T]) -> _T | None:
        """The parameter as `parse` reads it. The ValueError that `parse` raises says what the text must be."""
        self._taken.append(name)
        text = self._given.get(name)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            self.fault(name, f"{cited(text)} must be {error}")
            return None

    def id(self, name: str, kind: Callable[[int], _IdT]) -> _IdT | None:
        return self.of(name, lambda text: kind(_id(text)))

    def limit(self, default: int, most: int) -> int:
        """How many things are asked for, `most` at most."""
        return min(self.of("limit", _count) or default, most)

    def close(self) -> None:
        """Raises `Unreadable` with every fault, if there is any. A parameter that no method has asked for is a fault
        too."""
        for name in self._given:
            if name not in self._taken:
                self.fault(name, f"is not a parameter of this operation; it takes {', '.join(self._taken)}")
        if self._faults:
            raise Unreadable("The query cannot be read; correct the parameters named.", self._faults)


# ── Values ──────────────────────────────────────────────────────────────────────────────────────────────
# Each raises ValueError, which says what the text must be.

_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?)?Z?", re.ASCII
)
_DIGITS: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_CURSOR: Final = re.compile(r"([1-9][0-9]{0,18})\.(0|[1-9][0-9]{0,8})", re.ASCII)


def _id(text: str) -> int:
    number = parse_id(text)
    if number is None:
        raise ValueError("an id: a whole number from 1 up, in digits only")
    return number


def _number(text: str, least: int) -> int:
    number = int(text) if _DIGITS.fullmatch(text) else -1
    if not least <= number <= ID_MAX:
        raise ValueError(f"a whole number from {least} up, in digits only")
    return number


def _sequence(text: str) -> Sequence:
    return Sequence(_number(text, 1))


def _beginning(text: str) -> Sequence:
    return Sequence(_number(text, 0))


def _count(text: str) -> int:
    return _number(text, 1)


def _actor(text: str) -> ActorId:
    return ActorId(_number(text, 0))


def _unity_version(text: str) -> AtVersion:
    unity, colon, version = text.partition(":")
    number = parse_id(version)
    unity_id = parse_id(unity)
    if not colon or number is None or unity_id is None:
        raise ValueError("<unity id>:<version>, two whole numbers from 1 up")
    return AtVersion(UnityId(unity_id), number)


def _cursor(text: str) -> Cursor:
    written = _CURSOR.fullmatch(text)
    if written is None or int(written[1]) > ID_MAX:
        raise ValueError("what an answer gave as next")
    return Cursor(Sequence(int(written[1])), int(written[2]))


def begin_of_time(text: str) -> datetime:
    """The first moment of the day, minute, second or fraction of a second that `text` names, in UTC."""
    return _time(text)[0]


def end_of_time(text: str) -> datetime:
    """The last moment of it, to the µs."""
    begin, length = _time(text)
    with suppress(OverflowError):
        return begin + length - _TICK
    return datetime.max.replace(tzinfo=UTC)


def _time(text: str) -> tuple[datetime, timedelta]:
    """When the time in `text` begins, and how long it lasts."""
    if written := _TIME.fullmatch(text):
        year, month, day, hour, minute, second, fraction = written.groups()
        with suppress(ValueError):  # the 30th of February, 24 o'clock
            begin = datetime(
                int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0),
                int((fraction or "0").ljust(6, "0")), tzinfo=UTC,
            )  # fmt: skip
            if fraction:
                return begin, timedelta(microseconds=10 ** (6 - len(fraction)))
            return begin, SECOND if second else timedelta(minutes=1) if hour else timedelta(days=1)
    raise ValueError("a time in UTC of the form yyyy-mm-dd HH:ii:ss")
