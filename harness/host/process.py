"""Starts programs, logs their commands, limits their run times, and stops programs and all their descendants."""

import contextlib
import ctypes
import errno
import itertools
import logging
import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import psutil

from harness.errors import EnvironmentLacksError, TfbError
from harness.host import guardian, interruption, ownership, spawn
from harness.host.spawn import DEVNULL, PIPE, Account, Enclosure, PrivateTemporary, ReplacedFolder
from harness.plain_text import printable
from harness.records import safe_write

__all__ = [
    "DEVNULL",
    "PIPE",
    "Account",
    "Child",
    "CompletedCommand",
    "Enclosure",
    "PrivateTemporary",
    "ProcessOptions",
    "ReplacedFolder",
    "run",
    "running",
]
logger = logging.getLogger("tfb.process")

STOP_SECONDS = 5.0  # how long a program may take to stop after SIGTERM
MARK_VARIABLE = "TFB_CHILD"  # environment variable that identifies the child from which a daemon descends
MAX_LOG_BYTES = 20 << 20  # maximum size of a log or of a command's output
POLL_SECONDS = 1.0  # interval between checks of a command's output size
_numbers = itertools.count(1)
_starting = threading.Lock()  # locked while a child is started, so that other threads do not mistake it for an orphan
_living: dict[int, "Child"] = {}  # children that tfb must still stop, by pid


@dataclass(frozen=True, kw_only=True)
class CompletedCommand:
    """The exit status and the output of a command."""

    status: int
    stdout: str


class CommandTimeoutError(TfbError):
    """A command that exceeded its time limit. tfb has stopped it and all descendants."""


@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """Options for running a program.

    Attributes:
        cwd: The working directory. The default is /, where only root can create files.
        env: The complete environment. The default is tfb's environment.
        account: The account that the program runs as. The default is tfb's account.
        cpus: The CPUs that the program may use. The default is tfb's CPUs.
        isolated: Whether to prevent the program from tracing or signalling processes that it has not started. This
            requires kernel support.
        stop_signal: The signal that asks the program to stop. SIGINT is PostgreSQL's fast shutdown.
    """

    cwd: Path | None = None
    env: Mapping[str, str] | None = None
    account: Account | None = None
    cpus: Sequence[int] | None = None
    isolated: bool = False
    stop_signal: signal.Signals = signal.SIGTERM


