"""Starts programs through the guardian, which kills them if tfb is killed."""

import array
import contextlib
import errno
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import harness
from harness.host import child_setup, environment, guardian, ownership

DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
IMPORT_FOLDER = Path(harness.__file__).resolve().parent.parent  # the guardian imports tfb's modules from here
LEDGER_FILE = "descendants"  # file in the guardian's scratch folder with pid and start time of each descendant
END_SECONDS = 5.0  # how long to wait for the guardian to report an exit status or to exit
# Default working directory, in which only root can create files. Elsewhere, a file could make Cargo, rustup or
# a version manager run a program.
NEUTRAL_FOLDER = Path("/")
_request_lock = threading.Lock()
_current: list["_Guardian"] = []  # contains the guardian while it is running


@dataclass(frozen=True, kw_only=True)
class Enclosure:
    """The folders that a program may write to. All other folders are read-only or appear empty.

    ``child_setup.enter_mount_namespace`` describes the fields.
    """

    writable: tuple[Path, ...]
    covered: tuple[Path, ...]
    protected: tuple[Path, ...]
    private: tuple[Path, ...]
    home: Path | None
    overlay: Path
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PrivateTemporary:
    """Temporary folders in which a program's changes are private; see ``child_setup.enter_temporary_namespace``."""

    covered: tuple[Path, ...]
    shared: tuple[Path, ...]
    staging: Path
    home: Path


@dataclass(frozen=True, kw_only=True)
class ReplacedFolder:
    """A folder that a program sees at a different path; see ``child_setup.replace_folder``."""

    place: Path
    content: Path
    without: str


@dataclass(frozen=True, kw_only=True)
class Account:
    """An unprivileged account that a child runs as."""

    name: str
    uid: int
    gid: int
    rights: tuple[str, ...] = ()  # capabilities that programs keep, by their kernel names
    # Whether only one server uses the account. If so, tfb kills all of the account's processes when the server stops.
    has_own_uid: bool = False
    enclosure: Enclosure | None = None
    temporary: PrivateTemporary | None = None  # requires root
    replaced: ReplacedFolder | None = None  # requires enclosure or temporary
    isolated: bool = False  # whether to isolate all programs of the account, as in ``SpawnRequest``
    open_files: tuple[int, int] | None = None  # soft and hard limits on open files; None: tfb's limits


@dataclass(frozen=True, kw_only=True)
class SpawnRequest:
    """A program to start. An ``isolated`` program can trace and signal only processes that it has started."""

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path = NEUTRAL_FOLDER
    account: Account | None = None
    cpus: Sequence[int] | None = None
    isolated: bool = False
    postmaster: bool = False


class Spawned:
    """A started program: a child of the guardian, or of tfb after the guardian has exited."""

    def __init__(self, *, pid: int, stdin: IO[bytes] | None, stdout: IO[bytes] | None, report: int, pidfd: int) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._report, self._pidfd = report, pidfd  # the guardian writes the exit status to ``report``
        self._status: int | None = None
        self._lock = threading.RLock()  # reentrant, because a signal handler may poll while this thread polls

    def poll(self) -> int | None:
        """Return the exit status, or None while the program is running. The status -N means that signal N killed it."""
        with self._lock:
            if self._status is None and self._report >= 0 and select.select([self._report], [], [], 0)[0]:
                line = os.read(self._report, 100)
                self._status = int(line[1:]) if line else self._own_status()
                if line:  # closing the pipe makes the guardian reap the zombie
                    os.close(self._report)
                    self._report = -1
            return self._status

    def _own_status(self) -> int | None:
        """Return the exit status of a program that this process has adopted."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:  # a different process has adopted the program and reads the exit status
            return -signal.SIGKILL if ownership.process_start(self.pid) is None else None
        return os.waitstatus_to_exitcode(status) if pid else None

    def wait(self, seconds: float) -> int | None:
        """Wait for the program. Return the exit status, or None if it is still running after ``seconds``."""
        if self.poll() is None:
            exited = select.select([self._pidfd], [], [], max(0.0, seconds))[0]  # readable after the program has exited
            if exited and (report := self._report) >= 0:
                select.select([report], [], [], END_SECONDS)  # wait for the guardian to report the status
        return self.poll()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the program, but not to child processes. Do nothing if the program has exited."""
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self._pidfd, number)

    def close(self) -> None:
        """Close all descriptors. Afterwards, the pid may be reused."""
        with self._lock:
            for descriptor in (self._report, self._pidfd):
                if descriptor >= 0:
                    os.close(descriptor)
            self._report = self._pidfd = -1
        if self.stdin:
            with contextlib.suppress(OSError):  # the program may have exited before reading all input
                self.stdin.close()


