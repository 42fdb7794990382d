"""Attack: another user creates files in /tmp with names that tfb uses. Commands must work and must not remove them."""

import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.cli.consent import find_leftovers
from harness.host import leftovers, ownership
from harness.records.remove_tree import remove_tree

pytestmark = pytest.mark.timeout(300)
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="giving files away needs root")
GONE = "999999999.1.1.earlier"  # owner mark of a process that ran before the last reboot
SHM = Path("/dev/shm")  # noqa: S108 - removing 50,000 folders takes minutes on a disk


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make temporary files go to an empty folder and return that folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def quick() -> Iterator[Path]:
    """Yield a folder in /dev/shm if that is writable, or on disk otherwise."""
    place = SHM if os.access(SHM, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="tfb-test-", dir=place))
    yield folder
    if folder.exists():
        remove_tree(folder)


def scratch(below: Path, mark: str | None = GONE, name: str = "x") -> Path:
    folder = below / f"{ownership.SCRATCH_PREFIX}{name}"
    folder.mkdir()
    if mark is not None:
        (folder / ownership.OWNER_FILE).write_text(mark)
    os.utime(folder, (time.time() - 600,) * 2)
    return folder


def nested(folder: Path, depth: int) -> None:
    """Create nested folders whose full path exceeds PATH_MAX."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("nested", dir_fd=descriptor)
        below = os.open("nested", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


def bind(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # makes the socket's path short: the maximum is 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def steps(*each: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return a function that calls the given functions in order."""
    return lambda path: [step(path) for step in each]


TRAPS: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": bind,
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to("/etc/hostname"),
    "link to a pipe": steps(lambda path: os.mkfifo(path.with_name("pipe")), lambda path: path.symlink_to("pipe")),
    "endless": lambda path: path.symlink_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path),
    "hard link": steps(
        lambda path: path.with_name("two").write_text(GONE), lambda path: path.hardlink_to(path.with_name("two"))
    ),
    "huge": steps(Path.touch, lambda path: os.truncate(path, 1 << 40)),
    "binary": lambda path: path.write_bytes(bytes(range(256))),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_trap_in_place_of_the_mark_stops_nobody(temporary: Path, trap: str) -> None:
    folder = scratch(temporary, None)
    TRAPS[trap](folder / ownership.OWNER_FILE)
    os.utime(folder, (time.time() - 600,) * 2)
    started_at = time.monotonic()
    found = list(leftovers.folder_leftovers())
    assert leftovers.remove_leftovers(found) == ()
    assert time.monotonic() - started_at < 30
    if trap not in ("huge", "binary"):  # all other traps count as a missing mark, so the folder is removed
        assert not folder.exists()
    assert Path("/etc/hostname").exists()


@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_what_is_no_folder_is_passed_over(temporary: Path, kind: str) -> None:
    path, elsewhere = temporary / f"{ownership.SCRATCH_PREFIX}x", temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    make: dict[str, Callable[[], object]] = {
        "file": path.touch,
        "link": lambda: path.symlink_to(elsewhere),
        "pipe": lambda: os.mkfifo(path),
    }
    make[kind]()
    assert list(leftovers.folder_leftovers()) == []
    assert (elsewhere / "kept").exists()


@pytest.mark.parametrize("depth", [1_200, 50_000])
def test_deep_folders_are_removed(quick: Path, monkeypatch: pytest.MonkeyPatch, depth: int) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(quick))
    folder = scratch(quick)
    nested(folder, depth)
    assert leftovers.remove_leftovers(list(leftovers.folder_leftovers())) == ()
    assert not folder.exists()


def test_own_scratch_folder_is_removed_however_deep(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(quick))
    with ownership.make_scratch_folder("test") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        nested(folder, 1_200)
    assert list(quick.iterdir()) == []