class Child:
    """A running program in a separate session. Ctrl-C therefore reaches only tfb, which then stops all children.

    The guardian starts the program. If tfb is killed, the guardian kills the program and all descendants.
    """

    def __init__(
        self,
        command: Sequence[str],
        options: ProcessOptions = ProcessOptions(),
        *,
        stdin: int = DEVNULL,
        stdout: IO[bytes] | int = DEVNULL,
        stderr: IO[bytes] | int = spawn.STDOUT,
    ) -> None:
        """Start a program, looked up on the PATH in ``options.env``. Raises EnvironmentLacksError if it cannot run."""
        logger.info("start: %s", shlex.join(command))
        self.command, self.account, self.stop_signal = tuple(command), options.account, options.stop_signal
        # Approximate start time in clock ticks since boot. The kernel forgets the exact time when the program exits.
        self.born = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        self.mark = f"{ownership.own_identity()}.{next(_numbers)}"
        cwd = options.cwd
        if cwd is not None and not cwd.is_dir():
            raise EnvironmentLacksError(f"{command[0]}: the working directory {cwd} does not exist")
        request = spawn.SpawnRequest(
            command=command,
            env={**(os.environ if options.env is None else options.env), MARK_VARIABLE: self.mark},
            cwd=cwd or spawn.NEUTRAL_FOLDER,
            account=options.account,
            cpus=options.cpus,
            isolated=options.isolated,
            postmaster=options.stop_signal is signal.SIGINT,
        )
        _adopt_orphans()
        self._stopped = False
        try:
            with interruption.held(), _starting:
                self._spawned = spawn.spawn(request, stdin=stdin, stdout=stdout, stderr=stderr)
                self.pid, self.stdin, self.stdout = self._spawned.pid, self._spawned.stdin, self._spawned.stdout
                _living[self.pid] = self
        except OSError as error:
            raise EnvironmentLacksError(_explain_failure(command[0], cwd, error)) from error
        except KeyboardInterrupt:
            self.stop()
            raise

    def poll(self) -> int | None:
        """Return the exit status, or None while the program is running. The status -N means that signal N killed it."""
        return self._spawned.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for the program. Return the exit status, or None if it is still running after ``seconds``."""
        return self._spawned.wait(seconds)

    def interrupt(self) -> None:
        """Send SIGINT to the program, but not to child processes. For example, wrk then prints the results so far."""
        if self.poll() is None:
            self._spawned.send_signal(signal.SIGINT)

    def adopted(self) -> list[int]:
        """Return the pids of this child's orphaned descendants, which the guardian or tfb has adopted."""
        return [pid for pid in _orphans() if _find_child_of(pid) is self]

    def terminate(self) -> None:
        """Ask the program to stop, but do not wait."""
        if self.poll() is None:
            self._spawned.send_signal(self.stop_signal)

    def kill(self) -> None:
        """Kill the program's process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self, grace: float = STOP_SECONDS) -> None:
        """Ask the program to stop, wait up to ``grace`` seconds, and kill all remaining descendants."""
        if self._stopped:
            return  # the kernel may have reused the pid
        try:
            if self.poll() is None:
                logger.info("stop: pid %d (%s)", self.pid, Path(self.command[0]).name)
                self.terminate()
                if self.wait(grace) is None:
                    logger.warning("killed pid %d, which ignored %s for %.0f s", self.pid, self.stop_signal.name, grace)
        except KeyboardInterrupt:
            self.wait(grace)
            raise
        finally:
            self._kill_tree()

    def _kill_tree(self) -> None:
        """Kill the descendants, including those that the guardian or this process has adopted."""
        tree = _tree(self.pid)[1:]
        self.kill()
        self.wait(STOP_SECONDS)
        # Children of a killed daemon become orphans, so search repeatedly.
        for _ in range(10):
            _kill(tree)
            tree = [process for pid in self.adopted() for process in _tree(pid)]
            if not tree:
                break
            logger.warning("killed %d processes that outlived their parents", len(tree))
        _living.pop(self.pid, None)
        used_uids = {child.account.uid for child in _living.values() if child.account}
        if self.account and self.account.has_own_uid and self.account.uid not in used_uids:
            spawn.kill_account_processes(self.account.uid)
        self._spawned.close()
        self._stopped = True


def _tree(pid: int) -> list[psutil.Process]:
    """Return a process and all descendants, or an empty list if the process has exited."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _kill(tree: Sequence[psutil.Process]) -> None:
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(tree, timeout=2)


def _explain_failure(program: str, cwd: Path | None, error: OSError) -> str:
    """Explain why a program could not be run. The kernel's messages can mislead."""
    path = Path(cwd or "", program)
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"{program}: not found on PATH; ./tfb doctor shows what is missing"
        if path.exists():
            return f"cannot run {program}: the interpreter that its first line names does not exist"
        return f"{program}: not found: {path} does not exist"
    if error.errno == errno.ENOEXEC:
        return f"cannot run {program}: {error.strerror}: the file is neither a program for this machine nor a script"
    if error.errno == errno.EACCES and "/" in program:
        reason = "it is a folder" if path.is_dir() else f"Permission denied; run chmod +x {path}"
        return f"cannot run {program}: {reason}"
    return f"cannot run {program}: {error.strerror}"


def _orphans() -> list[int]:
    """Return the pids of processes that the guardian or this process has adopted.

    Ignore processes in tfb's session. They do not descend from a child, because each child has a separate session.
    """
    pids: list[int] = []
    with _starting:
        for parent in filter(None, (os.getpid(), spawn.guardian_pid())):
            pids += guardian.children(parent)
        pids = [pid for pid in pids if pid not in _living]
    orphans = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) != os.getsid(0):
                orphans.append(pid)
    return orphans


