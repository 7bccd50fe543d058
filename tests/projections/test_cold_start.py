"""A tournament with a long log answers at once, when its tables are up to date."""

import time

from api import answers
from api.desk import Desk, open_desk
from engine import log
from engine.commands import CreateRanking, RegisterCompetitor
from engine.database import Database
from engine.events import Delta, PointsAdded
from engine.log import Appended, Block, Request
from engine.terms import OPERATOR, CompetitorId, RankingId, TournamentId, UnityId
from projections.worker import Worker

EVENTS = 200_000
BLOCK_REQUESTS = 500
COMPETITORS = 20


async def test_the_first_read_of_a_tournament_with_200_000_events_takes_well_under_a_second(
    database: Database, desk: Desk, tournament_id: TournamentId
) -> None:
    async with desk.lives.pinned(tournament_id) as live:
        competitor_ids = []
        for number in range(COMPETITORS):
            competitor_ids.append(CompetitorId(await desk.new_id()))
            command = RegisterCompetitor(competitor_id=competitor_ids[-1], name=f"Competitor {number}")
            await desk.submit(live, command, actor=OPERATOR)
        ranking_id, unity_id = RankingId(await desk.new_id()), UnityId(await desk.new_id())
        created = CreateRanking(
            ranking_id=ranking_id,
            main_unity_id=unity_id,
            name="Ranking",
            main_unity_name="points",
            participants=tuple(competitor_ids),
        )
        await desk.submit(live, created, actor=OPERATOR)
        head = live.head
    requests = tuple(
        Request(
            events=(PointsAdded(ranking_id=ranking_id, deltas=(Delta(competitor_ids[n % COMPETITORS], unity_id, 1),)),),
            actor=OPERATOR,
        )
        for n in range(BLOCK_REQUESTS)
    )
    async with database.connection() as connection:
        for _ in range(EVENTS // BLOCK_REQUESTS):
            block = Block(
                tournament_id=tournament_id, judged_at=head.sequence, judged_digest=head.digest, requests=requests
            )
            (outcome,) = await log.append(connection, [block], wait=True)
            assert isinstance(outcome, Appended)
    await Worker(database).catch_up()

    async with open_desk(database) as elsewhere:
        started_at = time.perf_counter()
        async with elsewhere.lives.pinned(tournament_id) as cold:
            await elsewhere.lives.current(cold)
            body = answers.modified_ranking(cold, ranking_id)
        seconds = time.perf_counter() - started_at

    assert cold.head.sequence == head.sequence + EVENTS
    assert f'"total":{EVENTS // COMPETITORS}}}'.encode() in body
    assert seconds < 0.5
