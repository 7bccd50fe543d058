"""The state of a tournament as a whole."""

from datetime import datetime

from msgspec import Struct

from engine.domain.terms import Sequence
from projections.answers.view import Question, View
from projections.board.publication import Publication


class TournamentState(Struct, frozen=True, kw_only=True):
    """After the event `sequence`: how many competitors, competitions and rankings there are, and what the public sees.
    `public_end`: the last event that the public sees; None: it sees nothing."""

    sequence: Sequence
    recorded_at: datetime
    competitors: int
    competitions: int
    rankings: int
    publication: Publication
    public_end: Sequence | None


class TournamentQuestion(Question[TournamentState], frozen=True, kw_only=True):
    async def answered(self, view: View) -> TournamentState:
        head = view.live.head
        recorded_at = await view.recorded_at(head)
        board, publication = view.live.board, view.publication
        return TournamentState(
            sequence=head.sequence,
            recorded_at=recorded_at,
            competitors=len(board.competitors),
            competitions=len(board.competitions),
            rankings=len(board.rankings),
            publication=publication,
            public_end=publication.public_end(head.sequence),
        )