def _find_child_of(pid: int) -> Child | None:
    """Return the child from which an orphan descends, identified by the orphan's account or mark (``MARK_VARIABLE``).

    Attribute an orphan without a mark to the last child that started before it, because servers daemonize soon after
    they start.
    """
    mark, started_at, uid = None, int(ownership.process_start(pid) or 0), None
    with contextlib.suppress(psutil.Error, OSError):  # the process has exited
        uid = psutil.Process(pid).uids().real
    with contextlib.suppress(psutil.Error, OSError):  # the process has exited, or belongs to a different user
        mark = psutil.Process(pid).environ().get(MARK_VARIABLE)

    def is_ancestor(child: Child) -> bool:
        if child.account and child.account.has_own_uid:
            return child.account.uid == uid
        return child.mark == mark if mark else child.born <= started_at

    return next((child for child in reversed(list(_living.values())) if is_ancestor(child)), None)


@contextlib.contextmanager
def running(child: Child, *, grace: float = STOP_SECONDS) -> Iterator[Child]:
    """Stop the child and all descendants at the end of the block."""
    try:
        yield child
    finally:
        child.stop(grace)


def terminate_all() -> None:
    """Ask all children except PostgreSQL to stop, without waiting. Threads that wait for a server get an error."""
    for child in list(_living.values()):
        if child.stop_signal is signal.SIGTERM:  # PostgreSQL (SIGINT) stops last, in ``stop_all``
            child.terminate()


def kill_all() -> None:
    """Kill the children that are still running after ``terminate_all``, except PostgreSQL."""
    for child in list(_living.values()):
        if child.stop_signal is signal.SIGTERM:
            child.kill()


def stop_all() -> None:
    """Stop all children, the last started first, and then the guardian."""
    for child in reversed(list(_living.values())):
        child.stop()
    spawn.end_guardian()
    _kill(_tree(os.getpid())[1:])


@cache
def _adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants (prctl(2)), so that tfb can find them."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def run(
    command: Sequence[str],
    *,
    seconds: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    account: Account | None = None,
) -> CompletedCommand:
    """Run a command until it exits. Append the output to ``log`` or, if there is no log, return it.

    Raises CommandTimeoutError if the command is still running after ``seconds``, or EnvironmentLacksError if it cannot
    be run.
    """
    deadline = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        path = log or stack.enter_context(ownership.make_scratch_folder("output")) / "output"
        output = stack.enter_context(safe_write.append(path, private=True))
        if log:
            output.write(f"$ {shlex.join(command)}\n".encode())
            output.flush()
        child = Child(command, ProcessOptions(cwd=cwd, env=env, account=account), stdout=output)
        stack.enter_context(running(child, grace=2.0))
        while (status := child.wait(min(POLL_SECONDS, deadline - time.monotonic()))) is None:
            truncate_log(path)
            interruption.raise_if_pending()
            if time.monotonic() > deadline:
                hint = f"; its output is in {log}" if log else ""
                raise CommandTimeoutError(f"{shlex.join(command)} exceeded {seconds:.0f} s and was stopped{hint}")
        interruption.raise_if_pending()
        return CompletedCommand(status=status, stdout="" if log else path.read_bytes().decode(errors="replace"))


def truncate_log(log: Path) -> None:
    """If a log exceeds ``MAX_LOG_BYTES``, remove the middle. All writers must have opened the log for appending."""
    with contextlib.suppress(OSError):
        if log.stat().st_size <= MAX_LOG_BYTES:
            return
        with safe_write.update(log) as file:
            file.seek(-MAX_LOG_BYTES // 4, os.SEEK_END)
            end = file.read(MAX_LOG_BYTES // 4)
            file.truncate(MAX_LOG_BYTES // 2)
            file.seek(0, os.SEEK_END)
            file.write(b"\n[tfb: the log exceeded its size limit, and the middle was removed]\n" + end)


def tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a log, or an empty string if the log is unreadable."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 64 * 1024))
            text = file.read(64 * 1024).decode(errors="replace")
    except OSError:
        return ""
    return printable("\n".join(line[:2000] for line in text.splitlines()[-lines:]))


def describe_status(status: int) -> str:
    """Describe an exit status, for example ``exit status 3`` or ``killed by SIGKILL``."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
