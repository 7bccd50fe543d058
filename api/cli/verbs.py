"""Verbs: the commands that change a tournament by one command of the domain, a row each."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast, get_args

from msgspec import Struct
from msgspec.structs import asdict

from api.cli import printing
from api.cli.arguments import Argument, CommandFunction, fields_read, function_of, option
from api.cli.previews import DryRun, print_foreseen, say_unscored
from api.cli.where import Where, desk_at, tournament_at
from api.desk.case import Receipt
from api.interface.direction import isolated
from engine.domain.commands import Command, Previewed
from engine.domain.state import State
from engine.domain.steps import Steps
from engine.domain.terms import OPERATOR
from engine.process.time_slices import in_time_slices
from projections.answers.scoring import unscored_by
from projections.answers.view import View
from projections.answers.zones import with_days

_DRY_RUN: Final = option("dry_run", kind=DryRun, default=False)


class Done(Struct):
    """What a verb did."""

    slug: str
    view: View
    command: Any
    receipt: Receipt


class Verb(Struct, frozen=True, kw_only=True):
    """`fixed`: fields that it always gives, unless an argument does. `make`: what is made of the fields. `makes`: the
    field with a new id; that id is put out, in JSON with the fields that `shows` names. `refuse`: raises a Refusal of
    what the operation accepts. `says`: a sentence with fields of the command, or a function that makes it. `facts`:
    those in JSON, besides the sequence."""

    command: type[Command]
    arguments: tuple[Argument, ...]
    fixed: Mapping[str, Any] = {}
    make: Callable[..., Command] | None = None
    makes: str = ""
    shows: tuple[str, ...] = ()
    refuse: Callable[[State, Any], Steps[None]] | None = None
    says: str | Callable[[Done], str] = "recorded as event {sequence}"
    facts: Callable[[Done], dict[str, object]] = lambda _done: {}


def verb(command: type[Command], *arguments: Argument, **more: Any) -> CommandFunction:
    """The function of a verb, for the tree of commands. `more`: the other fields of Verb."""
    row = Verb(command=command, arguments=arguments, **more)
    dry_run = [_DRY_RUN] if command in get_args(Previewed) else []
    return function_of([*arguments, *dry_run], partial(_run, row))


async def _run(row: Verb, slug: str, *, json: bool, where: Where, dry_run: bool = False, **given: Any) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        new_id = {row.makes: await desk.new_id()} if row.makes else {}
        fields = fields_read(view, row.command, row.arguments, given, {**row.fixed, **new_id})
        command = with_days(view.live.board, (row.make or row.command)(**fields))
        if row.refuse is not None:
            await in_time_slices(row.refuse(view.live.board, command))
        if dry_run:
            await print_foreseen(desk, view, cast(Previewed, command), json=json)
            return
        receipt = await desk.submit(view.live, command, actor=OPERATOR)
    _tell(row, Done(slug, view, command, receipt), json=json)
    say_unscored(view, unscored_by(view.live.board, receipt.events))


def _tell(row: Verb, done: Done, *, json: bool) -> None:
    event, sequence = done.receipt.event, done.receipt.sequence
    if row.makes:
        made, shown = getattr(event, row.makes), {name: getattr(event, name) for name in row.shows}
        printing.made(str(made), {"id": made} | shown, as_json=json)
    else:
        texts = {name: isolated(of.strip()) for name, of in asdict(done.command).items() if isinstance(of, str)}
        said = asdict(done.command) | texts | {"slug": done.slug, "sequence": sequence}
        sentence = row.says(done) if callable(row.says) else row.says.format(**said)
        printing.done(sentence, {"sequence": sequence} | row.facts(done), as_json=json)
