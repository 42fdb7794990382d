"""The guardian: a small process that starts all children of tfb, and kills them if tfb is killed.

``host.spawn`` runs this file as ``python -I -S guardian.py SOCKET LEDGER OWNER FOLDER``. tfb's modules are imported
from FOLDER. Over SOCKET, tfb sends requests to start a program, to kill the processes of an account, or to exit.

The guardian imports only ``child_setup`` and the standard library. It has a single thread, so it can fork
safely. A child drops privileges before it receives the environment.

The guardian is a subreaper: if the parent of a descendant exits, the descendant becomes the guardian's child. The
guardian lists all descendants in a file, the ledger. If the guardian is killed as well, ``tfb clean`` finds them there.
"""

import array
import contextlib
import errno
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

if __name__ == "__main__":
    sys.path.append(sys.argv[4])  # last, so that the folder cannot shadow standard modules

from harness.host import child_setup

SHUTDOWN_SECONDS = 5.0  # time limit for PostgreSQL's immediate shutdown
LEDGER_SECONDS = 3.0  # interval between updates of the ledger
KILL_ATTEMPTS = 3  # number of attempts at killing an account's processes
HEADER_BYTES = 4  # size of a request's header, which contains the size of the body
MAX_FILES = 4  # descriptors in a request: stdin, stdout, stderr, and a pipe for pid and exit status
GOODBYE = b"bye"  # request that ends the guardian


class Guardian:
    """A guardian that starts, reaps and kills the children of a tfb process."""

    def __init__(self, control: socket.socket, ledger: str) -> None:
        self._control, self._ledger = control, ledger
        self._pipes: dict[int, int] = {}  # pid -> pipe that reports the exit status
        self._reported: set[int] = set()  # exited children, to be reaped when tfb closes the pipe
        self._postmasters: set[int] = set()
        self._uids: set[int] = set()  # uids of accounts that only servers use
        self._listed: set[tuple[int, str]] = set()  # pid and start time of the processes in the ledger
        self._poll = select.poll()

    def serve(self) -> bool:
        """Start children until tfb exits. Return whether tfb exited normally."""
        wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for descriptor in (self._control.fileno(), wake):
            self._poll.register(descriptor, select.POLLIN)
        listed_at = 0.0
        while True:
            ready = dict(self._poll.poll(1000 * LEDGER_SECONDS))
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 1 << 16)
            self._reap()
            self._release(ready)
            if self._control.fileno() in ready:
                request = self._receive()
                if request is None or request[0] == GOODBYE:
                    return request is not None
                self._handle(json.loads(request[0]), request[1])
            if time.monotonic() - listed_at > LEDGER_SECONDS:
                self._update_ledger()
                listed_at = time.monotonic()

    def _receive(self) -> tuple[bytes, list[int]] | None:
        """Return the next request and its file descriptors, or None if tfb has closed the socket."""
        size = array.array("i").itemsize
        try:
            header, ancillary, _, _ = self._control.recvmsg(
                HEADER_BYTES, socket.CMSG_SPACE(MAX_FILES * size), socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionError:
            return None
        files = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(data[: len(data) - len(data) % size])
        header += self._read(HEADER_BYTES - len(header)) if header else b""
        body = self._read(int.from_bytes(header, "big"))
        return (body, list(files)) if body else None

    def _read(self, count: int) -> bytes:
        """Read exactly ``count`` bytes. If tfb exits first, return an empty result."""
        data = bytearray()
        while len(data) < count:
            chunk = self._control.recv(count - len(data))
            if not chunk:
                return b""
            data += chunk
        return bytes(data)

    def _handle(self, request: dict[str, Any], files: list[int]) -> None:
        """Start a program or kill all processes of an account."""
        if "kill_account" not in request:
            self._start(request, files)
            return
        self._kill_account(request["kill_account"])
        for descriptor in files:
            os.close(descriptor)

    def _kill_account(self, uid: int) -> None:
        """Kill all processes of an account, and reap those that the guardian has adopted."""
        for _ in range(KILL_ATTEMPTS):
            kill_account(uid)
            self._reap()
            time.sleep(0.005)
        self._uids.discard(uid)

    def _start(self, request: dict[str, Any], files: list[int]) -> None:
        """Start a program and report the pid, or the errno if the program cannot be executed."""
        *streams, pipe = files
        try:
            reader, writer = os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
        except OSError as error:  # out of memory, processes or descriptors
            _report(pipe, b"E%d\n" % (error.errno or errno.EAGAIN))
            for descriptor in files:
                os.close(descriptor)
            return
        if pid == 0:
            reason = errno.EINVAL
            try:
                child_setup.exec_program(request, streams)
            except OSError as error:
                reason = error.errno or reason
            finally:
                os.write(writer, b"%d" % reason)
                os._exit(127)
        os.close(writer)
        error_number = os.read(reader, 100)  # empty if exec succeeds, because exec closes the pipe
        for descriptor in (reader, *streams):
            os.close(descriptor)
        if error_number:
            os.waitpid(pid, 0)
            _report(pipe, b"E%d\n" % int(error_number))
            os.close(pipe)
            return
        self._pipes[pid] = pipe
        self._poll.register(pipe, 0)  # no events: poll reports only POLLERR, when tfb closes the other end
        if request["postmaster"]:
            self._postmasters.add(pid)
        if request["own_uid"]:
            self._uids.add(request["uid"])
        _report(pipe, b"P%d\n" % pid)

    def _reap(self) -> None:
        """Report the status of started children that have exited. Reap adopted children that have exited."""
        for pid, pipe in self._pipes.items():
            if pid not in self._reported:
                exited = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if exited:
                    self._reported.add(pid)
                    status = exited.si_status if exited.si_code == os.CLD_EXITED else -exited.si_status
                    _report(pipe, b"S%d\n" % status)
        for pid in children(os.getpid()):
            if pid not in self._pipes:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _release(self, ready: dict[int, int]) -> None:
        """Reap children after tfb has read their exit status. Until then, their pids cannot be reused."""
        for pid, pipe in list(self._pipes.items()):
            if ready.get(pipe, 0):
                del self._pipes[pid]
                self._poll.unregister(pipe)
                os.close(pipe)
                if pid in self._reported:
                    os.waitpid(pid, 0)
                    self._reported.discard(pid)
                    self._postmasters.discard(pid)

    def _update_ledger(self) -> None:
        """Write the pid and start time of each descendant to the ledger, one process per line."""
        current = {(pid, start) for pid, start in descendants(os.getpid())}
        if current == self._listed:
            return
        with contextlib.suppress(OSError):
            new_ledger = f"{self._ledger}.new"
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(new_ledger, flags, 0o600), "w", encoding="ascii") as file:  # noqa: PTH123
                file.writelines(f"{pid} {start}\n" for pid, start in sorted(current))
            os.rename(new_ledger, self._ledger)  # noqa: PTH104
            self._listed = current

    def kill_all(self) -> None:
        """Kill all descendants. PostgreSQL gets an immediate shutdown, which removes the shared memory.

        Orphans become children of the guardian, so a guardian without children has no descendants. Each step kills all
        children. It searches for other descendants only if there is no child to kill, because the search is slow. A
        process that keeps forking could escape the search.
        """
        for pid in self._postmasters:
            _kill(pid, signal.SIGQUIT)
        kill_at = time.monotonic() + (SHUTDOWN_SECONDS if self._postmasters else 0.0)
        while self._reap_all() and time.monotonic() < kill_at + SHUTDOWN_SECONDS:
            spared = set() if time.monotonic() > kill_at else {*self._postmasters, *_descendant_pids(self._postmasters)}
            own_children = {*children(os.getpid())} - spared
            for pid in own_children or {pid for pid, _ in descendants(os.getpid())} - spared:
                _kill(pid, signal.SIGKILL)
            for uid in self._uids:
                kill_account(uid)
            time.sleep(0.001)

    def _reap_all(self) -> bool:
        """Reap all children that have exited. Return whether any children remain."""
        try:
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._postmasters.discard(pid)
        except ChildProcessError:
            return False
        return True


