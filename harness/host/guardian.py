"""The guardian: a small process that starts every child of tfb and kills all children if tfb is killed.

``host.spawn`` runs this file as ``python -I -S guardian.py SOCKET LEDGER OWNER HOME``. It imports only the standard
library, has one thread, and never sees a service's environment. So it can fork safely, and a child drops its privileges
before it receives an environment.

The guardian is a subreaper: if the parent of a descendant exits, the descendant becomes the guardian's child. The
ledger lists all descendants, so that ``tfb clean`` finds them if the guardian is killed together with tfb.
"""

import array
import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

SHUTDOWN_SECONDS = 5.0  # limit for PostgreSQL's immediate shutdown
LEDGER_SECONDS = 3.0  # between two lists of the descendants
SWEEPS = 3  # times that all processes of an account are killed; each time kills all of them in one step
HEADER = 4  # bytes of a request's length
FILES = 4  # sent with a request: stdin, stdout, stderr, and the pipe that reports the pid and the exit status
BYE = b"bye"
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
CAPABILITIES = {"dac_read_search": 2, "net_bind_service": 10}  # <linux/capability.h>

_PR_SET_SECUREBITS, _NO_SETUID_FIXUP = 28, 1 << 2
_PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 8, 24, 36, 38, 47
_AMBIENT_RAISE, _AMBIENT_CLEAR = 2, 4
_CAPABILITY_VERSION_3 = 0x20080522
_LANDLOCK_CREATE, _LANDLOCK_ALLOW, _LANDLOCK_RESTRICT = 444, 445, 446  # system calls, the same on every architecture
_LANDLOCK_VERSION, _PATH_BENEATH, _SCOPE_SIGNAL = 1, 1, 2
_REFER = 1 << 13  # to rename and link between folders; by default a domain that handles file access denies it
_REFER_SINCE, _SIGNALS_SINCE = 2, 6  # versions of Landlock's interface: Linux 5.19 and 6.12
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 1 << 17, 1 << 27, 1 << 28
_MEMORY = b"/dev/shm"
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 1 << 12, 1 << 14, 1 << 18
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _RDONLY = 442, -100, 0x8000, 1  # Linux 5.12

_libc = ctypes.CDLL(None, use_errno=True)


# ---- a child between fork and exec -----------------------------------------------------------------------------------


