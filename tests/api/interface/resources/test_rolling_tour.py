"""A made-up tour with rolling points: the best results of the last weeks, a bonus outside of them, and a
disqualification months late. The table of every Monday is that of a short program."""

from datetime import UTC, datetime, timedelta
from random import Random

import asyncpg
import pytest

from tests.service import Client, deltas, listed, register
from tests.told_clock import told_clock

_FIRST_SUNDAY = datetime(2100, 1, 3, 15, tzinfo=UTC)
_WEEK = timedelta(weeks=1)


class Tour:
    """The program: the results of each week by player, a bonus in one week, and a winner who loses that result."""

    def __init__(self, weeks: int, players: int, lasts: int, best: int) -> None:
        chance = Random(52)
        self.lasts, self.best = lasts, best
        self.results = [self._result(chance, players) for _ in range(weeks)]
        self.bonus_week, self.bonus = weeks // 3, {player: chance.randrange(100) for player in range(players)}
        self.struck_week, self.struck_after = weeks // 4, weeks // 4 + min(21, weeks // 2)
        self.struck = max(self.results[self.struck_week], key=lambda player: self.results[self.struck_week][player])

    @staticmethod
    def _result(chance: Random, players: int) -> dict[int, int]:
        started = chance.sample(range(players), players * 2 // 3)
        return {player: 500 // place for place, player in enumerate(started, start=1)}

    def table(self, week: int) -> dict[int, int]:
        """The points of all on the Monday after this week's event."""
        weeks = list(range(max(0, week - self.lasts + 1), week + 1))
        table = {}
        for player in self.bonus:
            is_struck = player == self.struck and week >= self.struck_after
            counted = [
                self.results[one][player]
                for one in weeks
                if player in self.results[one] and not (is_struck and one == self.struck_week)
            ]
            bonus = self.bonus[player] if self.bonus_week in weeks else 0
            table[player] = bonus + sum(sorted(counted)[-self.best :])
        return table


@pytest.mark.parametrize(
    ("weeks", "players", "lasts", "best"),
    [(24, 6, 8, 3), pytest.param(156, 200, 52, 19, marks=pytest.mark.long, id="three years")],
)
async def test_every_monday_has_the_best_results_of_the_last_weeks(
    client: Client,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    weeks: int,
    players: int,
    lasts: int,
    best: int,
) -> None:
    clock, tour = await told_clock(owner, monkeypatch), Tour(weeks, players, lasts, best)
    await clock.set(_FIRST_SUNDAY - _WEEK)
    ids = await register(client, *[f"Player {n}" for n in range(players)])
    rolling = {"main_unity_lasts": f"P{lasts}W", "main_unity_expires_on": "week"}
    form = {"name": "Tour", "main_unity_name": "points", "participants": listed(ids)} | rolling
    ranking = (await client.post("rankings.json", form)).json["ranking"]
    path, unity = f"rankings/{ranking['id']}", ranking["unities"][0]["id"]
    criteria = {"criteria": f'[{{"unity": {unity}, "best": {best}}}]'}
    assert (await client.put(f"{path}/classification.json", criteria)).status == 200
    numbers, competitions, mondays = {one: player for player, one in enumerate(ids)}, list[int](), list[str]()

    async def table(query: str) -> dict[int, int]:
        lines = (await client.get(f"{path}/classification.json?limit=1000{query}")).json["classification"]["standings"]
        return {numbers[line["competitor_id"]]: line["values"][0] for line in lines}

    for week, result in enumerate(tour.results):
        await clock.set(_FIRST_SUNDAY + week * _WEEK)
        about = {"group_id": 1, "started_at": f"{clock.now:%Y-%m-%d %H:%M:%S}"}
        competitions.append((await client.post("competitions.json", about)).json["competition"]["id"])
        adding = [(result, competitions[-1]), *([(tour.bonus, None)] if week == tour.bonus_week else [])]
        for points, competition in adding:
            cause = {} if competition is None else {"competition_id": competition}
            lines = {"participants_delta": deltas(*[(ids[one], unity, amount) for one, amount in points.items()])}
            assert (await client.put(f"{path}/add.json", lines | cause)).status == 200
        if week == tour.struck_after:
            struck = f"competitions/{competitions[tour.struck_week]}/strike.json"
            assert (await client.put(struck, {"competitors": ids[tour.struck]})).status == 200
        await clock.set(_FIRST_SUNDAY + week * _WEEK + timedelta(hours=10))
        mondays.append(f"{clock.now:%Y-%m-%d}")
        assert await table("") == tour.table(week), week
    for week in range(0, weeks - 1, 5):  # what was published then; the next events of the log are a week later
        assert await table(f"&at_time={mondays[week]}") == tour.table(week), week
