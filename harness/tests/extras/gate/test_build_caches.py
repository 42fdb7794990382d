"""Later comparisons reuse dependencies that base's build installed, but no compiled source code."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.extras.gate import build_caches
from harness.extras.gate.build_caches import BuildCaches
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.paths import build_caches_folder
from harness.plan.service import Service

LOCK = {"package-lock.json": "{}"}
CARGO_LOCK = """
[[package]]
name = "serde"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
[[package]]
name = "shop-lib"
version = "1.0.0"
[[package]]
name = "shop"
version = "1.0.0"
"""
HASH = "0123456789abcdef"


class Session:
    """A comparison's three copies of a service, one for each side."""

    def __init__(self, folder: Path, *names: str, sources: dict[str, str] = LOCK, build: str = "b") -> None:
        service = Service.model_validate({"start": "x", "build": build, "cache": names})
        self.roots = {side: folder / side for side in (BASE, COPY, HEAD)}
        for root in self.roots.values():
            write(root, sources)
        services = {side: (service, root) for side, root in self.roots.items()}
        self.caches = BuildCaches(services=services, roots=self.roots, origin=Path("/user/shop"))
        self.homes = folder / "homes"

    def seen(self, path: str) -> list[str | None]:
        """Return the text of a file on each side, or None if a side lacks the file."""
        files = [root / path for root in self.roots.values()]
        return [file.read_text() if file.is_file() else None for file in files]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    monkeypatch.setenv("TFB_STATE", str(tmp_path / "state"))
    numbers = iter(range(9))
    return lambda *names, **more: Session(tmp_path / f"place{next(numbers)}", *names, **more)


def filled(session: Callable[..., Session], name: str, files: dict[str, str], **fields: object) -> Session:
    """Fill the cache from base's build. Return the next session, after it has restored the cache to all sides."""
    first = session(name, **fields)
    first.caches.restore(first.homes)
    write(first.homes / BASE / name[2:] if name.startswith("~/") else first.roots[BASE] / name, files)
    first.caches.keep(first.homes)
    second = session(name, **fields)
    second.caches.restore(second.homes)
    return second


def test_all_sides_get_private_copies(session: Callable[..., Session]) -> None:
    second = filled(session, "node_modules", {"left/index.js": "1"})
    assert second.seen("node_modules/left/index.js") == ["1", "1", "1"]
    assert "node_modules from an earlier build of base" in second.caches.note
    (second.roots[HEAD] / "node_modules/left/index.js").write_text("changed by head")
    second.caches.keep(second.homes)  # must not change a filled cache
    assert second.seen("node_modules/left/index.js")[:2] == ["1", "1"]
    third = session("node_modules")
    third.caches.restore(third.homes)
    assert third.seen("node_modules/left/index.js") == ["1", "1", "1"]


def test_folders_in_homes_are_cached(session: Callable[..., Session]) -> None:
    second = filled(session, "~/.npm", {"_cacache/a": "1", "_logs/b": "2"})
    homes = [second.homes / side / ".npm" for side in second.roots]
    assert [sorted(each.name for each in home.iterdir()) for home in homes] == [["_cacache"]] * 3


@pytest.mark.parametrize(
    ("files", "build"),
    [
        ({"package-lock.json": '{"a": 1}'}, "b"),
        ({"package-lock.json": "{}", "sub/package.json": "{}"}, "b"),
        ({"package-lock.json": "{}", "patches/left.patch": "-"}, "b"),
        ({"package-lock.json": "{}"}, "another build"),
    ],
)
def test_other_locks_and_builds_do_not_match(
    session: Callable[..., Session], files: dict[str, str], build: str
) -> None:
    filled(session, "node_modules", {"left/index.js": "1"})
    other = session("node_modules", sources=files, build=build)
    other.caches.restore(other.homes)
    assert other.seen("node_modules/left/index.js") == [None] * 3


def test_sides_with_unequal_locks_get_nothing(session: Callable[..., Session]) -> None:
    filled(session, "node_modules", {"left/index.js": "1"})
    other = session("node_modules")
    write(other.roots[HEAD], {"package-lock.json": '{"new": 1}'})
    other.caches.restore(other.homes)
    assert other.seen("node_modules/left/index.js") == [None] * 3
    assert "different lock files" in other.caches.note
    write(other.roots[BASE], {"node_modules/x": "1"})
    other.caches.keep(other.homes)
    assert len(list(build_caches_folder().iterdir())) == 1


