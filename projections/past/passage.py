"""A passage of a ranking's history: a board and the points after it, for clients that fold them.

Pure. Within a passage, only points change the ranking's table. So the totals at its beginning, its deltas and the
position rule give the table after each of its events.
"""

from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from msgspec import Struct

from engine.domain.events import Points, Recorded, changed_by
from engine.domain.terms import CompetitionId, RankingId, Sequence
from projections.board.board import Board
from projections.past.history import changes_table

PASSAGE_EVENTS_MAX: Final = 1_000
"""Events of a passage. Passages begin at multiples of this number. They end earlier at an event other than points that
changes the table, or at too many deltas."""
PASSAGE_DELTAS_MAX: Final = 20_000
"""Deltas of a passage. A single event may have more."""


class Passage(Struct, frozen=True):
    """`board`: the board after the event `first`, or the empty one if that is 0. `points`: the events after it, up to
    `last`, that gave points in the ranking. `starts`: when the competitions added between them began."""

    board: Board
    first: Sequence
    last: Sequence
    points: list[Recorded]
    starts: dict[CompetitionId, datetime]

    def clock(self, recorded: Recorded) -> datetime:
        """The time of an event of `points`: when its competition began, or else when it was recorded."""
        competition_id = recorded.event.competition_id if isinstance(recorded.event, Points) else None
        if competition_id is None:
            return recorded.recorded_at
        competition = self.board.competitions.get(competition_id)
        before = recorded.recorded_at if competition is None else competition.started_at
        return self.starts.get(competition_id, before)


def passage_begin(at: Sequence) -> Sequence:
    """The event after which to start reading the log for the passage that shows the event `at`."""
    return Sequence((at - 1) // PASSAGE_EVENTS_MAX * PASSAGE_EVENTS_MAX)


def cut(run: Items[Recorded], ranking_id: RankingId, at: Sequence) -> tuple[Items[Recorded], Items[Recorded]]:
    """Cuts the passage that shows the event `at` out of a run of events: those before it, and its own. The first of
    these parts ends with the last change of the table up to `at`, the second before the next one."""
    begin = deltas = 0
    for number, recorded in enumerate(run):
        event = recorded.event
        if isinstance(event, Points) and event.ranking_id == ranking_id:
            deltas += len(changed_by(event))
        if changes_table(event, ranking_id) or (deltas > PASSAGE_DELTAS_MAX and number > begin):
            if recorded.sequence > at:
                return run[:begin], run[begin:number]
            begin, deltas = number + 1, 0
    return run[:begin], run[begin:]


def passage(board: Board, first: Sequence, run: Items[Recorded], ranking_id: RankingId) -> Passage:
    """The passage of these events, which follow the event `first`, that the board shows."""
    made = [(competition_id, one) for one in run if (competition_id := one.event.made_competition) is not None]
    starts = {competition_id: date for competition_id, one in made if (date := getattr(one.event, "started_at", None))}
    points = [one for one in run if isinstance(one.event, Points) and one.event.ranking_id == ranking_id]
    return Passage(board, first, run[-1].sequence if run else first, points, starts)
