"""The Six Nations Championship of 2024: fifteen matches, and a final table that is known.

Four points for a win, two for a draw; one for scoring four tries or more, one for losing by seven or less. The final
table was Ireland 20, France 15, England 14, Scotland 12, Italy 11, Wales 4.
"""

from datetime import UTC, datetime
from hashlib import sha256
from itertools import count
from typing import Any, Final

from msgspec import Struct

from api.desk.desk import Desk
from engine.domain.commands import (
    AddCompetition,
    AddPoints,
    AddUnity,
    ChangePublication,
    Command,
    CreateRanking,
    DeclareClassification,
    RegisterCompetitor,
)
from engine.domain.events import Criterion, Delta
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, UnityId
from projections.answers.view import View

TOURNAMENT_NAME: Final = "Six Nations 2024"
LOSING_BONUS_MARGIN_MAX: Final = 7

TEAMS: Final = {
    "England": "FFFFFF",
    "France": "0055A4",
    "Ireland": "169B62",
    "Italy": "0066CC",
    "Scotland": "003078",
    "Wales": "D30731",
}


class Match(Struct, frozen=True):
    """One match. `four_tries`: the sides that scored four tries or more. `kick_off` is in UTC."""

    round: int
    kick_off: str
    stadium: str
    home: str
    away: str
    home_points: int
    away_points: int
    four_tries: tuple[str, ...] = ()


MATCHES: Final = (
    Match(1, "2024-02-02 20:00", "Marseille", "France", "Ireland", 17, 38, ("Ireland",)),
    Match(1, "2024-02-03 14:15", "Rome", "Italy", "England", 24, 27),
    Match(1, "2024-02-03 16:45", "Cardiff", "Wales", "Scotland", 26, 27, ("Wales",)),
    Match(2, "2024-02-10 14:15", "Edinburgh", "Scotland", "France", 16, 20),
    Match(2, "2024-02-10 16:45", "London", "England", "Wales", 16, 14),
    Match(2, "2024-02-11 15:00", "Dublin", "Ireland", "Italy", 36, 0, ("Ireland",)),
    Match(3, "2024-02-24 14:15", "Dublin", "Ireland", "Wales", 31, 7, ("Ireland",)),
    Match(3, "2024-02-24 16:45", "Edinburgh", "Scotland", "England", 30, 21),
    Match(3, "2024-02-25 15:00", "Lille", "France", "Italy", 13, 13),
    Match(4, "2024-03-09 14:15", "Rome", "Italy", "Scotland", 31, 29, ("Scotland",)),
    Match(4, "2024-03-09 16:45", "London", "England", "Ireland", 23, 22),
    Match(4, "2024-03-10 15:00", "Cardiff", "Wales", "France", 24, 45, ("France",)),
    Match(5, "2024-03-16 14:15", "Cardiff", "Wales", "Italy", 21, 24),
    Match(5, "2024-03-16 16:45", "Dublin", "Ireland", "Scotland", 17, 13),
    Match(5, "2024-03-16 20:00", "Lyon", "France", "England", 33, 31, ("England",)),
)


def table_points(match: Match) -> dict[str, int]:
    """The table points that a match gives to each of its two sides."""
    margin = match.home_points - match.away_points
    return {
        side: _result_points(won_by) + (side in match.four_tries)
        for side, won_by in ((match.home, margin), (match.away, -margin))
    }


def _result_points(won_by: int) -> int:
    if won_by > 0:
        return 4
    if won_by == 0:
        return 2
    return 1 if won_by >= -LOSING_BONUS_MARGIN_MAX else 0


class Season:
    """The season in one tournament: `begin` it, play its matches in their order, `publish` it at any time but always at
    the same.

    Each step has an idempotency key, its number. So nothing that an earlier call did is done again, even if that call
    was cut off, if all calls do the same in the same order.
    """

    ranking_id: RankingId

    def __init__(self, desk: Desk, view: View) -> None:
        self._desk = desk
        self._view = view
        self._numbers = count(1)
        self._teams: dict[str, CompetitorId] = {}
        self._unity_ids: tuple[UnityId, UnityId]  # points, points difference

    async def begin(self) -> None:
        """Registers the teams, and creates their ranking, in which the difference parts those with equal points."""
        for name, color in TEAMS.items():
            competitor_id = CompetitorId(await self._desk.new_id())
            registered = await self._do(RegisterCompetitor(competitor_id=competitor_id, name=name, color=color))
            self._teams[name] = registered.competitor_id
        created = await self._do(
            CreateRanking(
                ranking_id=RankingId(await self._desk.new_id()),
                main_unity_id=UnityId(await self._desk.new_id()),
                name="Championship",
                main_unity_name="points",
                participants=tuple(self._teams.values()),
            )
        )
        self.ranking_id = created.ranking_id
        difference_id = UnityId(await self._desk.new_id())
        added = await self._do(AddUnity(ranking_id=self.ranking_id, unity_id=difference_id, name="points difference"))
        self._unity_ids = created.main_unity_id, added.unity_id
        criteria = tuple([Criterion(unity_id=one) for one in self._unity_ids])
        await self._do(DeclareClassification(ranking_id=self.ranking_id, criteria=criteria))

    async def play(self, match: Match) -> None:
        """Records the match, and adds its points."""
        home, away = self._teams[match.home], self._teams[match.away]
        points, difference = self._unity_ids
        margin = match.home_points - match.away_points
        played = await self._do(
            AddCompetition(
                competition_id=CompetitionId(await self._desk.new_id()),
                group_id=match.round,
                started_at=datetime.fromisoformat(match.kick_off).replace(tzinfo=UTC),
                location=match.stadium,
                participants=(home, away),
                result=f"{match.home_points}-{match.away_points}",
                winner_id=None if margin == 0 else home if margin > 0 else away,
            )
        )
        deltas = [Delta(self._teams[name], points, gained) for name, gained in table_points(match).items()]
        deltas += [Delta(home, difference, margin), Delta(away, difference, -margin)]
        await self._do(
            AddPoints(ranking_id=self.ranking_id, deltas=tuple(deltas), competition_id=played.competition_id)
        )

    async def publish(self) -> None:
        """Publishes the tournament."""
        await self._do(ChangePublication(published=True))

    async def _do(self, command: Command) -> Any:
        key = f"{TOURNAMENT_NAME}, step {next(self._numbers)}".replace(" ", "_")
        receipt = await self._desk.submit(
            self._view.live, command, actor=OPERATOR, idempotency_key=key, fingerprint=sha256(key.encode()).digest()
        )
        return receipt.event


async def play(desk: Desk, view: View) -> RankingId:
    """Plays the whole season, then publishes it. Returns the id of its ranking."""
    season = Season(desk, view)
    await season.begin()
    for match in MATCHES:
        await season.play(match)
    await season.publish()
    return season.ranking_id
