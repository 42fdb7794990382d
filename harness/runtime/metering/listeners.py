"""Who listens where: the TCP ports that the processes of a tree accept connections on."""

import contextlib
from collections.abc import Iterable

import psutil


def listening(pids: Iterable[int]) -> dict[int, set[int]]:
    """Port -> the given processes that hold its listening socket (several, where workers share it)."""
    found: dict[int, set[int]] = {}
    for pid in pids:
        with contextlib.suppress(psutil.Error):  # it is gone, or belongs to another user
            for each in psutil.Process(pid).net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN and each.laddr:
                    found.setdefault(each.laddr.port, set()).add(pid)
    return found
