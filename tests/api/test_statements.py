"""What the product sends to PostgreSQL: every statement is one of those written down, and each says of which
tournaments it is, but for a list with reasons.

A statement that names its tournaments can be answered where their rows are, however many others there are, and wherever
those are.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from api.access import auth
from api.interface.operations import OPERATIONS
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate, shipped
from engine.domain.terms import OPERATOR
from engine.log import appending, heads
from projections.tables import snapshots, tables
from projections.tables.worker import Worker
from projections.verification import stored_log
from projections.verification.safeguards import schema_objects_of
from tests.api.asking import OPERATIONS as ASKED
from tests.api.asking import WRITES, ask, keyed, with_points
from tests.api.cli.conftest import Tallybook
from tests.service import Season, make_token, play_season, serve, slug_of
from tests.sql import OWNERS_OWN, all_statements, flattened, statements
from tests.tournaments import open_new_tournament

WITHOUT_TOURNAMENTS: Final = {
    "engine.log.registry._TOURNAMENTS": "the list of all tournaments, which an operator asks for",
    "projections.tables.tables._LISTED": "the boards that the first page leads to, by an index of the listed ones",
    "projections.tables.tables._EXPIRING": "where points expire, by an index of those unities, every ten seconds",
    "projections.tables.tables._MOMENT": "whether anything is stopped, in a table that is nearly always empty",
    "projections.tables.tables._STOPPED": "how many are stopped, as above",
    "projections.tables.tables._STOPPED_AFTER": "the next stopped ones, as above",
    "projections.tables.tables._STOPPED_LAST": "those that stopped last, as above",
    "projections.tables.defects._RECENT": "the latest defects, in a table that is nearly always empty",
    "engine.log.quotas._QUOTAS": "all quotas, which a process reads every two seconds; by default there are none",
    "engine.log.registry._OPEN": "whether a deleted tournament had the slug of one that is opened",
    "api.webhooks.webhooks._COUNT": "how many webhooks there are, when one is added",
    "api.webhooks.webhooks._LIST": "the list of all webhooks, which an operator asks for",
    "api.webhooks.webhooks._DUE": "whom there is something new for, of a table of at most WEBHOOKS_MAX rows",
    "api.webhooks.webhooks._FIGURES": "how many there are in each state, as above",
    "projections.verification.stored_log._REGISTERED": "verification of all: their last blocks, once for each round",
    "projections.verification.table_checks._UNREGISTERED_ANYWHERE": "as _UNREGISTERED, of a distributed database",
    "projections.verification.table_checks._UNREGISTERED": "verification: rows of tournaments that there are not",
}
"""Statements on tables of tournaments that do not name theirs, and why that may be so. None is sent for a request."""


def in_one_line(statement: str) -> str:
    return " ".join(statement.split()).rstrip("; ")


# ── Which name their tournaments ────────────────────────────────────────────────────────────────────────

_TABLES: Final = """
    SELECT c.relname
    FROM pg_class AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tournament_id'
    WHERE c.relnamespace = 'tallybook'::regnamespace AND c.relkind = 'r' AND c.relname <> 'tournament'
"""
_ONE_BY_ONE: Final = """
    SET search_path = tallybook; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
    SET enable_bitmapscan = off; SET enable_material = off; SET enable_memoize = off;
    SET plan_cache_mode = force_generic_plan
