"""Commands that ask one question about a tournament and print the answer, a row each."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from api.cli import printing
from api.cli.arguments import Argument, CommandFunction, fields_read, function_of
from api.cli.where import Where, desk_at, tournament_at
from api.interface.shapes import shaped
from projections.answers.view import Question, View, ask


class Asking(Struct, frozen=True, kw_only=True):
    """`fixed`: fields that it always gives. `make`: what is made of the fields. `prints` is called with the view, the
    question and the answer. `shape`: makes the JSON of question and answer."""

    question: type[Question[Any]]
    arguments: tuple[Argument, ...]
    prints: Callable[[View, Any, Any], Awaitable[None]]
    fixed: Mapping[str, Any] = {}
    make: Callable[..., Question[Any]] | None = None
    shape: Callable[[Any, Any], Awaitable[Any]] | None = None


def asking(question: type[Question[Any]], *arguments: Argument, **more: Any) -> CommandFunction:
    """The function of a command, for the tree of commands. `more`: the other fields of Asking."""
    return function_of(arguments, partial(_run, Asking(question=question, arguments=arguments, **more)))


async def _run(row: Asking, slug: str, *, json: bool, where: Where, **given: Any) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        fields = fields_read(view, row.question, row.arguments, given, row.fixed)
        if "ranking_id" in fields:
            view.ranking(fields["ranking_id"])
        question = (row.make or row.question)(**fields)
        found = await ask(view, question)
        if not json:
            await row.prints(view, question, found)
        elif row.shape is None:
            printing.json(shaped(found))
        else:
            printing.json(await row.shape(question, found))
