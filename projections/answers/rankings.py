"""Rankings and their unities, as lists show them: without totals."""

from datetime import datetime

from msgspec import Struct

from engine.domain.awards import Scoring
from engine.domain.events import Criterion
from engine.domain.notation import Notation
from engine.domain.options import UnityOptions, notation_of, options_of
from engine.domain.terms import RankingId, Sequence, Sort, UnityId
from projections.answers.lookup import ranking_of
from projections.board.board import Board, Unity
from projections.live.held import HeldUnity


class ListedUnity(UnityOptions, frozen=True, gc=False):
    """Options that it was not given are absent; `addUnity` explains them."""

    id: UnityId
    name: str
    position: int
    general: bool
    sort: str

    @property
    def notation(self) -> Notation:
        return notation_of(self, Sort(self.sort))


class ListedRanking(Struct, frozen=True, kw_only=True):
    """`competitors`: how many it has. `unities`: the main one first. `criteria`, `scorings`: what is declared.
    `hidden`: the public does not see it. `updated_at`, `revised`: as in `Ranking`."""

    id: RankingId
    name: str
    description: str | None
    closed_at: datetime | None
    hidden: bool
    competitors: int
    unities: list[ListedUnity]
    criteria: tuple[Criterion, ...]
    scorings: tuple[Scoring, ...]
    updated_at: datetime
    revised: Sequence

    def unity(self, unity_id: UnityId) -> ListedUnity:
        return next(one for one in self.unities if one.id == unity_id)


def listed_ranking(board: Board, ranking_id: RankingId) -> ListedRanking:
    """Raises NotFound."""
    ranking = ranking_of(board, ranking_id)
    return ListedRanking(
        id=ranking_id,
        name=ranking.name,
        description=ranking.description,
        closed_at=ranking.closed_at,
        hidden=ranking_id in board.publication.hidden,
        competitors=len(ranking.participants),
        unities=[listed_unity(unity_id, unity) for unity_id, unity in ranking.unities.items()],
        criteria=ranking.criteria,
        scorings=ranking.scorings,
        updated_at=ranking.updated_at,
        revised=ranking.revised,
    )


def listed_unity(unity_id: UnityId, unity: Unity | HeldUnity) -> ListedUnity:
    return ListedUnity(
        id=unity_id,
        name=unity.name,
        position=unity.number,
        general=unity.number == 1,
        sort=unity.sort.value,
        **options_of(unity),
    )
