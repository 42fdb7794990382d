"""Isolates the sides (base, control copy and head), so that head cannot tamper with base.

If tfb runs as root, each side has a separate account, which owns the side's folder and home. Otherwise, each side gets
an enclosure (see ``enclosures``), if the machine permits it. tfb always detects changes to base's files. If it cannot
isolate the sides, it also detects changes to the programs that base uses.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, fields
from pathlib import Path

import psutil

from harness.errors import ServerDiedError, StartError, TfbError
from harness.extras.gate import enclosures
from harness.extras.gate.build_caches import BuildCaches
from harness.extras.gate.collisions import CollisionWatch, explain_failure
from harness.extras.gate.fingerprints import (
    OVERFLOWED,
    Fingerprint,
    FolderWatch,
    changed_paths,
    changed_program,
    fingerprints,
    shared_programs,
)
from harness.extras.gate.paired import BASE, COPY, HEAD
from harness.extras.gate.runtime import ServiceRuntime
from harness.extras.gate.socket_folders import SocketFolder, show_sockets
from harness.host import accounts, machine, process
from harness.host.child_setup import STABLE_HOME
from harness.host.process import Account
from harness.plan.implementation import Implementation
from harness.records.run_info import BuildRecord
from harness.runtime import DatabaseAddress, Server

# A side's home links to the entries of the user's home, except for the caches in WRITTEN. For a folder in LINKED, it
# contains a new folder with links to the listed entries (None: all entries).
WRITTEN = (".cache", ".npm", ".ivy2", ".sbt", ".gem", ".bundle", ".yarn", ".pnpm-store", ".composer", "go", ".dotnet")
LINKED = {
    ".cargo": ("bin", "env", "config", "config.toml", "credentials", "credentials.toml"),
    ".m2": ("settings.xml", "settings-security.xml", "toolchains.xml"),
    ".gradle": ("gradle.properties", "init.d", "init.gradle"),
    ".nuget": ("NuGet",),
    ".local": ("bin", "lib"),
    ".config": None,
}


class TamperedError(TfbError):
    """A change to base's files or programs that invalidates the comparison. ``by_head`` is set if head caused it."""

    def __init__(self, reason: str, *, by_head: bool) -> None:
        super().__init__(reason)
        self.by_head = by_head