@pytest.mark.parametrize(
    "files",
    [
        {"app.js": ""},
        LOCK | {"package.json": '{"lib": "file:../lib"}'},
        LOCK | {"package.json": '"workspace:*"'},
        LOCK | {"package.json": '{"dependencies": {"lib": "../lib"}}'},
    ],
)
def test_missing_locks_and_local_packages_prevent_caching(
    session: Callable[..., Session], files: dict[str, str]
) -> None:
    second = filled(session, "node_modules", {"lib/index.js": "source of base"}, sources=files)
    assert second.seen("node_modules/lib/index.js") == [None] * 3
    assert "cache: not used" in second.caches.note


@pytest.mark.parametrize("in_homes", [True, False])
def test_the_other_sides_reuse_dependencies(session: Callable[..., Session], *, in_homes: bool) -> None:
    """Sides reuse dependencies that base built or downloaded, but not base's build of the service itself."""
    one = session(sources={"Cargo.lock": CARGO_LOCK, "target/.gitkeep": ""})
    two = session(sources={"Cargo.lock": CARGO_LOCK})
    built = {"target/release/.fingerprint/serde-" + HASH: "s", "target/release/.fingerprint/shop-" + HASH: "s"}
    downloaded = {".npm/_cacache/x": "n", ".npm/_logs/1": "n", ".cache/go-build/x": "g", ".cache/own": "o"}
    for each in (one, two):
        write(each.roots[BASE], built)
        write(each.homes / BASE, downloaded)
    assert not [path for _, path in one.caches.share(None)]  # the other sides already have a target folder
    copies = list(two.caches.share(two.homes if in_homes else None))
    assert two.seen("target/release/.fingerprint/serde-" + HASH) == ["s"] * 3
    assert two.seen("target/release/.fingerprint/shop-" + HASH) == ["s", None, None]
    for side in (COPY, HEAD):
        home = two.homes / side
        found = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
        assert found == ({".npm/_cacache/x", ".cache/go-build/x"} if in_homes else set())
    names = {"target", ".npm", ".cache/go-build"} if in_homes else {"target"}
    assert {(side, path) for side, path in copies} == {
        (side, (two.roots[side] if name == "target" else two.homes / side) / name)
        for side in (COPY, HEAD)
        for name in names
    }


def test_an_unusable_folder_is_not_reused(session: Callable[..., Session], tmp_path: Path) -> None:
    """A folder named ``target`` may belong to another build tool. A cache folder may be a link."""
    own = session(sources={})
    write(own.roots[BASE], {"target/classes/A.class": "a"})
    (own.homes / BASE).mkdir(parents=True)
    write(tmp_path / "real", {"_cacache/x": "n"})
    (own.homes / BASE / ".npm").symlink_to(tmp_path / "real")
    assert list(own.caches.share(own.homes)) == []
    assert own.seen("target/classes/A.class") == ["a", None, None]
    assert not (own.homes / HEAD / ".npm").exists()


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_an_existing_folder_is_kept_and_stops_all(session: Callable[..., Session], kind: str, tmp_path: Path) -> None:
    filled(session, "node_modules", {"left/index.js": "1"})
    other, outside = session("node_modules"), tmp_path / "outside"
    outside.mkdir()
    if kind == "folder":
        write(other.roots[HEAD], {"node_modules/own.js": "head"})
    else:
        (other.roots[HEAD] / "node_modules").symlink_to(outside)
    other.caches.restore(other.homes)
    assert other.seen("node_modules/left/index.js") == [None] * 3
    assert "not used" in other.caches.note
    assert not list(outside.iterdir())
    assert os.path.lexists(other.roots[HEAD] / "node_modules")


def test_links_out_of_the_service_are_not_followed(session: Callable[..., Session], tmp_path: Path) -> None:
    write(tmp_path / "secrets", {"key": "secret"})
    first = session("node_modules", "~/.cache/pip")
    first.caches.restore(first.homes)
    (first.roots[BASE] / "node_modules").symlink_to(tmp_path / "secrets")
    (first.homes / BASE).mkdir(parents=True)
    (first.homes / BASE / ".cache").symlink_to(tmp_path)
    write(tmp_path / "pip", {"key": "secret"})
    first.caches.keep(first.homes)
    assert "not filled" in first.caches.note
    assert not [file for file in build_caches_folder().rglob("*") if file.is_file()]


