"""The events that touch one competitor, each reduced to its content about that competitor.

Pure. An event touches a competitor if it names the competitor, or is about a competition in which the competitor takes
part, unless it lists the `competitors` whom it is about. Lists of competitors and lines of points are reduced to the
competitor's own. Names of others are left out, because they are personal fields of others.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from engine.domain.events import Event, Recorded
from engine.domain.terms import CompetitionId, CompetitorId

_ONE: Final = ("competitor_id", "parent_id", "winner_id")
"""The fields that name one competitor."""
_LISTS: Final = ("participants", "added", "removed", "competitors")
_LINES: Final = ("deltas", "results", "totals", "silent", "silent_results")
_NAMED: Final = "replaced"
"""The fields whose items begin with the id of a competitor."""


class Touch(Struct, frozen=True):
    """An event that touches a competitor. `told`: its stored fields, reduced to this competitor."""

    recorded: Recorded
    kind: str
    told: dict[str, Any]


def touch(recorded: Recorded, competitor_id: CompetitorId, takes_part: Callable[[CompetitionId], bool]) -> Touch | None:
    """The event, reduced to its content about a competitor; None: it does not touch the competitor. `takes_part`:
    whether the competitor takes part in a competition."""
    event: Any = recorded.event
    is_theirs = (
        "competition" in event.touches and not hasattr(event, "competitors") and takes_part(event.competition_id)
    )
    if not (is_theirs or _names(event, competitor_id)):
        return None
    told = msgspec.to_builtins(event, str_keys=True)
    for name in _LISTS:
        if name in told:
            told[name] = [one for one in told[name] if one == competitor_id]
    for name in (*_LINES, _NAMED):
        if name in told:
            told[name] = [line for line in told[name] if line[0] == competitor_id]
    if isinstance(result := told.get("result"), dict):
        told["result"] = {key: text for key, text in result.items() if key == str(competitor_id)}
    if told.get("competitor_id", competitor_id) != competitor_id:
        told = {name: value for name, value in told.items() if name not in event.personal}
    return Touch(recorded, event.tag, told)


def _names(event: Event, competitor_id: CompetitorId) -> bool:
    result = getattr(event, "result", None)
    return (
        any(getattr(event, name, None) == competitor_id for name in _ONE)
        or any(competitor_id in (getattr(event, name, ()) or ()) for name in _LISTS)
        or any(line.competitor_id == competitor_id for name in _LINES for line in getattr(event, name, ()))
        or any(competitor_id == named for named, _ in getattr(event, _NAMED, ()))
        or (isinstance(result, dict) and competitor_id in result)
    )
