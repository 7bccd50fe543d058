"""Verbs: the commands that change a tournament by one command of the domain, a row each.

The kind of a field decides how its argument is read: ids are given by id or by name, and what a change may empty is
emptied by an empty text.
"""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from inspect import Parameter as Taken
from inspect import Signature
from types import NoneType
from typing import Annotated, Any, Final, cast, get_args, get_origin

from cyclopts import Parameter
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict, fields

from api.cli import printing
from api.cli.names import CompetitionText, CompetitorText, CompetitorTexts, RankingText
from api.cli.previews import DryRun, print_foreseen
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.desk.case import Receipt
from api.interface.direction import isolated
from api.interface.names import Names
from engine.domain.commands import Command, Previewed
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sort, UnityId
from projections.answers.view import View
from projections.answers.zones import with_days


class Reading(Struct):
    """What arguments are read with. `given`: all of them, as they were given. `fields`: those that are read."""

    view: View
    names: Names
    given: Mapping[str, Any]
    fields: dict[str, Any]


class Argument(Struct, frozen=True, kw_only=True):
    """`taken`: as cyclopts takes it. `field`: of the command. `read` makes the field's value; None: its kind does."""

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
_SLUG: Final = positional("slug", Slug)
_DRY_RUN: Final = option("dry_run", kind=DryRun, default=False)
_COMMON: Final = option("json", kind=Json, default=False), option("where", kind=Where, default=HERE)


class Done(Struct):
    """What a verb did."""

    slug: str
    view: View
    command: Any
    receipt: Receipt


class Verb(Struct, frozen=True, kw_only=True):
    """`fixed`: fields that it always gives, unless an argument does. `make`: what is made of the fields. `makes`: the
    field with a new id; that id is put out, in JSON with the fields that `shows` names. `says`: a sentence with fields
    of the command, or a function that makes it. `facts`: those in JSON, besides the sequence."""

    command: type[Command]
    arguments: tuple[Argument, ...]
    fixed: Mapping[str, Any] = {}
    make: Callable[..., Command] | None = None
    makes: str = ""
    shows: tuple[str, ...] = ()
    says: str | Callable[[Done], str] = "recorded as event {sequence}"
    facts: Callable[[Done], dict[str, object]] = lambda _done: {}

    def made(self, reading: Reading) -> Command:
        """The command. Raises Unacceptable and NotFound."""
        declared = {field.name: field for field in fields(self.command)}
        for argument in self.arguments:
            given, field = reading.given[argument.taken.name], declared.get(argument.field)
            if given is None:
                continue
            if field and field.default is UNSET and NoneType in get_args(field.type) and given in ("", [""]):
                value = None
            else:
                value = (argument.read or partial(_value, kind=field and field.type))(reading, given)
            reading.fields[argument.field] = value
        return with_days(reading.view.live.board, (self.make or self.command)(**reading.fields))

    def tell(self, done: Done, *, json: bool) -> None:
        event, sequence = done.receipt.event, done.receipt.sequence
        if self.makes:
            made, shown = getattr(event, self.makes), {name: getattr(event, name) for name in self.shows}
            printing.made(str(made), {"id": made} | shown, as_json=json)
        else:
            texts = {name: isolated(of.strip()) for name, of in asdict(done.command).items() if isinstance(of, str)}
            said = asdict(done.command) | texts | {"slug": done.slug, "sequence": sequence}
            sentence = self.says(done) if callable(self.says) else self.says.format(**said)
            printing.done(sentence, {"sequence": sequence} | self.facts(done), as_json=json)


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


def verb(command: type[Command], *arguments: Argument, **more: Any) -> Callable[..., Coroutine[Any, Any, None]]:
    """The function of a verb, for the tree of commands. `more`: the other fields of Verb."""
    row = Verb(command=command, arguments=arguments, **more)
    dry_run = [_DRY_RUN] if command in get_args(Previewed) else []
    signature = Signature([argument.taken for argument in (_SLUG, *arguments, *dry_run, *_COMMON)])

    async def run(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        await _run(row, **bound.arguments)

    run.__signature__ = signature  # type: ignore[attr-defined] # from which cyclopts makes the arguments
    return run


async def _run(row: Verb, slug: str, *, json: bool, where: Where, dry_run: bool = False, **given: Any) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        new_id = {row.makes: await desk.new_id()} if row.makes else {}
        command = row.made(Reading(view, Names(view.live.board), given, {**row.fixed, **new_id}))
        if dry_run:
            await print_foreseen(desk, view, cast(Previewed, command), json=json)
            return
        receipt = await desk.submit(view.live, command, actor=OPERATOR)
    row.tell(Done(slug, view, command, receipt), json=json)