def test_links_inside_are_copied_as_links(session: Callable[..., Session]) -> None:
    first = session("node_modules")
    first.caches.restore(first.homes)
    modules = first.roots[BASE] / "node_modules"
    write(modules, {"a/cli.js": "1"})
    (modules / ".bin").mkdir()
    (modules / ".bin/a").symlink_to("../a/cli.js")
    (modules / "passwd").symlink_to("/etc/passwd")
    first.caches.keep(first.homes)
    (kept,) = build_caches_folder().glob("*/node_modules")
    assert ((kept / ".bin/a").readlink(), (kept / "passwd").readlink()) == (Path("../a/cli.js"), Path("/etc/passwd"))
    second = session("node_modules")
    second.caches.restore(second.homes)
    assert (second.roots[HEAD] / "node_modules/.bin/a").read_text() == "1"


@pytest.mark.parametrize(
    ("target", "reason"), [("base/src", "a link into the side's folders"), ("user", "a link to an outside folder")]
)
def test_a_link_out_of_a_cache_prevents_caching(
    session: Callable[..., Session], tmp_path: Path, target: str, reason: str
) -> None:
    first = session("node_modules")
    first.caches.restore(first.homes)
    (first.roots[BASE] / "node_modules").mkdir()
    linked = first.roots[BASE] / "src" if target == "base/src" else tmp_path / target
    (linked / ".cache").mkdir(parents=True)
    (first.roots[BASE] / "node_modules/.cache").symlink_to(linked)
    (first.roots[BASE] / "node_modules/own").symlink_to(linked)
    first.caches.keep(first.homes)
    assert reason in first.caches.note
    assert (linked / ".cache").is_dir()
    assert not list(build_caches_folder().iterdir())


def test_generated_folders_of_node_are_left_out(session: Callable[..., Session]) -> None:
    files = {".prisma/client.js": "b", ".vite/x": "b", ".cache/y": "b", "a/.cache/z": "b", ".pnpm/a": "1", "a/b": "1"}
    second = filled(session, "node_modules", files)
    found = {str(path.relative_to(second.roots[HEAD])) for path in second.roots[HEAD].glob("node_modules/**/*")}
    assert {path for path in found if (second.roots[HEAD] / path).is_file()} == {
        "node_modules/.pnpm/a",
        "node_modules/a/b",
    }


def test_cargo_keeps_only_crates_with_a_source(session: Callable[..., Session]) -> None:
    kept = [f".fingerprint/serde-{HASH}/x", f"deps/libserde-{HASH}.rlib", f"build/serde-{HASH}/out"]
    own = [f".fingerprint/shop-{HASH}/x", f"deps/shop-{HASH}", f"deps/libshop_lib-{HASH}.rlib", "shop", "incremental/x"]
    own += [f".fingerprint/shop-lib-{HASH}/x", f"build/shop-{HASH}/out", "deps/unknown"]
    files = {f"release/{name}": "base" for name in (*kept, *own)} | {".rustc_info.json": "{}"}
    second = filled(session, "target", files, sources={"Cargo.lock": CARGO_LOCK})
    target = second.roots[HEAD] / "target"
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert found == {f"release/{name}" for name in kept} | {".rustc_info.json"}


@pytest.mark.parametrize("restored", [True, False])
def test_copies_of_programs_stay_out_of_target(
    session: Callable[..., Session], tmp_path: Path, *, restored: bool
) -> None:
    """Make would not rebuild target/app if it were base's copy, because the copy is newer than head's source code."""
    platform, nested = "x86_64-unknown-linux-musl", f"build/serde-{HASH}/out/target/release/.fingerprint/shop-{HASH}"
    kept = {f"{place}/.fingerprint/serde-{HASH}" for place in ("release", f"{platform}/debug")}
    kept |= {f"release/{nested}", "CACHEDIR.TAG", f"{platform}/CACHEDIR.TAG", ".rustc_info.json"}
    own = {"app", "classes/A.class", "site/index.html", f"{platform}/app", f"{platform}/dist/app", "release/app"}
    files = dict.fromkeys(kept | own, "base")
    if restored:
        one = filled(session, "target", files, sources={"Cargo.lock": CARGO_LOCK})
    else:
        one = session(sources={"Cargo.lock": CARGO_LOCK})
        write(one.roots[BASE] / "target", files)
        (one.roots[BASE] / "target/latest").symlink_to("release")
        assert {side for side, _ in one.caches.share(None)} == {COPY, HEAD}
    target = one.roots[HEAD] / "target"
    assert {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()} == kept


def test_a_target_of_another_tool_is_refused(session: Callable[..., Session]) -> None:
    second = filled(session, "target", {"classes/Shop.class": "base"}, sources={"pom.xml": ""})
    assert second.seen("target/classes/Shop.class") == [None] * 3


