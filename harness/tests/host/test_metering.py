"""CPU, memory and waiting of a process tree."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.errors import ServerDiedError
from harness.host.metering import ProcessTreeMeter, Reading
from harness.host.process import Child, running

# Burns CPU in a process of its own, says so, and waits.
BURN = "import time; t = time.process_time()\nwhile time.process_time() - t < {}: pass\n"


# Says so, and lives until it is told that something comes next.
SAYS = "\nprint(1, flush=True); import sys; sys.stdin.read()"


@contextmanager
def program(code: str, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        yield started
        started.kill()


def line(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def goes_on(process: "subprocess.Popen[bytes]") -> None:
    """It does the next thing, and has said that it is done."""
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    line(process)


def reading_of(code: str) -> tuple[int, Reading]:
    """Pid of a program, and what it has used when it says something."""
    with program(code) as process:
        line(process)
        return process.pid, ProcessTreeMeter(process.pid).read()


def test_the_cpu_of_a_busy_child_is_counted() -> None:
    pid, reading = reading_of(BURN.format(0.4) + SAYS)
    assert 0.37 <= reading.cpu_seconds < 2  # counted in ticks of 10 ms
    assert reading.run_seconds == pytest.approx(reading.cpu_seconds, abs=0.1)
    assert reading.wait_seconds is not None
    assert reading.pids == (pid,)


def test_a_process_may_call_itself_by_bytes_that_are_no_text() -> None:
    pid, reading = reading_of("import ctypes; ctypes.CDLL(None).prctl(15, b'\\xff) Z\\xfe')" + SAYS)
    assert reading.pids == (pid,)


def test_memory_is_that_of_the_tree() -> None:
    _, reading = reading_of("x = bytearray(80_000_000)" + SAYS)
    assert 80e6 < (reading.rss or 0) < 200e6


def test_threads_are_those_of_all_processes_of_the_tree() -> None:
    code = (
        "import subprocess, sys, threading\n"
        f"child = subprocess.Popen([sys.executable, '-c', {SAYS!r}], stdin=-1, stdout=-1)\n"
        "child.stdout.readline()\n"
        "threads = [threading.Thread(target=sys.stdin.read, daemon=True) for _ in range(2)]\n"
        "[thread.start() for thread in threads]\n"
        "print(1, flush=True); child.wait()"
    )
    assert reading_of(code)[1].threads == 4  # the main thread, two more, and the child's


def test_what_a_child_used_stays_counted_after_its_end() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); sys.stdin.readline()\n"
        "child.kill(); child.wait(); print('ended', flush=True); sys.stdin.read()"
    )
    with program(code, BURN.format(0.4) + SAYS) as parent:
        child = int(line(parent))
        meter = ProcessTreeMeter(parent.pid)
        before = meter.read()
        goes_on(parent)
        after = meter.read()
    assert before.pids == tuple(sorted((parent.pid, child)))
    assert after.pids == (parent.pid,)
    assert before.cpu_seconds > 0.37
    assert after.cpu_seconds >= before.cpu_seconds


def test_children_that_come_and_go_between_two_readings_are_counted() -> None:
    code = (
        "import subprocess, sys\nprint(1, flush=True); sys.stdin.readline()\n"
        "for _ in range(5): subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
        "print('ended', flush=True); sys.stdin.read()"
    )
    with program(code, BURN.format(0.1)) as parent:
        line(parent)
        meter = ProcessTreeMeter(parent.pid)
        before = meter.read()
        goes_on(parent)
        after = meter.read()
    assert 0.4 < after.cpu_seconds - before.cpu_seconds < 3


def test_a_root_that_is_gone_is_an_error() -> None:
    with running(Child(["true"])) as child:
        child.wait(10)
        meter = ProcessTreeMeter(child.pid)
        with pytest.raises(ServerDiedError, match=f"process {child.pid} is gone"):
            meter.read()


THREADS_THAT_END = """
import sys, threading, time
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
first = threading.Thread(target=work, args=(0.5,)); first.start(); first.join(0.4)
print("begun", flush=True); sys.stdin.readline()
first.join(); work(0.2)
print("worked", flush=True); sys.stdin.readline()
"""


def test_what_a_thread_that_has_ended_used_hides_nothing_of_the_others() -> None:
    """Compilers of a JIT runtime come and go: without them the sum over living threads falls."""
    with program(THREADS_THAT_END) as process:
        meter = ProcessTreeMeter(process.pid)
        line(process)
        before = meter.read()
        goes_on(process)
        after = meter.read()
    assert (after.run_seconds or 0) - (before.run_seconds or 0) >= 0.15
