"""A made-up tour: weekly events, some recorded late, and one disqualification five months late. The table of every
Monday and the weeks at number one, on both clocks, are those of a short program."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import uuid4

import asyncpg
import msgspec
import pytest

from engine.domain.terms import TournamentId
from engine.log import archive, digest
from engine.log.archive import ArchivedBlock, Manifest
from projections.verification import archives
from tests.service import Client, Service, create_ranking, deltas, register

_FIRST_SUNDAY = datetime(2020, 1, 5, 15, tzinfo=UTC)
_WEEK, _DAY = timedelta(weeks=1), timedelta(days=1)


class Tour:
    """The program: results of each week by player, when they were recorded, and who lost which result when."""

    def __init__(self, weeks: int, players: int) -> None:
        chance = Random(35)
        strength = [chance.random() for _ in range(players)]
        self.results: list[dict[int, int]] = []
        self.recorded: list[datetime] = []
        for week in range(weeks):
            finish = sorted(range(players), key=lambda player: strength[player] + chance.random(), reverse=True)
            self.results.append({player: 500 // place for place, player in enumerate(finish, start=1)})
            late = chance.choice([0, 0, 0, 2, 9])
            self.recorded.append(max([self.played(week) + timedelta(hours=3) + late * _DAY, *self.recorded]))
        self.struck_week = weeks // 4
        self.struck = max(range(players), key=lambda player: self.by(self.results[: self.struck_week + 1])[player])
        self.struck_at = self.recorded[self.struck_week] + timedelta(days=150)

    @staticmethod
    def played(week: int) -> datetime:
        return _FIRST_SUNDAY + week * _WEEK

    @staticmethod
    def by(results: list[dict[int, int]]) -> dict[int, int]:
        return {player: sum(result[player] for result in results) for player in results[0]}

    def table(self, at: datetime, *, published: bool) -> dict[int, int]:
        """The points of all on a time: as published, or as played."""
        times = self.recorded if published else [self.played(week) for week in range(len(self.results))]
        counted = []
        for week, (result, time) in enumerate(zip(self.results, times, strict=True)):
            if time <= at:
                is_struck = week == self.struck_week and (not published or self.struck_at <= at)
                counted.append({**result, self.struck: 0} if is_struck else result)
        return self.by(counted or [dict.fromkeys(self.results[0], 0)])

    def leaders(self, at: datetime, *, published: bool) -> set[int]:
        table = self.table(at, published=published)
        return {player for player, points in table.items() if points and points == max(table.values())}


class Played:
    """A tour that was played: who took part, and after which events the log says which time."""

    def __init__(self) -> None:
        self.players: list[int] = []
        self.ranking_id = 0
        self.times: list[tuple[int, datetime]] = []


async def played(client: Client, tour: Tour) -> Played:
    """Has the tour played, in the order in which it was recorded."""
    done, competitions = Played(), list[int]()
    done.players = await register(client, *[f"Player {n}" for n in range(len(tour.results[0]))])
    ranking = await create_ranking(client, done.players)
    done.ranking_id, unity_id = ranking["id"], ranking["unities"][0]["id"]
    last = int((await client.get(f"rankings/{done.ranking_id}/standings.json?top=1")).json["ranking"]["sequence"])
    weeks = [(time, week) for week, time in enumerate(tour.recorded)]
    for time, week in sorted([*weeks, (tour.struck_at, len(weeks))]):
        done.times.append((last, time))
        if week == len(weeks):
            struck = f"competitions/{competitions[tour.struck_week]}/strike.json"
            answer = await client.put(struck, {"competitors": done.players[tour.struck]})
        else:
            about = {"group_id": 1, "started_at": f"{tour.played(week):%Y-%m-%d %H:%M:%S}"}
            competitions.append((await client.post("competitions.json", about)).json["competition"]["id"])
            lines = [(done.players[player], unity_id, points) for player, points in tour.results[week].items()]
            form = {"participants_delta": deltas(*lines), "competition_id": competitions[-1]}
            answer = await client.put(f"rankings/{done.ranking_id}/add.json", form, {"Prefer": "return=minimal"})
        assert answer.status == 200, answer.body
        last = int(answer.headers["Tallybook-Sequence"])
    return done


async def dated(
    service: Service, owner: asyncpg.Connection, tournament_id: TournamentId, times: list[tuple[int, datetime]]
) -> str:
    """Puts a copy of the tournament into the database that was recorded at these times. Returns its slug."""
    lines = [line.encode() async for line in archives.exported(service.database, tournament_id, progress=_quiet)]
    manifest, *blocks = archive.read(lines)
    assert isinstance(manifest, Manifest)
    copy = msgspec.structs.replace(manifest, tournament_id=TournamentId(tournament_id + 1_000), slug="dated")
    chained, changed = digest.genesis(copy.tournament_id), list[ArchivedBlock]()
    for block in blocks:
        assert isinstance(block, ArchivedBlock)
        its = block.content()
        time = max([time for after, time in times if after < block.last_sequence], default=_FIRST_SUNDAY - _WEEK)
        lines = block.text.partition("\n")[2].replace(manifest.slug, copy.slug)  # the first event names it
        text = digest.block_text(its.first_sequence, time, lines)
        chained = digest.chain(chained, text)
        changed.append(msgspec.structs.replace(block, append_id=uuid4(), text=text.decode(), digest=chained.hex()))
    writer, copy = archive.Writer(), msgspec.structs.replace(copy, digest=chained.hex())
    await archives.enter(owner, [writer.line(part).encode() for part in (copy, *changed)], progress=_quiet)
    return copy.slug


def _quiet(_done: int, _total: int) -> None:
    pass


@pytest.mark.parametrize(
    ("weeks", "players"), [(24, 6), pytest.param(156, 200, marks=pytest.mark.long, id="three years")]
)
async def test_every_monday_is_as_a_short_program_says(
    service: Service,
    owner: asyncpg.Connection,
    client: Client,
    clients_tournament: TournamentId,
    weeks: int,
    players: int,
) -> None:
    """The table with which each week begins, who leads in it, and the weeks at number one."""
    tour = Tour(weeks, players)
    done = await played(client, tour)
    client.tournament = await dated(service, owner, clients_tournament, done.times)
    path, last = f"rankings/{done.ranking_id}", max(tour.played(weeks), tour.struck_at + _WEEK)
    sundays = [_FIRST_SUNDAY + n * _WEEK for n in range((last - _FIRST_SUNDAY) // _WEEK)]
    for published, clock, moment in ((True, "log", "at_time"), (False, "world", "on")):
        leading = []
        for sunday in sundays:
            evening = sunday.replace(hour=23, minute=59, second=59)
            answer = (await client.get(f"{path}/standings.json?{moment}={sunday:%Y-%m-%d}")).json["ranking"]
            lines = answer["unities"][0]["competitors_ranking"]
            table = tour.table(evening, published=published)
            assert {line["competitor_id"]: line["total"] for line in lines} == {
                done.players[player]: points for player, points in table.items()
            }
            leading.append({done.players[one] for one in tour.leaders(evening, published=published)})
        query = f"clock={clock}&until={sundays[-1]:%Y-%m-%d}&limit=1000"
        told = (await client.get(f"{path}/leaders.json?{query}")).json["leaders"]
        weeks_at_top = {one["competitor_id"]: one["weeks"] for one in told["times"] if one["weeks"]}
        assert weeks_at_top == dict(Counter(one for them in leading for one in them))
        for sunday, them in zip(sundays, leading, strict=True):
            begun = [one for one in told["reigns"] if one["since"] < f"{sunday:%Y-%m-%d}T24"]
            assert set(begun[-1]["competitors"] if begun else ()) == them
        assert told["differing"] > 0