class _Guardian:
    """The running guardian: the process, and the socket for requests."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{ownership.SCRATCH_PREFIX}guardian-"))
        (self.folder / ownership.OWNER_FILE).write_text(ownership.own_identity(), encoding="ascii")
        own_end, guardian_end = socket.socketpair()
        arguments = [
            str(guardian_end.fileno()),
            str(self.folder / LEDGER_FILE),
            ownership.own_identity(),
            str(IMPORT_FOLDER),
        ]
        with guardian_end:
            # The guardian stays in tfb's session, because tfb treats adopted processes in other sessions as orphans of
            # children. In a separate process group, it does not receive Ctrl-C.
            self.process = subprocess.Popen(  # noqa: S603 - the guardian starts all other programs
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", guardian.__file__, *arguments],
                cwd="/",
                env=environment.helper_environment(),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                pass_fds=[guardian_end.fileno()],
                process_group=0,
            )
        self.socket = own_end

    def close(self) -> None:
        """Inform the guardian that tfb is exiting normally, and wait for the guardian to exit."""
        with contextlib.suppress(OSError):
            self.socket.sendall(_framed(guardian.GOODBYE))
        self.socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)


def start_guardian() -> None:
    """Start the guardian if it is not running."""
    with _request_lock:
        _running_guardian()


def guardian_pid() -> int | None:
    """Return the guardian's pid, or None if it has not been started."""
    return _current[0].process.pid if _current else None


def end_guardian() -> None:
    """Make the guardian exit. The caller must have stopped all children."""
    with _request_lock:
        while _current:
            _current.pop().close()


def _running_guardian() -> _Guardian:
    if _current and _current[0].process.poll() is not None:  # the guardian was killed, and tfb has adopted the children
        _current.pop().socket.close()
    if not _current:
        _current.append(_Guardian())
    return _current[0]


def spawn(
    order: SpawnRequest, *, stdin: int = DEVNULL, stdout: IO[bytes] | int = DEVNULL, stderr: IO[bytes] | int = STDOUT
) -> Spawned:
    """Start a program. If it cannot be executed, raise OSError with the reason."""
    request = _framed(json.dumps(_request(order)).encode("ascii"))
    with contextlib.ExitStack() as passed:
        own_in, their_in = _stream(stdin, passed, write=True)
        own_out, their_out = _stream(stdout, passed, write=False)
        _, their_err = (None, their_out) if stderr == STDOUT else _stream(stderr, passed, write=False)
        report, writer = os.pipe()
        passed.callback(os.close, writer)
        try:
            with _request_lock:
                _send(_running_guardian().socket, request, [their_in, their_out, their_err, writer])
            passed.close()
            line = _line(report)
            pid = _pid(line)
            # Until poll() or close() is called, an exited program stays a zombie, so the pid cannot be reused.
            return Spawned(pid=pid, stdin=own_in, stdout=own_out, report=report, pidfd=os.pidfd_open(pid))
        except OSError:
            os.close(report)
            for stream in filter(None, (own_in, own_out)):
                stream.close()
            raise


def kill_account_processes(uid: int) -> None:
    """Kill all processes of an account that only one server uses."""
    report, writer = os.pipe()
    request = _framed(json.dumps({"kill_account": uid}).encode("ascii"))
    try:
        with _request_lock, contextlib.suppress(OSError):
            _send(_running_guardian().socket, request, [writer])
    finally:
        os.close(writer)
    select.select([report], [], [], END_SECONDS)  # wait until the guardian has closed the pipe
    os.close(report)


