"""What a server can leave behind in the database is named, and the next replicate does not meet it."""

import psycopg
import pytest

from harness.errors import StartError
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect, restore
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.runtime.database.state import read_state


def test_what_a_measured_role_can_change_is_undone(postgres: EmbeddedDatabase) -> None:
    """That it is seen: test_copies."""
    postgres.restore()
    with connect(postgres.address) as measured:
        measured.execute("ALTER ROLE benchmarkdbuser SET search_path = 'nowhere'")
        measured.execute("ALTER ROLE benchmarkdbuser PASSWORD 'mine'")
    postgres.restore()
    with connect(postgres.address, admin=True) as admin:
        assert read_state(admin, "benchmarkdbuser")["settings of roles or databases (ALTER ROLE … SET)"] == "none"
    with connect(postgres.address) as measured:
        assert measured.execute("SELECT count(*) FROM world").fetchone() == (10_000,)


def test_nobody_is_administrator_without_the_password_of_the_run(postgres: EmbeddedDatabase) -> None:
    address = postgres.address
    for password in ("", "tfb_admin", "benchmarkdbpass"):
        guess = DatabaseAddress(
            host=address.host, port=address.port, admin_user=address.admin_user, admin_password=password
        )
        with pytest.raises(StartError), connect(guess, admin=True):
            pass


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
