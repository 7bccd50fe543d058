"""What is the same for all kinds of files: nothing twice, whatever happens meanwhile, and what was done so far."""

import asyncio
from typing import Any

import asyncpg
import pytest
from msgspec import Struct

from api.desk.desk import Desk
from api.imports.competitions import read_competitions
from api.imports.competitors import read_competitors
from api.imports.importer import BrokenOff, Importer, Interrupted, asked
from api.imports.kinds import FileKind
from api.imports.rows import read_csv
from api.interface.names import Names
from engine.domain.awards import Award, Scoring
from engine.domain.commands import CreateRanking, DeclareScoring, RegisterCompetitor
from engine.domain.errors import Fault, QuotaReached
from engine.domain.events import EventSetAside
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import reading, registry
from tests.api.imports.importing import Importing, Leaving
from tests.bounds import Bounds
from tests.desks import HOLD_HEAD, desk_at, holding, record

CLUBS = (CompetitorId(1), CompetitorId(2))
TABLE = RankingId(3)


class Season(Struct, frozen=True):
    """A kind of file, and lines of it. `requests`: of a line."""

    what: str
    done: str
    header: str
    line: str
    requests: int

    def file(self, numbers: range) -> str:
        return "\n".join([self.header, *[self.line.format(number) for number in numbers]])

    def read(self, content: bytes, _: Names | None = None) -> FileKind[Any]:
        file = read_csv(content)
        return read_competitors(file) if self.requests == 1 else read_competitions(file, TABLE)

    def so_far(self, done: int, of: int) -> str:
        return f"{done} of the file's {of} {self.what}s are {self.done}. Import it again: that adds only the rest."


COMPETITORS = Season("competitor", "registered", "name", "Player {}", 1)
COMPETITIONS = Season(
    "competition", "imported", "date,participants,score,points", "2024-03-{:02},Ajax|Brest,1:0,3|0", 2
)
EACH = pytest.mark.parametrize("season", [COMPETITORS, COMPETITIONS], ids=["competitors", "competitions"])


async def begin(desk: Desk, tournament_id: TournamentId, season: Season) -> Importing:
    """A tournament of two clubs and a ranking."""
    imported = Importing(desk, tournament_id, season.read)
    for competitor_id, name in zip(CLUBS, ("Ajax", "Brest"), strict=True):
        await imported.submit(RegisterCompetitor(competitor_id=competitor_id, name=name))
    unity_id = UnityId(4)
    await imported.submit(
        CreateRanking(
            ranking_id=TABLE, main_unity_id=unity_id, name="Table", main_unity_name="points", participants=CLUBS
        )
    )
    async with desk.database.connection() as connection:
        await registry.next_ids(connection, 4)  # those of the clubs, the ranking and the unity
    return imported


@pytest.fixture
async def imported(desk: Desk, tournament_id: TournamentId, season: Season) -> Importing:
    return await begin(desk, tournament_id, season)


async def made_ids(imported: Importing, season: Season) -> list[int]:
    """The ids of what the lines made, in the order of the log."""
    async with imported.live() as live:
        board = live.board
        return (
            [*map(int, board.competitors)][len(CLUBS) :] if season is COMPETITORS else [*map(int, board.competitions)]
        )


@EACH
async def test_a_second_import_changes_nothing_and_draws_no_id(imported: Importing, season: Season) -> None:
    first = await imported(season.file(range(1, 4)))
    before = await imported.length(), await last_id(imported.desk)
    second = await imported(season.file(range(1, 4)))
    assert (await imported.length(), await last_id(imported.desk)) == before
    assert (first.made, first.already, second.made, second.already) == (3, 0, 0, 3)
    assert second.ids == first.ids == await made_ids(imported, season)
    assert second.name == first.name
    assert (first.name is None) == (season is COMPETITORS)


async def last_id(desk: Desk) -> int:
    """The last that was drawn; without drawing one."""
    async with desk.database.connection() as connection:
        drawn: int = await connection.fetchval("SELECT pg_sequence_last_value('resource_id')")
    return drawn


@EACH
async def test_interrupted_after_a_chunk_it_continues(imported: Importing, season: Season, bounds: Bounds) -> None:
    bounds(IMPORT_REQUESTS_MAX=2)
    file = season.file(range(1, 8))
    for stop_at, done in ((0, 0), (3, 4)):
        with pytest.raises(Interrupted) as caught:
            await imported(file, stop_at=stop_at)
        assert caught.value.message == f"Interrupted: {season.so_far(done, 7)}"
    assert imported.progress == [(2, 7), (4, 7)]
    outcome = await imported(file)
    assert imported.progress == [(6, 7), (7, 7)]
    assert (outcome.made, outcome.already) == (3, 4)
    assert outcome.ids == await made_ids(imported, season)
    assert len(set(outcome.ids)) == 7


