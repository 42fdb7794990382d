"""Responses of the core implementations while the database is down, a query fails or the upstream server fails."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator, Mapping

import pytest

from harness.plan.discovery import scan_folders
from harness.provisioning import toolchain
from harness.runtime import Server, readiness
from harness.runtime.database import connect
from harness.runtime.database.embedded import EmbeddedDatabase, embedded_database
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.upstream import FakeUpstream

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]

NAMES = ("es4x", "express", "resteasy", "vertx-web")
WITHOUT_DATABASE = ("/json", "/plaintext", "/delay")
WORLD = ("/db", "/queries?queries=2", "/updates?queries=2")
WITH_DATABASE = (*WORLD, "/fortunes")
PATIENCE_SECONDS = 30.0  # time limit for recovery; an idle machine needs at most two seconds
READY_SECONDS = 240.0  # time limit for the start of four servers on a busy machine


class StartedServers:
    """The core servers, a database and an upstream server.

    ``at_start`` holds statuses from before the database started.
    """

    def __init__(self, database: EmbeddedDatabase, upstream: FakeUpstream, servers: Mapping[str, Server]) -> None:
        self.database = database
        self.upstream = upstream
        self.servers = servers
        self.at_start = {name: self.statuses(name) for name in servers}

    def administer(self, statement: str) -> None:
        """Run an SQL statement as the database administrator."""
        with connect(self.database.address, admin=True) as admin:
            admin.execute(statement.encode())

    def status(self, name: str, path: str) -> int:
        """Send a GET request and return the response's status."""
        endpoint = self.servers[name].endpoint
        connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=PATIENCE_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().status

    def recovers(self, *names: str) -> None:
        """Wait until the named servers respond with 200 on every route, for at most PATIENCE_SECONDS."""
        for name in names:
            until = time.monotonic() + PATIENCE_SECONDS
            while (found := self.statuses(name)) != HEALTHY:
                assert time.monotonic() < until, (name, found)
                time.sleep(0.1)

    def statuses(self, name: str) -> dict[str, int]:
        """Return the status of every route of a server."""
        return {path: self.status(name, path) for path in (*WITHOUT_DATABASE, *WITH_DATABASE)}


HEALTHY = dict.fromkeys((*WITHOUT_DATABASE, *WITH_DATABASE), 200)
AWAY = {**HEALTHY, **dict.fromkeys(WITH_DATABASE, 503)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartedServers]:
    """Build the servers, start them while the database is down, and then start the database."""
    work = tmp_path_factory.mktemp("contract")
    postgres = toolchain.find_tool("postgres")
    if postgres is None:
        pytest.skip("no PostgreSQL server on this machine")
    runtime = LocalRuntime(work=work)
    implementations = {i.name: i for i in scan_folders().implementations if i.name in NAMES}
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(FakeUpstream())
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setattr(readiness, "READY_SECONDS", READY_SECONDS)
        environment.setenv("UPSTREAM_URL", f"{upstream.url}?of=1")
        environment.setenv("TFB_PASS_ENV", "UPSTREAM_URL")
        environment.setattr("harness.runtime.local.upstream_for", lambda _implementation: None)
        for name in NAMES:
            build = runtime.build(implementations[name], work / f"{name}.build.log")
            assert build.status == "ok", build.reason
        database = stack.enter_context(embedded_database(postgres, work / "database.log"))
        database.close()
        # While the servers start, the database's port accepts connections but nothing responds.
        with socket.create_server((database.address.host, database.address.port)):
            servers = {
                name: stack.enter_context(
                    runtime.start(
                        implementations[name], database.address, work / f"{name}.log", ready_path="/plaintext"
                    )
                )
                for name in NAMES
            }
            found = StartedServers(database, upstream, servers)
        database.start_postgres()
        yield found


@pytest.mark.parametrize("name", NAMES)
def test_starts_and_serves_without_a_database(place: StartedServers, name: str) -> None:
    assert place.at_start[name] == AWAY


def test_recovers_with_the_database_and_sends_503_without(place: StartedServers) -> None:
    place.recovers(*NAMES)
    place.database.close()
    try:
        during = {name: place.statuses(name) for name in NAMES}
    finally:
        place.database.start_postgres()  # the data is unchanged
    assert during == dict.fromkeys(NAMES, AWAY)
    place.recovers(*NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("broken", "mended"),
    [
        ("ALTER TABLE world RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO world"),
        ("REVOKE SELECT ON world FROM benchmarkdbuser", "GRANT SELECT ON world TO benchmarkdbuser"),
        ("UPDATE world SET id = id + 100000", "UPDATE world SET id = id - 100000"),  # requested rows are missing
    ],
)
def test_only_failed_queries_send_503(place: StartedServers, name: str, broken: str, mended: str) -> None:
    place.recovers(name)
    place.administer(broken)
    try:
        failing = place.statuses(name)
    finally:
        place.administer(mended)
    assert failing == {**HEALTHY, **dict.fromkeys(WORLD, 503)}
    place.recovers(name)


@pytest.mark.parametrize("name", NAMES)
def test_fan_out_says_when_its_upstream_fails(
    place: StartedServers, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place.upstream, "status", 500)
    assert place.status(name, "/fan-out?calls=5") in (502, 503)
    monkeypatch.setattr(place.upstream, "status", 200)
    assert place.status(name, "/fan-out?calls=5") == 200
