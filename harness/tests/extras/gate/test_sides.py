"""Sides of a comparison, copied from git revisions, folders and working trees."""

import socket
import subprocess
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.extras.gate.sides import copy_side, divergence_notes

TOML = '[service]\nstart = "./shop"\nfiles = [".env"]\n[[request]]\nname = "a"\npath = "/"\n'


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Create a service in a subfolder of a repository, with a file that git ignores."""
    folder = tmp_path / "all" / "shop"
    folder.mkdir(parents=True)
    files = {"tfb.toml": TOML, ".gitignore": ".env\n", ".env": "KEY=1\n", "../lib": ""}
    for name, text in {**files, "../.gitattributes": "lib export-ignore\n"}.items():
        (folder / name).write_text(text, encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "a shop"]):
        git(folder, *words)
    return folder


def git(folder: Path, *words: str) -> None:
    as_somebody = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "safe.directory=*"]
    subprocess.run(["git", *as_somebody, "-C", folder.parent, *words], check=True)


def test_side_has_repository_and_uncommitted_files(shop: Path, tmp_path: Path) -> None:
    (shop / "tfb-verdict.md").touch()  # a shell creates this file if the command's output is redirected to it
    notes: list[str] = []
    for target in ("HEAD", None):
        made = copy_side(shop, target, tmp_path / str(target), notes)
        assert (made.folder / ".env").read_text(encoding="utf-8") == "KEY=1\n"
        assert (made.folder / ".." / "lib").is_file()
    assert notes == []
    (shop / "new.py").touch()
    (shop.parent / ".gitmodules").touch()
    copy_side(shop, None, tmp_path / "again", notes)
    assert ["submodules" in notes[0], "shop/new.py" in notes[1]] == [True, True]
    (shop / ".env").unlink()
    # The folder contains a tfb.toml.
    kept = copy_side(shop, f"dir:{tmp_path / 'again' / 'shop'}", tmp_path / "its-own", notes)
    assert (kept.folder / ".env").is_file()
    with pytest.raises(UsageError, match=r"service\.files: .*\.env cannot be copied"):
        copy_side(shop, "HEAD", tmp_path / "lacking", notes)


def test_commits_of_base_that_head_lacks_are_noted(shop: Path) -> None:
    git(shop, "branch", "head")
    assert divergence_notes(shop, "HEAD", None) == divergence_notes(shop, "HEAD", "head") == []
    git(shop, "commit", "-q", "--allow-empty", "-m", "a quicker shop")
    assert divergence_notes(shop, "head", None) == divergence_notes(shop, f"dir:{shop}", "head") == []
    (note,) = divergence_notes(shop, "HEAD", "head")
    assert "--base" in note
    assert divergence_notes(shop, note.partition("--base ")[2].split()[0], "head") == []


def test_base_without_tfb_toml_uses_that_of_head(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    notes: list[str] = []
    head = copy_side(shop, None, tmp_path / "head", notes).file
    base = copy_side(shop, f"dir:{tmp_path / 'old'}", tmp_path / "base", notes, head)
    assert [base.file, (base.folder / ".env").is_file(), notes] == [
        head,
        True,
        ["base has no tfb.toml: head's is used for both"],
    ]


@pytest.mark.parametrize("file", [False, True])
def test_a_load_is_put_on_nobody_elses_address(shop: Path, tmp_path: Path, *, file: bool) -> None:
    url = "http://93.184.216.34"
    (shop / "tfb.toml").write_text(TOML.replace('start = "./shop"', f'url = "{url}"'), encoding="utf-8")
    with pytest.raises(UsageError, match="public address"):
        copy_side(shop, None if file else url, tmp_path / "side", [])


def test_what_cannot_be_a_side_is_said(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no TLS"):
        copy_side(shop, "https://localhost", tmp_path / "a", [])
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(shop / "s"))
        with pytest.raises(UsageError, match="shop/s cannot be copied"):
            copy_side(shop, f"dir:{shop}", tmp_path / "b", [])
