"""Adding points to one ranking or to several: the fields `participants_delta` and `rankings_delta`, and the operations.

Adding points is the most frequent request, so decoding deltas must be fast. The same amounts recur, so they are kept.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from api.access.auth import Scope
from api.interface.declarations import Operation, Preview, Write
from api.interface.fields import FROM_1, ID, SHORT, Field, FieldMisread, Schema, json_text
from api.interface.rendering import Answer, BoardNow, encode
from api.interface.resources.previews import COMPARED
from api.interface.resources.standings import STANDINGS, render_standings
from engine.domain.commands import AddPoints, AddPointsToRankings, RankingDeltas, ReversePoints
from engine.domain.errors import Fault, Unreadable
from engine.domain.events import Delta, Points, changed_by
from engine.domain.faults import cited, shortened
from engine.domain.terms import DELTA_MAX, DELTAS_MAX, ID_MAX, RESULT_MAX, CompetitorId, RankingId, UnityId

_T = TypeVar("_T")

_DELTA_DIGITS_MAX: Final = len(str(RESULT_MAX))
_DELTA_CHARACTERS_MAX: Final = 64
"""The decoder refuses longer texts as deltas. A shorter text with more than _DELTA_DIGITS_MAX digits gets a fault that
says so."""
AMOUNTS_KEPT_MAX: Final = 1_024


class UnityLine(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    unity_id: Annotated[UnityId, Meta(ge=1, le=ID_MAX)]
    delta: int | Annotated[str, Meta(max_length=_DELTA_CHARACTERS_MAX)]


class CompetitorLines(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    competitor_id: Annotated[CompetitorId, Meta(ge=1, le=ID_MAX)]
    unities: list[UnityLine]


Deltas = list[CompetitorLines]
"""The value of the field `participants_delta`."""


class RankingLines(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    ranking_id: Annotated[RankingId, Meta(ge=1, le=ID_MAX)]
    participants_delta: Deltas


RankingsDeltas = list[RankingLines]
"""The value of the field `rankings_delta`."""
DELTA_SCHEMA: Final[Schema] = {"type": "integer", "minimum": -RESULT_MAX, "maximum": RESULT_MAX}
"""The values that `delta` in a UnityLine can have; the same in a text is taken, too."""
_LINES: Final = msgspec.json.Decoder(Deltas)
_RANKINGS: Final = msgspec.json.Decoder(RankingsDeltas)
_NAME: Final = "participants_delta"
_RANKINGS_NAME: Final = "rankings_delta"
_FORM: Final = '[{"competitor_id": 1, "unities": [{"unity_id": 1, "delta": "5"}]}]'
_RANKINGS_FORM: Final = f'[{{"ranking_id": 1, "participants_delta": {_FORM}}}]'


def _deltas(text: str) -> tuple[Delta, ...]:
    """The deltas, flat and in the order sent. Raises FieldMisread, and Unreadable if the text is not JSON."""
    lines = decoded_array(_LINES, text, _NAME, _FORM)
    if not lines:
        raise FieldMisread("must contain at least one delta")
    keys = text.count(":")
    if keys <= 2 * (len(lines) + DELTAS_MAX):
        deltas = _flat(lines)
        if deltas is not None and keys == 2 * (len(lines) + len(deltas)):
            return deltas
    raise _misread(lines, (fault for line in lines for fault in _line_faults(line)))


def _rankings_deltas(text: str) -> tuple[RankingDeltas, ...]:
    """The deltas of each ranking, in the order sent. Raises as `_deltas`."""
    rankings = decoded_array(_RANKINGS, text, _RANKINGS_NAME, _RANKINGS_FORM)
    if not rankings:
        raise FieldMisread("must name at least one ranking")
    lines = [line for ranking in rankings for line in ranking.participants_delta]
    keys = text.count(":") - 2 * len(rankings)
    if keys <= 2 * (len(lines) + DELTAS_MAX):
        flat = [deltas for one in rankings if (deltas := _flat(one.participants_delta)) is not None]
        if len(flat) == len(rankings) and keys == 2 * (len(lines) + sum(map(len, flat))):
            return tuple([RankingDeltas(one.ranking_id, deltas) for one, deltas in zip(rankings, flat, strict=True)])
    faults = (
        f"{fault}, in ranking {ranking.ranking_id}"
        for ranking in rankings
        for line in ranking.participants_delta
        for fault in _line_faults(line)
    )
    raise _misread(lines, faults)


# JSON lets an object repeat a key. Decoders silently keep the last value, so the points in the others would be lost.
# But each key has a colon, however its letters are escaped, and no decoded string (known keys, signs and digits)
# contains one. So more colons than decoded keys mean that more keys were sent. Where all is well, the colons also tell
# the number of deltas before any causes work.
def _misread(lines: Deltas, faults: Iterable[str]) -> FieldMisread:
    """The error for lines of which not each key makes a delta, with the faults of the lines."""
    if sum([len(line.unities) or 1 for line in lines]) > DELTAS_MAX:
        return FieldMisread(f"must contain at most {DELTAS_MAX} deltas")
    return FieldMisread(*(list(faults) or ["must not repeat a key in one object"]))


def _flat(lines: Deltas) -> tuple[Delta, ...] | None:
    """The deltas in the order sent; None: an amount is none, or a line has no delta."""
    try:
        return tuple(
            [
                Delta(line.competitor_id, unity.unity_id, _AMOUNTS[unity.delta])
                for line in lines
                for unity in line.unities or _WITHOUT_AMOUNT
            ]
        )
    except KeyError:
        return None


_WITHOUT_AMOUNT: Final = (UnityLine(UnityId(1), ""),)


def decoded_array(decoder: msgspec.json.Decoder[_T], text: str, name: str, form: str) -> _T:
    """The value of the field of this name. Raises FieldMisread if it has another shape, and Unreadable if it is not
    JSON."""
    try:
        try:
            return decoder.decode(text)
        except msgspec.ValidationError as mismatch:
            msgspec.json.decode(text, type=msgspec.Raw)  # is it JSON at all, beyond the place of the mismatch?
            raise FieldMisread(_mismatch_fault(mismatch, form)) from None
    except FieldMisread:
        raise
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"must be JSON: {error}"
        fault = Fault(name, shortened(reason))
        raise Unreadable(f"The field {name} cannot be read; send a JSON array.", [fault]) from None


def _mismatch_fault(mismatch: msgspec.ValidationError, form: str) -> str:
    """`mismatch` ("Expected `int`, got `str` - at `$[0].competitor_id`", or without a place) as a sentence."""
    what, at, place = str(mismatch).rpartition(" - at `$")
    where = f"at {shortened(place.rstrip('`'))}" if at else "at its top"
    return f"must be of the form {form}; {where}: {shortened(what if at else str(mismatch))}"


def _amount(delta: int | str) -> int | None:
    """`delta` as an amount: an integer, or a string ^[+-]?[0-9]{1,16}$ of ASCII, within ±RESULT_MAX. None: it is
    neither. In unities that count sums, judging refuses amounts beyond ±DELTA_MAX."""
    if isinstance(delta, str):
        digits = delta[1:] if delta.startswith(("+", "-")) else delta
        if len(digits) > _DELTA_DIGITS_MAX or not digits.isascii() or not digits.isdigit():
            return None
        delta = int(delta)
    return delta if -RESULT_MAX <= delta <= RESULT_MAX else None


class _Amounts(dict[int | str, int]):
    """The amounts that deltas stand for; a KeyError: one stands for none. Up to AMOUNTS_KEPT_MAX are kept: points are
    small numbers that recur, and finding a thousand of them takes a quarter of the time."""

    def __missing__(self, delta: int | str) -> int:
        amount = _amount(delta)
        if amount is None:
            raise KeyError(delta)
        if len(self) == AMOUNTS_KEPT_MAX:
            self.clear()
        self[delta] = amount
        return amount


_AMOUNTS: Final = _Amounts()


def _line_faults(line: CompetitorLines) -> Iterator[str]:
    if not line.unities:
        yield f"must contain at least one delta of competitor {line.competitor_id}"
    for unity in line.unities:
        if _amount(unity.delta) is None:
            yield _amount_fault(line.competitor_id, unity.delta)


def _amount_fault(competitor_id: CompetitorId, delta: int | str) -> str:
    fault = f"delta {cited(delta)} of competitor {competitor_id} must be a whole number within ±{DELTA_MAX}"
    if isinstance(delta, str) and len(delta.lstrip("+-")) > _DELTA_DIGITS_MAX:
        fault += f", of at most {_DELTA_DIGITS_MAX} digits"
    elif isinstance(delta, int) or (delta.isascii() and delta.removeprefix("-").removeprefix("+").isdecimal()):
        fault += f"; a result, within ±{RESULT_MAX}"
    if isinstance(delta, str) and delta.startswith(" "):
        fault += "; a plus sign in a form body is sent as %2B"
    return fault


# ── The answer for several rankings ─────────────────────────────────────────────────────────────────────


class ChangedUnityShape(Struct, kw_only=True):
    """A unity in which points were added, with its version after that, or a later one."""

    id: int
    name: str
    version: int


class ChangedRankingShape(Struct, kw_only=True):
    id: int
    name: str
    unities: list[ChangedUnityShape]


class ChangedRankingsShape(Struct):
    """The rankings to which points were added, in the order of the request, without standings."""

    ranking: list[ChangedRankingShape]


def render_changed(view: BoardNow, answer: Answer, of: Items[Points]) -> bytes:
    rankings = []
    for event in of:
        ranking = view.board.rankings[event.ranking_id]
        changed = {line.unity_id for line in changed_by(event)}
        unities = [
            ChangedUnityShape(id=unity_id, name=unity.name, version=unity.version)
            for unity_id, unity in ranking.unities.items()
            if unity_id in changed
        ]
        rankings.append(ChangedRankingShape(id=event.ranking_id, name=ranking.name, unities=unities))
    return answer.body(encode(ChangedRankingsShape(rankings)))


# ── The operations ──────────────────────────────────────────────────────────────────────────────────────

_DELTAS: Final = json_text(_deltas, {"$ref": "#/components/schemas/Deltas"})
_RANKINGS_DELTAS: Final = json_text(_rankings_deltas, {"$ref": "#/components/schemas/RankingsDeltas"})
_COMPETITION_ID: Final = Field("competition_id", ID, "what they are for")
_SEQUENCE: Final = Field(
    "sequence", FROM_1, "the event that added the points; or the one that undid them, to redo them", required=True
)
_REVERSE: Final = "rankings/{ranking_id}/reverse.json"
_REASON: Final = Field("reason", SHORT, "what they are for, in words; history and explanations show it")

_DELTAS_EXAMPLE: Final = [{"competitor_id": 1, "unities": [{"unity_id": 5, "delta": 3}]}]

OPERATIONS: Final[tuple[Operation, ...]] = (
    Write(
        "PUT",
        "rankings/{ranking_id}/add.json",
        "Add points",
        operation_id="addPoints",
        command=AddPoints,
        answer=STANDINGS,
        render=render_standings,
        fields=(
            Field(
                _NAME,
                _DELTAS,
                f"at most {DELTAS_MAX:,} deltas within ±{DELTA_MAX:,}; all of them are applied, or "
                f"none. In a unity that counts results they are results, within ±{RESULT_MAX:,}",
                required=True,
                argument="deltas",
            ),
            _COMPETITION_ID,
            _REASON,
        ),
        example={"participants_delta": _DELTAS_EXAMPLE},
    ),
    Write(
        "PUT",
        "points.json",
        "Add points to several rankings",
        operation_id="addPointsToRankings",
        command=AddPointsToRankings,
        answer=Answer("rankings", ChangedRankingsShape),
        render=render_changed,
        fields=(
            Field(
                _RANKINGS_NAME,
                _RANKINGS_DELTAS,
                f"for each ranking its participants_delta; in total at most {DELTAS_MAX:,} deltas within "
                f"±{DELTA_MAX:,}; all of them are applied, or none",
                required=True,
                argument="rankings",
            ),
            _COMPETITION_ID,
            _REASON,
        ),
        shows_all=True,
        example={"rankings_delta": [{"ranking_id": 4, "participants_delta": _DELTAS_EXAMPLE}]},
    ),
    Write(
        "PUT",
        _REVERSE,
        "Undo points, or redo them",
        operation_id="reversePoints",
        command=ReversePoints,
        answer=STANDINGS,
        render=render_standings,
        fields=(_SEQUENCE,),
        example={"sequence": 14},
    ),
    Preview(
        _REVERSE,
        "Show what undoing or redoing points would lead to",
        operation_id="previewReversePoints",
        command=ReversePoints,
        answer=COMPARED,
        fields=(_SEQUENCE,),
        scope=Scope.WRITE,
        example={"sequence": 14},
    ),
)
