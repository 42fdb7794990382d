"""An external PostgreSQL (``--database-host``), or no database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from harness.errors import StartError
from harness.runtime import NO_DATABASE, DatabaseAddress
from harness.runtime.database import connect, execute_script

# Returns whether the tables match toolset/database/orders.sql. tfb must not delete orders of other applications.
HOLDS_ORDERS = b"""
    SELECT count(*) = 7 FROM information_schema.columns WHERE table_schema = 'public' AND (table_name, column_name) IN
        (('customer', 'name'), ('item', 'price'), ('orders', 'customer_id'), ('orders', 'card'), ('orders', 'total'),
         ('order_item', 'order_id'), ('order_item', 'item_id'))"""


class NoDatabase:
    """Takes the place of the database for services that need none or include one."""

    address = NO_DATABASE
    log: Path | None = None
    supports_copies = True

    def restore(self) -> None:
        """Do nothing."""

    def meter(self) -> None:
        """Return no meter, because there is no database."""

    def crash_reason(self) -> None:
        """Return None, because tfb does not monitor the database."""

    @contextmanager
    def private_database(self, _name: str, *, empty: bool = False) -> "Iterator[NoDatabase]":
        """Yield this object for each server."""
        yield self


class ExternalDatabase(NoDatabase):
    """An external database. tfb changes only rows, and servers use the database one at a time."""

    supports_copies = False

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address

    def restore(self) -> None:
        """Restore the seeded rows, and delete all orders."""
        with connect(self.address) as connection:
            execute_script(connection, "reload.sql")
            if connection.execute(HOLDS_ORDERS).fetchone() == (True,):
                execute_script(connection, "reload_orders.sql")


@contextmanager
def external_database(host: str, port: int = 5432) -> Iterator[ExternalDatabase]:
    """Check that the benchmark's tables exist. Otherwise raise StartError with the commands that create them."""
    database = ExternalDatabase(DatabaseAddress(host=host, port=port))
    try:
        database.restore()
        with connect(database.address) as connection:  # some TechEmpower folders quote the names
            connection.execute('SELECT 1 FROM "World", "Fortune" LIMIT 1')
    except psycopg.Error as error:
        psql = f"psql -h {host} -p {port}"
        raise StartError(
            f"PostgreSQL at {host}:{port} lacks the benchmark's tables ({str(error).strip()}). Create them with: "
            f"{psql} -f toolset/database/role.sql && "
            f"{psql} -d hello_world -f toolset/database/schema.sql -f toolset/database/seed.sql "
            "-f toolset/database/orders.sql"
        ) from error
    yield database
