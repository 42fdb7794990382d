"""As whom builds and servers run when the harness is root: servers as no one in particular, builds as root."""

import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import EnvironmentLacksError
from harness.host import ownership, process
from harness.host.process import Account

ROOT = "root"
# systemd's range for services that have no account of their own: nobody's files belong to these numbers.
UIDS = range(61184, 65520)
READS = "dac_read_search"  # reads and enters what root may: toolchains and builds lie in root's folders
BINDS = "net_bind_service"  # a port below 1024 that was asked for
# What root must be able to do beside: become another, keep a right, and read what /proc shows of that server.
NEEDED = {"kill": 5, "setgid": 6, "setuid": 7, "setpcap": 8, "net_bind_service": 10, "sys_ptrace": 19, READS: 2}
CACHE = ".cache"  # of a home: a server's own, never root's


def of_servers(asked: str | None, port: int | None) -> tuple[Account | None, str]:
    """The account of servers, and what to say where it is not the default one.

    ``asked`` is --server-user. Nobody but root can choose; root's default is an account of no one, whose only right is
    to read. Where this root lacks the rights for that (a container's often does), servers run as root, and it is said.
    """
    if asked == ROOT and os.geteuid() == 0:
        return None, ""
    if asked:
        return named(asked), ""
    if os.geteuid() != 0:
        return None, ""
    if why := obstacle():
        return None, f"servers run as root: {why}; --server-user NAME gives them an account, root says it is meant"
    uid = _free_uid()
    rights = (READS, BINDS) if port is not None and port < 1024 else (READS,)
    return Account(name=f"uid {uid}", uid=uid, gid=uid, rights=rights), ""


def named(name: str) -> Account:
    """The account of this name; raises EnvironmentLacksError where there is none, or no right to become it."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError as error:
        raise EnvironmentLacksError(f"there is no account {name!r} on this machine: useradd makes one") from error
    if os.geteuid() not in (0, entry.pw_uid):
        raise EnvironmentLacksError(f"only root can run programs as {name!r}")
    return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid)


def name_of(account: Account | None) -> str:
    """As records name it; None is that of the harness."""
    if account is not None:
        return f"{account.name} ({', '.join(account.rights)})" if account.rights else account.name
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


@contextmanager
def home(account: Account | None) -> Iterator[dict[str, str]]:
    """What a server of an account of no one has as its home, as its variables name it: a folder of its own.

    It shows what root's home holds, where toolchains look for what root installed, and may be written to: GraalVM's
    languages unpack their libraries there, and would be interpreted if they could not.
    """
    if account is None or not account.rights:
        yield home_of(account)
        return
    with ownership.scratch("home") as folder:
        folder.chmod(0o711)  # entered without a right of root's: GraalVM asks for the way to its files without it
        own = folder / "home"
        (own / CACHE).mkdir(parents=True)
        for path in (own, own / CACHE):
            path.chmod(0o700)
            os.chown(path, account.uid, account.gid)
        with suppress(OSError):  # no home, or one that cannot be read, has nothing to show
            for entry in Path.home().iterdir():
                if entry.name != CACHE:
                    (own / entry.name).symlink_to(entry)
        yield {"HOME": str(own), "XDG_CACHE_HOME": str(own / CACHE)}


def home_of(account: Account | None) -> dict[str, str]:
    """The variables that say whose home it is, for an account that somebody has: with root's it may not enter its own.

    Maven, npm, cargo and Go keep what they fetch there. Empty where the account is that of the harness.
    """
    if account is None or account.uid == os.geteuid():
        return {}
    entry = pwd.getpwuid(account.uid)
    return {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}


def of_builds(asked: str | None) -> tuple[Account | None, str]:
    """The account of builds, and what to say where that is root's.

    Builds write to the implementation's folder and to the caches of Maven, npm, cargo and Go, which are root's.
    """
    if asked and asked != ROOT:
        return named(asked), ""
    if asked or os.geteuid() != 0:
        return None, ""
    return None, "builds run as root: what an implementation's folder holds may do anything here"


def obstacle() -> str:
    """Why no server can be given an account of no one here; empty where one can."""
    if shutil.which("setpriv") is None:
        return "setpriv is missing (package util-linux)"
    rights = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    has = int(rights["CapEff"], 16) & int(rights["CapBnd"], 16)
    if lacks := [name for name, number in NEEDED.items() if not has >> number & 1]:
        return f"this root lacks the capabilities {', '.join(lacks)}"
    uid = UIDS[0]
    probe = process.prefix(Account(name=f"uid {uid}", uid=uid, gid=uid, rights=(READS,)))
    done = process.run([*probe, "true"], seconds=10)
    return "" if done.status == 0 else f"setpriv: {done.stdout.strip()[:200]}"


def _free_uid() -> int:
    """A number that no account has, another one for each harness: servers of one run must not reach another's."""
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    first = os.getpid() % len(UIDS)
    return next(int(uid) for uid in (*UIDS[first:], *UIDS[:first]) if uid not in taken)
