"""A server's own database: seeded, counted apart, restored while somebody is connected, gone afterwards."""

import psycopg
import pytest

from harness.errors import StartError
from harness.servers.database import connect
from harness.servers.database.copies import connections_free, own
from harness.servers.database.embedded import EmbeddedDatabase

SEEDED = "SELECT sum(randomnumber), count(*) FROM world"


def ask(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return tuple(row)


def test_copies_are_seeded_apart_and_gone_afterwards(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    meter = postgres.meter()
    with own(postgres.address, "a-0", meter) as first, own(postgres.address, "b.c-0", meter) as second:
        assert (first.address.name, second.address.name) == ("hello_world_of_a_0", "hello_world_of_b_c_0")
        with connect(first.address) as one, connect(second.address) as other:
            seeded = ask(other, SEEDED)
            one.execute("UPDATE world SET randomnumber = 0 WHERE id <= 10")
            assert ask(one, SEEDED) != seeded
            assert ask(other, SEEDED) == seeded
    with pytest.raises(StartError), connect(first.address):
        pass


def test_tables_are_restored_under_a_connection_whose_statements_go_on(postgres: EmbeddedDatabase) -> None:
    with own(postgres.address, "a-0", postgres.meter()) as mine, connect(mine.address) as connection:
        seeded = ask(connection, SEEDED)
        for number in range(1, 6):  # as a pool does, with a prepared statement
            connection.execute("UPDATE world SET randomnumber = %s WHERE id = %s", (number, number), prepare=True)
        mine.restore()
        assert ask(connection, SEEDED) == seeded
        connection.execute("UPDATE world SET randomnumber = %s WHERE id = %s", (1, 1), prepare=True)
        with connect(mine.address, admin=True) as admin:
            assert ask(admin, "SELECT n_dead_tup <= 1 FROM pg_stat_user_tables WHERE relname = 'world'") == (True,)


def test_connections_that_are_taken_are_not_free(postgres: EmbeddedDatabase) -> None:
    before = connections_free(postgres.address)
    assert before is not None
    with connect(postgres.address), connect(postgres.address):
        assert connections_free(postgres.address) == before - 2
