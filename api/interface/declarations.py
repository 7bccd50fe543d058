"""How an operation is declared: one row with everything that is particular to it.

Routing, the reading of forms and queries, the OpenAPI document, the page for people and the table in the documentation
are made from these rows. What all operations of one kind have in common is in `handlers.py`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from api.http.auth import Scope
from api.http.outgoing import Later, Long
from api.interface.fields import Fields
from api.interface.rendering import Answer, TaggedBody, View
from engine.domain.commands import Command, UnvoidCompetition, VoidCompetition
from engine.process.turns import Turns
from projections.live.tournament import LiveTournament
from projections.past.past import Past

TOURNAMENT: Final = "/tournament/{tournament}/"
"""All operations are below this path. `path`, in the rows, is what follows it."""


class Read(Struct, frozen=True):
    """Answers a question from memory. `question` is made of the ids of the path and of the query's `fields`.

    `find`, for what may take longer than a turn, gives way to others and returns what `render` shows in place of the
    question. `judged`: what the question names is looked at, and may be refused with 422."""

    path: str
    summary: str
    question: Callable[..., Any]
    answer: Answer
    render: Callable[[View, Answer, Any], TaggedBody | Later]
    fields: Fields = ()
    find: Callable[[LiveTournament, Turns, Any], Awaitable[Any]] | None = None
    judged: bool = False


class RecallContext(Struct, frozen=True):
    """What a Recall is answered from. `live` is current: it knows the head, and what exists by now.
    `begin` begins a long answer when there is room for it."""

    live: LiveTournament
    past: Past
    begin: Callable[[Later], Awaitable[Long]]


class Recall(Struct, frozen=True):
    """Answers a question about the past of a ranking from the log. `question` is made as in `Read`, and has the
    `ranking_id`. `judged`: what it names is looked at, and may be refused with 422."""

    path: str
    summary: str
    question: Callable[..., Any]
    answer: Answer
    render: Callable[[RecallContext, Answer, Any], Awaitable[TaggedBody | Long]]
    fields: Fields = ()
    judged: bool = False


class Write(Struct, frozen=True):
    """Changes something. `command` is made of the ids of the path, of a fresh id for each of `new_ids`, and of the
    form's `fields`. `render` shows what the event, the first that the command led to, has made or changed. `new_ids`
    says what the command and the event call each id, by its key in a minimal answer."""

    method: str
    path: str
    summary: str
    command: Callable[..., Command]
    answer: Answer
    render: Callable[[View, Answer, Any], bytes | Later]
    fields: Fields = ()
    new_ids: Mapping[str, str] = {}
    scope: Scope = Scope.WRITE

    def minimal(self, event: Any) -> bytes:
        """The body of the minimal answer. It is made from the event alone, so it costs the same in any tournament."""
        return self.answer.minimal({key: getattr(event, name) for key, name in self.new_ids.items()})


class Preview(Struct, frozen=True):
    """Shows what a change would lead to: the standings before and after. Nothing is recorded."""

    path: str
    summary: str
    command: type[VoidCompetition | UnvoidCompetition]
    answer: Answer
    fields: Fields = ()


Operation = Read | Recall | Write | Preview


def method_of(operation: Operation) -> str:
    return operation.method if isinstance(operation, Write) else "GET"


def scope_of(operation: Operation) -> Scope:
    """What a token must reach to ask for it."""
    if isinstance(operation, Write):
        return operation.scope
    return Scope.ADMIN if isinstance(operation, Preview) else Scope.READ


def name_of(operation: Operation) -> str:
    """Method and path in the tournament: each operation has its own."""
    return f"{method_of(operation)} {operation.path}"
