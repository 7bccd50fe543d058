"""A database distributed by Citus: how it becomes one, when it is refused, and where statements go."""

import json
import os
import re
from collections.abc import Iterator
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from api.access import auth, sessions
from api.cli.tournaments import open_tournament
from engine.database.distribution import DatabaseForm, form_of, is_coordinator, is_distributed, nodes_of
from engine.database.migrator import as_owner, migrate, migrate_and_distribute, status
from engine.database.pool import open_database
from engine.domain.errors import Conflict, StartupRefused
from engine.domain.terms import OPERATOR, TournamentId
from engine.log import registry
from projections.tables.worker import Worker
from projections.verification.all_tournaments import Plan, verify_all
from tests.bounds import Bounds
from tests.conftest import Administrator, DistributedAdministrator, only_distributed
from tests.desks import desk_at as open_desk_at
from tests.restoring import database_of, node_backup
from tests.service import make_token, play_season, serve, slug_of
from tests.sql import OWNERS_OWN, all_statements
from tests.tournaments import open_new_tournament

SHARDS: Final = 4
_numbers = count(1)


@pytest.mark.one_postgresql("it is about a database that is not distributed")
async def test_a_database_without_citus_is_plain_and_says_what_it_lacks_to_be_distributed(dsn: str) -> None:
    assert await status(dsn) == ([], DatabaseForm.PLAIN)
    with pytest.raises(
        StartupRefused, match="not have the extension citus; an administrator must load it on every node"
    ):
        await migrate_and_distribute(dsn, shards=SHARDS)
    assert await status(dsn) == ([], DatabaseForm.PLAIN)


# ── Becoming one ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def nodes(administrator: Administrator) -> DistributedAdministrator:
    assert isinstance(administrator, DistributedAdministrator)
    return administrator


@pytest.fixture
def undistributed(nodes: DistributedAdministrator) -> Iterator[str]:
    """The address of an empty database that could be distributed, but for its nodes: none has joined."""
    name = f"undistributed_{os.getpid()}_{next(_numbers)}"
    nodes.run(nodes.everywhere(f"CREATE DATABASE {name}"))
    yield urlunsplit(urlsplit(nodes.dsn)._replace(path=f"/{name}"))
    nodes.drop(name)


async def differences(dsn: str) -> list[str]:
    async with open_database(dsn, name="test") as database:
        report = await verify_all(database, Plan(), on_difference=lambda _: None, on_events=lambda *_: None)
    return list(map(str, report.differences))


@only_distributed
async def test_an_empty_database_is_distributed_and_again_without_effect(
    undistributed: str, nodes: DistributedAdministrator
) -> None:
    nodes.run(nodes.join(database_of(undistributed)))
    applied, tables = await migrate_and_distribute(undistributed, shards=SHARDS)
    assert applied
    assert {"append_lock", "block", "tournament", "token"} <= set(tables)
    assert await migrate_and_distribute(undistributed, shards=SHARDS) == ([], [])
    assert await status(undistributed) == ([], DatabaseForm.DISTRIBUTED)
    assert await differences(undistributed) == []


@only_distributed
async def test_a_filled_database_keeps_all_it_has(undistributed: str, nodes: DistributedAdministrator) -> None:
    nodes.run(nodes.join(database_of(undistributed)))
    await migrate(undistributed)
    async with serve(undistributed) as service:
        token = await make_token(service.database)
        for _ in range(3):
            tournament_id = await open_new_tournament(service.database, actor=OPERATOR)
            await play_season(service.client(await slug_of(service.database, tournament_id), token))
        await Worker(service.database).catch_up()
    before = await contents(undistributed)
    await migrate_and_distribute(undistributed, shards=SHARDS)
    assert await contents(undistributed) == before
    assert await differences(undistributed) == []
    async with serve(undistributed) as service:  # and goes on
        await play_season(service.client(await slug_of(service.database, tournament_id), token))
        await Worker(service.database).catch_up()
    assert await differences(undistributed) == []


