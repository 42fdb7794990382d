"""Attack: a pull request's builds or processes change base's files, or outlive the comparison."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness.errors import Exit
from harness.extras.gate.cli import PreparedComparison
from harness.extras.gate.isolation import IsolatedRuntime, Isolation, TamperedError
from harness.extras.gate.paired import BASE, COPY, HEAD, SIDES
from harness.tests.doubles.repositories import let_others_enter, repository
from harness.tests.doubles.shop_service import BOTH, SERVER, compare, session, shop_repository, toml

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give builds other accounts")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Create a service repository whose main branch declares a slow and a fast request."""
    return shop_repository(tmp_path)


def isolation(folder: Path, *, separate: bool) -> Isolation:
    """Create the sides of a comparison and isolate them from each other."""
    folder.mkdir()
    let_others_enter(folder)
    for side in SIDES:
        root = folder / side
        (root / "lib").mkdir(parents=True)
        (root / "server.py").write_text("base")
        (root / "lib" / "part.py").write_text("part")
        (root / "data.db").write_text("rows")
        (root / "link").symlink_to("server.py")
    made = Isolation(roots={side: folder / side for side in SIDES}, homes=folder / "homes")
    made.prepare(separate=separate)
    return made


def keep_times(path: Path, said: str) -> None:
    about = path.stat()
    path.write_text(said)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def swap_folder(root: Path) -> None:
    (root / "lib").rename(root.parent / "aside")
    (root / "lib").symlink_to(root.parent / "aside")


