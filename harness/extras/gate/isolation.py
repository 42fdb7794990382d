"""Protects base from head: separate accounts and homes for builds, and fingerprints of base's files.

If tfb is root, a separate account builds each version and cannot write to the files of the other version. Otherwise,
each side gets an enclosure (``enclosures``), if the machine permits it. In any case, tfb detects changes to base's
files. Without separation, it also detects changes to the programs that base uses.
"""

import hashlib
import os
import site
import stat
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path

import psutil

from harness.errors import TfbError
from harness.extras.gate import enclosures
from harness.extras.gate.above import FolderWatch
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.runtime import ServiceRuntime
from harness.host import accounts
from harness.host.process import Account
from harness.paths import REPOSITORY
from harness.plan.discovery import Implementation
from harness.records.run_info import BuildRecord

OWNERS = {BASE: BASE, COPY: BASE, HEAD: HEAD}  # side -> version (the control copy belongs to base)
KILL_ROUNDS = 10
# Files that servers write. If any other file changes under load, head may have changed it.
DATA_SUFFIXES = (".db", ".sqlite", ".sqlite3", ".log", ".pid", ".lock", ".tmp", "-wal", "-shm", "-journal")
CODE_SUFFIXES = (
    *(".py", ".pth", ".so", ".js", ".mjs", ".cjs", ".json", ".node", ".ts", ".jar", ".class", ".rb", ".php", ".dll"),
    *(".sh", ".lua", ".pl", ".pm", ".toml", ".yaml", ".yml", ".properties", ".xml", ".env"),
)
# Folders of a home that contain programs and libraries for builds. Package managers add files, but do not change them.
LIBRARIES = (".cargo/bin", ".cargo/registry/src", ".m2/repository", ".nuget/packages", ".rustup/toolchains", "go/pkg")
MAX_LIBRARY_FILES = 300_000
# Folders of the user's home that are empty in the home of a build, and folders in which only these entries are visible.
WRITTEN = (".cache", ".npm", ".ivy2", ".sbt", ".gem", ".bundle", ".yarn", ".pnpm-store", ".composer", "go", ".dotnet")
SHOWN = {
    ".cargo": ("bin", "env", "config", "config.toml", "credentials", "credentials.toml"),
    ".m2": ("settings.xml", "settings-security.xml", "toolchains.xml"),
    ".gradle": ("gradle.properties", "init.d", "init.gradle"),
    ".nuget": ("NuGet",),
    ".local": ("bin", "lib"),
    ".config": None,
}


class TamperedError(TfbError):
    """Files of base were changed, so the comparison is invalid; ``by_head``: the build of head changed them."""

    def __init__(self, reason: str, *, by_head: bool) -> None:
        super().__init__(reason)
        self.by_head = by_head


@dataclass(frozen=True)
class Fingerprint:
    """The fingerprint of a file: metadata that every write changes, and a string with the mode and a content hash."""

    metadata: tuple[int, ...]
    content: str


