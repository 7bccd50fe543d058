"""A board as it was at one moment, for a long answer that is rendered while events are folded.

Creating it copies nothing: before a later event is folded, the values that it changes are recorded. So the cost grows
with the changes since then, not with the size of the board.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.domain.events import Event
from engine.domain.expiry import Expiry
from engine.domain.notation import Notation
from engine.domain.options import UnityOptions, options_of
from engine.domain.terms import CompetitorId, RankingId, Sort, UnityId
from projections.board.board import Board, Competitor, Ranking, Unity, forgotten
from projections.board.hierarchy import NestedSetBounds
from projections.columns.enrolment import HeldList
from projections.live.nested_sets import Bounds

_BYTES: Final = 1_000
_COMPETITOR_BYTES: Final = 760
_RANKING_BYTES: Final = 4_000


class HeldUnity(UnityOptions, frozen=True):
    """The fixed fields of a unity, and its name."""

    number: int
    name: str
    sort: Sort
    notation: Notation
    expiry: Expiry | None


class HeldRanking(Struct, frozen=True):
    """A ranking with its own fields, participants and unities as they were. Read the unities before pausing: they may
    be those of the board, which are changed in place."""

    ranking: Ranking
    participants: HeldList
    unities: Mapping[UnityId, Unity | HeldUnity]


class HeldBoard:
    """The board as it was when this object was created. `stamp`: distinguishes the bounds from those of other moments.
    `changed`: whether the board has changed since. `competitors_changed`: the old values of changed competitors."""

    def __init__(self, board: Board, bounds: Bounds, stamp: int) -> None:
        self.stamp = stamp
        self.changed = False
        self._board = board
        self._noted_bytes = 0
        self.all_bounds = bounds
        self.competitors_changed: dict[CompetitorId, Competitor] = {}
        self._rankings: dict[RankingId, HeldRanking] = {}

    def note(self, event: Event) -> None:
        """Notes what will change. Call it before `event`, which is not about points, is folded into the board."""
        self.changed = True
        ranking_id = getattr(event, "ranking_id", None)
        competitor_id = getattr(event, "competitor_id", None)
        if event.erases is not None:
            self._forget(event.erases)
        elif competitor_id is not None and competitor_id in self._board.competitors:
            if competitor_id not in self.competitors_changed:
                self.competitors_changed[competitor_id] = self._board.competitors[competitor_id]
                self._noted_bytes += _COMPETITOR_BYTES
        elif "order" in event.touches:
            for one in self._board.rankings:
                self._note_ranking(one)
        elif ranking_id in self._board.rankings:
            self._note_ranking(ranking_id)

    def _forget(self, competitor_id: CompetitorId) -> None:
        """Erases the competitor here, too: later parts of the answer have no name of theirs."""
        if competitor_id in self._board.competitors:
            self._noted_bytes += 0 if competitor_id in self.competitors_changed else _COMPETITOR_BYTES
            self.competitors_changed[competitor_id] = forgotten(competitor_id, self.competitor(competitor_id))

    def _note_ranking(self, ranking_id: RankingId) -> None:
        if ranking_id not in self._rankings:
            held = self._rankings[ranking_id] = _held(self._board.rankings[ranking_id])
            self._noted_bytes += _RANKING_BYTES + held.participants.size_bytes

    @property
    def is_flat(self) -> bool:
        """Whether all competitors were roots."""
        return self.all_bounds.forest is None

    def competitor(self, competitor_id: CompetitorId) -> Competitor:
        """A competitor that existed at that moment."""
        return self.competitors_changed.get(competitor_id) or self._board.competitors[competitor_id]

    def bounds(self, competitor: Competitor) -> NestedSetBounds:
        return self.all_bounds.of(competitor)

    def ranking(self, ranking_id: RankingId) -> HeldRanking:
        """A ranking that existed at that moment."""
        held = self._rankings.get(ranking_id)
        if held is None:
            ranking = self._board.rankings[ranking_id]
            held = HeldRanking(ranking, ranking.participants.held(), ranking.unities)
        return held

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, without the board and `all_bounds`, estimated."""
        return _BYTES + self._noted_bytes


def _held(ranking: Ranking) -> HeldRanking:
    unities = {
        u: HeldUnity(unity.number, unity.name, unity.sort, unity.notation, unity.expiry, **options_of(unity))
        for u, unity in ranking.unities.items()
    }
    return HeldRanking(ranking, ranking.participants.held(), unities)
