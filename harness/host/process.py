"""The one door to other programs: every command is logged, bounded in time, and stopped with all its children."""

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
from harness.host.spawn import DEVNULL, PIPE, Account, Enclosure
from harness.plain_text import printable
from harness.records import safe_write

__all__ = ["DEVNULL", "PIPE", "Account", "Child", "CompletedCommand", "Enclosure", "run", "running"]
logger = logging.getLogger("tfb.process")

STOP_SECONDS = 5.0  # what an implementation has to stop after SIGTERM
MARK_VARIABLE = "TFB_CHILD"  # environment variable by which a daemon is known as a descendant of one child
MAX_LOG_BYTES = 20 << 20  # of a program's log, as Docker keeps of a container's; of a command's output, too
POLL_SECONDS = 1.0  # between looks at the output of a command
_PR_SET_CHILD_SUBREAPER = 36
_numbers = itertools.count(1)
_starting = threading.Lock()  # a child of one thread is not yet among the living: it is no orphan for another
_living: dict[int, "Child"] = {}  # started and not yet stopped, by pid


@dataclass(frozen=True, kw_only=True)
class CompletedCommand:
    """How a bounded command ended."""

    status: int
    stdout: str


class CommandTimeoutError(TfbError):
    """A command took longer than it may; it has been stopped with all its children."""


class Child:
    """A running program in a session of its own, so that Ctrl-C reaches the harness first and it stops in order.

    The guardian starts it, and ends it with all its descendants if tfb is killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int = DEVNULL,
        stdout: IO[bytes] | int = DEVNULL,
        stderr: IO[bytes] | int = spawn.STDOUT,
        account: Account | None = None,
        cpus: Sequence[int] | None = None,
        isolated: bool = False,
        first: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start it.

        Args:
            command: The program and its arguments. Without a slash, the program is looked for on the PATH of ``env``.
            cwd: The working directory; None: /, where only root can place files.
            env: Its whole environment; None: the one of tfb.
            stdin: DEVNULL, PIPE or a descriptor, as for ``stdout`` and ``stderr``.
            stdout: Where its output goes.
            stderr: Where its messages go; by default, where its output goes.
            account: The account that it runs as; None: the one of tfb.
            cpus: The CPUs that it may use; None: those of tfb.
            isolated: Whether it cannot trace or signal processes that it has not started, where the kernel offers that.
            first: The signal that asks it to stop. SIGINT is PostgreSQL's fast shutdown.

        Raises:
            EnvironmentLacksError: The program cannot be run.
        """
        logger.info("start: %s", shlex.join(command))
        self.command, self.account, self.first = tuple(command), account, first
        # Not later than it is born, in the kernel's ticks since the boot; one that has ended has no start to read.
        self.born = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        self.mark = f"{ownership.own_identity()}.{next(_numbers)}"
        if cwd is not None and not cwd.is_dir():
            raise EnvironmentLacksError(f"{command[0]}: its working directory {cwd} does not exist")
        order = spawn.SpawnRequest(
            command=command,
            env={**(os.environ if env is None else env), MARK_VARIABLE: self.mark},
            cwd=cwd or spawn.NEUTRAL_FOLDER,
            account=account,
            cpus=cpus,
            isolated=isolated,
            postmaster=first is signal.SIGINT,
        )
        _adopt_orphans()
        self._stopped = False
        try:
            with interruption.held(), _starting:
                self._spawned = spawn.spawn(order, stdin=stdin, stdout=stdout, stderr=stderr)
                self.pid, self.stdin, self.stdout = self._spawned.pid, self._spawned.stdin, self._spawned.stdout
                _living[self.pid] = self
        except OSError as error:
            raise EnvironmentLacksError(_why_not(command[0], cwd, error)) from error
        except KeyboardInterrupt:
            self.stop()
            raise

    def poll(self) -> int | None:
        """Exit status (negative: the signal), or None while it runs."""
        return self._spawned.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait at most that long; exit status or None. Wakes at once when the child ends, without polling."""
        return self._spawned.wait(seconds)

    def interrupt(self) -> None:
        """Send SIGINT to the child alone: wrk answers with the result so far."""
        if self.poll() is None:
            self._spawned.send_signal(signal.SIGINT)

    def adopted(self) -> list[int]:
        """Return the processes that left the tree and were adopted: they are still this child's work."""
        return [pid for pid in _orphans() if _whose(pid) is self]

    def ask(self) -> None:
        """Ask it to stop, without waiting."""
        if self.poll() is None:
            self._spawned.send_signal(self.first)

    def kill(self) -> None:
        """Kill its process group: its own session, so that nobody else is in it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self, grace: float = STOP_SECONDS) -> None:
        """Ask, wait at most ``grace`` seconds, then kill whatever of the tree still runs; once only."""
        if self._stopped:
            return  # its number may be another's by now
        try:
            if self.poll() is None:
                logger.info("stop: pid %d (%s)", self.pid, Path(self.command[0]).name)
                self.ask()
                if self.wait(grace) is None:
                    logger.warning("pid %d ignored %s for %.0f s: killed", self.pid, self.first.name, grace)
        except KeyboardInterrupt:
            self.wait(grace)
            raise
        finally:
            self._kill_tree()

    def _kill_tree(self) -> None:
        """Kill the descendants: those whose parents have exited are adopted by the guardian, or by this process."""
        tree = _tree(self.pid)[1:]
        self.kill()
        self.wait(STOP_SECONDS)
        # Killing a daemon hands us its children: look again, but not for ever.
        for _ in range(10):
            _kill(tree)
            tree = [process for pid in self.adopted() for process in _tree(pid)]
            if not tree:
                break
            logger.warning("%d processes outlived their parents: killed", len(tree))
        _living.pop(self.pid, None)
        if self.account and self.account.alone and self.account.uid not in _uids():
            spawn.kill_account_processes(self.account.uid)
        self._spawned.close()
        self._stopped = True


def _uids() -> set[int]:
    """Return the accounts of living children."""
    return {child.account.uid for child in _living.values() if child.account}


def _tree(pid: int) -> list[psutil.Process]:
    """A process and its descendants; empty for one that is gone."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def _kill(tree: Sequence[psutil.Process]) -> None:
    for process in tree:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(tree, timeout=2)


