"""A published season: the demo's, whose final table is known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from api.desk.desk import open_desk
from api.interface.kinds import create_ranking, kinds
from engine.database.pool import open_database
from engine.domain.commands import (
    AddCompetition,
    AddPoints,
    ChangeCompetitor,
    ChangeParticipants,
    ChangeRankingInformation,
    ChangeUnity,
    RegisterCompetitor,
)
from engine.domain.events import Delta
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from projections.answers.view import view_of
from projections.live.tournament import LiveTournament
from tests import six_nations
from tests.service import Answer, Client, Service
from tests.tournaments import open_new_tournament


@dataclass(frozen=True)
class Championship:
    """The season of a service, and a client of it without a token."""

    service: Service
    live: LiveTournament
    stranger: Client
    ranking_id: RankingId

    @property
    def address(self) -> str:
        """The path of its board."""
        return f"/board/{self.live.slug}"

    @property
    def teams(self) -> dict[str, CompetitorId]:
        return {competitor.name: one for one, competitor in self.live.board.competitors.items()}

    @property
    def unity_ids(self) -> tuple[UnityId, ...]:
        """Points, points difference."""
        return tuple(self.live.board.rankings[self.ranking_id].unities)

    async def get(self, below: str = "", **headers: str) -> Answer:
        return await self.stranger.send("GET", self.address + below, headers=headers)

    async def give(self, team: str, points: int, competition_id: CompetitionId | None = None) -> Sequence:
        """Gives a team points. Returns the sequence of the event."""
        delta = Delta(self.teams[team], self.unity_ids[0], points)
        command = AddPoints(ranking_id=self.ranking_id, deltas=(delta,), competition_id=competition_id)
        return (await self.service.desk.submit(self.live, command, actor=OPERATOR)).last_sequence

    async def hold_contest(self, results: Mapping[str, str]) -> RankingId:
        """Makes a ranking of these teams, and gives it a contest with their performances."""
        who = tuple(self.teams[name] for name in results)
        made, _ = await create_ranking(
            self.service.desk, self.live, kinds()["icpc"], name="Contest", participants=who, actor=OPERATOR
        )
        held = AddCompetition(
            competition_id=CompetitionId(await self.service.desk.new_id()),
            group_id=3,
            participants=who,
            result=dict(zip(who, results.values(), strict=True)),
        )
        await self.service.desk.submit(self.live, held, actor=OPERATOR)
        return made.ranking_id

    async def write_from_the_right(self) -> None:
        """Gives everybody, the ranking and its first unity a name in Hebrew, of one word, and points for a reason."""
        desk, word = self.service.desk, "\u05d0\u05d1\u05d2"
        points = ChangeUnity(ranking_id=self.ranking_id, unity_id=self.unity_ids[0], name=word)
        for command in (points, ChangeRankingInformation(ranking_id=self.ranking_id, name=word)):
            await desk.submit(self.live, command, actor=OPERATOR)
        for number, competitor_id in enumerate(self.teams.values()):
            named = ChangeCompetitor(competitor_id=competitor_id, name=f"{word}{chr(0x5D3 + number)}")
            await desk.submit(self.live, named, actor=OPERATOR)
        delta = Delta(next(iter(self.teams.values())), self.unity_ids[0], 3)
        given = AddPoints(ranking_id=self.ranking_id, deltas=(delta,), reason=word)
        await desk.submit(self.live, given, actor=OPERATOR)

    async def enroll(self, names: Iterable[str]) -> None:
        """Registers competitors, and enrols them in the ranking."""
        desk, added = self.service.desk, []
        for name in names:
            added.append(CompetitorId(await desk.new_id()))
            await desk.submit(self.live, RegisterCompetitor(competitor_id=added[-1], name=name), actor=OPERATOR)
        command = ChangeParticipants(ranking_id=self.ranking_id, added=tuple(added))
        await desk.submit(self.live, command, actor=OPERATOR)


async def play(dsn: str) -> None:
    """Plays the season in an empty database, which publishes it."""
    async with open_database(dsn, name="test") as database, open_desk(database) as desk:
        live = await desk.live_pool.pin(await open_new_tournament(database, actor=OPERATOR))
        await six_nations.play(desk, view_of(database, live))


async def played(service: Service) -> Championship:
    """The season that was played in the database of the service. The live stays pinned."""
    async with service.database.connection() as connection:
        tournament_id = await connection.fetchval("SELECT min(tournament_id) FROM tournament")
    live = await service.desk.live_pool.pin(TournamentId(tournament_id))
    (ranking_id,) = live.board.rankings
    assert live.slug is not None
    return Championship(service, live, service.client(live.slug, None), ranking_id)
