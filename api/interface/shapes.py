"""The JSON shape of an answer, which follows from the type of its values.

A shape has the fields of the struct, in their order. A time becomes a string (`Instant`); everything else is encoded as
it is. So a struct without times is its own shape. A public shape lacks what is NOT_PUBLIC.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import FieldInfo

from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from engine.domain.terms import NOT_PUBLIC
from engine.domain.times import instant
from projections.answers.view import Question, View, ask

_Shaping = Callable[[Any], Any]


def answer_of(key: str, kind: type[Struct]) -> Answer:
    """The body of a 200 that shows a value of this `kind` under `key`."""
    return Answer(key, shape_of(kind))


def shape_of(kind: type[Struct], *, public: bool = False) -> Any:
    """The type of the shape of values of this kind."""
    return _part(kind, public)[0]


def shaped(value: Struct, *, public: bool = False) -> Any:
    """The value in its shape, which msgspec encodes."""
    _, shape = _part(type(value), public)
    return value if shape is None else shape(value)


async def answered(view: View, answer: Answer, question: Question[Any]) -> TaggedBody:
    """The whole answer to a question. Raises as the question says."""
    return tagged_body(answer.body(encode(shaped(await ask(view, question)))))


@cache
def _part(kind: Any, public: bool) -> tuple[Any, _Shaping | None]:
    """The type of the shape of values of this kind, and the function that makes it; None: a value is its own shape."""
    if kind is datetime:
        return Instant, instant
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _struct(kind, public)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (list, tuple):
        shape, make = _part(arguments[0], public)
        return (kind, None) if make is None else (GenericAlias(list, (shape,)), lambda values: [*map(make, values)])
    if origin in (Union, UnionType):
        return _union(arguments, public)
    return kind, None


def _struct(kind: type[Struct], public: bool) -> tuple[Any, _Shaping | None]:
    all_fields = msgspec.structs.fields(kind)
    fields = [field for field in all_fields if not (public and is_private(field.type))]
    parts = {field.name: _part(field.type, public) for field in fields}
    if public and len(fields) == len(all_fields):
        for_tokens = {field.name: _part(field.type, False)[0] for field in fields}
        if all(parts[name][0] == shape for name, shape in for_tokens.items()):
            return _part(kind, False)
    changed = {name: make for name, (_, make) in parts.items() if make is not None}
    if not changed and not public:
        return kind, None
    config = kind.__struct_config__
    shape = msgspec.defstruct(
        f"Public{kind.__name__}" if public else kind.__name__,
        [declared(field, parts[field.name][0]) for field in fields],
        namespace={"__doc__": kind.__doc__},
        kw_only=True,
        tag=config.tag,
        tag_field=config.tag_field,
        rename={field.name: field.encode_name for field in fields},
    )

    def make(value: Struct) -> Struct:
        given = {name: getattr(value, name) for name in parts}
        for name, shape_one in changed.items():
            given[name] = shape_one(given[name])
        return shape(**given)

    return shape, make


def declared(field: FieldInfo, kind: Any) -> tuple[Any, ...]:
    """A field of a shape, as `defstruct` takes it: one that may be absent is, unless it is given; every other field is
    always sent."""
    return (field.name, kind, UNSET) if field.default is UNSET else (field.name, kind)


def is_private(kind: Any) -> bool:
    """Whether the public must not see a field of this type, because the type or a part of it is NOT_PUBLIC."""
    return NOT_PUBLIC in getattr(kind, "__metadata__", ()) or any(map(is_private, get_args(kind)))


def _union(arms: tuple[Any, ...], public: bool) -> tuple[Any, _Shaping | None]:
    """A value is of the arm that has its type."""
    parts = {arm: _part(arm, public) for arm in arms}
    changed = {get_origin(arm) or arm: make for arm, (_, make) in parts.items() if make is not None}

    def make(value: Any) -> Any:
        shape_one = changed.get(type(value))
        return value if shape_one is None else shape_one(value)

    return reduce(or_, [shape for shape, _ in parts.values()]), make if changed else None