def test_virtual_environments_move_and_lose_the_service(session: Callable[..., Session], tmp_path: Path) -> None:
    packages = "lib/python3.11/site-packages"
    base = tmp_path / "place0" / BASE
    files = {
        "bin/uvicorn": f"#!{base}/.venv/bin/python\n",
        "pyvenv.cfg": f"command = python -m venv {base}/.venv\n",
        f"{packages}/uvicorn/main.py": "1",
        f"{packages}/shop/app.py": "source of base",
        f"{packages}/shop-1.dist-info/direct_url.json": json.dumps({"url": f"file://{base}"}),
        f"{packages}/shop-1.dist-info/RECORD": "shop/app.py,,\nshop-1.dist-info/RECORD,,\n../../../../../app.py,,\n",
    }
    second = filled(session, ".venv", files, sources={"requirements.txt": "uvicorn", "app.py": "own"})
    assert second.seen(".venv/bin/uvicorn") == [f"#!{root}/.venv/bin/python\n" for root in second.roots.values()]
    assert second.seen(f".venv/{packages}/uvicorn/main.py") == ["1"] * 3
    assert second.seen(f".venv/{packages}/shop/app.py") == [None] * 3
    assert second.seen("app.py") == ["own"] * 3


def test_virtual_environments_lose_packages_without_origin(session: Callable[..., Session]) -> None:
    packages = "lib/python3.11/site-packages"
    files = {
        f"{packages}/shop/app.py": "source of base",
        f"{packages}/shop-1.egg-info/installed-files.txt": "../shop/app.py\nPKG-INFO\n",
        f"{packages}/shop-1.egg-info/PKG-INFO": "",
        f"{packages}/uvicorn/main.py": "1",
    }
    second = filled(session, ".venv", files, sources={"requirements.txt": "uvicorn"})
    found = {path for path in (second.roots[HEAD] / ".venv").rglob("*") if path.is_file()}
    assert found == {second.roots[HEAD] / f".venv/{packages}/uvicorn/main.py"}


def test_pip_loses_wheels_built_from_folders(session: Callable[..., Session]) -> None:
    files = {
        "wheels/a/psycopg2.whl": "1",
        "wheels/a/origin.json": json.dumps({"url": "https://pypi.org/psycopg2.tar.gz"}),
        "wheels/b/shop.whl": "base",
        "wheels/b/origin.json": json.dumps({"url": "file:///build/shop"}),
        "wheels/c/odd.whl": "base",
    }
    second = filled(session, "~/.cache/pip", files, sources={"requirements.txt": "psycopg2"})
    assert [path.name for path in (second.homes / HEAD).rglob("*.whl")] == ["psycopg2.whl"]


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ('package a\nimport "C"\n', False),
        ('import (\n\t"fmt"\n\t"C" // see a.h\n)', False),
        ('var a = []string{\n\t"C",\n}', True),
    ],
)
def test_go_shares_no_packages_with_cgo(session: Callable[..., Session], code: str, *, kept: bool) -> None:
    """Go's build cache does not notice changes to C files in other folders. So sides do not share packages with cgo."""
    second = filled(session, "~/.cache/go-build", {"00/x-d": "1"}, sources={"go.sum": "", "a/a.go": code})
    assert (second.homes / HEAD / ".cache/go-build/00/x-d").is_file() is kept


def test_maven_loses_installed_artefacts(session: Callable[..., Session]) -> None:
    files = {
        "org/a/1/a.jar": "1",
        "org/a/1/_remote.repositories": "#NOTE\na.jar>central=\n",
        "org/a/maven-metadata-central.xml": "1",
        "shop/maven-metadata-local.xml": "base",
        "shop/1/shop.war": "base",
        "shop/1/shop-tests.jar": "base",
        "shop/1/shop.jar": "base",
        "shop/1/_remote.repositories": "shop.jar>=\n",
        "odd/1/odd.jar": "base",
    }
    second = filled(session, "~/.m2/repository", files, sources={"pom.xml": ""})
    found = {path.name for path in (second.homes / HEAD / ".m2/repository").rglob("*") if path.is_file()}
    assert found == {"a.jar", "_remote.repositories", "maven-metadata-central.xml"}


def test_old_caches_are_removed_at_the_limit(session: Callable[..., Session], monkeypatch: pytest.MonkeyPatch) -> None:
    filled(session, "node_modules", {"a": "1" * 600})
    (old,) = build_caches_folder().iterdir()
    os.utime(old, (1, 1))
    monkeypatch.setattr(build_caches, "MAX_BYTES", 1000)
    filled(session, "node_modules", {"b": "1" * 600}, build="another")
    (left,) = build_caches_folder().iterdir()
    assert left != old
