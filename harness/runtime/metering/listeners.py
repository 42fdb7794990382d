"""Who listens where: the TCP ports that the processes of a tree accept connections on, from /proc."""

from collections.abc import Iterable
from pathlib import Path

LISTEN = "0A"  # of the kernel's TCP states, as /proc/net/tcp writes them


def listening(pids: Iterable[int], net: Path = Path("/proc/net")) -> dict[int, set[int]]:
    """Port -> the given processes that hold its listening socket (several, where workers share it)."""
    ports = _listening_inodes(net)
    found: dict[int, set[int]] = {}
    for pid in pids:
        for inode in _sockets(pid):
            if inode in ports:
                found.setdefault(ports[inode], set()).add(pid)
    return found


def _listening_inodes(net: Path) -> dict[str, int]:
    """Inode -> port of every listening socket of this network namespace."""
    inodes = {}
    for name in ("tcp", "tcp6"):
        try:
            lines = (net / name).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == LISTEN:
                inodes[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return inodes


def _sockets(pid: int) -> set[str]:
    """Inodes of a process's sockets; none of one that is gone or belongs to another user."""
    found = set()
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        return set()
    return found