@dataclass(kw_only=True)
class Isolation:
    """The sides' folders and accounts, and base's fingerprints from before head's build."""

    roots: Mapping[str, Path]  # side -> root folder of the side's copy of the repository
    homes: Path  # parent folder of the sides' homes
    owners: Mapping[str, Account] = field(default_factory=dict)  # account by side; empty if tfb is not root
    # Side (base or control copy) -> path -> fingerprint.
    before: dict[str, dict[str, Fingerprint]] = field(default_factory=dict)
    # Path -> metadata of programs that the sides share, from before head's build; empty if the sides are separated.
    shared_programs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    above: FolderWatch | None = None  # starts watching base's parent folders before head's build
    protected: tuple[Path, ...] = ()  # additional folders that no side may write to
    enclosed: Mapping[str, Account] = field(default_factory=dict)  # account by side; empty if there are no enclosures
    # Side -> private folder of the side's socket, if the socket's path is absolute.
    sockets: Mapping[str, SocketFolder] = field(default_factory=dict)
    note: str = ""  # report line that explains why the sides are not fully separated
    caches: BuildCaches | None = None

    def prepare(self, *, separate: bool) -> None:
        """Prepare the sides' homes and accounts. Call this before the first build.

        If ``separate`` is set, create an account for each side, and make it the owner of the side's files.
        """
        if separate:
            own = {side: _own_account() for side in self.roots}
            self.owners, why = enclosures.with_private_temporary(own, self.homes)
            self.note = enclosures.SHARED_TEMPORARY.format(why=why) if why else ""
            self.owners = show_sockets(self.sockets, self.owners)
        else:
            self.enclosed, why = enclosures.enclosures(self.roots, self.homes.parent, self.protected)
            self.enclosed = show_sockets(self.sockets, self.enclosed)
            self.note = enclosures.NOT_SEPARATE.format(why=why) if why else ""
        for side in self.roots:
            if side not in self.enclosed:
                _create_home(self.homes / side)
        if self.caches:
            self.caches.restore(None if self.enclosed else self.homes)
        for side, root in self.roots.items():
            if account := self.owners.get(side):
                for folder in (root, self.homes / side):
                    _change_owner(folder, account)
        if separate:
            accounts.share_folder(self.homes, list_content=False)

    @property
    def notes(self) -> list[str]:
        """Return the report's notes about the sides' separation and the build caches."""
        return [note for note in (self.note, self.caches.note if self.caches else "") if note]

    @property
    def separated(self) -> bool:
        """Return whether head cannot write to base's files and programs."""
        return bool(self.owners or self.enclosed)

    def account(self, side: str) -> Account | None:
        """Return the account that builds and runs a side, or None for tfb's account."""
        return self.enclosed.get(side) or self.owners.get(side) or enclosures.unenclosed()

    @property
    def account_names(self) -> str:
        """Describe the sides' accounts for the records."""
        if self.owners:
            return f"a separate uid for each side, with the capability {accounts.READ_CAPABILITY}"
        own = accounts.describe_account(None)
        return f"{own}, in a mount namespace for each side" if self.enclosed else own

    def environment(self, side: str) -> dict[str, str]:
        """Return the environment variables for a side's home, cache and temporary folder."""
        if self.enclosed:
            return enclosures.environment(self.enclosed[side])
        home, owner = self.homes / side, self.owners.get(side)
        variables = {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "TMPDIR": str(home / "tmp")}
        if owner and owner.temporary and Path(STABLE_HOME).parent in owner.temporary.covered:
            variables["CARGO_HOME"] = f"{STABLE_HOME}/.cargo"  # Cargo compiles crates again if their path has changed
        elif "CARGO_HOME" in os.environ:  # the user's folder, which the sides must not share
            variables["CARGO_HOME"] = str(home / ".cargo")
        return variables

    def keep_caches(self) -> None:
        """Copy dependencies from base's build to the cache and to the other sides."""
        if self.caches is None:
            return
        homes = None if self.enclosed else self.homes
        self.caches.keep(homes)
        shared = list(self.caches.share(homes))
        for side, account in self.owners.items():
            if side != BASE:
                # Include the home, because a failed copy may have created folders in it.
                for folder in (self.homes / side, *(path for each, path in shared if each == side)):
                    _change_owner(folder, account)

    @contextmanager
    def building(self, side: str) -> Iterator[None]:
        """Wrap the build of a side. After head's build, check that base is unchanged.

        Raises TamperedError if head's build changed base, or left processes that tfb cannot kill.
        """
        if side != HEAD:
            yield
            return
        self.before = {each: fingerprints(self.roots[each]) for each in (BASE, COPY)}
        self.shared_programs = {} if self.separated else shared_programs()
        self.above = FolderWatch(tuple(self.roots[BASE].parents))
        yield
        if account := self.owners.get(HEAD):
            _end_processes(account)
        self._require_unchanged("head's build", after_load=False)
        # The content is unchanged, but the metadata may have changed. Take new fingerprints, because from now on the
        # metadata reveals whether a server changes a file and restores it.
        self.before = {each: fingerprints(self.roots[each]) for each in (BASE, COPY)}

    def look(self) -> None:
        """Record new files in base's parent folders."""
        if self.above:
            self.above.created_paths()

    def require_unchanged(self) -> None:
        """Raise TamperedError if base's files changed under load. Ignore files that servers normally write."""
        if self.before:
            self._require_unchanged("while base and head were measured, a program", after_load=True)

    def _require_unchanged(self, program: str, *, after_load: bool) -> None:
        for side, before in self.before.items():
            changes = changed_paths(self.roots[side], before, after_load=after_load, separated=self.separated)
            if name := next(changes, None):
                which = "base's files" if side == BASE else "the control copy's files"
                raise TamperedError(
                    f"{program} changed {which}: {name}, so the sides cannot be compared", by_head=not after_load
                )
        period = "while the sides were measured" if after_load else "while head was built"
        if new := self.above.created_paths() if self.above else set():
            raise TamperedError(
                f"a program on this machine created {OVERFLOWED} {period}: compare again when no program creates files"
                if OVERFLOWED in new
                else f"a program on this machine created {min(new)} {period}, and base's programs read it: remove it, "
                "and compare again",
                by_head=False,
            )
        if not self.separated and (name := changed_program(self.shared_programs)):
            raise TamperedError(
                f"a program on this machine, such as a package manager or head, changed {name} {period}, and base may "
                "use it, so the sides cannot be compared: compare again when nothing is being installed",
                by_head=False,
            )


