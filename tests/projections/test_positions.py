"""The three forms of the position rule (`projections/board/standing.py`), against its sentence and each other."""

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

import asyncpg
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.steps import finished
from engine.domain.terms import DELTA_MAX, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from projections.board.board import Board, Competitor, Ranking, Unity
from projections.board.order import OrderedLines
from projections.board.standing import Standing
from projections.columns.enrolment import Enrolment, Totals
from projections.tables import tables
from projections.verification import table_checks
from tests.histories import unhurried
from tests.positions import standings

RANKING: Final = RankingId(1)
UNITIES: Final = {sort: UnityId(number) for number, sort in enumerate(Sort, start=1)}
"""One of each sort, with the same totals."""
NOW: Final = datetime(2024, 2, 29, tzinfo=UTC)

everybody: Final = [CompetitorId(n) for n in range(1, 21)]
who: Final = st.sampled_from(everybody)
enrolments: Final = st.lists(who, unique=True, min_size=1)
amounts: Final = st.integers(-2, 2) | st.integers(
    -(2**28) * DELTA_MAX, 2**28 * DELTA_MAX
)  # no sum of seven exceeds 64 bits
totals_of: Final = st.dictionaries(who, amounts)


def board_with(enrolled: list[CompetitorId], totals: dict[CompetitorId, int]) -> Board:
    """A ranking of `enrolled`; who else has totals has left it."""
    board, enrolment = Board(), Enrolment(enrolled)
    for number, competitor_id in enumerate(everybody, start=1):
        board.competitors[competitor_id] = Competitor(
            number=number,
            name=f"Competitor {competitor_id}",
            tags=(),
            color="",
            parent_id=None,
            created_at=NOW,
            updated_at=NOW,
            revised=Sequence(2),
        )
    unities = {
        unity_id: Unity(number=unity_id, name=sort.value, sort=sort, totals=Totals(enrolment, totals))
        for sort, unity_id in UNITIES.items()
    }
    board.rankings[RANKING] = Ranking(
        number=1,
        place=1,
        name="Overall",
        description=None,
        participants=enrolment,
        unities=unities,
        updated_at=NOW,
        revised=Sequence(3),
    )
    return board


def orders_of(board: Board) -> dict[Sort, OrderedLines]:
    ranking = board.rankings[RANKING]
    return {
        sort: OrderedLines(ranking.participants, ranking.unities[unity_id].totals, sort)
        for sort, unity_id in UNITIES.items()
    }


def add(board: Board, sort: Sort, competitor_id: CompetitorId, amount: int) -> None:
    board.rankings[RANKING].unities[UNITIES[sort]].totals.add(competitor_id, amount)


async def in_view(
    connection: asyncpg.Connection, tournament_id: TournamentId, board: Board
) -> dict[UnityId, list[Standing]]:
    """What the view shows of this board, when the tables hold it and nothing else."""
    await tables.clear(connection, [tournament_id])
    await tables.save(connection, {tournament_id: tables.everything(board)})
    lines: dict[UnityId, list[Standing]] = {}
    async with connection.transaction(), aclosing(table_checks.standing_rows(connection, tournament_id)) as chunks:
        async for rows in chunks:
            for row in rows:
                lines.setdefault(row.unity_id, []).append(Standing(row.competitor_id, row.position, row.total))
    return lines


def by_the_sentence(enrolled: list[CompetitorId], totals: dict[CompetitorId, int], sort: Sort) -> dict[int, int]:
    """1 + the number of strictly better totals, for each who is enrolled."""
    sums = {competitor_id: totals.get(competitor_id, 0) for competitor_id in enrolled}
    return {
        competitor_id: 1 + sum(other > total if sort is Sort.DESC else other < total for other in sums.values())
        for competitor_id, total in sums.items()
    }


@settings(unhurried, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(enrolled=enrolments, totals=totals_of, changes=st.lists(st.tuples(who, amounts), max_size=6))
@example(enrolled=everybody[:4], totals={everybody[0]: 7, everybody[1]: 7, everybody[2]: -1}, changes=[])
async def test_the_three_forms_of_the_position_rule_agree_with_its_sentence(
    database: Database,
    tournament_id: TournamentId,
    enrolled: list[CompetitorId],
    totals: dict[CompetitorId, int],
    changes: list[tuple[CompetitorId, int]],
) -> None:
    """Before and after totals have changed: an order is moved one by one and all at once, the others are made again."""
    board, board_at_once = board_with(enrolled, totals), board_with(enrolled, totals)
    moved, moved_at_once = orders_of(board), orders_of(board_at_once)
    after = dict(totals)
    async with database.connection() as connection:
        assert_they_agree(enrolled, totals, await in_view(connection, tournament_id, board), moved)
        for competitor_id, amount in changes:
            after[competitor_id] = after.get(competitor_id, 0) + amount
            for sort, order in moved.items():
                before = order.line(competitor_id)
                add(board, sort, competitor_id, amount)
                order.replace(before, order.line(competitor_id))
        for sort, order in moved_at_once.items():
            named = dict(changes)
            lines = list(map(order.line, named))
            for competitor_id, amount in changes:
                add(board_at_once, sort, competitor_id, amount)
            finished(order.replace_all(named, lines))
        view = await in_view(connection, tournament_id, board_with(enrolled, after))
    for orders in (moved, moved_at_once, orders_of(board_with(enrolled, after))):
        assert_they_agree(enrolled, after, view, orders)


def assert_they_agree(
    enrolled: list[CompetitorId],
    totals: dict[CompetitorId, int],
    view: dict[UnityId, list[Standing]],
    orders: Mapping[Sort, OrderedLines],
) -> None:
    for sort, unity_id in UNITIES.items():
        expected = by_the_sentence(enrolled, totals, sort)
        sorted_lines = standings(enrolled, totals, sort)
        assert {line.competitor_id: line.position for line in sorted_lines} == expected
        assert view[unity_id] == sorted_lines
        order = orders[sort]
        assert order.standings(0, len(enrolled)) == sorted_lines
        line_by_id = {line.competitor_id: line for line in sorted_lines}
        assert {c: order.standing(c) for c in everybody} == {c: line_by_id.get(c) for c in everybody}
        assert {c: order.position(order.line(c)) for c in everybody} == {c: expected.get(c) for c in everybody}
