"""Answers for everybody: what a token would get, after the names of the competitors and competitions in it."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct

from api.http.times import instant
from api.interface.rendering import Answer, Instant, encode
from api.interface.shapes import declared, shape_of, shaped
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitionId, CompetitorId
from projections.answers.view import Question, View, ask
from projections.board.board import Board, Competition


class PublicCompetitorShape(Struct, frozen=True):
    id: int
    name: str
    color: str
    tags: tuple[str, ...]


class PublicCompetitionShape(Struct, frozen=True):
    """`participants` and `result` are those of a duel; null for a competition of more than two."""

    id: int
    started_at: Instant
    location: str
    participants: tuple[int, ...] | None
    result: str | None
    voided: bool


class PublicNamesShape(Struct, kw_only=True):
    """The competitors that an answer names, each once, as they are at the public end."""

    competitors: list[PublicCompetitorShape]


class PublicCausesShape(PublicNamesShape, kw_only=True):
    """As PublicNamesShape, with the competitions that the answer names."""

    competitions: list[PublicCompetitionShape]


def public_answer_of(key: str, kind: type[Struct]) -> Answer:
    """The body of a 200 that shows a value of this `kind`, and the names of what is in it."""
    names = PublicCausesShape if _names_competitions(kind) else PublicNamesShape
    fields = msgspec.structs.fields(shape_of(kind, public=True))
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
    competitor_ids = named_in(value, CompetitorId)
    board = view.live.board
    if not _names_competitions(type(value)):
        names = PublicNamesShape(competitors=competitors_named(board, competitor_ids))
    else:
        names = PublicCausesShape(**causes_fields(board, competitor_ids, named_in(value, CompetitionId)))
    return Raw(encode(names)[:-1] + b"," + encode(shaped(value, public=True))[1:])


def competitors_named(board: Board, competitor_ids: Iterable[int]) -> list[PublicCompetitorShape]:
    """Each once, in the order of the ids."""
    found = []
    for competitor_id in dict.fromkeys(competitor_ids):
        competitor = board.competitors[CompetitorId(competitor_id)]
        found.append(PublicCompetitorShape(competitor_id, competitor.name, competitor.color, competitor.tags))
    return found


def causes_fields(
    board: Board, competitor_ids: Iterable[int | None], competition_ids: Iterable[int | None]
) -> dict[str, Any]:
    """The fields of a PublicCausesShape: these, and the participants of the duels among the competitions."""
    causes = [CompetitionId(one) for one in dict.fromkeys(competition_ids) if one is not None]
    competitions = [_competition(*one) for one in board.competitions.held(causes)]  # some events may be set aside
    duellists = [competitor_id for one in competitions for competitor_id in one.participants or ()]
    named = [competitor_id for competitor_id in competitor_ids if competitor_id is not None]
    return {"competitors": competitors_named(board, [*named, *duellists]), "competitions": competitions}


def _competition(competition_id: CompetitionId, competition: Competition) -> PublicCompetitionShape:
    return PublicCompetitionShape(
        competition_id,
        instant(competition.started_at),
        competition.location,
        competition.participants if len(competition.participants) <= SCORE_PARTICIPANTS_MAX else None,
        competition.result if isinstance(competition.result, str) else None,
        competition.voided_at is not None,
    )


# ── Finding ids ─────────────────────────────────────────────────────────────────────────────────────────

_Finder = Callable[[Any], Iterable[int]]


def _names_competitions(kind: Any) -> bool:
    return _finder(kind, CompetitionId) is not None


def named_in(value: Struct, wanted: Any) -> Iterable[int]:
    """The ids of the kind `wanted` in a value, in the order of its fields."""
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
        if (finder := _finder(field.type, wanted)) is not None
    ]
    if not finders:
        return None
    return lambda value: chain.from_iterable([finder(getattr(value, name)) for name, finder in finders])


def _nothing(_: Any) -> tuple[int, ...]:
    return ()
