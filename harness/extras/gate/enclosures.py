"""Separates the sides for an ordinary user: no side can write to files of base, of tfb or of the user.

Each side runs in a user namespace with a read-only view of the machine. The side can read the user's home, but its
changes go to a private layer. Some kernels and containers do not permit user namespaces.
"""

import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import TfbError
from harness.host import ownership, process
from harness.host.process import Account, Enclosure
from harness.paths import REPOSITORY, state_folder

SHARED = ("/dev", "/dev/pts", "/proc", "/tmp", "/var/tmp")  # noqa: S108 - not used here
# Sockets of container engines, which could start programs outside the enclosure.
SOCKETS = ("/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock")
PROBE = 'echo x > "$1/probe" && ! echo x > "$2/probe"'
NOT_SEPARATE = (
    "head could write to base's files; changes are looked for. This machine does not allow what would prevent it (user "
    "namespaces, or an overlay over the home: {why}). If you do not trust head, run tfb as root, or the service in a "
    "container"
)


def enclosures(roots: Mapping[str, Path], place: Path, closed: Sequence[Path]) -> tuple[dict[str, Account], str]:
    """Return an account with an enclosure for each side, or no accounts and the reason.

    Args:
        roots: The folder of each side.
        place: The comparison's scratch folder, which contains the folders of all sides.
        closed: Further folders, anywhere on the machine, to which no side may write.
    """
    uid = os.geteuid()
    if uid == 0:
        return {}, "root may undo every mount of its own"
    found = {side: _account(root, place / "layers" / side, (place, *closed)) for side, root in roots.items()}
    try:
        for side, account in found.items():
            root = roots[side]
            done = process.run(["sh", "-c", PROBE, "sh", str(root), str(place)], seconds=10, account=account)
            (root / "probe").unlink(missing_ok=True)
            if done.status != 0:
                return {}, f"a probe ended with status {done.status}"
    except TfbError as error:
        return {}, str(error)
    return found, ""


def unenclosed() -> Account | None:
    """Return this user's account for builds without an enclosure, or None for root.

    Builds under this account cannot read the memory or the environment of other processes, or gain rights with sudo.
    """
    uid = os.geteuid()
    return Account(name="this user", uid=uid, gid=os.getegid(), isolated=True) if uid else None


def environment(account: Account) -> dict[str, str]:
    """Return variables that make the programs of a side use the private temporary folder."""
    return {"TMPDIR": str(account.enclosure.overlay / "tmp")} if account.enclosure else {}


def _account(root: Path, layer: Path, closed: Sequence[Path]) -> Account:
    """Return this user's account with an enclosure for the side in ``root``."""
    for name in ("changes", "work", "empty", "tmp"):
        (layer / name).mkdir(parents=True)
    temporary = Path(tempfile.gettempdir()).resolve()
    shared = {path.resolve() for path in (*map(Path, SHARED), temporary) if path.is_dir()}
    others = [path.resolve() for path in temporary.glob(f"{ownership.SCRATCH_PREFIX}*") if _is_own_folder(path)]
    known = [path.resolve() for path in (REPOSITORY, state_folder(), Path.cwd(), *closed) if path.is_dir()]
    within = {path for path in (*others, *known) if any(folder in path.parents for folder in shared)}
    hidden = [path for path in (*map(Path, SOCKETS), Path(f"/run/user/{os.geteuid()}")) if path.exists()]
    return Account(
        name="this user, in a mount namespace",
        uid=os.geteuid(),
        gid=os.getegid(),
        enclosure=Enclosure(
            writable=tuple(sorted(shared)),
            protected=tuple(sorted(within - shared)),  # all other folders are read-only anyway
            private=(root, layer / "tmp"),
            home=_home(),
            overlay=layer,
            hidden=tuple(hidden),
        ),
    )


def _is_own_folder(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:  # the owner has removed it
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _home() -> Path | None:
    """Return the user's home if it is writable, or None if there is no home to protect."""
    try:
        home = Path.home().resolve()
    except RuntimeError:
        return None
    return home if home.is_dir() and home != Path("/") and os.access(home, os.W_OK) else None
