"""The league that `tallybook demo` plays: six teams, home and away, of which the first matches are played.

The fixtures are those of the circle method: one team stays, the others go round. The results are fixed, so the table is
known; the days are the Thursdays around the one on which the demo first ran.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from typing import Any, Final

from msgspec import Struct

from api.desk.desk import Desk
from api.interface.kinds import create_ranking, kinds
from engine.domain.commands import (
    AddCompetition,
    AddCompetitions,
    ChangeCompetition,
    ChangePresentation,
    ChangePublication,
    Command,
    RegisterCompetitor,
)
from engine.domain.scoring import winner_by_score
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId
from projections.answers.view import View

TOURNAMENT_NAME: Final = "Thursday League"
LIVE_TOURNAMENT_NAME: Final = "Thursday League, live"
TEAMS: Final = {
    "Harbour": "0b6e99",
    "Meadow": "3f8f3a",
    "Mill Lane": "b8442f",
    "Northgate": "5b3f8f",
    "Old Bridge": "c08a1e",
    "Station": "2f3b4a",
}
RESULTS: Final = (
    *("3:1", "2:2", "0:1"),
    *("1:0", "4:2", "1:1"),
    *("2:3", "0:0", "5:1"),
    *("2:0", "1:2", "3:3"),
    *("0:2", "2:1", "1:4"),
    *("2:2", "3:0", "1:2"),
)
"""Of the first matches, in the order of the fixtures."""
_PITCHES: Final = ("Pitch 1", "Pitch 2", "Pitch 3")
_KICK_OFF: Final = 19
_WEEK: Final = timedelta(days=7)
_THURSDAY: Final = 3


class Match(Struct, frozen=True):
    """One match. `number`: among all, from 1; `round`: from 1."""

    number: int
    round: int
    home: str
    away: str


def fixtures(teams: tuple[str, ...]) -> Iterator[Match]:
    """Everybody against everybody, home and away."""
    stays, *others = teams
    numbers, rounds = count(1), len(others)
    for leg in range(2):
        for number in range(rounds):
            circle = [stays, *others[number:], *others[:number]]
            for one in range(len(circle) // 2):
                pair = circle[one], circle[-1 - one]
                home, away = pair if (leg + (one or number)) % 2 else pair[::-1]
                yield Match(next(numbers), leg * rounds + number + 1, home, away)


MATCHES: Final = tuple(fixtures(tuple(TEAMS)))


class Season:
    """The season in one tournament: `begin` it, then `play` its matches in their order.

    Each step has an idempotency key, its number. So nothing that an earlier call did is done again, even if that call
    was cut off, if all calls do the same in the same order.
    """

    ranking_id: RankingId

    def __init__(self, desk: Desk, view: View) -> None:
        self._desk = desk
        self._view = view
        self._numbers = count(1)

    async def begin(self) -> None:
        """Registers the teams, creates their ranking, plans all matches, and publishes the tournament."""
        for name, color in TEAMS.items():
            await self._do(
                RegisterCompetitor(competitor_id=CompetitorId(await self._desk.new_id()), name=name, color=color)
            )
        teams = self._teams()
        key = self._key()
        made, _ = await create_ranking(
            self._desk,
            self._view.live,
            kinds()["football"],
            name="League",
            participants=tuple([teams[name] for name in TEAMS]),
            actor=OPERATOR,
            key=key,
            fingerprint=_print(key),
        )
        self.ranking_id = made.ranking_id
        await self._do(AddCompetitions(items=tuple([await self._fixture(match, teams) for match in MATCHES])))
        await self._do(ChangePresentation(listed=True))
        await self._do(ChangePublication(published=True))

    async def _fixture(self, match: Match, teams: dict[str, CompetitorId]) -> AddCompetition:
        today = datetime.now(UTC).replace(hour=_KICK_OFF, minute=0, second=0, microsecond=0)
        last_played = today - timedelta(days=1 + (today.weekday() - _THURSDAY - 1) % 7)
        played = MATCHES[len(RESULTS) - 1].round
        return AddCompetition(
            competition_id=CompetitionId(await self._desk.new_id()),
            group_id=1,
            started_at=last_played + (match.round - played) * _WEEK,
            location=_PITCHES[match.number % len(_PITCHES)],
            participants=(teams[match.home], teams[match.away]),
            round=match.round,
            key=str(match.number),
        )

    async def play(self, match: Match, result: str) -> None:
        """Records the result of a match, which gives its points."""
        competitions = self._view.live.board.competitions
        competition_id = competitions.by_key(str(match.number))
        assert competition_id is not None
        winner_id = winner_by_score(competitions[competition_id].participants, result)
        await self._do(ChangeCompetition(competition_id=competition_id, result=result, winner_id=winner_id))

    def _teams(self) -> dict[str, CompetitorId]:
        return {its.name: one for one, its in self._view.live.board.competitors.items()}

    def _key(self) -> str:
        return f"{TOURNAMENT_NAME}, step {next(self._numbers)}".replace(" ", "_")

    async def _do(self, command: Command) -> Any:
        key = self._key()
        receipt = await self._desk.submit(
            self._view.live, command, actor=OPERATOR, idempotency_key=key, fingerprint=_print(key)
        )
        return receipt.event


def _print(key: str) -> bytes:
    return sha256(key.encode()).digest()


async def play(desk: Desk, view: View) -> RankingId:
    """Plays the season as far as there are results. Returns the id of its ranking."""
    season = await open_season(desk, view)
    for match, result in zip(MATCHES, RESULTS, strict=False):
        await season.play(match, result)
    return season.ranking_id


async def open_season(desk: Desk, view: View) -> Season:
    """A published season in which no match has been played yet."""
    season = Season(desk, view)
    await season.begin()
    return season


async def play_slowly(season: Season, *, pause_seconds: float) -> AsyncIterator[str]:
    """Plays the matches that have results, with a pause before each. Yields each, with its result, when it was
    played."""
    for match, result in zip(MATCHES, RESULTS, strict=False):
        await asyncio.sleep(pause_seconds)
        await season.play(match, result)
        yield f"{match.home} {result} {match.away}"
