"""A comparison's sides, copied from git revisions, folders and working trees."""

import socket
import subprocess
from collections.abc import Sequence
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
    (shop / "tfb-verdict.md").touch()  # exists if the shell redirects the command's output to it
    notes: list[str] = []
    for target in ("HEAD", None):
        made = copy_side(shop, target, tmp_path / str(target), notes)
        assert (made.folder / ".env").read_text(encoding="utf-8") == "KEY=1\n"
        assert (made.folder / ".." / "lib").is_file()
    assert notes == []
    (shop / "new.py").touch()
    copy_side(shop, None, tmp_path / "again", notes)
    assert notes == ["head is the working tree, with uncommitted files: shop/new.py"]
    (shop / ".env").unlink()
    # tfb copies declared files from a target folder that has a tfb.toml of its own.
    kept = copy_side(shop, f"dir:{tmp_path / 'again' / 'shop'}", tmp_path / "its-own", notes)
    assert (kept.folder / ".env").is_file()
    with pytest.raises(UsageError, match=r"service\.files: cannot copy .*\.env"):
        copy_side(shop, "HEAD", tmp_path / "lacking", notes)


def test_commits_of_base_that_head_lacks_are_noted(shop: Path) -> None:
    git(shop, "branch", "head")
    assert divergence_notes(shop, "HEAD", None) == divergence_notes(shop, "HEAD", "head") == []
    git(shop, "commit", "-q", "--allow-empty", "-m", "a quicker shop")
    assert divergence_notes(shop, "head", None) == divergence_notes(shop, f"dir:{shop}", "head") == []
    (note,) = divergence_notes(shop, "HEAD", "head")
    assert "--base" in note
    assert divergence_notes(shop, note.partition("--base ")[2].split()[0], "head") == []


def files_of_service(shop: Path, *names: str) -> None:
    text = TOML.replace('[".env"]', f"[{', '.join(map(repr, names))}]")
    (shop / "tfb.toml").write_text(text, encoding="utf-8")
    (shop / ".gitignore").write_text(".env\nconfig\ncerts\n", encoding="utf-8")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "files")


def test_folders_in_files_are_copied_whole(shop: Path, tmp_path: Path) -> None:
    for name in ("config/a", "config/deep/b", "certs/key", "config/.git/credentials"):
        (shop / name).parent.mkdir(parents=True, exist_ok=True)
        (shop / name).write_text(name, encoding="utf-8")
    (shop / "config" / "link").symlink_to("deep")
    (shop / "config" / "deep" / "run").touch(mode=0o700)
    files_of_service(shop, "config", "certs/", ".env")
    for target in ("HEAD", None, f"dir:{shop}"):
        side = copy_side(shop, target, tmp_path / str(target).replace("/", "-"), []).folder
        assert (side / "config" / "deep" / "b").read_text(encoding="utf-8") == "config/deep/b"
        assert (side / "config" / "link" / "b").is_file()
        assert (side / "config" / "deep" / "run").stat().st_mode & 0o111
        assert (side / "certs" / "key").is_file()
        assert not (side / "config" / ".git").exists()


def test_tracked_files_stay_with_their_side(shop: Path, tmp_path: Path) -> None:
    (shop / "config").mkdir()
    (shop / "config" / "tracked").write_text("old", encoding="utf-8")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "tracked")
    git(shop, "branch", "old")
    (shop / "config" / "tracked").write_text("new", encoding="utf-8")
    (shop / "config" / "only-head").write_text("new", encoding="utf-8")
    (shop / "config" / "ignored").write_text("copied", encoding="utf-8")
    (shop / ".gitignore").write_text("config/ignored\n.env\n", encoding="utf-8")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "newer")
    git(shop, "checkout", "-q", "old")
    (shop / "config" / "ignored").write_text("copied", encoding="utf-8")
    text = TOML.replace('[".env"]', '["config"]')
    (shop / "tfb.toml").write_text(text, encoding="utf-8")
    usual = copy_side(shop, None, tmp_path / "head", []).file
    git(shop, "rm", "-q", "--cached", "shop/tfb.toml")
    git(shop, "commit", "-q", "-m", "without a file")
    base = copy_side(shop, "HEAD", tmp_path / "base", [], usual).folder / "config"
    assert {path.name: path.read_text(encoding="utf-8") for path in base.iterdir()} == {
        "tracked": "old",
        "ignored": "copied",
    }


