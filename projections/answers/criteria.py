"""The criteria of a classification, as they are sent and shown."""

from collections.abc import Sequence as Items
from typing import Annotated, Literal

from msgspec import Meta, Struct

from engine.domain.events import Criterion
from engine.domain.terms import BEST_MAX, ID_MAX, UnityId


class CriterionShape(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One criterion, as it is sent and shown."""

    unity: Annotated[int, Meta(ge=1, le=ID_MAX)]
    best: Annotated[int, Meta(ge=1, le=BEST_MAX)] | None = None
    among: Annotated[Literal["tied"], Meta(extra_json_schema={"type": "string"})] | None = None
    first: Annotated[
        bool, Meta(description="the first to reach their total is ahead; the value is the sequence of that event")
    ] = False


Criteria = list[CriterionShape]
"""The value of the field `criteria`."""


def criteria_shape(criteria: Items[Criterion]) -> Criteria:
    return [CriterionShape(one.unity_id, one.best, one.among, one.first) for one in criteria]


def criteria_of(shapes: Items[CriterionShape]) -> tuple[Criterion, ...]:
    """The criteria that were sent or shown like this."""
    return tuple([Criterion(UnityId(one.unity), one.best, one.among, one.first) for one in shapes])
