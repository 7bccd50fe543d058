"""The league that `tallybook demo` plays has a table that is known, played at once or slowly."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import ClientSession

from api.cli import demo
from api.desk.desk import Desk
from engine.domain.terms import RankingId, Sort, TournamentId
from projections.answers.view import view_of
from projections.live.tournament import LiveTournament
from tests.api.cli.commands import FINAL_TABLE
from tests.positions import standings
from tests.running import Running, said, started

SLUG = "thursday-league"


async def test_the_league_is_a_whole_one_of_which_the_first_matches_are_played(
    desk: Desk, tournament_id: TournamentId
) -> None:
    assert len({(match.home, match.away) for match in demo.MATCHES}) == len(demo.MATCHES) == 30
    at_home = Counter(match.home for match in demo.MATCHES[: len(demo.MATCHES) // 2])
    assert set(at_home.values()) == {2, 3}
    async with desk.live_pool.pinned(tournament_id) as live:
        ranking_id = await demo.play(desk, view_of(desk.database, live))
        head = live.head
        assert await demo.play(desk, view_of(desk.database, live)) == ranking_id
        assert live.head == head  # playing it again changes nothing
        assert table(live, ranking_id) == FINAL_TABLE
        assert live.board.publication.presentation.listed
        now = datetime.now(UTC)
        played = [one.result is not None for one in live.board.competitions.values()]
        assert played == [one.started_at < now for one in live.board.competitions.values()]
        assert (played.count(True), len(played)) == (len(demo.RESULTS), 30)


async def test_it_is_seen_by_everybody_while_it_is_played_slowly_and_ends_the_same(
    desk: Desk, tournament_id: TournamentId
) -> None:
    async with desk.live_pool.pinned(tournament_id) as live:
        await demo.open_season(desk, view_of(desk.database, live))
        opened_at = live.head
        season = await demo.open_season(desk, view_of(desk.database, live))  # as another process does, which plays it
        assert live.head == opened_at
        assert live.board.publication.published
        assert {total for _, total in table(live, season.ranking_id)} == {0}
        seen = [table(live, season.ranking_id) async for _ in demo.play_slowly(season, pause_seconds=0)]
    assert len(seen) == len(demo.RESULTS)
    assert seen[-1] == FINAL_TABLE
    assert len({str(one) for one in seen}) > 10  # it moves


async def test_a_second_demo_in_a_directory_says_that_it_joins_and_replaces_the_token(tmp_path: Path) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    with started(tmp_path, "demo", "--port", "0", *data) as first:
        await first.address()
        assert "database_joined" not in [line["event"] for line in first.log]
        with started(tmp_path, "demo", "--port", "0", *data) as second:
            address = await second.address()
            assert (await second.logged("database_joined"))["directory"] == str(tmp_path / "data")
            usable = [token for token in said("token", "list", "--json", *data).json if token["revoked_at"] is None]
            assert [token["name"] for token in usable] == ["tallybook demo"]
            async with ClientSession() as client:
                for service, status in (second, 200), (first, 401):
                    headers = {"Authorization": f"Bearer {token_of(service)}"}
                    async with client.get(f"{address}/tournament/{SLUG}/rankings.json", headers=headers) as answer:
                        assert answer.status == status
            assert await second.stopped() == 0
        assert await first.stopped() == 0


def token_of(demo: Running) -> str:
    return next(line.strip() for line in demo.err.splitlines() if line.startswith("  tb_"))


@pytest.mark.long
async def test_the_live_demo_begins_a_new_season_each_time_and_its_board_shows_the_first_match(tmp_path: Path) -> None:
    data = ["--data-dir", str(tmp_path / "data")]
    for slug in ("thursday-league-live", "thursday-league-live-2"):
        with started(tmp_path, "demo", "--live", "--port", "0", *data) as service:
            address = await service.address()
            assert f"{address}/board/{slug}\n" in service.err
            await service.has_said("Station 3:1 Harbour")
            async with ClientSession() as visitor, visitor.get(f"{address}/board/{slug}/table.json") as answer:
                assert answer.status == 200
                first = (await answer.json())["lines"][0]
            assert (first["name"], first["values"][0]) == ("Station", "3")
            assert await service.stopped() == 0


def table(live: LiveTournament, ranking_id: RankingId) -> list[tuple[str, int]]:
    """Names and points of all teams, the best first."""
    ranking = live.board.rankings[ranking_id]
    points = next(iter(ranking.unities.values()))
    lines = standings(ranking.participants, points.totals, Sort.DESC)
    return [(live.board.competitors[line.competitor_id].name, line.total) for line in lines]
