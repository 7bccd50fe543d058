"""What an importer must know of a kind of file: how its lines are known again, and which commands they become."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Any, ClassVar, Final, Generic, TypeVar

from msgspec import Struct

from engine.domain.commands import Command
from engine.domain.errors import Fault
from engine.domain.events import Event, Recorded
from engine.domain.steps import Steps
from projections.board.board import Board

CORRECTION: Final = 1
"""The request of a line that corrects what has its key. It is not part of an import that can be undone."""


class Print(Struct, frozen=True):
    """What a request is known by: `said`, from which its key is made, and its `fingerprint`. 32 bytes each."""

    said: bytes
    fingerprint: bytes

    @property
    def key(self) -> str:
        return f"import-{self.said.hex()}"


def changes_of(said: Mapping[str, Any], now: object) -> dict[str, Any]:
    """The fields that a line gives and `now` has otherwise. What the line leaves empty stays."""
    return {name: value for name, value in said.items() if value not in (None, "", ()) and value != getattr(now, name)}


class FileLine(ABC):
    """A line of the file, with its `number` in it. `prints`: of its requests; `left`: those that are to be recorded
    still. The first one makes something, which has the `id`; 0: not drawn yet. `needs`: a line whose id is in the
    requests."""

    id: int = 0
    correction: Command | None = None
    """The request of the step CORRECTION: it changes what there is already."""
    needs: "FileLine | None" = None
    prints: tuple[Print, ...]

    def __init__(self, number: int, left: Items[int] = (0,)) -> None:
        self.number = number
        self.left = [*left]

    @property
    @abstractmethod
    def alike(self) -> Hashable:
        """What is equal for lines that say the same."""

    @property
    def is_done(self) -> bool:
        return not self.left

    @property
    def only_corrects(self) -> bool:
        return self.correction is not None and self.left == [CORRECTION]

    def correct(self, command: Command, said: bytes) -> None:
        """Has the line change what there is already. `said`: what the change is known by."""
        self.correction = command
        self.left.insert(0, CORRECTION)
        self.prints = (self.prints[0], Print(said, said), *self.prints[CORRECTION + 1 :])

    @abstractmethod
    def set_prints(self, occurrence: int) -> None:
        """Sets the prints, of the line that is the `occurrence`th of those that are alike."""

    def move(self, step: int, generations: int) -> None:
        """Moves the request `step` by this many generations, for kinds that are `named`."""
        raise NotImplementedError

    def continue_after(self, event: Event) -> None:  # noqa: B027 - most lines always say all
        """Adds what is left to be recorded, if the line said less when its first request recorded this."""

    @abstractmethod
    def command(self, step: int) -> Command:
        """The request `step`."""


_Line = TypeVar("_Line", bound=FileLine)


CORRECT_OR_LEAVE_OUT: Final = "Correct the first line, or leave such columns out (--leave-out)."
"""What can be done about columns that mean nothing."""


class FileKind(ABC, Generic[_Line]):
    """What the rows of a file mean. `what` a line makes, and the word for what is `done` then. `steps`: requests of a
    line at most. `named`: its imports have names, and can be undone. `columns`: the file's names for fields of
    commands, if they differ. `named_later`: whether later lines may name what a line makes. `left_out`: columns of the
    file that mean nothing. `warning`: what organisers may have overlooked."""

    what: ClassVar[str]
    done: ClassVar[str]
    steps: ClassVar[int] = 1
    named: ClassVar[bool] = False
    columns: ClassVar[Mapping[str, str]] = {}
    named_later: ClassVar[bool] = True
    left_out: Items[str] = ()
    warning: str = ""

    def __init__(self, rows: Items[Any]) -> None:
        self.rows: Final = rows

    @abstractmethod
    def open(self, board: Board, secret: bytes) -> Steps[None]:
        """Prepares the reading of rows. `secret`: of the tournament. Raises a Refusal of the file as a whole."""

    @abstractmethod
    def line(self, row: Any) -> Steps[_Line]:
        """The line. Raises Unacceptable with every fault of it, by column."""

    def changed(self, recorded: Recorded) -> str | None:
        """Why a line is not the one of which this was recorded; None: that was no line of this kind."""

    def is_taken_back(self, board: Board, recorded: Recorded) -> bool:
        """Whether what a line made no longer counts."""
        raise NotImplementedError

    @abstractmethod
    def count(self, board: Board) -> int:
        """How many of what lines make the board has."""

    @abstractmethod
    def look(self, board: Board, lines: Items[_Line], others_max: int) -> Steps[None]:
        """Prepares the judging of lines. What the board has with a higher number than `others_max`, another import of
        the file may have made meanwhile."""

    def resolve(self, line: _Line, board: Board) -> None:
        """Finds what else the line names, unless it is done. Called for each line, in their order. Raises
        Unacceptable."""

    def doubts(self, line: _Line, board: Board, now: datetime) -> Iterable[Fault]:
        """What is asked about the line before it is recorded, by fields of commands, with places for the words of the
        sport."""
        return ()
