"""Caches the dependencies that base's build installs, for the other sides and for later comparisons.

The other sides of a comparison reuse downloads and compiled crates (``share``). Later comparisons with the same lock
files reuse the folders that tfb.toml names (``keep`` and ``restore``).

Only base's build can fill a cache. tfb fills the cache before head is built, and removes files that were built from
base's source code. Either all sides use the cache, or no side does. Each side gets a separate copy. A filled cache
never changes.
"""

import json
import os
import re
import shutil
import stat
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import get_args

from harness.errors import TfbError
from harness.extras.gate.paired import BASE
from harness.host import process
from harness.paths import build_caches_folder
from harness.plan.service import CacheName, Service
from harness.records.remove_tree import remove_tree, remove_tree_if_possible

MAX_BYTES = 4 << 30  # maximum size of all caches in bytes; tfb removes the least recently used caches
COPY_SECONDS = 600
FORMAT = 2  # version of the caches' content; increment it to invalidate existing caches
ABOUT = "about.json"  # file in each cache; records the folder in which base was built
NO_LOCK_FILES = "have no lock file, or would install packages from the repository into node_modules"
LOCK_FILES = re.compile(
    r"(package-lock|npm-shrinkwrap)\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|Cargo\.lock|go\.sum|uv\.lock"
    r"|poetry\.lock|pdm\.lock|Pipfile\.lock|requirements[\w.-]*\.txt|Gemfile\.lock|pom\.xml|build\.gradle(\.kts)?"
)
# Other files that affect what a package manager installs.
MANIFESTS = re.compile(
    r"package\.json|pnpm-workspace\.yaml|\.npmrc|\.yarnrc(\.yml)?|\.pnpmfile\.cjs|Cargo\.toml|rust-toolchain(\.toml)?"
    r"|go\.(mod|work)|pyproject\.toml|setup\.(py|cfg)|constraints[\w.-]*\.txt|settings\.gradle(\.kts)?|config\.toml"
    r"|gradle\.properties|\.(nvmrc|node-version|python-version|tool-versions|java-version)|[\w.@+-]*\.(patch|prisma)"
)
# Folders of base's build that the other sides reuse. Package managers detect which files in them are still valid.
SHARED_FOLDERS = ("target",)
SHARED = (*SHARED_FOLDERS, *(name for name in get_args(CacheName) if name.startswith("~/")))
SKIPPED = (".git", "node_modules", ".venv", "target")
TOOLS = ("node", "npm", "python3", "pip", "cargo", "rustc", "go", "java", "mvn", "cc")
# Prefixes of dependency versions that refer to a folder in the repository. Package managers may copy this folder.
LOCAL_DEPENDENCY = re.compile(rb"\b(?:file|link|portal|workspace):")
NODE_SECTIONS = ("dependencies", "devDependencies", "optionalDependencies", "overrides", "resolutions")
NODE_FOLDERS = (".bin", ".pnpm", ".package-lock.json", ".modules.yaml", ".yarn-integrity", ".yarn-state.yml")
CARGO_HASH = re.compile(r"(?:lib)?(.+?)-[0-9a-f]{16}(?:\..*)?")
CARGO_FOLDERS = (".fingerprint", "build", "deps")  # in a profile's folder, such as target/release
CGO = re.compile(rb'^\s*(?:import\s*\(?\s*)?"C"\s*(?:$|[;/)])', re.MULTILINE)
MAVEN_METADATA = re.compile(r"maven-metadata-(?!local\.).*|_remote\.repositories|resolver-status\.properties")


