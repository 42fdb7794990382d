"""Sides checked out with git: misleading file names and environment variables, submodules, unusual working trees."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cli import scans
from harness.cli.output import VerdictOutputs
from harness.errors import UsageError
from harness.extras.gate.cli import publish_result
from harness.extras.gate.judge import GateResult
from harness.extras.gate.sides import copy_side
from harness.tests.doubles.repositories import git, repository

LOCAL_VARIABLES = subprocess.check_output(["git", "rev-parse", "--local-env-vars"], text=True).split()
ALLOW_FILES = ("-c", "protocol.file.allow=always")


def names_in(folder: Path) -> set[str]:
    """Return the paths of all files below ``folder``, except those in ``.git``."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    return {name for name in names if not name.startswith(".git/")}


def both_sides(shop: Path, place: Path) -> tuple[set[str], set[str], list[str]]:
    """Copy HEAD and the working tree. Return the files of each copy, and the notes."""
    notes: list[str] = []
    sides = [copy_side(shop, target, place / str(target), notes) for target in ("HEAD", None)]
    base, head = (names_in(side.root) for side in sides)
    return base, head, notes


@pytest.mark.parametrize(
    "warning",
    [
        "warning: unable to access '/root/.config/git/attributes': Permission denied",
        "warning: ignoring broken ref refs/remotes/origin/HEAD\n100644 a",
        "hint: Using 'master' as the name\0tfb.toml\0",
        "x" * 200_000,
    ],
    ids=["access", "several lines", "NUL", "long"],
)
def test_warnings_of_git_are_no_file_names(warning: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = repository(tmp_path / "shop", a="1", b="2")
    (tmp_path / "warning").write_text(warning, encoding="utf-8")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncat "{tmp_path}/warning" >&2\nexec {shutil.which("git")} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    expected = {"a", "b", "tfb.toml"}
    assert both_sides(shop, tmp_path / "sides") == (expected, expected, [])
    monkeypatch.setattr(scans, "REPOSITORY", shop)
    assert {path.name for path in scans.list_files()} == expected


@pytest.mark.parametrize("name", LOCAL_VARIABLES)
def test_variables_of_a_hook_do_not_count(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, other = repository(tmp_path / "shop", mine="1"), repository(tmp_path / "other", theirs="1")
    values = {"GIT_WORK_TREE": "", "GIT_INDEX_FILE": ".git/index", "GIT_OBJECT_DIRECTORY": ".git/objects"}
    monkeypatch.setenv(name, "'core.bare'='true'" if "CONFIG" in name else str(other / values.get(name, ".git")))
    expected = {"mine", "tfb.toml"}
    assert both_sides(shop, tmp_path / "sides") == (expected, expected, [])
    monkeypatch.setattr(scans, "REPOSITORY", shop)
    assert {path.name for path in scans.list_files()} == expected


@pytest.mark.parametrize(
    "setting",
    [
        "core.quotePath=true",
        "column.ui=always",
        "color.ui=always",
        "color.status=always",
        "status.showUntrackedFiles=no",
        "status.branch=true",
        "status.short=true",
        "status.relativePaths=false",
        "diff.ignoreSubmodules=none",
        "core.bare=true",
        "core.fileMode=false",
    ],
)
def test_settings_of_a_repository_change_no_side(setting: str, tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", é="1")
    git(shop, "config", *setting.split("="))
    (shop / "ß").touch()
    base, head, notes = both_sides(shop, tmp_path / "sides")
    assert (base, head - base) == ({"é", "tfb.toml"}, {"ß"})
    assert notes == ["head is the working tree, with uncommitted files: ß"]


@pytest.mark.parametrize("name", [b"na\xefve", b"\xff\xfe", b"a\nb\xe9", b"\xed\xa0\x80"])
def test_names_that_are_not_utf8_reach_the_verdict(
    name: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = repository(tmp_path / "shop")
    (shop / os.fsdecode(name)).touch()
    _, head, notes = both_sides(shop, tmp_path / "sides")
    assert head == {"tfb.toml", os.fsdecode(name)}
    result = GateResult(
        base="a", head="b", threshold=0.05, verdict="same", requests=(), minutes=1.0, started_at=0.0, notes=notes
    )
    assert publish_result(result, VerdictOutputs(markdown=True)) == 0
    assert "uncommitted files" in capsys.readouterr().out


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """Create a service with a submodule ``lib`` that has a submodule ``deep``. Both are checked out."""
    deep, lib = repository(tmp_path / "deep", core="1"), repository(tmp_path / "lib", code="1")
    git(lib, *ALLOW_FILES, "submodule", "add", "-q", str(deep), "deep")
    git(lib, "commit", "-q", "-m", "with deep")
    shop = repository(tmp_path / "shop")
    git(shop, *ALLOW_FILES, "submodule", "add", "-q", str(lib), "lib")
    git(shop, *ALLOW_FILES, "submodule", "update", "-q", "--init", "--recursive")
    git(shop, "commit", "-q", "-m", "with lib")
    return shop


FILES = {"tfb.toml", ".gitmodules", "lib/code", "lib/tfb.toml", "lib/.gitmodules", "lib/deep/core", "lib/deep/tfb.toml"}


def test_submodules_are_part_of_both_sides(parent: Path, tmp_path: Path) -> None:
    assert both_sides(parent, tmp_path / "sides") == (FILES, FILES, [])


def test_changed_submodules_are_in_head_only(parent: Path, tmp_path: Path) -> None:
    (parent / "lib" / "code").write_text("2", encoding="utf-8")
    (parent / "lib" / "deep" / "new").touch()
    _, head, notes = both_sides(parent, tmp_path / "sides")
    assert head - FILES == {"lib/deep/new"}
    assert [(tmp_path / "sides" / side / "lib" / "code").read_text() for side in ("HEAD", "None")] == ["1", "2"]
    assert [note.rpartition(": ")[2] for note in notes] == ["lib/deep/new", "lib/code"]


def test_a_side_has_the_commit_that_it_names(parent: Path, tmp_path: Path) -> None:
    (parent / "lib" / "code").write_text("2", encoding="utf-8")
    git(parent / "lib", "commit", "-q", "-am", "newer")
    _, _, notes = both_sides(parent, tmp_path / "sides")
    assert [(tmp_path / "sides" / side / "lib" / "code").read_text() for side in ("HEAD", "None")] == ["1", "2"]
    assert [note.rpartition(": ")[2] for note in notes] == ["lib"]


def test_submodules_without_files_are_named(parent: Path, tmp_path: Path) -> None:
    git(parent / "lib", "submodule", "deinit", "-q", "--force", "deep")
    base, head, notes = both_sides(parent, tmp_path / "sides")
    assert base == head == {name for name in FILES if "deep" not in name}
    assert {note.partition(" is left out")[0] for note in notes} == {"submodule lib/deep"}
    assert all("git submodule update --init" in note for note in notes)


def test_a_commit_that_a_submodule_lacks_is_refused(parent: Path, tmp_path: Path) -> None:
    git(parent, "update-index", "--cacheinfo", f"160000,{'1' * 40},lib")
    git(parent, "commit", "-q", "-m", "unknown")
    with pytest.raises(UsageError, match=r"lib: this clone lacks files of commit 111111111111.*git fetch"):
        copy_side(parent, "HEAD", tmp_path / "base", [])


def test_an_embedded_repository_without_gitmodules_is_copied(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    repository(shop / "lib", code="1")
    git(shop, "add", "lib")
    git(shop, "commit", "-q", "-m", "embedded")
    base, head, notes = both_sides(shop, tmp_path / "sides")
    assert base == head == {"tfb.toml", "lib/code", "lib/tfb.toml"}
    assert notes == []


def test_a_submodule_behind_a_link_is_not_followed(tmp_path: Path) -> None:
    shop, private = repository(tmp_path / "shop"), repository(tmp_path / "private", key="secret")
    commit = git(private, "rev-parse", "HEAD")
    git(shop, "update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
    git(shop, "commit", "-q", "-m", "link")
    (shop / "lib").symlink_to(private)
    base, head, notes = both_sides(shop, tmp_path / "sides")
    assert base == head == {"tfb.toml"}
    assert any("lib is left out" in note for note in notes)


def test_untracked_repositories_are_named(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    repository(shop / "vendored", code="1")
    _, head, notes = both_sides(shop, tmp_path / "sides")
    assert head == {"tfb.toml"}
    assert notes[0] == "vendored/ is left out, because it is a separate repository"


def test_sparse_checkouts_are_refused(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", a="1")
    (shop / "docs").mkdir()
    (shop / "docs" / "page").touch()
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "docs")
    git(shop, "sparse-checkout", "set", "--cone", "lib")
    with pytest.raises(UsageError, match=r"sparse checkout, which lacks docs/page .*--head HEAD"):
        copy_side(shop, None, tmp_path / "head", [])
    assert "docs/page" in names_in(copy_side(shop, "HEAD", tmp_path / "base", []).root)


@pytest.mark.parametrize("kind", ["worktree", "separate"])
def test_repositories_stored_elsewhere_are_read(kind: str, tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", a="1")
    if kind == "worktree":
        git(shop, "worktree", "add", "-q", str(tmp_path / "linked"))
        shop = tmp_path / "linked"
    else:
        git(shop, "init", "-q", "--separate-git-dir", str(tmp_path / "store"))
    (shop / "new").touch()
    base, head, _ = both_sides(shop, tmp_path / "sides")
    assert (base, head - base) == ({"a", "tfb.toml"}, {"new"})