def _why_not(program: str, cwd: Path | None, error: OSError) -> str:
    """Return why a program could not be run; the kernel's words for some reasons mislead."""
    place = Path(cwd or "", program)
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"{program}: not found on PATH; ./tfb doctor shows what is missing"
        if place.exists():
            return f"{program}: cannot be run: the interpreter that its first line names does not exist"
        return f"{program}: not found: there is no file {place}"
    if error.errno == errno.ENOEXEC:
        return f"{program}: cannot be run: {error.strerror}: it is neither a program of this machine nor a script (#!)"
    if error.errno == errno.EACCES and "/" in program:
        kind = "it is a folder" if place.is_dir() else f"Permission denied: chmod +x {place}"
        return f"{program}: cannot be run: {kind}"
    return f"{program}: cannot be run: {error.strerror}"


def _orphans() -> list[int]:
    """Return the adopted processes: those whose parents have exited, which the guardian or this process has now.

    Every child has a session of its own; what is in this process's session came from elsewhere.
    """
    found: list[int] = []
    with _starting:
        for parent in filter(None, (os.getpid(), spawn.guardian_pid())):
            found += guardian.children(parent)
        found = [pid for pid in found if pid not in _living]
    orphans = []
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) != os.getsid(0):
                orphans.append(pid)
    return orphans


