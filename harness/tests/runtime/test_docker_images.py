"""What a build leaves behind, and what is said of a database that cannot be reached; without an engine."""

from pathlib import Path

import psycopg
import pytest

from harness.errors import StartError
from harness.runtime import DatabaseAddress, compose
from harness.runtime.compose import replaced
from harness.runtime.database import unrestored

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


SUM, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("image", "digest"),
    [
        ({"Id": OTHER, "RepoDigests": [f"node@{SUM}"]}, SUM),
        ({"Id": OTHER, "RepoDigests": []}, OTHER),  # made here
        ({"Id": OTHER, "RepoDigests": None}, OTHER),
        (None, SUM),  # fetched by the build for itself
    ],
)
def test_a_base_image_is_known_by_what_its_name_stood_for(
    image: dict[str, object] | None, digest: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compose, "inspect", lambda _kind, _name: image)
    log = tmp_path / "build.log"
    log.write_text(
        f"#4 [1/2] FROM docker.io/library/node:22@{OTHER}\n#4 [1/2] FROM docker.io/library/node:22@{SUM}\n"
        f"#5 [1/2] FROM docker.io/library/other-node:22@{OTHER} x\n#6 FROM docker.io/library/node:222@{OTHER}\n"
    )
    assert compose.digest("node:22", log) == digest


def test_a_base_image_that_nobody_knows_has_no_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compose, "inspect", lambda _kind, _name: None)
    assert compose.digest("node:22") == compose.digest("node:22", tmp_path / "none") == ""


def test_a_database_that_cannot_be_reached_is_told_from_one_that_refuses() -> None:
    address = DatabaseAddress(host="172.17.0.2", port=5432)
    unreachable = unrestored(psycopg.OperationalError("connection timed out"), address)
    assert "172.17.0.2:5432 cannot be reached" in unreachable
    refused = StartError("refused")
    refused.__cause__ = psycopg.OperationalError("FATAL: password authentication failed")
    assert unrestored(refused, address) == "PostgreSQL could not restore the seeded state"
    assert unrestored(StartError("disk full"), address) == "PostgreSQL could not restore the seeded state"