def _send(control: socket.socket, request: bytes, files: Sequence[int]) -> None:
    descriptors = array.array("i", files)
    control.sendmsg([request[: guardian.HEADER_BYTES]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    control.sendall(request[guardian.HEADER_BYTES :])


def _line(pipe: int) -> bytes:
    """Read the first line of the guardian's report byte by byte, because the exit status may follow immediately."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(pipe, 1)
        if not byte:
            return b""
        line += byte
    return bytes(line[:-1])


def _pid(line: bytes) -> int:
    """Parse the pid that the guardian reports. Raises OSError if the program did not start."""
    if not line:
        raise OSError(errno.ECHILD, "the guardian, which starts tfb's children, was killed: run tfb again")
    if line[:1] != b"P":
        raise OSError(int(line[1:]), os.strerror(int(line[1:])))
    return int(line[1:])


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(guardian.HEADER_BYTES, "big") + body


def _request(order: SpawnRequest) -> dict[str, object]:
    account = order.account
    return {
        "command": [_text(argument) for argument in order.command],
        "env": {_text(key): _text(value) for key, value in order.env.items()},
        "cwd": _text(str(order.cwd.absolute())),
        "cpus": list(order.cpus or ()),
        "nofile": (account and account.open_files) or resource.getrlimit(resource.RLIMIT_NOFILE),
        "uid": account.uid if account else None,
        "gid": account.gid if account else None,
        "rights": list(account.rights) if account else [],
        "own_uid": bool(account and account.has_own_uid),
        "isolated": order.isolated or bool(account and (account.isolated or account.enclosure)),
        "enclosure": _enclosure(account.enclosure) if account and account.enclosure else None,
        "temporary": _temporary(account.temporary) if account and account.temporary else None,
        "replaced": _replaced(account.replaced) if account and account.replaced else None,
        "postmaster": order.postmaster,
    }


def _temporary(temporary: PrivateTemporary) -> dict[str, object]:
    return {
        "covered": [_text(str(path)) for path in temporary.covered],
        "shared": [_text(str(path)) for path in temporary.shared],
        "staging": _text(str(temporary.staging)),
        "home": _text(str(temporary.home)),
    }


def _replaced(folder: ReplacedFolder) -> dict[str, str]:
    return {
        "place": _text(str(folder.place)),
        "content": _text(str(folder.content)),
        "without": _text(folder.without),
    }


def _enclosure(enclosure: Enclosure) -> dict[str, object]:
    protected = (*enclosure.protected, *(guardian.folder for guardian in _current))
    kinds = {kind: getattr(enclosure, kind) for kind in child_setup.KINDS} | {"protected": protected}
    return {
        "folders": {kind: [_text(str(path)) for path in paths] for kind, paths in kinds.items()},
        "home": _text(str(enclosure.home)) if enclosure.home else "",
        "overlay": _text(str(enclosure.overlay)),
    }


def _text(argument: str) -> str:
    """Encode an argument for JSON, with one character per byte. Raises OSError if it cannot be passed to a program."""
    try:
        encoded = os.fsencode(argument)
    except UnicodeEncodeError as error:
        raise OSError(errno.EILSEQ, f"{argument!r} cannot be encoded") from error
    if b"\0" in encoded:
        raise OSError(errno.EINVAL, f"{argument!r} contains a NUL byte")
    return encoded.decode("latin-1")


def _stream(stream: IO[bytes] | int, passed: contextlib.ExitStack, *, write: bool) -> tuple[IO[bytes] | None, int]:
    """Return (tfb's end, the program's descriptor) of a stream. tfb's end is None unless the stream is a pipe."""
    if stream == DEVNULL:
        null = os.open(os.devnull, os.O_RDWR)
        passed.callback(os.close, null)
        return None, null
    if stream == PIPE:
        reader, writer = os.pipe()
        own_end, passed_end = (writer, reader) if write else (reader, writer)
        passed.callback(os.close, passed_end)
        return os.fdopen(own_end, "wb" if write else "rb"), passed_end
    return None, stream if isinstance(stream, int) else stream.fileno()
