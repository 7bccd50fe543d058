"""The criteria of a classification, as they are sent and shown."""

import re
from collections.abc import Sequence as Items
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from engine.domain.events import Criterion
from engine.domain.terms import BEST_MAX, DROPS_MAX, ID_MAX, UnityId

_Results = Annotated[int, Meta(ge=1, le=BEST_MAX)]


class CriterionShape(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One criterion, as it is sent and shown."""

    unity: Annotated[int, Meta(ge=1, le=ID_MAX)]
    best: _Results | None = None
    among: Annotated[Literal["tied"], Meta(extra_json_schema={"type": "string"})] | None = None
    first: Annotated[
        bool, Meta(description="the first to reach their total is ahead; the value is the sequence of that event")
    ] = False
    drop: Annotated[
        list[tuple[_Results, _Results]],
        Meta(max_length=DROPS_MAX, description="from this many competitions on, this many of the worst are dropped"),
    ] = []


_DROP: Final = re.compile(r"\s*([0-9]{1,9})\s*:\s*([0-9]{1,9})\s*", re.ASCII)


def drop_text(drop: Items[tuple[int, int]]) -> str:
    """As people type it: `4:1, 8:2`."""
    return ", ".join([f"{start}:{dropped}" for start, dropped in drop])


def drop_of(text: str) -> tuple[tuple[int, int], ...]:
    """What `drop_text` writes; empty: none. Raises ValueError."""
    found = [_DROP.fullmatch(one) for one in text.split(",")] if text.strip() else []
    pairs = [(int(one[1]), int(one[2])) for one in found if one is not None]
    if len(pairs) < len(found):
        raise ValueError(
            "must be like 4:1, 8:2: from 4 competitions on without the worst, from 8 without the two worst"
        )
    return tuple(pairs)


Criteria = list[CriterionShape]
"""The value of the field `criteria`."""


def criteria_shape(criteria: Items[Criterion]) -> Criteria:
    return [CriterionShape(one.unity_id, one.best, one.among, one.first, [*one.drop]) for one in criteria]


def criteria_of(shapes: Items[CriterionShape]) -> tuple[Criterion, ...]:
    """The criteria that were sent or shown like this."""
    return tuple([Criterion(UnityId(one.unity), one.best, one.among, one.first, (*one.drop,)) for one in shapes])
