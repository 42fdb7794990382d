"""The one door to other programs: every command is logged, bounded in time, and stopped with all its children."""

import contextlib
import ctypes
import itertools
import logging
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import psutil

from harness.errors import EnvironmentLacksError, TfbError
from harness.host import interruption, ownership
from harness.paths import REPOSITORY
from harness.plain_text import printable

logger = logging.getLogger("tfb.process")

STOP_SECONDS = 5.0  # what an implementation has to stop after SIGTERM
DEVNULL, PIPE = subprocess.DEVNULL, subprocess.PIPE
MARK = "TFB_CHILD"  # environment variable by which a daemon is known as a descendant of one child
LOG_BYTES = 20 << 20  # of a program's log, as Docker keeps of a container's; of a command's output, too
LOOK_SECONDS = 1.0  # between looks at the output of a command
# A shell that waits, which takes a twentieth of Python's memory. ``bye`` is an orderly end; an end of file without it
# is our death. cgroup.kill needs a hierarchy that a user may write to, and the parent-death signal reaches children
# alone and goes off when a mere thread ends.
GUARDIAN = 'trap "" HUP INT QUIT TERM; read word; [ "$word" = bye ] || exec "$0" -m harness.host.leftovers "$1"'
_PR_SET_CHILD_SUBREAPER = 36
_numbers = itertools.count(1)
_starting = threading.Lock()  # a child of one thread is not yet among the living: it is no orphan for another
_living: dict[int, "Child"] = {}  # started and not yet stopped, by pid
_guardian: list["subprocess.Popen[bytes]"] = []  # at most one


@dataclass(frozen=True, kw_only=True)
class Account:
    """An unprivileged account to run a child as."""

    name: str
    uid: int
    gid: int
    rights: tuple[str, ...] = ()  # capabilities that a child of it keeps, as setpriv names them; it can win no others


