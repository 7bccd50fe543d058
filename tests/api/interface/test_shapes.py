"""The JSON shapes of answers: what follows from the types of their values, for tokens and for everybody."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import pytest
from msgspec import UNSET, Struct, UnsetType, field

from api.interface.public.named import named_in, public_answer_of
from api.interface.shapes import shape_of, shaped
from engine.domain.terms import NOT_PUBLIC, CompetitionId, CompetitorId

MOMENT = datetime(2026, 5, 2, 17, 4, 11, tzinfo=UTC)


class Inner(Struct, frozen=True):
    who: CompetitorId
    at: datetime | None


class Plain(Struct, frozen=True):
    what: CompetitionId | None
    numbers: list[int]


class Whole(Struct, frozen=True, kw_only=True):
    """What is shown."""

    begin: Inner = field(name="from")
    plain: list[Plain]
    either: Inner | Plain
    shared: tuple[CompetitorId, ...]
    secret: Annotated[CompetitorId, NOT_PUBLIC]
    secrets: list[Annotated[int, NOT_PUBLIC] | None]
    on: datetime | UnsetType = UNSET


WHOLE = Whole(
    begin=Inner(CompetitorId(3), MOMENT),
    plain=[Plain(CompetitionId(8), [1]), Plain(None, [])],
    either=Inner(CompetitorId(4), None),
    shared=(CompetitorId(5), CompetitorId(3)),
    secret=CompetitorId(7),
    secrets=[8],
)


def json_of(value: Struct, *, public: bool = False) -> object:
    return msgspec.json.decode(msgspec.json.encode(shaped(value, public=public)))


def test_times_become_strings_to_the_microsecond_and_all_else_stays_as_it_is() -> None:
    assert json_of(WHOLE) == {
        "from": {"who": 3, "at": "2026-05-02T17:04:11.000000Z"},
        "plain": [{"what": 8, "numbers": [1]}, {"what": None, "numbers": []}],
        "either": {"who": 4, "at": None},
        "shared": [5, 3],
        "secret": 7,
        "secrets": [8],
    }
    assert json_of(msgspec.structs.replace(WHOLE, on=MOMENT, either=WHOLE.plain[0])) == {
        **json_of(WHOLE),  # type: ignore[dict-item]
        "either": {"what": 8, "numbers": [1]},
        "on": "2026-05-02T17:04:11.000000Z",
    }


def test_the_public_sees_all_but_what_is_marked_at_any_depth() -> None:
    shown = json_of(WHOLE)
    assert isinstance(shown, dict)
    assert json_of(WHOLE, public=True) == {
        name: value for name, value in shown.items() if not name.startswith("secret")
    }

    class Around(Struct, frozen=True):
        all: list[Whole]

    assert json_of(Around([WHOLE]), public=True) == {"all": [json_of(WHOLE, public=True)]}
    assert json_of(Around([WHOLE])) == {"all": [shown]}


def test_a_struct_without_times_and_secrets_is_its_own_shape() -> None:
    assert shape_of(Plain) is shape_of(Plain, public=True) is Plain
    assert shaped(WHOLE.plain[0]) is WHOLE.plain[0]
    assert shape_of(Inner) is shape_of(Inner, public=True)


def test_every_id_that_the_public_sees_in_an_answer_is_found_by_its_type() -> None:
    assert [*named_in(WHOLE, CompetitorId)] == [3, 4, 5, 3]
    assert [*named_in(WHOLE, CompetitionId)] == [8]
    assert [*named_in(Inner(CompetitorId(1), None), CompetitionId)] == []


def test_an_answer_with_a_field_called_like_those_of_names_is_refused_at_the_start() -> None:
    class Crowd(Struct, frozen=True):
        competitors: list[CompetitorId]

    with pytest.raises(AssertionError, match="competitors"):
        public_answer_of("crowd", Crowd)