def _report(pipe: int, line: bytes) -> None:
    with contextlib.suppress(OSError):  # tfb has closed the pipe, or has exited
        os.write(pipe, line)


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_account(uid: int) -> None:
    """Kill all processes of an account that only servers use.

    A child of the guardian switches to the account and calls ``kill(-1)``, which signals only this account's processes.
    The kernel signals all of them in a single step, so that no process can escape by forking.
    """
    if uid <= 0 or os.geteuid() != 0:
        return
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            if os.getresuid() == (uid, uid, uid):
                os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def children(pid: int) -> list[int]:
    """Return the children of a process's main thread, or an empty list if the kernel cannot list children."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def process_table() -> dict[int, tuple[int, str]]:
    """Return (parent pid, start time) by pid, for all processes that have not exited."""
    processes = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal():
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] not in b"ZX":
                    processes[int(name)] = (int(fields[1]), fields[19].decode())
    return processes


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Yield (pid, start time) for each descendant of a process."""
    processes = process_table()
    for descendant in _descendant_pids([pid], processes):
        yield descendant, processes[descendant][1]


def _descendant_pids(roots: Iterable[int], processes: dict[int, tuple[int, str]] | None = None) -> set[int]:
    """Return the pids of all descendants of ``roots``."""
    by_parent: dict[int, list[int]] = {}
    for pid, (parent, _) in (process_table() if processes is None else processes).items():
        by_parent.setdefault(parent, []).append(pid)
    pids, queue = set[int](), list(roots)
    while queue:
        children_of_first = [pid for pid in by_parent.get(queue.pop(), ()) if pid not in pids]
        pids.update(children_of_first)
        queue += children_of_first
    return pids


def main(control: int, ledger: str, owner: str, import_folder: str) -> None:
    """Serve tfb until it exits. If tfb was killed, kill all children and remove tfb's folders (``host.leftovers``)."""
    for number in child_setup.IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(control, False)  # children must not be able to send requests
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))  # the guardian needs a pipe for each child
    child_setup.libc.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    guardian = Guardian(socket.socket(fileno=control), ledger)
    if guardian.serve():
        return
    guardian.kill_all()
    environment = {"PYTHONPATH": import_folder, "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "LANG") if name in os.environ}
    command = [sys.executable, "-P", "-m", "harness.host.leftovers", owner]
    os.execve(sys.executable, command, inherited | environment)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:5])