def test_removal_follows_no_link_and_restores_rights(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    tree = tmp_path / "tree"
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "closed" / "inner" / "file").touch()
    (tree / "link").symlink_to(elsewhere)
    os.mkfifo(tree / "pipe")
    (tree / "closed" / "inner").chmod(0o500)
    (tree / "closed").chmod(0)
    remove_tree(tree)
    assert not tree.exists()
    assert (elsewhere / "kept").exists()


def test_a_folder_that_replaced_a_leftover_stays(temporary: Path) -> None:
    folder = scratch(temporary)
    (leftover,) = leftovers.folder_leftovers()
    folder.rename(temporary / "moved")
    folder.mkdir()
    (folder / "kept").touch()
    assert "no longer the folder" in leftovers.remove_leftovers([leftover])[0]
    assert (folder / "kept").exists()


def test_a_link_that_replaced_a_leftover_is_kept(temporary: Path) -> None:
    folder = scratch(temporary)
    (leftover,) = leftovers.folder_leftovers()
    elsewhere = folder.rename(temporary / "elsewhere")
    folder.symlink_to(elsewhere)
    assert leftovers.remove_leftovers([leftover]) != ()
    assert (elsewhere / ownership.OWNER_FILE).exists()


def test_moving_a_folder_stops_the_removal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the move, ``..`` refers to a different parent folder."""
    tree, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    (tree / "inner" / "deep").mkdir(parents=True)
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "kept").touch()
    real = os.rmdir

    def rmdir(path: str, *, dir_fd: int | None = None) -> None:
        real(path, dir_fd=dir_fd)
        if path == "deep":
            (tree / "inner").rename(elsewhere / "inner")

    monkeypatch.setattr(os, "rmdir", rmdir)
    with pytest.raises(OSError, match="was moved"):
        remove_tree(tree)
    assert (elsewhere / "kept").exists()


@ROOT
def test_mounted_file_system_is_not_emptied(tmp_path: Path) -> None:
    tree, outside = tmp_path / "tree", tmp_path / "outside"
    (tree / "mount").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").touch()
    mount = shutil.which("mount")
    if not mount or psutil.Popen([mount, "--bind", str(outside), str(tree / "mount")]).wait() != 0:
        pytest.skip("this container may mount nothing")
    try:
        with pytest.raises(OSError, match="mounted file system"):
            remove_tree(tree)
        assert (outside / "kept").exists()
    finally:
        psutil.Popen(["umount", str(tree / "mount")]).wait()


@ROOT
@pytest.mark.parametrize("mark", [GONE, None])
def test_root_leaves_the_folders_of_others(temporary: Path, mark: str | None) -> None:
    folder = scratch(temporary, mark)
    for path in (folder, *folder.iterdir()):
        os.chown(path, 65534, 65534)
    assert list(leftovers.folder_leftovers()) == []


@ROOT
def test_root_removes_what_its_servers_owned(temporary: Path) -> None:
    """PostgreSQL's account owns the folder, but root owns the owner mark in the folder."""
    folder = scratch(temporary)
    os.chown(folder, 65534, 65534)
    folder.chmod(0o700)
    (found,) = leftovers.folder_leftovers()
    assert leftovers.remove_leftovers([found]) == ()
    assert not folder.exists()


def test_device_is_not_opened(temporary: Path) -> None:
    folder = scratch(temporary, None)
    try:
        # The owner mark is the watchdog device. Opening it would start the watchdog timer.
        os.mknod(folder / ownership.OWNER_FILE, stat.S_IFCHR | 0o600, os.makedev(10, 130))
    except OSError:
        pytest.skip("this user may make no devices")
    os.utime(folder, (time.time() - 600,) * 2)
    assert leftovers.remove_leftovers(list(leftovers.folder_leftovers())) == ()


def test_thousands_of_foreign_names_do_not_matter(temporary: Path) -> None:
    for number in range(3000):
        (temporary / f"{ownership.SCRATCH_PREFIX}{number}").symlink_to("/")
    started_at = time.monotonic()
    assert [each for each in find_leftovers() if each.kind == "folder"] == []
    assert time.monotonic() - started_at < 30
