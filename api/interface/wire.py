"""What comes in over HTTP: a form body becomes a command, a query becomes a page.

Pure. Here text becomes well-typed frozen values. `engine/domain/judging.py` decides whether what they ask for is
allowed. `forms.py` takes forms apart, and has what their refusals share.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from api.http.forms import Fields, Form, cited, shortened
from engine.domain import commands
from engine.domain.errors import Fault, Unreadable
from engine.domain.events import Delta, Result
from engine.domain.terms import (
    DELTA_MAX,
    DELTAS_MAX,
    ID_MAX,
    PARTICIPANTS_MAX,
    TAGS_MAX,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sort,
    UnityId,
)

PER_PAGE_DEFAULT: Final = 100
PER_PAGE_MAX: Final = 200


# ── Queries ─────────────────────────────────────────────────────────────────────────────────────────────


class Page(Struct, frozen=True):
    """Which part of a list is asked for: `page` counts from 1, `per_page` is from 1 to PER_PAGE_MAX."""

    page: int
    per_page: int


_COUNT: Final = re.compile(r"[0-9]{1,18}")


def parse_page(query: Iterable[tuple[str, str]]) -> Page:
    """The page that the decoded `query` parameters ask for; a `per_page` above PER_PAGE_MAX means PER_PAGE_MAX.

    Raises `Unreadable` for unknown or repeated parameters, and for what is not a whole number from 1 of at most 18
    digits.
    """
    given: dict[str, int] = {}
    faults: list[Fault] = []
    for name, text in query:
        if name not in ("page", "per_page"):
            faults.append(Fault(shortened(name), "is not a parameter of this list; it takes page and per_page"))
        elif name in given:
            faults.append(Fault(name, "is given more than once"))
        else:
            given[name] = int(text) if _COUNT.fullmatch(text) else 0
            if not given[name]:
                faults.append(Fault(name, "must be a whole number from 1 up, of at most 18 digits"))
    if faults:
        raise Unreadable("The query cannot be read; correct the parameters named.", faults)
    return Page(page=given.get("page", 1), per_page=min(given.get("per_page", PER_PAGE_DEFAULT), PER_PAGE_MAX))


def parse_no_query(query: Iterable[tuple[str, str]]) -> None:
    """Raises `Unreadable` if there is any query parameter."""
    faults = [Fault(shortened(name), "is not a parameter of this operation; it takes none") for name, _ in query]
    if faults:
        raise Unreadable("This operation takes no query parameters; leave them out.", faults)


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────
# Each raises `Unacceptable` with every fault of its fields, unknown and missing ones included.


def register_competitor(form: Form, competitor_id: CompetitorId) -> commands.RegisterCompetitor:
    """Takes name; tags, color and parent are optional."""
    fields = Fields(form)
    return fields.accept(
        commands.RegisterCompetitor(
            competitor_id=competitor_id,
            name=fields.required("name"),
            tags=_tags(fields) or (),
            color=fields.optional("color"),
            parent_id=fields.id("parent", CompetitorId),
        )
    )


def change_competitor(form: Form, competitor_id: CompetitorId) -> commands.ChangeCompetitor:
    """Takes name, tags, color and parent, all optional. What is absent stays as it is."""
    fields = Fields(form)
    return fields.accept(
        commands.ChangeCompetitor(
            competitor_id=competitor_id,
            name=fields.optional("name"),
            tags=_tags(fields),
            color=fields.optional("color"),
            parent_id=fields.id("parent", CompetitorId),
        )
    )


def add_competition(form: Form, competition_id: CompetitionId) -> commands.AddCompetition:
    """Takes group_id; started_at, location, participants, result (or result[<competitor id>]…) and winner are
    optional."""
    fields = Fields(form)
    return fields.accept(
        commands.AddCompetition(
            competition_id=competition_id,
            group_id=fields.required_integer("group_id"),
            started_at=fields.moment("started_at"),
            location=fields.optional("location"),
            participants=_participants(fields, fields.optional("participants")),
            result=_result(fields),
            winner_id=fields.id("winner", CompetitorId),
        )
    )


def change_competition(form: Form, competition_id: CompetitionId) -> commands.ChangeCompetition:
    """Takes started_at, location, result (or result[<competitor id>]…) and winner, all optional. What is absent stays
    as it is."""
    fields = Fields(form)
    return fields.accept(
        commands.ChangeCompetition(
            competition_id=competition_id,
            started_at=fields.moment("started_at"),
            location=fields.optional("location"),
            result=_result(fields),
            winner_id=fields.id("winner", CompetitorId),
        )
    )


def create_ranking(form: Form, ranking_id: RankingId, main_unity_id: UnityId) -> commands.CreateRanking:
    """Takes name, main_unity_name and participants; description is optional."""
    fields = Fields(form)
    return fields.accept(
        commands.CreateRanking(
            ranking_id=ranking_id,
            main_unity_id=main_unity_id,
            name=fields.required("name"),
            main_unity_name=fields.required("main_unity_name"),
            participants=_participants(fields, fields.required("participants")),
            description=fields.optional("description"),
        )
    )


def modify_ranking(form: Form, ranking_id: RankingId) -> commands.ModifyRanking:
    """Takes main_unity_name and participants; name and description are optional. An empty description takes it away."""
    fields = Fields(form)
    return fields.accept(
        commands.ModifyRanking(
            ranking_id=ranking_id,
            main_unity_name=fields.required("main_unity_name"),
            participants=_participants(fields, fields.required("participants")),
            name=fields.optional("name"),
            description=fields.clearable("description"),
        )
    )


def add_unity(form: Form, ranking_id: RankingId, unity_id: UnityId) -> commands.AddUnity:
    """Takes name; sort is optional."""
    fields = Fields(form)
    return fields.accept(
        commands.AddUnity(ranking_id=ranking_id, unity_id=unity_id, name=fields.required("name"), sort=_sort(fields))
    )


def add_points(form: Form, ranking_id: RankingId) -> commands.AddPoints:
    """Takes participants_delta (JSON text); competition_id is optional. The deltas are flat and in the order sent.

    Raises `Unreadable` if participants_delta is not JSON.
    """
    fields = Fields(form)
    return fields.accept(
        commands.AddPoints(
            ranking_id=ranking_id,
            deltas=_deltas(fields, fields.required("participants_delta")),
            competition_id=fields.id("competition_id", CompetitionId),
        )
    )


def void_competition(form: Form, competition_id: CompetitionId) -> commands.VoidCompetition:
    """Takes no fields."""
    return Fields(form).accept(commands.VoidCompetition(competition_id=competition_id))


def unvoid_competition(form: Form, competition_id: CompetitionId) -> commands.UnvoidCompetition:
    """Takes no fields."""
    return Fields(form).accept(commands.UnvoidCompetition(competition_id=competition_id))


def close_ranking(form: Form, ranking_id: RankingId) -> commands.CloseRanking:
    """Takes no fields."""
    return Fields(form).accept(commands.CloseRanking(ranking_id=ranking_id))


def reopen_ranking(form: Form, ranking_id: RankingId) -> commands.ReopenRanking:
    """Takes no fields."""
    return Fields(form).accept(commands.ReopenRanking(ranking_id=ranking_id))


# ── Fields of competitors, competitions and rankings ────────────────────────────────────────────────────


def _tags(fields: Fields) -> tuple[str, ...] | None:
    text = fields.optional("tags")
    return None if text is None else tuple(fields.items("tags", text, TAGS_MAX))


def _participants(fields: Fields, text: str | None) -> tuple[CompetitorId, ...]:
    items = fields.items("participants", text or "", PARTICIPANTS_MAX)
    ids = [fields.as_id("participants", item, CompetitorId) for item in items]
    return tuple([competitor_id for competitor_id in ids if competitor_id is not None])


def _sort(fields: Fields) -> Sort:
    text = fields.optional("sort")
    if text not in (None, *Sort):
        fields.fault("sort", "must be ASC (the lowest total is the best) or DESC (the highest)")
    return Sort.ASC if text == Sort.ASC else Sort.DESC


def _result(fields: Fields) -> Result | None:
    """The score in `result`, or the performances in the pairs result[<competitor id>]=text, in the order sent."""
    score = fields.optional("result")
    performances = fields.indexed("result", CompetitorId)
    if score and performances:
        fields.fault("result", "must be sent either as one field or as result[<competitor id>] pairs, not as both")
    return score or performances or None


# ── Points ──────────────────────────────────────────────────────────────────────────────────────────────


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
_LINES: Final = msgspec.json.Decoder(Deltas)
_DELTAS: Final = "participants_delta"


def _deltas(fields: Fields, text: str) -> tuple[Delta, ...]:
    lines = _decoded_lines(fields, text) if text else []
    count = sum([len(line.unities) or 1 for line in lines])  # a line without any counts as one: it is a fault
    if count > DELTAS_MAX:  # before there is work, and a fault, for each
        fields.fault(_DELTAS, f"must hold at most {DELTAS_MAX} deltas")
        return ()
    deltas = [
        Delta(line.competitor_id, unity.unity_id, amount)
        for line in lines
        for unity in line.unities
        if (amount := _amount(unity.delta)) is not None
    ]
    if len(deltas) < count:
        fields.faults += [Fault(_DELTAS, message) for line in lines for message in _line_faults(line)]
    elif lines and _drops_keys(text, keys=2 * len(lines) + 2 * len(deltas)):
        fields.fault(_DELTAS, "must not hold a key twice in one object")
    return tuple(deltas)


def _drops_keys(text: str, *, keys: int) -> bool:
    """Whether decoding the JSON `text` into `keys` keys has lost some, and points with them.

    JSON lets an object repeat a key, and decoders silently keep the last one. But each key brings a colon, however its
    letters are escaped, and no string that was decoded (four known keys, signs and digits) holds one. So more colons
    than decoded keys mean that more keys were sent.
    """
    return text.count(":") != keys


def _decoded_lines(fields: Fields, text: str) -> list[CompetitorLines]:
    try:
        try:
            lines = _LINES.decode(text)
        except msgspec.ValidationError as mismatch:
            msgspec.json.decode(text, type=msgspec.Raw)  # is it JSON at all, beyond the place of the mismatch?
            fields.fault(_DELTAS, _mismatch_fault(mismatch))
            return []
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"must be JSON: {error}"
        fault = Fault(_DELTAS, shortened(reason))
        raise Unreadable(f"The field {_DELTAS} cannot be read; send a JSON array.", [fault]) from None
    if not lines:
        fields.fault(_DELTAS, "must hold at least one delta")
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
