"""Programs are logged, limited in time, and stopped together with all descendants."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from harness.errors import EnvironmentLacksError
from harness.host import process
from harness.host.process import Child, CommandTimeoutError, ProcessOptions, running
from harness.paths import REPOSITORY

IGNORE = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
# A child that prints the PID of its sleeping grandchild.
GRANDCHILD = "import subprocess, sys, time; p = subprocess.Popen(['sleep', '100']); print(p.pid, flush=True); p.wait()"
STUBBORN_GRANDCHILD = IGNORE + (
    "if os.fork() == 0:\n  print(os.getpid(), flush=True)\n  time.sleep(100)\nsys.exit(os.wait()[1])"
)
# A child with a daemon: a grandchild in its own session, whose parent has exited.
DAEMON = IGNORE + (
    "if os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    print(os.getpid(), flush=True)\n    time.sleep(100)\n"
    "  os._exit(0)\nos.wait(); time.sleep(100)"
)


@contextmanager
def saying(code: str, grace: float) -> Iterator[tuple[Child, int]]:
    """Start a Python program. Yield the child and the number that the program prints first."""
    reader, writer = os.pipe()
    command = [sys.executable, "-c", code]
    with os.fdopen(writer, "wb") as output, running(Child(command, stdout=output), grace=grace) as child:
        yield child, int(os.read(reader, 100).split()[0])
    os.close(reader)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("code", [GRANDCHILD, STUBBORN_GRANDCHILD, DAEMON], ids=["plain", "stubborn", "daemon"])
def test_grandchild_is_stopped_with_the_child(code: str) -> None:
    with saying(code, grace=0.3) as (child, grandchild):
        assert alive(grandchild)
    assert not alive(child.pid)
    assert not alive(grandchild)


def test_child_that_stops_on_request_is_not_killed() -> None:
    code = "import signal, sys; signal.signal(15, lambda *a: sys.exit(5)); print(1, flush=True); signal.pause()"
    with saying(code, grace=10) as (child, _):
        pass
    assert child.poll() == 5


@pytest.mark.parametrize("before", [True, False])
def test_unmarked_daemon_belongs_to_the_last_earlier_child(*, before: bool) -> None:
    """tfb attributes a daemon without its mark to the last child that it started before the daemon."""
    with contextlib.ExitStack() as stack:
        child = stack.enter_context(running(Child(["sleep", "100"]))) if before else None
        started = subprocess.run(
            ["sh", "-c", "setsid sleep 100 >/dev/null 2>&1 & echo $!"], check=True, capture_output=True, text=True
        )
        daemon = int(started.stdout)
        while os.getsid(daemon) != daemon:
            time.sleep(0.01)
        time.sleep(0.05)  # start times have a resolution of 10 ms
        stack.callback(process.run, ["true"], seconds=10)
        assert child is None or child.adopted() == [daemon]
    assert alive(daemon) is not before
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(daemon, signal.SIGKILL)
        os.waitpid(daemon, 0)


def test_other_processes_are_not_stopped() -> None:
    stranger = subprocess.Popen(["sleep", "100"])
    try:
        with running(Child(["sleep", "100"])) as other:
            with running(Child(["sleep", "100"])) as child:
                pass
            assert (alive(child.pid), alive(other.pid), alive(stranger.pid)) == (False, True, True)
    finally:
        stranger.kill()
        stranger.wait()


def test_threads_do_not_adopt_children_being_started() -> None:
    """A thread that looks for orphans must not adopt a child that another thread is starting."""

    def short(_: int) -> int:
        return process.run(["sh", "-c", "exit 3"], seconds=20).status

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(short, range(120))) == {3}


def test_command_is_stopped_after_its_time_limit() -> None:
    started_at = time.monotonic()
    with pytest.raises(CommandTimeoutError, match=r"^sleep 100 exceeded 0 s and was stopped$"):
        process.run(["sleep", "100"], seconds=0.2)
    assert time.monotonic() - started_at < 10


def test_run_returns_output_and_status() -> None:
    completed = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], seconds=20)
    assert (completed.status, completed.stdout) == (3, "out\nerr\n")


def test_log_contains_the_command_and_its_output(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert process.run(["echo", "two words"], seconds=20, log=log).stdout == ""
    process.run(["echo", "again"], seconds=20, log=log)
    assert log.read_text() == "$ echo 'two words'\ntwo words\n$ echo again\nagain\n"


def test_unrunnable_program_raises_the_reason(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a program")
    with pytest.raises(EnvironmentLacksError, match=r"^no-such-program: not found"):
        Child(["no-such-program"])
    with pytest.raises(EnvironmentLacksError, match=r"cannot run .*: Permission denied"):
        Child([str(text)])
    text.chmod(0o755)
    with pytest.raises(EnvironmentLacksError, match=r"cannot run .*: Exec format error"):
        Child([str(text)])
    with pytest.raises(EnvironmentLacksError, match="working directory /no/such does not exist"):
        Child(["true"], ProcessOptions(cwd=Path("/no/such")))


@pytest.mark.parametrize(
    ("status", "text"),
    [(3, "exit status 3"), (-9, "killed by SIGKILL"), (-15, "killed by SIGTERM"), (-63, "killed by ")],
)
def test_exit_status_is_described(status: int, text: str) -> None:
    assert process.describe_status(status).startswith(text)


def test_tail_returns_last_lines_of_long_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {n}\n" for n in range(100_000)))
    assert process.tail(log, 2) == "line 99998\nline 99999"
    assert process.tail(tmp_path / "none") == ""


def test_interrupt_is_held_until_the_block_ends() -> None:
    code = (
        "import os, signal\nfrom harness.host import interruption\n"
        "interruption.KILL_DELAY_SECONDS = 1.0\n"
        "interruption.install_handlers(lambda: print('ask', flush=True), lambda: print('kill', flush=True))\n"
        "try:\n  with interruption.held():\n    os.kill(os.getpid(), signal.SIGTERM)\n    print('held', flush=True)\n"
        "except KeyboardInterrupt:\n  os.kill(os.getpid(), signal.SIGINT)\n  print('then', flush=True)\n"
        "  import time\n  time.sleep(1.5)\n"
    )
    completed = process.run([sys.executable, "-c", code], seconds=30, cwd=REPOSITORY)
    assert completed.stdout.splitlines() == ["ask", "held", "then", "kill"]
