"""The tables of the order service: seeded alike, as much as the role may do, and empty again after a restore."""

import logging

import psycopg
import pytest

from harness.runtime.database import connect
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.runtime.database.external import external

MADE = "INSERT INTO orders (customer_id, card, total) VALUES (1, '4111111111111111', 1) RETURNING id"
WITH_ITEM = "INSERT INTO order_item (order_id, item_id, quantity, price) SELECT id, 3, 1, 1 FROM orders"
LEFT = "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM order_item)"


def ask(connection: psycopg.Connection, query: str) -> tuple[object, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return tuple(row)


def test_customers_and_items_are_seeded_with_prices_of_a_hash(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address) as connection:
        assert ask(connection, "SELECT count(*), min(id), max(id) FROM customer") == (1000, 1, 1000)
        assert ask(connection, "SELECT name FROM customer WHERE id = 17") == ("Customer 17",)
        of_items = "SELECT count(*), min(price) >= 1.00, max(price) <= 500.99, count(DISTINCT price) > 900 FROM item"
        assert ask(connection, of_items) == (1000, True, True, True)
        assert ask(connection, "SELECT name, price::text FROM item WHERE id = 17") == ("Item 17", "232.18")


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


def test_a_copy_is_emptied_and_filled_anew_while_its_server_is_connected(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    seven = "SELECT count(*) FROM world WHERE randomnumber = 7"
    with postgres.own("orders-0") as mine, connect(mine.address) as connection:
        for _ in range(3):
            connection.execute(MADE, prepare=True)
        connection.execute("UPDATE world SET randomnumber = 7")
        assert ask(connection, seven) == (10_000,)
        mine.restore()
        assert ask(connection, seven) != (10_000,)
        assert ask(connection, LEFT) == (0, 0)
        assert ask(connection, MADE) == (1,)


def test_somebody_else_s_database_is_emptied_with_the_rights_of_the_role(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with connect(postgres.address) as connection:
        connection.execute(MADE)
        connection.execute(WITH_ITEM)
        with external("127.0.0.1", postgres.address.port):
            assert ask(connection, LEFT) == (0, 0)


def test_one_without_these_tables_is_told_and_serves_the_other_tests(
    postgres: EmbeddedDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.restore()
    with connect(postgres.address, admin=True) as admin:
        admin.execute("ALTER TABLE orders RENAME card TO number")
        admin.execute("INSERT INTO orders (customer_id, number, total) VALUES (1, '4', 1)")
        with caplog.at_level(logging.INFO, "tfb.database"), external("127.0.0.1", postgres.address.port):
            pass
        assert "toolset/database/orders.sql makes them" in caplog.text
        assert ask(admin, LEFT) == (1, 0)
    postgres.restore()