def prefix(account: Account) -> tuple[str, ...]:
    """What stands before a command to give it an account with rights, and no way to more."""
    rights = "".join(f",+{right}" for right in account.rights)
    return (
        *("setpriv", f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--no-new-privs"),
        "--securebits=+no_setuid_fixup",  # access(2) counts the rights, too: gcc asks it where its linker is
        *(f"--inh-caps=-all{rights}", f"--ambient-caps=-all{rights}", f"--bounding-set=-all{rights}", "--"),
    )


@dataclass(frozen=True, kw_only=True)
class Completed:
    """How a bounded command ended."""

    status: int
    stdout: str


class CommandTimeoutError(TfbError):
    """A command took longer than it may; it has been stopped with all its children."""


class Child:
    """A running program in a session of its own, so that Ctrl-C reaches the harness first and it stops in order."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: IO[bytes] | int = subprocess.DEVNULL,
        stderr: IO[bytes] | int = subprocess.STDOUT,
        account: Account | None = None,
        cpus: Sequence[int] | None = None,
    ) -> None:
        logger.info("start: %s", shlex.join(command))
        self.command = tuple(command)
        self.first = signal.SIGTERM  # what asks it to stop
        # Not later than it is born, in the kernel's ticks since the boot; one that has ended has no start to read.
        self.born = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        self.mark = f"{ownership.me()}.{next(_numbers)}"
        environment = os.environ if env is None else env
        _require_program(command[0], cwd, environment.get("PATH"))
        if account and account.rights:
            command, account = [*prefix(account), *command], None
        if cpus:
            command = ["taskset", "-c", ",".join(map(str, cpus)), *command]
        _adopt_orphans()
        start_guardian()
        try:
            with interruption.held(), _starting:
                self.popen = subprocess.Popen(
                    command,
                    cwd=cwd,
                    env={**environment, MARK: self.mark},
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    user=account.uid if account else None,
                    group=account.gid if account else None,
                    extra_groups=[] if account else None,
                )
                self.pid = self.popen.pid
                self._pidfd = os.pidfd_open(self.pid)
                _living[self.pid] = self
        except OSError as error:  # no permission, not a program, no memory
            raise EnvironmentLacksError(f"{command[0]}: cannot be run: {error.strerror}") from error
        except KeyboardInterrupt:
            self.stop()
            raise

    def poll(self) -> int | None:
        """Exit status (negative: the signal), or None while it runs."""
        return self.popen.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait at most that long; exit status or None. Wakes at once when the child ends, without polling."""
        if self.popen.poll() is None:
            select.select([self._pidfd], [], [], max(0.0, seconds))
        return self.popen.poll()

    def interrupt(self) -> None:
        """Send SIGINT to the child alone: wrk answers with the result so far."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGINT)

    def adopted(self) -> list[int]:
        """Processes that left the tree and became children of the harness: they are still this child's work."""
        return [pid for pid in _orphans() if _whose(pid) is self]

    def ask(self) -> None:
        """Ask it to stop, without waiting."""
        if self.popen.poll() is None:
            self.popen.send_signal(self.first)

    def kill(self) -> None:
        """Kill its process group: its own session, so that nobody else is in it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self, grace: float = STOP_SECONDS) -> None:
        """Ask, wait at most ``grace`` seconds, then kill whatever of the tree still runs; once only."""
        if self._pidfd < 0:
            return  # its number may be another's by now
        try:
            if self.popen.poll() is None:
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
        """Descendants whose parents have died are children of ours, or become that as their parents are killed."""
        tree = _tree(self.pid)[1:]
        self.kill()
        self.popen.wait()
        # Killing a daemon hands us its children: look again, but not for ever.
        for _ in range(10):
            _kill(tree)
            tree = [process for pid in self.adopted() for process in _tree(pid)]
            if not tree:
                break
            logger.warning("%d processes outlived their parents: killed", len(tree))
        _living.pop(self.pid, None)
        if self.popen.stdin:
            with contextlib.suppress(OSError):  # it may have ended with our last line unread
                self.popen.stdin.close()
        os.close(self._pidfd)
        self._pidfd = -1


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


def _require_program(program: str, cwd: Path | None, path: str | None) -> None:
    """Raise EnvironmentLacksError for what is no program: what gives it an account or CPUs would say less."""
    if cwd is not None and not cwd.is_dir():
        raise EnvironmentLacksError(f"{program}: its working directory {cwd} does not exist")
    place = Path(cwd or "", program) if "/" in program else program
    if shutil.which(place, path=path) is None:
        if "/" in program and Path(place).exists():
            raise EnvironmentLacksError(f"{program}: cannot be run: Permission denied")
        raise EnvironmentLacksError(f"{program}: not found; ./tfb doctor shows what is missing")


def _orphans() -> list[int]:
    """Children of this process that it did not start: adopted from descendants that died, by its main thread.

    Every child has a session of its own; what is in this process's session came from elsewhere.
    """
    found: list[int] = []
    orphans = []
    with _starting, contextlib.suppress(OSError):  # some sandboxes have no such file
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        found = [pid for pid in map(int, children.split()) if pid not in _living]
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(pid) != os.getsid(0):
                orphans.append(pid)
    return orphans


def _whose(pid: int) -> Child | None:
    """The child whose work an orphan is, by the mark in its environment.

    One that has wiped it off is put down to the child that was started last before it, since that is when servers make
    daemons of themselves.
    """
    mark, born = None, int(ownership.start_of(pid) or 0)
    with contextlib.suppress(psutil.Error, OSError):  # it has ended, or is another user's
        mark = psutil.Process(pid).environ().get(MARK)
    latest_first = reversed(list(_living.values()))
    return next((each for each in latest_first if (each.mark == mark if mark else each.born <= born)), None)


@contextlib.contextmanager
def running(child: Child, *, grace: float = STOP_SECONDS) -> Iterator[Child]:
    """Stop the child with its tree on the way out, however that happens."""
    try:
        yield child
    finally:
        child.stop(grace)


def ask_all() -> None:
    """Ask every living child to stop, without waiting: whoever waits for an answer of theirs gets an error instead."""
    for child in list(_living.values()):
        if child.first is signal.SIGTERM:  # PostgreSQL is stopped last, by whoever started it
            child.ask()


def kill_all() -> None:
    """Kill those that ``ask_all`` asked and that still run."""
    for child in list(_living.values()):
        if child.first is signal.SIGTERM:
            child.kill()


def stop_all() -> None:
    """Stop whatever is left, last started first; in the end no child of this process lives."""
    for child in reversed(list(_living.values())):
        child.stop()
    while _guardian:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            _guardian.pop().communicate(b"bye\n", timeout=STOP_SECONDS)
    _kill(_tree(os.getpid())[1:])


@cache
def _adopt_orphans() -> None:
    """Have the kernel make descendants whose parents have died our children (prctl(2)), so that none gets away."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start_guardian() -> None:
    """Have somebody who ends our children, known by their mark, and removes our folders, if we are killed.

    In our session, so that it is not taken for a daemon of theirs, and in no process group that a terminal signals.
    """
    if _guardian:
        return
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    with interruption.held(), contextlib.suppress(OSError):
        _guardian.append(
            subprocess.Popen(
                ["sh", "-c", GUARDIAN, sys.executable, ownership.me()],
                cwd="/",
                env={**environment, "PYTHONPATH": str(REPOSITORY)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        )


def run(
    command: Sequence[str],
    *,
    seconds: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    account: Account | None = None,
) -> Completed:
    """Run to the end within ``seconds``; output goes to ``log`` (appended) or into the result.

    What is too late is asked to end, and killed two seconds later. Raises CommandTimeoutError after that,
    EnvironmentLacksError when the program is not there. A non-zero status is the caller's to judge.
    """
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        path = log or stack.enter_context(ownership.scratch("output")) / "output"
        output = stack.enter_context(path.open("ab"))
        if log:
            output.write(f"$ {shlex.join(command)}\n".encode())
            output.flush()
        child = Child(command, cwd=cwd, env=env, stdout=output, account=account)
        stack.enter_context(running(child, grace=2.0))
        while (status := child.wait(min(LOOK_SECONDS, until - time.monotonic()))) is None:
            bound(path)
            interruption.check()
            if time.monotonic() > until:
                where = f"; its output is in {log}" if log else ""
                raise CommandTimeoutError(f"{shlex.join(command)}: still running after {seconds:.0f} s, stopped{where}")
        interruption.check()
        return Completed(status=status, stdout="" if log else path.read_bytes().decode(errors="replace"))


def bound(log: Path) -> None:
    """Cut a log that grew beyond ``LOG_BYTES`` to its first half and what comes now.

    Whoever writes it appends, so that its next line stands behind the cut.
    """
    with contextlib.suppress(OSError):
        if log.stat().st_size <= LOG_BYTES:
            return
        with log.open("r+b") as file:
            file.seek(-LOG_BYTES // 4, os.SEEK_END)
            end = file.read(LOG_BYTES // 4)
            file.truncate(LOG_BYTES // 2)
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
