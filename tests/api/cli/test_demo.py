"""The season that `tallybook demo` plays ends as it did."""

from api.cli import demo
from api.desk.desk import Desk
from engine.domain.terms import Sort, TournamentId
from projections.board.standing import standings

FINAL_TABLE = [("Ireland", 20), ("France", 15), ("England", 14), ("Scotland", 12), ("Italy", 11), ("Wales", 4)]


async def test_the_six_nations_of_2024_end_with_the_table_that_is_known(
    desk: Desk, tournament_id: TournamentId
) -> None:
    async with desk.live_pool.pinned(tournament_id) as live:
        ranking_id = await demo.play(desk, live)
        assert await demo.play(desk, live) == ranking_id  # and playing it again changes nothing
        ranking = live.board.rankings[ranking_id]
        points, difference = ranking.unities.values()
        final = standings(ranking.participants, points.totals, Sort.DESC)
        table = [(live.board.competitors[line.competitor_id].name, line.total) for line in final]
    assert table == FINAL_TABLE
    assert sum(difference.totals.values()) == 0
    assert points.version == 1 + len(demo.MATCHES)
