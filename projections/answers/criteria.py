"""The criteria of a classification, as they are sent and shown."""

import re
from collections.abc import Sequence as Items
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from engine.domain.events import Criterion
from engine.domain.notation import INFINITE, Notation
from engine.domain.terms import (
    BEST_MAX,
    CUTS_MAX,
    DROPS_MAX,
    ID_MAX,
    Sort,
    TiebreakCode,
    TiebreakEdition,
    TiebreakPairing,
    UnityId,
)
from projections.board.quotients import quotient_notation
from projections.board.tiebreaks import notation_of_value

_Unity = Annotated[int, Meta(ge=1, le=ID_MAX)]
_Results = Annotated[int, Meta(ge=1, le=BEST_MAX)]


class CriterionShape(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One criterion, as it is sent and shown. It has either `unity`, or `ratio` or `per`."""

    unity: _Unity | UnsetType = UNSET
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
    ratio: (
        Annotated[
            tuple[_Unity, _Unity],
            Meta(
                description="the total of the first unity divided by that of the second, compared exactly; values are "
                f"in thousandths, rounded, and ±{INFINITE} is a division by 0"
            ),
        ]
        | UnsetType
    ) = UNSET
    per: (
        Annotated[
            tuple[_Unity, _Unity],
            Meta(
                description="the same, such as points per game; without the second, there is none. A time stays a time"
            ),
        ]
        | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        if [self.unity, self.ratio, self.per].count(UNSET) != 2:
            raise ValueError("must have one of unity, ratio and per")

    @property
    def unities(self) -> tuple[UnityId, ...]:
        """The unity, or both of a quotient."""
        found = (self.unity,) if self.unity is not UNSET else self.per if self.ratio is UNSET else self.ratio
        return tuple([UnityId(one) for one in found or ()])


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


_OTHER: Final = ("unity", "drop", "ratio", "per")
_SAME: Final = [name for name in CriterionShape.__struct_fields__ if name not in _OTHER]
Criteria = list[CriterionShape]
"""The value of the field `criteria`."""


def criteria_shape(criteria: Items[Criterion]) -> Criteria:
    return [
        CriterionShape(**_which(one), **{name: getattr(one, name) for name in _SAME}, drop=[*one.drop])
        for one in criteria
    ]


def _which(criterion: Criterion) -> dict[str, Any]:
    pair = criterion.unity_id, criterion.divisor
    if criterion.divisor is None:
        return {"unity": criterion.unity_id}
    return {"per": pair} if criterion.ratio is None else {"ratio": pair}


def criteria_of(shapes: Items[CriterionShape]) -> tuple[Criterion, ...]:
    """The criteria that were sent or shown like this."""
    return tuple(
        [
            Criterion(
                one.unities[0],
                **{name: getattr(one, name) for name in _SAME},
                drop=(*one.drop,),
                ratio=None if one.ratio is UNSET else UnityId(one.ratio[1]),
                per=None if one.per is UNSET else UnityId(one.per[1]),
            )
            for one in shapes
        ]
    )


def value_notation(shape: CriterionShape, points: Notation, sort: Sort) -> Notation:
    """The notation of the values of a criterion, in a unity with this notation and sort."""
    (criterion,) = criteria_of([shape])
    if criterion.divisor is not None:
        return quotient_notation(criterion, points, sort)
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