"""
"""So that a join looks up each row that it needs, instead of reading all rows of two small tables."""
_KEY: Final = re.compile(r"\(+tournament_id = ")
_PLANNED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def nameless(plan: dict[str, Any], tables: set[str]) -> set[str]:
    """The tables of tournaments that a plan scans otherwise than by their key's first column. The registry is one of
    them where others are looked up by what it says."""
    scans = [node for node in flattened(plan) if "Relation Name" in node and node["Node Type"] != "ModifyTable"]
    looked_up = tables | {"tournament"} if any(node["Relation Name"] in tables for node in scans) else set()
    return {
        node["Relation Name"]
        for node in scans
        if node["Relation Name"] in looked_up and not _KEY.match(node.get("Index Cond", ""))
    }


@pytest.mark.one_postgresql("there `test_every_statement_about_a_tournament_goes_to_its_shard` says it")
async def test_every_statement_names_its_tournaments_but_for_a_few(owner: asyncpg.Connection) -> None:
    of_tournaments = {row[0] for row in await owner.fetch(_TABLES)}
    assert {"block", "topic", "personal", "append_lock", "checkpoint", "total"} <= of_tournaments
    await owner.execute(_ONE_BY_ONE)
    found = set()
    for name, statement in statements().items():
        if name.rpartition(".")[0] in OWNERS_OWN or statement.split()[0] not in _PLANNED:
            continue
        parameters = (await owner.prepare(statement)).get_parameters()
        await owner.execute(f"PREPARE one AS {statement}")
        given = f"({', '.join(['NULL'] * len(parameters))})" if parameters else ""
        plan = await owner.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE one{given}")
        await owner.execute("DEALLOCATE one")
        if nameless(json.loads(plan)[0]["Plan"], of_tournaments):
            found.add(name.rpartition("/")[0])
    assert found == set(WITHOUT_TOURNAMENTS)


def test_every_function_that_reads_or_writes_tables_takes_its_tournament_first() -> None:
    made = schema_objects_of(migration.sql for migration in shipped()).functions.values()
    touching = [
        function for function in made if re.search(r"\b(FROM|INTO|UPDATE) (block|append_lock)\b", function.source)
    ]
    assert {function.name for function in touching} == {
        "append_block",
        "append_blocks",
        "import_block",
        "open_tournament",
        "refuse_keys",
    }
    assert {function.arguments.split(",")[0] for function in touching} == {
        "p_tournament_id bigint",
        "p_tournament_ids bigint[]",
    }


async def test_every_table_of_tournaments_has_their_id_first_in_its_primary_key(owner: asyncpg.Connection) -> None:
    rows = await owner.fetch(
        """
        SELECT c.relname, pg_get_indexdef(i.indexrelid, 1, true)
        FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        WHERE i.indisprimary AND c.relnamespace = 'tallybook'::regnamespace
        """
    )
    first = dict(map(tuple, rows))
    tables = {row[0] for row in await owner.fetch(_TABLES)} - {"token"}
    assert {table: first[table] for table in tables} == dict.fromkeys(tables, "tournament_id")


# ── Which are sent ──────────────────────────────────────────────────────────────────────────────────────

_ENTRY: Final = re.compile(r"^(?!\t)(?:.*?LOG:  (?:statement|execute [^:]*): (.*)|.*)$")
_DRIVERS: Final = re.compile(
    r"BEGIN( ISOLATION LEVEL REPEATABLE READ READ ONLY)?|COMMIT|ROLLBACK|(SAVEPOINT|RELEASE SAVEPOINT|ROLLBACK TO) \S+"
    r"|(UN)?LISTEN \S+|UNLISTEN \*|WITH RECURSIVE typeinfo_tree\(.*|SELECT current_setting\('jit'\) AS cur, .*"
    r"|SELECT current_setting\('server_encoding'\)|SET TRANSACTION SNAPSHOT '.*'"
    r"|EXPLAIN \(VERBOSE, COSTS OFF\) SELECT .*"
)
"""What the driver sends by itself; a question to the server as such; and what verification makes of its `_IMPORT` and
`_PLAN_OF`, the text of the views."""


def sent(lines: Iterable[str]) -> set[str]:
    """The statements in a server's log, each in one line. A line that begins with a tab goes on with the one before."""
    texts: list[str] = []
    open_ = False
    for line in lines:
        if line.startswith("\t"):
            if open_:
                texts[-1] += line
            continue
        found = _ENTRY.match(line.rstrip("\n"))
        open_ = found is not None and found[1] is not None
        if found is not None and found[1] is not None:
            texts.append(found[1] + "\n")
    whole = [in_one_line(text) for text in texts]
    return {part.strip() for line in whole for part in (line.split(";") if line.startswith("SET") else [line])} - {""}


@pytest.fixture
async def logged(tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    """The address of a database, migrated and empty, and the log in which its server writes every statement."""
    async with embedded_postgres(tmp_path / "pg", settings={"log_statement": "all"}) as cluster:
        await migrate(cluster.dsn)
        yield cluster.dsn, tmp_path / "pg" / "postgres.log"


async def test_whatever_is_done_only_statements_that_are_written_down_are_sent(logged: tuple[str, Path]) -> None:
    """All operations, most commands, a worker, and verification."""
    dsn, file = logged
    begins = file.stat().st_size
    async with serve(dsn) as service:
        token = await make_token(service.database)
        tournament_id = await open_new_tournament(service.database, actor=OPERATOR)
        slug = await slug_of(service.database, tournament_id)
        season = await with_points(await play_season(service.client(slug, token)))
        for n, name in enumerate(ASKED):
            answer = await ask(name, season, season.client, keyed(f"key-{n}") if name in WRITES else {})
            assert answer.status == 200, (name, answer.body)
        assert len(ASKED) == len(OPERATIONS)
        await Worker(service.database).catch_up()
    await command(Tallybook(dsn), slug, season, file.with_name("digests"))
    with file.open() as lines:
        lines.seek(begins)
        found = sent(lines)
    written = {in_one_line(statement) for statement in all_statements().values()}
    assert {text for text in found if text not in written and not _DRIVERS.fullmatch(text)} == set()
    seen = (
        appending._APPEND_ONE,
        heads._HEAD,
        tables._CLAIM,
        snapshots._SEQUENCES,
        stored_log._BLOCKS,
        auth._BY_HASH,
    )
    assert {in_one_line(statement) for statement in seen} <= found


async def command(tallybook: Tallybook, slug: str, season: Season, notes: Path) -> None:
    ranking, competition, competitor = (str(n) for n in (season.ranking_id, season.competition_id, season.ids[0]))
    for arguments in (
        ("tournament", "restore", slug),
        ("tournament", "create", "Other"),
        ("tournament", "list"),
        ("competitor", "add", slug, "Zoe"),
        ("competitor", "list", slug),
        ("ranking", "list", slug),
        ("token", "list"),
        ("standings", slug, ranking),
        ("history", slug, ranking),
        ("explain", slug, ranking, competitor),
        ("what-if", slug, ranking, "--without-competition", competition),
        ("unvoid", slug, competition, "--dry-run"),
        ("rebuild", slug),
        ("verify",),
        ("verify", slug),
        ("digests", slug, "--output", str(notes)),
        ("prove", slug, "3"),
    ):
        await tallybook.done(*arguments)