async def contents(dsn: str) -> dict[str, list[str]]:
    owner = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    tables = "SELECT relname FROM pg_class WHERE relnamespace = 'tallybook'::regnamespace AND relkind = 'r'"
    found = {}
    for (table,) in await owner.fetch(tables):
        found[table] = sorted(row[0] for row in await owner.fetch(f"SELECT {table}::text FROM {table}"))
    await owner.close()
    return found


@only_distributed
async def test_what_is_missing_is_said_before_anything_is_changed(
    undistributed: str, nodes: DistributedAdministrator
) -> None:
    await migrate(undistributed)
    with pytest.raises(StartupRefused, match="not have the extension citus"):
        await migrate_and_distribute(undistributed, shards=SHARDS)
    nodes.run(nodes.join(database_of(undistributed), nodes_max=1))
    with pytest.raises(StartupRefused, match="Citus has 1 nodes with shards, and needs at least 2"):
        await migrate_and_distribute(undistributed, shards=SHARDS)
    assert await status(undistributed) == ([], DatabaseForm.PLAIN)


@only_distributed
async def test_nothing_is_distributed_under_a_service_that_runs(
    undistributed: str, nodes: DistributedAdministrator
) -> None:
    nodes.run(nodes.join(database_of(undistributed)))
    await migrate(undistributed)
    async with open_database(undistributed, name="tallybook worker"):
        with pytest.raises(StartupRefused, match="Processes of the service are connected to the database"):
            await migrate_and_distribute(undistributed, shards=SHARDS)
    assert (await migrate_and_distribute(undistributed, shards=SHARDS))[1]


@only_distributed
async def test_a_database_that_is_half_distributed_is_refused_and_can_be_completed(
    dsn: str, owner: asyncpg.Connection
) -> None:
    await owner.execute("SET client_min_messages = error; SELECT undistribute_table('ticket')")
    assert await form_of(owner) is DatabaseForm.MIXED
    with pytest.raises(StartupRefused, match="Some tables of the database are distributed, and others are not yet"):
        async with open_database(dsn, name="test"):
            pass
    assert await migrate_and_distribute(dsn, shards=SHARDS) == ([], ["ticket"])
    assert await form_of(owner) is DatabaseForm.DISTRIBUTED


@only_distributed
async def test_the_address_of_any_node_serves(dsn: str, nodes: DistributedAdministrator) -> None:
    """What one service appends through one node, the other one answers through another at once."""
    name = database_of(dsn)
    async with serve(nodes.address(name, node=1)) as first, serve(nodes.address(name, node=2)) as second:
        token = await make_token(first.database)
        tournament_id = await open_new_tournament(second.database, actor=OPERATOR)
        slug = await slug_of(first.database, tournament_id)
        await play_season(first.client(slug, token))
        expected = await first.client(slug, token).get("rankings.json")
        assert expected.status == 200
        assert (await second.client(slug, token).get("rankings.json")).json == expected.json
        await play_season(second.client(slug, token))
        await Worker(first.database).catch_up()
    for node in range(3):
        assert await differences(nodes.address(name, node=node)) == []


@only_distributed
async def test_ids_come_from_one_place_whichever_node_is_asked(dsn: str, nodes: DistributedAdministrator) -> None:
    drawn: list[int] = []
    for node in range(3):
        address = nodes.address(database_of(dsn), node=node)
        async with open_database(address, name="test") as database, database.connection() as connection:
            drawn += await registry.next_ids(connection, 2)
    assert drawn == [1, 2, 3, 4, 5, 6]


@only_distributed
async def test_the_oldest_session_of_a_token_gives_way_whichever_nodes_it_was_opened_at(
    dsn: str, nodes: DistributedAdministrator, bounds: Bounds
) -> None:
    """Each node has numbers of its own for sessions, greater than those of the coordinator."""
    bounds(SESSIONS_MAX=2)
    opened: list[sessions.Session] = []
    for node in (1, 0, 0, 2, 0):
        address = nodes.address(database_of(dsn), node=node)
        async with open_database(address, name="test") as database, database.connection() as connection:
            if not opened:
                token, _ = await auth.create(
                    connection, name="test", scope=auth.Scope.READ, tournament_ids=None, expires_in_days=None
                )
            session, _ = await sessions.create_session(connection, token.token_id)
            opened.append(session)
            assert await sessions.open_sessions(connection, [token.token_id]) == opened[:-3:-1]


