"""Adding points: the field `participants_delta`, and the operation.

Adding points is what a service is asked for most, so decoding deltas is quick: the same amounts come again and again.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from api.http.forms import cited, shortened
from api.interface.declarations import Operation, Write
from api.interface.fields import ID, Field, FieldMisread, FieldType, Schema
from api.interface.standings import STANDINGS, render_standings
from engine.domain.commands import AddPoints
from engine.domain.errors import Fault, Unreadable
from engine.domain.events import Delta
from engine.domain.terms import DELTA_MAX, DELTAS_MAX, ID_MAX, CompetitorId, UnityId

_DELTA_DIGITS_MAX: Final = 10
_DELTA_CHARACTERS_MAX: Final = 64
"""A longer text is not looked at as a delta at all. A shorter one of more than _DELTA_DIGITS_MAX digits is refused by
name."""


class UnityLine(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    unity_id: Annotated[UnityId, Meta(ge=1, le=ID_MAX)]
    delta: int | Annotated[str, Meta(max_length=_DELTA_CHARACTERS_MAX)]


class CompetitorLines(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    competitor_id: Annotated[CompetitorId, Meta(ge=1, le=ID_MAX)]
    unities: list[UnityLine]


Deltas = list[CompetitorLines]
"""What participants_delta holds."""
DELTA_SCHEMA: Final[Schema] = {
    "anyOf": [
        {"type": "string", "pattern": f"^[+-]?[0-9]{{1,{_DELTA_DIGITS_MAX}}}$"},
        {"type": "integer", "minimum": -DELTA_MAX, "maximum": DELTA_MAX},
    ]
}
"""What `delta` in a UnityLine may be."""
_LINES: Final = msgspec.json.Decoder(Deltas)
_NAME: Final = "participants_delta"


def _deltas(text: str) -> tuple[Delta, ...]:
    """The deltas, flat and in the order sent. Raises FieldMisread, and Unreadable if the text is not JSON."""
    lines = _decoded_lines(text)
    count = sum([len(line.unities) or 1 for line in lines])  # a line without any counts as one: it is a fault
    if count > DELTAS_MAX:  # before there is work, and a fault, for each
        raise FieldMisread(f"must hold at most {DELTAS_MAX} deltas")
    deltas = [
        Delta(line.competitor_id, unity.unity_id, amount)
        for line in lines
        for unity in line.unities
        if (amount := _amount(unity.delta)) is not None
    ]
    if len(deltas) < count:
        raise FieldMisread(*[fault for line in lines for fault in _line_faults(line)])
    if _drops_keys(text, keys=2 * len(lines) + 2 * len(deltas)):
        raise FieldMisread("must not hold a key twice in one object")
    return tuple(deltas)


def _drops_keys(text: str, *, keys: int) -> bool:
    """Whether decoding the JSON `text` into `keys` keys has lost some, and points with them.

    JSON lets an object repeat a key, and decoders silently keep the last one. But each key brings a colon, however its
    letters are escaped, and no string that was decoded (four known keys, signs and digits) holds one. So more colons
    than decoded keys mean that more keys were sent.
    """
    return text.count(":") != keys


def _decoded_lines(text: str) -> list[CompetitorLines]:
    try:
        try:
            lines = _LINES.decode(text)
        except msgspec.ValidationError as mismatch:
            msgspec.json.decode(text, type=msgspec.Raw)  # is it JSON at all, beyond the place of the mismatch?
            raise FieldMisread(_mismatch_fault(mismatch)) from None
    except FieldMisread:
        raise
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"must be JSON: {error}"
        fault = Fault(_NAME, shortened(reason))
        raise Unreadable(f"The field {_NAME} cannot be read; send a JSON array.", [fault]) from None
    if not lines:
        raise FieldMisread("must hold at least one delta")
    return lines


def _mismatch_fault(mismatch: msgspec.ValidationError) -> str:
    """`mismatch` ("Expected `int`, got `str` - at `$[0].competitor_id`", or without a place) as a sentence."""
    what, at, place = str(mismatch).rpartition(" - at `$")
    where = f"at {shortened(place.rstrip('`'))}" if at else "at its top"
    form = '[{"competitor_id": 1, "unities": [{"unity_id": 1, "delta": "5"}]}]'
    return f"must be of the form {form}; {where}: {shortened(what if at else str(mismatch))}"


@lru_cache(maxsize=1_024)
def _amount(delta: int | str) -> int | None:
    """`delta` as an amount: an integer, or a string ^[+-]?[0-9]{1,10}$ of ASCII, within ±DELTA_MAX. None: it is
    neither.

    Cached, because points are small numbers that come again and again: a thousand of them take a third of the time.
    What is kept is short: the decoder lets no long text through, and no integer of more than some thousand digits.
    """
    if isinstance(delta, str):
        digits = delta[1:] if delta.startswith(("+", "-")) else delta
        if len(digits) > _DELTA_DIGITS_MAX or not digits.isascii() or not digits.isdigit():
            return None
        delta = int(delta)
    return delta if -DELTA_MAX <= delta <= DELTA_MAX else None


def _line_faults(line: CompetitorLines) -> Iterator[str]:
    if not line.unities:
        yield f"must hold at least one delta of competitor {line.competitor_id}"
    for unity in line.unities:
        if _amount(unity.delta) is None:
            yield _amount_fault(line.competitor_id, unity.delta)


def _amount_fault(competitor_id: CompetitorId, delta: int | str) -> str:
    fault = f"delta {cited(delta)} of competitor {competitor_id} must be a whole number within ±{DELTA_MAX}"
    if isinstance(delta, str) and len(delta.lstrip("+-")) > _DELTA_DIGITS_MAX:
        fault += f", of at most {_DELTA_DIGITS_MAX} digits"
    if isinstance(delta, str) and delta.startswith(" "):
        fault += "; a plus sign in a form body is sent as %2B"
    return fault


# ── The operation ───────────────────────────────────────────────────────────────────────────────────────

_DELTAS: Final = FieldType(
    _deltas,
    {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": "#/components/schemas/Deltas"},
    },
)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Write(
        "PUT",
        "rankings/{ranking_id}/add.json",
        "Add points",
        command=AddPoints,
        answer=STANDINGS,
        render=render_standings,
        fields=(
            Field(
                _NAME,
                _DELTAS,
                f"JSON text of at most {DELTAS_MAX:,} deltas within ±{DELTA_MAX:,}; all of them are applied, or none",
                required=True,
                argument="deltas",
            ),
            Field("competition_id", ID, "what they are for"),
        ),
    ),
)
