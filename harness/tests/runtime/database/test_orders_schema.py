"""Tests for the order service's tables: the role's rights, and the restored state."""

import psycopg
import pytest

from harness.runtime.database import connect
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.runtime.database.external import external_database

pytestmark = pytest.mark.needs_extra("orders")
MADE = "INSERT INTO orders (customer_id, card, total) VALUES (1, '4111111111111111', 1) RETURNING id"
WITH_ITEM = "INSERT INTO order_item (order_id, item_id, quantity, price) SELECT id, 3, 1, 1 FROM orders"
LEFT = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM order_item)"


def ask(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return tuple(row)


def test_role_may_change_orders_only(postgres: EmbeddedDatabase) -> None:
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


def test_restore_deletes_orders_and_resets_ids(postgres: EmbeddedDatabase) -> None:
    with connect(postgres.address) as connection:
        connection.execute(MADE)
    postgres.restore()
    with connect(postgres.address) as connection:
        assert ask(connection, LEFT) == (0, 0)
        assert ask(connection, MADE) == (1,)


def test_external_orders_are_deleted_with_the_role(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address) as connection:
        connection.execute(MADE)
        connection.execute(WITH_ITEM)
        with external_database("127.0.0.1", postgres.address.port):
            assert ask(connection, LEFT) == (0, 0)


def test_external_tables_with_other_columns_remain(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address, admin=True) as admin:
        admin.execute("ALTER TABLE orders RENAME card TO number")
        admin.execute("INSERT INTO orders (customer_id, number, total) VALUES (1, '4', 1)")
        with external_database("127.0.0.1", postgres.address.port):
            assert ask(admin, LEFT) == (1, 0)
    postgres.restore()
