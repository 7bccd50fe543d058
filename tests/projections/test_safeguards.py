"""What keeps the log append-only: each rule that does not hold any more is named, and one that holds is not."""

import re
from typing import Final

import asyncpg
import pytest

from engine.database.migrator import shipped
from engine.database.pool import Database
from projections.verification.safeguards import broken_rules, schema_objects_of

NEW_DOOR: Final = """
    append_block(
        bigint, uuid, boolean, bigint, bytea, boolean, boolean, boolean, bigint[], bigint, bigint, int[], text[],
        bytea[], text, text[], text[], tstzrange
    )
"""
RULES: Final = {
    "ALTER TABLE topic DISABLE TRIGGER append_only": "trigger.topic.append_only",
    "ALTER TABLE block ENABLE REPLICA TRIGGER append_only": "trigger.block.append_only",
    "DROP TRIGGER append_only ON idempotency": "trigger.idempotency.append_only",
    "DROP TRIGGER append_only ON personal": "trigger.personal.append_only",
    "ALTER TABLE idempotency DISABLE TRIGGER only_emptied": "trigger.idempotency.only_emptied",
    "DROP TRIGGER lock_stays ON append_lock": "trigger.append_lock.lock_stays",
    "ALTER TABLE refusal DISABLE TRIGGER refusal_stays": "trigger.refusal.refusal_stays",
    """
    CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE ON tournament
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """: "trigger.tournament.append_only",
    """
    CREATE OR REPLACE TRIGGER only_emptied BEFORE UPDATE OF sequence ON idempotency
        FOR EACH ROW EXECUTE FUNCTION refuse_change()
    """: "trigger.idempotency.only_emptied",
    """
    CREATE OR REPLACE TRIGGER append_only BEFORE UPDATE OF rules OR DELETE OR TRUNCATE ON block
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
    """: "trigger.block.append_only",
    "GRANT UPDATE ON personal TO tallybook_service": "right.personal",
    "GRANT INSERT ON block TO PUBLIC": "right.block",
    "GRANT DELETE ON refusal TO tallybook_service": "right.refusal",
    "GRANT UPDATE (text) ON block TO tallybook_service": "right.block",
    "ALTER TABLE block ALTER text DROP NOT NULL": "column.block.text",
    "ALTER TABLE block DROP CONSTRAINT block_pkey; CREATE INDEX ON block (tournament_id, last_sequence)": "key.block",
    "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'topic_pkey'::regclass": "key.topic",
    # Functions: an empty body, part of ours, and another one
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'": (
        "function.refuse_change"
    ),
    """
    CREATE OR REPLACE FUNCTION genesis_digest(p_tournament_id bigint) RETURNS bytea
    LANGUAGE sql IMMUTABLE AS $$ SELECT sha256('tallybook log 1'::bytea) $$
    """: "function.genesis_digest",
    "UPDATE pg_proc SET prosrc = '' WHERE oid = 'genesis_digest'::regproc": "function.genesis_digest",
    "UPDATE pg_proc SET prosrc = substr(prosrc, 1, 300) WHERE oid = 'refuse_keys'::regproc": "function.refuse_keys",
    "ALTER FUNCTION genesis_digest VOLATILE": "function.genesis_digest",
    "ALTER FUNCTION genesis_digest STRICT": "function.genesis_digest",
    "DROP FUNCTION open_tournament": "function.open_tournament",
    "ALTER FUNCTION open_tournament SECURITY INVOKER": "function.open_tournament",
    "ALTER FUNCTION refuse_change SECURITY DEFINER; REVOKE ALL ON FUNCTION refuse_change FROM PUBLIC": (
        "function.refuse_change"
    ),
    "ALTER FUNCTION open_tournament RESET search_path": "function.open_tournament",
    "ALTER FUNCTION open_tournament SET search_path = public, tallybook": "function.open_tournament",
    f"ALTER FUNCTION {NEW_DOOR} SET lock_timeout = '1h'": "function.append_block",
    f"GRANT EXECUTE ON FUNCTION {NEW_DOOR} TO PUBLIC": "function.append_block",
    "ALTER FUNCTION refuse_keys OWNER TO pg_monitor": "function.refuse_keys",
    "CREATE FUNCTION sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1'": "function.sha256",
    "CREATE FUNCTION genesis_digest(p_tournament_id int) RETURNS bytea LANGUAGE sql AS 'SELECT NULL::bytea'": (
        "function.genesis_digest"
    ),
    "CREATE PROCEDURE tidy() LANGUAGE sql AS 'SELECT 1'": "function.tidy",
    "CREATE AGGREGATE total_of(bigint) (SFUNC = int8pl, STYPE = bigint)": "function.total_of",
    # Views
    "DROP VIEW standing": "view.standing",
    "DROP VIEW event": "view.event",
    "CREATE OR REPLACE VIEW head AS SELECT l.tournament_id, 0::bigint AS sequence, 0::bigint AS structure_sequence, "
    "now() AS recorded_at, ''::bytea AS digest FROM append_lock AS l": "view.head",
    "ALTER VIEW head SET (security_barrier = true)": "view.head",
    "ALTER VIEW head OWNER TO pg_monitor": "view.head",
    "CREATE VIEW event_of_today AS SELECT * FROM event": "view.event_of_today",
    "ALTER VIEW standing RENAME COLUMN total TO points": "view.standing",
}
"""What somebody with all rights can do, and the rule that does not hold then."""


