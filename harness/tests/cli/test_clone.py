"""A clone works with any git configuration, and its package metadata is complete."""

import subprocess
import tomllib
from pathlib import Path

from harness.paths import REPOSITORY


def test_files_keep_their_line_ends_with_autocrlf(tmp_path: Path) -> None:
    # .gitattributes must also cover files without an extension, and scripts that run in containers.
    names = ["tfb", ".ci/run", "docker/start-postgres", "requirements.lock", "toolset/database/schema.sql"]
    git = ["git", "-c", "safe.directory=*", "-c", "core.autocrlf=true", "-C", str(REPOSITORY)]
    subprocess.run([*git, "checkout-index", "-f", f"--prefix={tmp_path}/", *names], check=True)
    assert [name for name in names if b"\r" in (tmp_path / name).read_bytes()] == []


def test_the_changelog_describes_this_version() -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\n## [{version}] - 20" in (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
