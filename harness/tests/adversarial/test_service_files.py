"""Attack: a tfb.toml names files outside the repository of the service."""

import os
import stat
from pathlib import Path

import pytest

from harness import cli
from harness.errors import ConfigError, Exit, TfbError, UsageError
from harness.extras.gate.cli import prepare
from harness.extras.gate.sides import copy_side
from harness.plan import service
from harness.records import confined
from harness.tests.doubles.repositories import git, repository

SERVICE = '[service]\n{service}\n[[request]]\nname = "a"\nmethod = "POST"\npath = "/"\n{request}\n'
KEYS = {  # key -> (lines of [service], lines of [[request]])
    "files": ('start = "x"\nfiles = ["{name}"]', ""),
    "dockerfile": ('dockerfile = "{name}"', ""),
    "compose": ('compose = "{name}"\nservice = "web"', ""),
    "body_file": ('start = "x"', 'body_file = "{name}"'),
    "csv": ('start = "x"', '[request.values]\nid = {{ csv = "{name}", column = "key" }}'),
    "json_schema": ('start = "x"', '[request.expect]\njson_schema = "{name}"'),
}


def toml(key: str, name: str) -> str:
    service, request = (lines.format(name=name) for lines in KEYS[key])
    return SERVICE.format(service=service, request=request)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Create a file outside the repository."""
    (tmp_path / "secret").write_text("key\n1\n")
    return tmp_path / "secret"


@pytest.mark.parametrize("way", ["absolute", "above", "far above", "link", "link of a folder", "links in turn"])
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("of_head", [True, False])
def test_no_key_reads_outside_the_repository(
    key: str, way: str, outside: Path, tmp_path: Path, *, of_head: bool
) -> None:
    names = {"absolute": str(outside), "above": "../secret", "far above": "a/../../secret", "link": "one"}
    name = names.get(way, "two/secret" if way == "link of a folder" else "three")
    odd, plain = toml(key, name), SERVICE.format(service='start = "x"', request="")
    shop = repository(tmp_path / "shop", tfb__toml=plain if of_head else odd, **{"a/b": ""})
    (shop / "one").symlink_to(outside)
    (shop / "two").symlink_to(tmp_path)
    (shop / "three").symlink_to("four")
    (shop / "four").symlink_to("../secret")
    if not of_head or key == "files":
        git(shop, "add", "one", "two", "three", "four")
        git(shop, "commit", "-q", "-m", "links")
    if of_head:
        extra = '\n[[request]]\nname = "more"\nmethod = "POST"\npath = "/"\n'
        (shop / "tfb.toml").write_text(odd + extra + KEYS[key][1].format(name=name))
    place = tmp_path / "place"
    place.mkdir()
    message = ""
    try:
        prepare(shop, "HEAD", None, place, seed=1)
    except TfbError as error:
        message = str(error)
    assert "key\n1" not in message
    if message:
        return
    # tfb copies a link in the repository as a link, without its target.
    copied = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in copied if path.read_text(errors="replace") == "key\n1\n" and path.name != "tfb.toml"]
    assert key == "files"
    assert way in ("link", "links in turn", "link of a folder")


@pytest.mark.parametrize("link", ["conf", "conf/env"])
def test_nothing_is_written_through_a_link_of_base(link: str, tmp_path: Path) -> None:
    """tfb copies a file from the working tree into base. In base, this path is a symbolic link."""
    victim = tmp_path / "victim"
    victim.mkdir()
    shop = repository(tmp_path / "shop", tfb__toml=toml("files", "conf/env"), __gitignore="env\n")
    (shop / link).parent.mkdir(exist_ok=True)
    (shop / link).symlink_to(victim if link == "conf" else victim / "env")
    git(shop, "add", "-f", link)
    git(shop, "commit", "-q", "-m", "a link")
    git(shop, "rm", "-q", link)
    (shop / "conf").mkdir(exist_ok=True)
    (shop / "conf" / "env").write_text("mine")
    with pytest.raises(UsageError, match="conf"):
        copy_side(shop, "HEAD", tmp_path / "base", [])
    assert not [*victim.iterdir()]


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "device"])
@pytest.mark.parametrize("key", KEYS)
def test_only_regular_files_are_read(key: str, kind: str, tmp_path: Path) -> None:
    import socket

    shop = repository(tmp_path / "shop", tfb__toml=toml(key, "odd"), __gitignore="odd\n")
    if kind == "fifo":
        os.mkfifo(shop / "odd")
    elif kind == "folder":
        (shop / "odd").mkdir()
        if key == "files":  # only this key accepts folders
            os.mkfifo(shop / "odd" / "fifo")
    elif kind == "device":
        if os.geteuid() != 0:
            pytest.skip("only root makes devices")
        os.mknod(shop / "odd", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    else:
        with socket.socket(socket.AF_UNIX) as line:
            line.bind(str(shop / "odd"))
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(TfbError):
        prepare(shop, "HEAD", None, place, seed=1)


def test_a_linked_tfb_toml_is_not_read(outside: Path, tmp_path: Path) -> None:
    outside.write_text('password = "hunter2"\n')
    shop = repository(tmp_path / "shop")
    (shop / "tfb.toml").unlink()
    (shop / "tfb.toml").symlink_to(outside)
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "a link")
    for target in ("HEAD", None):
        with pytest.raises(TfbError) as caught:
            copy_side(shop, target, tmp_path / str(target), [])
        assert "hunter2" not in str(caught.value)
        assert "leads out" in str(caught.value)


def test_files_elsewhere_in_the_repository_are_read(tmp_path: Path) -> None:
    text = toml("body_file", "../shared/body").replace("\n[[request]]", '\nfiles = ["../.env"]\n[[request]]')
    top = repository(tmp_path / "all", **{"shop/tfb.toml": text, "shared/body": "hello", ".gitignore": ".env\n"})
    (top / ".env").write_text("KEY=1")
    place = tmp_path / "place"
    place.mkdir()
    made = prepare(top / "shop", "HEAD", None, place, seed=1)
    assert made.implementations[0].requests["a"].requests[0].body == b"hello"
    for name in ("base", "base-copy", "head"):
        assert (place / name / ".env").read_text() == "KEY=1"


def test_a_link_within_the_repository_is_followed(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", tfb__toml=toml("body_file", "b"), **{"data/body": "hello"})
    (shop / "b").symlink_to("data/body")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "a link")
    place = tmp_path / "place"
    place.mkdir()
    made = prepare(shop, "HEAD", None, place, seed=1)
    assert made.implementations[0].requests["a"].requests[0].body == b"hello"


def test_two_folders_give_nothing_from_above_them(outside: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tfb.toml").write_text(toml("body_file", "../secret"))
    (tmp_path / "place").mkdir()
    with pytest.raises(ConfigError, match="leads out"):
        prepare(tmp_path / "a", f"dir:{tmp_path / 'a'}", f"dir:{tmp_path / 'b'}", tmp_path / "place", seed=1)


@pytest.mark.parametrize("target", ["victim", "/proc/self/nothing/victim"])
def test_init_writes_through_no_link(target: str, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tfb.toml").symlink_to(tmp_path / target)
    assert cli.main(["init", str(tmp_path / "shop")]) == Exit.USAGE
    assert not (tmp_path / "victim").exists()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["package.json", "requirements.txt", "go.mod", "Cargo.toml", "pom.xml", "Dockerfile"])
def test_init_waits_for_no_pipe(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    assert cli.main(["init", str(tmp_path)]) == Exit.OK


def test_init_quotes_what_a_repository_says(tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text('name = "x\\u0022\\n[[request]]"\n')
    (tmp_path / "package.json").write_text('{"scripts": {"start": "node a\\nevil = 1"}}')
    assert cli.main(["init", str(tmp_path)]) == Exit.OK
    assert service.read_service(tmp_path).service.start == "node a\nevil = 1"


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        confined.read(tmp_path, "a", 10)


def test_a_copied_file_keeps_its_mode(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop", tfb__toml=toml("files", ".env"), __gitignore=".env\n")
    (shop / ".env").write_text("KEY=1")
    (shop / ".env").chmod(0o600)
    made = copy_side(shop, "HEAD", tmp_path / "base", [])
    assert stat.S_IMODE((made.folder / ".env").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", [".git/config", "sub/../.git/config", "link/config", "one", ".git/hooks/../config"])
def test_credentials_of_git_are_not_copied(name: str, tmp_path: Path) -> None:
    """CI checkouts store a token in .git/config. Head's Dockerfile could send that token to another host."""
    shop = repository(tmp_path / "shop", tfb__toml=SERVICE.format(service='start = "x"', request=""), **{"sub/b": ""})
    (shop / "link").symlink_to(".git")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "a link")
    (shop / "one").symlink_to(".git/config")
    (shop / "tfb.toml").write_text(toml("files", name))
    (tmp_path / "place").mkdir()
    with pytest.raises(UsageError, match=r"credentials|cannot copy"):
        prepare(shop, "main", None, tmp_path / "place", seed=1)
    assert not [path for path in (tmp_path / "place").rglob("config") if path.is_file()]