@dataclass(kw_only=True)
class Isolation:
    """The folders and build accounts of the sides, and fingerprints of base taken before the build of head."""

    roots: Mapping[str, Path]  # side -> folder
    homes: Path  # parent folder of the versions' homes
    builders: Mapping[str, Account | None] = field(default_factory=dict)  # version -> account; None: tfb's account
    # Side (base or control copy) -> path -> fingerprint.
    before: dict[str, dict[str, Fingerprint]] = field(default_factory=dict)
    shared: dict[str, tuple[int, ...]] = field(default_factory=dict)
    above: FolderWatch | None = None  # a watch on the parent folders of base, which starts before the build of head
    closed: tuple[Path, ...] = ()  # further folders that no side may write to
    enclosed: Mapping[str, Account] = field(default_factory=dict)  # account by side; empty if there are no enclosures
    note: str = ""  # reason why the versions are not separated, for the report

    def prepare(self, *, separate: bool) -> None:
        """If ``separate``, give each version's files to a separate account. Call this before the first build."""
        self.builders = {version: _builder() if separate else None for version in (BASE, HEAD)}
        for side, root in self.roots.items():
            if account := self.builders[OWNERS[side]]:
                _give(root, account)
        if not separate:
            self.enclosed, why = enclosures.enclosures(self.roots, self.homes.parent, self.closed)
            self.note = enclosures.NOT_SEPARATE.format(why=why) if why else ""

    @property
    def separated(self) -> bool:
        """Return whether head is unable to write to base's files and programs."""
        return bool(self.builders.get(BASE) or self.enclosed)

    def account(self, side: str) -> Account | None:
        """Return the account for a side's build, or None for the account of tfb."""
        return self.enclosed.get(side) or self.builders[OWNERS[side]] or enclosures.unenclosed()

    @property
    def account_names(self) -> str:
        """Return the accounts of both versions, for records."""
        builder = self.builders[HEAD]
        if self.enclosed:
            return f"{accounts.describe_account(None)}, in a mount namespace for each side"
        return (
            accounts.describe_account(None)
            if builder is None
            else f"a uid for each version ({', '.join(builder.rights)})"
        )

    def environment(self, side: str) -> dict[str, str]:
        """Return the variables for a side's build: the version's home, cache and temporary folder."""
        version = OWNERS[side]
        account = self.builders[version]
        if account is None:
            return enclosures.environment(self.enclosed[side]) if self.enclosed else {}
        home = self.homes / version
        if not home.exists():
            _furnish(home)
            _give(home, account)
            home.chmod(0o700)
        return {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "TMPDIR": str(home / "tmp")}

    @contextmanager
    def building(self, side: str) -> Iterator[None]:
        """Guard the build of a side. Raise TamperedError if the build of head changed base or left a process behind."""
        if side != HEAD:
            yield
            return
        self.before = {each: _fingerprints(self.roots[each]) for each in (BASE, COPY)}
        self.shared = {} if self.separated else _shared_programs()
        self.above = FolderWatch(tuple(self.roots[BASE].parents))
        yield
        if account := self.builders[HEAD]:
            _end_processes(account)
        try:
            self._require_unchanged("the build of head", after_load=False)
        except TamperedError as error:
            raise TamperedError(str(error), by_head=True) from None
        # The content is unchanged. From now on, compare metadata too, because a server could change a file and restore
        # it.
        self.before = {each: _fingerprints(self.roots[each]) for each in (BASE, COPY)}

    def look(self) -> None:
        """Record the files that have appeared in parent folders of base."""
        if self.above:
            self.above.made()

    def require_unchanged(self) -> None:
        """Raise TamperedError if files of base changed under load, except for files that servers write."""
        if self.before:
            self._require_unchanged("while both were measured, something", after_load=True)

    def _require_unchanged(self, who: str, *, after_load: bool) -> None:
        for side, before in self.before.items():
            changes = _changes(self.roots[side], before, after_load=after_load, restored=not self.separated)
            if name := next(changes, None):
                which = "base's files" if side == BASE else "files of base's copy"
                raise TamperedError(f"{who} changed {which}: {name}: the two can no longer be compared", by_head=False)
        if new := self.above.made() if self.above else set():
            raise TamperedError(f"{who} made {min(new)}, which base's programs read: remove it", by_head=False)
        if not self.separated and (name := _changed_program(self.shared)):
            raise TamperedError(
                f"{who} changed a program that base uses: {name}: the two can no longer be compared", by_head=False
            )


@dataclass(frozen=True, kw_only=True)
class IsolatedRuntime(ServiceRuntime):
    """A runtime that builds each version under a separate account, and base before head."""

    isolation: Isolation

    @classmethod
    def of(cls, runtime: ServiceRuntime, isolation: Isolation) -> "IsolatedRuntime":
        """Return a copy of a runtime with separate builds."""
        isolation.prepare(separate=runtime.pool is not None)
        known = {each.name: getattr(runtime, each.name) for each in fields(ServiceRuntime)}
        return cls(**known, isolation=isolation)

    @property
    def accounts(self) -> dict[str, str]:
        """Return the accounts of builds and servers by purpose."""
        return {**super().accounts, "builds": self.isolation.account_names}

    def build_as(self, implementation: Implementation) -> tuple[Account | None, dict[str, str]]:
        """Return the account and the variables for the build of a side."""
        return self.isolation.account(implementation.name), self.isolation.environment(implementation.name)

    @contextmanager
    def serve_as(self, implementation: Implementation) -> Iterator[tuple[Account | None, dict[str, str]]]:
        """Lend an account to the server of a side: the account of its enclosure, or an account from the pool."""
        self.isolation.look()
        if self.isolation.enclosed:
            yield self.isolation.account(implementation.name), self.isolation.environment(implementation.name)
            return
        with super().serve_as(implementation) as lent:
            yield lent

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build a side. Raise TamperedError if the build of head changed base."""
        with self.isolation.building(implementation.name):
            return super().build(implementation, log)


# ---- accounts and homes ---------------------------------------------------------------------------------------------


def _builder() -> Account | None:
    """Claim an unused account that may read all files. Return None if tfb is not root."""
    if os.geteuid() != 0:
        return None
    uid = accounts.allocate_uid()
    return Account(name=f"uid {uid}", uid=uid, gid=accounts.server_group(), rights=(accounts.READ_CAPABILITY,))


def _uids(process: psutil.Process) -> tuple[int, ...]:
    with suppress(psutil.Error):
        return tuple(process.uids())
    return ()


def _end_processes(account: Account) -> None:
    """Kill every process of an account; raise TamperedError if a process cannot be killed."""
    for _ in range(KILL_ROUNDS):
        left = [each for each in psutil.process_iter() if account.uid in _uids(each)]
        left = [each for each in left if _runs(each)]
        if not left:
            return
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=1.0)
    raise TamperedError(f"the build of head left processes that could not be ended: {left[0].pid}", by_head=True)


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _give(root: Path, account: Account) -> None:
    """Change the owner of a folder and all files in it, without following links."""
    for place, folders, names in os.walk(root):
        for name in (*folders, *names):
            os.lchown(os.path.join(place, name), account.uid, account.gid)  # noqa: PTH118 - of many files
    os.lchown(root, account.uid, account.gid)


def _furnish(home: Path) -> None:
    """Create a home with empty caches, and with links to toolchains and settings in the user's home."""
    (home / "tmp").mkdir(parents=True)
    with suppress(OSError):  # the user's home may be unreadable
        for entry in Path.home().iterdir():
            if entry.name in WRITTEN or entry.name == "tmp":
                continue
            if entry.name not in SHOWN or not entry.is_dir():
                (home / entry.name).symlink_to(entry)
                continue
            (home / entry.name).mkdir()
            shown = SHOWN[entry.name]
            for child in entry.iterdir():
                if shown is None or child.name in shown:
                    (home / entry.name / child.name).symlink_to(child)


