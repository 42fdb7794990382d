"""An external PostgreSQL server (``--database-host``), and the placeholder for services without a database."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from harness.errors import StartError
from harness.runtime import NO_DATABASE, DatabaseAddress
from harness.runtime.database import connect, execute_script
from harness.runtime.database.table_sets import TABLE_SETS


class NoDatabase:
    """A placeholder for services that need no database or start a database themselves."""

    address = NO_DATABASE
    log: Path | None = None
    supports_copies = True

    def restore(self) -> None:
        """Do nothing, because there are no tables."""

    def meter(self) -> None:
        """Return None, because tfb starts no database processes that it could meter."""

    def crash_reason(self) -> None:
        """Return None, because tfb does not monitor the database."""

    @contextmanager
    def private_database(self, _name: str, *, empty: bool = False) -> "Iterator[NoDatabase]":
        """Yield this database, because there are no private databases."""
        yield self


class ExternalDatabase(NoDatabase):
    """An external database. tfb changes only rows, and the servers use the database sequentially."""

    supports_copies = False

    def __init__(self, address: DatabaseAddress) -> None:
        self.address = address

    def restore(self) -> None:
        """Restore the seeded rows. Skip a plugin's tables if they do not exist."""
        with connect(self.address) as connection:
            execute_script(connection, "reload.sql")
            for tables in TABLE_SETS:
                if connection.execute(tables.exists_query.encode()).fetchone() == (True,):
                    execute_script(connection, tables.reload_script)


@contextmanager
def external_database(host: str, port: int = 5432) -> Iterator[ExternalDatabase]:
    """Restore and yield an external database. If tables are missing, raise StartError with commands to create them."""
    database = ExternalDatabase(DatabaseAddress(host=host, port=port))
    try:
        database.restore()
        with connect(database.address) as connection:  # some TechEmpower folders use the capitalised names
            connection.execute('SELECT 1 FROM "World", "Fortune" LIMIT 1')
    except psycopg.Error as error:
        psql = f"psql -h {host} -p {port}"
        scripts = ("schema.sql", "seed.sql", *(tables.seed_script for tables in TABLE_SETS))
        files = " ".join(f"-f toolset/database/{script}" for script in scripts)
        raise StartError(
            f"PostgreSQL at {host}:{port} lacks the benchmark's tables ({str(error).strip()}). Create them with: "
            f"{psql} -f toolset/database/role.sql && {psql} -d hello_world {files}"
        ) from error
    yield database
