"""One PostgreSQL for the tests that need it, with statement counting; each test module finds the seed in it."""

from collections.abc import Iterator

import pytest

from harness.host import interruption, toolchain
from harness.servers import DatabaseAddress
from harness.servers.database import connect
from harness.servers.database.embedded import EmbeddedDatabase, embedded


def pytest_configure() -> None:
    """Any signal ends the tests once, and fixtures then stop the servers that they started.

    A terminal's Ctrl-C also reaches ``./tfb check``, which sends SIGTERM: a second interrupt would cut that off.
    """
    interruption.install(ask=lambda: None, kill=lambda: None)


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