@dataclass(kw_only=True)
class BuildCaches:
    """The build caches that a comparison reads or fills."""

    services: Mapping[str, tuple[Service, Path]]  # side -> service and folder
    roots: Mapping[str, Path]  # side -> root folder of the side's copy of the repository
    origin: Path  # the service's folder in the user's working tree
    note: str = ""  # line of the report that states whether the caches were used
    _store: Path | None = field(default=None, init=False)  # cache to fill after base's build, if any

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the folders to cache, from base's tfb.toml."""
        return self.services[BASE][0].cache

    def restore(self, homes: Path | None) -> None:
        """Copy the cache to all sides. Call this before the first build.

        ``homes`` is the parent of the sides' home folders, or None if the sides use the user's home folder.
        """
        if not self.names:
            return
        keys = {self._key(side) for side in self.services}
        if len(keys) > 1 or None in keys:
            why = "have different lock files or build commands" if len(keys) > 1 else NO_LOCK_FILES
            self.note = f"cache: not used, because the sides {why}"
            return
        store = build_caches_folder() / str(keys.pop())
        if not os.path.isdir(store):  # noqa: PTH112 - Path.is_dir raises PermissionError
            self._store, self.note = store, "cache: empty; later comparisons will reuse base's dependencies"
            return
        copied_paths: list[Path] = []
        try:
            origin = json.loads((store / ABOUT).read_text(encoding="utf-8"))["folder"]
            stored_names = [
                n for n in self.names if (store / _file_name(n)).is_dir() and (homes or not n.startswith("~/"))
            ]
            for side, (_, folder) in self.services.items():
                for name in stored_names:
                    target = _place(name, folder, homes and homes / side)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.mkdir()  # fails if the side already has a folder or link with this name
                    copied_paths.append(target)
                    _copy(store / _file_name(name), target)
                    _replace_path(target, origin, str(folder))
            os.utime(store)
        except (TfbError, OSError, ValueError, LookupError, TypeError) as error:
            for target in copied_paths:
                remove_tree_if_possible(target)
            self.note = f"cache: not used, because it could not be copied: {error}"
            return
        self.note = f"cache: all sides reuse {', '.join(stored_names)} from an earlier build of base"

    def keep(self, homes: Path | None) -> None:
        """Fill the cache from base's folders if ``restore`` found it empty. Call this after base's build."""
        if self._store is None:
            return
        _, folder = self.services[BASE]
        parent, stage = build_caches_folder(), None
        try:
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            stage = Path(mkdtemp(prefix="new-", dir=parent))
            for name in self.names:
                if name.startswith("~/") and not homes:
                    continue
                source = _place(name, folder, homes and homes / BASE)
                if source.is_dir():
                    _require_inside(source, homes / BASE if homes and name.startswith("~/") else folder)
                    (kept := stage / _file_name(name)).mkdir()
                    _copy(source, kept)
                    _clean(name, kept, self.roots[BASE], folder)
            (stage / ABOUT).write_text(json.dumps({"folder": str(folder)}), encoding="utf-8")
            stage.rename(self._store)
            _limit_size(parent)
            if not self._store.is_dir():
                self.note = f"cache: not filled, because all caches together would exceed {MAX_BYTES >> 30} GiB"
        except (TfbError, OSError, ValueError, LookupError, TypeError) as error:
            self.note = f"cache: not filled: {error}"
        finally:
            self._store = None
            if stage:
                remove_tree_if_possible(stage)

    def share(self, homes: Path | None) -> Iterator[tuple[str, Path]]:
        """Copy dependencies from base's build to the sides that lack them. Yield (side, path) for each copy."""
        _, folder = self.services[BASE]
        for name in SHARED if homes else SHARED_FOLDERS:
            source = _place(name, folder, homes and homes / BASE)
            for side, (_, own) in self.services.items():
                target = _place(name, own, homes and homes / side)
                if not source.is_dir() or os.path.lexists(target):
                    continue
                try:
                    _require_inside(source, homes / BASE if homes and name.startswith("~/") else folder)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.mkdir()
                    _copy(source, target)
                    _clean(name, target, self.roots[BASE], folder)
                except (TfbError, OSError, ValueError, LookupError, TypeError):
                    remove_tree_if_possible(target)  # the side's own build installs the dependencies instead
                else:
                    yield side, target

    def _key(self, side: str) -> str | None:
        """Return a hash of all inputs that determine a side's dependencies, or None if tfb cannot cache them."""
        service, folder = self.services[side]
        files = dict(_manifests(self.roots[side]))
        if not any(LOCK_FILES.fullmatch(Path(name).name) for name in files):
            return None
        if "node_modules" in self.names and any(map(_has_local_packages, files, files.values())):
            return None
        tools = [(path, Path(path).stat().st_mtime_ns) for path in map(shutil.which, TOOLS) if path]
        key_parts = [
            *(
                FORMAT,
                str(self.origin.resolve()),
                service.build,
                service.env | service.build_env,
                sorted(self.names),
                tools,
            ),
            *(str(folder.relative_to(self.roots[side])), os.geteuid(), os.environ.get("PATH", "")),
            sorted((name, sha256(content).hexdigest()) for name, content in files.items()),
        ]
        return sha256(json.dumps(key_parts).encode()).hexdigest()[:32]


