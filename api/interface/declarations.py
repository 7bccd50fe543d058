"""How an operation is declared: one row with everything that is particular to it.

Routing, the reading of forms and queries, the OpenAPI document, the page for people and the table in the documentation
are made from these rows. What all operations of one kind have in common is in `handlers.py`.
"""

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Sequence as Items
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from api.access.auth import Scope, Token
from api.desk.desk import Desk
from api.http.outgoing import Later, Long
from api.interface.fields import SCHEMAS, Field, Fields, fields_of, items_field
from api.interface.rendering import Answer, BoardNow, TaggedBody
from engine.domain.commands import Command, Previewed
from engine.domain.events import Event
from engine.process.time_slices import TimeSlices
from projections.answers.view import View
from projections.board.board import Board
from projections.live.tournament import LiveTournament

TOURNAMENT: Final = "/tournament/{tournament}/"
"""All operations are below this path."""
IDEMPOTENCY_KEY_PATTERN: Final = "[!-~]{1,255}"


def fields_name(operation_id: str) -> str:
    """What the document calls an object of the fields of an operation."""
    return f"{operation_id[0].upper()}{operation_id[1:]}Fields"


class Declared(Struct, frozen=True):
    """What rows say first; those of a Write say it after the method. `path`: what follows TOURNAMENT. `operation_id`:
    what clients that are generated from the document call the operation."""

    path: str
    summary: str
    operation_id: str


class Enveloped(Declared, frozen=True, kw_only=True):
    """An operation with an envelope. `fields`: those of its query. `example`: values of those that it needs."""

    answer: Answer
    fields: Fields = ()
    example: Mapping[str, Any] = {}


class Read(Enveloped, frozen=True, kw_only=True):
    """Answers a question from memory. `question` is made of the ids of the path and of the query's `fields`.

    `find`, for work that may take longer than a time slice, pauses for others and returns the value that `render` shows
    instead of the question. `judged`: things named in the question are checked, and may be refused with 422."""

    question: Callable[..., Any]
    render: Callable[[BoardNow, Answer, Any], TaggedBody | Later]
    find: Callable[[LiveTournament, TimeSlices, Any], Awaitable[Any]] | None = None
    judged: bool = False


class NoQuestion(Struct, frozen=True):
    """That of a read that shows the one thing of its kind in a tournament."""


class RecallContext(View, kw_only=True):
    """The sources of a Recall's answer. `begin` begins a long answer when there is room for it."""

    begin: Callable[[Later], Awaitable[Long]]


class Public(Struct, frozen=True):
    """The same read for everybody, without what is NOT_PUBLIC (`engine/domain/terms.py`)."""

    summary: str
    operation_id: str


class Recall(Enveloped, frozen=True, kw_only=True):
    """Answers a question about the past from the log. `question` is made as in `Read`; if the path names a ranking, it
    has the `ranking_id`. `judged`: things that it names are checked, and may be refused with 422. `previews`: it shows
    what a change would lead to, and is refused if that would be. `public`: the public may ask it, too. `about`: the
    resource under which documents list it; empty: the first word of its path."""

    question: Callable[..., Any]
    render: Callable[[RecallContext, Answer, Any], Awaitable[TaggedBody | Long]]
    judged: bool = False
    previews: bool = False
    public: Public | None = None
    about: str = ""
    scope: Scope = Scope.READ


class Many(Struct, frozen=True):
    """How an operation makes or changes several at once, from the field `items`. `command` is made of the commands that
    its items would be by themselves. `render` shows everything that its events made or changed."""

    command: Callable[..., Command]
    answer: Answer
    render: Callable[[BoardNow, Answer, Items[Any]], bytes | Later]