REFUSED_BY_CITUS: Final = ("GRANT UPDATE (text) ON block TO tallybook_service",)
_NEXT: Final = re.compile(r";\s+(?=CREATE|REVOKE)")


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(statement, marks=pytest.mark.one_postgresql("Citus refuses rights on columns"))
        if statement in REFUSED_BY_CITUS
        else statement
        for statement in RULES
    ],
)
async def test_a_broken_rule_is_named(database: Database, owner: asyncpg.Connection, statement: str) -> None:
    async with database.connection() as connection:
        assert await broken_rules(connection) == []
        for one in _NEXT.split(statement):  # Citus takes no two at once
            await owner.execute(one)
        assert {broken.rule for broken in await broken_rules(connection)} == {RULES[statement]}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("b.structure_sequence,", "b.last_sequence AS structure_sequence,"),
        ("ORDER BY block.last_sequence DESC", "ORDER BY block.last_sequence"),
        ("LIMIT 1", "LIMIT 2"),
        ("LIMIT 1", "OFFSET 1"),
        ("LIMIT 1", "FETCH FIRST 1 ROW WITH TIES"),
    ],
)
async def test_a_view_of_which_a_word_is_another_is_named(
    database: Database, owner: asyncpg.Connection, before: str, after: str
) -> None:
    definition = await owner.fetchval("SELECT pg_get_viewdef('head'::regclass)")
    assert definition.count(before) == 1
    await owner.execute(f"CREATE OR REPLACE VIEW head AS {definition.replace(before, after)}")
    async with database.connection() as connection:
        assert [broken.rule for broken in await broken_rules(connection)] == ["view.head"]


async def test_a_server_that_may_lose_what_it_confirmed_is_found(dsn: str, database: Database) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook", "synchronous_commit": "off"})
    try:
        broken = await broken_rules(connection)
        assert [rule.rule for rule in broken] == ["setting.synchronous_commit"]
    finally:
        await connection.close()


# ── What migrations make ────────────────────────────────────────────────────────────────────────────────

ONE: Final = "CREATE FUNCTION one(p_a int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 1 $$;\n"
OTHER: Final = "CREATE OR REPLACE FUNCTION one(p_a int) RETURNS int\nLANGUAGE sql AS $$ SELECT 2 -- two\n$$;\n"


def test_every_function_and_view_of_the_shipped_migrations_is_read() -> None:
    made = schema_objects_of(migration.sql for migration in shipped())
    assert sorted(name for name, _ in made.functions) == [
        "append_block",
        "append_blocks",
        "block_place",
        "genesis_digest",
        "import_block",
        "open_tournament",
        "refuse_change",
        "refuse_keys",
        "shown_total",
    ]
    assert sorted(made.views) == ["event", "head", "standing"]


def test_a_later_function_of_the_same_arguments_replaces_the_earlier_and_no_other() -> None:
    (function,) = schema_objects_of([ONE, OTHER]).functions.values()
    assert (function.source, function.volatility, function.result) == (" SELECT 2 -- two\n", "v", "integer")
    assert len(schema_objects_of([ONE, OTHER.replace("int)", "text)")]).functions) == 2


def test_a_view_that_is_replaced_or_dropped_is_the_last_one_or_none() -> None:
    first, second = "CREATE VIEW v AS\nSELECT 1;\n", "CREATE OR REPLACE VIEW v AS SELECT 2; -- and so on;\n"
    assert schema_objects_of([first, second]).views == {"v": "SELECT 2"}
    assert schema_objects_of([first, "DROP VIEW v;\n"]).views == {}


@pytest.mark.parametrize(
    "text",
    [
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1';",
        "CREATE FUNCTION one() RETURNS int LANGUAGE sql COST 7 AS $$ SELECT 1 $$;",
        "CREATE PROCEDURE one() LANGUAGE sql AS $$ SELECT 1 $$;",
        "CREATE MATERIALIZED VIEW v AS SELECT 1;",
        "CREATE VIEW v (a) AS SELECT 1;",
        "create view v as select 1;",
        "ALTER FUNCTION one VOLATILE;",
        "DROP FUNCTION one;",
        "DROP VIEW v;",
    ],
)
def test_a_statement_of_another_manner_is_not_overlooked(text: str) -> None:
    with pytest.raises(ValueError, match="cannot"):
        schema_objects_of([text])
