"""The columns declared are those of the migrated schema; the statements made from them are as if written by hand."""

from typing import Final

import asyncpg
import pytest

from projections.tables.columns import COMPETITOR, TABLES, TOTAL

_COLUMNS: Final = """
    SELECT attname, format_type(atttypid, atttypmod)
    FROM pg_attribute
    WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped
"""
_KEY: Final = """
    SELECT a.attname
    FROM pg_index AS i
    CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indrelid = $1::regclass AND i.indisprimary
    ORDER BY k.place
"""
LONG_NAMES: Final = {"integer": "int", "timestamp with time zone": "timestamptz"}


async def test_the_columns_declared_are_those_of_the_schema(
    owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for table in TABLES:
        with subtests.test(str(table)):
            there = {name: LONG_NAMES.get(kind, kind) for name, kind in await owner.fetch(_COLUMNS, table.name)}
            stored_otherwise = {column.name for column in table.columns if column.stored is not None}
            assert len(table.columns) == len(there)
            assert {column.name for column in table.columns} == set(there)
            assert {column.name for column in table.columns if column.type != there[column.name]} == stored_otherwise
            assert [row["attname"] for row in await owner.fetch(_KEY, table.name)] == list(table.key)


def test_a_statement_reads_as_if_written_by_hand() -> None:
    assert COMPETITOR.select.splitlines() == [
        "SELECT tournament_id, competitor_id, number, name, tags, color, parent_id, created_at, "
        "nullif(updated_at, created_at) AS updated_at, revised, erased, key, "
        "nullif(former, '{}') AS former",
        "FROM competitor",
        "WHERE tournament_id = ANY($1::bigint[])",
        "ORDER BY tournament_id, number",
    ]
    assert TOTAL.insert.splitlines() == [
        "INSERT INTO total (tournament_id, unity_id, competitor_id, total)",
        "SELECT tournament_id, unity_id, competitor_id, total",
        "FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])",
        "    AS sent (tournament_id, unity_id, competitor_id, total)",
        "ON CONFLICT (tournament_id, unity_id, competitor_id) DO UPDATE",
        "SET total = excluded.total",
    ]
    assert TOTAL.insert_of_one.splitlines() == [
        "INSERT INTO total (tournament_id, unity_id, competitor_id, total)",
        "SELECT l.tournament_id, sent.unity_id, sent.competitor_id, sent.total",
        "FROM append_lock AS l",
        "CROSS JOIN unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS sent (unity_id, competitor_id, total)",
        "WHERE l.tournament_id = $1",
        "ON CONFLICT (tournament_id, unity_id, competitor_id) DO UPDATE",
        "SET total = excluded.total",
    ]
    assert TOTAL.delete.splitlines() == ["DELETE FROM total", "WHERE tournament_id = ANY($1::bigint[])"]


@pytest.mark.parametrize(
    ("name", "changing"),
    [
        ("competitor", "name tags color parent_id updated_at revised erased key former"),
        (
            "competition",
            "group_id date location result winner_id voided_at updated_at revised struck scale round round_name key",
        ),
        ("participant", "competitor_id result"),
        ("ranking", "place name description closed_at criteria undone scorings replaced zones updated_at revised"),
        ("enrolment", "number has_left"),
        ("unity", "name sort version"),
        ("total", "total"),
    ],
)
def test_of_a_row_that_is_there_already_only_what_can_change_is_written(name: str, changing: str) -> None:
    (table,) = (table for table in TABLES if table.name == name)
    for statement in (table.insert, table.insert_of_one):
        _, _, changes = statement.partition("DO UPDATE\nSET ")
        assert changes == ", ".join(f"{column} = excluded.{column}" for column in changing.split())
