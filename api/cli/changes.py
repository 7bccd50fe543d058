"""Commands that change a tournament by one command of the domain, and their options."""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType

from api.cli import printing
from api.cli.where import Where, desk_at, tournament_at
from api.interface.names import Names
from engine.domain.commands import Command
from engine.domain.terms import OPERATOR

_T = TypeVar("_T")


async def record(
    slug: str,
    where: Where,
    asked: Callable[[Names], Command],
    *,
    json: bool,
    sentence: Callable[[Any], str] = lambda _command: "",
) -> None:
    """Submits the command that is `asked` for with the names of the tournament, and prints the event that it was
    recorded as, or the sentence about it. Raises as `asked`."""
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        command = asked(Names(live.board))
        receipt = await desk.submit(live, command, actor=OPERATOR)
    printing.recorded(receipt.sequence, as_json=json, sentence=sentence(command))


def changed(text: str | None, read: Callable[[str], _T]) -> _T | None | UnsetType:
    """What an option says of a field of a command: an absent one keeps it, an empty one clears it, and `read` reads any
    other. Raises as `read`."""
    if text is None:
        return UNSET
    return read(text) if text else None
