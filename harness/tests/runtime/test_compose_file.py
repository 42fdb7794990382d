"""The file compose.yaml, which starts an implementation by hand."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection

import pytest

from harness.paths import REPOSITORY
from harness.runtime.database.embedded import free_port
from harness.studies import compose_file
from harness.tests.doubles.own import own_implementations


def test_each_implementation_can_be_selected() -> None:
    written = compose_file.FILE.read_text(encoding="utf-8").splitlines()
    expected = compose_file.render(own_implementations()).splitlines()
    assert [line for line in expected if line not in written] == [], "run: python -m harness.studies.compose_file"


@contextmanager
def started(test: str) -> Iterator[int]:
    """Start an implementation, and return the server's port. Remove everything at the end."""
    port = free_port()
    environment = {**os.environ, "TFB_TEST": test, "TFB_PORT": str(port), "COMPOSE_PROJECT_NAME": f"tfb-manual-{port}"}

    def compose(*arguments: str, seconds: float = 600.0) -> None:
        command = ["docker", "compose", *arguments]
        subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, timeout=seconds)

    try:
        compose("up", "--build", "--detach", "--wait")
        yield port
    finally:
        compose("down", "--volumes", "--timeout", "5", seconds=60.0)


@pytest.mark.docker
@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_compose_up_starts_database_and_server() -> None:
    with started("express") as port, closing(HTTPConnection("127.0.0.1", port, timeout=20.0)) as connection:
        connection.request("GET", "/db")
        assert json.load(connection.getresponse()).keys() == {"id", "randomNumber"}
