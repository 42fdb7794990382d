"""What a build leaves behind, and what is said of a database that cannot be reached; without an engine."""

import psycopg
import pytest

from harness.errors import StartError
from harness.servers import DatabaseAddress
from harness.servers.compose import replaced
from harness.servers.database import unrestored

OLD = {"Id": "sha256:old", "RepoTags": ["tfb/express:latest"]}
NEW = {"Id": "sha256:new", "RepoTags": ["tfb/express:latest"]}


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (OLD, NEW, "sha256:old"),
        (None, NEW, None),
        (OLD, OLD, None),
        (OLD, None, None),  # the build failed: the image keeps its name
        ({**OLD, "RepoTags": ["tfb/express:latest", "mine:1"]}, NEW, None),
        ({**OLD, "RepoTags": None}, NEW, "sha256:old"),
    ],
)
def test_an_image_is_left_where_a_build_took_its_only_name(
    before: dict[str, object] | None, after: dict[str, object] | None, left: str | None
) -> None:
    assert replaced(before, after) == left


def test_a_database_that_cannot_be_reached_is_told_from_one_that_refuses() -> None:
    address = DatabaseAddress(host="172.17.0.2", port=5432)
    unreachable = unrestored(psycopg.OperationalError("connection timed out"), address)
    assert "172.17.0.2:5432 cannot be reached" in unreachable
    refused = StartError("refused")
    refused.__cause__ = psycopg.OperationalError("FATAL: password authentication failed")
    assert unrestored(refused, address) == "PostgreSQL could not restore the seeded state"
    assert unrestored(StartError("disk full"), address) == "PostgreSQL could not restore the seeded state"