def execute(request: dict[str, Any], files: list[int]) -> None:
    """Replace this process by the requested program; raise OSError if that fails."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
    for each in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    resource.setrlimit(resource.RLIMIT_NOFILE, tuple(request["nofile"]))
    if request["cpus"]:
        os.sched_setaffinity(0, request["cpus"])
    if request["enclosure"]:
        enclose(**request["enclosure"])
    os.chdir(_bytes(request["cwd"]))
    if request["uid"] is not None or request["isolated"]:
        _call(_libc.prctl, _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if request["isolated"] and not isolate() and request["enclosure"]:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # /proc/PID/root of another process would lead out
    if request["uid"] is not None:
        become(request["uid"], request["gid"], [CAPABILITIES[right] for right in request["rights"]])
    command = [_bytes(word) for word in request["command"]]
    environment = {_bytes(key): _bytes(value) for key, value in request["env"].items()}
    os.execvpe(command[0], command, environment)  # noqa: S606


def become(uid: int, gid: int, rights: list[int]) -> None:
    """Change to an account for good: no groups, and no capabilities but ``rights``."""
    if os.geteuid() == 0:
        # Make access(2) respect the capabilities: gcc finds the linker with it. Some containers forbid the call.
        _libc.prctl(_PR_SET_SECUREBITS, _NO_SETUID_FIXUP, 0, 0, 0)
        for capability in range(64):
            if capability not in rights and _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
                break  # the kernel has no further capabilities
        os.setgroups([])
    _call(_libc.prctl, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    kept = sum(1 << right for right in rights)
    # struct __user_cap_data_struct[2]: effective, permitted and inheritable, the low 32 bits first.
    header, low, high = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), kept & 0xFFFFFFFF, kept >> 32
    _call(_libc.capset, header, (ctypes.c_uint32 * 6)(low, low, low, high, high, high))
    _call(_libc.prctl, _PR_CAP_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    for right in rights:
        _call(_libc.prctl, _PR_CAP_AMBIENT, _AMBIENT_RAISE, right, 0, 0)


def isolate() -> bool:
    """Enter a Landlock domain; return whether the kernel supports Landlock.

    A process in the domain cannot trace processes outside, nor read their memory or environment. From Linux 6.12 on it
    cannot signal them either. Access to files does not change.
    """
    version = _libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if version < _REFER_SINCE:
        return False
    # struct landlock_ruleset_attr: handled_access_fs, handled_access_net, scoped. At least one field must be nonzero.
    wanted = (0, 0, _SCOPE_SIGNAL) if version >= _SIGNALS_SINCE else (_REFER,)
    attributes = (ctypes.c_uint64 * len(wanted))(*wanted)
    rules = _libc.syscall(_LANDLOCK_CREATE, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    if rules < 0:
        return False
    try:
        if version < _SIGNALS_SINCE:
            _allow_refer(rules)
        return bool(_libc.syscall(_LANDLOCK_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def enclose(shared: list[str], closed: list[str], own: list[str], hidden: list[str], home: str, layer: str) -> None:
    """Enter a mount namespace in which everything is read-only but some folders; raise OSError if the kernel refuses.

    Writable are the folders of ``shared``, without those of ``closed`` in them, and the folders of ``own``. Folders and
    sockets of ``hidden`` are empty. ``home`` shows what it holds, and what the program writes there goes to ``layer``
    (overlayfs); empty: there is no home. Shared memory is the program's own.
    """
    uid, gid = os.geteuid(), os.getegid()
    _call(_libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWIPC)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write(text)
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE)
    # Opened before a mount covers them.
    folders: dict[str, int] = {}
    for path in (*shared, *closed, *own, layer):
        with contextlib.suppress(FileNotFoundError):  # such as the folder of another tfb that has ended
            folders[path] = os.open(_bytes(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for path in (each for each in (*shared, *closed, layer) if each in folders):
        with contextlib.suppress(FileNotFoundError):
            _bind(folders[path], path)
    writable = [*shared, *own]
    if home:
        options = b"lowerdir=%s,upperdir=%s/changes,workdir=%s/work,userxattr" % (
            _bytes(home),
            _bytes(layer),
            _bytes(layer),
        )
        _mount(b"overlay", _bytes(home), b"overlay", 0, options)
        writable.append(home)
    for path in own:
        _bind(folders[path], path)
    for path in hidden:
        empty = f"{layer}/empty" if os.path.isdir(path) else "/dev/null"  # noqa: PTH112
        _mount(_bytes(empty), _bytes(path), None, _MS_BIND)
    if os.path.isdir(_MEMORY):  # noqa: PTH112
        _mount(b"tmpfs", _MEMORY, b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=1777")
        writable.append(_MEMORY.decode())
    _set_read_only("/", True)
    for path in writable:
        try:
            _set_read_only(path, False)
        except OSError:
            if path not in shared:  # in a container, some of these are read-only for good
                raise
    for descriptor in folders.values():
        os.close(descriptor)


def _bind(folder: int, place: str) -> None:
    """Mount an open folder at its place, so that it has flags of its own."""
    _mount(b"/proc/self/fd/%d" % folder, _bytes(place), None, _MS_BIND | _MS_REC)


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes | None = None) -> None:
    _call(_libc.mount, source, target, kind, ctypes.c_ulong(flags), options)


def _set_read_only(path: str, on: bool) -> None:
    """Make a mount and those below it read-only, or this one mount writable."""
    attributes = (ctypes.c_uint64 * 4)(_RDONLY if on else 0, 0 if on else _RDONLY, 0, 0)  # struct mount_attr
    size = ctypes.sizeof(attributes)
    _call(_libc.syscall, _MOUNT_SETATTR, _AT_FDCWD, _bytes(path), _AT_RECURSIVE if on else 0, attributes, size)


def _allow_refer(rules: int) -> None:
    """Allow renames and links everywhere, so that the domain does not restrict access to files."""
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        # struct landlock_path_beneath_attr, packed: allowed_access (64 bits), parent_fd (32 bits).
        beneath = ctypes.create_string_buffer(struct.pack("=Qi", _REFER, root), 12)
        _call(_libc.syscall, _LANDLOCK_ALLOW, rules, _PATH_BENEATH, beneath, 0)
    finally:
        os.close(root)


def _call(function: Any, *arguments: object) -> None:  # noqa: ANN401 - a foreign function
    if function(*arguments) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _bytes(text: str) -> bytes:
    """Decode a word of a request; each character stands for a byte."""
    return text.encode("latin-1")


# ---- the guardian itself ---------------------------------------------------------------------------------------------


class Guardian:
    """The children of a tfb process, with their status pipes and accounts."""

    def __init__(self, control: socket.socket, ledger: str) -> None:
        self._control, self._ledger = control, ledger
        self._pipes: dict[int, int] = {}  # pid -> pipe for the exit status
        self._reported: set[int] = set()  # zombies that keep their pid until tfb closes the pipe
        self._postmasters: set[int] = set()
        self._uids: set[int] = set()  # uids used only by servers
        self._listed: set[tuple[int, str]] = set()
        self._poll = select.poll()

    def serve(self) -> bool:
        """Start children until tfb ends; return whether it ended in order."""
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
                if request is None or request[0] == BYE:
                    return request is not None
                self._answer(json.loads(request[0]), request[1])
            if time.monotonic() - listed_at > LEDGER_SECONDS:
                self._list()
                listed_at = time.monotonic()

    def _receive(self) -> tuple[bytes, list[int]] | None:
        """Return the next request and the descriptors sent with it; None if tfb has closed the socket."""
        size = array.array("i").itemsize
        try:
            header, sent, _, _ = self._control.recvmsg(HEADER, socket.CMSG_SPACE(FILES * size), socket.MSG_CMSG_CLOEXEC)
        except ConnectionError:
            return None
        files = array.array("i")
        for level, kind, data in sent:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(data[: len(data) - len(data) % size])
        header += self._exactly(HEADER - len(header)) if header else b""
        body = self._exactly(int.from_bytes(header, "big"))
        return (body, list(files)) if body else None

    def _exactly(self, count: int) -> bytes:
        """Read ``count`` bytes; return no bytes if tfb exits first."""
        parts = bytearray()
        while len(parts) < count:
            more = self._control.recv(count - len(parts))
            if not more:
                return b""
            parts += more
        return bytes(parts)

    def _answer(self, request: dict[str, Any], files: list[int]) -> None:
        """Start a program, or kill all processes of an account."""
        if "sweep" not in request:
            self._start(request, files)
            return
        self._sweep(request["sweep"])
        for descriptor in files:
            os.close(descriptor)

    def _sweep(self, uid: int) -> None:
        """Kill all processes of an account; repeat, since a parent's end can hand children to the guardian."""
        for _ in range(SWEEPS):
            kill_account(uid)
            self._reap()
            time.sleep(0.005)
        self._uids.discard(uid)

    def _start(self, request: dict[str, Any], files: list[int]) -> None:
        """Start a program and report the pid, or the error number if the program cannot be executed."""
        *streams, pipe = files
        try:
            reader, writer = os.pipe2(os.O_CLOEXEC)
            pid = os.fork()
        except OSError as error:  # no memory, or too many processes or files
            _say(pipe, b"E%d\n" % (error.errno or errno.EAGAIN))
            for descriptor in files:
                os.close(descriptor)
            return
        if pid == 0:
            reason = errno.EINVAL
            try:
                execute(request, streams)
            except OSError as error:
                reason = error.errno or reason
            finally:
                os.write(writer, b"%d" % reason)
                os._exit(127)
        os.close(writer)
        failed = os.read(reader, 100)
        for descriptor in (reader, *streams):
            os.close(descriptor)
        if failed:
            os.waitpid(pid, 0)
            _say(pipe, b"E%d\n" % int(failed))
            os.close(pipe)
            return
        self._pipes[pid] = pipe
        self._poll.register(pipe, 0)  # POLLERR: tfb has closed the other end
        if request["postmaster"]:
            self._postmasters.add(pid)
        if request["own_uid"]:
            self._uids.add(request["uid"])
        _say(pipe, b"P%d\n" % pid)

    def _reap(self) -> None:
        """Report the children that have exited, and wait for adopted children."""
        for pid, pipe in self._pipes.items():
            if pid not in self._reported:
                done = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if done:
                    self._reported.add(pid)
                    _say(pipe, b"S%d\n" % (done.si_status if done.si_code == os.CLD_EXITED else -done.si_status))
        for pid in children(os.getpid()):
            if pid not in self._pipes:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _release(self, ready: dict[int, int]) -> None:
        """Wait for the children whose exit status tfb has read. Until then, their pids cannot be reused."""
        for pid, pipe in list(self._pipes.items()):
            if ready.get(pipe, 0):
                del self._pipes[pid]
                self._poll.unregister(pipe)
                os.close(pipe)
                if pid in self._reported:
                    os.waitpid(pid, 0)
                    self._reported.discard(pid)
                    self._postmasters.discard(pid)

    def _list(self) -> None:
        """Write pid and start time of each descendant to the ledger, a line per process."""
        found = {(pid, start) for pid, start in descendants(os.getpid())}
        if found == self._listed:
            return
        with contextlib.suppress(OSError):
            fresh = f"{self._ledger}.new"
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(fresh, flags, 0o600), "w", encoding="ascii") as file:  # noqa: PTH123
                file.writelines(f"{pid} {start}\n" for pid, start in sorted(found))
            os.rename(fresh, self._ledger)  # noqa: PTH104
            self._listed = found

    def end_all(self) -> None:
        """Kill every descendant; use PostgreSQL's immediate shutdown, so that it removes shared memory.

        Orphans become children of the guardian, so no descendant is left when it has no children. Children are killed
        first in each step, since a process that forks and exits all the time can escape the slower search for others.
        """
        for pid in self._postmasters:
            _kill(pid, signal.SIGQUIT)
        patience = time.monotonic() + (SHUTDOWN_SECONDS if self._postmasters else 0.0)
        while self._reap_all() and time.monotonic() < patience + SHUTDOWN_SECONDS:
            spared = set() if time.monotonic() > patience else {*self._postmasters, *_below(self._postmasters)}
            found = {*children(os.getpid())} - spared
            for pid in found or {pid for pid, _ in descendants(os.getpid())} - spared:
                _kill(pid, signal.SIGKILL)
            for uid in self._uids:
                kill_account(uid)
            time.sleep(0.001)

    def _reap_all(self) -> bool:
        """Wait for every child that has exited; return whether there are others."""
        try:
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                self._postmasters.discard(pid)
        except ChildProcessError:
            return False
        return True


