"""The Six Nations Championship of 2024: fifteen matches, and a final table that is known.

Four points for a win, two for a draw; one for scoring four tries or more, one for losing by seven or less. The final
table was Ireland 20, France 15, England 14, Scotland 12, Italy 11, Wales 4.
"""

from datetime import UTC, datetime
from itertools import count
from typing import Any, Final

from msgspec import Struct

from api.desk.desk import Desk
from engine.domain.commands import AddCompetition, AddPoints, AddUnity, Command, CreateRanking, RegisterCompetitor
from engine.domain.events import Delta
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, UnityId
from projections.live.tournament import LiveTournament

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


async def play(desk: Desk, live: LiveTournament) -> RankingId:
    """Registers the teams, plays the season, and returns the id of its ranking.

    Each step has an idempotency key, so nothing that an earlier call did is done again, even if that call was cut off.
    """
    numbers = count(1)

    async def do(command: Command) -> Any:
        key = f"{TOURNAMENT_NAME}, step {next(numbers)}".replace(" ", "_")
        receipt = await desk.submit(live, command, actor=OPERATOR, idempotency_key=key, fingerprint=key.encode())
        return receipt.event

    teams: dict[str, CompetitorId] = {}
    for name, color in TEAMS.items():
        competitor_id = CompetitorId(await desk.new_id())
        registered = await do(RegisterCompetitor(competitor_id=competitor_id, name=name, color=color))
        teams[name] = registered.competitor_id
    created = await do(
        CreateRanking(
            ranking_id=RankingId(await desk.new_id()),
            main_unity_id=UnityId(await desk.new_id()),
            name="Championship",
            main_unity_name="points",
            participants=tuple(teams.values()),
        )
    )
    ranking_id: RankingId = created.ranking_id
    added = await do(AddUnity(ranking_id=ranking_id, unity_id=UnityId(await desk.new_id()), name="points difference"))
    points, difference = created.main_unity_id, added.unity_id
    for match in MATCHES:
        home, away = teams[match.home], teams[match.away]
        margin = match.home_points - match.away_points
        played = await do(
            AddCompetition(
                competition_id=CompetitionId(await desk.new_id()),
                group_id=match.round,
                started_at=datetime.fromisoformat(match.kick_off).replace(tzinfo=UTC),
                location=match.stadium,
                participants=(home, away),
                result=f"{match.home_points}-{match.away_points}",
                winner_id=None if margin == 0 else home if margin > 0 else away,
            )
        )
        deltas = [Delta(teams[name], points, gained) for name, gained in table_points(match).items()]
        deltas += [Delta(home, difference, margin), Delta(away, difference, -margin)]
        await do(AddPoints(ranking_id=ranking_id, deltas=tuple(deltas), competition_id=played.competition_id))
    return ranking_id
