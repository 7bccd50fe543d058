"""Commands about what the public sees of a tournament."""

from typing import Annotated, Final, Literal

from cyclopts import ArgumentCollection, Group, Parameter
from cyclopts.validators import Number

from api.cli import printing
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from engine.domain.commands import ChangePublication
from engine.domain.terms import OPERATOR, Sequence


def _one_of_them(given: ArgumentCollection) -> None:
    """Raises ValueError."""
    if sum(bool(argument.tokens) for argument in given) != 1:
        raise ValueError("Say how far: --to SEQUENCE, --next or --all.")


_UP_TO: Final = Group("Up to", validator=_one_of_them)
_EventNumber = Annotated[int | None, Parameter(validator=Number(gte=1))]


async def publish_tournament(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    await _change(ChangePublication(published=True), slug, json=json, where=where)


async def unpublish_tournament(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    await _change(ChangePublication(published=False), slug, json=json, where=where)


async def freeze(slug: Slug, /, *, at: _EventNumber = None, json: Json = False, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    at
        Hold it after the event with this sequence. Only what the public has not seen yet can be held back.
    """
    await _change(ChangePublication(freeze="now" if at is None else Sequence(at)), slug, json=json, where=where)


async def reveal(
    slug: Slug,
    /,
    *,
    to: Annotated[int | None, Parameter(group=_UP_TO, validator=Number(gte=1))] = None,
    next: Annotated[bool, Parameter(group=_UP_TO, negative="")] = False,  # noqa: A002 - as the option is named
    all: Annotated[bool, Parameter(group=_UP_TO, negative="")] = False,  # noqa: A002
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    to
        Up to the event with this sequence.
    next
        Through the points of the next competition that gave any.
    all
        Everything, and new events at once: nothing is held back any longer.
    """
    step: Sequence | Literal["next", "all"] | None = None if to is None else Sequence(to)
    if next or all:
        step = "next" if next else "all"
    await _change(ChangePublication(reveal=step), slug, json=json, where=where)


async def _change(command: ChangePublication, slug: str, *, json: bool, where: Where) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        receipt = await desk.submit(live, command, actor=OPERATOR)
        public_end = live.board.publication.public_end(live.head.sequence)
    if json:
        printing.json({"sequence": receipt.sequence, "public_end": public_end})
    elif public_end is None:
        printing.say("the public sees nothing of it")
    else:
        printing.say(f"the public sees it up to event {public_end}; its board is at /board/{slug}")
