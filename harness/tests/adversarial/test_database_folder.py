"""Another program that runs as PostgreSQL's account: it places links in the database's folder, which belongs to it."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import StartError
from harness.host import ownership
from harness.host.toolchain import Tool
from harness.runtime.database.embedded import EmbeddedDatabase

PRECIOUS = "root's own"
# In place of initdb: makes a cluster whose configuration is a link.
INITDB = """#!/bin/sh
mkdir "$2"
ln -s "{mine}" "$2/postgresql.conf"
ln -s "{mine}" "$2/pg_hba.conf"
"""
MOVED = """#!/bin/sh
ln -s "{folder}" "$2"
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every account may enter, with a file that nothing may change."""
    with tempfile.TemporaryDirectory(prefix="tfb-test-") as folder:
        Path(folder).chmod(0o755)
        mine = Path(folder, "mine")
        mine.write_text(PRECIOUS, encoding="utf-8")
        mine.chmod(0o600)
        yield Path(folder)


def begin(place: Path, initdb: str, *, link: str = "") -> None:
    for name, text in {"initdb": initdb, "postgres": "#!/bin/sh\nexit 1\n"}.items():
        program = place / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.format(mine=place / "mine", folder=place), encoding="utf-8")
        program.chmod(0o755)
    tool = Tool(kind="postgres", version=(15,), program=place / "bin" / "postgres")
    with ownership.scratch("postgres") as scratch:
        database = EmbeddedDatabase(tool, scratch, place / "log", None)
        if link:
            (scratch / link).symlink_to(place / "mine")
        with pytest.raises(StartError):
            database.begin()
        database.close()


def require_unchanged(place: Path) -> None:
    found = (place / "mine").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (os.geteuid(), 0o600)
    assert (place / "mine").read_text(encoding="utf-8") == PRECIOUS


def test_a_link_in_place_of_the_password_is_not_followed(place: Path) -> None:
    begin(place, INITDB, link="password")
    require_unchanged(place)


def test_a_configuration_that_is_a_link_is_not_written(place: Path) -> None:
    begin(place, INITDB)
    require_unchanged(place)


def test_a_cluster_that_is_a_link_is_not_entered(place: Path) -> None:
    begin(place, MOVED)
    assert not (place / "pg_hba.conf").exists()