@only_distributed
async def test_what_only_the_coordinator_can_do_is_refused_at_another_address(
    dsn: str, nodes: DistributedAdministrator
) -> None:
    address = nodes.address(database_of(dsn), node=1)
    with pytest.raises(StartupRefused, match="the address of a Citus worker node; give the coordinator's"):
        await migrate(address)
    with pytest.raises(StartupRefused, match="the address of a Citus worker node; give the coordinator's"):
        async with as_owner(address):
            pass


@only_distributed
async def test_a_connection_knows_whether_it_leads_to_the_coordinator(
    dsn: str, nodes: DistributedAdministrator
) -> None:
    address = nodes.address(database_of(dsn), node=1)
    async with open_database(address, name="test") as database, database.raw_connection() as connection:
        assert is_distributed(connection)
        assert not is_coordinator(connection)
    async with open_database(dsn, name="test") as database, database.raw_connection() as connection:
        assert is_coordinator(connection)


# ── A node that was restored alone ──────────────────────────────────────────────────────────────────────


async def place_of(dsn: str, tournament_id: TournamentId, addresses: list[str]) -> int:
    """The number of the node that has the tournament."""
    async with open_database(dsn, name="test") as database, database.connection() as connection:
        node = (await nodes_of(connection, [tournament_id]))[tournament_id]
    return [urlsplit(address).port for address in addresses].index(node.port)


@only_distributed
async def test_verify_finds_what_the_restore_of_one_node_has_lost(dsn: str, addresses: list[str]) -> None:
    async with open_desk_at(dsn) as desk:
        kept = await open_tournament(desk, "Kept")
        place = await place_of(dsn, kept.tournament_id, addresses)
    assert await differences(dsn) == []
    async with node_backup(addresses[place]) as restore:
        async with open_desk_at(dsn) as desk:
            lost = await open_tournament(desk, "Lost")
            while await place_of(dsn, lost.tournament_id, addresses) != place:
                lost = await open_tournament(desk, "Lost")
        await restore()
    for number, address in enumerate(addresses):
        found = await differences(address)
        assert [line for line in found if "copy.tournament" in line and "the nodes have different copies" in line]
        if number != place:  # the others know that it was registered
            assert [line for line in found if lost.slug in line and "there is none: the log is empty" in line], found
        assert not [line for line in found if kept.slug in line]


@only_distributed
@pytest.mark.parametrize("restored", ["the coordinator", "a node"])
async def test_no_tournament_is_created_while_the_nodes_do_not_agree_on_which_there_are(
    restored: str, dsn: str, addresses: list[str]
) -> None:
    async with open_desk_at(dsn) as desk:
        kept = await open_tournament(desk, "Kept")
        place = 0 if restored == "the coordinator" else await place_of(dsn, kept.tournament_id, addresses)
    async with node_backup(addresses[place]) as restore:
        async with open_desk_at(dsn) as desk:
            await open_tournament(desk, "Lost")
        await restore()
    async with open_desk_at(dsn) as desk:
        with pytest.raises(Conflict, match="the nodes do not agree on which tournaments there are"):
            await open_tournament(desk, "Lost")