# ---- fingerprints ---------------------------------------------------------------------------------------------------


def _files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and the metadata of every file, link and folder below a folder, without following links."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                yield entry.path, entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))


def _metadata(found: os.stat_result) -> tuple[int, ...]:
    """Return metadata that every write changes, because programs cannot set the ctime."""
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _size(metadata: tuple[int, ...]) -> int:
    """Return the size of a file from its metadata."""
    return metadata[3]


def _content(path: str, found: os.stat_result) -> str:
    """Return the mode with the content hash of a file or the target of a link, or the mode of a folder."""
    mode = f"{found.st_mode:o}"
    try:
        if stat.S_ISLNK(found.st_mode):
            return f"{mode} {os.readlink(path)}"  # noqa: PTH115 - a text
        if stat.S_ISREG(found.st_mode):
            with open(path, "rb") as file:  # noqa: PTH123 - likewise
                return f"{mode} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        return f"{mode} {error.strerror}"
    return mode


def _fingerprints(root: Path) -> dict[str, Fingerprint]:
    return {path: Fingerprint(_metadata(found), _content(path, found)) for path, found in _files(root)}


def _changes(root: Path, before: Mapping[str, Fingerprint], *, after_load: bool, restored: bool) -> Iterator[str]:
    """Yield changed, new and removed paths.

    ``after_load`` skips files that servers write. ``restored`` adds files that were written and have their old content.
    """
    seen = set()
    for path, found in _files(root):
        seen.add(path)
        known, name = before.get(path), os.path.relpath(path, root)
        if known is None:
            if not after_load or _is_code(path, found):
                yield name
        elif known.metadata == _metadata(found) or (after_load and path.endswith(DATA_SUFFIXES)):
            continue
        elif after_load and restored and not stat.S_ISDIR(found.st_mode):
            yield name
        elif _size(known.metadata) != found.st_size and stat.S_ISREG(found.st_mode):
            yield name  # reported without reading the content, which may be very large
        elif known.content != _content(path, found):
            yield name
    yield from (
        os.path.relpath(path, root)
        for path in before.keys() - seen
        if not (after_load and path.endswith(DATA_SUFFIXES))
    )


def _is_code(path: str, found: os.stat_result) -> bool:
    """Return whether a server could load a new file as a program or as configuration."""
    if stat.S_ISDIR(found.st_mode):
        return False
    return stat.S_ISLNK(found.st_mode) or path.endswith(CODE_SUFFIXES) or bool(found.st_mode & 0o111)


def _shared_programs() -> dict[str, tuple[int, ...]]:
    """Return the metadata of programs and libraries outside the sides that this account can replace."""
    found: dict[str, tuple[int, ...]] = {}
    for folder in _writable_program_folders():
        found[folder] = ()
        with suppress(OSError), os.scandir(folder) as entries:
            found |= {entry.path: _metadata(entry.stat()) for entry in entries if entry.is_file()}
    # Tfb itself, because some parts are loaded later.
    own = (REPOSITORY / "harness", Path(sysconfig.get_path("purelib")))
    for library in (*own, *(Path.home() / name for name in LIBRARIES)):
        for path, about in _files(library):
            if len(found) > MAX_LIBRARY_FILES:
                return found
            if stat.S_ISREG(about.st_mode) and (path.endswith(CODE_SUFFIXES) or about.st_mode & 0o111):
                found[path] = _metadata(about)
    return found


def _writable_program_folders() -> list[str]:
    """Return the writable folders on PATH, and the user's folder of Python packages if it is writable."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), site.getusersitepackages()]
    return [folder for folder in dict.fromkeys(folders) if folder.startswith("/") and os.access(folder, os.W_OK)]


def _changed_program(before: Mapping[str, tuple[int, ...]]) -> str:
    """Return the path of a replaced or new program in a shared folder, or an empty string without changes."""
    for path, known in before.items():
        if known:
            try:
                about = os.stat(path)  # noqa: PTH116 - of many files
            except OSError:
                return path
            if known != _metadata(about):
                return path
            continue
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if entry.path not in before and entry.is_file():
                    return entry.path
    return ""
