"""Commands about what the public sees of a tournament."""

from functools import partial
from typing import Annotated, Final

from cyclopts import ArgumentCollection, Group, Parameter
from cyclopts.validators import Number

from api.cli.arguments import option
from api.cli.verbs import Done, verb
from engine.domain.commands import ChangePublication
from engine.domain.terms import Sequence


def _one_of_them(given: ArgumentCollection) -> None:
    """Raises ValueError."""
    if sum(bool(argument.tokens) for argument in given) != 1:
        raise ValueError("Say how far: --to SEQUENCE, --next or --all.")


_UP_TO: Final = Group("Up to", validator=_one_of_them)
_Step = Annotated[bool, Parameter(group=_UP_TO, negative="")]


def _public_end(done: Done) -> Sequence | None:
    return done.view.publication.public_end(done.view.live.head.sequence)


def _seen(done: Done) -> str:
    public_end = _public_end(done)
    if public_end is None:
        return "the public sees nothing of it"
    return f"the public sees it up to event {public_end}; its board is at /board/{done.slug}"


def _revealed(to: Sequence | None = None, **given: bool) -> ChangePublication:
    return ChangePublication(reveal=to or ("next" if given["next"] else "all"))


_change: Final = partial(verb, ChangePublication, says=_seen, facts=lambda done: {"public_end": _public_end(done)})
publish_tournament = _change(fixed={"published": True})
unpublish_tournament = _change(fixed={"published": False})
freeze = _change(
    option(
        "at",
        "freeze",
        Annotated[int | None, Parameter(validator=Number(gte=1))],
        about="Freeze it after the event with this sequence. Only what the public has not seen yet can be held back.",
    ),
    fixed={"freeze": "now"},
)
reveal = _change(
    option(
        "to",
        kind=Annotated[int | None, Parameter(group=_UP_TO, validator=Number(gte=1))],
        about="Up to the event with this sequence.",
    ),
    option("next", kind=_Step, default=False, about="Through the points of the next competition that gave any."),
    option(
        "all", kind=_Step, default=False, about="Everything, and new events at once: nothing is held back any longer."
    ),
    make=_revealed,
)