class Write(Struct, frozen=True):
    """Changes something. `command` is made of the ids of the path, of a fresh id for each of `new_ids`, and of the
    form's `fields`. `render` shows what the first event that the command led to has made or changed; with
    `shows_all`, what all of them have. `new_ids` says what the command and the event call each id, by its key in a
    minimal answer. `many`: it can create several at once. `example`: values of fields that are accepted, as in JSON."""

    method: str
    path: str
    summary: str
    operation_id: str
    command: Callable[..., Command]
    answer: Answer
    render: Callable[[BoardNow, Answer, Any], bytes | Later]
    fields: Fields = ()
    new_ids: Mapping[str, str] = {}
    scope: Scope = Scope.WRITE
    many: Many | None = None
    shows_all: bool = False
    example: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        force_setattr(self, "fields", fields_of(self.command, self.fields))

    @property
    def takes(self) -> Fields:
        """All fields of a body."""
        return self.fields if self.many is None else (*self.fields, self.items)

    @property
    def items(self) -> Field:
        """The field that has several objects of its fields."""
        return items_field({"$ref": SCHEMAS + fields_name(self.operation_id)})

    def minimal(self, events: Items[Event], *, of_items: bool) -> bytes:
        """The body of the minimal answer. It is made from the events alone, so its cost does not depend on the
        tournament."""
        if of_items:
            (name,) = self.new_ids.values()
            return self.answer.minimal({"ids": [getattr(event, name) for event in events if event.touches]})
        return self.answer.minimal({key: getattr(events[0], name) for key, name in self.new_ids.items()})

    def whole(self, view: BoardNow, events: Items[Event], *, of_items: bool) -> bytes | Later:
        """The body of the whole answer to what led to these events, or how to begin it."""
        if of_items and self.many is not None:
            return self.many.render(view, self.many.answer, [event for event in events if event.touches])
        return self.render(view, self.answer, events if self.shows_all else events[0])


class Recording(Write, frozen=True):
    """A change whose query may name a ranking: its standings are in the answer, too. So is `beside` the resource:
    further keys of the answer, made of the board and the events."""

    beside: Callable[[Board, Items[Event]], bytes] = lambda _board, _events: b""

    def whole(self, view: BoardNow, events: Items[Event], *, of_items: bool) -> bytes | Later:
        made = super().whole(view, events, of_items=of_items)
        return b"%b%b}" % (made[:-1], self.beside(view.board, events)) if isinstance(made, bytes) else made


class Preview(Enveloped, frozen=True, kw_only=True):
    """Shows the effect of a change: the standings before and after. Records nothing. `fields`: as those of the
    change."""

    command: type[Previewed]
    scope: Scope = Scope.ADMIN

    def __post_init__(self) -> None:
        force_setattr(self, "fields", fields_of(self.command, self.fields))


class Stream(Declared, frozen=True):
    """A stream: past events of the tournament, then new ones. It has no envelope and no end. `fields` are those of its
    query."""

    fields: Fields = ()


class Acting(Struct, frozen=True, kw_only=True):
    """For whom an Action is performed, and with what. `key`: the idempotency key that was sent."""

    desk: Desk
    token: Token
    key: str | None


class Action(Declared, frozen=True):
    """Does or shows something that no tournament's log has. `perform` is called with an Acting and the id of the
    tournament, with the ids of the path and the values of the `fields` by name, and returns the payload of the answer.
    `at_once_max`: how many requests a process performs at the same time; None: any number. `of_service`: it is about no
    tournament, and its path not below TOURNAMENT."""

    answer: Answer
    perform: Callable[..., Awaitable[Any]]
    scope: Scope = Scope.READ
    at_once_max: int | None = None
    method: Literal["GET", "POST"] = "POST"
    fields: Fields = ()
    of_service: bool = False
    example: Mapping[str, Any] = {}

    @property
    def address(self) -> str:
        return f"/{self.path}" if self.of_service else TOURNAMENT + self.path


Operation = Read | Recall | Write | Preview


def method_of(operation: Operation) -> str:
    return operation.method if isinstance(operation, Write) else "GET"


def scope_of(operation: Operation) -> Scope:
    """What a token must reach to ask for it."""
    return Scope.READ if isinstance(operation, Read) else operation.scope


def name_of(operation: Operation) -> str:
    """Method and path in the tournament: each operation has its own."""
    return f"{method_of(operation)} {operation.path}"
