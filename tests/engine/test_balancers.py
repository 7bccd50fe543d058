"""Balancers, which send each statement to the server that they choose: what they take to a standby is believed by
nobody. pgpool-II is tried where it is installed; a balancer of our own stands in for it everywhere."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from structlog.testing import capture_logs

from assurance.faults.cluster import Cluster, cluster
from assurance.faults.resources import streaming
from engine.database.migrator import migrate, status
from engine.database.pool import open_database
from engine.database.sessions import BALANCED, SessionUnfit
from engine.domain.errors import DatabaseUnavailable, StartupRefused
from engine.domain.terms import OPERATOR
from engine.log import heads
from tests.balancer import balancer, hold
from tests.pgpool import pgpool
from tests.service import make_token, serve, slug_of
from tests.tournaments import open_new_tournament

pytestmark = pytest.mark.usefixtures("draws")


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A migrated primary, and a standby that has the same."""
    async with cluster(tmp_path / "one") as one:
        await migrate(one.dsn)
        two = await one.standby(tmp_path / "two")
        try:
            await streaming(one)
            yield one, two
        finally:
            await two.stop()


async def assert_refused(address: str) -> None:
    with pytest.raises(StartupRefused) as refusal:
        async with open_database(address, name="test"):
            pass
    assert refusal.value.message == BALANCED
    for command in (migrate, status):
        with pytest.raises(StartupRefused) as refusal:
            await command(address)
        assert refusal.value.message == BALANCED


@pytest.mark.long
async def test_a_balancer_that_sends_reads_to_a_standby_is_refused(pair: tuple[Cluster, Cluster]) -> None:
    async with balancer(*pair) as between:
        await assert_refused(between.dsn)


async def test_no_answer_comes_from_a_standby_once_reads_are_sent_there(
    pair: tuple[Cluster, Cluster],
) -> None:
    """As pgpool-II does statement by statement, or when a standby has caught up."""
    primary, standby = pair
    async with balancer(primary, standby) as between:
        between.balancing = False
        async with serve(between.dsn) as service, open_database(primary.dsn, name="test") as direct:
            token = await make_token(service.database)
            known = await open_new_tournament(direct, actor=OPERATOR)
            slug = await slug_of(direct, known)
            client = service.client(slug, token)
            assert (await client.get("competitors.json")).status == 200  # over connections that are kept
            await hold(standby)
            added = await client.post("competitors.json", {"name": "Ada"})
            assert added.status == 200
            later = await open_new_tournament(direct, actor=OPERATOR)
            later_slug = await slug_of(direct, later)

            between.balancing = True
            read = await client.get("competitors.json")
            assert read.status == 200
            assert [line["name"] for line in read.json["competitors"]["competitor"]] == ["Ada"]
            with capture_logs() as said:
                for _ in range(3):
                    unknown = await service.client(later_slug, token).get("rankings.json")
                    assert unknown.status == 503, "nobody may be told that it does not exist"
            assert [line["reason"] for line in said if line["event"] == "session_refused"] == [BALANCED]
            between.balancing = False
            assert (await service.client(later_slug, token).get("rankings.json")).status == 200


async def test_a_barrier_that_a_standby_answers_is_refused_whatever_took_it_there(
    pair: tuple[Cluster, Cluster],
) -> None:
    primary, standby = pair
    async with open_database(primary.dsn, name="test") as database:
        known = await open_new_tournament(database, actor=OPERATOR)
    for wanted in ([known], [known, known + 1], [known + 1]):
        connection = await asyncpg.connect(standby.dsn, server_settings={"search_path": "tallybook"})
        with pytest.raises(SessionUnfit, match="load_balance_mode"):
            await heads.current(connection, wanted)
        assert connection.is_closed()


@pytest.mark.long
@pytest.mark.parametrize(
    "settings", [{}, {"allow_sql_comments": "on"}, {"disable_load_balance_on_write": "off"}], ids=str
)
async def test_pgpool_with_its_default_settings_is_refused(
    pair: tuple[Cluster, Cluster], settings: dict[str, str]
) -> None:
    async with pgpool(*pair, **settings) as address:
        await assert_refused(address)


@pytest.mark.long
@pytest.mark.parametrize("by_statement", ["off", "on"])
async def test_through_pgpool_that_draws_a_server_every_answer_is_current(
    pair: tuple[Cluster, Cluster], by_statement: str
) -> None:
    """For each session, or for each statement. What is drawn decides how much is refused."""
    primary, standby = pair
    async with serve(primary.dsn) as direct:
        client = direct.client(
            await slug_of(direct.database, await open_new_tournament(direct.database, actor=OPERATOR)),
            await make_token(direct.database),
        )
        await hold(standby)
        drawing = {"statement_level_load_balance": by_statement, "backend_weight0": "1"}
        statuses = []
        async with pgpool(primary, standby, **drawing) as address:
            for number in range(1, 21):
                assert (await client.post("competitors.json", {"name": str(number)})).status == 200
                try:
                    async with serve(address) as service:
                        read = await service.client(client.tournament, client.token).get("competitors.json")
                except (StartupRefused, DatabaseUnavailable):
                    continue
                statuses.append(read.status)
                if read.status == 200:
                    assert len(read.json["competitors"]["competitor"]) == number
        assert set(statuses) <= {200, 503}
        assert len(statuses) < 20


@pytest.mark.long
async def test_pgpool_without_balancing_is_like_the_primary(pair: tuple[Cluster, Cluster]) -> None:
    async with pgpool(*pair, load_balance_mode="off") as address:
        assert await migrate(address) == []
        async with serve(address) as service:
            token = await make_token(service.database)
            known = await open_new_tournament(service.database, actor=OPERATOR)
            slug = await slug_of(service.database, known)
            await hold(pair[1])
            client = service.client(slug, token)
            for number in range(1, 6):
                assert (await client.post("competitors.json", {"name": str(number)})).status == 200
                assert len((await client.get("competitors.json")).json["competitors"]["competitor"]) == number
