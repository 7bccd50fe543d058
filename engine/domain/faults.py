"""What can be wrong with the fields of a command.

Pure. Each `…_faults` returns the faults of one field, or of those that depend on each other.
"""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from engine.domain.commands import AddCompetition, ChangeCompetition
from engine.domain.errors import Fault, Impossible, Unacceptable
from engine.domain.events import Result
from engine.domain.names import name_key
from engine.domain.state import Keyed, RankingState, State
from engine.domain.terms import (
    BEST_MAX,
    COLOR_PATTERN,
    DROPS_MAX,
    PARTICIPANTS_MAX,
    SCORE_PARTICIPANTS_MAX,
    TAGS_MAX,
    CompetitorId,
    UnityId,
    description_fault,
    name_fault,
)

TAKEN_OTHERWISE: Final = "is already the name of a unity of this ranking, in another form of Unicode"
CIRCLE_SHOWN_MAX: Final = 500
"""Characters that name a circle of parents."""

_H = TypeVar("_H", bound=Hashable)

_COLOR: Final = re.compile(COLOR_PATTERN)
_SHOWN_CHARACTERS_MAX: Final = 80


def refuse_if_any(faults: list[Fault]) -> None:
    if faults:
        raise unacceptable(faults)


def unacceptable(faults: Iterable[Fault]) -> Unacceptable:
    """The refusal that lists these faults, each once."""
    return Unacceptable(
        "The request cannot be accepted as it is; correct the fields named.", list(dict.fromkeys(faults))
    )


def within(place: str, faults: Iterable[Fault]) -> list[Fault]:
    """The faults, each with its field placed below `place`."""
    return [Fault(f"{place}.{fault.field}", fault.message) for fault in faults]


def name_faults(field: str, name: str | None | UnsetType) -> list[Fault]:
    fault = None if name is None or name is UNSET else name_fault(name.strip())
    return [Fault(field, fault)] if fault else []


def taken_faults(
    field: str, name: str | UnsetType, ranking: RankingState, its_own: UnityId | None = None
) -> list[Fault]:
    """The fault of a unity's name that another unity of the ranking, other than `its_own`, already has."""
    if name is UNSET:
        return []
    name = name.strip()
    taken = [unity.name for unity_id, unity in ranking.unities.items() if unity_id != its_own]
    if name in taken:
        return [Fault(field, f"this ranking already has a unity {name!r}")]
    return [Fault(field, TAKEN_OTHERWISE)] if name_key(name) in map(name_key, taken) else []


def description_faults(description: str | None, field: str = "description") -> list[Fault]:
    fault = None if description is None else description_fault(description)
    return [Fault(field, fault)] if fault else []


def time_faults(started_at: datetime | None) -> list[Fault]:
    in_utc = started_at is None or started_at.utcoffset() == timedelta()
    return [] if in_utc else [Fault("started_at", "must be in UTC")]


def text_faults(command: AddCompetition | ChangeCompetition) -> list[Fault]:
    """The faults of the texts of a competition, each of which may be empty."""
    texts = {"location": command.location, "scale": command.scale, "round_name": command.round_name}
    return [fault for field, text in texts.items() if text for fault in name_faults(field, text)]


def color_faults(color: str | None | UnsetType) -> list[Fault]:
    if color is None or color is UNSET or _COLOR.fullmatch(color):
        return []
    return [Fault("color", "must be 6 hexadecimal characters, without a leading #")]


def key_faults(key: str | None | UnsetType, those: Keyed[Any, object], its_own: int | None = None) -> list[Fault]:
    """The faults of a key that one of `those` is to have, whose id is `its_own` if it exists already."""
    if key is None or key is UNSET:
        return []
    if fault := name_fault(key.strip()) or ("must not contain a comma" if "," in key else None):
        return [Fault("key", fault)]
    taken = those.by_key(name_key(key))
    return [] if taken in (None, its_own) else [Fault("key", f"{taken} has this key already")]


def tag_faults(tags: tuple[str, ...]) -> list[Fault]:
    faults = [fault for tag in tags for fault in name_faults("tags", tag)]
    faults += [Fault("tags", f"tag {tag!r} is given more than once") for tag in repeated(tags)]
    if len(tags) > TAGS_MAX:
        faults.append(Fault("tags", f"must be at most {TAGS_MAX}"))
    return faults


def parent_faults(state: State, parent_id: CompetitorId | None) -> list[Fault]:
    if parent_id is None or parent_id in state.competitors:
        return []
    return [Fault("parent", f"competitor {parent_id} is not in this tournament")]


def circle_faults(state: State, competitor_id: CompetitorId, parent_id: CompetitorId | None) -> list[Fault]:
    if parent_id not in state.competitors or competitor_id not in _self_and_ancestors(state, parent_id):
        return []
    if parent_id == competitor_id:
        return [Fault("parent", "must be another competitor")]
    return [Fault("parent", f"competitor {parent_id} is below competitor {competitor_id}")]


