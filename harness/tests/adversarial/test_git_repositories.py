"""Attack: a prepared repository makes git run programs or follow links."""

import os
import subprocess
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit, TfbError, UsageError
from harness.extras.claims.measure import _changed
from harness.extras.gate.sides import copy_side, divergence_notes
from harness.host.git import Repository
from harness.tests.doubles.repositories import MALLORY, blob, git, give, let_others_enter, repository, tree, witness

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can create files of another account")
HOSTILE = (  # each setting names a program; {spy} creates a file when it runs
    "core.fsmonitor={spy}",
    "core.hooksPath={hooks}",
    "core.sshCommand={spy}",
    "core.pager={spy}",
    "core.editor={spy}",
    "core.askPass={spy}",
    "core.alternateRefsCommand={spy}",
    "core.gitProxy={spy}",
    "credential.helper={spy}",
    "diff.external={spy}",
    "diff.spy.textconv={spy}",
    "diff.spy.command={spy}",
    "gpg.program={spy}",
    "log.showSignature=true",
    "pager.status={spy}",
    "sequence.editor={spy}",
    "uploadpack.packObjectsHook={spy}",
    "alias.status=!{spy}",
    "alias.ls-files=!{spy}",
    "filter.spy.clean={spy}",
    "filter.spy.smudge={spy}",
    "filter.spy.process={spy}",
    "filter.spy.required=true",
    "filter.a.b c.clean={spy}",
    "filter.lfs.smudge={spy}",
    "filter.lfs.process={spy}",
    "merge.spy.driver={spy}",
)
ATTRIBUTES = "* filter=spy diff=spy merge=spy\nb filter=lfs\nc filter=a.b\\ c\n"


def hostile(folder: Path) -> tuple[Path, Path]:
    """Return a repository whose git settings and hooks run a program, and the file that the program creates."""
    spy, ran = witness(folder)
    shop = repository(folder / "shop", a="1", b="2", c="3")
    hooks = shop / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "post-checkout", "reference-transaction", "pre-commit", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\n{spy} < /dev/null\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    (shop / ".gitattributes").write_text(ATTRIBUTES, encoding="utf-8")
    git(shop, "add", ".gitattributes")
    git(shop, "commit", "-q", "-m", "second")
    for setting in HOSTILE:
        key, _, value = setting.format(spy=spy, hooks=hooks).partition("=")
        git(shop, "config", key, value)
    for name in ("a", "b", "c"):
        (shop / name).write_text("changed", encoding="utf-8")
    ran.unlink(missing_ok=True)
    return shop, ran


def test_no_program_of_a_repository_runs(tmp_path: Path) -> None:
    shop, ran = hostile(tmp_path)
    notes: list[str] = []
    copy_side(shop, None, tmp_path / "head", notes)
    copy_side(shop, "HEAD~1", tmp_path / "base", notes)
    divergence_notes(shop, "HEAD~1", None)
    assert not ran.exists(), ran.read_text()
    assert (tmp_path / "base" / "a").read_text() == "1"
    assert (tmp_path / "head" / "a").read_text() == "changed"
    assert any("uncommitted files: a, b, c" in note for note in notes)


def test_the_trap_of_the_test_above_works(tmp_path: Path) -> None:
    shop, ran = hostile(tmp_path)
    status = ["git", "-c", "safe.directory=*", "-C", str(shop), "status"]
    subprocess.run(status, check=False, capture_output=True, timeout=30)
    assert ran.exists()


@as_root
def test_root_runs_git_as_the_repository_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_others_enter(tmp_path)
    shop = repository(tmp_path / "shop")
    give(shop, MALLORY)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    real = subprocess.check_output(["which", "git"], text=True).strip()
    (bin_folder / "git").write_text(f'#!/bin/sh\necho "$(id -u) $*" >> "{tmp_path}/as"\nexec {real} "$@"\n')
    (bin_folder / "git").chmod(0o755)
    (tmp_path / "as").touch()
    (tmp_path / "as").chmod(0o666)
    monkeypatch.setenv("PATH", f"{bin_folder}:{os.environ['PATH']}")
    copy_side(shop, "HEAD", tmp_path / "base", [])
    copy_side(shop, None, tmp_path / "head", [])
    commands = (tmp_path / "as").read_text().splitlines()
    in_shop = [line for line in commands if f"-C {shop}" in line]
    assert {line.split()[0] for line in in_shop} == {str(MALLORY)}
    # tfb's own account runs git only in the sides. Their .git folders lack the repository's settings.
    sides = (f"-C {tmp_path / 'base'} ", f"-C {tmp_path / 'head'} ")
    assert all(any(side in line for side in sides) for line in commands if line not in in_shop)


