"""Reads and changes the order tables directly in the database, and delays the server's commits."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from harness.extras.orders.entities import Order, OrderItem, OrdersById, Prices
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks.statement_counts import StatementSnapshot, find_counting_obstacle, take_snapshot

# Advisory lock keys for writes to the tables orders and order_item. tfb can delay commits to each table separately.
ORDERS, ITEMS = 1, 2
KEY = 0x746662  # arbitrary first key of tfb's advisory locks
SETTLE_SECONDS, LOOK_SECONDS = 15.0, 0.1  # maximum wait until the server is idle, and interval between queries
ORDERS_QUERY = """
    SELECT o.id, o.customer_id, o.card, o.total, i.item_id, i.quantity, i.price
    FROM orders AS o LEFT JOIN order_item AS i ON i.order_id = o.id WHERE o.id > %s"""
# Statements that create a deferred trigger, which runs at commit. The commit waits while tfb holds the advisory lock.
HOLD = (
    "CREATE FUNCTION tfb_hold() RETURNS trigger LANGUAGE plpgsql AS "
    f"'BEGIN PERFORM pg_advisory_xact_lock_shared({KEY}, TG_ARGV[0]::integer); RETURN NULL; END'",
    *(
        f"CREATE CONSTRAINT TRIGGER tfb_hold AFTER INSERT OR UPDATE OR DELETE ON {table} "
        f"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tfb_hold({part})"
        for table, part in (("orders", ORDERS), ("order_item", ITEMS))
    ),
)
RELEASE_COMMITS = "DROP FUNCTION IF EXISTS tfb_hold() CASCADE"
# Query for the number of the server's active sessions, and for values that almost every write changes.
ACTIVE_SESSIONS_QUERY = """
    SELECT (SELECT count(*) FROM pg_stat_activity
            WHERE usename = %s AND datname = current_database() AND pid <> pg_backend_pid()
            AND state IN ('active', 'idle in transaction')),
           (SELECT count(*) FROM orders), (SELECT max(id) FROM orders), (SELECT count(*) FROM order_item)"""


class OrderTables:
    """tfb's connection to the orders database."""

    def __init__(self, connection: psycopg.Connection, database: DatabaseAddress) -> None:
        self._connection = connection
        self._database = database
        self.above = 0  # ``orders`` omits orders with ids up to this value
        self.admin = database.admin_user is not None

    def ignore_old(self) -> None:
        """Read only the newest orders from now on, because a load creates too many orders to read them all."""
        # Still read 200 orders, which is more than a list can contain.
        query = "SELECT coalesce(min(id), 1) - 1 FROM (SELECT id FROM orders ORDER BY id DESC LIMIT 200) AS newest"
        (self.above,) = self._connection.execute(query).fetchone() or (0,)

    def orders(self) -> OrdersById:
        """Return the orders with their items, read in a consistent snapshot."""
        orders: dict[int, Order] = {}
        lines: dict[int, dict[int, OrderItem]] = {}
        for number, customer, card, total, item, quantity, price in self._connection.execute(
            ORDERS_QUERY, (self.above,)
        ):
            order_lines = lines.setdefault(number, {})
            orders[number] = Order(customer=customer, card=card, total=total, lines=order_lines)
            if item is not None:
                order_lines[item] = OrderItem(quantity=quantity, price=price)
        return orders

    def empty(self) -> None:
        """Delete all orders. As administrator, also restart the ids and change all prices.

        The new prices reveal whether a server caches prices.
        """
        statements = (
            "TRUNCATE orders, order_item RESTART IDENTITY",
            "UPDATE item SET price = price + 0.01",
            "VACUUM item",
        )
        for statement in statements if self.admin else ("DELETE FROM orders",):
            self._connection.execute(statement.encode())

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait at most ``seconds`` until all of the server's sessions are idle and the tables stop changing.

        After an overload, the server still processes requests that the generator has abandoned. These requests must not
        change the tables during the next load. If the server is still busy at the time limit, later checks report the
        effects.
        """
        deadline = time.monotonic() + seconds
        previous_state: object = None
        while time.monotonic() < deadline:
            state = self._connection.execute(ACTIVE_SESSIONS_QUERY, (self._database.user,)).fetchone()
            if state is not None and state[0] == 0 and state == previous_state:
                return
            previous_state = state
            time.sleep(LOOK_SECONDS)

    def statements(self) -> StatementSnapshot | None:
        """Return PostgreSQL's statement counts so far, or None if PostgreSQL does not count statements."""
        return take_snapshot(self._connection) if self.admin and not find_counting_obstacle(self._connection) else None

    def prices(self) -> Prices:
        """Return the prices of all items by item id."""
        return dict(self._connection.execute("SELECT id, price FROM item").fetchall())

    @contextmanager
    def changed_price(self, item: int) -> Iterator[None]:
        """Change an item's price while the context is active. Requires an administrator."""
        change = "UPDATE item SET price = price + %s WHERE id = %s"
        self._connection.execute(change, ("1.11", item))
        try:
            yield
        finally:
            self._connection.execute(change, ("-1.11", item))

    def change(self, order: int, card: str, item: int, quantity: int) -> None:
        """Change an order's card and total, and the quantity of an item, directly in the database."""
        with self._connection.transaction():
            self._connection.execute(
                "UPDATE order_item SET quantity = %s WHERE order_id = %s AND item_id = %s", (quantity, order, item)
            )
            self._connection.execute(
                "UPDATE orders SET card = %s, total = (SELECT sum(quantity * price) FROM order_item "
                "WHERE order_id = orders.id) WHERE id = %s",
                (card, order),
            )

    def delete(self, order: int) -> None:
        """Delete an order with all items, directly in the database."""
        self._connection.execute("DELETE FROM orders WHERE id = %s", (order,))

    @contextmanager
    def commits_held(self) -> Iterator[Callable[[int], bool]]:
        """Delay commits of transactions that write orders or items while the context is active.

        Yield a function that permits the commits of ``ORDERS`` or ``ITEMS``. Without the administrator's role, the
        function does nothing and returns False.
        """
        with connect(self._database, admin=self.admin) as connection:
            connection.execute("SET lock_timeout = '5s'")
            if not self.admin:
                with connection.transaction():
                    connection.execute("LOCK TABLE orders, order_item IN SHARE MODE")
                    yield lambda _: False
                return

            def release(part: int) -> bool:
                connection.execute("SELECT pg_advisory_unlock(%s, %s)", (KEY, part))
                return True

            for part in (ORDERS, ITEMS):
                connection.execute("SELECT pg_advisory_lock(%s, %s)", (KEY, part))
            try:
                for statement in (RELEASE_COMMITS, *HOLD):
                    connection.execute(statement.encode())
                yield release
            finally:
                connection.execute("SELECT pg_advisory_unlock_all()")
                connection.execute(RELEASE_COMMITS.encode())


@contextmanager
def order_tables(database: DatabaseAddress) -> Iterator[OrderTables]:
    """Connect to the tables, as administrator if possible, because the server's role may have different settings."""
    with connect(database, admin=database.admin_user is not None) as connection:
        yield OrderTables(connection, database)
