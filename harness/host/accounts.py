"""Allocates a uid for each implementation if tfb runs as root, so that servers cannot signal or trace each other."""

import atexit
import fcntl
import grp
import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path

from harness.errors import EnvironmentLacksError
from harness.host import ownership, process
from harness.host.process import Account
from harness.paths import state_folder

# Uids that systemd leaves unassigned, between the ranges for systemd-homed and for dynamic users.
SERVER_UIDS = range(60578, 61184)
LOCK_FOLDER = Path("/run/tfb")  # one locked file per allocated uid; the file names the tfb process that owns the uid
READ_CAPABILITY = "dac_read_search"  # lets servers read toolchains and builds in root's folders
CACHE_FOLDER = ".cache"  # the only entry in a server's home folder that is not a link into root's home


class AccountPool:
    """The accounts of a run's servers. Each implementation keeps its uid, and thus access to its earlier files."""

    def __init__(self, rights: tuple[str, ...]) -> None:
        self.rights = rights
        self._accounts: dict[str, list[Account]] = {}
        self._used = set[int]()

    @contextmanager
    def account(self, name: str) -> Iterator[Account]:
        """Yield an account for a server of the implementation ``name``. Concurrent servers get different accounts."""
        accounts = self._accounts.setdefault(name, [])
        account = next((each for each in accounts if each.uid not in self._used), None)
        if account is None:
            uid = allocate_uid()
            account = Account(name=f"uid {uid}", uid=uid, gid=server_group(), rights=self.rights, has_own_uid=True)
            accounts.append(account)
        self._used.add(account.uid)
        try:
            yield account
        finally:
            self._used.discard(account.uid)


def server_accounts(port: int | None) -> AccountPool | None:
    """Return a pool of accounts for servers that listen on ``port``, or None if tfb is not root.

    Accounts for a port below 1024 may bind privileged ports.
    """
    if os.geteuid() != 0:
        return None
    return AccountPool(
        (READ_CAPABILITY, "net_bind_service") if port is not None and port < 1024 else (READ_CAPABILITY,)
    )


@cache
def server_group() -> int:
    """Return the id of the group that this tfb process and its servers use to share scratch folders."""
    return allocate_uid()


def allocate_uid() -> int:
    """Reserve an unused uid until this process exits. Raises EnvironmentLacksError if all uids are in use."""
    busy = _uids_of_processes()
    first = os.getpid() % len(SERVER_UIDS)
    for uid in chain(SERVER_UIDS[first:], SERVER_UIDS[:first]):
        if uid not in busy and not _is_assigned(uid) and _try_lock(uid):
            return uid
    raise EnvironmentLacksError(
        f"all uids from {SERVER_UIDS[0]} to {SERVER_UIDS[-1]} are in use: run ./tfb clean --leftovers"
    )


def allocated_uids() -> Iterator[tuple[int, str]]:
    """Yield (uid, identity of the owning tfb process) for each allocated uid, even if the owner was killed."""
    for folder in _lock_folders():
        with suppress(OSError):
            for file in sorted(folder.iterdir()):
                if file.name.isdecimal() and int(file.name) in SERVER_UIDS and not _is_assigned(int(file.name)):
                    yield int(file.name), file.read_text(encoding="ascii", errors="replace").strip()


def release_uid(uid: int, owner: str) -> None:
    """Release a uid that ``owner``, a killed tfb process, had allocated."""
    for folder in _lock_folders():
        with suppress(OSError), open(folder / str(uid), "r+", encoding="ascii") as file:  # noqa: PTH123
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.read().strip() == owner:
                file.truncate(0)


def _lock_folders() -> tuple[Path, ...]:
    return (LOCK_FOLDER, state_folder() / "uids")  # the second folder is for machines on which /run is not writable


def _try_lock(uid: int) -> bool:
    """Lock a uid's file and write this process's identity to it. Return whether the uid was free."""
    file = os.open(_lock_folder() / str(uid), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    if os.fstat(file).st_size:  # a killed run's processes may still be using this uid; `tfb clean` releases it
        os.close(file)
        return False
    os.ftruncate(file, 0)
    os.write(file, ownership.own_identity().encode())
    atexit.register(os.ftruncate, file, 0)  # empty the file at exit; it stays locked until then
    return True


@cache
def _lock_folder() -> Path:
    for folder in _lock_folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
            if status.st_uid == os.geteuid() and status.st_mode & 0o170077 == 0o040000:
                return folder
    raise EnvironmentLacksError(
        f"cannot record servers' uids: {LOCK_FOLDER} must be root's folder with mode 0700. Remove it and run again"
    )


def _is_assigned(number: int) -> bool:
    """Return whether a user or group with this id exists."""
    for lookup in (pwd.getpwuid, grp.getgrgid):
        with suppress(KeyError):
            lookup(number)
            return True
    return False


def _uids_of_processes() -> set[int]:
    uids = set[int]()
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            lines = status.read_text(encoding="utf-8", errors="replace").splitlines()
            ids = [line.split()[1:] for line in lines if line.startswith(("Uid:", "Gid:"))]
            uids |= {int(number) for numbers in ids for number in numbers}
    return uids


def describe_account(pool: AccountPool | None) -> str:
    """Describe, for run.json, the accounts in a pool or, without a pool, tfb's account."""
    if pool is not None:
        return f"a uid for each implementation ({', '.join(pool.rights)})"
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def share_folder(folder: Path, *, list_content: bool = True) -> None:
    """Let servers enter a scratch folder that root owns. If ``list_content`` is set, also let them list its entries."""
    if os.geteuid() == 0:
        with suppress(OSError):  # some containers forbid this; servers then run as root and can enter anyway
            os.chown(folder, -1, server_group())
            folder.chmod(0o750 if list_content else 0o710)


@contextmanager
def server_home(account: Account | None) -> Iterator[dict[str, str]]:
    """Create a home folder for a server's account and yield environment variables that point to it.

    The folder contains links to the entries of root's home, where toolchains look for installed files. The new
    folder is writable, because the compilers of GraalVM languages unpack their libraries into it.
    """
    if account is None:
        yield {}
        return
    with ownership.make_scratch_folder("home") as folder:
        # GraalVM must be able to enter without CAP_DAC_READ_SEARCH, so grant access through the group.
        share_folder(folder, list_content=False)
        home = folder / "home"
        (home / CACHE_FOLDER).mkdir(parents=True)
        with suppress(OSError):  # root's home is missing or unreadable
            for entry in Path.home().iterdir():
                if entry.name != CACHE_FOLDER:
                    (home / entry.name).symlink_to(entry)
        for path in (home / CACHE_FOLDER, home):  # when the content is complete, hand it over to the account
            path.chmod(0o700)
            os.chown(path, account.uid, account.gid)
        yield {"HOME": str(home), "XDG_CACHE_HOME": str(home / CACHE_FOLDER)}


def account_obstacle() -> str:
    """Return why servers cannot have separate accounts (some containers forbid them), or "" if they can."""
    try:
        process.run(
            ["true"],
            seconds=10,
            account=Account(name="", uid=SERVER_UIDS[0], gid=SERVER_UIDS[0], rights=(READ_CAPABILITY,)),
        )
        server_group()
    except EnvironmentLacksError as error:
        return str(error)
    return ""
