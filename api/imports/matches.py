"""What files of competitions share: what is asked about their lines before they are recorded."""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import datetime, tzinfo
from typing import Final, TypeVar

from msgspec import UNSET

from api.imports.kinds import FileKind, FileLine
from api.interface.doubts import double, doubts, is_near, twin_of
from engine.domain.commands import AddCompetition, ChangeCompetition
from engine.domain.errors import Fault
from engine.domain.presentation import in_zone
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, CompetitorId
from projections.board.board import Board, Competition

_L = TypeVar("_L", bound=FileLine)
_Pair = frozenset[CompetitorId]


class MatchKind(FileKind[_L]):
    """Each line is a competition, which its first request adds. `others`: those of two that the file has, too, and that
    no line of it has made."""

    zone: tzinfo

    def __init__(self, rows: Items[object]) -> None:
        super().__init__(rows)
        self._lines: Final[dict[_Pair, list[_L]]] = {}
        self.others: Final[dict[_Pair, list[tuple[CompetitionId, Competition]]]] = {}

    def count(self, board: Board) -> int:
        return len(board.competitions)

    def look(self, board: Board, lines: Items[_L], others_max: int) -> Steps[None]:
        own = {line.id for line in lines}
        for line in lines:
            if len(pair := frozenset(_added(line).participants)) == 2:
                self._lines.setdefault(pair, []).append(line)
            yield
        is_new = any(0 in line.left for line in lines)
        for competition_id, one in board.competitions.run(1, others_max if is_new else 0):
            pair = frozenset(one.participants)
            if pair in self._lines and competition_id not in own and one.voided_at is None:
                self.others.setdefault(pair, []).append((competition_id, one))
            yield

    def doubts(self, line: _L, board: Board, now: datetime) -> Iterator[Fault]:
        now = now.astimezone(self.zone)
        for said in map(line.command, line.left):
            if isinstance(said, AddCompetition):
                yield from doubts(said.participants, said.started_at, said.result, said.winner_id, now)
                yield from self._double(said)
            elif isinstance(said, ChangeCompetition):
                one = board.competitions[said.competition_id]
                begins = one.date if said.started_at is UNSET else said.started_at
                yield from doubts(one.participants, begins, said.result, said.winner_id, now)

    def _double(self, made: AddCompetition) -> Iterator[Fault]:
        """About a match, the only one of the file on its days, if others have added one of the same two there."""
        pair = frozenset(made.participants)
        twin = twin_of(made, [one for _, one in self.others.get(pair, ())])
        if twin is not None and sum(is_near(_added(line), made) for line in self._lines[pair]) == 1:
            yield double(in_zone(twin.started_at, self.zone))


def _added(line: FileLine) -> AddCompetition:
    added = line.command(0)
    assert isinstance(added, AddCompetition)
    return added