@as_root
def test_a_repository_above_another_owners_folder_is_refused(tmp_path: Path) -> None:
    outer = repository(tmp_path / "outer")
    (outer / "mine").mkdir()
    (outer / "mine" / "tfb.toml").write_text((outer / "tfb.toml").read_text())
    give(outer / ".git", MALLORY)
    with pytest.raises(UsageError, match="belongs to uid"):
        Repository.containing(outer / "mine")


@pytest.mark.parametrize(
    "revision",
    ["--output=F", "-x", "--all", "--help", "-", "HEAD:tfb.toml", "", "a\nb", "--upload-pack=touch F", "@{u}"],
)
def test_revisions_that_look_like_flags_are_refused(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = repository(tmp_path / "shop")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is not a commit"):
        copy_side(shop, revision, tmp_path / "side", [])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop"]


@pytest.mark.parametrize("revision", ["--output=F", "--remote=.", "-oF"])
def test_compare_with_a_commit_writes_no_file(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["compare", f"--base={revision}", "--test", "express", "--no-install", "--results", str(tmp_path / "r")]
    assert cli.main(asked) == Exit.USAGE
    assert "is not a commit" in capsys.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.name != "r"]


def test_commits_of_a_results_folder_are_no_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _changed(f"--output={tmp_path}/F", "HEAD", "frameworks")
    assert _changed("HEAD", "HEAD", "frameworks") is False
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_EXEC_PATH"]
)
def test_git_variables_of_the_caller_do_not_count(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, other = repository(tmp_path / "shop", mine="1"), repository(tmp_path / "other", theirs="1")
    inside = {"GIT_WORK_TREE": "", "GIT_INDEX_FILE": ".git/index", "GIT_OBJECT_DIRECTORY": ".git/objects"}
    monkeypatch.setenv(name, str(other / inside.get(name, ".git")))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='false'")
    for target in ("HEAD", None):
        made = copy_side(shop, target, tmp_path / str(target), [])
        assert sorted(path.name for path in made.folder.iterdir()) == [".git", "mine", "tfb.toml"]


def test_a_work_tree_elsewhere_is_not_copied(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret")
    git(shop, "config", "core.worktree", str(tmp_path / "private"))
    made = copy_side(shop, None, tmp_path / "head", [])
    assert {path.name for path in made.folder.iterdir()} == {".git", "tfb.toml"}


def test_attributes_do_not_change_an_exported_file(tmp_path: Path) -> None:
    lines = "a export-subst\nb export-ignore\nc text eol=crlf ident\nd working-tree-encoding=UTF-16\n"
    files = {"a": "$Format:%H$", "b": "1", "c": "$Id$\n", "d": "d"}
    shop = repository(tmp_path / "shop", **files)
    (shop / ".gitattributes").write_text(lines)
    git(shop, "add", ".gitattributes")
    git(shop, "commit", "-q", "-m", "attributes")
    made = copy_side(shop, "HEAD", tmp_path / "base", [])
    assert {name: (made.folder / name).read_bytes().decode() for name in files} == files


@pytest.mark.parametrize("content", ["version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "\0GITCRYPT\0x"])
def test_pointers_of_filters_are_named(content: str, tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", model=content)
    notes: list[str] = []
    copy_side(shop, "HEAD", tmp_path / "base", notes)
    assert "model" in notes[0]
    assert "Git LFS" in notes[0]


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", "."])
def test_a_tree_with_names_that_leave_is_refused(name: str, tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    inner = git(shop, "mktree", text=f"100644 blob {blob(shop, 'x')}\tescaped\n")
    raw = name.encode() + b"\0" + bytes.fromhex(inner)
    completed = subprocess.run(  # git mktree refuses these names, but a hostile Git server can send them
        ["git", "-C", str(shop), "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        input=b"40000 " + raw,
        capture_output=True,
        check=True,
        timeout=30,
    )
    commit = git(shop, "commit-tree", completed.stdout.decode().strip(), "-m", "odd")
    with pytest.raises(UsageError):
        copy_side(shop, commit, tmp_path / "all" / "base", [])
    assert not (tmp_path / "all" / "escaped").exists()
    assert not (tmp_path / "escaped").exists()


def test_git_writes_no_file_through_a_link(tmp_path: Path) -> None:
    shop, outside = repository(tmp_path / "shop"), tmp_path / "outside"
    outside.mkdir()
    inner = git(shop, "mktree", text=f"100644 blob {blob(shop, 'x')}\tescaped\n")
    link = blob(shop, str(outside))
    raw = b"120000 d\0" + bytes.fromhex(link) + b"40000 d\0" + bytes.fromhex(inner)
    completed = subprocess.run(
        ["git", "-C", str(shop), "hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
        input=raw,
        capture_output=True,
        check=True,
        timeout=30,
    )
    commit = git(shop, "commit-tree", completed.stdout.decode().strip(), "-m", "odd")
    with pytest.raises(TfbError):
        copy_side(shop, commit, tmp_path / "base", [])
    assert not [*outside.iterdir()]


def test_linked_service_folders_are_refused(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    (shop / "api").mkdir()
    commit = tree(shop, f"120000 blob {blob(shop, '/etc')}\tapi")
    with pytest.raises(UsageError, match="has no folder api"):
        copy_side(shop / "api", commit, tmp_path / "base", [])


def test_a_partial_clone_fetches_nothing(tmp_path: Path) -> None:
    spy, ran = witness(tmp_path)
    source = repository(tmp_path / "source", big="x" * 1000)
    git(source, "config", "uploadpack.allowFilter", "true")
    clone = ["clone", "-q", "--no-checkout", "--filter=blob:none", f"file://{source}", str(tmp_path / "clone")]
    git(tmp_path, *clone)
    for key, value in (("uploadpack", str(spy)), ("url", f"ssh://x/{source}"), ("vcs", "spy"), ("proxy", str(spy))):
        git(tmp_path / "clone", "config", f"remote.origin.{key}", value)
    git(tmp_path / "clone", "config", "core.sshCommand", str(spy))
    with pytest.raises(UsageError, match="lacks"):
        copy_side(tmp_path / "clone", "HEAD", tmp_path / "base", [])
    assert not ran.exists()


def test_names_with_any_characters_are_copied_and_shown(tmp_path: Path) -> None:
    names = ["-x", "a b", "ä", "new\nline", "tab\there", '"quoted"', ":(top)", "->", "a -> b"]
    shop = repository(tmp_path / "shop")
    for name in names:
        (shop / name).write_text(name)
    notes: list[str] = []
    head = copy_side(shop, None, tmp_path / "head", notes)
    assert {path.name for path in head.folder.iterdir()} == {*names, ".git", "tfb.toml"}
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "names")
    base = copy_side(shop, "HEAD", tmp_path / "base", notes)
    assert {path.name for path in base.folder.iterdir()} == {*names, ".git", "tfb.toml"}


def test_git_is_not_started_from_relative_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = repository(tmp_path / "shop")
    spy, ran = witness(tmp_path)
    (shop / "git").write_text(spy.read_text())
    (shop / "git").chmod(0o755)
    monkeypatch.chdir(shop)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    copy_side(shop, "HEAD", tmp_path / "base", [])
    assert not ran.exists()


def test_filters_with_unusual_names_are_refused(tmp_path: Path) -> None:
    spy, ran = witness(tmp_path)
    shop = repository(tmp_path / "shop", __gitattributes="* filter=a=b\n")
    with (shop / ".git" / "config").open("a") as config:
        config.write(f'[filter "a=b"]\n\tclean = {spy}\n')
    (shop / "tfb.toml").touch()
    with pytest.raises(UsageError, match="'a=b'"):
        copy_side(shop, None, tmp_path / "head", [])
    assert not ran.exists()


@pytest.mark.parametrize("limit", ["MAX_FILE_BYTES", "MAX_COMMIT_BYTES"])
def test_oversized_commits_are_refused(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = repository(tmp_path / "shop", zeros="0" * 2000)
    monkeypatch.setattr(f"harness.host.git.{limit}", 1000)
    with pytest.raises(UsageError, match="GiB"):
        copy_side(shop, "HEAD", tmp_path / "base", [])
    assert not (tmp_path / "base" / "zeros").exists()
