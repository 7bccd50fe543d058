"""The criteria of a classification, as they are sent and shown."""

import re
from collections.abc import Sequence as Items
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

from engine.domain.events import Criterion
from engine.domain.notation import Notation
from engine.domain.terms import (
    BEST_MAX,
    CUTS_MAX,
    DROPS_MAX,
    ID_MAX,
    TiebreakCode,
    TiebreakEdition,
    TiebreakPairing,
    UnityId,
)
from projections.board.tiebreaks import notation_of_value

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
    tiebreak: (
        Annotated[
            TiebreakCode,
            Meta(description="not totals, but who met whom: a tie-break of FIDE's regulations, such as BH"),
        ]
        | None
    ) = None
    cut: Annotated[int, Meta(ge=0, le=CUTS_MAX, description="how many of the lowest contributions are left out")] = 0
    median: Annotated[
        int, Meta(ge=0, le=CUTS_MAX, description="how many of the lowest and of the highest are left out")
    ] = 0
    limit: Annotated[
        int, Meta(ge=-CUTS_MAX, le=CUTS_MAX, description="by how many half points the limit of KS is shifted")
    ] = 0
    edition: (
        Annotated[TiebreakEdition, Meta(description="of the regulations; by default that of the first competition")]
        | None
    ) = None
    pairing: Annotated[TiebreakPairing, Meta(description="how the rounds are paired: swiss by default")] | None = None


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


_SAME: Final = [name for name in CriterionShape.__struct_fields__ if name not in ("unity", "drop")]
Criteria = list[CriterionShape]
"""The value of the field `criteria`."""


def criteria_shape(criteria: Items[Criterion]) -> Criteria:
    return [
        CriterionShape(one.unity_id, **{name: getattr(one, name) for name in _SAME}, drop=[*one.drop])
        for one in criteria
    ]


def criteria_of(shapes: Items[CriterionShape]) -> tuple[Criterion, ...]:
    """The criteria that were sent or shown like this."""
    return tuple(
        [
            Criterion(UnityId(one.unity), **{name: getattr(one, name) for name in _SAME}, drop=(*one.drop,))
            for one in shapes
        ]
    )


def value_notation(shape: CriterionShape, points: Notation) -> Notation:
    """The notation of the values of a criterion, in a unity with this notation."""
    (criterion,) = criteria_of([shape])
    return notation_of_value(criterion, points)


def tiebreak_name(criterion: Criterion | CriterionShape) -> str:
    """The name of its tie-break as the regulations write it, such as `BH/C1`."""
    name = str(criterion.tiebreak)
    for letter, number in (("C", criterion.cut), ("M", criterion.median)):
        name = f"{name}/{letter}{number}" if number else name
    return f"{name}/L{criterion.limit:+}" if criterion.limit else name


_NAME: Final = re.compile(r"([A-Z]+)(?:/([CM])([0-9]{1,2})|/L([+-][0-9]{1,2}))?")


def named_tiebreak(text: str) -> dict[str, Any] | None:
    """The fields of a criterion for the name of a tie-break; None: it is none."""
    found = _NAME.fullmatch(text.strip().upper())
    if found is None or found[1] not in get_args(TiebreakCode):
        return None
    letter, cuts, limit = found[2], found[3], found[4]
    sizes = {"cut": letter == "C" and cuts, "median": letter == "M" and cuts, "limit": limit}
    return {"tiebreak": found[1], **{name: int(size) for name, size in sizes.items() if size}}
