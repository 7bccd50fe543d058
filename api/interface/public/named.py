"""Answers for everybody: the names of the competitors and competitions in an answer, then the answer itself, without
what is NOT_PUBLIC."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, starmap
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from api.interface.rendering import Answer, Instant, encode
from api.interface.shapes import declared, is_private, shape_of, shaped
from engine.domain.steps import Steps, collected
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitionId, CompetitorId
from engine.domain.times import instant
from engine.process.time_slices import in_time_slices
from projections.answers.view import Question, View, ask
from projections.board.board import Board, Competition


class PublicCompetitorShape(Struct, frozen=True):
    id: int
    name: str
    color: str
    tags: tuple[str, ...]


class PublicCompetitionShape(Struct, frozen=True):
    """`participants` and `result` are those of a duel; null for a competition of more than two. `round` and
    `round_name` are absent if it has none."""

    id: int
    started_at: Instant
    location: str
    participants: tuple[int, ...] | None
    result: str | None
    voided: bool
    round: int | UnsetType = UNSET
    round_name: str | UnsetType = UNSET


class PublicNamesShape(Struct, kw_only=True):
    """The competitors that an answer names, each once, as they are at the public end."""

    competitors: list[PublicCompetitorShape]


class PublicCausesShape(PublicNamesShape, kw_only=True):
    """As PublicNamesShape, with the competitions that the answer names. The participants of duels among them are
    named as well."""

    competitions: list[PublicCompetitionShape]


def public_answer_of(key: str, kind: type[Struct]) -> Answer:
    """The body of a 200 that shows a value of this `kind`, and the names of what is in it."""
    names = PublicCausesShape if _names_competitions(kind) else PublicNamesShape
    fields = msgspec.structs.fields(shape_of(kind, public=True))
    taken = {field.encode_name for field in fields} & {*names.__struct_fields__}
    assert not taken, f"{kind.__name__} has {taken}, as the names have"
    shape = msgspec.defstruct(
        f"Public{kind.__name__}Shape",
        [declared(field, field.type) for field in fields],
        bases=(names,),
        kw_only=True,
        rename={field.name: field.encode_name for field in fields},
    )
    return Answer(key, shape)


async def named(view: View, question: Question[Any]) -> Raw:
    """The payload of such a body. Raises as the question says."""
    value = await ask(view, question)
    names = await in_time_slices(_names(view.live.board, value))
    return Raw(encode(names)[:-1] + b"," + encode(shaped(value, public=True))[1:])


def _names(board: Board, value: Struct) -> Steps[PublicNamesShape]:
    competitor_ids = yield from collected(named_in(value, CompetitorId))
    if not _names_competitions(type(value)):
        return PublicNamesShape(competitors=(yield from collected(competitors_named(board, competitor_ids))))
    competition_ids = yield from collected(named_in(value, CompetitionId))
    found = board.competitions.held(dict.fromkeys(competition_ids))  # some events may be set aside
    competitions = yield from collected(starmap(_competition, found))
    duellists = [competitor_id for one in competitions for competitor_id in one.participants or ()]
    competitors = yield from collected(competitors_named(board, [*competitor_ids, *duellists]))
    return PublicCausesShape(competitors=competitors, competitions=competitions)


def competitors_named(board: Board, competitor_ids: Iterable[int]) -> Iterator[PublicCompetitorShape]:
    """Each once, in the order of the ids."""
    for competitor_id in dict.fromkeys(competitor_ids):
        competitor = board.competitors[CompetitorId(competitor_id)]
        yield PublicCompetitorShape(competitor_id, competitor.name, competitor.color, competitor.tags)


def _competition(competition_id: CompetitionId, competition: Competition) -> PublicCompetitionShape:
    return PublicCompetitionShape(
        competition_id,
        instant(competition.started_at),
        competition.location,
        competition.participants if len(competition.participants) <= SCORE_PARTICIPANTS_MAX else None,
        competition.result if isinstance(competition.result, str) else None,
        competition.voided_at is not None,
        UNSET if competition.round is None else competition.round,
        competition.round_name or UNSET,
    )


# ── Finding ids ─────────────────────────────────────────────────────────────────────────────────────────

_Finder = Callable[[Any], Iterable[Any]]


def _names_competitions(kind: Any) -> bool:
    return _finder(kind, CompetitionId) is not None


def named_in(value: Struct, wanted: Any) -> Iterable[Any]:
    """The ids of the kind `wanted` that the public sees in a value, in the order of its fields."""
    kind: Any = type(value)
    finder = _finder(kind, wanted)
    return () if finder is None else finder(value)


@cache
def _finder(kind: Any, wanted: Any) -> _Finder | None:
    """What finds the wanted ids in values of this kind; None: there are none."""
    if kind is wanted:
        return lambda value: (value,)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _in_struct(kind, wanted)
    finders = {get_origin(arm) or arm: finder for arm in get_args(kind) if (finder := _finder(arm, wanted)) is not None}
    if not finders:
        return None
    if get_origin(kind) in (Union, UnionType):
        by_type = {int if arm is wanted else arm: finder for arm, finder in finders.items()}
        return lambda value: by_type.get(type(value), _nothing)(value)
    (finder,) = finders.values()
    return lambda values: chain.from_iterable(map(finder, values))


def _in_struct(kind: type[Struct], wanted: Any) -> _Finder | None:
    finders = [
        (field.name, finder)
        for field in msgspec.structs.fields(kind)
        if not is_private(field.type) and (finder := _finder(field.type, wanted)) is not None
    ]
    if not finders:
        return None
    return lambda value: chain.from_iterable([finder(getattr(value, name)) for name, finder in finders])


def _nothing(_: Any) -> Iterable[Any]:
    return ()
