"""The common parts of all imports: chunks, early ends, and judging lines as if others were recorded."""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import UTC, datetime
from typing import Final, TypeVar

from engine.domain.errors import TallybookError
from engine.domain.events import Event, Recorded
from engine.domain.terms import OPERATOR, Sequence

IMPORT_REQUESTS_MAX: Final = 500
"""Requests of an import that are under way at the same time."""


_T = TypeVar("_T")


def chunks(items: Items[_T], most: int) -> Iterator[Items[_T]]:
    """The items, `most` at once."""
    for start in range(0, len(items), most):
        yield items[start : start + most]


class Interrupted(TallybookError):
    """Some lines of the file are done, as `so_far` says. The others were not sent."""

    code = "interrupted"

    def __init__(self, so_far: str) -> None:
        super().__init__(f"Interrupted: {so_far}")


class BrokenOff(TallybookError):
    """Some lines of the file are done, as `so_far` says. The others are not, or their outcome is unknown."""

    code = "broken_off"

    def __init__(self, so_far: str, failure: TallybookError) -> None:
        super().__init__(f"The import failed ({failure.code}): at least {so_far}")


def as_if_recorded(event: Event) -> Recorded:
    """For a board that is never shown: decisions depend on no sequence and no time."""
    return Recorded(Sequence(0), datetime.min.replace(tzinfo=UTC), OPERATOR, None, event)
