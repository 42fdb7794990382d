"""A PostgreSQL that somebody else runs (``--database-host``), its rows brought back to the seed; or none at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from harness.errors import StartError
from harness.runtime import NO_DATABASE, DatabaseAddress
from harness.runtime.database import connect, execute_script

# Whether the tables are those of toolset/database/orders.sql: somebody else's orders are not taken out.
HOLDS_ORDERS = b"""
    SELECT count(*) = 7 FROM information_schema.columns WHERE table_schema = 'public' AND (table_name, column_name) IN
        (('customer', 'name'), ('item', 'price'), ('orders', 'customer_id'), ('orders', 'card'), ('orders', 'total'),
         ('order_item', 'order_id'), ('order_item', 'item_id'))"""


class NoDatabase:
    """For services that need none or bring their own: never down, never full."""

    address = NO_DATABASE
    log: Path | None = None
    supports_copies = True  # there is nothing to get into each other's way with

    def restore(self) -> None:
        """Nothing to do."""

    def meter(self) -> None:
        """Nothing that could be read from here."""

    def crash_reason(self) -> None:
        """It is not ours to look after."""

    @contextmanager
    def private_database(self, _name: str, *, empty: bool = False) -> "Iterator[NoDatabase]":
        """The same for every server."""
        yield self


class ExternalDatabase(NoDatabase):
    """Somebody else's: nothing but rows is changed in it, and servers use it one after another."""

    supports_copies = False

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address

    def restore(self) -> None:
        """Write the seeded numbers back, where they differ, and take the orders out."""
        with connect(self.address) as connection:
            execute_script(connection, "reload.sql")
            if connection.execute(HOLDS_ORDERS).fetchone() == (True,):
                execute_script(connection, "reload_orders.sql")


@contextmanager
def external_database(host: str, port: int = 5432) -> Iterator[ExternalDatabase]:
    """Check that the benchmark's tables are there; raises StartError that says how to make them."""
    database = ExternalDatabase(DatabaseAddress(host=host, port=port))
    try:
        database.restore()
        with connect(database.address) as connection:  # as quoted names spell them, some of TechEmpower's among these
            connection.execute('SELECT 1 FROM "World", "Fortune" LIMIT 1')
    except psycopg.Error as error:
        psql = f"psql -h {host} -p {port}"
        raise StartError(
            f"PostgreSQL at {host}:{port} does not hold the benchmark's tables ({str(error).strip()}); make them with: "
            f"{psql} -f toolset/database/role.sql && "
            f"{psql} -d hello_world -f toolset/database/schema.sql -f toolset/database/seed.sql "
            "-f toolset/database/orders.sql"
        ) from error
    yield database
