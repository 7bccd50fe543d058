"""Scorings as they are declared: the points that the results of competitions give in a ranking.

Pure. `scoring.py` reads results by them.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from engine.domain.terms import (
    AWARDS_MAX,
    DELTA_MAX,
    ENROLLED_MAX,
    ID_MAX,
    NAME_CHARACTERS_MAX,
    SCORING_TABLE_MAX,
    UnityId,
)

AwardValue = Literal["outcome", "score", "for", "against", "place", "performance", "solved", "minutes", "tries", "last"]
"""What an award reads from a result, for each participant. `score`: own score first. `solved`, `minutes`, `tries` and
`last` are those of a contest: how many problems, the sum of their minutes, the wrong tries before them, and the last
minute."""
ResultOutcome = Literal["win", "draw", "loss", "bye"]
Says = Literal["win", "draw", "loss", "awarded"] | None
Entries = Literal["entries+1"]
ABSENT: Final = "absent"
"""The status of enrolled competitors without a result in the competition."""

_Amount = Annotated[int, Meta(ge=-DELTA_MAX, le=DELTA_MAX)]
_Text = Annotated[str, Meta(max_length=NAME_CHARACTERS_MAX)]
_TableSize: Final = Meta(max_length=SCORING_TABLE_MAX)


class Award(
    Struct,
    frozen=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
    kw_only=True,
    rename={"value": "from", "unity_id": "unity"},
):
    """Points in one unity for one value of a result. Amounts are in the unity's smallest unit.

    `table`: amounts by outcome (`win`, or with a word `win pen`), by score (`3:1`, or by outcome), by performance, or
    by place. A list has the amounts of all places, with 0 after its end; an object by place gives nothing for others.
    Without a table, values are multiplied by `factor`; an outcome is 1, and `for`, `against` and `performance` are read
    in the notation of the unity. `outcomes`: only these; empty: all. `statuses`: what DNS, DNF, DSQ ... get, in any
    case; None: nothing; the entries are those of the scoring. `ties`: whether those who share a place each get the full
    amount, or the mean of the places that they fill, rounded to the nearest, halves away from zero. `among`: whose
    places are counted.
    """

    unity_id: Annotated[UnityId, Meta(ge=1, le=ID_MAX)]
    value: AwardValue
    table: Annotated[dict[_Text, _Amount], _TableSize] | Annotated[tuple[_Amount, ...], _TableSize] | None = None
    factor: _Amount = 1
    outcomes: tuple[ResultOutcome, ...] = ()
    statuses: Annotated[dict[_Text, _Amount | Entries | None], _TableSize] = {}
    ties: Literal["each", "mean"] = "each"
    among: Literal["participants", "enrolled"] = "participants"


class Scoring(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False, kw_only=True):
    """The points that results of some competitions give.

    `name`: for competitions with this `scale`; with a name and no groups, only for these. `groups`: for competitions of
    these groups; empty, and no name: for all. `order`: which performances are better; `sent`: they are the places.
    `words`: what words after a score, or scores such as 0:0, say of the outcome of both. None: nothing; `awarded`: it
    was not played, so without a winner both have lost an equal score. `entries`: the declared number; None: those
    enrolled.
    """

    awards: Annotated[tuple[Award, ...], Meta(max_length=AWARDS_MAX)]
    name: _Text = ""
    groups: Annotated[tuple[int, ...], _TableSize] = ()
    order: Literal["low", "high", "sent"] = "sent"
    words: Annotated[dict[_Text, Says], _TableSize] = {}
    entries: Annotated[int, Meta(ge=1, le=ENROLLED_MAX)] | None = None
