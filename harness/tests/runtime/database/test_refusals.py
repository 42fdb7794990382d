"""If a server ignores a database variable such as DBHOST, the message names this variable."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import StartError
from harness.runtime.database import connect
from harness.runtime.database.embedded import EmbeddedDatabase, free_port
from harness.runtime.database.refusals import RefusalWatch

DEFAULT_USER = {"user": "benchmarkdbuser", "password": "benchmarkdbpass"}


@pytest.mark.parametrize(
    ("fixed", "expected_texts"),
    [
        ({"name": "hello_world"}, ["queries database hello_world, but DBNAME is {name}"]),
        ({"name": "nowhere"}, ["queries database nowhere, but DBNAME is {name}"]),
        (DEFAULT_USER, ["connects as user benchmarkdbuser, but DBUSER is {user}"]),
        ({"user": "benchmarkdbuser"}, ["connects as user benchmarkdbuser, but DBUSER is {user}"]),
        ({"user": "postgres"}, ["connects as user postgres, but DBUSER is {user}"]),
        ({"password": "benchmarkdbpass"}, ["with a password that differs from DBPASS"]),
        ({"name": "hello_world", **DEFAULT_USER}, ["queries database hello_world", "connects as user benchmarkdbuser"]),
        ({"name": "a b", "user": "x y@z"}, ["but DBNAME is {name}", "but DBUSER is {user}"]),
        ({}, []),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_ignored_variable_is_named(
    postgres: EmbeddedDatabase, fixed: dict[str, Any], expected_texts: list[str], tmp_path: Path
) -> None:
    with postgres.private_database("mine") as own:
        watch = RefusalWatch.start(own.address, postgres.log)
        used = replace(own.address, **fixed)
        if fixed:
            with pytest.raises(StartError), connect(used):
                pass
        else:
            with connect(used) as connection:
                connection.execute("SELECT 1")
        mistakes = watch.find_mistakes(tmp_path / "none", expected=True)
    assert len(mistakes) == bool(expected_texts)
    for text in expected_texts:
        assert text.format(name=own.address.name, user=own.address.user) in mistakes[0]


def test_refusals_of_other_servers_are_ignored(postgres: EmbeddedDatabase, tmp_path: Path) -> None:
    with postgres.private_database("one") as one, postgres.private_database("two") as two:
        watch = RefusalWatch.start(one.address, postgres.log)
        with pytest.raises(StartError), connect(replace(two.address, name="hello_world")):
            pass
        with connect(one.address):
            assert watch.find_mistakes(tmp_path / "none", expected=True) == ()


@pytest.mark.parametrize(
    "server_message",
    [
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
        "Error: getaddrinfo ENOTFOUND tfb-database",
        "dial tcp: lookup tfb-database: no such host",
        "org.postgresql.util.PSQLException: Connection to localhost:5432 refused. Check that the hostname",
        'FATAL: password authentication failed for user "benchmarkdbuser"',
    ],
)
def test_missing_connection_is_reported_with_address(
    postgres: EmbeddedDatabase, server_message: str, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    log.write_text(f"starting\n{server_message}\nmore\n")
    with postgres.private_database("mine") as own:
        watch = RefusalWatch.start(own.address, postgres.log)
        (mistake,) = watch.find_mistakes(log)
        assert f"DBHOST=127.0.0.1, DBPORT={own.address.port}" in mistake
        assert server_message in mistake
        log.write_text("starting\n")
        assert watch.find_mistakes(log) == ()
        (mistake,) = watch.find_mistakes(log, expected=True)
        assert f"DBPORT={own.address.port}" in mistake


def test_shared_database_opens_after_last_copy(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    with postgres.private_database("one"):
        with postgres.private_database("two"):
            pass
        with pytest.raises(StartError), connect(postgres.address):
            pass
    with connect(postgres.address):
        pass
    with pytest.raises(StartError), connect(replace(postgres.address, port=free_port())):
        pass
