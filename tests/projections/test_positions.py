"""The four forms of the position rule (`projections/board/standing.py`), against its sentence and each other."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import asyncpg
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.terms import DELTA_MAX, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from projections.board.board import Board, Competitor, Ranking, Unity
from projections.board.enrolment import Enrolment, Totals
from projections.board.order import OrderedLines, line_of
from projections.board.standing import OrderedTotals, Standing, standings
from projections.tables import tables
from projections.verification import table_checks
from tests.histories import unhurried

RANKING: Final = RankingId(1)
UNITIES: Final = {sort: UnityId(number) for number, sort in enumerate(Sort, start=1)}
"""One of each sort, with the same totals."""
NOW: Final = datetime(2024, 2, 29, tzinfo=UTC)

everybody: Final = [CompetitorId(n) for n in range(1, 21)]
who: Final = st.sampled_from(everybody)
enrolments: Final = st.lists(who, unique=True, min_size=1)
amounts: Final = st.integers(-2, 2) | st.integers(-(2**31) * DELTA_MAX, 2**31 * DELTA_MAX)
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
        name="Overall",
        description=None,
        participants=enrolment,
        unities=unities,
        updated_at=NOW,
        revised=Sequence(3),
    )
    return board


def lines_of(board: Board) -> dict[Sort, OrderedLines]:
    ranking = board.rankings[RANKING]
    return {
        sort: OrderedLines(ranking.participants, ranking.unities[unity_id].totals, sort)
        for sort, unity_id in UNITIES.items()
    }


def move(order: OrderedLines, board: Board, sort: Sort, competitor_id: CompetitorId, amount: int) -> None:
    ranking = board.rankings[RANKING]
    totals = ranking.unities[UNITIES[sort]].totals
    before = line_of(competitor_id, ranking.participants, totals, sort)
    totals.add(competitor_id, amount)
    order.replace(before, line_of(competitor_id, ranking.participants, totals, sort))


async def in_view(
    connection: asyncpg.Connection, tournament_id: TournamentId, board: Board
) -> dict[UnityId, list[Standing]]:
    """What the view shows of this board, when the tables hold it and nothing else."""
    await tables.clear(connection, [tournament_id])
    await tables.save(connection, {tournament_id: tables.everything(board)})
    lines: dict[UnityId, list[Standing]] = {}
    for row in await table_checks.standing_rows(connection, tournament_id):
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
@example(enrolled=everybody, totals={}, changes=[(everybody[0], 1)])  # so few changes that nothing is sorted anew
async def test_the_four_forms_of_the_position_rule_agree_with_its_sentence(
    database: Database,
    tournament_id: TournamentId,
    enrolled: list[CompetitorId],
    totals: dict[CompetitorId, int],
    changes: list[tuple[CompetitorId, int]],
) -> None:
    """Before and after totals have changed: an order is moved one by one and all at once, the others are made anew."""
    before = dict(totals)
    after = before | dict(changes)
    moved = {sort: OrderedTotals(enrolled, before, sort) for sort in Sort}
    moving = board_with(enrolled, before)
    moved_lines = lines_of(moving)
    moved_at_once = {sort: OrderedTotals(enrolled, before, sort) for sort in Sort}
    made_anew = {sort: OrderedTotals(enrolled, after, sort) for sort in Sort}
    lines_anew = lines_of(board_with(enrolled, after))
    async with database.connection() as connection:
        assert_they_agree(
            enrolled, before, await in_view(connection, tournament_id, board_with(enrolled, before)), moved
        )
        current = dict(before)
        for competitor_id, total in changes:
            for order in moved.values():
                order.move(competitor_id, current.get(competitor_id, 0), total)
            for sort, lines in moved_lines.items():
                move(lines, moving, sort, competitor_id, total - current.get(competitor_id, 0))
            current[competitor_id] = total
        for order in moved_at_once.values():
            order.move_all({c: before.get(c, 0) for c, _ in changes}, after)
        view = await in_view(connection, tournament_id, board_with(enrolled, after))
    for orders in (moved, moved_at_once, made_anew, moved_lines, lines_anew):
        assert_they_agree(enrolled, after, view, orders)


def assert_they_agree(
    enrolled: list[CompetitorId],
    totals: dict[CompetitorId, int],
    view: dict[UnityId, list[Standing]],
    orders: Mapping[Sort, OrderedTotals | OrderedLines],
) -> None:
    for sort, unity_id in UNITIES.items():
        expected = by_the_sentence(enrolled, totals, sort)
        sorted_lines = standings(enrolled, totals, sort)
        assert {line.competitor_id: line.position for line in sorted_lines} == expected
        assert view[unity_id] == sorted_lines
        order = orders[sort]
        if isinstance(order, OrderedLines):
            assert order.standings(0, len(enrolled)) == sorted_lines
            line_by_id = {line.competitor_id: line for line in sorted_lines}
            assert {c: order.standing(c) for c in everybody} == {c: line_by_id.get(c) for c in everybody}
            continue
        assert {c: order.position(c, totals.get(c, 0)) for c in everybody} == {c: expected.get(c) for c in everybody}
