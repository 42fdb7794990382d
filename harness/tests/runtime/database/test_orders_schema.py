"""The tables of the order service: as much as the role may do, and empty again after a restore."""

import psycopg
import pytest

from harness.runtime.database import connect
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.runtime.database.external import external_database

MADE = "INSERT INTO orders (customer_id, card, total) VALUES (1, '4111111111111111', 1) RETURNING id"
WITH_ITEM = "INSERT INTO order_item (order_id, item_id, quantity, price) SELECT id, 3, 1, 1 FROM orders"
LEFT = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM order_item)"


def ask(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return tuple(row)


def test_the_role_makes_and_changes_orders_but_neither_customers_nor_items(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address) as measured:
        assert ask(measured, MADE) == (1,)
        measured.execute(WITH_ITEM)
        measured.execute("UPDATE orders SET total = 2")
        measured.execute("DELETE FROM orders")
        assert ask(measured, LEFT) == (0, 0)
        for statement in ("UPDATE item SET price = 1", "DELETE FROM customer", "SELECT setval('orders_id_seq', 7)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                measured.execute(statement.encode())


def test_a_restore_leaves_no_order_and_begins_with_the_first_id(postgres: EmbeddedDatabase) -> None:
    with connect(postgres.address) as connection:
        connection.execute(MADE)
    postgres.restore()
    with connect(postgres.address) as connection:
        assert ask(connection, LEFT) == (0, 0)
        assert ask(connection, MADE) == (1,)


def test_somebody_else_s_database_is_emptied_with_the_rights_of_the_role(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address) as connection:
        connection.execute(MADE)
        connection.execute(WITH_ITEM)
        with external_database("127.0.0.1", postgres.address.port):
            assert ask(connection, LEFT) == (0, 0)


def test_one_with_other_tables_of_these_names_keeps_them(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address, admin=True) as admin:
        admin.execute("ALTER TABLE orders RENAME card TO number")
        admin.execute("INSERT INTO orders (customer_id, number, total) VALUES (1, '4', 1)")
        with external_database("127.0.0.1", postgres.address.port):
            assert ask(admin, LEFT) == (1, 0)
    postgres.restore()
