"""Isolates the sides (base, control copy and head) from each other if tfb does not run as root.

Each side runs in an enclosure: a user namespace with a read-only view of the machine. No side can change files that
belong to a different side, to tfb or to the user. A side can read the user's home, but its writes go to a private
overlay. tfb cannot isolate the sides on kernels and in containers that do not permit user namespaces.
"""

import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import TfbError
from harness.host import machine, ownership, process
from harness.host.process import Account, Enclosure, PrivateTemporary
from harness.paths import REPOSITORY, state_folder

SHARED = ("/dev", "/dev/pts", "/proc")
TEMPORARY = ("/tmp", "/var/tmp", "/run/lock")  # noqa: S108 - not used here
# Sockets of container engines, through which a side could start programs outside the enclosure.
SOCKETS = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock")
PROBE_FILE = ".tfb-probe"
PROBE = f'echo x > "$1/{PROBE_FILE}" && ! echo x > "$2/{PROBE_FILE}"'
NOT_SEPARATE = (
    "head could write to base's files, because tfb cannot isolate the sides on this machine ({why}). tfb can detect "
    "changes only afterwards. If you do not trust head, run tfb as root, or run the service in a container"
)
SHARED_TEMPORARY = (
    "the sides share /tmp, because this machine does not permit private temporary folders ({why}). Files with fixed "
    "names in /tmp can collide. Each side has its own TMPDIR"
)


def enclosures(roots: Mapping[str, Path], scratch: Path, read_only: Sequence[Path]) -> tuple[dict[str, Account], str]:
    """Return an account with an enclosure for each side, and an empty string.

    If enclosures do not work, return an empty dictionary and the reason.

    ``scratch`` is the folder that contains all sides. ``read_only`` lists additional folders that no side may write to.
    """
    uid = os.geteuid()
    if uid == 0:
        return {}, "sides that run as root could undo read-only mounts"
    reason = ""
    for private in (True, False):  # some kernels do not permit private temporary folders
        accounts = {
            side: _account(root, scratch / "layers" / side, (scratch, *read_only), private)
            for side, root in roots.items()
        }
        if not (reason := _probe(accounts, roots, scratch)):
            return accounts, ""
    return {}, reason


def _probe(accounts: Mapping[str, Account], roots: Mapping[str, Path], scratch: Path) -> str:
    """Return why an enclosure fails to start a program or to protect files, or "" if all enclosures work."""
    try:
        for side, account in accounts.items():
            root = roots[side]
            completed = process.run(["sh", "-c", PROBE, "sh", str(root), str(scratch)], seconds=10, account=account)
            (root / PROBE_FILE).unlink(missing_ok=True)
            if completed.status != 0:
                return f"the write protection test exited with status {completed.status}"
    except TfbError as error:
        return str(error)
    return ""


def with_private_temporary(accounts: Mapping[str, Account], homes: Path) -> tuple[Mapping[str, Account], str]:
    """Give each account private temporary folders.

    Return the new accounts and an empty string. If the folders cannot be mounted, return the original accounts and the
    reason. ``homes`` is the parent folder of the sides' homes, in the comparison's scratch folder.
    """
    place = homes.parent
    private_accounts = {}
    for side, account in accounts.items():
        (staging := place / "layers" / side).mkdir(parents=True)
        temporary = PrivateTemporary(covered=_temporary_folders(), shared=(place,), staging=staging, home=homes / side)
        private_accounts[side] = replace(account, temporary=temporary)
    try:
        for account in private_accounts.values():
            process.run(["true"], seconds=10, account=account)
    except TfbError as error:  # for example in a container that may not mount file systems
        return accounts, str(error)
    return private_accounts, ""


def _temporary_folders() -> tuple[Path, ...]:
    """Return the world-writable temporary folders."""
    folders = {Path(name).resolve() for name in (*TEMPORARY, tempfile.gettempdir())}
    return tuple(sorted(path for path in folders if path.is_dir() and path.stat().st_mode & stat.S_IWOTH))


def unenclosed() -> Account | None:
    """Return this user's account for sides without an enclosure, or None if tfb runs as root.

    Programs under this account cannot use sudo, and cannot read the memory or environment of other processes.
    """
    uid = os.geteuid()
    if not uid:
        return None
    return Account(name="this user", uid=uid, gid=os.getegid(), isolated=True, open_files=machine.CALLER_OPEN_FILES)


def environment(account: Account) -> dict[str, str]:
    """Return environment variables that direct a side's programs to the private temporary folder."""
    return {"TMPDIR": str(account.enclosure.overlay / "tmp")} if account.enclosure else {}


def _account(root: Path, layer: Path, read_only: Sequence[Path], private: bool) -> Account:
    """Return this user's account with an enclosure for the side in ``root``.

    If ``private`` is set, the enclosure has private temporary folders.
    """
    for name in ("changes", "work", "empty", "tmp", "temporary"):
        (layer / name).mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.gettempdir()).resolve()
    covered = _temporary_folders() if private else ()
    shared_folders = {path.resolve() for path in (*map(Path, (*SHARED, *TEMPORARY)), temporary) if path.is_dir()}
    others = [path.resolve() for path in temporary.glob(f"{ownership.SCRATCH_PREFIX}*") if _is_own_folder(path)]
    known = [path.resolve() for path in (REPOSITORY, state_folder(), Path.cwd(), *read_only) if path.is_dir()]
    nested = {path for path in (*others, *known) if any(folder in path.parents for folder in shared_folders)}
    hidden = [path for path in (*map(Path, SOCKETS), Path(f"/run/user/{os.geteuid()}")) if path.exists()]
    return Account(
        name="this user, in a mount namespace",
        uid=os.geteuid(),
        gid=os.getegid(),
        open_files=machine.CALLER_OPEN_FILES,
        enclosure=Enclosure(
            writable=tuple(sorted(shared_folders - {*covered})),
            covered=covered,
            protected=tuple(sorted(nested - shared_folders)),  # all other folders are read-only anyway
            private=(root, layer / "tmp"),
            home=_home(),
            overlay=layer,
            hidden=tuple(hidden),
        ),
    )


def _is_own_folder(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:  # removed in the meantime
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _home() -> Path | None:
    """Return the user's home if it is a writable folder other than /, otherwise None."""
    try:
        home = Path.home().resolve()
    except RuntimeError:
        return None
    return home if home.is_dir() and home != Path("/") and os.access(home, os.W_OK) else None
