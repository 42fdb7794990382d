"""Servers that are up side by side share no table, no role and no view; what one leaves behind no other meets."""

import psycopg
import pytest

from harness.errors import StartError
from harness.runtime.database import connect, restore
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.runtime.database.state import read_server_state
from harness.verify.checks.statement_counts import MAX_STATEMENTS

LOOKS = (
    "SELECT count(*) FROM pg_stat_activity",
    "SELECT sum(numbackends) FROM pg_stat_database",
    "SELECT sum(seq_scan) FROM pg_stat_user_tables",
    "SELECT count(*) FROM pg_locks",
    "SELECT count(*) FROM pg_stat_statements",
    "SELECT pg_current_wal_lsn()",
    "SELECT pg_current_snapshot()",
    "SELECT txid_current()",
    "SELECT pg_xact_status('3')",
    "SELECT age(xmin) FROM world WHERE id = 1",
    "SELECT pg_relation_size('world')",
)


def test_a_server_cannot_enter_the_database_of_another(postgres: EmbeddedDatabase) -> None:
    """Though of their names the same is left where nothing but letters and digits may stand."""
    with postgres.private_database("x-1") as one, postgres.private_database("x_1") as two:
        with connect(one.address) as measured:
            assert measured.execute("UPDATE world SET randomnumber = 7 WHERE id = 1").rowcount == 1
        with pytest.raises(StartError), connect(one.address, name=two.address.name):
            pass


def test_a_copy_is_filled_anew_while_its_server_is_connected_even_in_a_transaction(postgres: EmbeddedDatabase) -> None:
    both = 'SELECT * FROM world JOIN "World" USING (id) ORDER BY id'
    change = 'UPDATE world SET randomnumber = 7; UPDATE "World" SET randomnumber = 8'
    order = "INSERT INTO orders (customer_id, card, total) VALUES (1, '4111111111111111', 1) RETURNING id"
    with postgres.private_database("one") as one, connect(one.address) as measured:
        seed = measured.execute(both).fetchall()
        measured.execute(change)
        assert measured.execute(order, prepare=True).fetchone() == (1,)
        one.restore()
        assert measured.execute(both).fetchall() == seed
        assert measured.execute(order).fetchone() == (1,)
        measured.execute(change)
        measured.execute("BEGIN; SELECT * FROM world")
        one.restore()
        measured.execute("COMMIT")
        assert measured.execute(both).fetchall() == seed


def test_a_service_has_an_empty_database_in_which_it_may_make_what_it_likes(postgres: EmbeddedDatabase) -> None:
    for _ in range(2):  # what the one before has made is gone
        with postgres.private_database("shop", empty=True) as own, connect(own.address) as service:
            tables = service.execute("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'")
            assert tables.fetchone() == (0,)
            for statement in ("CREATE EXTENSION pgcrypto", "CREATE TABLE world (id int)", "CREATE SCHEMA shop"):
                service.execute(statement.encode())


def test_what_a_server_changes_of_its_role_is_held_against_nobody_else(postgres: EmbeddedDatabase) -> None:
    with postgres.private_database("one") as one, postgres.private_database("two") as two:
        with connect(one.address, admin=True) as admin, connect(two.address, admin=True) as beside:
            before = read_server_state(admin, one.address.user), read_server_state(beside, two.address.user)
            with connect(one.address) as measured:
                measured.execute("ALTER ROLE CURRENT_USER SET enable_indexscan = off")
                measured.execute("ALTER ROLE CURRENT_USER PASSWORD 'mine'")
                measured.execute("SELECT pg_advisory_lock(1)")
                after = read_server_state(admin, one.address.user), read_server_state(beside, two.address.user)
        assert [name for name in before[0] if before[0][name] != after[0][name]] == [
            "settings of roles or databases (ALTER ROLE … SET)",
            "a role's password or rights",
            "advisory locks",
        ]
        assert before[1] == after[1]


@pytest.mark.parametrize("look", LOOKS)
def test_a_measured_role_does_not_see_who_else_is_there(look: str, postgres: EmbeddedDatabase) -> None:
    with connect(postgres.address) as measured, pytest.raises(psycopg.errors.InsufficientPrivilege):
        measured.execute(look.encode())


def test_of_a_database_that_is_gone_nothing_stays_counted(postgres: EmbeddedDatabase) -> None:
    gone = "SELECT count(*) FROM pg_stat_statements WHERE dbid NOT IN (SELECT oid FROM pg_database)"
    with postgres.private_database("one") as one, connect(one.address) as measured:
        measured.execute("SELECT 1")
    with postgres.private_database("two"), connect(postgres.address, admin=True) as admin:
        assert admin.execute(gone).fetchone() == (0,)
        assert admin.execute("SHOW pg_stat_statements.max").fetchone() == (str(MAX_STATEMENTS),)


def test_what_a_measured_role_can_change_is_undone(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address) as measured:
        measured.execute("ALTER ROLE benchmarkdbuser SET search_path = 'nowhere'")
        measured.execute("ALTER ROLE benchmarkdbuser PASSWORD 'mine'")
    postgres.restore()
    with connect(postgres.address, admin=True) as admin:
        assert (
            read_server_state(admin, "benchmarkdbuser")["settings of roles or databases (ALTER ROLE … SET)"] == "none"
        )
    with connect(postgres.address) as measured:
        assert measured.execute("SELECT count(*) FROM world").fetchone() == (10_000,)


def test_a_folder_of_another_toolset_may_make_its_tables_anew_and_the_next_one_has_the_seed_s(
    postgres: EmbeddedDatabase,
) -> None:
    anew = (
        "DROP TABLE world",
        "CREATE TABLE world (id integer, randomnumber integer)",
        "CREATE TEMPORARY TABLE t (x text)",
    )
    postgres.restore()
    with connect(postgres.address) as measured, pytest.raises(psycopg.errors.InsufficientPrivilege):
        measured.execute(anew[0].encode())
    for _ in range(2):
        restore(postgres.address, owned=True)
        with connect(postgres.address) as measured:
            assert measured.execute("SELECT count(*) FROM world").fetchone() == (10_000,)
            for statement in anew:
                measured.execute(statement.encode())
    postgres.restore()