@EACH
async def test_each_of_two_imports_at_once_tells_what_it_did_itself(
    imported: Importing, season: Season, dsn: str, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """One that finds nothing imported is overtaken by the other: by the whole file, or while both are at it."""
    async with desk_at(dsn) as desk:
        other = Importing(desk, imported.tournament_id, season.read)
        draw = registry.next_ids

        async def after_the_other(connection: asyncpg.Connection, count: int) -> list[int]:
            monkeypatch.setattr(registry, "next_ids", draw)
            assert (await other(season.file(range(1, 4)))).made == 3
            return await draw(connection, count)

        monkeypatch.setattr(registry, "next_ids", after_the_other)
        late = await imported(season.file(range(1, 6)))
        assert (late.made, late.already) == (2, 3)
        bounds(IMPORT_REQUESTS_MAX=2)
        both = await asyncio.gather(*(one(season.file(range(6, 30))) for one in (imported, other)))
    assert sum(one.made for one in both) == 24
    assert [one.made + one.already for one in both] == [24, 24]
    assert both[0].ids == both[1].ids
    assert sorted(await made_ids(imported, season)) == sorted([*late.ids, *both[0].ids])


async def test_what_another_import_makes_while_it_is_sought_is_found_by_its_id(
    desk: Desk, tournament_id: TournamentId, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The competitions are not there yet when they are sought, but their points are."""
    imported, find = await begin(desk, tournament_id, COMPETITIONS), reading.keyed
    async with desk_at(dsn) as elsewhere:
        other = Importing(elsewhere, tournament_id, COMPETITIONS.read)

        async def before_the_other(*arguments: Any) -> Any:
            monkeypatch.setattr(reading, "keyed", find)
            found = await find(*arguments)
            assert (await other(COMPETITIONS.file(range(1, 4)))).made == 3
            return found

        monkeypatch.setattr(reading, "keyed", before_the_other)
        outcome = await imported(COMPETITIONS.file(range(1, 4)))
    assert (outcome.made, outcome.already) == (0, 3)
    assert outcome.ids == await made_ids(imported, COMPETITIONS)


@EACH
async def test_a_refusal_before_anything_was_recorded_is_that_of_the_import(
    imported: Importing, season: Season
) -> None:
    desk, file = imported.desk, season.file(range(1, 4))
    imported.desk = Leaving(desk, 0, QuotaReached([Fault("events", "full")]))
    assert (await imported.refused(file))[1:] == ["events: full"]
    imported.desk = Leaving(desk, 2 * season.requests, QuotaReached([]))
    with pytest.raises(BrokenOff) as caught:
        await imported(file)
    done = 2 if season is COMPETITORS else 1  # all competitions come before all points
    assert caught.value.message == f"The import failed (quota_reached): at least {season.so_far(done, 3)}"
    imported.desk = desk
    outcome = await imported(file)
    assert (outcome.made, outcome.already) == (3 - done, done)
    assert outcome.ids == await made_ids(imported, season)


@pytest.mark.long
@EACH
async def test_an_import_that_the_database_lets_down_says_so_and_continues_when_it_is_back(
    imported: Importing, season: Season, dsn: str, bounds: Bounds
) -> None:
    bounds(IMPORT_REQUESTS_MAX=1)
    file = season.file(range(1, 4))
    with pytest.raises(Interrupted):
        await imported(file, stop_at=1)
    async with holding(dsn, HOLD_HEAD, imported.tournament_id):
        with pytest.raises(BrokenOff) as caught:
            await imported(file)
    assert caught.value.message == f"The import failed (database_unavailable): at least {season.so_far(1, 3)}"
    assert await imported.counts(file) == (2, 1)


@EACH
async def test_a_line_whose_event_was_set_aside_is_named(
    imported: Importing, season: Season, owner: asyncpg.Connection
) -> None:
    tournament_id = imported.tournament_id
    await imported(season.file(range(1, 2)))
    sequence, digest = await owner.fetchrow(
        "SELECT last_sequence, digest FROM block WHERE tournament_id = $1 ORDER BY last_sequence DESC LIMIT 1",
        tournament_id,
    )
    await record(owner, tournament_id, EventSetAside(sequence=sequence, digest=digest.hex()))
    async with imported.desk.live_pool.pinned(tournament_id) as live:
        imported.desk.live_pool.drop(live)  # as in a process that has not folded the event
    assert (await imported.refused(season.file(range(2, 0, -1))))[1:] == [
        f"line 3: it was {season.done} as event {sequence}, which the operator has set aside"
    ]


@EACH
async def test_a_key_that_was_used_for_something_else_is_named_with_its_line(
    imported: Importing, season: Season
) -> None:
    async with imported.live() as live:
        async with imported.desk.database.connection() as connection:
            secret = await reading.secret_of(connection, imported.tournament_id)
        kind = season.read(season.file(range(1, 2)).encode())
        ((line,), _) = finished(asked(kind, live.board, secret))
        key, eve = line.prints[0].key, RegisterCompetitor(competitor_id=CompetitorId(9), name="Eve")
        await imported.desk.submit(live, eve, actor=OPERATOR, idempotency_key=key, fingerprint=b"another")
    assert (await imported.refused(season.file(range(2, 0, -1))))[1:] == [
        f"line 3: its key {key} was used for another request"
    ]


@pytest.mark.parametrize("season", [COMPETITIONS])
async def test_judging_a_file_gives_no_points_of_its_results(imported: Importing, season: Season) -> None:
    awards = (Award(unity_id=UnityId(4), value="outcome", table={"win": 3, "draw": 1, "loss": 0}),)
    await imported.submit(DeclareScoring(ranking_id=TABLE, scorings=(Scoring(awards=awards),)))
    async with imported.live() as live:
        totals = live.board.rankings[TABLE].unities[UnityId(4)].totals
        importer = Importer(imported.desk, live, season.read(season.file(range(1, 3)).encode()), asyncio.Event())
        await importer.judge()
        assert [totals.get(one) for one in CLUBS] == [0, 0]