@dataclass(frozen=True, kw_only=True)
class IsolatedRuntime(ServiceRuntime):
    """A runtime that isolates the sides, checks base after head's build, and explains why a side fails."""

    isolation: Isolation
    watch: CollisionWatch = field(default_factory=CollisionWatch)

    @classmethod
    def of(cls, runtime: ServiceRuntime, isolation: Isolation) -> "IsolatedRuntime":
        """Return a runtime like ``runtime`` that isolates the sides."""
        isolation.prepare(separate=runtime.pool is not None)
        known = {each.name: getattr(runtime, each.name) for each in fields(ServiceRuntime)}
        return cls(**known, isolation=isolation)

    @property
    def accounts(self) -> dict[str, str]:
        """Describe the accounts that run builds and servers, for the records."""
        return dict.fromkeys(("builds", "servers"), self.isolation.account_names)

    def socket_place(self, implementation: Implementation) -> tuple[Path, str]:
        """Return the folder that contains a side's Unix socket, and the socket's path relative to this folder."""
        folder = self.isolation.sockets.get(implementation.name)
        return (folder.own, folder.name) if folder else super().socket_place(implementation)

    def build_as(self, implementation: Implementation) -> tuple[Account | None, dict[str, str]]:
        """Return a side's account, and the environment variables for the build."""
        service, _ = self.services[implementation.name]
        own = self.isolation.environment(implementation.name)
        return self.isolation.account(implementation.name), own | service.env | service.build_env

    @contextmanager
    def serve_as(self, implementation: Implementation) -> Iterator[tuple[Account | None, dict[str, str]]]:
        """Yield a side's account, and the environment variables for the server."""
        self.isolation.look()
        yield self.isolation.account(implementation.name), self.isolation.environment(implementation.name)

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build a side. Raise TamperedError if head's build changed base."""
        with self.isolation.building(implementation.name):
            record = super().build(implementation, log)
        if record.status == "ok":
            if implementation.name == BASE:
                self.isolation.keep_caches()
            return record
        return record.model_copy(update={"reason": record.reason + self._cause(implementation, log)})

    @contextmanager
    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> Iterator[Server]:
        """Start a side. If the start fails because of the side's account or folder, add the cause to the error."""
        with ExitStack() as stack:
            stack.callback(self.watch.up.pop, implementation.name, None)
            self.watch.look()
            try:
                server = stack.enter_context(super().start(implementation, database, log, ready_path=ready_path))
            except (StartError, ServerDiedError) as error:
                self.watch.look()
                self.watch.find_owners(log, {side: account.uid for side, account in self.isolation.owners.items()})
                raise type(error)(f"{error}{self._cause(implementation, log)}") from error
            self.watch.up[implementation.name] = server
            yield server
            self.watch.look()

    def _cause(self, implementation: Implementation, log: Path) -> str:
        """Return a line that explains a failed build or start, or an empty string if the cause is unknown."""
        service, _ = self.services[implementation.name]
        if not service.start:
            return ""
        account = self.isolation.account(implementation.name)
        name = account.name if account else accounts.describe_account(None)
        cause = explain_failure(process.tail(log), implementation.folder, name)
        return f"\n{cause}" if cause else ""


# ---- accounts and homes ---------------------------------------------------------------------------------------------


def _own_account() -> Account:
    """Allocate an unused account that may read all files."""
    return Account(
        name=f"uid {(uid := accounts.allocate_uid())}",
        uid=uid,
        gid=accounts.server_group(),
        rights=(accounts.READ_CAPABILITY,),
        has_own_uid=True,
        open_files=machine.CALLER_OPEN_FILES,
    )


def _uids(running: psutil.Process) -> tuple[int, ...]:
    with suppress(psutil.Error):
        return tuple(running.uids())
    return ()


def _end_processes(account: Account) -> None:
    """Kill every process of an account. Raise TamperedError if a process survives."""
    for _ in range(10):
        processes = [each for each in psutil.process_iter() if account.uid in _uids(each)]
        processes = [each for each in processes if _runs(each)]
        if not processes:
            return
        for each in processes:
            with suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(processes, timeout=1.0)
    raise TamperedError(f"head's build left processes that could not be stopped: {processes[0].pid}", by_head=True)


def _runs(running: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(running.status() != psutil.STATUS_ZOMBIE)
    return False


def _change_owner(root: Path, account: Account) -> None:
    """Change the owner of a folder and all files in it, without following links."""
    for place, folders, names in os.walk(root):
        for name in (*folders, *names):
            os.lchown(os.path.join(place, name), account.uid, account.gid)  # noqa: PTH118 - faster for many files
    os.lchown(root, account.uid, account.gid)


def _create_home(home: Path) -> None:
    """Create a private home with empty caches, and with links to toolchains and settings in the user's home."""
    (home / "tmp").mkdir(parents=True)
    home.chmod(0o700)
    with suppress(OSError):  # the user's home may be unreadable
        for entry in Path.home().iterdir():
            if entry.name in WRITTEN or entry.name == "tmp":
                continue
            if entry.name not in LINKED or not entry.is_dir():
                (home / entry.name).symlink_to(entry)
                continue
            if entry.name != ".cargo":
                _link_entries(entry, home / entry.name)
    with suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        cargo = os.environ.get("CARGO_HOME", "")
        _link_entries(Path(cargo) if cargo.startswith("/") else Path.home() / ".cargo", home / ".cargo")


def _link_entries(folder: Path, place: Path) -> None:
    """If ``folder`` exists, create ``place`` with links to those entries of ``folder`` that LINKED lists."""
    linked = LINKED[place.name]
    if os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises PermissionError
        place.mkdir()
        for child in folder.iterdir():
            if linked is None or child.name in linked:
                (place / child.name).symlink_to(child)