async def test_a_tournament_whose_id_is_there_already_is_refused_in_a_sentence(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_desk_at(dsn) as desk:
        there = await open_tournament(desk, "Open")
        monkeypatch.setattr(registry, "new_tournament_id", lambda: there.tournament_id)
        with pytest.raises(Conflict, match="already exists, where it should not be"):
            await open_tournament(desk, "Another")


# ── Where statements go ─────────────────────────────────────────────────────────────────────────────────

MANY_APPENDS: Final = {"engine.log.appending._APPEND", "engine.log.appending._APPEND_SET"}
"""They would be executed on the coordinator, and committed in two phases; a distributed database is not asked them."""
PLAIN_ONES: Final = {
    "engine.log.heads._HEADS",
    "engine.log.heads._LOGS_BYTES",
    "engine.log.tails._BLOCKS.each",
    "engine.log.undecoded._STORED.each",
    "projections.verification.stored_log._ALL_BLOCKS",
    "projections.verification.stored_log._ALL_BEFORE",
    "projections.verification.stored_log._ALL_COUNTS",
    "projections.verification.stored_log._REGISTERED",
    "projections.verification.table_checks._UNREGISTERED",
    "projections.verification.table_checks._ALL_STRAYS",
    "projections.verification.table_checks._ALL_INCOMPLETE",
}
"""They ask of several tournaments at once, which only a plain database is asked; Citus refuses them."""
EVERYWHERE: Final = {
    "engine.log.registry._TOURNAMENTS": "the list of all tournaments, which an operator asks for",
    "projections.tables.tables._BEHIND.each": "asked of a plain database only",
    "projections.tables.tables._BEHIND_OF_EACH": "the same",
    "projections.verification.setting_aside._SET_ASIDES": "verification of one tournament",
    "projections.verification.table_checks._UNREGISTERED_ANYWHERE": "verification of all",
    "projections.verification.table_checks._ALL_STANDING": "asked of a plain database only",
    "projections.tables.tables._EXPIRING": "where points expire, which each process asks once in a while",
    "projections.tables.tables._LISTED": "the boards that the first page of a service lists",
    "api.webhooks.webhooks._COUNT": "when a webhook is added",
    "api.webhooks.webhooks._LIST": "the list of all webhooks, which an operator asks for",
    "api.webhooks.webhooks._DUE": "whom there is something new for, asked by one process of all",
    "api.webhooks.webhooks._FIGURES": "how many there are in each state, asked by one process of all",
}
"""Statements that may ask all shards, and why. Of requests, only one for `/` sends any."""
_PLANNED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
_VALUES: Final = {
    "int8": "77",
    "int4": "1",
    "text": "'1'",
    "bytea": "''::bytea",
    "bool": "false",
    "timestamptz": "now()",
    "json": "'[]'::json",
    "float8": "1",
    "uuid": "gen_random_uuid()",
    "name": "''",
}
_APPENDED: Final = "'77' '0077' '1' '' 'f' 'f' '' '0' '' NULL '' '{}' '' '' '' 0 true false".replace(
    "0077", "00000000-0000-0000-0000-000000000077"
).split()
_TASKS: Final = re.compile(r'"Task Count": ([0-9]+)')


def value(type_: str) -> str:
    """SQL of a value of this type: the number of a tournament, where it may be one."""
    return f"ARRAY[{value(type_[:-2])}]::{type_}" if type_.endswith("[]") else f"{_VALUES[type_]}::{type_}"


async def tasks(service: Any, statement: str) -> list[int]:
    """In how many shards each part of the plan of a statement is executed, where it is about one tournament."""
    types = [parameter.name for parameter in (await service.prepare(statement)).get_parameters()]
    values = _APPENDED if "append_block" in statement else list(map(value, types))
    await service.execute(f"PREPARE one AS {statement}")
    try:
        given = f"({', '.join(values)})" if values else ""
        plan = await service.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE one{given}")
    finally:
        await service.execute("DEALLOCATE one")
    assert json.loads(plan)
    return [int(number) for number in _TASKS.findall(plan)]


@only_distributed
async def test_every_statement_about_a_tournament_goes_to_its_shard(dsn: str) -> None:
    found, refused = set(), set()
    async with open_database(dsn, name="test") as database, database.raw_connection() as service:
        await open_new_tournament(database, actor=OPERATOR)
        for name, statement in all_statements().items():
            of = name.rpartition("/")[0]
            if of in MANY_APPENDS or of.rpartition(".")[0] in OWNERS_OWN or statement.split()[0] not in _PLANNED:
                continue
            try:
                if any(number > 1 for number in await tasks(service, statement)):
                    found.add(of)
            except asyncpg.FeatureNotSupportedError:
                refused.add(of)
    assert found == set(EVERYWHERE)
    assert refused == PLAIN_ONES
