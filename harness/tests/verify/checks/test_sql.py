"""Statements are told apart by their verb and the tables that they name, whatever comments and strings say."""

import pytest

from harness.verify.checks.statement_counts import Statement


def statement(text: str) -> Statement:
    return Statement(text=text, calls=1, rows=1, pages=1)


READS = (
    "SELECT id, randomnumber FROM world WHERE id = $1 FOR UPDATE",
    "SELECT id FROM world WHERE id = $1 FOR NO KEY UPDATE",
    "select id /* controller='update',action='insert' */ from world",
    "-- update world\nSELECT 1 FROM world",
    "SELECT 'delete from world', \"update\" FROM world",
    "WITH w AS (SELECT id FROM world FOR UPDATE) SELECT * FROM w",
    "/* outer /* inner */ update */ SELECT 1",
    "  (SELECT 1)",
    "SELECT E'it''s /* no comment' FROM world",
    "VALUES (1)",
    "",
)
WRITES = (
    "UPDATE world SET randomnumber = $1",
    '/*+ hint */ update "World" set x = 1',
    "-- select\n  UPDATE world SET x = 1",
    "WITH n AS (SELECT 1) UPDATE world SET x = 1",
    "WITH d AS (DELETE FROM world RETURNING id) SELECT * FROM d",
    "INSERT INTO world VALUES (1) ON CONFLICT DO UPDATE SET x = 1",
    "MERGE INTO world USING w ON true WHEN MATCHED THEN DO NOTHING",
    "COPY world FROM STDIN",
)


@pytest.mark.parametrize("text", READS + WRITES)
def test_what_changes_rows_is_a_write_and_what_only_reads_is_none(text: str) -> None:
    assert statement(text).writes == (text in WRITES)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT 1 FROM world", True),
        ('SELECT 1 FROM "World" w', True),
        ("SELECT 1 FROM public.world", True),
        ("SELECT 1 /* world */", False),
        ("SELECT 'world'", False),
        ("SELECT 1 FROM worlds", False),
        ("SELECT 1 FROM new_world", False),
    ],
)
def test_a_table_is_named_outside_of_comments_and_strings(text: str, named: bool) -> None:
    assert statement(text).names("world") is named
