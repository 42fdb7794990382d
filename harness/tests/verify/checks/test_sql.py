"""Statements are classified by verb and table. Comments and strings are ignored."""

import pytest

from harness.verify.checks.statement_counts import NormalisedStatement


def statement(text: str) -> NormalisedStatement:
    return NormalisedStatement(text=text, calls=1, rows=1, pages=1)


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
    "COPY (SELECT id FROM world WHERE id = ANY('{1,2}')) TO STDOUT",
    "COPY world TO STDOUT",
    'PREPARE "update" (integer) AS SELECT * FROM world WHERE id = $1',
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
    "PREPARE q(int,int)AS UPDATE world SET randomnumber = $1 WHERE id = $2",
)


@pytest.mark.parametrize("text", READS + WRITES)
def test_only_statements_that_change_rows_are_writes(text: str) -> None:
    assert statement(text).writes == (text in WRITES)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT 1 FROM world", True),
        ('SELECT 1 FROM "World" w', True),
        ("SELECT 1 FROM public.world", True),
        (r'SELECT 1 FROM U&"w\006Frld"', True),
        ("SELECT 1 /* world */", False),
        ("SELECT 'world'", False),
        ("SELECT 1 FROM worlds", False),
        ("SELECT 1 FROM new_world", False),
    ],
)
def test_comments_and_strings_name_no_table(text: str, named: bool) -> None:
    assert statement(text).names_table("world") is named


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("select w1_0.id,w1_0.randomnumber from world w1_0 where w1_0.id=$1", False),
        ('SELECT "world".* FROM "world" WHERE "world"."id" IN ($1) ORDER BY "world"."id" ASC LIMIT $2', False),
        ('SELECT * FROM "world" "World" WHERE ("World"."id" in ( $1::integer )) /* in, or, any */', False),
        ('SELECT id AS "values" FROM world WHERE id = CAST($1 AS integer) FOR NO KEY UPDATE', False),
        ("SELECT id FROM world WHERE id IN ($1, $2)", True),
        ("SELECT id FROM world WHERE id IN ($1 /*, ... */)", True),
        ("SELECT id FROM world WHERE id IN (SELECT $1)", True),
        ("SELECT id FROM world WHERE id=ANY($1)", True),
        ("SELECT id FROM world WHERE id = $1 or id = $2", True),
        ("SELECT id FROM world WHERE $1 @> ARRAY[id]", True),
        ('SELECT id FROM world, "unnest"($1) AS i WHERE i = id', True),
        ("SELECT id FROM world, pg_catalog.json_array_elements_text ($1) AS i WHERE i::int = id", True),
    ],
)
def test_selects_of_several_ids_are_detected(text: str, takes: bool) -> None:
    assert statement(text).accepts_list == takes


@pytest.mark.parametrize(
    ("text", "takes"),
    [
        ("select f1_0.id,f1_0.message from fortune f1_0", True),
        ('SELECT "Fortune".* FROM "Fortune" WHERE (id > CAST($1 AS int)) ORDER BY "Fortune"."id" LIMIT $2', True),
        ("PREPARE all_of (int) AS SELECT message::varchar(2048) FROM fortune", True),
        ("TABLE fortune", True),
        ("SELECT xmin, id FROM fortune", False),
        ("SELECT md5(message) FROM fortune", False),
        ('SELECT pg_catalog."concat" ($1, message) FROM fortune', False),
        ("SELECT $1 || message FROM fortune", False),
        ("SELECT id, message AS m FROM fortune ORDER BY m", False),
        ("SELECT id, message FROM fortune ORDER BY 2", False),
    ],
)
def test_computed_columns_do_not_count(text: str, takes: bool) -> None:
    assert statement(text).returns_column("message") is takes


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("SHOW pg_stat_statements.track", True),
        ("SELECT * FROM pg_stat_statements_info", True),
        ("show compute_query_id", True),
        ("SELECT current_setting($1)", None),
        ("SELECT setting FROM pg_settings WHERE name = $1", None),
        ("SELECT extname FROM pg_catalog.pg_extension", None),
        ("SHOW ALL", None),
        ("DO $$ x $$", None),
        ("SELECT current_setting($1) AS cur,\n set_config($2, $3, $4) AS new", False),  # asyncpg
        ("SHOW TRANSACTION ISOLATION LEVEL", False),  # JDBC
        ("SELECT id, randomnumber FROM world WHERE id = $1", False),
    ],
)
def test_questions_about_counting_are_found(text: str, asks: bool | None) -> None:
    assert NormalisedStatement(text=text).asks_for_counting is asks
