"""Times, as options take them and as commands show them."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter, Token

from api.interface.fields import FORM_OF_TIMES, FieldMisread, begin_of_time, end_of_time
from engine.domain.times import timestamp


def plain(answered: datetime | str) -> str:
    """The time of an answer as commands show it to people: in UTC, to the second."""
    return timestamp(datetime.fromisoformat(answered) if isinstance(answered, str) else answered)


def begin(_: type, tokens: tuple[Token, ...]) -> datetime:
    """The beginning of the time that an option names. Raises ValueError."""
    return _time(tokens, begin_of_time)


def end(_: type, tokens: tuple[Token, ...]) -> datetime:
    """The end of the time that an option names. Raises ValueError."""
    return _time(tokens, end_of_time)


def _time(tokens: tuple[Token, ...], parse: Callable[[str], datetime]) -> datetime:
    try:
        return parse(tokens[0].value)
    except FieldMisread:
        raise ValueError(f"it must be {FORM_OF_TIMES}") from None


Since = Annotated[datetime | None, Parameter(converter=begin, accepts_keys=False)]
Until = Annotated[datetime | None, Parameter(converter=end, accepts_keys=False)]