@pytest.mark.parametrize(
    ("name", "link", "expected"),
    [
        ("config", "/etc", "cannot copy"),
        ("../../outside", "", "cannot copy"),
        ("missing", "", "cannot copy .*missing: No such file"),
        (".git", "", "git's own files"),
    ],
)
def test_folders_elsewhere_are_refused(name: str, link: str, expected: str, shop: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").touch()
    if link:
        (shop / name).symlink_to(link)
    files_of_service(shop, name if name != ".git" else "../.git")
    with pytest.raises(UsageError, match=expected):
        copy_side(shop, "HEAD", tmp_path / "side", [])


def history(shop: Path, *steps: str) -> None:
    """Run git commands. The step ``commit NAME`` creates an empty commit."""
    for step in steps:
        words = step.split()
        git(shop, *(("commit", "-q", "--allow-empty", "-m", words[1]) if words[0] == "commit" else words))


BRANCHED = ("branch old", "checkout -q -b mine", "commit own", "checkout -q main", "commit theirs", "commit more")
MERGED = (*BRANCHED, "checkout -q mine", "merge -q --no-ff -m merged main")
MERGE_REF = ("checkout -q --detach main", "merge -q --no-ff -m merged mine")  # the merge that CI systems check out
ORIGIN, OF_MAIN = "update-ref refs/remotes/origin", "head contains 2 commits from origin/main"


@pytest.mark.parametrize(
    ("steps", "base", "note"),
    [
        pytest.param(MERGED, "old", "head merges", id="older base"),
        pytest.param((*MERGED, f"{ORIGIN}/main main", "branch -f main old"), "main", OF_MAIN, id="stale main"),
        pytest.param((*MERGED, f"{ORIGIN}/HEAD main"), "old", OF_MAIN.replace("main", "HEAD"), id="default branch"),
        pytest.param((*BRANCHED, *MERGE_REF), "old", "head merges", id="merge of a pull request"),
        pytest.param(
            (*BRANCHED, f"{ORIGIN}/main main", "checkout -q mine", "branch -f main old", "rebase -q origin/main"),
            "main", OF_MAIN, id="rebased",
        ),
        pytest.param(
            (*MERGED, "checkout -q -b other old", "commit colleague", "checkout -q mine", "merge -q -m two other"),
            "main", "head merges", id="another branch",
        ),
        pytest.param((*BRANCHED, *MERGE_REF), "HEAD^1", "", id="first parent"),
        pytest.param(MERGED, "main", "", id="current base"),
        pytest.param(("tag v1", *MERGED), "v1", "", id="release"),
        pytest.param(BRANCHED, "old", "", id="no merge"),
    ],
)  # fmt: skip
def test_merged_commits_of_others_are_noted(steps: Sequence[str], base: str, note: str, shop: Path) -> None:
    history(shop, "branch -m main", *steps)
    notes = divergence_notes(shop, base, None)
    assert [each.partition(note)[0] for each in notes] == ([""] if note else [])
    if "contains" in note:  # no note follows if base is the commit that the note suggests
        assert divergence_notes(shop, notes[0].rpartition(" ")[2], None) == []


def test_base_without_tfb_toml_uses_that_of_head(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    notes: list[str] = []
    head = copy_side(shop, None, tmp_path / "head", notes).file
    base = copy_side(shop, f"dir:{tmp_path / 'old'}", tmp_path / "base", notes, head)
    assert [base.file, (base.folder / ".env").is_file(), notes] == [
        head,
        True,
        ["base has no tfb.toml: head's file applies to both"],
    ]


@pytest.mark.parametrize("file", [False, True])
def test_a_load_is_put_on_nobody_elses_address(shop: Path, tmp_path: Path, *, file: bool) -> None:
    url = "http://93.184.216.34"
    (shop / "tfb.toml").write_text(TOML.replace('start = "./shop"', f'url = "{url}"'), encoding="utf-8")
    with pytest.raises(UsageError, match="public address"):
        copy_side(shop, None if file else url, tmp_path / "side", [])


def test_what_cannot_be_a_side_is_said(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="public address"):
        copy_side(shop, "https://93.184.216.34", tmp_path / "a", [])
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(shop / "s"))
        with pytest.raises(UsageError, match=r"cannot copy .*shop/s"):
            copy_side(shop, f"dir:{shop}", tmp_path / "b", [])
