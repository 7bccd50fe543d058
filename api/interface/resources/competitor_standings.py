"""A competitor's standings: their line in every unity of the rankings they are enrolled in."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from api.http.outgoing import Later
from api.interface.declarations import Operation, Read
from api.interface.fields import FROM_0, Field
from api.interface.rendering import Answer, BoardNow, TaggedBody, encode, tagged_body
from engine.domain.terms import UNITIES_MAX, CompetitorId, RankingId, UnityId
from engine.process.time_slices import TimeSlices
from projections.answers.lookup import competitor_of, named
from projections.answers.tables import unplaced
from projections.board.board import Board
from projections.live.orders import MADE_AT_ONCE_MAX
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries

COMPETITOR_LINES_MAX: Final = 200
"""Lines of one answer. They are read without a pause, at some 20 µs each, so that they are consistent. An answer has
room for all unities of a ranking, and all their orders can be kept."""
assert COMPETITOR_LINES_MAX >= UNITIES_MAX


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class UnityStandingShape(Struct, kw_only=True):
    """The competitor's line in a unity, at this version of it. `lines`: the total number of lines. `placed`: as in
    StandingLine."""

    id: int
    name: str
    version: int
    position: int
    total: int | None
    lines: int
    placed: bool | UnsetType = UNSET


class RankingStandingsShape(Struct, kw_only=True):
    id: int
    name: str
    unities: list[UnityStandingShape]


class CompetitorStandingsShape(Struct, kw_only=True):
    """`next`: the value of `after` for further rankings; null: there are none."""

    next: int | None
    ranking: list[RankingStandingsShape]


# ── Finding and rendering ───────────────────────────────────────────────────────────────────────────────


class CompetitorStandingsQuestion(Struct, frozen=True):
    """Asks for the rankings that follow the ranking `after` in the order of rankings; 0: for all."""

    competitor_id: CompetitorId
    after: RankingId = RankingId(0)


async def find_competitor_standings(
    live: LiveTournament, time_slices: TimeSlices, question: CompetitorStandingsQuestion
) -> CompetitorStandingsShape:
    """If an order had to be made meanwhile even at the last try, lines of different unities may show different moments.
    Raises NotFound for the competitor, and Unacceptable for `after`."""
    competitor_id = question.competitor_id
    competitor_of(live.board, competitor_id)
    after = question.after and named(live.board.rankings, "ranking", "after", question.after)
    start = after.place if after else 0
    tries = Tries()
    while True:
        await _make_orders(live, time_slices, _enrolled(live.board, competitor_id, start)[0])
        head = live.head
        enrolled, following = _enrolled(live.board, competitor_id, start)
        found = await _standings(live, competitor_id, enrolled)
        if live.head == head or tries.over():
            return CompetitorStandingsShape(next=following, ranking=found)


def show_competitor_standings(_: BoardNow, answer: Answer, found: CompetitorStandingsShape) -> TaggedBody | Later:
    return tagged_body(answer.body(encode(found)))


def _enrolled(board: Board, competitor_id: CompetitorId, start: int) -> tuple[list[RankingId], RankingId | None]:
    """The competitor's rankings after the first `start` of the tournament's, up to the limit of an answer; and the last
    of them if there are more."""
    found: list[RankingId] = []
    room = COMPETITOR_LINES_MAX
    for ranking_id, ranking in islice(board.rankings.items(), start, None):
        if competitor_id in ranking.participants:
            room -= len(ranking.unities)
            if room < 0:
                return found, found[-1]
            found.append(ranking_id)
    return found, None


async def _standings(
    live: LiveTournament, competitor_id: CompetitorId, ranking_ids: Iterable[RankingId]
) -> list[RankingStandingsShape]:
    """The competitor's lines in these rankings; they are consistent if no order has to be made."""
    found = []
    for ranking_id in ranking_ids:
        ranking = live.board.rankings[ranking_id]
        unities = []
        for unity_id, unity in [*ranking.unities.items()]:
            order = await live.orders.of(ranking_id, unity_id)
            line = order.standing(competitor_id)
            if line is not None:  # otherwise, they have just left the ranking
                total = unity.notation.shown(line.total)
                unities.append(
                    UnityStandingShape(
                        id=unity_id,
                        name=unity.name,
                        version=unity.version,
                        position=line.position,
                        total=total,
                        lines=len(order),
                        placed=unplaced(total),
                    )
                )
        if unities:
            found.append(RankingStandingsShape(id=ranking_id, name=ranking.name, unities=unities))
    return found


async def _make_orders(live: LiveTournament, time_slices: TimeSlices, ranking_ids: Iterable[RankingId]) -> None:
    """Makes the orders, if that may take long. Making a long one pauses on its own, so it happens outside
    `time_slices`: other answers need not wait for it."""
    short: list[tuple[RankingId, UnityId]] = []
    lines = 0
    for ranking_id in ranking_ids:
        ranking = live.board.rankings[ranking_id]
        for unity_id in [*ranking.unities]:
            if len(ranking.participants) > MADE_AT_ONCE_MAX:
                await live.orders.of(ranking_id, unity_id)
            else:
                short.append((ranking_id, unity_id))
                lines += len(ranking.participants)
    if lines > MADE_AT_ONCE_MAX:
        rest = iter(short)
        while not await _some_made(live, time_slices, rest):
            pass


async def _some_made(live: LiveTournament, time_slices: TimeSlices, rest: Iterator[tuple[RankingId, UnityId]]) -> bool:
    """Makes orders for one time slice. Returns whether all have been made."""
    async with time_slices:
        for ranking_id, unity_id in rest:
            await live.orders.of(ranking_id, unity_id)
            if time_slices.over:
                return False
    return True


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "competitors/{competitor_id}/standings.json",
        "Show the standings of a competitor in every ranking they are in",
        operation_id="showCompetitorStandings",
        question=CompetitorStandingsQuestion,
        answer=Answer("rankings", CompetitorStandingsShape),
        render=show_competitor_standings,
        fields=(Field("after", FROM_0, "only rankings that follow this one: the next of the previous page"),),
        find=find_competitor_standings,
        judged=True,
    ),
)
