"""Private databases isolate servers that run at the same time."""

import psycopg
import pytest

from harness.errors import StartError
from harness.runtime.database import connect, restore
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.verify.checks.after_load import read_server_state
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


def test_server_cannot_connect_to_database_of_another(postgres: EmbeddedDatabase) -> None:
    """The servers' names differ only in a special character, so careless database names would clash."""
    with postgres.private_database("x-1") as one, postgres.private_database("x_1") as two:
        with connect(one.address) as measured:
            assert measured.execute("UPDATE world SET randomnumber = 7 WHERE id = 1").rowcount == 1
        with pytest.raises(StartError), connect(one.address, name=two.address.name):
            pass


@pytest.mark.needs_extra("orders")
def test_copy_is_refilled_while_server_is_connected(postgres: EmbeddedDatabase) -> None:
    join = 'SELECT * FROM world JOIN "World" USING (id) ORDER BY id'
    change = 'UPDATE world SET randomnumber = 7; UPDATE "World" SET randomnumber = 8'
    order = "INSERT INTO orders (customer_id, card, total) VALUES (1, '4111111111111111', 1) RETURNING id"
    with postgres.private_database("one") as one, connect(one.address) as measured:
        seed = measured.execute(join).fetchall()
        measured.execute(change)
        assert measured.execute(order, prepare=True).fetchone() == (1,)
        one.restore()
        assert measured.execute(join).fetchall() == seed
        assert measured.execute(order).fetchone() == (1,)
        measured.execute(change)
        measured.execute("BEGIN; SELECT * FROM world")
        one.restore()
        measured.execute("COMMIT")
        assert measured.execute(join).fetchall() == seed


def test_service_may_create_tables_in_empty_database(postgres: EmbeddedDatabase) -> None:
    for _ in range(2):  # the second database lacks the first one's tables
        with postgres.private_database("shop", empty=True) as own, connect(own.address) as service:
            tables = service.execute("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'")
            assert tables.fetchone() == (0,)
            for statement in ("CREATE EXTENSION pgcrypto", "CREATE TABLE world (id int)", "CREATE SCHEMA shop"):
                service.execute(statement.encode())


def test_role_changes_affect_only_that_server(postgres: EmbeddedDatabase) -> None:
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
def test_measured_role_cannot_see_other_roles(look: str, postgres: EmbeddedDatabase) -> None:
    with connect(postgres.address) as measured, pytest.raises(psycopg.errors.InsufficientPrivilege):
        measured.execute(look.encode())


def test_statistics_of_dropped_databases_are_removed(postgres: EmbeddedDatabase) -> None:
    gone = "SELECT count(*) FROM pg_stat_statements WHERE dbid NOT IN (SELECT oid FROM pg_database)"
    with postgres.private_database("one") as one, connect(one.address) as measured:
        measured.execute("SELECT 1")
    with postgres.private_database("two"), connect(postgres.address, admin=True) as admin:
        assert admin.execute(gone).fetchone() == (0,)
        assert admin.execute("SHOW pg_stat_statements.max").fetchone() == (str(MAX_STATEMENTS),)


def test_changes_of_measured_role_are_undone(postgres: EmbeddedDatabase) -> None:
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


def test_techempower_folder_may_recreate_tables(
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
