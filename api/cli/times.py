"""Times, as options take them and as commands show them."""

from collections.abc import Callable
from datetime import datetime

from cyclopts import Token

from api.interface import queries
from api.interface.answers import timestamp


def time_text(value: datetime | None) -> str | None:
    """`value` as answers show it, in UTC."""
    return None if value is None else timestamp(value)


def begin(_: type, tokens: tuple[Token, ...]) -> datetime:
    """The beginning of the time that an option names. Raises ValueError."""
    return _time(tokens, queries.begin_of_time)


def end(_: type, tokens: tuple[Token, ...]) -> datetime:
    """The end of the time that an option names. Raises ValueError."""
    return _time(tokens, queries.end_of_time)


def _time(tokens: tuple[Token, ...], parse: Callable[[str], datetime]) -> datetime:
    try:
        return parse(tokens[0].value)
    except ValueError as error:
        raise ValueError(f"it must be {error}") from None
