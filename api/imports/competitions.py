"""Competitions from files, with the points that they give in a ranking: how a line is known again, and what it becomes.

A line is two requests: the competition, and its points. The key of a competition is made from its time, its
participants, and the number of earlier lines with the same time and participants. The key of its points also includes
the ranking. The score and the points are not in the keys but in the fingerprints of the requests. So a line whose score
or points have changed since does not become another competition, which would count double. It is refused, and the
message says what to do instead.
"""

from collections.abc import Sequence as Items
from typing import Final

import msgspec

from api.desk.fingerprints import fingerprint
from api.imports.kinds import FileKind, FileLine, Print
from api.imports.played import NEEDED, Played, PlayedReader, PlayedRow, Scoring
from api.imports.rows import FileRows, taken
from engine.domain.commands import AddCompetition, AddPoints
from engine.domain.errors import Unreadable
from engine.domain.events import Points, Recorded
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, RankingId
from projections.board.board import Board

IMPORT_COMPETITIONS_MAX: Final = 100_000


class CompetitionLine(FileLine):
    def __init__(self, number: int, played: Played, ranking_id: RankingId) -> None:
        super().__init__(number)
        self.played = played
        self.requests = 2 if played.deltas else 1
        self._ranking_id = ranking_id
        self._occurrence = 1
        self._generations = [1, 1]

    @property
    def alike(self) -> tuple[object, ...]:
        return self.played.started_at, self.played.participants

    def set_prints(self, occurrence: int) -> None:
        self._occurrence = occurrence
        played, (generation, of_points) = self.played, self._generations
        same = {
            "started_at": played.started_at.isoformat(),
            "participants": ",".join(map(str, played.participants)),
            "occurrence": str(occurrence),
            "generation": str(generation),
        }
        result = msgspec.json.encode(played.result).decode()
        rest = {"group": str(played.group_id), "location": played.location, "result": result}
        points = same | {"ranking": str(self._ranking_id), "points generation": str(of_points)}
        deltas = {"deltas": ";".join(f"{d.competitor_id},{d.unity_id},{d.amount}" for d in played.deltas)}
        self.prints = (_print("competition", same, rest), _print("points", points, deltas))

    def move(self, step: int, generations: int) -> None:
        self._generations[step] += generations
        self.set_prints(self._occurrence)

    def command(self, step: int) -> AddCompetition | AddPoints:
        played, competition_id = self.played, CompetitionId(self.id)
        if step == 1:
            return AddPoints(ranking_id=self._ranking_id, deltas=played.deltas, competition_id=competition_id)
        return AddCompetition(
            competition_id=competition_id,
            group_id=played.group_id,
            started_at=played.started_at,
            location=played.location or None,
            participants=played.participants,
            result=played.result,
            winner_id=played.winner_id,
        )


def _print(what: str, same: dict[str, str], rest: dict[str, str]) -> Print:
    return Print(fingerprint("IMPORT", what, same), fingerprint("IMPORT", what, same | rest))


def read_competitions(
    file: FileRows, ranking_id: RankingId, scoring: Scoring, lines_max: int = IMPORT_COMPETITIONS_MAX
) -> "Competitions":
    """Raises Unreadable, naming every wrong line."""
    columns = file.columns or ()
    if len(set(columns)) < len(columns) or not {*NEEDED} <= {*columns}:
        raise Unreadable(
            "The first line must name the columns, each once: date, participants and score, then any of group, "
            "location, and unities of the ranking."
        )
    return Competitions(ranking_id, scoring, columns, taken(file.rows, lines_max, dict[str, str]))


class Competitions(FileKind[CompetitionLine]):
    what = "competition"
    done = "imported"
    steps = 2
    named = True
    columns = {"result": "score", "participants_delta": "points", "competition_id": "competition"}  # noqa: RUF012

    def __init__(self, ranking_id: RankingId, scoring: Scoring, columns: Items[str], rows: Items[PlayedRow]) -> None:
        super().__init__(rows)
        self._ranking_id = ranking_id
        self._scoring = scoring
        self._columns = columns

    def open(self, board: Board, secret: bytes) -> Steps[None]:
        self.reader = PlayedReader(board, self._ranking_id, self._columns, self._scoring)
        yield from self.reader.read_names(self.rows)

    def line(self, row: PlayedRow) -> Steps[CompetitionLine]:
        return CompetitionLine(row.number, (yield from self.reader.played(row)), self._ranking_id)

    def changed(self, recorded: Recorded) -> str | None:
        event = recorded.event
        if event.made_competition is not None:
            return (
                f"it was imported as competition {event.made_competition}, with another score, group or location; undo "
                "that import first, or correct that competition and leave this line out"
            )
        if isinstance(event, Points):
            return (
                f"competition {event.competition_id} was imported with other points (event {recorded.sequence}); undo "
                "that import first, or correct them with `tallybook points add` and leave this line out"
            )
        return None

    def is_taken_back(self, board: Board, recorded: Recorded) -> bool:
        made = recorded.event.made_competition
        if made is not None:
            return board.competitions[made].voided_at is not None
        return recorded.sequence in board.rankings[self._ranking_id].undone