def _self_and_ancestors(state: State, competitor_id: CompetitorId | None) -> set[CompetitorId]:
    """`competitor_id` and all its ancestors. Raises Impossible if these form a circle, or one of them is missing."""
    line: dict[CompetitorId, None] = {}
    while competitor_id is not None:
        if competitor_id in line:
            raise Impossible(f"a circle of parents: {' → '.join(map(str, (*line, competitor_id)))}"[:CIRCLE_SHOWN_MAX])
        if competitor_id not in state.competitors:
            raise Impossible(f"the parent {competitor_id} is not in this tournament")
        line[competitor_id] = None
        competitor_id = state.competitors[competitor_id].parent_id
    return set(line)


def list_faults(state: State, participants: tuple[CompetitorId, ...]) -> list[Fault]:
    if not participants:
        return [Fault("participants", "must name at least one competitor")]
    return participant_faults(state, participants)


def participant_faults(
    state: State, participants: tuple[CompetitorId, ...], field: str = "participants"
) -> list[Fault]:
    if len(participants) > PARTICIPANTS_MAX:
        return [Fault(field, f"must be at most {PARTICIPANTS_MAX}")]
    unknown = [c for c in participants if c not in state.competitors]
    return [
        *(Fault(field, f"competitor {c} is not in this tournament") for c in unknown),
        *(Fault(field, f"competitor {c} is named more than once") for c in repeated(participants)),
    ]


def drop_faults(drop: tuple[tuple[int, int], ...]) -> list[Fault]:
    faults = []
    if len(drop) > DROPS_MAX:
        faults.append(Fault("drop", f"must be at most {DROPS_MAX} pairs"))
    if not all(0 < dropped < start <= BEST_MAX for start, dropped in drop):
        fault = f"must be pairs of a number of competitions, at most {BEST_MAX}, and a lower number of those dropped"
        faults.append(Fault("drop", fault))
    if not all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(drop)):
        faults.append(Fault("drop", "must be pairs in ascending order, both numbers higher than in the pair before"))
    return faults


def winner_faults(winner_id: CompetitorId | None, participants: tuple[CompetitorId, ...]) -> list[Fault]:
    if winner_id is None or winner_id in participants:
        return []
    return [Fault("winner", f"competitor {winner_id} is not a participant")]


def judged_result(result: Result | None, participants: tuple[CompetitorId, ...]) -> tuple[Result | None, list[Fault]]:
    """`result` in the form that fits the number of participants, and its faults."""
    if result is None:
        return None, []
    if len(participants) <= SCORE_PARTICIPANTS_MAX:
        if isinstance(result, str) and not _is_object(result):
            return result.strip(), name_faults("result", result)
        return None, [Fault("result", "must be a string, the score, if there are at most two participants")]
    if isinstance(result, str):
        try:
            text, result = result, _PERFORMANCES.decode(result)
            if len(result) <= PARTICIPANTS_MAX and _pairs(text) != len(result):  # of a repeated key the last is decoded
                return None, [Fault("result", "names a competitor more than once")]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None, [
                Fault(
                    "result",
                    "must be an object of strings by competitor id if there are more than two participants",
                )
            ]
    if len(result) > PARTICIPANTS_MAX:
        return None, [Fault("result", f"must name at most {PARTICIPANTS_MAX} competitors")]
    known = set(participants)  # a tuple would be scanned for each competitor
    faults = [
        Fault("result", f"competitor {competitor_id} is not a participant")
        for competitor_id in result
        if competitor_id not in known
    ]
    faults += [fault for text in result.values() if not _PLAIN.fullmatch(text) for fault in name_faults("result", text)]
    return {competitor_id: text.strip() for competitor_id, text in result.items()} or None, faults


def _pairs(text: str) -> int:
    """The number of keys in a JSON object of strings, repeated ones included."""
    if "\\" in text:
        return len(json.loads(text, object_pairs_hook=list))
    return text.count('"') // 4


_PERFORMANCES: Final = msgspec.json.Decoder(dict[CompetitorId, str])
_PLAIN: Final = re.compile("[!-~]{1,20}")
"""A text that has no fault, as nearly all performances."""


def kept_result_faults(result: Result | None, participants: tuple[CompetitorId, ...]) -> list[Fault]:
    """Why a result cannot stay when the competition gets these participants."""
    if result is None:
        return []
    if isinstance(result, dict) != (len(participants) > SCORE_PARTICIPANTS_MAX):
        fault = "must be sent, too: up to two participants have a score, more have a performance each"
        return [Fault("result", fault)]
    gone = set(result).difference(participants) if isinstance(result, dict) else ()
    return [
        Fault("result", f"must be sent, too: it has a performance of competitor {one}, who does not take part")
        for one in sorted(gone)
    ]


def _is_object(text: str) -> bool:
    """Whether the text is a JSON object, as performances are sent."""
    try:
        return text.lstrip().startswith("{") and isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def repeated(items: Iterable[_H]) -> list[_H]:
    """The items that occur more than once in `items`, each once."""
    items = list(items)
    if len(set(items)) == len(items):  # as nearly always
        return []
    return [item for item, count in Counter(items).items() if count > 1]


def shortened(text: str) -> str:
    """`text` as an answer may repeat it: never long."""
    return text if len(text) <= _SHOWN_CHARACTERS_MAX else text[:_SHOWN_CHARACTERS_MAX] + "…"


def cited(value: int | str) -> str:
    """`value` as an answer may repeat it in a sentence: quoted if it is text, never long."""
    return repr(shortened(value)) if isinstance(value, str) else shortened(str(value))
