"""One PostgreSQL for the tests that need it, with statement counting; each test module finds the seed in it."""

import signal
from collections.abc import Iterator

import pytest

from harness import toolchain
from harness.database import connect
from harness.database.embedded import EmbeddedDatabase, embedded
from harness.runtime import DatabaseAddress


def pytest_configure() -> None:
    """SIGTERM ends the tests as Ctrl-C does: fixtures stop the servers that they started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedDatabase]:
    """The server."""
    tool = toolchain.find("postgres")
    if tool is None:
        pytest.skip("no PostgreSQL server on this machine")
    with embedded(tool, tmp_path_factory.mktemp("database") / "log") as running:
        with connect(running.address, admin=True) as admin:
            admin.execute("ALTER SYSTEM SET compute_query_id = on")
            admin.execute("SELECT pg_reload_conf()")
        yield running


@pytest.fixture(scope="module")
def database(postgres: EmbeddedDatabase) -> DatabaseAddress:
    """Its address, with the tables as seeded."""
    postgres.restore()
    return postgres.address