def _whose(pid: int) -> Child | None:
    """Return the child whose work an orphan is, by its account, else by the mark in its environment.

    One that has wiped the mark off is put down to the child that was started last before it, since that is when servers
    make daemons of themselves.
    """
    mark, born, uid = None, int(ownership.process_start(pid) or 0), None
    with contextlib.suppress(psutil.Error, OSError):  # it has ended
        uid = psutil.Process(pid).uids().real
    with contextlib.suppress(psutil.Error, OSError):  # it has ended, or is another user's
        mark = psutil.Process(pid).environ().get(MARK_VARIABLE)

    def made(child: Child) -> bool:
        if child.account and child.account.alone:
            return child.account.uid == uid
        return child.mark == mark if mark else child.born <= born

    return next((child for child in reversed(list(_living.values())) if made(child)), None)


@contextlib.contextmanager
def running(child: Child, *, grace: float = STOP_SECONDS) -> Iterator[Child]:
    """Stop the child with its tree on the way out, however that happens."""
    try:
        yield child
    finally:
        child.stop(grace)


def terminate_all() -> None:
    """Ask every living child to stop, without waiting: whoever waits for an answer of theirs gets an error instead."""
    for child in list(_living.values()):
        if child.first is signal.SIGTERM:  # PostgreSQL is stopped last, by whoever started it
            child.ask()


def kill_all() -> None:
    """Kill those that ``terminate_all`` asked and that still run."""
    for child in list(_living.values()):
        if child.first is signal.SIGTERM:
            child.kill()


def stop_all() -> None:
    """Stop whatever is left, last started first; in the end no child of this process lives."""
    for child in reversed(list(_living.values())):
        child.stop()
    spawn.end_guardian()
    _kill(_tree(os.getpid())[1:])


@cache
def _adopt_orphans() -> None:
    """Have the kernel make descendants whose parents have died our children (prctl(2)), so that none gets away."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(
    command: Sequence[str],
    *,
    seconds: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    account: Account | None = None,
) -> CompletedCommand:
    """Run to the end within ``seconds``; output goes to ``log`` (appended) or into the result.

    What is too late is asked to end, and killed two seconds later. Raises CommandTimeoutError after that,
    EnvironmentLacksError when the program is not there. A non-zero status is the caller's to judge.
    """
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        path = log or stack.enter_context(ownership.make_scratch_folder("output")) / "output"
        output = stack.enter_context(safe_write.append(path, private=True))
        if log:
            output.write(f"$ {shlex.join(command)}\n".encode())
            output.flush()
        child = Child(command, cwd=cwd, env=env, stdout=output, account=account)
        stack.enter_context(running(child, grace=2.0))
        while (status := child.wait(min(POLL_SECONDS, until - time.monotonic()))) is None:
            truncate_log(path)
            interruption.raise_if_pending()
            if time.monotonic() > until:
                where = f"; its output is in {log}" if log else ""
                raise CommandTimeoutError(f"{shlex.join(command)}: still running after {seconds:.0f} s, stopped{where}")
        interruption.raise_if_pending()
        return CompletedCommand(status=status, stdout="" if log else path.read_bytes().decode(errors="replace"))


def truncate_log(log: Path) -> None:
    """Cut a log that grew beyond ``MAX_LOG_BYTES`` to its first half and what comes now.

    Whoever writes it appends, so that its next line stands behind the cut.
    """
    with contextlib.suppress(OSError):
        if log.stat().st_size <= MAX_LOG_BYTES:
            return
        with safe_write.update(log) as file:
            file.seek(-MAX_LOG_BYTES // 4, os.SEEK_END)
            end = file.read(MAX_LOG_BYTES // 4)
            file.truncate(MAX_LOG_BYTES // 2)
            file.seek(0, os.SEEK_END)
            file.write(b"\n[tfb: the log was longer than it may be, its middle is left out]\n" + end)


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, without reading all of it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 64 * 1024))
            text = file.read(64 * 1024).decode(errors="replace")
    except OSError:
        return ""
    return printable("\n".join(line[:2000] for line in text.splitlines()[-lines:]))


def describe_status(status: int) -> str:
    """``exit status 3`` or ``killed by SIGKILL``."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