def turn_link(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").symlink_to("data.db")


def new_program(root: Path) -> None:
    (root / "x").write_text("slow")
    (root / "x").chmod(0o755)


TAMPERINGS: dict[str, Callable[[Path], object]] = {
    "write": lambda root: (root / "server.py").write_text("slow"),
    "same size and times": lambda root: keep_times(root / "server.py", "slow"),
    "nested": lambda root: (root / "lib" / "part.py").write_text("slow"),
    "new program": lambda root: (root / "sitecustomize.py").write_text("slow"),
    "new link": lambda root: (root / "hashlib.py").symlink_to("../head/slow.py"),
    "removed": lambda root: (root / "lib" / "part.py").unlink(),
    "link turned": turn_link,
    "mode": lambda root: os.chmod(root / "server.py", 0o600),  # noqa: PTH101 - with a value
    "file replaced": lambda root: ((root / "new").write_text("slow"), (root / "new").rename(root / "server.py")),
    "folder swapped": swap_folder,
    "new executable": new_program,
}


@pytest.mark.parametrize("side", [BASE, COPY])
@pytest.mark.parametrize("how", TAMPERINGS)
def test_builds_of_head_that_change_base_are_found(how: str, side: str, tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with pytest.raises(TamperedError, match=r"(?:head.s build) (?:changed|created)"), made.building(HEAD):
        TAMPERINGS[how](made.roots[side])


@pytest.mark.parametrize("how", TAMPERINGS)
def test_a_change_of_base_under_load_is_found(how: str, tmp_path: Path) -> None:
    isolated = isolation(tmp_path / "sides", separate=False)
    with isolated.building(HEAD):
        (isolated.roots[HEAD] / "server.py").write_text("head's own")
    TAMPERINGS[how](isolated.roots[BASE])
    with pytest.raises(TamperedError, match="base's files"):
        isolated.require_unchanged()


def test_restored_files_of_base_are_found(tmp_path: Path) -> None:
    """Head's server changes base's program before base starts and restores it later."""
    isolated = isolation(tmp_path / "sides", separate=False)
    with isolated.building(HEAD):
        os.chmod(isolated.roots[BASE] / "server.py", 0o644)  # noqa: PTH101 - as it is: a build may touch a shared file
    program = isolated.roots[BASE] / "server.py"
    about = program.stat()
    for text in ("slow", "base"):
        program.write_text(text)
    os.utime(program, ns=(about.st_atime_ns, about.st_mtime_ns))
    with pytest.raises(TamperedError, match=r"base's files: server\.py"):
        isolated.require_unchanged()


def test_a_huge_replacement_file_is_found_quickly(tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with pytest.raises(TamperedError, match=r"server\.py"), made.building(HEAD):
        os.truncate(made.roots[BASE] / "server.py", 1 << 42)


def test_files_that_a_server_writes_are_no_tampering(tmp_path: Path) -> None:
    isolated = isolation(tmp_path / "sides", separate=False)
    with isolated.building(HEAD):
        pass
    for name in ("data.db", "data.db-wal", "server.log", "upload.bin"):
        (isolated.roots[BASE] / name).write_text("written by the server")
    (isolated.roots[BASE] / "lib" / "__pycache__").mkdir()
    (isolated.roots[BASE] / "lib" / "__pycache__" / "part.cpython-311.pyc").write_bytes(b"x")
    isolated.require_unchanged()


def test_builds_of_head_that_shadow_programs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "own").write_text("x")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    jar = tmp_path / "home" / ".m2" / "repository" / "a.jar"
    jar.parent.mkdir(parents=True)
    jar.write_text("good")
    for number, path in enumerate((programs / "node", programs / "own", jar)):
        made = isolation(tmp_path / f"sides{number}", separate=False)
        with pytest.raises(TamperedError, match="a program on this machine"), made.building(HEAD):
            path.write_text("another")


@pytest.mark.parametrize("name", ["node_modules", "package.json", ".cargo"])
@pytest.mark.parametrize("up", [1, 2])
def test_files_written_above_base_are_found(name: str, up: int, tmp_path: Path) -> None:
    made = isolation(tmp_path / "sides", separate=False)
    with pytest.raises(TamperedError, match=name), made.building(HEAD):
        (made.roots[BASE].parents[up - 1] / name).mkdir()


@pytest.mark.parametrize("way", ["folder", "file", "link", "moved"])
def test_short_lived_files_above_base_are_found(way: str, tmp_path: Path) -> None:
    """While base starts, head's server creates a library in a folder above base and then removes it."""
    isolated = isolation(tmp_path / "sides", separate=False)
    with isolated.building(HEAD):
        pass
    place = isolated.roots[BASE].parents[1] / "node_modules"
    (tmp_path / "aside").write_text("")
    ways: dict[str, Callable[[], object]] = {
        "folder": place.mkdir,
        "file": place.touch,
        "link": lambda: place.symlink_to(tmp_path),
        "moved": lambda: (tmp_path / "aside").rename(place),
    }
    ways[way]()
    (place.rmdir if way == "folder" else place.unlink)()
    for number in range(20_000):  # more events than the kernel's queue holds
        if number % 5_000 == 0:
            isolated.look()
        (tmp_path / "busy").touch()
        (tmp_path / "busy").unlink()
    with pytest.raises(TamperedError, match="node_modules"):
        isolated.require_unchanged()


def test_new_libraries_in_shared_caches_are_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cache = tmp_path / "home" / ".m2" / "repository"
    cache.mkdir(parents=True)
    made = isolation(tmp_path / "sides", separate=False)
    with made.building(HEAD):
        (cache / "new.jar").write_text("a new version")


def built(folder: Path, build: str, *, separate: bool) -> tuple[PreparedComparison, dict[str, str]]:
    """Build all sides with the command ``build``; return the comparison and each side's build status."""
    let_others_enter(folder)
    shop = repository(folder / "shop", tfb__toml=toml(*BOTH, build=build), server__py=SERVER)
    prepared = session(shop, folder / "prepared")
    prepared.isolation.prepare(separate=separate)
    runtime = IsolatedRuntime(
        work=folder, contained_sides={}, services=prepared.services, isolation=prepared.isolation, own_scripts=True
    )
    done = {each.name: runtime.build(each, folder / "logs" / each.name / "build") for each in prepared.implementations}
    return prepared, {name: build.status for name, build in done.items()}


def test_head_is_built_last(shop: Path, tmp_path: Path) -> None:
    assert [each.name for each in session(shop, tmp_path / "place").implementations] == [BASE, COPY, HEAD]


CHANGES_BASE = "case $PWD in */head) echo slow > ../base/server.py;; esac || true"


def test_a_real_build_that_rewrites_base_is_found(tmp_path: Path) -> None:
    with pytest.raises(TamperedError, match=r"base's files: server\.py"):
        built(tmp_path, CHANGES_BASE, separate=False)


@as_root
def test_as_root_head_cannot_write_to_base(tmp_path: Path) -> None:
    runtime, done = built(tmp_path, f"{CHANGES_BASE}; id -u > built-as; echo $HOME > home", separate=True)
    assert done == dict.fromkeys((BASE, COPY, HEAD), "ok")
    assert (runtime.isolation.roots[BASE] / "server.py").read_text() == SERVER
    uids = {side: (root / "built-as").read_text().strip() for side, root in runtime.isolation.roots.items()}
    homes = {side: (root / "home").read_text().strip() for side, root in runtime.isolation.roots.items()}
    assert len({*uids.values(), "0"}) == 4
    assert len(set(homes.values())) == 3
    assert str(Path.home()) not in homes.values()


@as_root
@pytest.mark.parametrize("target", ["{other}/cheat", "/usr/local/bin/tfb-cheat", "{home}/.npmrc-cheat"])
def test_a_build_as_root_writes_nowhere_else(target: str, tmp_path: Path) -> None:
    path = target.format(home=Path.home(), other=tmp_path / "prepared" / "homes" / "base")
    _, done = built(tmp_path, f"case $PWD in */head) echo x > {path};; esac; true", separate=True)
    assert done[HEAD] == "ok"
    assert not Path(path).exists()


@as_root
def test_build_accounts_reach_programs_in_private_homes(tmp_path: Path) -> None:
    """Toolchains may be in root's private home, and gcc calls access(2) before it runs their programs."""
    program = tmp_path / "closed" / "tool"
    program.parent.mkdir(mode=0o700)
    program.write_text("x")
    program.chmod(0o755)
    asked = f"import os, sys; sys.exit(not os.access('{program}', os.X_OK))"
    (tmp_path / "ask.py").write_text(asked)
    _, done = built(tmp_path, f"{sys.executable} {tmp_path / 'ask.py'}", separate=True)
    assert done[HEAD] == "ok"


DAEMONS = {
    "background": "sleep 4321 &",
    "nohup": "nohup sleep 4321 > /dev/null 2>&1 &",
    "session": "setsid sleep 4321 > /dev/null 2>&1 < /dev/null &",
    "no environment": "setsid env -i sleep 4321 > /dev/null 2>&1 < /dev/null &",
    "twice forked": "(setsid sh -c 'sleep 4321 &' > /dev/null 2>&1 &);",
}


@pytest.mark.parametrize("separate", [pytest.param(True, marks=as_root), False])
@pytest.mark.parametrize("how", DAEMONS)
def test_nothing_that_a_build_starts_outlives_it(how: str, *, separate: bool, tmp_path: Path) -> None:
    seconds = str(4_000_000 + os.getpid())
    _, done = built(tmp_path, f"{DAEMONS[how].replace('4321', seconds)} sleep 0.2", separate=separate)
    assert done[HEAD] == "ok"
    until = time.monotonic() + 5
    while (left := _sleeping(seconds)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left


def _sleeping(seconds: str) -> list[int]:
    every = psutil.process_iter(["cmdline", "pid"])
    return [each.info["pid"] for each in every if (each.info["cmdline"] or [])[-2:] == ["sleep", seconds]]


@as_root
@pytest.mark.parametrize("name", ["server.py", "data.db", "lib/part.py"])
@pytest.mark.parametrize("mode", [0o644, 0o666, 0o664])
def test_root_checks_files_that_head_could_write(name: str, mode: int, tmp_path: Path) -> None:
    """Base's server may write to its own files, unless the account of another side may write to them too."""
    isolated = isolation(tmp_path / "sides", separate=True)
    path = isolated.roots[BASE] / name
    path.chmod(mode)
    with isolated.building(HEAD):
        pass
    path.write_text("written")
    if mode == 0o644 or name == "data.db":
        isolated.require_unchanged()
        return
    with pytest.raises(TamperedError, match=path.name):
        isolated.require_unchanged()


@pytest.mark.e2e
@pytest.mark.needs("cargo", ">=1.85")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("shared", [True, pytest.param(False, marks=as_root)])
def test_a_slower_head_cannot_pass_by_rewriting_base(shop: Path, *, shared: bool) -> None:
    """This attack once yielded the verdict "faster" and exit code 0."""
    slower = SERVER.replace("ROUNDS = 300", "ROUNDS = 900")
    (shop / "server.py").write_text(slower)
    (shop / "cheat.sh").write_text(
        "for side in base base-copy; do sed -i 's/ROUNDS = .*/ROUNDS = 9000/' ../$side/server.py; done; true\n"
    )
    (shop / "tfb.toml").write_text(toml(("quick", "/quick"), build="sh cheat.sh", connections=1))
    code, document, errors = compare(shop, "--base", "main", shared_account=shared)
    assert code in (Exit.FAILED, Exit.CANNOT_TELL), errors
    assert document["verdict"] not in ("faster", "same"), errors
    if shared:
        assert (code, document["verdict"]) == (Exit.FAILED, "failed")
        assert "head's build changed base's files: server.py" in errors
    else:
        assert {request["request"] for request in document["requests"]} >= {"slow", "quick"}
        assert "no longer declares slow" in errors


@pytest.mark.e2e
@pytest.mark.needs("cargo", ">=1.85")
@pytest.mark.timeout(300)
def test_servers_of_head_cannot_rewrite_base(shop: Path) -> None:
    cheat = (
        "import pathlib\nfor side in ('base', 'base-copy'):\n    pathlib.Path('..', side, 'server.py').write_text('')\n"
    )
    (shop / "server.py").write_text(
        f"try:\n    {cheat.replace(chr(10), chr(10) + '    ')}\nexcept OSError: pass\n{SERVER}"
    )
    code, found, said = compare(shop, "--base", "main", shared_account=True)
    assert code in (Exit.FAILED, Exit.CANNOT_TELL), said
    assert found["verdict"] not in ("faster", "same"), said
