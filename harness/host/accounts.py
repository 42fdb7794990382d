"""As whom servers run where the harness is root: as no one in particular. Builds run as root."""

import os
import pwd
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.host import ownership, process
from harness.host.process import Account

# systemd's range for services that have no account of their own: nobody's files belong to these numbers.
UIDS = range(61184, 65520)
READS = "dac_read_search"  # reads and enters what root may: toolchains and builds lie in root's folders
CACHE = ".cache"  # of a home: a server's own, never root's


def of_servers(port: int | None) -> Account | None:
    """The account of servers that listen on this port: no one's, whose only right is to read; None where not root."""
    if os.geteuid() != 0:
        return None
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    # Another number for each harness: servers of one run must not reach another's.
    first = os.getpid() % len(UIDS)
    uid = next(number for number in (*UIDS[first:], *UIDS[:first]) if number not in taken)
    rights = (READS, "net_bind_service") if port is not None and port < 1024 else (READS,)
    return Account(name=f"uid {uid}", uid=uid, gid=uid, rights=rights)


def name_of(account: Account | None) -> str:
    """As records name it; None is that of the harness."""
    if account is not None:
        return f"{account.name} ({', '.join(account.rights)})"
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


@contextmanager
def home(account: Account | None) -> Iterator[dict[str, str]]:
    """What a server of such an account has as its home, as its variables name it: a folder of its own.

    It shows what root's home holds, where toolchains look for what root installed, and may be written to: GraalVM's
    languages unpack their libraries there, and would be interpreted if they could not.
    """
    if account is None:
        yield {}
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


def obstacle() -> str:
    """Why this root can give no server such an account (a container's often cannot); empty where it can."""
    if shutil.which("setpriv") is None:
        return "setpriv is missing (package util-linux)"
    done = process.run(["true"], seconds=10, account=Account(name="", uid=UIDS[0], gid=UIDS[0], rights=(READS,)))
    return "" if done.status == 0 else f"setpriv: {done.stdout.strip()[:200]}"