def _manifests(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the relative path and content of each lock file and manifest below ``root``."""
    for place, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each not in SKIPPED]
        for name in names:
            path = Path(place, name)
            if (LOCK_FILES.fullmatch(name) or MANIFESTS.fullmatch(name)) and stat.S_ISREG(path.lstat().st_mode):
                yield str(path.relative_to(root)), path.read_bytes()


def _has_local_packages(name: str, content: bytes) -> bool:
    """Return whether a lock file or manifest lists a folder or archive in the repository as a dependency."""
    if LOCAL_DEPENDENCY.search(content):
        return True
    try:
        manifest = json.loads(content) if Path(name).name == "package.json" else None
    except ValueError:
        return False
    sections = [manifest.get(key) for key in NODE_SECTIONS] if isinstance(manifest, dict) else []
    versions = [version for each in sections if isinstance(each, dict) for version in each.values()]
    return any(str(version).startswith((".", "/", "~/")) for version in versions)


def _place(name: str, folder: Path, home: Path | None) -> Path:
    """Return the path of a cached folder for the side whose service is in ``folder``."""
    return home / name[2:] if home and name.startswith("~/") else folder / name


def _file_name(name: str) -> str:
    return name.replace("/", "+")


def _require_inside(source: Path, folder: Path) -> None:
    if source.resolve() != folder.resolve() / source.relative_to(folder):
        raise TfbError(f"the path {source} contains a symbolic link")


def _copy(source: Path, target: Path) -> None:
    """Copy a folder's content. Preserve links, but not owners or special mode bits."""
    command = ["cp", "-RPT", "--preserve=timestamps,links", "--reflink=auto", "--", str(source), str(target)]
    if process.run(command, seconds=COPY_SECONDS).status != 0:
        raise TfbError(f"cannot copy {source}")


def _replace_path(folder: Path, old: str, new: str) -> None:
    """Replace the path ``old`` with ``new`` in a virtual environment's scripts and settings."""
    if folder.name != ".venv":
        return
    for path in (folder / "pyvenv.cfg", *folder.glob("bin/*"), *folder.glob("lib*/python*/site-packages/*.pth")):
        if path.is_file() and not path.is_symlink() and old.encode() in (data := path.read_bytes()):
            if b"\0" in data:
                raise TfbError(f"{path.name} is a binary file that contains the path of an earlier side")
            path.write_bytes(data.replace(old.encode(), new.encode()))


# ---- removing files built from base's source ------------------------------------------------------------------------


def _clean(name: str, folder: Path, root: Path, service_folder: Path) -> None:
    """Remove cached files that were built from the service's source code."""
    for path in _links(folder):
        absolute = path.readlink().is_absolute()
        if absolute and (path.readlink().is_relative_to(root.parent) or not path.exists()):
            raise TfbError(f"{name} contains a link into the side's folders: {path.relative_to(folder)}")
        # Reject the link, because cleaning the cache could otherwise remove files from the linked folder.
        if path.is_dir() and not path.resolve().is_relative_to(folder.resolve()):
            raise TfbError(f"{name} contains a link to an outside folder: {path.relative_to(folder)}")
    cleaners: Mapping[str, Callable[[], None]] = {
        "node_modules": lambda: _clean_node(folder),
        ".venv": lambda: _clean_venv(folder),
        "target": lambda: _clean_cargo(folder, root, service_folder),
        "~/.m2/repository": lambda: _clean_maven(folder),
        "~/.cache/pip": lambda: _clean_pip(folder),
        "~/.cache/go-build": lambda: _clean_go(folder, root),
        "~/.npm": lambda: _remove(*(each for each in folder.iterdir() if each.name != "_cacache")),
    }
    cleaners.get(name, lambda: None)()


def _links(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        yield from (path for each in (*folders, *names) if (path := Path(place, each)).is_symlink())


def _remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            remove_tree(path)
        else:
            path.unlink(missing_ok=True)


def _clean_node(folder: Path) -> None:
    """Remove generated folders, such as .cache, .vite and .prisma."""
    _remove(*(each for each in folder.iterdir() if each.name.startswith(".") and each.name not in NODE_FOLDERS))
    _remove(*(each for each in folder.glob("**/.cache") if each.is_dir()))


def _clean_venv(folder: Path) -> None:
    """Remove packages that pip installed from a local folder instead of an index, such as the service itself."""
    for packages in folder.glob("lib*/python*/site-packages"):
        _remove(*packages.glob("*.egg-link"), *packages.glob("easy-install.pth"))
        urls = packages.glob("*.dist-info/direct_url.json")
        records = [url.parent / "RECORD" for url in urls if '"file://' in url.read_text(encoding="utf-8")]
        # Legacy versions of pip do not record a package's origin, so remove all packages that they installed.
        records += [info / "installed-files.txt" for info in packages.glob("*.egg-info")]
        for record in records:
            place = packages if record.name == "RECORD" else record.parent
            for line in record.read_text(encoding="utf-8").splitlines():
                installed = Path(os.path.normpath(place / line.split(",")[0]))
                if installed.is_relative_to(folder):
                    _remove(installed)
            _remove(record.parent)


def _clean_cargo(folder: Path, root: Path, service_folder: Path) -> None:
    """Keep only build products of packages from a registry or a git repository."""
    places = (each for each in (service_folder, *service_folder.parents) if each.is_relative_to(root))
    lock = next((each / "Cargo.lock" for each in places if (each / "Cargo.lock").is_file()), None)
    if lock is None:
        raise TfbError("there is no Cargo.lock: tfb can cache a target folder only if Cargo created it")
    packages = tomllib.loads(lock.read_text(encoding="utf-8"))["package"]
    own = {each["name"] for each in packages if "source" not in each}
    dependencies = {each["name"] for each in packages} - own
    dependencies |= {name.replace("-", "_") for name in dependencies} - {name.replace("-", "_") for name in own}
    found = {path.parent for path in folder.glob("**/.fingerprint")}
    profiles = {path for path in found if found.isdisjoint(path.parents)}  # skip build scripts' nested profiles
    if not profiles:
        raise TfbError("target has no .fingerprint folder: tfb can cache a target folder only if Cargo created it")
    for profile in profiles:
        _remove(*(each for each in profile.iterdir() if each.name not in CARGO_FOLDERS))
        for kind in CARGO_FOLDERS:
            for each in (profile / kind).iterdir() if (profile / kind).is_dir() else ():
                match = CARGO_HASH.fullmatch(each.name)
                if not match or match[1] not in dependencies:
                    _remove(each)
    parents = {parent for path in profiles for parent in path.parents if parent.is_relative_to(folder)}
    kept = {*profiles, *parents, folder / ".rustc_info.json", *(parent / "CACHEDIR.TAG" for parent in parents)}
    # Remove outputs such as the program. Their recent timestamps would make Cargo skip the build of head's code.
    for parent in parents:
        _remove(*(each for each in parent.iterdir() if each not in kept))


def _clean_maven(folder: Path) -> None:
    """Remove artefacts that ``mvn install`` added. Keep artefacts from a remote repository."""
    for place, _, names in os.walk(folder):
        origin = Path(place, "_remote.repositories")
        lines = origin.read_text(encoding="utf-8").splitlines() if origin.is_file() else []
        origins = [line.partition(">") for line in lines]
        installed = {name for name, _, repository in origins if repository == "="}
        downloaded = {name for name, _, repository in origins} - installed
        for name in names:
            if name not in downloaded and not MAVEN_METADATA.fullmatch(name):
                _remove(Path(place, name))


def _clean_pip(folder: Path) -> None:
    """Remove wheels that were built from a folder. Keep wheels whose recorded origin is a remote URL."""
    for wheel in folder.glob("wheels/**/*.whl"):
        origin = wheel.parent / "origin.json"
        if not origin.is_file() or '"file://' in origin.read_text(encoding="utf-8"):
            _remove(wheel)


def _clean_go(folder: Path, root: Path) -> None:
    """Empty the cache if the repository uses cgo. Go does not detect changes to C files in other folders."""
    files = (Path(place, name) for place, _, names in os.walk(root) for name in names if name.endswith(".go"))
    if any(path.is_file() and CGO.search(path.read_bytes()) for path in files):
        _remove(*folder.iterdir())


# ---- size limit -----------------------------------------------------------------------------------------------------


def cache_sizes() -> list[tuple[Path, float, int]]:
    """Return each cache's path, time of last use, and size in bytes."""
    sizes = []
    with suppress(OSError):
        for store in build_caches_folder().iterdir():
            files = (Path(place, name) for place, _, names in os.walk(store) for name in names)
            sizes.append((store, store.stat().st_mtime, sum(path.lstat().st_size for path in files)))
    return sizes


def _limit_size(parent: Path) -> None:
    """Remove least recently used caches until at most ``MAX_BYTES`` remain. Also remove abandoned temporary folders."""
    total = 0
    for store, used, size in sorted(cache_sizes(), key=lambda each: each[1], reverse=True):
        total += size
        abandoned = store.name.startswith("new-") and time.time() - used > COPY_SECONDS
        if total > MAX_BYTES and not store.name.startswith("new-"):
            removed = parent / f"new-{os.getpid()}-{store.name}"  # no comparison reads it under this name
            store.rename(removed)
            remove_tree_if_possible(removed)
        elif abandoned:
            remove_tree_if_possible(store)
