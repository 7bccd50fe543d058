"""The arguments of commands that are rows: how people give the fields of a change or a question.

The kind of a field decides: ids are given by id or by name, and what a change may empty is emptied by an empty text.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from inspect import Parameter as Taken
from inspect import Signature
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin

from cyclopts import Parameter
from msgspec import UNSET, Struct, UnsetType, structs

from api.cli.names import CompetitionText, CompetitorText, CompetitorTexts, RankingText
from api.cli.where import HERE, Json, Slug, Where
from api.interface.names import Names
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sort, UnityId
from projections.answers.view import View

CommandFunction = Callable[..., Coroutine[Any, Any, None]]
"""The function of a command, as the tree names it."""


class Reading(Struct):
    """What arguments are read with. `given`: all of them, as they were given. `fields`: those that are read."""

    view: View
    names: Names
    given: Mapping[str, Any]
    fields: dict[str, Any]


class Argument(Struct, frozen=True, kw_only=True):
    """`taken`: as cyclopts takes it. `field`: what it is for. `read` makes the field's value; None: its kind does."""

    taken: Taken
    field: str
    read: Callable[[Reading, Any], Any] | None = None


def positional(name: str, kind: Any, field: str = "", **more: Any) -> Argument:
    return Argument(taken=Taken(name, Taken.POSITIONAL_ONLY, annotation=kind), field=field or name, **more)


def several(name: str, kind: Any, field: str = "", **more: Any) -> Argument:
    """Any number of positional arguments."""
    return Argument(taken=Taken(name, Taken.VAR_POSITIONAL, annotation=kind), field=field or name, **more)


def option(
    name: str, field: str = "", kind: Any = str | None, *, about: str = "", default: Any = None, **more: Any
) -> Argument:
    """`about`: its help, unless its kind has one."""
    annotation = Annotated[kind, Parameter(help=about)] if about else kind
    taken = Taken(name, Taken.KEYWORD_ONLY, default=default, annotation=annotation)
    return Argument(taken=taken, field=field or name, **more)


THE_RANKING: Final = positional("ranking", RankingText, "ranking_id")
THE_COMPETITOR: Final = positional("competitor", CompetitorText, "competitor_id")
THE_COMPETITION: Final = positional("competition", CompetitionText, "competition_id")
THE_COMPETITORS: Final = several("competitors", CompetitorTexts)
REQUIRED: Final = Taken.empty
"""The default of an option that must be given."""
_SLUG: Final = positional("slug", Slug)
_COMMON: Final = option("json", kind=Json, default=False), option("where", kind=Where, default=HERE)


def function_of(arguments: Iterable[Argument], run: CommandFunction) -> CommandFunction:
    """The function of a command about a tournament: it calls `run` with what was given, by name. The command takes
    the database, too, and --json unless it is one of the arguments."""
    taken = {_SLUG.taken.name: _SLUG.taken}
    for argument in (*arguments, *_COMMON):
        taken.setdefault(argument.taken.name, argument.taken)
    signature = Signature([*taken.values()])

    async def function(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        await run(**bound.arguments)

    function.__signature__ = signature  # type: ignore[attr-defined] # from which cyclopts makes the arguments
    return function


def fields_read(
    view: View, kind: type[Struct], arguments: Iterable[Argument], given: Mapping[str, Any], fixed: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a struct of this kind. `fixed`: those that it has unless they are given. Raises Unacceptable and
    NotFound."""
    reading = Reading(view, Names(view.live.board), given, {**fixed})
    declared = {field.name: field for field in structs.fields(kind)}
    for argument in arguments:
        value, field = given[argument.taken.name], declared.get(argument.field)
        if value is None:
            continue
        if field and field.default is UNSET and NoneType in get_args(field.type) and value in ("", [""]):
            reading.fields[argument.field] = None
        else:
            read = argument.read or partial(_value, kind=field and field.type)
            reading.fields[argument.field] = read(reading, value)
    return reading.fields


def _value(reading: Reading, given: Any, kind: Any) -> Any:
    """What an argument says of a field of this kind."""
    names = reading.names
    readers: Mapping[Any, Callable[[Any], Any]] = {
        CompetitorId: names.competitor,
        CompetitionId: names.competition,
        RankingId: names.ranking,
        UnityId: lambda text: names.unity(reading.fields["ranking_id"], text),
        Sort: Sort,
    }
    if kind in readers:
        return readers[kind](given)
    kinds = [arm for arm in get_args(kind) if arm not in (NoneType, UnsetType)]
    if get_origin(kind) is tuple:
        return tuple([_value(reading, one, kinds[0]) for one in given])
    return _value(reading, given, kinds[0]) if kinds else given