def _say(pipe: int, line: bytes) -> None:
    with contextlib.suppress(OSError):  # tfb has closed the pipe, or has exited
        os.write(pipe, line)


def _kill(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def kill_account(uid: int) -> None:
    """Kill all processes of an account that only servers use.

    The kernel signals all of them in one step, so that a process cannot escape by forking. A child changes to the
    account and calls ``kill(-1)``, which then reaches only processes of this account.
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
    """Return the children of a process's main thread; an empty list if the kernel cannot list children."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def process_table() -> dict[int, tuple[int, str]]:
    """Return parent and start time of every process that has not exited, by pid."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal():
            with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] not in b"ZX":
                    found[int(name)] = (int(fields[1]), fields[19].decode())
    return found


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Yield pid and start time of every descendant of a process."""
    known = process_table()
    for each in _below([pid], known):
        yield each, known[each][1]


def _below(roots: Iterable[int], known: dict[int, tuple[int, str]] | None = None) -> set[int]:
    by_parent: dict[int, list[int]] = {}
    for pid, (parent, _) in (process_table() if known is None else known).items():
        by_parent.setdefault(parent, []).append(pid)
    found, waiting = set[int](), list(roots)
    while waiting:
        fresh = [pid for pid in by_parent.get(waiting.pop(), ()) if pid not in found]
        found.update(fresh)
        waiting += fresh
    return found


def main(control: int, ledger: str, owner: str, home: str) -> None:
    """Serve a tfb process; if tfb is killed, kill the children and let ``host.leftovers`` remove the folders."""
    for each in IGNORED:
        signal.signal(each, signal.SIG_IGN)
    os.set_inheritable(control, False)  # otherwise every child could send requests
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each child has a pipe here
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    guardian = Guardian(socket.socket(fileno=control), ledger)
    if guardian.serve():
        return
    guardian.end_all()
    environment = {"PYTHONPATH": home, "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "LANG") if name in os.environ}
    command = [sys.executable, "-P", "-m", "harness.host.leftovers", owner]
    os.execve(sys.executable, command, kept | environment)  # noqa: S606


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:5])
